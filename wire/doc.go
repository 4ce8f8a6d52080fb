// Package wire is the client protocol of Parley, which is the protocol of Zulip: the parameters of each request, and
// the JSON of each answer and event. It turns a request into a command or a read of the realm, and results into JSON.
//
// # Contract
//
//   - wire knows no HTTP. Package httpd serves its endpoints: it authenticates the caller, fills in a [Call] and calls
//     [Endpoint.Run]. The server is behind the interfaces [Server], [Files], [Pusher] and the functions of [Tools].
//   - wire starts no goroutine, sets no timer and opens no file. Work in the background belongs to the packages below
//     wire (thumbnails, mail, push, webhooks, previews).
//   - Rules belong to package realm. wire asks the realm for permission before expensive work (decoding a picture,
//     hashing a password, rendering a text), and the command checks again.
//   - A function passed to [Read] builds its whole result inside the view. No pointer into the realm leaves it.
//   - Protocol words that differ from ours exist only here: stream for channel, op, subject, huddle.
//   - Everything that clients receive is declared: answers with [Endpoint.Returns], events in eventShapes, errors in
//     errorCodes. Tests compare real traffic with the declarations, and [OpenAPI] is made from them.
//
// A file has the name of its rule in package realm: channel_edit.go is the protocol of actors/realm/channel_edit.go. It
// begins with the endpoints and the events; forms and functions follow. A function named ...Object returns a JSON
// object, one named ...Section adds a part to the answer of a registration.
//
// # One endpoint, end to end
//
//	POST /api/v1/messages/17/reactions   emoji_name=tada
//	  │
//	  ▼ httpd          finds the Endpoint, authenticates, fills in a Call
//	Endpoint.Run
//	  │ form.Decode    addReactionForm{Message: 17, Name: "tada"}   type and format: else 400
//	  │ addReaction    realm.AddReaction{...}                       form to command
//	  ▼ Execute
//	Server.Turn ─────▶ realm actor
//	                     Decide    permissions, limits, rules: else a realm.Refusal
//	                     Record    the fact realm.ReactionAdded
//	                     journal   the fact is on disk
//	  ◀──────────────────┤
//	  │ emptyAnswer      │
//	  ▼ Success          ▼ session actors, one notice per fact
//	{"result":         NoticeRenderer.EventsFor
//	 "success",...}      reactionEvent   rendered once per kind of client
//	                     ▼ AnswerPoll
//	                   {"type":"reaction","op":"add",...}   to each queue of the audience
//
// The declaration of this endpoint is one line in message_reactions.go, its event another:
//
//	CommandFromForm("POST", "/messages/{message_id}/reactions", addReaction, emptyAnswer)
//	Event(func(e *realm.ReactionAdded, to *Recipient) *reactionAddedEvent { ... })
//
// # Where a request is checked
//
//	check                                  place
//	type and format of a parameter         the form: its Go types and tags
//	rules between parameters               the form's Check, or the function that makes the command
//	length of a text                       the command
//	permission, business rule              the command; for reads, the function of the view
//
// The form is checked first, so its errors precede those of permissions. Exceptions:
//
//   - Forms check the length of texts that the protocol bounds as parameters, so that OpenAPI shows the limit, and of
//     texts that no rule bounds, to protect memory. formLengths in endpoint_limits_test.go lists them with the reasons.
//     Where the realm has a limit too, the realm's is the rule.
//   - Forms check the number of elements of lists (maxitems) that decide how many turns a request needs.
//   - The format of linkifiers, playgrounds, widgets and time zones needs libraries that package realm does not import,
//     so wire checks it. Linkifiers and playgrounds pass the error to the command, because permissions come first.
//   - The realm checks the format of settings, because the tables of settings decide it.
//   - Passwords are checked in wire, because the realm never sees them, only their hashes.
//   - Files are checked by [Files] while they are read; quotas by the realm.
//
// A web address is checked by IsWebURL in actors/realm/realm_urls.go, for services that the server calls and for links
// that clients show.
//
// # Unknown ids
//
// The protocol is not uniform, and this package repeats it exactly:
//
//	400 BAD_REQUEST              users, channels, messages, groups, default channel groups, folders, bots,
//	                             linkifiers, playgrounds, domains, profile fields, invitations, attachments,
//	                             exports, devices
//	400 with a code of its own   BAD_EVENT_QUEUE_ID, STREAM_DOES_NOT_EXIST (sending), REACTION_DOES_NOT_EXIST,
//	                             INVALID_PUSH_DEVICE_TOKEN
//	404 BAD_REQUEST              drafts, scheduled messages, reminders, saved snippets, navigation views, custom
//	                             emoji to delete, uploads and their thumbnails, tus uploads, integrations of
//	                             incoming webhooks, links in emails
//	404 NONEXISTENT_SUBDOMAIN    organizations
//	404 "Not found"              paths, and path parameters that are not of the type in the path
//
// An id that exists but is hidden from the caller has the same answer as an unknown one. The exception is the request
// for one user, GET /users/{user_id} and GET /users/{email}, which answers "Insufficient permission".
package wire

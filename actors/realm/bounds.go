package realm

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of an organization with these limits. waiting returns the largest number of outbox jobs of
// a kind that wait in one organization.
func (l Limits) Bounds(waiting func(OutboxJobKind) int64) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "audit_entries",
			Of:       "entries of the audit log of one organization",
			Overflow: "the oldest entries are removed",
			Reason:   "about 30 MB; each change of a setting or permission and each login adds one",
			Limit:    registry.Constant(maxAuditEntries),
		},
		{
			Name:     "queues_per_user",
			Of:       "event queues of one user and the user's bots",
			Overflow: "429",
			Reason:   "a client that leaks queues must not fill the server",
			Limit:    registry.Constant(MaxQueues),
		},
		{
			Name:     "sessions_per_user",
			Of:       "sessions of one user in browsers",
			Overflow: "the least recently used one ends",
			Reason:   "about 400 bytes each; more devices than one person uses",
			Limit:    registry.Constant(MaxBrowserSessions),
		},
		{
			Name:     "notified_browsers_per_user",
			Of:       "browsers of one user that get notifications while no page is open",
			Overflow: "the subscription that was made first is removed",
			Reason:   "users choose the addresses, and each notification connects to all of them",
			Limit:    registry.Constant(MaxWebPush),
		},
		{
			Name:     "notified_browsers_per_host",
			Of:       "of these, browsers whose push services have addresses in one domain",
			Overflow: "the subscription that was made first is removed",
			Reason:   "a message must not become many requests to the server of someone else",
			Limit:    registry.Constant(MaxWebPushOfHost),
		},
		{
			Name:     "subscriptions_per_request",
			Of:       "subscriptions that one request adds or removes: users times channels",
			Overflow: "400",
			Reason:   "they take a fifth of a second of the organization's turns",
			Limit:    func() int64 { return int64(l.JoinsPerCall) },
		},
		{
			Name:     "channels",
			Of:       "channels of one organization, archived ones included",
			Overflow: "400",
			Reason:   "every registration contains all of them",
			Limit:    func() int64 { return int64(l.Channels) },
		},
		{
			Name:     "channels_per_day",
			Of:       "channels that one user who is no administrator, with the user's bots, creates in 24 hours",
			Overflow: "400",
			Reason:   "one member must not fill the organization for the others",
			Limit:    func() int64 { return int64(l.ChannelsPerDay) },
		},
		{
			Name:     "channels_per_request",
			Of:       "channels that one request creates",
			Overflow: "400",
			Reason:   "each is a fact, a message and events for all users",
			Limit:    func() int64 { return int64(l.ChannelsPerCall) },
		},
		{
			Name:     "groups",
			Of:       "user groups of one organization, deactivated ones included",
			Overflow: "400",
			Reason:   "every registration contains all of them",
			Limit:    func() int64 { return int64(l.Groups) },
		},
		{
			Name:     "groups_per_day",
			Of:       "user groups that one user who is no administrator creates in 24 hours",
			Overflow: "400",
			Reason:   "one member must not fill the organization for the others",
			Limit:    func() int64 { return int64(l.GroupsPerDay) },
		},
		{
			Name:     "bots_per_user",
			Of:       "bots of one user, deactivated ones included",
			Overflow: "400",
			Reason:   "each can store ten million characters, and every registration contains all accounts",
			Limit:    func() int64 { return int64(l.BotsPerUser) },
		},
		{
			Name: "registration_bytes",
			Of: "bytes of a registration that all users of an organization share: channels with their subscribers, " +
				"accounts, groups and the lists of administrators",
			Overflow: "400 for requests that would make it larger",
			Reason:   "every client downloads it at its start",
			Limit:    func() int64 { return int64(l.RegistrationSize) },
		},
		{
			Name: "own_text_bytes",
			Of: "bytes of one user's drafts, and likewise of snippets, scheduled messages and reminders, with their " +
				"HTML",
			Overflow: "400",
			Reason:   "every registration of the user contains all of them",
			Limit:    registry.Constant(MaxOwnTexts),
		},
		{
			Name:     "topic_policies",
			Of:       "topics that one user has muted, followed or unmuted",
			Overflow: "400; topics are not followed automatically from nine tenths of it on",
			Reason:   "every registration of the user contains all of them",
			Limit:    registry.Constant(MaxTopicPolicies),
		},
		{
			Name:     "reactions_of_user",
			Of:       "reactions of one user to one message",
			Overflow: "400",
			Reason:   "every answer with the message contains all of them",
			Limit:    registry.Constant(MaxReactionsOfUser),
		},
		{
			Name:     "emoji_of_user",
			Of:       "custom emoji that one user who is no administrator adds, removed ones included",
			Overflow: "400",
			Reason:   "one member must not use up the 5,000 of the organization",
			Limit:    registry.Constant(MaxEmojiOfUser),
		},
		{
			Name:     "subscription_settings_per_request",
			Of:       "channel settings of a user that one request changes",
			Overflow: "400",
			Reason:   "each change is an event for the user's clients",
			Limit:    registry.Constant(MaxPropertiesPerRequest),
		},
		{
			Name:     "jobs",
			Of:       "unfinished requests of one organization that take several turns",
			Overflow: "503",
			Reason:   "each takes some kilobytes",
			Limit:    registry.Constant(MaxJobs),
		},
		{
			Name: "notification_jobs",
			Of: "messages of one organization to very many users whose emails and push notifications are " +
				"not prepared yet",
			Overflow: "dropped and logged",
			Reason:   "each takes some kilobytes",
			Limit:    registry.Constant(MaxNotifyJobs),
		},
		{
			Name:     "legal_holds",
			Of:       "legal holds of one organization",
			Overflow: "refused",
			Reason:   "all are read before messages are purged",
			Limit:    registry.Constant(MaxHolds),
		},
		{
			Name:     "additional_api_keys",
			Of:       "additional API keys of an account, apart from expired ones",
			Overflow: "400",
			Reason:   "each is in the account's row and in the table of logins",
			Limit:    registry.Constant(MaxAdditionalKeys),
		},
		{
			Name:     "emails",
			Of:       "emails of one organization that wait to be sent",
			Overflow: "dropped and logged",
			Reason:   "a few hundred bytes each; a mail server that is down must not fill the memory",
			Limit:    registry.Constant(MaxEmails),
			Used:     func() int64 { return waiting(OutboxEmail) },
			Whole:    registry.OfOne,
		},
		{
			Name: "webhook_calls",
			Of: "outgoing webhook calls of one organization that wait; one bot can use a tenth, the bots of one " +
				"user a quarter",
			Overflow: "dropped and logged",
			Reason:   "a service that is down must not fill the memory",
			Limit:    registry.Constant(MaxWebhookCalls),
			Used:     func() int64 { return waiting(OutboxWebhook) },
			Whole:    registry.OfOne,
		},
		{
			Name:     "missed_messages",
			Of:       "messages of one organization that may have to be emailed",
			Overflow: "not emailed, and logged",
			Reason:   "about a hundred bytes each",
			Limit:    registry.Constant(MaxMissedMessages),
			Used:     func() int64 { return waiting(OutboxMissedMessage) },
			Whole:    registry.OfOne,
		},
		{
			Name:     "push_notifications",
			Of:       "push notifications of one organization that wait",
			Overflow: "dropped and logged",
			Reason:   "about a hundred bytes each",
			Limit:    registry.Constant(MaxPushes),
			Used:     func() int64 { return waiting(OutboxPush) },
			Whole:    registry.OfOne,
		},
		{
			Name: "push_registrations",
			Of: "devices of one organization that wait to be registered at the push bouncer; one user can " +
				"have 32",
			Overflow: "dropped and logged, or 503",
			Reason:   "half a kilobyte each; 25 kB each if a client misuses it",
			Limit:    registry.Constant(MaxDeviceRegistrations),
			Used:     func() int64 { return waiting(OutboxRegistration) },
			Whole:    registry.OfOne,
		},
		{
			Name:     "link_previews",
			Of:       "messages of one organization whose linked pages wait to be fetched; one user can have 50",
			Overflow: "the message gets no preview, and it is logged",
			Reason:   "a slow site must not fill the memory",
			Limit:    registry.Constant(MaxPreviews),
			Used:     func() int64 { return waiting(OutboxPreview) },
			Whole:    registry.OfOne,
		},
		{
			Name:     "listed_exports",
			Of:       "data exports of one organization in its list",
			Overflow: "the oldest deleted or failed one is forgotten; if there is none, 400",
			Reason:   "the list is in an event for each change of an export",
			Limit:    registry.Constant(MaxExports),
		},
	}
}

package server

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
)

// Refusals of whole classes of callers.
const (
	noBots       = "This endpoint does not accept bot requests."
	noGuests     = "Not allowed for guest users"
	adminsOnly   = "Must be an organization administrator"
	ownersOnly   = "Must be an organization owner"
	noPermission = "Insufficient permission"
)

// expectedError returns the error that a user gets from an endpoint used correctly, or "" if it is allowed.
type expectedError func(p *matrixUser) string

func everyone(*matrixUser) string { return "" }

func humans(p *matrixUser) string {
	if p.name == "bot" {
		return noBots
	}
	return ""
}

// browsers: humans with a browser session.
func browsers(p *matrixUser) string {
	if refusal := humans(p); refusal != "" || p.session != nil {
		return refusal
	}
	return keySubscribesNoBrowser
}

func members(p *matrixUser) string {
	if p.isGuest() {
		return noGuests
	}
	return humans(p)
}

// inviters: members; guests lack the permission.
func inviters(p *matrixUser) string {
	if p.isGuest() {
		return noPermission
	}
	return humans(p)
}

func admins(p *matrixUser) string {
	if p.isAdmin() {
		return ""
	}
	return adminsOnly
}

func owners(p *matrixUser) string {
	if p.name == "owner" {
		return ""
	}
	return ownersOnly
}

func bots(p *matrixUser) string {
	if p.name == "bot" {
		return ""
	}
	return "Must be a bot user"
}

// onlyUsers allows only the named users; the others get the given error.
func onlyUsers(otherwise string, names ...string) expectedError {
	return func(p *matrixUser) string {
		for _, n := range names {
			if p.name == n {
				return ""
			}
		}
		return otherwise
	}
}

// after applies one rule and then, if it allows, another one.
func after(first, then expectedError) expectedError {
	return func(p *matrixUser) string {
		if m := first(p); m != "" {
			return m
		}
		return then(p)
	}
}

func always(msg string) expectedError { return func(*matrixUser) string { return msg } }

// roleEndpoint is an endpoint whose answer depends only on the kind of the caller. Each cell gets objects of its own to
// work on.
type roleEndpoint struct {
	method, path string
	may          expectedError
	params       func(s *matrixStage, n int) pairs
	at           func(s *matrixStage, n int) any // the value of the parameter in the path
}

func with(p ...any) func(*matrixStage, int) pairs {
	return func(_ *matrixStage, n int) pairs {
		out := make(pairs, len(p))
		for i, x := range p {
			if text, ok := x.(string); ok && len(text) > 1 && text[len(text)-1] == '#' {
				x = text[:len(text)-1] + fmt.Sprint(n)
			}
			out[i] = x
		}
		return out
	}
}

func nothing(*matrixStage, int) pairs { return nil }

// made creates an object as the keeper; key is the field of the answer with the id.
func made(key, method, path string, params ...any) func(*matrixStage, int) any {
	return func(s *matrixStage, n int) any {
		return s.must(s.keeper, method, path, with(params...)(s, n)...).int(key)
	}
}

func roleEndpoints() []roleEndpoint {
	group := made("group_id", "POST", "/user_groups/create", "name", "group #", "description", "", "members", []int64{})
	field := made("id", "POST", "/realm/profile_fields", "name", "field #", "field_type", 1)
	linkifier := made("id", "POST", "/realm/filters", "pattern", "q#", "url_template", "https://a.example/")
	playground := made("id", "POST", "/realm/playgrounds", "name", "p #", "highlighter_language", "Go", "url_template",
		"https://a.example/{code}")
	folder := made("channel_folder_id", "POST", "/channel_folders/create", "name", "folder #")
	channel := func(s *matrixStage, n int) any {
		return s.must(s.keeper, "POST", "/channels/create", "name", fmt.Sprintf("channel %d", n), "subscribers",
			[]int64{}).int("id")
	}
	emoji := func(s *matrixStage, n int) any {
		s.must(s.keeper, "POST", fmt.Sprintf("/realm/emoji/e%d", n), "file", picture)
		return fmt.Sprintf("e%d", n)
	}
	account := func(s *matrixStage, n int) any {
		return s.join(ours, ourHost, fmt.Sprintf("account %d", n), 400, 0, 0).id
	}
	closed := func(s *matrixStage, n int) any {
		id := account(s, n)
		s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", id))
		return id
	}
	muted := func(s *matrixStage, n int) any {
		id := account(s, n)
		for _, p := range s.people {
			if p.name != "gone" {
				s.must(p, "POST", fmt.Sprintf("/users/me/muted_users/%d", id))
			}
		}
		return id
	}
	bot := func(s *matrixStage, n int) any {
		return s.join(ours, ourHost, fmt.Sprintf("a bot %d", n), 400, 1, s.keeper.id).id
	}
	keyOfBot := func(s *matrixStage, n int) any { // the rest of the path: the bot and its key
		id := bot(s, n)
		key := s.must(s.keeper, "POST", fmt.Sprintf("/users/%v/api_keys", id), "label", "key").int("id")
		return fmt.Sprintf("%v/api_keys/%d", id, key)
	}
	domain := func(s *matrixStage, n int) any {
		d := fmt.Sprintf("d%d.example", n)
		s.must(s.keeper, "POST", "/realm/domains", "domain", d, "allow_subdomains", false)
		return d
	}
	invite := func(s *matrixStage, n int) any {
		s.must(s.keeper, "POST", "/invites", "invitee_emails", fmt.Sprintf("i%d@a.example", n), "stream_ids", []int64{})
		for _, i := range objects(s.must(s.keeper, "GET", "/invites").body["invites"]) {
			if i["email"] == fmt.Sprintf("i%d@a.example", n) {
				return num(i["id"])
			}
		}
		return 0
	}
	link := func(s *matrixStage, n int) any {
		s.must(s.keeper, "POST", "/invites/multiuse")
		last := int64(0)
		for _, i := range objects(s.must(s.keeper, "GET", "/invites").body["invites"]) {
			if i["is_multiuse"] == true {
				last = max(last, num(i["id"]))
			}
		}
		return last
	}
	defaults := func(s *matrixStage, n int) any {
		s.must(s.keeper, "POST", "/default_stream_groups/create", "group_name", fmt.Sprintf("defaults %d", n),
			"description", "x", "stream_names", []string{})
		last := int64(0)
		registration := s.must(s.keeper, "POST", "/register", "fetch_event_types", []string{"default_stream_groups"})
		for _, g := range objects(registration.body["realm_default_stream_groups"]) {
			last = max(last, num(g["id"]))
		}
		return last
	}
	open := func(s *matrixStage, _ int) any { return s.by["member"].id }
	square := func(s *matrixStage, _ int) pairs { return pairs{"stream_id", s.targetChannel()} }
	// Only the creator and users who manage all groups (by default the owners) administer a group.
	managers := after(members, onlyUsers(noPermission, "owner"))
	// Own bots, or as administrator.
	botKeepers := onlyUsers(noPermission, "owner", "admin")
	return []roleEndpoint{
		{"GET", "/users", everyone, nothing, nil},
		{"GET", "/users/me", everyone, nothing, nil},
		{"GET", "/users/%v", everyone, nothing, open},
		{"POST", "/users", after(admins, always("User not authorized to create users")),
			with("email", "x#@a.example", "password", "a good long one", "full_name", "New #"), nil},
		{"PATCH", "/users/%v", onlyUsers(noPermission, "owner", "admin"), with("full_name", "Renamed #"), account},
		{"PATCH", "/users/user%v@" + ourHost, onlyUsers(noPermission, "owner", "admin"),
			with("full_name", "Renamed too #"), account},
		{"DELETE", "/users/%v", onlyUsers(noPermission, "owner", "admin"), nothing, account},
		{"POST", "/users/%v/reactivate", onlyUsers(noPermission, "owner", "admin"), nothing, closed},
		{"POST", "/users/%v/status", admins, with("status_text", "x"), account},
		{"GET", "/users/%v/status", everyone, nothing, open},
		{"POST", "/users/me/status", humans, with("status_text", "x#"), nil},
		{"POST", "/users/me/presence", humans, with("status", "active", "slim_presence", true), nil},
		{"GET", "/realm/presence", everyone, nothing, nil},
		{"GET", "/users/me/alert_words", everyone, nothing, nil},
		{"POST", "/users/me/alert_words", everyone, with("alert_words", []string{"x"}), nil},
		{"DELETE", "/users/me/alert_words", everyone, with("alert_words", []string{"x"}), nil},
		{"POST", "/users/me/muted_users/%v", everyone, nothing, account},
		{"POST", "/users/me/onboarding_steps", humans, with("onboarding_step", "intro_inbox_view_modal"), nil},
		{"DELETE", "/users/me/avatar", humans, nothing, nil},
		{"POST", "/users/me/avatar", humans, with("file", picture), nil},
		{"PATCH", "/users/me/profile_data", humans, with("data", []any{}), nil},
		{"DELETE", "/users/me/profile_data", humans, with("data", []any{}), nil},
		{"PATCH", "/settings", humans, with("twenty_four_hour_time", true), nil},
		{"PATCH", "/settings/display", humans, with("twenty_four_hour_time", true), nil},
		{"PATCH", "/settings/notifications", humans, with("enable_sounds", true), nil},
		{"PATCH", "/settings", after(humans, admins), func(s *matrixStage, _ int) pairs {
			return pairs{"twenty_four_hour_time", true, "target_users",
				map[string]any{"user_ids": []int64{s.by["member"].id}}}
		}, nil},
		{"PATCH", "/realm/user_settings_defaults", admins, with("twenty_four_hour_time", true), nil},
		{"PATCH", "/realm", admins, with("name", "Ours"), nil},
		{"PATCH", "/realm", after(admins, owners), with("message_retention_days", `"unlimited"`), nil},
		{"POST", "/realm/deactivate", onlyUsers(ownersOnly, "nobody"), nothing, nil}, // the owner is not asked
		{"GET", "/realm/icon", everyone, nothing, nil},
		{"POST", "/realm/icon", admins, with("file", picture), nil},
		{"DELETE", "/realm/icon", admins, nothing, nil},
		{"GET", "/realm/logo", everyone, with("night", false), nil},
		{"POST", "/realm/logo", admins, with("file", picture, "night", false), nil},
		{"DELETE", "/realm/logo", admins, with("night", false), nil},
		{"GET", "/realm/domains", everyone, nothing, nil},
		{"POST", "/realm/domains", owners, with("domain", "new.x#", "allow_subdomains", false), nil},
		{"PATCH", "/realm/domains/%v", owners, with("allow_subdomains", true), domain},
		{"DELETE", "/realm/domains/%v", owners, nothing, domain},
		{"GET", "/realm/emoji", everyone, nothing, nil},
		{"POST", "/realm/emoji/new%v", members, with("file", picture), func(_ *matrixStage, n int) any { return n }},
		{"DELETE", "/realm/emoji/%v", after(members,
			onlyUsers("Must be an organization administrator or emoji author", "owner", "admin")), nothing, emoji},
		{"GET", "/realm/linkifiers", everyone, nothing, nil},
		{"POST", "/realm/filters", admins, with("pattern", "x#", "url_template", "https://a.example/"), nil},
		{"PATCH", "/realm/filters/%v", admins, with("pattern", "y#", "url_template", "https://a.example/"), linkifier},
		{"DELETE", "/realm/filters/%v", admins, nothing, linkifier},
		{"PATCH", "/realm/linkifiers", admins, func(s *matrixStage, _ int) pairs {
			return pairs{"ordered_linkifier_ids",
				ids(s.must(s.keeper, "GET", "/realm/linkifiers").body["linkifiers"], "id")}
		}, nil},
		{"POST", "/realm/playgrounds", admins,
			with("name", "x #", "highlighter_language", "Go", "url_template", "https://a.example/{code}"), nil},
		{"DELETE", "/realm/playgrounds/%v", admins, nothing, playground},
		{"GET", "/realm/profile_fields", everyone, nothing, nil},
		{"POST", "/realm/profile_fields", admins, with("name", "x #", "field_type", 1), nil},
		{"PATCH", "/realm/profile_fields/%v", admins, with("hint", "x#"), field},
		{"DELETE", "/realm/profile_fields/%v", admins, nothing, field},
		{"PATCH", "/realm/profile_fields", admins, func(s *matrixStage, _ int) pairs {
			return pairs{"order", ids(s.must(s.keeper, "GET", "/realm/profile_fields").body["custom_fields"], "id")}
		}, nil},
		{"GET", "/export/realm", admins, nothing, nil},
		{"GET", "/export/realm/consents", admins, nothing, nil},
		{"DELETE", "/export/realm/%v", after(admins, always("Invalid data export ID")), nothing,
			func(*matrixStage, int) any { return missingID }},
		{"POST", "/export/realm", admins, nothing, nil},
		{"GET", "/invites", members, nothing, nil},
		{"POST", "/invites", inviters, func(_ *matrixStage, n int) pairs {
			return pairs{"invitee_emails", fmt.Sprintf("n%d@a.example", n), "stream_ids", []int64{}}
		}, nil},
		{"POST", "/invites/multiuse", after(inviters, onlyUsers(noPermission, "owner", "admin")), nothing, nil},
		{"DELETE", "/invites/%v", after(members, admins), nothing, invite},
		{"DELETE", "/invites/multiuse/%v", after(members, admins), nothing, link},
		{"POST", "/invites/%v/resend", after(members, admins), nothing, invite},
		{"GET", "/user_groups", members, nothing, nil},
		{"POST", "/user_groups/create", members, with("name", "new #", "description", "", "members", []int64{}), nil},
		{"GET", "/user_groups/%v/members", members, nothing, group},
		{"GET", "/user_groups/%v/subgroups", members, nothing, group},
		{"GET", "/user_groups/%v/members/1", members, nothing, group},
		{"PATCH", "/user_groups/%v", managers, with("description", "x"), group},
		{"POST", "/user_groups/%v/members", managers,
			func(s *matrixStage, _ int) pairs { return pairs{"add", []int64{s.by["member"].id}} }, group},
		{"POST", "/user_groups/%v/subgroups", managers,
			func(s *matrixStage, _ int) pairs { return pairs{"add", []int64{s.groups["role:owners"]}} }, group},
		{"POST", "/user_groups/%v/deactivate", managers, nothing, group},
		{"GET", "/bots", members, nothing, nil},
		{"POST", "/bots", members, with("full_name", "Made #", "short_name", "made#"), nil},
		{"PATCH", "/bots/%v", botKeepers, with("full_name", "Robot #"), bot},
		{"GET", "/bots/%v/api_key", botKeepers, nothing, bot},
		{"POST", "/bots/%v/api_key/regenerate", botKeepers, nothing, bot},
		{"GET", "/users/me/web_push", humans, nothing, nil},
		{"POST", "/users/me/web_push", browsers, with("endpoint", "https://push.example.com/#", "p256dh",
			"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth",
			"BTBZMqHH6r4Tts7J_aSIgg"), nil},
		{"DELETE", "/users/me/web_push", after(humans, always("Token does not exist")),
			with("endpoint", "https://push.example.com/none"), nil},
		{"GET", "/users/me/api_keys", everyone, nothing, nil},
		{"POST", "/users/me/api_keys", keyMakers, with("label", "key #", "expires_in", 3600), nil},
		{"GET", "/users/%v/api_keys", botKeepers, nothing, account},
		{"GET", "/users/%v/api_keys", botKeepers, nothing, bot},
		{"POST", "/users/%v/api_keys", always(noPermission), with("label", "key #"), account},
		{"POST", "/users/%v/api_keys", botKeepers, with("label", "key #"), bot},
		{"DELETE", "/users/%v", botKeepers, nothing, keyOfBot},
		{"DELETE", "/bots/%v", botKeepers, nothing, bot},
		{"GET", "/bot_storage", bots, nothing, nil},
		{"PUT", "/bot_storage", bots, with("storage", map[string]string{"k": "v"}), nil},
		{"DELETE", "/bot_storage", bots, with("keys", []string{"k"}), nil},
		{"POST", "/default_streams", admins, square, nil},
		{"DELETE", "/default_streams", admins, square, nil},
		{"POST", "/default_stream_groups/create", admins,
			with("group_name", "a #", "description", "x", "stream_names", []string{}), nil},
		{"PATCH", "/default_stream_groups/%v", admins, with("new_description", "y#"), defaults},
		{"PATCH", "/default_stream_groups/%v/streams", admins,
			with("op", "add", "stream_names", []string{"destination"}),
			defaults},
		{"DELETE", "/default_stream_groups/%v", admins, nothing, defaults},
		{"GET", "/channel_folders", everyone, nothing, nil},
		{"POST", "/channel_folders/create", admins, with("name", "new #"), nil},
		{"PATCH", "/channel_folders/%v", admins, with("name", "renamed #"), folder},
		{"PATCH", "/channel_folders", admins, func(s *matrixStage, _ int) pairs {
			return pairs{"order",
				ids(s.must(s.keeper, "GET", "/channel_folders", "include_archived", true).body["channel_folders"],
					"id")}
		}, nil},
		{"POST", "/channels/create", allUsersBut(noGuests, "guest"), with("name", "made #", "subscribers", []int64{}),
			nil},
		{"POST", "/users/me/subscriptions", allUsersBut(noGuests, "guest"), func(_ *matrixStage, n int) pairs {
			return pairs{"subscriptions", []any{map[string]string{"name": fmt.Sprintf("mine %d", n)}}}
		}, nil},
		{"DELETE", "/streams/%v", after(allUsersBut(noChannel, "guest"), onlyUsers(noAdministration, "owner", "admin")),
			nothing, channel},
		{"GET", "/users/me/subscriptions", everyone, nothing, nil},
		{"GET", "/attachments", everyone, nothing, nil},
		{"POST", "/user_uploads", everyone, with("file", "text"), nil},
		{"POST", "/messages/render", everyone, with("content", "x"), nil},
		{"POST", "/zcommand", everyone, with("command", "/ping"), nil},
		{"GET", "/messages/summary", always("Topic summaries are not enabled on this server."), with("narrow", []any{}),
			nil},
		{"POST", "/mark_all_as_read", everyone, nothing, nil},
		{"POST", "/messages/flags/narrow", everyone,
			with("anchor", "newest", "num_before", 5, "num_after", 0, "narrow", []any{}, "op", "add", "flag", "read"),
			nil},
		{"GET", "/drafts", everyone, nothing, nil},
		{"GET", "/saved_snippets", everyone, nothing, nil},
		{"GET", "/scheduled_messages", everyone, nothing, nil},
		{"GET", "/reminders", everyone, nothing, nil},
		{"GET", "/navigation_views", everyone, nothing, nil},
		{"POST", "/register_client_device", humans, nothing, nil},
		{"POST", "/users/me/apns_device_token", humans, with("token", "aa#", "appid", "x"), nil},
		{"POST", "/users/me/android_gcm_reg_id", humans, with("token", "g#"), nil},
		{"DELETE", "/users/me/apns_device_token", after(humans, always("Token does not exist")), with("token", "ff"),
			nil},
		{"DELETE", "/users/me/android_gcm_reg_id", after(humans, always("Token does not exist")), with("token", "ff"),
			nil},
		{"POST", "/mobile_push/test_notification", after(humans, always("Device not recognized")),
			with("token", "none"), nil},
		{"POST", "/navigation_views", everyone, with("fragment", "v#", "is_pinned", true, "name", "v #"), nil},
		{"POST", "/tus", everyone, with("Tus-Resumable", "1.0.0", "Upload-Length", "5"), nil},
		{"POST", "/saved_snippets", everyone, with("title", "x", "content", "x"), nil},
		{"PATCH", "/users/me/subscriptions", allUsersBut(noGuests, "guest"), func(_ *matrixStage, n int) pairs {
			return pairs{"add", []any{map[string]string{"name": fmt.Sprintf("joined %d", n)}}}
		}, nil},
		{"PATCH", "/users/me/subscriptions/%v", everyone, with("property", "color", "value", `"#76ce90"`),
			func(s *matrixStage, _ int) any { return s.targetChannel() }},
		{"PATCH", "/users/me/subscriptions/muted_topics", everyone, func(s *matrixStage, n int) pairs {
			return pairs{"stream_id", s.targetChannel(), "topic", fmt.Sprintf("t %d", n), "op", "add"}
		}, nil},
		{"DELETE", "/users/me/muted_users/%v", everyone, nothing, muted},
		{"POST", "/realm/test_welcome_bot_custom_message", admins, with("welcome_message_custom_text", "x"), nil},
		{"POST", "/mobile_push/register", after(humans, always("Invalid 'device_id'")),
			with("device_id", missingID, "push_key", "MWtra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tr", "push_key_id",
				1), nil},
		{"POST", "/mobile_push/e2ee/test_notification",
			after(humans, always("Server is not configured to use push notification service.")), nothing, nil},
		{"POST", "/calls/webex/create", after(humans, always("Webex credentials have not been configured")), nothing,
			nil},
		{"POST", "/calls/zoom/create", after(humans, always("Zoom credentials have not been configured")), nothing,
			nil},
		{"GET", "/calls/bigbluebutton/create", always("BigBlueButton is not configured."), with("meeting_name", "x"),
			nil},
		{"POST", "/calls/constructorgroups/create", always("Constructor Groups is not configured."), nothing, nil},
		{"POST", "/calls/nextcloud_talk/create", always("Nextcloud Talk is not configured."), with("room_name", "x"),
			nil},
	}
}

// allUsersBut allows all users except the named ones.
func allUsersBut(otherwise string, names ...string) expectedError {
	only := onlyUsers("others", names...)
	return func(p *matrixUser) string {
		if only(p) == "" {
			return otherwise
		}
		return ""
	}
}

// picture is the smallest possible GIF.
const picture = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00" +
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

func matrixRoles(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.targetChannel()
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	all := append(s.people, s.outsiders()...)
	visitors := map[string]bool{"GET /users": true, "GET /channel_folders": true}
	n := 0
	for _, o := range roleEndpoints() {
		for _, p := range all {
			if o.path == "/realm/deactivate" && p.name == "owner" {
				continue
			}
			n++
			path := o.path
			if o.at != nil {
				path = fmt.Sprintf(path, o.at(s, n))
			}
			want := loginError(p, visitors[o.method+" "+o.path])
			if want == "" && !p.isVisitor() {
				want = o.may(p)
			}
			s.check(s.call(p, o.method, path, o.params(s, n)...).msg(), want, "%s: %s %s", p.name, o.method, o.path)
		}
	}
	s.askWithSetup()
	s.askDisposable()
	s.summary()
}

// askWithSetup asks endpoints that need preparation, so that allowed callers succeed.
func (s *matrixStage) askWithSetup() {
	s.must(s.keeper, "POST", "/users/me/presence", "status", "active", "slim_presence", true)
	if _, err := execute(s.orgs, ours, realm.Caller{System: true, Client: "Internal"},
		realm.Grant{User: realm.UserID(s.keeper.id), CreateUsers: true}); err != nil {
		s.Fatal(err)
	}
	m := s.must(s.keeper, "POST", "/messages", "type", "channel", "to", s.targetChannel(), "topic", "poll", "content",
		"/poll Tea?\nYes").int("id")
	for _, p := range s.people {
		if p.name == "gone" {
			continue
		}
		reactions := fmt.Sprintf("/messages/%d/reactions", m)
		s.check(s.call(p, "POST", reactions, "emoji_name", "wave").msg(), "", "%s: reacts", p.name)
		s.check(s.call(p, "DELETE", reactions, "emoji_name", "wave").msg(), "", "%s: takes a reaction back", p.name)
		s.check(s.call(p, "POST", "/submessage", "message_id", m, "msg_type", "widget", "content",
			`{"type":"vote","key":"canned,0","vote":1}`).msg(), "", "%s: votes", p.name)
		s.check(s.call(p, "GET", fmt.Sprintf("/users/%d/presence", s.keeper.id)).msg(), "", "%s: asks for presence",
			p.name)
		for path, params := range map[string]pairs{"/users/me/apns_device_token": {"token", "aa", "appid", "x"},
			"/users/me/android_gcm_reg_id": {"token", "g"}} {
			s.check(s.call(p, "POST", path, params...).msg(), humans(p), "%s: adds a token", p.name)
			s.check(s.call(p, "DELETE", path, params[:2]...).msg(), humans(p), "%s: removes a token", p.name)
		}
	}
	const password = "a good long one"
	s.check(s.call(s.keeper, "POST", "/users", "email", "made@a.example", "password", password, "full_name",
		"Made").msg(), "", "%s: makes an account", "keeper")
	s.check(s.call(s.by["visitor"], "POST", "/fetch_api_key", "username", "made@a.example", "password", password).msg(),
		"", "%s: logs in", "visitor")
}

// askDisposable asks endpoints that end an account or revoke a key. It uses copies of the users with the same rights.
func (s *matrixStage) askDisposable() {
	for i, p := range s.people {
		if p.name == "gone" {
			continue
		}
		role := map[string]realm.Role{"owner": realm.Owner, "admin": realm.Administrator, "moderator": realm.Moderator,
			"guest": realm.Guest}[p.name]
		if role == 0 {
			role = realm.Member
		}
		var bot realm.BotType
		if p.name == "bot" {
			bot = realm.GenericBot
		}
		double := s.join(ours, ourHost, fmt.Sprintf("double %d", i), role, bot, s.by["member"].id)
		old := *double
		old.name, double.name = "double of "+p.name, p.name
		old.session = nil
		r := s.call(double, "POST", "/users/me/api_key/regenerate")
		if s.login == byAdditionalKey {
			s.check(r.msg(), keyMakesNoKeys, "%s: a new key", p.name)
			s.check(s.call(&old, "GET", "/users/me").msg(), "", "%s: the old key", p.name)
		} else {
			s.check(r.msg(), "", "%s: a new key", p.name)
			s.check(s.call(&old, "GET", "/users/me").msg(), "Invalid API key", "%s: the old key", p.name)
			double.key, _ = r.body["api_key"].(string)
		}
		s.check(s.call(double, "DELETE", "/users/me").msg(), humans(p), "%s: deactivates the own account", p.name)
		if humans(p) == "" {
			s.check(s.call(double, "GET", "/users/me").msg(), "Account is deactivated",
				"%s: after deactivating the own account", p.name)
		}
	}
	// The end of an organization: only an owner may deactivate it, and afterwards no user is let in.
	s.check(s.call(s.by["owner"], "POST", "/realm/deactivate").msg(), "", "%s: POST /realm/deactivate", "owner")
	for _, p := range append([]*matrixUser{s.keeper, s.by["webhook bot"]}, s.people...) {
		want := "This organization has been deactivated"
		if p.name == "gone" && s.login == byAdditionalKey {
			want = loginError(p, false)
		}
		s.check(s.call(p, "GET", "/users/me").msg(), want, "%s: after the organization's end", p.name)
	}
	visitor := &matrixUser{name: "visitor", host: ourHost}
	for _, what := range []string{"GET /users", "POST /register"} {
		method, path, _ := strings.Cut(what, " ")
		s.check(s.call(visitor, method, path).msg(), "This organization has been deactivated",
			"visitor: %s after the organization's end", what)
	}
}

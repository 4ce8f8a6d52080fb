package server

import (
	"fmt"
	"slices"
)

// roleCall is a call whose answer depends only on the kind of the caller. Its name is the method, the path and, where
// the endpoint has several calls, a note. testdata/matrix_roles.txt has the callers that are allowed to make it. Each
// cell gets objects of its own to work on.
type roleCall struct {
	name   string
	params func(s *matrixStage, n int) pairs
	at     func(s *matrixStage, n int) any // the value of the parameters in the path
}

// roleCalls are all calls of the table.
var roleCalls = slices.Concat(accountCalls, organizationCalls, groupAndBotCalls, messageCalls)

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

// phoneToken adds a token of a phone for every user that can have one, and returns the parameters that remove it.
func phoneToken(path string, more ...any) func(*matrixStage, int) pairs {
	return func(s *matrixStage, n int) pairs {
		token := fmt.Sprintf("aa%d", n)
		if len(token)%2 == 1 { // bytes in hexadecimal
			token += "0"
		}
		for _, p := range s.people {
			if p.name != "gone" && p.name != "bot" {
				s.must(p, "POST", path, append(pairs{"token", token}, more...)...)
			}
		}
		return pairs{"token", token}
	}
}

// made creates an object as the keeper; key is the field of the answer with the id.
func made(key, method, path string, params ...any) func(*matrixStage, int) any {
	return func(s *matrixStage, n int) any {
		return s.must(s.keeper, method, path, with(params...)(s, n)...).int(key)
	}
}

// accountCalls are about accounts and their settings.
var accountCalls = []roleCall{
	{"GET /users", nothing, nil},
	{"GET /people", nothing, nil},
	{"GET /gifs", nothing, nil},
	{"GET /users/me", nothing, nil},
	{"GET /users/{user_id}", nothing, memberAccount},
	{"POST /users", with("email", "x#@a.example", "password", "a good long one", "full_name", "New #"), nil},
	{"PATCH /users/{user_id}", with("full_name", "Renamed #"), newAccount},
	{"PATCH /users/{email}", with("full_name", "Renamed too #"), newAddress},
	{"DELETE /users/{user_id}", nothing, newAccount},
	{"POST /users/{user_id}/reactivate", nothing, newClosedAccount},
	{"POST /users/{user_id}/status", with("status_text", "x"), newAccount},
	{"GET /users/{user_id}/status", nothing, memberAccount},
	{"POST /users/me/status", with("status_text", "x#"), nil},
	{"POST /users/me/presence", with("status", "active", "slim_presence", true), nil},
	{"GET /realm/presence", nothing, nil},
	{"GET /users/me/alert_words", nothing, nil},
	{"POST /users/me/alert_words", with("alert_words", []string{"x"}), nil},
	{"DELETE /users/me/alert_words", with("alert_words", []string{"x"}), nil},
	{"POST /users/me/muted_users/{muted_user_id}", nothing, newAccount},
	{"POST /users/me/onboarding_steps", with("onboarding_step", "intro_inbox_view_modal"), nil},
	{"DELETE /users/me/avatar", nothing, nil},
	{"POST /users/me/avatar", with("file", picture), nil},
	{"PATCH /users/me/profile_data", with("data", []any{}), nil},
	{"DELETE /users/me/profile_data", with("data", []any{}), nil},
	{"PATCH /settings", with("twenty_four_hour_time", true), nil},
	{"PATCH /settings/display", with("twenty_four_hour_time", true), nil},
	{"PATCH /settings/notifications", with("enable_sounds", true), nil},
	{"PATCH /settings of others", func(s *matrixStage, _ int) pairs {
		return pairs{"twenty_four_hour_time", true, "target_users",
			map[string]any{"user_ids": []int64{s.by["member"].id}}}
	}, nil},
	{"PATCH /realm/user_settings_defaults", with("twenty_four_hour_time", true), nil},
}

// organizationCalls are about the organization, and the lists of its administrators.
var organizationCalls = []roleCall{
	{"PATCH /realm", with("name", "Ours"), nil},
	{"PATCH /realm retention", with("message_retention_days", `"unlimited"`), nil},
	{"POST /realm/deactivate", nothing, nil},
	{"GET /realm/icon", nothing, nil},
	{"POST /realm/icon", with("file", picture), nil},
	{"DELETE /realm/icon", nothing, nil},
	{"GET /realm/logo", with("night", false), nil},
	{"POST /realm/logo", with("file", picture, "night", false), nil},
	{"DELETE /realm/logo", with("night", false), nil},
	{"GET /realm/domains", nothing, nil},
	{"POST /realm/domains", with("domain", "new.x#", "allow_subdomains", false), nil},
	{"PATCH /realm/domains/{domain}", with("allow_subdomains", true), newDomain},
	{"DELETE /realm/domains/{domain}", nothing, newDomain},
	{"GET /realm/emoji", nothing, nil},
	{"POST /realm/emoji/{emoji_name}", with("file", picture), newName},
	{"DELETE /realm/emoji/{emoji_name}", nothing, newEmoji},
	{"GET /realm/linkifiers", nothing, nil},
	{"POST /realm/filters", with("pattern", "x#", "url_template", "https://a.example/"), nil},
	{"PATCH /realm/filters/{filter_id}", with("pattern", "y#", "url_template", "https://a.example/"), newLinkifier},
	{"DELETE /realm/filters/{filter_id}", nothing, newLinkifier},
	{"PATCH /realm/linkifiers", func(s *matrixStage, _ int) pairs {
		return pairs{"ordered_linkifier_ids",
			ids(s.must(s.keeper, "GET", "/realm/linkifiers").body["linkifiers"], "id")}
	}, nil},
	{"POST /realm/playgrounds", with("name", "x #", "highlighter_language", "Go", "url_template",
		"https://a.example/{code}"), nil},
	{"DELETE /realm/playgrounds/{playground_id}", nothing, newPlayground},
	{"GET /realm/profile_fields", nothing, nil},
	{"POST /realm/profile_fields", with("name", "x #", "field_type", 1), nil},
	{"PATCH /realm/profile_fields/{field_id}", with("hint", "x#"), newField},
	{"DELETE /realm/profile_fields/{field_id}", nothing, newField},
	{"PATCH /realm/profile_fields", func(s *matrixStage, _ int) pairs {
		return pairs{"order", ids(s.must(s.keeper, "GET", "/realm/profile_fields").body["custom_fields"], "id")}
	}, nil},
	{"GET /export/realm", nothing, nil},
	{"GET /export/realm/consents", nothing, nil},
	{"DELETE /export/realm/{export_id}", nothing, func(*matrixStage, int) any { return missingID }},
	{"POST /export/realm", nothing, nil},
	{"GET /invites", nothing, nil},
	{"POST /invites", func(_ *matrixStage, n int) pairs {
		return pairs{"invitee_emails", fmt.Sprintf("n%d@a.example", n), "stream_ids", []int64{}}
	}, nil},
	{"POST /invites/multiuse", nothing, nil},
	{"DELETE /invites/{invite_id}", nothing, newInvite},
	{"DELETE /invites/multiuse/{invite_id}", nothing, newInviteLink},
	{"POST /invites/{invite_id}/resend", nothing, newInvite},
}

// groupAndBotCalls are about user groups, bots, API keys and default channels.
var groupAndBotCalls = []roleCall{
	{"GET /user_groups", nothing, nil},
	{"POST /user_groups/create", with("name", "new #", "description", "", "members", []int64{}), nil},
	{"GET /user_groups/{user_group_id}/members", nothing, newGroup},
	{"GET /user_groups/{user_group_id}/subgroups", nothing, newGroup},
	{"GET /user_groups/{user_group_id}/members/{user_id}", nothing, newGroupMember},
	{"PATCH /user_groups/{user_group_id}", with("description", "x"), newGroup},
	{"POST /user_groups/{user_group_id}/members", func(s *matrixStage, _ int) pairs {
		return pairs{"add", []int64{s.by["member"].id}}
	}, newGroup},
	{"POST /user_groups/{user_group_id}/subgroups", func(s *matrixStage, _ int) pairs {
		return pairs{"add", []int64{s.groups["role:owners"]}}
	}, newGroup},
	{"POST /user_groups/{user_group_id}/deactivate", nothing, newGroup},
	{"GET /bots", nothing, nil},
	{"POST /bots", with("full_name", "Made #", "short_name", "made#"), nil},
	{"PATCH /bots/{bot_id}", with("full_name", "Robot #"), newBot},
	{"GET /bots/{bot_id}/api_key", nothing, newBot},
	{"POST /bots/{bot_id}/api_key/regenerate", nothing, newBot},
	{"GET /bot_commands", nothing, nil},
	{"PUT /bots/{bot_id}/commands", with("commands", []pairs{}), newServiceBot},
	{"GET /bots/{bot_id}/deliveries", nothing, newServiceBot},
	{"POST /bots/{bot_id}/deliveries", nothing, newServiceBot},
	{"GET /audit_log", nothing, nil},
	{"PATCH /audit_log", with("retention_days", 30), nil},
	{"GET /analytics/chart_data", with("chart_name", "number_of_humans"), nil},
	{"GET /analytics/chart_data/stream/{stream_id}", with("chart_name", "messages_sent_by_stream"),
		func(s *matrixStage, _ int) any { return s.targetChannel() }},
	{"GET /usage", nothing, nil},
	{"POST /users/me/confirmation", with("password", matrixPassword), nil},
	{"GET /compliance_exports", nothing, nil},
	{"GET /places", nothing, nil},
	{"PATCH /compliance_exports", with("two_owners", false), nil},
	{"POST /compliance_exports", nothing, nil},
	{"POST /compliance_exports/{request_id}", with("approve", true), func(*matrixStage, int) any { return missingID }},
	{"GET /users/me/data_exports", nothing, nil},
	{"DELETE /users/me/data_exports/{export_id}", nothing, func(*matrixStage, int) any { return missingID }},
	{"POST /users/me/data_exports", nothing, nil},
	{"GET /users/me/web_push", nothing, nil},
	{"POST /users/me/web_push", with("endpoint", "https://push.example.com/#", "p256dh",
		"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth",
		"BTBZMqHH6r4Tts7J_aSIgg"), nil},
	{"DELETE /users/me/web_push", with("endpoint", "https://push.example.com/none"), nil},
	{"GET /users/me/api_keys", nothing, nil},
	{"POST /users/me/api_keys", with("label", "key #", "expires_in", 3600), nil},
	{"GET /users/{user_id}/api_keys of a person", nothing, newAccount},
	{"GET /users/{user_id}/api_keys of a bot", nothing, newBot},
	{"POST /users/{user_id}/api_keys of a person", with("label", "key #"), newAccount},
	{"POST /users/{user_id}/api_keys of a bot", with("label", "key #"), newBot},
	{"DELETE /users/{user_id}/api_keys/{key_id} of a bot", nothing, newBotKey},
	{"DELETE /bots/{bot_id}", nothing, newBot},
	{"GET /bot_storage", nothing, nil},
	{"PUT /bot_storage", with("storage", map[string]string{"k": "v"}), nil},
	{"DELETE /bot_storage", with("keys", []string{"k"}), nil},
	{"POST /default_streams", inTarget, nil},
	{"DELETE /default_streams", inTarget, nil},
	{"POST /default_stream_groups/create", with("group_name", "a #", "description", "x", "stream_names",
		[]string{}), nil},
	{"PATCH /default_stream_groups/{group_id}", with("new_description", "y#"), newDefaultGroup},
	{"PATCH /default_stream_groups/{group_id}/streams", with("op", "add", "stream_names",
		[]string{"destination"}), newDefaultGroup},
	{"DELETE /default_stream_groups/{group_id}", nothing, newDefaultGroup},
}

// messageCalls are about channels, messages, devices and calls.
var messageCalls = []roleCall{
	{"GET /channel_folders", nothing, nil},
	{"POST /channel_folders/create", with("name", "new #"), nil},
	{"PATCH /channel_folders/{channel_folder_id}", with("name", "renamed #"), newFolder},
	{"PATCH /channel_folders", func(s *matrixStage, _ int) pairs {
		return pairs{"order",
			ids(s.must(s.keeper, "GET", "/channel_folders", "include_archived", true).body["channel_folders"],
				"id")}
	}, nil},
	{"POST /channels/create", with("name", "made #", "subscribers", []int64{}), nil},
	{"POST /users/me/subscriptions", func(_ *matrixStage, n int) pairs {
		return pairs{"subscriptions", []any{map[string]string{"name": fmt.Sprintf("mine %d", n)}}}
	}, nil},
	{"DELETE /streams/{stream_id}", nothing, newChannel},
	{"GET /users/me/subscriptions", nothing, nil},
	{"GET /attachments", nothing, nil},
	{"POST /user_uploads", with("file", "text"), nil},
	{"POST /messages/render", with("content", "x"), nil},
	{"POST /zcommand", with("command", "/ping"), nil},
	{"GET /messages/meaning", with("query", "lunch"), nil},
	{"GET /messages/summary", with("narrow", []any{}), nil},
	{"GET /messages/{message_id}/translation", with("language", "de"),
		func(*matrixStage, int) any { return missingID }},
	{"POST /assisted_texts", with("narrow", []any{}), nil},
	{"GET /assisted_texts/{text_key}", nothing, func(*matrixStage, int) any { return "x" }},
	{"DELETE /assisted_texts/{text_key}", nothing, func(*matrixStage, int) any { return "x" }},
	{"POST /mark_all_as_read", nothing, nil},
	{"POST /messages/flags/narrow", with("anchor", "newest", "num_before", 5, "num_after", 0, "narrow",
		[]any{}, "op", "add", "flag", "read"), nil},
	{"POST /calls/livekit", func(s *matrixStage, _ int) pairs {
		return pairs{"type", "direct", "to", []int64{s.keeper.id}}
	}, nil},
	{"GET /calls/livekit/{call_key}", nothing, callOfAll},
	{"POST /calls/livekit/{call_key}/token", nothing, callOfAll},
	{"GET /drafts", nothing, nil},
	{"GET /saved_snippets", nothing, nil},
	{"GET /scheduled_messages", nothing, nil},
	{"GET /reminders", nothing, nil},
	{"GET /navigation_views", nothing, nil},
	{"POST /register_client_device", nothing, nil},
	{"POST /users/me/apns_device_token", with("token", "aa#", "appid", "x"), nil},
	{"POST /users/me/android_gcm_reg_id", with("token", "g#"), nil},
	{"DELETE /users/me/apns_device_token", phoneToken("/users/me/apns_device_token", "appid", "x"), nil},
	{"DELETE /users/me/android_gcm_reg_id", phoneToken("/users/me/android_gcm_reg_id"), nil},
	{"POST /mobile_push/test_notification", with("token", "none"), nil},
	{"POST /navigation_views", with("fragment", "v#", "is_pinned", true, "name", "v #"), nil},
	{"POST /tus", with("Tus-Resumable", "1.0.0", "Upload-Length", "5"), nil},
	{"POST /saved_snippets", with("title", "x", "content", "x"), nil},
	{"PATCH /users/me/subscriptions", func(_ *matrixStage, n int) pairs {
		return pairs{"add", []any{map[string]string{"name": fmt.Sprintf("joined %d", n)}}}
	}, nil},
	{"PATCH /users/me/subscriptions/{stream_id}", with("property", "color", "value", `"#76ce90"`),
		func(s *matrixStage, _ int) any { return s.targetChannel() }},
	{"PATCH /users/me/subscriptions/muted_topics", func(s *matrixStage, n int) pairs {
		return pairs{"stream_id", s.targetChannel(), "topic", fmt.Sprintf("t %d", n), "op", "add"}
	}, nil},
	{"DELETE /users/me/muted_users/{muted_user_id}", nothing, newMutedAccount},
	{"POST /realm/test_welcome_bot_custom_message", with("welcome_message_custom_text", "x"), nil},
	{"POST /mobile_push/register", with("device_id", missingID, "push_key",
		"MWtra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tr", "push_key_id",
		1), nil},
	{"POST /mobile_push/e2ee/test_notification", nothing, nil},
	{"POST /calls/webex/create", nothing, nil},
	{"POST /calls/zoom/create", nothing, nil},
	{"GET /calls/bigbluebutton/create", with("meeting_name", "x"), nil},
	{"POST /calls/constructorgroups/create", nothing, nil},
	{"POST /calls/nextcloud_talk/create", with("room_name", "x"), nil},
}

var newGroup = made("group_id", "POST", "/user_groups/create", "name", "group #", "description", "", "members",
	[]int64{})
var newField = made("id", "POST", "/realm/profile_fields", "name", "field #", "field_type", 1)
var newLinkifier = made("id", "POST", "/realm/filters", "pattern", "q#", "url_template", "https://a.example/")
var newPlayground = made("id", "POST", "/realm/playgrounds", "name", "p #", "highlighter_language", "Go",
	"url_template", "https://a.example/{code}")
var newFolder = made("channel_folder_id", "POST", "/channel_folders/create", "name", "folder #")

// callOfAll returns the key of a call in a channel of all users. It exists once: a user can start only some calls.
func callOfAll(s *matrixStage, _ int) any {
	const place = "calls of all"
	everyone := []int64{s.keeper.id}
	for _, p := range s.people {
		if p.name != "gone" {
			everyone = append(everyone, p.id)
		}
	}
	s.call(s.keeper, "POST", "/channels/create", "name", place, "subscribers", everyone) // the first time
	return s.must(s.keeper, "POST", "/calls/livekit", "type", "channel", "to", place, "topic", "x").body["call_key"]
}

func newChannel(s *matrixStage, n int) any {
	return s.must(s.keeper, "POST", "/channels/create", "name", fmt.Sprintf("channel %d", n), "subscribers",
		[]int64{}).int("id")
}
func newEmoji(s *matrixStage, n int) any {
	s.must(s.keeper, "POST", fmt.Sprintf("/realm/emoji/e%d", n), "file", picture)
	return fmt.Sprintf("e%d", n)
}
func newAccount(s *matrixStage, n int) any {
	return s.join(ours, ourHost, fmt.Sprintf("account %d", n), 400, 0, 0).id
}
func newClosedAccount(s *matrixStage, n int) any {
	id := newAccount(s, n)
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", id))
	return id
}
func newMutedAccount(s *matrixStage, n int) any {
	id := newAccount(s, n)
	for _, p := range s.people {
		if p.name != "gone" {
			s.must(p, "POST", fmt.Sprintf("/users/me/muted_users/%d", id))
		}
	}
	return id
}
func newBot(s *matrixStage, n int) any {
	return s.join(ours, ourHost, fmt.Sprintf("a bot %d", n), 400, 1, s.keeper.id).id
}
func newServiceBot(s *matrixStage, n int) any {
	return s.must(s.keeper, "POST", "/bots", "full_name", fmt.Sprintf("service %d", n), "short_name",
		fmt.Sprintf("service%d", n), "bot_type", 3, "payload_url", `"http://service.example/"`).int("user_id")
}
func newBotKey(s *matrixStage, n int) any { // the rest of the path: the bot and its key
	id := newBot(s, n)
	key := s.must(s.keeper, "POST", fmt.Sprintf("/users/%v/api_keys", id), "label", "key").int("id")
	return fmt.Sprintf("%v/api_keys/%d", id, key)
}
func newDomain(s *matrixStage, n int) any {
	d := fmt.Sprintf("d%d.example", n)
	s.must(s.keeper, "POST", "/realm/domains", "domain", d, "allow_subdomains", false)
	return d
}
func newInvite(s *matrixStage, n int) any {
	s.must(s.keeper, "POST", "/invites", "invitee_emails", fmt.Sprintf("i%d@a.example", n), "stream_ids", []int64{})
	for _, i := range objects(s.must(s.keeper, "GET", "/invites").body["invites"]) {
		if i["email"] == fmt.Sprintf("i%d@a.example", n) {
			return num(i["id"])
		}
	}
	return 0
}
func newInviteLink(s *matrixStage, n int) any {
	s.must(s.keeper, "POST", "/invites/multiuse")
	last := int64(0)
	for _, i := range objects(s.must(s.keeper, "GET", "/invites").body["invites"]) {
		if i["is_multiuse"] == true {
			last = max(last, num(i["id"]))
		}
	}
	return last
}
func newDefaultGroup(s *matrixStage, n int) any {
	s.must(s.keeper, "POST", "/default_stream_groups/create", "group_name", fmt.Sprintf("defaults %d", n),
		"description", "x", "stream_names", []string{})
	last := int64(0)
	registration := s.must(s.keeper, "POST", "/register", "fetch_event_types", []string{"default_stream_groups"})
	for _, g := range objects(registration.body["realm_default_stream_groups"]) {
		last = max(last, num(g["id"]))
	}
	return last
}
func memberAccount(s *matrixStage, _ int) any { return s.by["member"].id }
func inTarget(s *matrixStage, _ int) pairs    { return pairs{"stream_id", s.targetChannel()} }

func newName(_ *matrixStage, n int) any { return fmt.Sprint("new", n) }

func newAddress(s *matrixStage, n int) any {
	return fmt.Sprintf("user%v@%s", newAccount(s, n), ourHost)
}

func newGroupMember(s *matrixStage, n int) any { return fmt.Sprintf("%v/members/1", newGroup(s, n)) }

// picture is the smallest possible GIF.
const picture = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00" +
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

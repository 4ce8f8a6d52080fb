package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/wire"
)

// eventName returns the type of an event, with its op if it has one.
func eventName(e map[string]any) string {
	name, _ := e["type"].(string)
	if op, ok := e["op"].(string); ok && name != "update_message_flags" {
		name += "/" + op
	}
	return name
}

// formOf returns the form of an event as the protocol's table of events names it: type and op.
func formOf(e map[string]any) string {
	if op, ok := e["op"].(string); ok {
		return fmt.Sprintf("%s/%s", e["type"], op)
	}
	return fmt.Sprint(e["type"])
}

// eventNames returns the names of a user's events since the last call. No event may name a channel that the user cannot
// see, or contain a text that the user cannot read.
func (s *matrixStage) eventNames(p *matrixUser, what string) string {
	s.Helper()
	var names []string
	for _, e := range s.newEvents(p) {
		s.coverage.noteEvent(formOf(e))
		if e["type"] == "update_message_flags" && e["op"] == "add" && e["flag"] == "read" {
			continue // sent some time after a user has left a channel
		}
		if name := eventName(e); !slices.Contains(names, name) {
			names = append(names, name)
		}
		raw, _ := json.Marshal(e)
		for _, f := range wire.CheckEvent(raw) {
			s.check(f.String(), "", "%s: %s: an event of another form", p.name, what)
		}
		for _, x := range s.channels {
			if p == s.keeper {
				continue
			}
			if p != s.outsider && !x.canReadMetadata(p) && strings.Contains(string(raw), `"`+x.name+`"`) &&
				!strings.Contains(string(raw), `"subscription"`) {
				s.check("names it", "", "%s: %s: event %s of a %s that the user cannot see", p.name, what, eventName(e),
					x)
			}
			if (p == s.outsider || !x.canReadMessage(p)) && strings.Contains(string(raw), x.word) {
				s.check("repeats it", "", "%s: %s: event %s with a message in a %s that the user cannot read", p.name,
					what, eventName(e), x)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// queueOwners returns all users with a queue except the keeper.
func (s *matrixStage) queueOwners() (out []*matrixUser) {
	for _, p := range s.people {
		if p.name != "gone" {
			out = append(out, p)
		}
	}
	return append(out, s.outsider)
}

// checkAudience calls do and compares the events of every user with the rule. The owner of the other organization never
// receives an event.
func (s *matrixStage) checkAudience(what string, do func(), rule func(p *matrixUser) []string) {
	s.Helper()
	for _, p := range append(s.queueOwners(), s.keeper) {
		s.newEvents(p)
	}
	do()
	s.checkOldClients(what, rule)
	for _, p := range s.queueOwners() {
		var want []string
		if p != s.outsider {
			want = rule(p)
		}
		slices.Sort(want)
		got := s.eventNames(p, what)
		s.cells++
		if w := strings.Join(slices.Compact(want), ", "); got != w {
			s.cells--
			s.check("receives ["+got+"]", "["+w+"]", "%s: %s", p.name, what)
		}
	}
	s.eventNames(s.keeper, what)
}

func eventsIf(cond bool, events ...string) []string {
	if cond {
		return events
	}
	return nil
}

// isNotified reports whether a user receives events about a message after it was sent: subscribers; in channels that
// everyone can read also users with a record of the message, but no guests; with protected history only subscribers
// with a record.
func (x *matrixChannel) isNotified(p *matrixUser) bool {
	switch x.kind {
	case "protected":
		return x.isSubscribed() && x.hasRecord()
	case "private":
		return x.isSubscribed()
	}
	return x.isSubscribed() || x.hasRecord() && !p.isGuest()
}

func (s *matrixStage) registerAll() {
	for _, p := range append(s.queueOwners(), s.keeper) {
		s.register(p)
		if s.oldClients {
			old := *p
			old.queue, _ = s.must(p, "POST", "/register").body["queue_id"].(string)
			s.old = append(s.old, &old)
		}
	}
}

// otherForms are forms of events that clients without capabilities receive instead of others, or in addition.
var otherForms = map[string]string{"user_group/remove": "user_group/update", "realm_emoji/update": "realm_emoji/",
	"stream/delete": "stream/", "stream/create": "stream/"}

// checkOldClients checks that clients without capabilities only receive events about the same things as new clients.
func (s *matrixStage) checkOldClients(what string, rule func(p *matrixUser) []string) {
	for _, p := range s.old {
		var news []string
		if p.id != s.outsider.id && p.id != s.keeper.id {
			news = rule(p)
		}
		for _, e := range s.newEvents(p) {
			s.coverage.noteEvent(formOf(e))
			if p.id == s.keeper.id || e["type"] == "update_message_flags" {
				continue
			}
			form := eventName(e)
			meant := slices.ContainsFunc(news, func(n string) bool {
				return n == form || otherForms[form] != "" && strings.HasPrefix(n, otherForms[form])
			})
			s.check(shownOrAbsent(meant), "shown", "%s: %s: event %s to an old client", p.name, what, form)
		}
	}
}

func matrixChannelEvents(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	extra := s.join(ours, ourHost, "extra", 400, 0, 0)
	s.by["extra"] = extra
	haven := s.must(s.keeper, "POST", "/channels/create", "name", "haven", "subscribers",
		[]int64{s.keeper.id}).int("id")
	cave := s.must(s.keeper, "POST", "/channels/create", "name", "cave", "subscribers", []int64{s.keeper.id},
		"invite_only", true).int("id")
	for _, c := range []int64{haven, cave} { // so that no moved message becomes the first one
		s.must(s.keeper, "POST", "/messages", "type", "channel", "to", c, "topic", "first", "content", "first")
	}
	s.createChannels()
	s.registerAll()
	for _, x := range s.channels {
		k := s.does
		m := func(rest string) string { return fmt.Sprintf("/messages/%d%s", x.spare[0], rest) }
		follows := func(events ...string) func(p *matrixUser) []string {
			return func(p *matrixUser) []string { return eventsIf(x.isNotified(p), events...) }
		}
		watches := func(events ...string) func(p *matrixUser) []string {
			return func(p *matrixUser) []string {
				return eventsIf(x.isNotified(p) || x.keepsRecord(p) && x.kind == "web-public", events...)
			}
		}
		in := func(events ...string) func(p *matrixUser) []string {
			return func(*matrixUser) []string { return eventsIf(x.isSubscribed(), events...) }
		}
		knows := func(events ...string) func(p *matrixUser) []string {
			return func(p *matrixUser) []string { return eventsIf(x.canReadMetadata(p), events...) }
		}
		both := func(rules ...func(p *matrixUser) []string) func(p *matrixUser) []string {
			return func(p *matrixUser) (out []string) {
				for _, r := range rules {
					out = append(out, r(p)...)
				}
				return out
			}
		}
		stream, word := fmt.Sprintf("/streams/%d", x.id), x.word
		var asked int64
		for _, act := range []audienceAct{
			{"a message in", k("POST", "/messages", "type", "channel", "to", x.id, "topic", "new", "content",
				"just now"), in("message")},
			{"a poll in", func() {
				asked = s.must(s.keeper, "POST", "/messages", "type", "channel", "to", x.id, "topic", "new", "content",
					poll).int("id")
			}, in("message")},
			{"a vote on a poll in", func() {
				s.must(s.keeper, "POST", "/submessage", "message_id", asked, "msg_type", "widget", "content", vote)
			}, in("submessage")},
			{"an edit in", k("PATCH", m(""), "content", "edited, "+word), watches("update_message")},
			{"a reaction in", k("POST", m("/reactions"), "emoji_name", "wave"), follows("reaction/add")},
			{"a reaction taken back in", k("DELETE", m("/reactions"), "emoji_name", "wave"),
				follows("reaction/remove")},
			{"typing in", k("POST", "/typing", "type", "channel", "op", "start", "stream_id", x.id, "topic", "t"),
				in("typing/start")},
			{"typing an edit in", k("POST", m("/typing"), "op", "start"), follows("typing_edit_message/start")},
			{"a star in", k("POST", "/messages/flags", "messages", []int64{x.spare[0]}, "op", "add", "flag", "starred"),
				in()},
			{"reading in", k("POST", "/messages/flags", "messages", []int64{x.spare[0]}, "op", "remove", "flag",
				"read"), in()},
			{"another topic in", k("PATCH", m(""), "topic", "other topic", "send_notification_to_new_thread", false),
				watches("update_message")},
			{"deleting in", k("DELETE", m("")), watches("delete_message")},
			{"moving to a channel open to all from",
				k("PATCH", fmt.Sprintf("/messages/%d", x.spare[1]), "stream_id", haven,
					"send_notification_to_new_thread", false), func(p *matrixUser) []string {
					if p.isGuest() { // guests have no access there
						return eventsIf(x.isNotified(p) || x.keepsRecord(p), "delete_message")
					}
					// also users who left, and can read it in the new channel
					return eventsIf(x.isSubscribed() || x.hasRecord(), "update_message")
				}},
			{"moving to a closed channel from",
				k("PATCH", fmt.Sprintf("/messages/%d", x.spare[2]), "stream_id", cave,
					"send_notification_to_new_thread", false), func(p *matrixUser) []string {
					return eventsIf(x.isNotified(p) || x.keepsRecord(p), "delete_message")
				}},
			{"a followed topic renamed in", k("PATCH", fmt.Sprintf("/messages/%d", x.followed), "topic", "followed on",
				"propagate_mode", "change_all", "send_notification_to_new_thread", false),
				both(watches("update_message"), func(p *matrixUser) []string {
					// for users who left, the preference is removed
					return eventsIf(x.hasRecord() && !p.isVisitor(), "user_topic", "muted_topics")
				})},
			{"a description of", k("PATCH", stream, "description", "new"), both(knows("stream/update"), in("message"))},
			{"a setting of", k("PATCH", stream, "can_delete_any_message_group",
				map[string]any{"new": s.groups["role:moderators"]}), knows("stream/update")},
			{"a user joining", k("POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": x.name}}, "principals", []int64{extra.id}),
				knows("subscription/peer_add")},
			{"a user leaving", k("DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name}, "principals",
				[]int64{extra.id}), knows("subscription/peer_remove")},
			{"archiving", k("DELETE", stream), both(knows("stream/update"), in("message"))},
			{"unarchiving", k("PATCH", stream, "is_archived", false), both(knows("stream/update"), in("message"))},
			{"another name of", k("PATCH", stream, "new_name", x.name+" renamed"),
				both(knows("stream/update"), in("message"))},
		} {
			s.checkAudience(fmt.Sprintf("%s a %s", act.name, x), act.do, act.rule)
		}
	}
	s.summary()
}

// audienceAct is something that the keeper does, and the rule of which events each user receives.
type audienceAct struct {
	name string
	do   func()
	rule func(p *matrixUser) []string
}

// eventStage is the stage of the table of events.
type eventStage struct {
	*matrixStage
	account int64          // that the keeper changes
	last    map[string]any // the last value of fields in the keeper's answers
	soon    int64          // Unix seconds
}

func toAll(events ...string) func(p *matrixUser) []string {
	return func(*matrixUser) []string { return events }
}

func toAdmins(events ...string) func(p *matrixUser) []string {
	return func(p *matrixUser) []string { return eventsIf(p.isAdmin(), events...) }
}

// toMembers: to all but guests.
func toMembers(events ...string) func(p *matrixUser) []string {
	return func(p *matrixUser) []string { return eventsIf(!p.isGuest(), events...) }
}

// does is a request of the keeper.
func (s *matrixStage) does(method, path string, params ...any) func() {
	return func() { s.must(s.keeper, method, path, params...) }
}

// keep is a request of the keeper; the field of the answer is kept.
func (s *eventStage) keep(key, method, path string, params ...any) func() {
	return func() { s.last[key] = s.must(s.keeper, method, path, params...).body[key] }
}

// of is a request of the keeper about the kept id, or the first one of a list.
func (s *eventStage) of(method, path, key string, params ...any) func() {
	return func() {
		id := s.last[key]
		if list, ok := id.([]any); ok {
			id = list[0]
		}
		s.must(s.keeper, method, strings.Replace(path, "%", fmt.Sprint(id), 1), params...)
	}
}

func matrixEvents(t *testing.T, l *coverage) {
	s := &eventStage{matrixStage: newMatrixStage(t, l), last: map[string]any{}}
	s.oldClients = true
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	s.account = s.join(ours, ourHost, "account", 400, 0, 0).id
	s.soon = s.now.Load() + day
	s.registerAll()
	for _, act := range slices.Concat(s.personalActs(), s.organizationActs(), s.administratorActs(),
		s.newChannelActs()) {
		s.checkAudience(act.name, act.do, act.rule)
	}
	s.checkDirectEvents()
	s.checkAudience("the end of the organization", s.does("POST", "/realm/deactivate"), toAll("realm/deactivated"))
	s.summary()
}

// personalActs are about personal things: no other user receives an event.
func (s *eventStage) personalActs() []audienceAct {
	draft := map[string]any{"type": "private", "to": []int64{}, "topic": "", "content": "x"}
	return []audienceAct{
		{"a draft", s.keep("ids", "POST", "/drafts", "drafts", []any{draft}), toAll()},
		{"a draft edited", s.of("PATCH", "/drafts/%", "ids", "draft", draft), toAll()},
		{"a draft removed", s.of("DELETE", "/drafts/%", "ids"), toAll()},
		{"a scheduled message", s.keep("scheduled_message_id", "POST", "/scheduled_messages", "type", "direct", "to",
			[]int64{s.by["member"].id}, "content", "x", "scheduled_delivery_timestamp", s.soon), toAll()},
		{"a scheduled message edited", s.of("PATCH", "/scheduled_messages/%", "scheduled_message_id", "content", "y"),
			toAll()},
		{"a scheduled message removed", s.of("DELETE", "/scheduled_messages/%", "scheduled_message_id"), toAll()},
		{"a message to oneself", s.keep("id", "POST", "/messages", "type", "direct", "to", []int64{s.keeper.id},
			"content", "x"), toAll()},
		{"a reminder", func() {
			s.last["reminder_id"] = s.must(s.keeper, "POST", "/reminders", "message_id", s.last["id"],
				"scheduled_delivery_timestamp", s.soon).body["reminder_id"]
		}, toAll()},
		{"a reminder removed", s.of("DELETE", "/reminders/%", "reminder_id"), toAll()},
		{"a snippet", s.keep("saved_snippet_id", "POST", "/saved_snippets", "title", "x", "content", "x"), toAll()},
		{"a snippet edited", s.of("PATCH", "/saved_snippets/%", "saved_snippet_id", "title", "y"), toAll()},
		{"a snippet removed", s.of("DELETE", "/saved_snippets/%", "saved_snippet_id"), toAll()},
		{"a view", s.does("POST", "/navigation_views", "fragment", "inbox", "is_pinned", true), toAll()},
		{"a view edited", s.does("PATCH", "/navigation_views/inbox", "is_pinned", false), toAll()},
		{"a view removed", s.does("DELETE", "/navigation_views/inbox"), toAll()},
		{"a file", s.keep("url", "POST", "/user_uploads", "file", "text"), toAll()},
		{"an alert word", s.does("POST", "/users/me/alert_words", "alert_words", []string{"x"}), toAll()},
		{"a muted user", s.does("POST", fmt.Sprintf("/users/me/muted_users/%d", s.account)), toAll()},
		{"a personal setting", s.does("PATCH", "/settings", "twenty_four_hour_time", true), toAll()},
		{"an onboarding step", s.does("POST", "/users/me/onboarding_steps", "onboarding_step",
			"intro_inbox_view_modal"), toAll()},
		{"a file in a message", func() {
			s.must(s.keeper, "POST", "/messages", "type", "direct", "to", []int64{s.keeper.id}, "content",
				fmt.Sprintf("[x](%v)", s.last["url"]))
		}, toAll()},
		{"a file deleted", func() {
			list := ids(s.must(s.keeper, "GET", "/attachments").body["attachments"], "id")
			s.must(s.keeper, "DELETE", fmt.Sprintf("/attachments/%d", slices.Max(list)))
		}, toAll()},
		{"a device", s.keep("device_id", "POST", "/register_client_device"), toAll()},
		{"a device removed",
			func() { s.must(s.keeper, "POST", "/remove_client_device", "device_id", s.last["device_id"]) }, toAll()},
		{"everything read", s.does("POST", "/mark_all_as_read"), toAll()},
		{"unread again", func() {
			s.must(s.keeper, "POST", "/messages/flags", "messages", []any{s.last["id"]}, "op", "remove", "flag", "read")
		}, toAll()},
	}
}

// organizationActs are about things of the organization: all of its users receive an event.
func (s *eventStage) organizationActs() []audienceAct {
	me := fmt.Sprintf("/users/%d", s.account)
	return []audienceAct{
		{"a group", s.keep("group_id", "POST", "/user_groups/create", "name", "g", "description", "", "members",
			[]int64{s.account}), toAll("user_group/add")},
		{"a group edited", s.of("PATCH", "/user_groups/%", "group_id", "description", "d"), toAll("user_group/update")},
		{"a member of a group", s.of("POST", "/user_groups/%/members", "group_id", "add", []int64{s.keeper.id}),
			toAll("user_group/add_members")},
		{"no longer a member", s.of("POST", "/user_groups/%/members", "group_id", "delete", []int64{s.keeper.id}),
			toAll("user_group/remove_members")},
		{"a subgroup", s.of("POST", "/user_groups/%/subgroups", "group_id", "add", []int64{s.groups["role:owners"]}),
			toAll("user_group/add_subgroups")},
		{"no longer a subgroup", s.of("POST", "/user_groups/%/subgroups", "group_id", "delete",
			[]int64{s.groups["role:owners"]}), toAll("user_group/remove_subgroups")},
		{"a group deactivated", s.of("POST", "/user_groups/%/deactivate", "group_id"), toAll("user_group/update")},
		{"a new name", s.does("PATCH", me, "full_name", "Account Else"), toAll("realm_user/update")},
		{"another role", s.does("PATCH", me, "role", 300),
			toAll("realm_user/update", "user_group/add_members", "user_group/remove_members")},
		{"a status", s.does("POST", me+"/status", "status_text", "x"), toAll("user_status")},
		{"presence", s.does("POST", "/users/me/presence", "status", "active", "slim_presence", true),
			toAll("presence")},
		{"presence switched off", s.does("PATCH", "/settings", "presence_enabled", false), toAll("presence")},
		{"and shows it again", s.does("PATCH", "/settings", "presence_enabled", true), toAll("presence")},
		{"a new account", func() { s.join(ours, ourHost, "new user", 400, 0, 0) },
			toAll("realm_user/add", "user_group/add_members")},
		// it contains the removal from groups
		{"a deactivated account", s.does("DELETE", me), toAll("realm_user/update")},
		// it has a status, from above
		{"a reactivated account", s.does("POST", me+"/reactivate"),
			func(p *matrixUser) []string {
				return append(eventsIf(p.isAdmin(), "realm_export_consent"), "realm_user/update",
					"user_group/add_members", "user_status")
			}},
		{"the organization's name", s.does("PATCH", "/realm", "name", "Theirs"), toAll("realm/update")},
		{"a limit of the organization", s.does("PATCH", "/realm", "message_content_edit_limit_seconds", 1200),
			toAll("realm/update_dict")},
		{"a right of the organization", s.does("PATCH", "/realm", "can_resolve_topics_group",
			map[string]any{"new": s.groups["role:members"]}), toAll("realm/update_dict")},
		{"defaults of settings", s.does("PATCH", "/realm/user_settings_defaults", "twenty_four_hour_time", true),
			toAll("realm_user_settings_defaults/update")},
		{"an emoji", s.does("POST", "/realm/emoji/new", "file", picture), toAll("realm_emoji/add")},
		{"an emoji removed", s.does("DELETE", "/realm/emoji/new"), toAll("realm_emoji/edit", "realm_emoji/update_one")},
		{"a linkifier", s.keep("id", "POST", "/realm/filters", "pattern", "x", "url_template", "https://a.example/"),
			toAll("realm_linkifiers")},
		{"a playground", s.keep("id", "POST", "/realm/playgrounds", "name", "x", "highlighter_language", "Go",
			"url_template", "https://a.example/{code}"), toAll("realm_playgrounds")},
		{"a domain", s.does("POST", "/realm/domains", "domain", "x.example", "allow_subdomains", false),
			toAll("realm_domains/add")},
		{"a domain changed", s.does("PATCH", "/realm/domains/x.example", "allow_subdomains", true),
			toAll("realm_domains/change")},
		{"a domain removed", s.does("DELETE", "/realm/domains/x.example"), toAll("realm_domains/remove")},
		{"a profile field", s.does("POST", "/realm/profile_fields", "name", "x", "field_type", 1),
			toAll("custom_profile_fields")},
		{"a folder", s.keep("channel_folder_id", "POST", "/channel_folders/create", "name", "x"),
			toAll("channel_folder/add")},
		{"a folder renamed", s.of("PATCH", "/channel_folders/%", "channel_folder_id", "name", "y"),
			toAll("channel_folder/update")},
		{"another order of folders", func() {
			s.must(s.keeper, "POST", "/channel_folders/create", "name", "z")
			list := ids(s.must(s.keeper, "GET", "/channel_folders").body["channel_folders"], "id")
			slices.Reverse(list)
			s.must(s.keeper, "PATCH", "/channel_folders", "order", list)
		}, toAll("channel_folder/add", "channel_folder/reorder")},
	}
}

// administratorActs are about invitations, exports and bots: administrators receive an event.
func (s *eventStage) administratorActs() []audienceAct {
	return []audienceAct{
		{"an invitation", s.does("POST", "/invites", "invitee_emails", "a@a.example", "stream_ids", []int64{}),
			toAdmins("invites_changed")},
		{"a link of invitation", s.does("POST", "/invites/multiuse"), toAdmins("invites_changed")},
		{"an export", s.does("POST", "/export/realm"), toAdmins("realm_export")},
		{"consent to exports", s.does("PATCH", "/settings", "allow_private_data_export", true),
			toAdmins("realm_export_consent")},
		{"a bot", s.keep("user_id", "POST", "/bots", "full_name", "Robot", "short_name", "robot"),
			func(p *matrixUser) []string {
				return append(eventsIf(p.isAdmin(), "realm_bot/add"), "realm_user/add", "user_group/add_members")
			}},
		{"a bot changed", s.of("PATCH", "/bots/%", "user_id", "default_all_public_streams", true),
			toAdmins("realm_bot/update")},
		{"a bot of another owner", s.of("PATCH", "/bots/%", "user_id", "bot_owner_id", s.by["member"].id),
			func(p *matrixUser) []string {
				return append(eventsIf(p.name == "member", "realm_bot/add"), "realm_user/update")
			}},
		{"a bot taken from its owner", s.of("PATCH", "/bots/%", "user_id", "bot_owner_id", s.keeper.id),
			func(p *matrixUser) []string {
				return append(eventsIf(p.name == "member", "realm_bot/delete"), "realm_user/update")
			}},
	}
}

// newChannelActs are about new channels; the update is about the first message, the notice in the channel.
func (s *eventStage) newChannelActs() []audienceAct {
	return []audienceAct{
		{"a public channel", s.keep("id", "POST", "/channels/create", "name", "one", "subscribers", []int64{}),
			toMembers("stream/create")},
		{"a default channel", func() { s.must(s.keeper, "POST", "/default_streams", "stream_id", s.last["id"]) },
			toMembers("default_streams")},
		{"a group of default channels", s.does("POST", "/default_stream_groups/create", "group_name", "x",
			"description", "x", "stream_names", []string{}), toMembers("default_stream_groups")},
		{"a web-public channel", s.does("POST", "/channels/create", "name", "two", "subscribers", []int64{},
			"is_web_public", true), toAll("stream/create")},
		{"a private channel", s.keep("id", "POST", "/channels/create", "name", "three", "subscribers",
			[]int64{s.keeper.id}, "invite_only", true),
			toAdmins("stream/create", "subscription/peer_add")},
		{"a personal channel colour", func() {
			s.must(s.keeper, "POST", "/users/me/subscriptions/properties", "subscription_data",
				[]any{map[string]any{"stream_id": s.last["id"], "property": "color", "value": "#76ce90"}})
		}, toAll()},
		{"a private channel opened",
			func() { s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%v", s.last["id"]), "is_private", false) },
			func(p *matrixUser) []string {
				switch {
				case p.isGuest():
					return nil
				case p.isAdmin():
					return []string{"stream/update"}
				}
				return []string{"stream/create", "subscription/peer_add"}
			}},
		{"a public channel closed",
			func() { s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%v", s.last["id"]), "is_private", true) },
			func(p *matrixUser) []string {
				switch {
				case p.isGuest():
					return nil
				case p.isAdmin():
					return []string{"stream/update"}
				}
				return []string{"stream/delete"}
			}},
		{"the right to subscribe to a private channel", func() {
			s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%v", s.last["id"]), "can_subscribe_group",
				map[string]any{"new": s.groups["role:moderators"]})
		}, func(p *matrixUser) []string {
			switch {
			case p.isAdmin():
				return []string{"stream/update"}
			case p.name == "moderator":
				return []string{"stream/create", "subscription/peer_add"}
			}
			return nil
		}},
		{"that right taken back", func() {
			s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%v", s.last["id"]), "can_subscribe_group",
				map[string]any{"new": s.groups["role:nobody"]})
		}, func(p *matrixUser) []string {
			switch {
			case p.isAdmin():
				return []string{"stream/update"}
			case p.name == "moderator":
				return []string{"stream/delete"}
			}
			return nil
		}},
	}
}

// checkDirectEvents: the participants of a conversation receive its events, and no other user.
func (s *matrixStage) checkDirectEvents() {
	for _, names := range [][]string{{"member"}, {"guest"}, {"admin", "bot"}, {"owner", "moderator", "newcomer"}, {}} {
		members := []int64{s.keeper.id}
		for _, n := range names {
			members = append(members, s.by[n].id)
		}
		among := func(events ...string) func(p *matrixUser) []string {
			return func(p *matrixUser) []string { return eventsIf(slices.Contains(names, p.name), events...) }
		}
		var id int64
		at := func(method, rest string, params ...any) func() {
			return func() { s.must(s.keeper, method, fmt.Sprintf("/messages/%d%s", id, rest), params...) }
		}
		for _, act := range []audienceAct{
			{"a message", func() {
				id = s.must(s.keeper, "POST", "/messages", "type", "direct", "to", members, "content", "x").int("id")
			}, among("message")},
			{"an edit", at("PATCH", "", "content", "y"), among("update_message")},
			{"a reaction", at("POST", "/reactions", "emoji_name", "wave"), among("reaction/add")},
			{"a reaction taken back", at("DELETE", "/reactions", "emoji_name", "wave"), among("reaction/remove")},
			{"typing", func() { s.must(s.keeper, "POST", "/typing", "op", "start", "to", members) },
				among("typing/start")},
			{"no more typing", func() { s.must(s.keeper, "POST", "/typing", "op", "stop", "to", members) },
				among("typing/stop")},
			{"typing an edit", at("POST", "/typing", "op", "start"), among("typing_edit_message/start")},
			{"no more typing an edit", at("POST", "/typing", "op", "stop"), among("typing_edit_message/stop")},
			{"a star", func() {
				s.must(s.keeper, "POST", "/messages/flags", "messages", []int64{id}, "op", "add", "flag", "starred")
			}, among()},
			{"deleting", at("DELETE", ""), among("delete_message")},
		} {
			s.checkAudience(fmt.Sprintf("%s to %v", act.name, names), act.do, act.rule)
		}
	}
}

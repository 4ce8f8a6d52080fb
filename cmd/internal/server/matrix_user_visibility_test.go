package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// matrixEmailAddresses: a hidden email address does not reveal the account, in any parameter that accepts an address.
func matrixEmailAddresses(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	target := s.join(ours, ourHost, "target", 400, 0, 0)
	sees := map[int][]string{1: {"owner", "admin", "moderator", "member", "newcomer", "guest", "bot"},
		2: {"owner", "admin", "moderator", "member", "newcomer", "bot"}, 3: {"owner", "admin"}, 4: nil,
		5: {"owner", "admin", "moderator"}}
	for visibility := 1; visibility <= 5; visibility++ {
		s.must(target, "PATCH", "/settings", "email_address_visibility", visibility)
		for _, p := range s.people {
			if p.name == "gone" {
				continue
			}
			knows := slices.Contains(sees[visibility], p.name)
			for _, q := range []struct {
				name string
				ask  func(email string) reply
			}{
				{"user by address", func(e string) reply { return s.call(p, "GET", "/users/"+e) }},
				{"presence by address", func(e string) reply { return s.call(p, "GET", "/users/"+e+"/presence") }},
				{"message to an address", func(e string) reply {
					return s.call(p, "POST", "/messages", "type", "direct", "to", []string{e}, "content", "x")
				}},
				{"subscribing an address", func(e string) reply {
					return s.call(p, "POST", "/users/me/subscriptions", "subscriptions",
						[]any{map[string]string{"name": "square"}}, "principals", []string{e})
				}},
				{"unsubscribing an address", func(e string) reply {
					return s.call(p, "DELETE", "/users/me/subscriptions", "subscriptions", []string{}, "principals",
						[]string{e})
				}},
				{"narrow to an address", func(e string) reply {
					return s.call(p, "GET", "/messages", "anchor", "newest", "num_before", 1, "num_after", 0, "narrow",
						[]any{term("sender", e)})
				}},
				{"narrow to messages with an address", func(e string) reply {
					return s.call(p, "GET", "/messages", "anchor", "newest", "num_before", 1, "num_after", 0, "narrow",
						[]any{term("dm", e)})
				}},
				{"narrow to messages including an address", func(e string) reply {
					return s.call(p, "GET", "/messages", "anchor", "newest", "num_before", 1, "num_after", 0, "narrow",
						[]any{term("dm-including", e)})
				}},
			} {
				none := "nobody@" + ourHost
				got, void := q.ask(target.email), q.ask(none)
				same := got.status == void.status && strings.ReplaceAll(got.raw, target.email, none) == void.raw
				want := "reveals"
				if !knows || p.isGuest() && strings.HasPrefix(q.name, "subscribing") ||
					strings.HasPrefix(q.name, "unsubscribing") && knows && same {
					want = "hides"
				}
				outcome := "reveals"
				if same {
					outcome = "hides"
				}
				s.check(outcome, want, "%s: %s, shown to group %d", p.name, q.name, visibility)
			}
		}
	}
	s.summary()
}

// matrixLimitedGuests: if guests only see users with whom they share a channel or a conversation, no answer and no
// event contains the name or the address of another user. The protocol does not keep ids of accounts secret.
func matrixLimitedGuests(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	friend, stranger := s.join(ours, ourHost, "Frieda Friend", 400, 0, 0),
		s.join(ours, ourHost, "Stan Stranger", 400, 0, 0)
	guest := s.by["guest"]
	guest.name = "limited guest"
	shared := s.must(s.keeper, "POST", "/channels/create", "name", "shared", "subscribers",
		[]int64{s.keeper.id, friend.id, guest.id}).int("id")
	web := s.must(s.keeper, "POST", "/channels/create", "name", "web", "subscribers", []int64{s.keeper.id, stranger.id},
		"is_web_public", true).int("id")
	apart := s.must(s.keeper, "POST", "/channels/create", "name", "apart", "subscribers",
		[]int64{s.keeper.id, stranger.id}).int("id")
	ofStranger := s.must(stranger, "POST", "/messages", "type", "stream", "to", web, "topic", "t", "content",
		"hello").int("id")
	posted := s.must(stranger, "POST", "/messages", "type", "stream", "to", shared, "topic", "t", "content",
		"passing by").int("id")
	s.must(s.keeper, "PATCH", "/realm", "can_access_all_users_group", map[string]any{"new": s.groups["role:members"]})
	s.register(guest)
	told := func(raw string, who *matrixUser) string {
		return shownOrAbsent(strings.Contains(raw, who.name) || strings.Contains(raw, who.email))
	}
	ask := func(name, raw string, aboutFriend bool) {
		s.check(told(raw, stranger), "absent", "%s: %s, of a stranger", guest.name, name)
		if aboutFriend {
			s.check(told(raw, friend), "shown", "%s: %s, of a known user", guest.name, name)
		}
	}
	get := func(path string, params ...any) string { return s.call(guest, "GET", path, params...).raw }
	ask("users", get("/users"), true)
	ask("register", s.call(guest, "POST", "/register").raw, true)
	ask("register for new clients", s.call(guest, "POST", "/register", "client_capabilities",
		map[string]bool{"notification_settings_null": true, "user_list_incomplete": true}).raw, true)
	ask("presence", get("/realm/presence"), false)
	ask("a message", get(fmt.Sprintf("/messages/%d", ofStranger)), false)
	ask("messages", get("/messages", "anchor", "newest", "num_before", 50, "num_after", 0, "narrow",
		[]any{term("channel", web)}), false)
	ask("messages of an own channel", get("/messages", "anchor", "newest", "num_before", 50, "num_after", 0, "narrow",
		[]any{term("channel", shared)}), false)
	ask("matches", get("/messages/matches_narrow", "msg_ids", []int64{posted}, "narrow", []any{}), false)
	ask("history", get(fmt.Sprintf("/messages/%d/history", posted)), false)
	ask("emoji", get("/realm/emoji"), false)
	ask("rendering", s.call(guest, "POST", "/messages/render", "content",
		"@**Stan Strange|"+fmt.Sprint(stranger.id)+"** @**Frieda Friend**").raw, true)
	number := fmt.Sprint(stranger.id)
	for _, q := range []struct {
		name string
		ask  func(id string) reply
		want string // error for the stranger; empty: the same as for an account that does not exist
	}{
		{"user", func(id string) reply { return s.call(guest, "GET", "/users/"+id) }, noPermission},
		{"status", func(id string) reply { return s.call(guest, "GET", "/users/"+id+"/status") }, ""},
		{"presence of one", func(id string) reply { return s.call(guest, "GET", "/users/"+id+"/presence") }, ""},
		{"channels of one", func(id string) reply { return s.call(guest, "GET", "/users/"+id+"/channels") }, ""},
		{"subscription of one",
			func(id string) reply { return s.call(guest, "GET", "/users/"+id+"/subscriptions/"+fmt.Sprint(shared)) },
			""},
		{"muting", func(id string) reply { return s.call(guest, "POST", "/users/me/muted_users/"+id) }, ""},
		{"drafting to", func(id string) reply {
			return s.call(guest, "POST", "/drafts", "drafts",
				`[{"type":"private","to":[`+id+`],"topic":"","content":"x"}]`)
		}, ""},
		{"writing to", func(id string) reply {
			return s.call(guest, "POST", "/messages", "type", "direct", "to", "["+id+"]", "content", "x")
		}, "You do not have permission to access some of the recipients."},
		{"typing to",
			func(id string) reply { return s.call(guest, "POST", "/typing", "op", "start", "to", "["+id+"]") },
			"You do not have permission to access some of the recipients."},
		{"leaving on behalf of", func(id string) reply {
			return s.call(guest, "DELETE", "/users/me/subscriptions", "subscriptions", []string{"shared"}, "principals",
				"["+id+"]")
		}, ""},
	} {
		got, void := q.ask(number), q.ask(fmt.Sprint(missingID))
		ask(q.name, got.raw, false)
		want := q.want
		if want == "" {
			want = strings.ReplaceAll(void.msg(), fmt.Sprint(missingID), number)
			s.check(shownOrAbsent(want == ""), "absent", "%s: %s, of a missing account", guest.name, q.name)
		}
		s.check(got.msg(), want, "%s: %s, of a stranger", guest.name, q.name)
	}
	events := func(what string, do func(), want ...string) {
		s.newEvents(guest)
		do()
		var names []string
		for _, e := range s.newEvents(guest) {
			s.coverage.noteEvent(formOf(e))
			if name := eventName(e); !slices.Contains(names, name) {
				names = append(names, name)
			}
			raw, _ := json.Marshal(e)
			ask("event "+eventName(e)+" of "+what, string(raw), false)
		}
		slices.Sort(names)
		s.check(strings.Join(names, ", "), strings.Join(want, ", "), "%s: events of %s", guest.name, what)
	}
	of := func(who *matrixUser, method, path string, params ...any) func() {
		return func() { s.must(who, method, path, params...) }
	}
	at := func(who *matrixUser) string { return fmt.Sprintf("/users/%d", who.id) }
	for _, e := range []struct {
		who    *matrixUser
		events []string
	}{{friend, []string{"realm_user/update"}}, {stranger, nil}} {
		n := e.who.name
		events("a timezone, "+n, of(e.who, "PATCH", "/settings", "timezone", "Europe/Berlin"), e.events...)
		events("a picture, "+n, of(e.who, "POST", "/users/me/avatar", "file", picture), e.events...)
		events("visibility of an address, "+n, of(e.who, "PATCH", "/settings", "email_address_visibility", 2),
			slices.Repeat(e.events, 1)...)
		events("and back, "+n, of(e.who, "PATCH", "/settings", "email_address_visibility", 1),
			slices.Repeat(e.events, 1)...)
		events("a message, "+n, of(e.who, "POST", "/messages", "type", "stream", "to", shared, "topic", "t", "content",
			"x"), "message")
		events("a message apart, "+n, func() {
			if e.who == stranger {
				s.must(e.who, "POST", "/messages", "type", "stream", "to", apart, "topic", "t", "content", "x")
			}
		})
		events("typing, "+n, of(e.who, "POST", "/typing", "type", "channel", "op", "start", "stream_id", shared,
			"topic", "t"), "typing/start")
		events("a reaction, "+n, of(e.who, "POST", fmt.Sprintf("/messages/%d/reactions", posted), "emoji_name", "wave"),
			"reaction/add")
		status := []string{"user_status"}
		presence := []string{"presence"}
		if e.who == stranger {
			status, presence = nil, nil
		}
		events("a status, "+n, of(e.who, "POST", "/users/me/status", "status_text", "x"), status...)
		events("presence, "+n, of(e.who, "POST", "/users/me/presence", "status", "active", "slim_presence", true),
			presence...)
		events("an edit, "+n, of(stranger, "PATCH", fmt.Sprintf("/messages/%d", posted), "content",
			"of "+fmt.Sprint(e.who.id)), "update_message")
		events("subscribing to a web-public channel, "+n, func() {
			s.must(s.keeper, "POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": "web"}}, "principals", []int64{s.by["member"].id})
			s.must(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{"web"}, "principals",
				[]int64{s.by["member"].id})
		}, "subscription/peer_add", "subscription/peer_remove")
		if e.who == friend {
			events("no channel in common any more, "+n,
				of(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{"shared"}, "principals",
					[]int64{friend.id}), "realm_user/remove", "subscription/peer_remove")
			events("a channel in common, "+n,
				of(s.keeper, "POST", "/users/me/subscriptions", "subscriptions",
					[]any{map[string]string{"name": "shared"}}, "principals", []int64{friend.id}), "realm_user/add",
				"subscription/peer_add")
		}
		events("another role, "+n, of(s.keeper, "PATCH", at(e.who), "role", 300),
			append(slices.Clone(e.events), "user_group/add_members", "user_group/remove_members")...)
		events("a deactivation, "+n, of(s.keeper, "DELETE", at(e.who)), deactivation(e.who == friend)...)
	}
	s.summary()
}

// deactivation returns the events about a deactivated account: for users who could see it, the account is removed;
// others only receive changes of groups, by id.
func deactivation(known bool) []string {
	told := []string{"subscription/peer_remove", "user_group/remove_members"} // of the channel that all users can see
	if known {
		return append([]string{"realm_user/remove"}, told...)
	}
	return told
}

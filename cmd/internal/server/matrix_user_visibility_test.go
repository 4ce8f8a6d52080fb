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
	s := &guestStage{matrixStage: newMatrixStage(t, l)}
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	s.friend = s.join(ours, ourHost, "Frieda Friend", 400, 0, 0)
	s.stranger = s.join(ours, ourHost, "Stan Stranger", 400, 0, 0)
	s.guest = s.by["guest"]
	s.guest.name = "limited guest"
	channel := func(name string, params ...any) int64 {
		return s.must(s.keeper, "POST", "/channels/create", append(pairs{"name", name}, params...)...).int("id")
	}
	s.shared = channel("shared", "subscribers", []int64{s.keeper.id, s.friend.id, s.guest.id})
	s.web = channel("web", "subscribers", []int64{s.keeper.id, s.stranger.id}, "is_web_public", true)
	s.apart = channel("apart", "subscribers", []int64{s.keeper.id, s.stranger.id})
	ofStranger := s.must(s.stranger, "POST", "/messages", "type", "stream", "to", s.web, "topic", "t", "content",
		"hello").int("id")
	s.posted = s.must(s.stranger, "POST", "/messages", "type", "stream", "to", s.shared, "topic", "t", "content",
		"passing by").int("id")
	s.must(s.keeper, "PATCH", "/realm", "can_access_all_users_group", map[string]any{"new": s.groups["role:members"]})
	s.register(s.guest)
	s.askGuestReads(ofStranger)
	s.askAboutStranger()
	s.askGuestEvents()
	s.summary()
}

// guestStage is the stage of a guest who knows a friend, and no stranger.
type guestStage struct {
	*matrixStage
	guest, friend, stranger *matrixUser
	shared, web, apart      int64 // channels
	posted                  int64 // a message of the stranger in the shared channel
}

// told reports whether an answer or event names a user.
func told(raw string, who *matrixUser) string {
	return shownOrAbsent(strings.Contains(raw, who.name) || strings.Contains(raw, who.email))
}

// compareNames checks that an answer or event does not name the stranger.
func (s *guestStage) compareNames(name, raw string, aboutFriend bool) {
	s.Helper()
	s.check(told(raw, s.stranger), "absent", "%s: %s, of a stranger", s.guest.name, name)
	if aboutFriend {
		s.check(told(raw, s.friend), "shown", "%s: %s, of a known user", s.guest.name, name)
	}
}

// askGuestReads asks for everything that lists users or messages.
func (s *guestStage) askGuestReads(ofStranger int64) {
	get := func(path string, params ...any) string { return s.call(s.guest, "GET", path, params...).raw }
	list := func(channel int64) string {
		return get("/messages", "anchor", "newest", "num_before", 50, "num_after", 0, "narrow",
			[]any{term("channel", channel)})
	}
	s.compareNames("users", get("/users"), true)
	s.compareNames("register", s.call(s.guest, "POST", "/register").raw, true)
	s.compareNames("register for new clients", s.call(s.guest, "POST", "/register", "client_capabilities",
		map[string]bool{"notification_settings_null": true, "user_list_incomplete": true}).raw, true)
	s.compareNames("presence", get("/realm/presence"), false)
	s.compareNames("a message", get(fmt.Sprintf("/messages/%d", ofStranger)), false)
	s.compareNames("messages", list(s.web), false)
	s.compareNames("messages of an own channel", list(s.shared), false)
	s.compareNames("matches", get("/messages/matches_narrow", "msg_ids", []int64{s.posted}, "narrow", []any{}), false)
	s.compareNames("history", get(fmt.Sprintf("/messages/%d/history", s.posted)), false)
	s.compareNames("emoji", get("/realm/emoji"), false)
	s.compareNames("rendering", s.call(s.guest, "POST", "/messages/render", "content",
		"@**Stan Strange|"+fmt.Sprint(s.stranger.id)+"** @**Frieda Friend**").raw, true)
}

// askAboutStranger asks about the stranger by id.
func (s *guestStage) askAboutStranger() {
	number := fmt.Sprint(s.stranger.id)
	for _, q := range []struct {
		name string
		ask  func(id string) reply
		want string // error for the stranger; empty: the same as for an account that does not exist
	}{
		{"user", func(id string) reply { return s.call(s.guest, "GET", "/users/"+id) }, noPermission},
		{"status", func(id string) reply { return s.call(s.guest, "GET", "/users/"+id+"/status") }, ""},
		{"presence of one", func(id string) reply { return s.call(s.guest, "GET", "/users/"+id+"/presence") }, ""},
		{"channels of one", func(id string) reply { return s.call(s.guest, "GET", "/users/"+id+"/channels") }, ""},
		{"subscription of one",
			func(id string) reply {
				return s.call(s.guest, "GET", "/users/"+id+"/subscriptions/"+fmt.Sprint(s.shared))
			},
			""},
		{"muting", func(id string) reply { return s.call(s.guest, "POST", "/users/me/muted_users/"+id) }, ""},
		{"drafting to", func(id string) reply {
			return s.call(s.guest, "POST", "/drafts", "drafts",
				`[{"type":"private","to":[`+id+`],"topic":"","content":"x"}]`)
		}, ""},
		{"writing to", func(id string) reply {
			return s.call(s.guest, "POST", "/messages", "type", "direct", "to", "["+id+"]", "content", "x")
		}, "You do not have permission to access some of the recipients."},
		{"typing to",
			func(id string) reply { return s.call(s.guest, "POST", "/typing", "op", "start", "to", "["+id+"]") },
			"You do not have permission to access some of the recipients."},
		{"leaving on behalf of", func(id string) reply {
			return s.call(s.guest, "DELETE", "/users/me/subscriptions", "subscriptions", []string{"shared"},
				"principals", "["+id+"]")
		}, ""},
	} {
		got, void := q.ask(number), q.ask(fmt.Sprint(missingID))
		s.compareNames(q.name, got.raw, false)
		want := q.want
		if want == "" {
			want = strings.ReplaceAll(void.msg(), fmt.Sprint(missingID), number)
			s.check(shownOrAbsent(want == ""), "absent", "%s: %s, of a missing account", s.guest.name, q.name)
		}
		s.check(got.msg(), want, "%s: %s, of a stranger", s.guest.name, q.name)
	}
}

// compareEvents compares the events of the guest after do with the wanted ones. None of them names the stranger.
func (s *guestStage) compareEvents(what string, do func(), want ...string) {
	s.newEvents(s.guest)
	do()
	var names []string
	for _, e := range s.newEvents(s.guest) {
		s.coverage.noteEvent(formOf(e))
		if name := eventName(e); !slices.Contains(names, name) {
			names = append(names, name)
		}
		raw, _ := json.Marshal(e)
		s.compareNames("event "+eventName(e)+" of "+what, string(raw), false)
	}
	slices.Sort(names)
	s.check(strings.Join(names, ", "), strings.Join(want, ", "), "%s: events of %s", s.guest.name, what)
}

// askGuestEvents has the friend and the stranger do the same things.
func (s *guestStage) askGuestEvents() {
	of := func(who *matrixUser, method, path string, params ...any) func() {
		return func() { s.must(who, method, path, params...) }
	}
	at := func(who *matrixUser) string { return fmt.Sprintf("/users/%d", who.id) }
	for _, e := range []struct {
		who    *matrixUser
		events []string
	}{{s.friend, []string{"realm_user/update"}}, {s.stranger, nil}} {
		n := e.who.name
		s.compareEvents("a timezone, "+n, of(e.who, "PATCH", "/settings", "timezone", "Europe/Berlin"), e.events...)
		s.compareEvents("a picture, "+n, of(e.who, "POST", "/users/me/avatar", "file", picture), e.events...)
		s.compareEvents("visibility of an address, "+n, of(e.who, "PATCH", "/settings", "email_address_visibility", 2),
			slices.Repeat(e.events, 1)...)
		s.compareEvents("and back, "+n, of(e.who, "PATCH", "/settings", "email_address_visibility", 1),
			slices.Repeat(e.events, 1)...)
		s.compareEvents("a message, "+n, of(e.who, "POST", "/messages", "type", "stream", "to", s.shared, "topic", "t",
			"content", "x"), "message")
		s.compareEvents("a message apart, "+n, func() {
			if e.who == s.stranger {
				s.must(e.who, "POST", "/messages", "type", "stream", "to", s.apart, "topic", "t", "content", "x")
			}
		})
		s.compareEvents("typing, "+n, of(e.who, "POST", "/typing", "type", "channel", "op", "start", "stream_id",
			s.shared, "topic", "t"), "typing/start")
		s.compareEvents("a reaction, "+n, of(e.who, "POST", fmt.Sprintf("/messages/%d/reactions", s.posted),
			"emoji_name", "wave"), "reaction/add")
		status := []string{"user_status"}
		presence := []string{"presence"}
		if e.who == s.stranger {
			status, presence = nil, nil
		}
		s.compareEvents("a status, "+n, of(e.who, "POST", "/users/me/status", "status_text", "x"), status...)
		s.compareEvents("presence, "+n, of(e.who, "POST", "/users/me/presence", "status", "active",
			"slim_presence", true), presence...)
		s.compareEvents("an edit, "+n, of(s.stranger, "PATCH", fmt.Sprintf("/messages/%d", s.posted), "content",
			"of "+fmt.Sprint(e.who.id)), "update_message")
		s.compareEvents("subscribing to a web-public channel, "+n, func() {
			s.must(s.keeper, "POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": "web"}}, "principals", []int64{s.by["member"].id})
			s.must(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{"web"}, "principals",
				[]int64{s.by["member"].id})
		}, "subscription/peer_add", "subscription/peer_remove")
		if e.who == s.friend {
			s.compareEvents("no channel in common any more, "+n,
				of(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{"shared"}, "principals",
					[]int64{s.friend.id}), "realm_user/remove", "subscription/peer_remove")
			s.compareEvents("a channel in common, "+n,
				of(s.keeper, "POST", "/users/me/subscriptions", "subscriptions",
					[]any{map[string]string{"name": "shared"}}, "principals", []int64{s.friend.id}), "realm_user/add",
				"subscription/peer_add")
		}
		s.compareEvents("another role, "+n, of(s.keeper, "PATCH", at(e.who), "role", 300),
			append(slices.Clone(e.events), "user_group/add_members", "user_group/remove_members")...)
		s.compareEvents("a deactivation, "+n, of(s.keeper, "DELETE", at(e.who)), deactivation(e.who == s.friend)...)
	}
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

package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// matrixDirectMessages: participants of a direct conversation have the usual rights to its messages. For all other
// users, also administrators, the messages do not exist.
func matrixDirectMessages(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.setModerationChannel()
	all := append(s.people, s.outsiders()...)
	var ask []func()
	for n, names := range [][]string{{"member"}, {"guest", "owner"}, {"bot"}, {"gone", "newcomer"},
		{"admin", "moderator", "member"}, {}} {
		members := []int64{s.keeper.id}
		for _, name := range names {
			members = append(members, s.by[name].id)
		}
		word := fmt.Sprintf("okapi%dx", n)
		up := s.must(s.keeper, "POST", "/user_uploads", "file", "text of "+word)
		file := up.body["url"].(string)
		write := func() int64 {
			return s.must(s.keeper, "POST", "/messages", "type", "direct", "to", members, "content",
				"The "+word+" is in [f.txt]("+file+")").int("id")
		}
		first := write()
		ballot := s.must(s.keeper, "POST", "/messages", "type", "direct", "to", members, "content", poll).int("id")
		var spare []int64
		for range all {
			spare = append(spare, write())
		}
		own := map[string][]int64{}
		for _, name := range names {
			for range 3 {
				own[name] = append(own[name],
					s.must(s.by[name], "POST", "/messages", "type", "direct", "to", members, "content",
						"of "+name).int("id"))
			}
		}
		ask = append(ask, func() { s.askDirect(all, names, members, word, file, first, ballot, spare, own) })
	}
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	for _, f := range ask {
		f()
	}
	s.summary()
}

// askDirect asks all questions about the messages of one conversation.
func (s *matrixStage) askDirect(all []*matrixUser, names []string, members []int64, word, file string,
	first, ballot int64, spare []int64, own map[string][]int64) {
	narrow := func(terms ...any) func(p *matrixUser, id int64) string {
		return func(p *matrixUser, id int64) string {
			return messageShown(s.call(p, "GET", "/messages", "anchor", first, "num_before", 1, "num_after", 5,
				"narrow", append([]any{}, terms...)), first)
		}
	}
	at := func(method, rest string, params ...any) func(p *matrixUser, id int64) string {
		return func(p *matrixUser, id int64) string {
			return s.call(p, method, fmt.Sprintf("/messages/%d%s", id, rest), params...).msg()
		}
	}
	for _, q := range []struct {
		name  string
		ask   func(p *matrixUser, id int64) string
		in    string // expected error for participants; others get "no such message"
		lists bool
	}{
		{"read", at("GET", ""), "", false},
		{"read by list", func(p *matrixUser, id int64) string {
			return messageShown(s.call(p, "GET", "/messages", "message_ids", []int64{first}), first)
		}, "", true},
		{"narrow to all", narrow(), "", true},
		{"narrow to direct messages", narrow(term("is", "dm")), "", true},
		{"narrow to the conversation", narrow(map[string]any{"operator": "dm", "operand": members}), "", true},
		{"narrow to conversations with the sender", narrow(term("dm-including", s.keeper.id)), "", true},
		{"narrow to a sender", narrow(term("sender", s.keeper.id)), "", true},
		{"narrow to an id", narrow(term("id", first)), "", true},
		{"narrow to no channel", narrow(map[string]any{"operator": "channels", "operand": "public", "negated": true}),
			"", true},
		{"search", narrow(term("search", word)), "", true},
		{"search for a phrase", narrow(term("search", `"The `+word+` is"`)), "", true},
		{"narrow to attachments", narrow(term("has", "attachment")), "", true},
		{"narrow to unread", narrow(term("is", "unread")), "", true},
		{"matches of a narrow", func(p *matrixUser, id int64) string {
			r := s.call(p, "GET", "/messages/matches_narrow", "msg_ids", []int64{first}, "narrow",
				[]any{[]any{"search", word}})
			if m := r.msg(); m != "" {
				return m
			}
			return shownOrAbsent(strings.Contains(r.raw, `\"highlight\">`+word))
		}, "", true},
		{"history of edits", at("GET", "/history"), "", false},
		{"read receipts", at("GET", "/read_receipts"), "", false},
		{"react", at("POST", "/reactions", "emoji_name", "wave"), "", false},
		{"take back a reaction", func(p *matrixUser, id int64) string {
			s.send(p, "POST", fmt.Sprintf("/messages/%d/reactions", id), "emoji_name", "tada")
			return at("DELETE", "/reactions", "emoji_name", "tada")(p, id)
		}, "", false},
		{"report", at("POST", "/report", "report_type", "spam"), "", false},
		{"type an edit", at("POST", "/typing", "op", "start"), noEdit, false},
		{"edit", at("PATCH", "", "content", "x"), noEdit, false},
		{"move to a topic", at("PATCH", "", "topic", "x"), "Direct messages cannot have topics.", false},
		{"move to a channel", at("PATCH", "", "stream_id", 1), "Direct messages cannot be moved to channels.", false},
		{"star", func(p *matrixUser, id int64) string {
			return s.call(p, "POST", "/messages/flags", "messages", []int64{id}, "op", "add", "flag", "starred").msg()
		}, "", false},
		{"vote", func(p *matrixUser, id int64) string {
			if id != missingID {
				id = ballot
			}
			return s.call(p, "POST", "/submessage", "message_id", id, "msg_type", "widget", "content", vote).msg()
		}, "", false},
		{"be reminded", func(p *matrixUser, id int64) string {
			return s.call(p, "POST", "/reminders", "message_id", id, "scheduled_delivery_timestamp",
				s.now.Load()+day).msg()
		}, "", false},
		{"open the file", func(p *matrixUser, id int64) string {
			if id == missingID {
				return s.call(p, "GET", "/user_uploads/1/99/none/f.txt").msg()
			}
			return s.call(p, "GET", file).msg()
		}, "", false},
		{"delete", func(p *matrixUser, id int64) string {
			if id != missingID {
				id, spare = spare[0], spare[1:]
			}
			return at("DELETE", "")(p, id)
		}, "You don't have permission to delete this message", false},
		{"delete an own message", func(p *matrixUser, id int64) string {
			if list := own[p.name]; len(list) > 0 && id != missingID {
				id = list[0]
			}
			return at("DELETE", "")(p, id)
		}, "", false},
	} {
		for _, p := range all {
			in := slices.Contains(names, p.name)
			want := loginError(p, q.lists && q.name != "matches of a narrow")
			switch {
			case want != "":
			case p.isVisitor():
				want = noLogin
			case q.lists:
				want = shownOrAbsent(in)
			case in && q.name == "delete" && p.isAdmin():
				want = ""
			case in:
				want = q.in
			case q.name == "open the file":
				want = hiddenError("File not found")
			default:
				want = hiddenError(noMessage)
			}
			msg, isHidden := strings.CutPrefix(want, hiddenPrefix)
			got := q.ask(p, first)
			if s.checkAnswer(s.question(q.name), got, msg, "%s: %s of the keeper with %v", p.name, q.name, names) &&
				isHidden {
				s.check(q.ask(p, missingID), got, "%s: %s of the keeper with %v, as where there is nothing", p.name,
					q.name, names)
			}
		}
	}
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// question is one thing to ask about a message or its channel, and what the protocol says of who is told what: "" is
// done, "shown" and "absent" are about lists, hidden(…) is a refusal that reads exactly as if there were no such thing;
// anything else is the refusal's text.
type question struct {
	name     string
	visitors bool
	ask      func(s *stage, p *somebody, x *spot) string
	rule     func(p *somebody, x *spot) string
}

const secret = "hidden: "

func hidden(msg string) string { return secret + msg }

const noMessage = "Invalid message(s)"
const noChannel = "Invalid channel ID"
const noLogin = "Not logged in: API authentication or user session required"

// void is x as if it did not exist.
func (x *spot) void() *spot {
	v := *x
	v.id, v.name, v.message, v.file, v.topic = nowhere, "no such channel", nowhere, "user_uploads/1/aa/aa/none.txt", "no such topic"
	v.spare, v.own = []int64{nowhere, nowhere, nowhere}, nil
	return &v
}

// pose asks everybody a question about every channel.
func (s *stage) pose(people []*somebody, spots []*spot, questions []question) {
	s.Helper()
	for _, q := range questions {
		for _, p := range people {
			for _, x := range spots {
				s.poseOne(q, p, x)
			}
		}
	}
}

func (s *stage) poseOne(q question, p *somebody, x *spot) {
	s.Helper()
	want := login(p, q.visitors)
	if want == "" {
		want = q.rule(p, x)
	}
	msg, isHidden := strings.CutPrefix(want, secret)
	got := q.ask(s, p, x)
	if s.cell(got, msg, "%s: %s in a %s", p.name, q.name, x) && isHidden {
		if missing := q.ask(s, p, x.void()); missing != got {
			s.cell(got, missing, "%s: %s in a %s, as where there is nothing", p.name, q.name, x)
		}
	}
}

// seen is whether a message is among those of an answer; a refusal is its text.
func seen(r reply, id int64) string {
	if m := r.msg(); m != "" {
		return m
	}
	if slices.Contains(ids(r.body["messages"], "id"), id) {
		return "shown"
	}
	return "absent"
}

func shownIf(b bool) string {
	if b {
		return "shown"
	}
	return "absent"
}

// narrow is a question that lists messages by a narrow; base says whether the message is to be among them.
func narrow(name string, base func(p *somebody, x *spot) bool, terms func(x *spot) []any) question {
	return question{"narrow " + name, true, func(s *stage, p *somebody, x *spot) string {
		list := terms(x)
		if p.visitor() {
			list = append(list, term("channels", "web-public"))
		}
		return seen(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1, "narrow", list), x.message)
	}, func(p *somebody, x *spot) string { return shownIf(base(p, x)) }}
}

// whole: all of a channel is listed, where its history is shared and he may read it; otherwise his own records.
func whole(p *somebody, x *spot) bool { return x.shared() && x.content(p) || x.kept(p) }

// records: only what he has a record of. Visitors ask among web-public channels, and have nothing else.
func records(p *somebody, x *spot) bool {
	return x.kept(p) || p.visitor() && x.kind == "web-public"
}

func term(operator string, operand any) map[string]any {
	return map[string]any{"operator": operator, "operand": operand}
}

func reading() []question {
	list := []question{
		{"read", true, func(s *stage, p *somebody, x *spot) string {
			r := s.call(p, "GET", fmt.Sprintf("/messages/%d", x.message))
			if r.msg() == "" && !strings.Contains(r.raw, x.word) {
				return "another message"
			}
			return r.msg()
		}, func(p *somebody, x *spot) string {
			if x.reads(p) {
				return ""
			}
			return hidden(noMessage)
		}},
		{"read by list", true, func(s *stage, p *somebody, x *spot) string {
			params := pairs{"message_ids", []int64{x.message}}
			if p.visitor() {
				params = append(params, "narrow", []any{term("channels", "web-public")})
			}
			return seen(s.call(p, "GET", "/messages", params...), x.message)
		}, func(p *somebody, x *spot) string { return shownIf(x.reads(p)) }},
		{"matches of a narrow", false, func(s *stage, p *somebody, x *spot) string {
			r := s.call(p, "GET", "/messages/matches_narrow", "msg_ids", []int64{x.message}, "narrow", []any{term("search", x.word)})
			if m := r.msg(); m != "" {
				return m
			}
			return shownIf(strings.Contains(r.raw, `\"highlight\">`+x.word))
		}, func(p *somebody, x *spot) string { return shownIf(x.kept(p)) }},
		{"search, with the hit marked", true, func(s *stage, p *somebody, x *spot) string {
			list := []any{term("channel", x.id), term("search", x.word)}
			if p.visitor() {
				list = append(list, term("channels", "web-public"))
			}
			r := s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1, "narrow", list)
			if m := r.msg(); m != "" {
				return m
			}
			return shownIf(strings.Contains(r.raw, `\"highlight\">`+x.word))
		}, func(p *somebody, x *spot) string {
			if p.visitor() && x.kind != "web-public" {
				return fmt.Sprintf("Invalid narrow operator: unknown channel %d", x.id)
			}
			return shownIf(whole(p, x))
		}},
		{"narrow with the message", true, func(s *stage, p *somebody, x *spot) string {
			list := []any{term("with", x.message)}
			if p.visitor() {
				list = append(list, term("channels", "web-public"))
			}
			return seen(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1, "narrow", list), x.message)
		}, func(p *somebody, x *spot) string {
			if x.reads(p) {
				return "shown"
			}
			return hidden("Invalid narrow operator: Invalid 'with' operator")
		}},
		{"narrow of public channels", false, func(s *stage, p *somebody, x *spot) string {
			return seen(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 0, "num_after", 0, "narrow", []any{term("channels", "public")}), x.message)
		}, func(p *somebody, x *spot) string {
			open := x.kind == "public" || x.kind == "web-public"
			return shownIf(open && (!p.guest() || x.kept(p)))
		}},
		{"narrow by a channel's name", true, func(s *stage, p *somebody, x *spot) string {
			list := []any{term("channel", x.name)}
			if p.visitor() {
				list = append(list, term("channels", "web-public"))
			}
			return seen(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1, "narrow", list), x.message)
		}, func(p *somebody, x *spot) string {
			if p.visitor() && x.kind != "web-public" {
				return "Invalid narrow operator: unknown channel " + x.name
			}
			return shownIf(whole(p, x))
		}},
		{"history of edits", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "GET", fmt.Sprintf("/messages/%d/history", x.message)).msg()
		}, readerOnly},
		{"read receipts", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "GET", fmt.Sprintf("/messages/%d/read_receipts", x.message)).msg()
		}, readerOnly},
		{"address of a file", true, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "GET", "/"+x.file).msg()
		}, func(p *somebody, x *spot) string {
			if x.reads(p) {
				return ""
			}
			return hidden("File not found")
		}},
		{"thumbnail of a file", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "GET", strings.Replace("/"+x.file, "user_uploads", "thumbnail/status", 1)).msg()
		}, func(p *somebody, x *spot) string {
			if x.reads(p) {
				return ""
			}
			return hidden("File not found")
		}},
		{"topics", true, func(s *stage, p *somebody, x *spot) string {
			r := s.call(p, "GET", fmt.Sprintf("/users/me/%d/topics", x.id))
			if m := r.msg(); m != "" {
				return m
			}
			return shownIf(strings.Contains(r.raw, x.topic))
		}, func(p *somebody, x *spot) string {
			if !x.content(p) {
				return hidden(noChannel)
			}
			return shownIf(x.reads(p))
		}},
		{"mark a topic read", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/mark_topic_as_read", "stream_id", x.id, "topic_name", x.topic).msg()
		}, func(p *somebody, x *spot) string {
			if !x.content(p) {
				return hidden(noChannel)
			}
			if !x.reads(p) {
				return "No such topic 'a topic'"
			}
			return ""
		}},
		{"mark a channel read", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/mark_stream_as_read", "stream_id", x.id).msg()
		}, contentOnly},
	}
	one := func(x *spot) []any { return []any{term("channel", x.id)} }
	list = append(list,
		narrow("id", records, func(x *spot) []any { return []any{term("id", x.message)} }),
		narrow("near", records, func(x *spot) []any { return []any{term("near", fmt.Sprint(x.message))} }),
		narrow("all", records, func(x *spot) []any { return []any{} }),
		narrow("topic", records, func(x *spot) []any { return []any{term("topic", x.topic)} }),
		narrow("search", records, func(x *spot) []any { return []any{term("search", x.word)} }),
		narrow("search for a phrase", records, func(x *spot) []any { return []any{term("search", `"The `+x.word+` is"`)} }),
		narrow("search for what is not there", records, func(x *spot) []any {
			return []any{map[string]any{"operator": "search", "operand": `not "here at all"`, "negated": true}}
		}),
		narrow("has attachment", records, func(x *spot) []any { return []any{term("has", "attachment")} }),
		narrow("without another channel", func(p *somebody, x *spot) bool { return records(p, x) }, func(x *spot) []any {
			return []any{map[string]any{"operator": "topic", "operand": "some other topic", "negated": true}}
		}),
	)
	for _, more := range []struct {
		name string
		term map[string]any
	}{{"channel, topic", term("topic", "a topic")}, {"channel, has link", term("has", "link")}, {"channel, near", term("near", "1")}} {
		list = append(list, hiddenToVisitors(narrow(more.name, whole, func(x *spot) []any { return append(one(x), more.term) })))
	}
	for _, is := range []string{"read", "unread", "unstarred"} {
		t := map[string]any{"operator": "is", "operand": "unread", "negated": is == "read"}
		if is == "unstarred" {
			t = map[string]any{"operator": "is", "operand": "starred", "negated": true}
		}
		q := narrow("channel, is "+is, nil, func(x *spot) []any { return append(one(x), t) })
		ask := q.ask
		if is != "unstarred" { // one of the two
			other := map[string]any{"operator": "is", "operand": "unread", "negated": is != "read"}
			q.ask = func(s *stage, p *somebody, x *spot) string {
				a := ask(s, p, x)
				b := seen(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1, "narrow", append(one(x), other)), x.message)
				if a != b && (a == "shown" || b == "shown") {
					return "shown"
				}
				return a
			}
		}
		q.visitors = true
		q.rule = func(p *somebody, x *spot) string {
			if p.visitor() {
				return noLogin
			}
			return shownIf(x.kept(p))
		}
		if is == "unread" {
			continue // asked with "read"
		}
		list = append(list, q)
	}
	return list
}

// hiddenToVisitors: to visitors, a channel that is not web-public is unknown.
func hiddenToVisitors(q question) question {
	rule := q.rule
	q.rule = func(p *somebody, x *spot) string {
		if p.visitor() && x.kind != "web-public" {
			return fmt.Sprintf("Invalid narrow operator: unknown channel %d", x.id)
		}
		return rule(p, x)
	}
	return q
}

func readerOnly(p *somebody, x *spot) string {
	if x.reads(p) {
		return ""
	}
	return hidden(noMessage)
}

func contentOnly(p *somebody, x *spot) string {
	if x.content(p) {
		return ""
	}
	return hidden(noChannel)
}

// senders: what sending to a channel is answered.
func mayWrite(p *somebody, x *spot) bool {
	switch {
	case p.guest():
		return x.in() || x.kind == "web-public"
	case x.kind == "web-public" || x.kind == "public" || x.in():
		return true
	}
	return x.relation == granted && x.shared() // with shared history, also who may subscribe himself
}

func writing() []question {
	onMessage := func(name string, ask func(s *stage, p *somebody, m int64) reply, allowed func(p *somebody) string) question {
		return question{name, false, func(s *stage, p *somebody, x *spot) string { return ask(s, p, x.another()).msg() }, func(p *somebody, x *spot) string {
			if !x.reads(p) {
				return hidden(noMessage)
			}
			return allowed(p)
		}}
	}
	anyone := func(*somebody) string { return "" }
	deleting := func(p *somebody) string {
		if p.admin() {
			return ""
		}
		return "You don't have permission to delete this message"
	}
	onOwn := func(name string, ask func(s *stage, p *somebody, m int64) reply) question {
		return question{name, false, func(s *stage, p *somebody, x *spot) string {
			m := int64(nowhere)
			if list := x.own[p.name]; len(list) > 0 {
				m, x.own[p.name] = list[0], list[1:]
			}
			return ask(s, p, m).msg()
		}, func(p *somebody, x *spot) string {
			if x.got() && x.content(p) {
				return ""
			}
			return hidden(noMessage)
		}}
	}
	m := func(m int64, rest string) string { return fmt.Sprintf("/messages/%d%s", m, rest) }
	send := func(how func(x *spot) any) func(s *stage, p *somebody, x *spot) string {
		return func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/messages", "type", "channel", "to", how(x), "topic", "said", "content", "x").msg()
		}
	}
	writes := func(p *somebody, x *spot) string {
		if mayWrite(p, x) {
			return ""
		}
		return "Not authorized to send to channel '" + x.name + "'" // the reference names it, also by id
	}
	return []question{
		onMessage("react", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "POST", m(id, "/reactions"), "emoji_name", "wave")
		}, anyone),
		onMessage("take back a reaction never made", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "DELETE", m(id, "/reactions"), "emoji_name", "wave")
		}, func(*somebody) string { return "Reaction doesn't exist." }),
		{"star", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/messages/flags", "messages", []int64{x.another()}, "op", "add", "flag", "starred").msg()
		}, func(p *somebody, x *spot) string {
			if x.got() || x.reads(p) { // his own record is his to mark, also where he may not read any more
				return ""
			}
			return hidden(noMessage)
		}},
		onMessage("send a submessage", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "POST", "/submessage", "message_id", id, "msg_type", "widget", "content", "{}")
		}, func(*somebody) string { return "You cannot attach a submessage to this message." }),
		onMessage("report", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "POST", m(id, "/report"), "report_type", "spam")
		}, anyone),
		onMessage("be reminded", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "POST", "/reminders", "message_id", id, "scheduled_delivery_timestamp", s.now.Load()+10*day)
		}, anyone),
		onMessage("type an edit", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "POST", m(id, "/typing"), "op", "start")
		}, func(*somebody) string { return "You don't have permission to edit this message" }),
		onMessage("edit", func(s *stage, p *somebody, id int64) reply { return s.call(p, "PATCH", m(id, ""), "content", "edited") },
			func(*somebody) string { return "You don't have permission to edit this message" }),
		onMessage("move to a topic", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "PATCH", m(id, ""), "topic", "elsewhere")
		}, anyone),
		onMessage("move to a channel", func(s *stage, p *somebody, id int64) reply {
			return s.call(p, "PATCH", m(id, ""), "stream_id", s.harbour(), "topic", "moved")
		}, func(p *somebody) string {
			if p.guest() {
				return "You don't have permission to move this message"
			}
			return ""
		}),
		onMessage("delete", func(s *stage, p *somebody, id int64) reply { return s.call(p, "DELETE", m(id, "")) }, deleting),
		onOwn("type an edit of his own", func(s *stage, p *somebody, id int64) reply { return s.call(p, "POST", m(id, "/typing"), "op", "start") }),
		onOwn("edit his own", func(s *stage, p *somebody, id int64) reply { return s.call(p, "PATCH", m(id, ""), "content", "edited") }),
		onOwn("delete his own", func(s *stage, p *somebody, id int64) reply { return s.call(p, "DELETE", m(id, "")) }),
		{"send", false, send(func(x *spot) any { return x.id }), writes},
		{"send by name", false, send(func(x *spot) any { return x.name }), writes},
		{"schedule", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/scheduled_messages", "type", "channel", "to", x.id, "topic", "later", "content", "x", "scheduled_delivery_timestamp", s.now.Load()+10*day).msg()
		}, writes},
		{"draft", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/drafts", "drafts", []any{map[string]any{"type": "stream", "to": []int64{x.id}, "topic": "t", "content": "x"}}).msg()
		}, contentOnly},
		{"follow a topic", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/user_topics", "stream_id", x.id, "topic", "t", "visibility_policy", 3).msg()
		}, contentOnly},
		{"type in a channel", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", "/typing", "type", "channel", "op", "start", "stream_id", x.id, "topic", "t").msg()
		}, func(p *somebody, x *spot) string {
			switch {
			case mayWrite(p, x):
				return ""
			case x.content(p):
				return "Not authorized to send to channel '" + x.name + "'"
			}
			return hidden(noChannel)
		}},
		{"delete a topic", false, func(s *stage, p *somebody, x *spot) string {
			return s.call(p, "POST", fmt.Sprintf("/streams/%d/delete_topic", x.id), "topic_name", "none").msg()
		}, func(p *somebody, x *spot) string {
			switch {
			case !x.content(p):
				return hidden(noChannel)
			case p.admin():
				return ""
			}
			return "Must be an organization administrator"
		}},
	}
}

// harbour is a public channel that everybody is in, to move things to.
func (s *stage) harbour() int64 {
	if id := s.groups["harbour"]; id != 0 {
		return id
	}
	var everyone []int64
	for _, p := range s.people {
		if p.name != "gone" {
			everyone = append(everyone, p.id)
		}
	}
	s.groups["harbour"] = s.must(s.keeper, "POST", "/channels/create", "name", "harbour", "subscribers", everyone, "send_new_subscription_messages", false).int("id")
	return s.groups["harbour"]
}

func (s *stage) moderated() {
	id := s.must(s.keeper, "POST", "/channels/create", "name", "moderation", "subscribers", []int64{s.keeper.id}, "invite_only", true).int("id")
	s.must(s.keeper, "PATCH", "/realm", "moderation_request_channel_id", id)
}

func matrixOfMessages(t *testing.T, l *book) {
	s := newStage(t, l)
	s.furnish()
	s.moderated()
	all := append(slices.Clone(s.people), s.strangers()...)
	s.pose(all, s.spots, reading())
	s.pose(all, s.spots, writing())
	s.summary()
}

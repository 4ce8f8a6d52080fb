package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// matrixQuestion is a question about a message or its channel. rule returns the expected outcome: "" is a success;
// "shown" and "absent" are about lists; hiddenError(…) is a refusal that must be the same as for an object that does
// not exist; any other text is the message of the refusal.
type matrixQuestion struct {
	name     string
	visitors bool
	ask      func(s *matrixStage, p *matrixUser, x *matrixChannel) string
	rule     func(p *matrixUser, x *matrixChannel) string
}

const hiddenPrefix = "hidden: "

func hiddenError(msg string) string { return hiddenPrefix + msg }

const noMessage = "Invalid message(s)"
const noChannel = "Invalid channel ID"
const noLogin = "Not logged in: API authentication or user session required"

// missing returns x with ids that do not exist.
func (x *matrixChannel) missing() *matrixChannel {
	v := *x
	v.id, v.name, v.message, v.poll = missingID, "no such channel", missingID, missingID
	v.file, v.topic = "user_uploads/1/aa/aa/none.txt", "no such topic"
	v.spare, v.own = []int64{missingID, missingID, missingID}, nil
	return &v
}

// askAll asks every user a question about every channel.
func (s *matrixStage) askAll(people []*matrixUser, spots []*matrixChannel, questions []matrixQuestion) {
	s.Helper()
	for _, q := range questions {
		for _, p := range people {
			for _, x := range spots {
				s.askOne(q, p, x)
			}
		}
	}
}

func (s *matrixStage) askOne(q matrixQuestion, p *matrixUser, x *matrixChannel) {
	s.Helper()
	want := loginError(p, q.visitors)
	if want == "" {
		want = q.rule(p, x)
	}
	msg, isHidden := strings.CutPrefix(want, hiddenPrefix)
	got := q.ask(s, p, x)
	if s.checkAnswer(s.question(q.name), got, msg, "%s: %s in a %s", p.name, q.name, x) && isHidden {
		if missing := q.ask(s, p, x.missing()); missing != got {
			s.check(got, missing, "%s: %s in a %s, as where there is nothing", p.name, q.name, x)
		}
	}
}

// messageShown reports whether a message is in an answer, or returns the message of a refusal.
func messageShown(r reply, id int64) string {
	if m := r.msg(); m != "" {
		return m
	}
	if slices.Contains(ids(r.body["messages"], "id"), id) {
		return "shown"
	}
	return "absent"
}

func shownOrAbsent(b bool) string {
	if b {
		return "shown"
	}
	return "absent"
}

// narrow returns a question that lists messages by a narrow; base reports whether the message should be among them.
func narrow(name string, base func(p *matrixUser, x *matrixChannel) bool,
	terms func(x *matrixChannel) []any) matrixQuestion {
	return matrixQuestion{"narrow " + name, true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
		list := terms(x)
		if p.isVisitor() {
			list = append(list, term("channels", "web-public"))
		}
		return messageShown(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1,
			"narrow", list), x.message)
	}, func(p *matrixUser, x *matrixChannel) string { return shownOrAbsent(base(p, x)) }}
}

// readsWholeChannel: if the history is shared, all messages of a channel are listed for its readers; otherwise only
// those with a record.
func readsWholeChannel(p *matrixUser, x *matrixChannel) bool {
	return x.hasSharedHistory() && x.canReadContent(p) || x.keepsRecord(p)
}

// hasRecordToRead: only messages with a record. Visitors ask within web-public channels and have no records.
func hasRecordToRead(p *matrixUser, x *matrixChannel) bool {
	return x.keepsRecord(p) || p.isVisitor() && x.kind == "web-public"
}

func term(operator string, operand any) map[string]any {
	return map[string]any{"operator": operator, "operand": operand}
}

func readQuestions() []matrixQuestion {
	return slices.Concat(messageQuestions(), contentQuestions(), narrowQuestions(), unreadQuestions())
}

// messageQuestions read the message in different ways.
func messageQuestions() []matrixQuestion {
	return []matrixQuestion{
		{"read", true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			r := s.call(p, "GET", fmt.Sprintf("/messages/%d", x.message))
			if r.msg() == "" && !strings.Contains(r.raw, x.word) {
				return "another message"
			}
			return r.msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			switch {
			case x.canReadMessage(p):
				return ""
			case p.isVisitor():
				return noLogin
			}
			return hiddenError(noMessage)
		}},
		{"read by list", true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			params := pairs{"message_ids", []int64{x.message}}
			if p.isVisitor() {
				params = append(params, "narrow", []any{term("channels", "web-public")})
			}
			return messageShown(s.call(p, "GET", "/messages", params...), x.message)
		}, func(p *matrixUser, x *matrixChannel) string { return shownOrAbsent(x.canReadMessage(p)) }},
		{"matches of a narrow", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			r := s.call(p, "GET", "/messages/matches_narrow", "msg_ids", []int64{x.message}, "narrow",
				[]any{term("search", x.word)})
			if m := r.msg(); m != "" {
				return m
			}
			return shownOrAbsent(strings.Contains(r.raw, `\"highlight\">`+x.word))
		}, func(p *matrixUser, x *matrixChannel) string { return shownOrAbsent(x.keepsRecord(p)) }},
		{"search, with the hit marked", true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			list := []any{term("channel", x.id), term("search", x.word)}
			if p.isVisitor() {
				list = append(list, term("channels", "web-public"))
			}
			r := s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1, "narrow", list)
			if m := r.msg(); m != "" {
				return m
			}
			return shownOrAbsent(strings.Contains(r.raw, `\"highlight\">`+x.word))
		}, func(p *matrixUser, x *matrixChannel) string {
			if !x.canReadMetadata(p) {
				return fmt.Sprintf("Invalid narrow operator: unknown channel %d", x.id)
			}
			return shownOrAbsent(readsWholeChannel(p, x))
		}},
		{"narrow with the message", true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			list := []any{term("with", x.message)}
			if p.isVisitor() {
				list = append(list, term("channels", "web-public"))
			}
			return messageShown(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1,
				"narrow", list), x.message)
		}, func(p *matrixUser, x *matrixChannel) string {
			if x.canReadMessage(p) {
				return "shown"
			}
			return hiddenError("Invalid narrow operator: Invalid 'with' operator")
		}},
		{"narrow of public channels", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return messageShown(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 0, "num_after", 0,
				"narrow", []any{term("channels", "public")}), x.message)
		}, func(p *matrixUser, x *matrixChannel) string {
			open := x.kind == "public" || x.kind == "web-public"
			return shownOrAbsent(open && (!p.isGuest() || x.keepsRecord(p)))
		}},
		{"narrow by a channel's name", true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			list := []any{term("channel", x.name)}
			if p.isVisitor() {
				list = append(list, term("channels", "web-public"))
			}
			return messageShown(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1,
				"narrow", list), x.message)
		}, func(p *matrixUser, x *matrixChannel) string {
			if !x.canReadMetadata(p) {
				return "Invalid narrow operator: unknown channel " + x.name
			}
			return shownOrAbsent(readsWholeChannel(p, x))
		}},
	}
}

// contentQuestions read the history, files and topic of the message.
func contentQuestions() []matrixQuestion {
	return []matrixQuestion{
		{"history of edits", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "GET", fmt.Sprintf("/messages/%d/history", x.message)).msg()
		}, readerOnly},
		{"read receipts", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "GET", fmt.Sprintf("/messages/%d/read_receipts", x.message)).msg()
		}, readerOnly},
		{"address of a file", true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "GET", "/"+x.file).msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			switch {
			case x.canReadMessage(p):
				return ""
			case p.isVisitor():
				return noLogin
			}
			return hiddenError("File not found")
		}},
		{"thumbnail of a file", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "GET", strings.Replace("/"+x.file, "user_uploads", "thumbnail/status", 1)).msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			if x.canReadMessage(p) {
				return ""
			}
			return hiddenError("File not found")
		}},
		{"topics", true, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			r := s.call(p, "GET", fmt.Sprintf("/users/me/%d/topics", x.id))
			if m := r.msg(); m != "" {
				return m
			}
			return shownOrAbsent(strings.Contains(r.raw, x.topic))
		}, func(p *matrixUser, x *matrixChannel) string {
			if !x.canReadContent(p) {
				return hiddenError(noChannel)
			}
			return shownOrAbsent(x.canReadMessage(p))
		}},
		{"mark a topic read", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/mark_topic_as_read", "stream_id", x.id, "topic_name", x.topic).msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			if !x.canReadContent(p) {
				return hiddenError(noChannel)
			}
			if !x.canReadMessage(p) {
				return "No such topic 'a topic'"
			}
			return ""
		}},
		{"mark a channel read", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/mark_stream_as_read", "stream_id", x.id).msg()
		}, contentOnly},
	}
}

func inChannel(x *matrixChannel) []any { return []any{term("channel", x.id)} }

// narrowQuestions list the message by a narrow.
func narrowQuestions() []matrixQuestion {
	list := []matrixQuestion{
		narrow("id", hasRecordToRead, func(x *matrixChannel) []any { return []any{term("id", x.message)} }),
		narrow("near", hasRecordToRead,
			func(x *matrixChannel) []any { return []any{term("near", fmt.Sprint(x.message))} }),
		narrow("all", hasRecordToRead, func(x *matrixChannel) []any { return []any{} }),
		narrow("topic", hasRecordToRead, func(x *matrixChannel) []any { return []any{term("topic", x.topic)} }),
		narrow("search", hasRecordToRead, func(x *matrixChannel) []any { return []any{term("search", x.word)} }),
		narrow("search for a phrase", hasRecordToRead,
			func(x *matrixChannel) []any { return []any{term("search", `"The `+x.word+` is"`)} }),
		narrow("search for what is not there", hasRecordToRead, func(x *matrixChannel) []any {
			return []any{map[string]any{"operator": "search", "operand": `not "here at all"`, "negated": true}}
		}),
		narrow("has attachment", hasRecordToRead,
			func(x *matrixChannel) []any { return []any{term("has", "attachment")} }),
		narrow("without another channel", func(p *matrixUser, x *matrixChannel) bool { return hasRecordToRead(p, x) },
			func(x *matrixChannel) []any {
				return []any{map[string]any{"operator": "topic", "operand": "some other topic", "negated": true}}
			}),
	}
	for _, more := range []struct {
		name string
		term map[string]any
	}{{"channel, topic", term("topic", "a topic")}, {"channel, has link", term("has", "link")},
		{"channel, near", term("near", "1")}} {
		list = append(list,
			unknownIfHidden(narrow(more.name, readsWholeChannel,
				func(x *matrixChannel) []any { return append(inChannel(x), more.term) })))
	}
	return list
}

// unreadQuestions list the message by its flags.
func unreadQuestions() (list []matrixQuestion) {
	for _, is := range []string{"read", "unread", "unstarred"} {
		t := map[string]any{"operator": "is", "operand": "unread", "negated": is == "read"}
		if is == "unstarred" {
			t = map[string]any{"operator": "is", "operand": "starred", "negated": true}
		}
		q := narrow("channel, is "+is, nil, func(x *matrixChannel) []any { return append(inChannel(x), t) })
		ask := q.ask
		if is != "unstarred" { // either read or unread
			other := map[string]any{"operator": "is", "operand": "unread", "negated": is != "read"}
			q.ask = func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
				a := ask(s, p, x)
				b := messageShown(s.call(p, "GET", "/messages", "anchor", x.message, "num_before", 1, "num_after", 1,
					"narrow", append(inChannel(x), other)), x.message)
				if a != b && (a == "shown" || b == "shown") {
					return "shown"
				}
				return a
			}
		}
		q.visitors = true
		q.rule = func(p *matrixUser, x *matrixChannel) string {
			if p.isVisitor() {
				return noLogin
			}
			if !x.canReadMetadata(p) {
				return fmt.Sprintf("Invalid narrow operator: unknown channel %d", x.id)
			}
			return shownOrAbsent(x.keepsRecord(p))
		}
		if is == "unread" {
			continue // asked with "read"
		}
		list = append(list, q)
	}
	return list
}

// unknownIfHidden: a channel that the user must not know of is unknown.
func unknownIfHidden(q matrixQuestion) matrixQuestion {
	rule := q.rule
	q.rule = func(p *matrixUser, x *matrixChannel) string {
		if !x.canReadMetadata(p) {
			return fmt.Sprintf("Invalid narrow operator: unknown channel %d", x.id)
		}
		return rule(p, x)
	}
	return q
}

func readerOnly(p *matrixUser, x *matrixChannel) string {
	if x.canReadMessage(p) {
		return ""
	}
	return hiddenError(noMessage)
}

func contentOnly(p *matrixUser, x *matrixChannel) string {
	if x.canReadContent(p) {
		return ""
	}
	return hiddenError(noChannel)
}

// canSend reports whether a user may send messages to a channel.
func canSend(p *matrixUser, x *matrixChannel) bool {
	switch {
	case p.isGuest():
		return x.isSubscribed() || x.kind == "web-public"
	case x.kind == "web-public" || x.kind == "public" || x.isSubscribed():
		return true
	}
	// with shared history, users who may subscribe may also send
	return x.relation == maySubscribe && x.hasSharedHistory()
}

// onMessage asks about a message of the keeper. allowed has the refusal of readers.
func onMessage(name string, ask func(s *matrixStage, p *matrixUser, m int64) reply,
	allowed func(p *matrixUser) string) matrixQuestion {
	return matrixQuestion{name, false,
		func(s *matrixStage, p *matrixUser, x *matrixChannel) string { return ask(s, p, x.nextSpare()).msg() },
		func(p *matrixUser, x *matrixChannel) string {
			if !x.canReadMessage(p) {
				return hiddenError(noMessage)
			}
			return allowed(p)
		}}
}

// onOwn asks about a message of the caller.
func onOwn(name string, ask func(s *matrixStage, p *matrixUser, m int64) reply) matrixQuestion {
	return matrixQuestion{name, false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
		m := int64(missingID)
		if list := x.own[p.name]; len(list) > 0 {
			m, x.own[p.name] = list[0], list[1:]
		}
		return ask(s, p, m).msg()
	}, func(p *matrixUser, x *matrixChannel) string {
		if x.hasRecord() && x.canReadContent(p) {
			return ""
		}
		return hiddenError(noMessage)
	}}
}

// send asks to send a message to a channel.
func sending(how func(x *matrixChannel) any) func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
	return func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
		return s.call(p, "POST", "/messages", "type", "channel", "to", how(x), "topic", "said", "content",
			"x").msg()
	}
}

// writes is the rule of sending to a channel by its id.
func writes(p *matrixUser, x *matrixChannel) string {
	if canSend(p, x) {
		return ""
	}
	if x.canReadMetadata(p) {
		return "Not authorized to send to channel '" + x.name + "'"
	}
	return fmt.Sprintf("Channel with ID '%d' does not exist", x.id)
}

// writesByName is the rule of sending to a channel by its name.
func writesByName(p *matrixUser, x *matrixChannel) string {
	if msg := writes(p, x); !strings.HasPrefix(msg, "Channel with ID") {
		return msg
	}
	return "Channel '" + x.name + "' does not exist"
}

func writeQuestions() []matrixQuestion { return append(changeQuestions(), sendQuestions()...) }

// changeQuestions change messages and their reactions, flags and reminders.
func changeQuestions() []matrixQuestion {
	anyone := func(*matrixUser) string { return "" }
	deleting := func(p *matrixUser) string {
		if p.isAdmin() {
			return ""
		}
		return "You don't have permission to delete this message"
	}
	m := func(m int64, rest string) string { return fmt.Sprintf("/messages/%d%s", m, rest) }
	return []matrixQuestion{
		onMessage("react", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "POST", m(id, "/reactions"), "emoji_name", "wave")
		}, anyone),
		onMessage("take back a reaction", func(s *matrixStage, p *matrixUser, id int64) reply {
			s.send(p, "POST", m(id, "/reactions"), "emoji_name", "wave")
			return s.call(p, "DELETE", m(id, "/reactions"), "emoji_name", "wave")
		}, anyone),
		{"star", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/messages/flags", "messages", []int64{x.nextSpare()}, "op", "add", "flag",
				"starred").msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			// users may mark messages with a record, also if they cannot read them any more
			if x.hasRecord() || x.canReadMessage(p) {
				return ""
			}
			return hiddenError(noMessage)
		}},
		{"vote", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/submessage", "message_id", x.poll, "msg_type", "widget", "content",
				vote).msg()
		}, readerOnly},
		onMessage("report", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "POST", m(id, "/report"), "report_type", "spam")
		}, anyone),
		onMessage("be reminded", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "POST", "/reminders", "message_id", id, "scheduled_delivery_timestamp",
				s.now.Load()+10*day)
		}, anyone),
		onMessage("type an edit", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "POST", m(id, "/typing"), "op", "start")
		}, func(*matrixUser) string { return noEdit }),
		onMessage("edit", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "PATCH", m(id, ""), "content", "edited")
		}, func(*matrixUser) string { return noEdit }),
		onMessage("move to a topic", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "PATCH", m(id, ""), "topic", "elsewhere")
		}, anyone),
		onMessage("move to a channel", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "PATCH", m(id, ""), "stream_id", s.targetChannel(), "topic", "moved")
		}, func(p *matrixUser) string {
			if p.isGuest() {
				return "You don't have permission to move this message"
			}
			return ""
		}),
		onMessage("delete",
			func(s *matrixStage, p *matrixUser, id int64) reply { return s.call(p, "DELETE", m(id, "")) }, deleting),
		onOwn("type an edit of an own message", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "POST", m(id, "/typing"), "op", "start")
		}),
		onOwn("edit an own message", func(s *matrixStage, p *matrixUser, id int64) reply {
			return s.call(p, "PATCH", m(id, ""), "content", "edited")
		}),
		onOwn("delete an own message",
			func(s *matrixStage, p *matrixUser, id int64) reply { return s.call(p, "DELETE", m(id, "")) }),
	}
}

// sendQuestions write to a channel.
func sendQuestions() []matrixQuestion {
	return []matrixQuestion{
		{"send", false, sending(func(x *matrixChannel) any { return x.id }), writes},
		{"send by name", false, sending(func(x *matrixChannel) any { return x.name }), writesByName},
		{"schedule", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/scheduled_messages", "type", "channel", "to", x.id, "topic", "later", "content",
				"x", "scheduled_delivery_timestamp", s.now.Load()+10*day).msg()
		}, writes},
		{"draft", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/drafts", "drafts",
				[]any{map[string]any{"type": "stream", "to": []int64{x.id}, "topic": "t", "content": "x"}}).msg()
		}, contentOnly},
		{"follow a topic", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/user_topics", "stream_id", x.id, "topic", "t", "visibility_policy", 3).msg()
		}, contentOnly},
		{"type in a channel", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", "/typing", "type", "channel", "op", "start", "stream_id", x.id, "topic", "t").msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			switch {
			case canSend(p, x):
				return ""
			case x.canReadContent(p):
				return "Not authorized to send to channel '" + x.name + "'"
			}
			return hiddenError(noChannel)
		}},
		{"delete a topic", false, func(s *matrixStage, p *matrixUser, x *matrixChannel) string {
			return s.call(p, "POST", fmt.Sprintf("/streams/%d/delete_topic", x.id), "topic_name", "none").msg()
		}, func(p *matrixUser, x *matrixChannel) string {
			switch {
			case !x.canReadContent(p):
				return hiddenError(noChannel)
			case p.isAdmin():
				return ""
			}
			return "Must be an organization administrator"
		}},
	}
}

// targetChannel returns a public channel with all users, to move messages to.
func (s *matrixStage) targetChannel() int64 {
	if id := s.groups["destination"]; id != 0 {
		return id
	}
	var everyone []int64
	for _, p := range s.people {
		if p.name != "gone" {
			everyone = append(everyone, p.id)
		}
	}
	s.groups["destination"] = s.must(s.keeper, "POST", "/channels/create", "name", "destination", "subscribers",
		everyone,
		"send_new_subscription_messages", false).int("id")
	return s.groups["destination"]
}

// setModerationChannel creates a channel for reports of messages.
func (s *matrixStage) setModerationChannel() {
	id := s.must(s.keeper, "POST", "/channels/create", "name", "moderation", "subscribers", []int64{s.keeper.id},
		"invite_only", true).int("id")
	s.must(s.keeper, "PATCH", "/realm", "moderation_request_channel_id", id)
}

func matrixMessages(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	s.createChannels()
	s.setModerationChannel()
	all := append(slices.Clone(s.people), s.outsiders()...)
	s.askAll(all, s.channels, readQuestions())
	s.askAll(all, s.channels, writeQuestions())
	s.summary()
}

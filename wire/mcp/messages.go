package mcp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"

	"parley/actors/realm"
	"parley/wire"
)

// message is a message in results.
type message struct {
	ID        int64  `json:"id"`
	Time      string `json:"time"`
	Sender    string `json:"sender"`
	SenderID  int64  `json:"sender_id"`
	Channel   string `json:"channel,omitempty"`
	ChannelID int64  `json:"channel_id,omitempty"`
	Topic     string `json:"topic,omitempty"`
	With      []user `json:"direct_message_with,omitempty"`
	Content   string `json:"content"`
	Cut       bool   `json:"content_cut,omitempty"` // read_message returns the whole text
}

type user struct {
	ID   int64  `json:"id"`
	Name string `json:"full_name"`
}

// newMessage returns a message of an answer of the API.
func newMessage(v *fastjson.Value) message {
	out := message{ID: v.GetInt64("id"), Time: time.Unix(v.GetInt64("timestamp"), 0).UTC().Format(time.RFC3339),
		Sender: textOf(v, "sender_full_name"), SenderID: v.GetInt64("sender_id"), ChannelID: v.GetInt64("stream_id"),
		Topic: textOf(v, "subject"), Content: textOf(v, "content")}
	if out.ChannelID != 0 {
		out.Channel = textOf(v, "display_recipient")
	} else {
		for _, u := range v.GetArray("display_recipient") {
			out.With = append(out.With, user{u.GetInt64("id"), textOf(u, "full_name")})
		}
	}
	return out
}

// newListedMessage returns the JSON of a message of a list.
func newListedMessage(x *wire.ReadMessage) json.RawMessage {
	m := message{ID: int64(x.ID), Time: time.Unix(x.Time, 0).UTC().Format(time.RFC3339), Sender: x.Sender,
		SenderID: int64(x.SenderID), ChannelID: int64(x.Channel), Channel: x.Name, Topic: x.Topic}
	for _, u := range x.People {
		m.With = append(m.With, user{int64(u.ID), u.Name})
	}
	m.Content, m.Cut = cut(x.Content)
	return encode(m)
}

// cut returns at most MaxContent characters of a text.
func cut(text string) (string, bool) {
	n := 0
	for i := range text {
		if n++; n > MaxContent {
			return text[:i], true
		}
	}
	return text, false
}

// term is a term of a narrow.
type term struct {
	Operator string `json:"operator"`
	Operand  any    `json:"operand"`
	Negated  bool   `json:"negated"`
}

// messages returns the messages of a narrow, oldest first: the newest ones, or those before a message.
func (s *Server) messages(c *wire.Call, narrow []term, before int64, limit int) (any, error) {
	if limit <= 0 || limit > MaxMessages {
		limit = MaxMessages
	}
	if before < 0 {
		return nil, realm.BadRequest("before must be the id of a message.")
	}
	p := params{"anchor": "newest", "num_before": limit, "num_after": 0, "narrow": narrow, "apply_markdown": false,
		"client_gravatar": true, "allow_empty_topic_name": true}
	if before > 0 {
		p["anchor"], p["include_anchor"] = before, false
	}
	a, err := s.run(c, "GET /messages", p, nil)
	if err != nil {
		return nil, err
	}
	list, oldest := wire.MessagesOf(a)
	out, size := make([]json.RawMessage, 0, len(list)), 0
	for i := range slices.Backward(list) { // the newest messages have priority
		m := newListedMessage(&list[i])
		if size += len(m); size > MaxResultBytes-200 {
			oldest = false
			break
		}
		out = append(out, m)
	}
	slices.Reverse(out)
	return page(out, !oldest), nil
}

// page returns a result with messages that are encoded already.
func page(messages []json.RawMessage, older bool) encoded {
	b := []byte(`{"has_older_messages":`)
	b = append(strconv.AppendBool(b, older), `,"messages":[`...)
	for i, m := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	return append(b, "]}"...)
}

type readArgs struct {
	Channel int64   `json:"channel_id" doc:"The id of the channel; not for direct messages."`
	Topic   *string `json:"topic" doc:"The topic. Without it all topics of the channel."`
	Users   []int64 `json:"user_ids" doc:"The ids of the other users of a direct conversation."`
	Before  int64   `json:"before" doc:"The id of a message: only older messages are returned."`
	Limit   int     `json:"limit" doc:"The number of messages, at most 100."`
}

func readMessages(s *Server, c *wire.Call, args readArgs) (any, error) {
	p := place{Channel: args.Channel, Topic: args.Topic, Users: args.Users}
	if args.Channel != 0 && args.Users != nil || args.Channel == 0 && len(args.Users) == 0 {
		return nil, realm.BadRequest("Either channel_id or user_ids is needed.")
	}
	return s.messages(c, p.narrow(), args.Before, args.Limit)
}

type messageArgs struct {
	Message int64 `json:"message_id" required:"true" doc:"The id of the message."`
}

func readMessage(s *Server, c *wire.Call, args messageArgs) (any, error) {
	var m message
	err := s.askMessages(c, "GET /messages/{message_id}", params{"message_id": args.Message, "apply_markdown": false,
		"allow_empty_topic_name": true}, func(a *fastjson.Value) { m = newMessage(a.Get("message")) })
	if err != nil {
		return nil, err
	}
	return m, nil
}

type searchArgs struct {
	Query  string `json:"query" required:"true" doc:"Words and operators."`
	Before int64  `json:"before" doc:"The id of a message: only older messages are returned."`
	Limit  int    `json:"limit" doc:"The number of messages, at most 100."`
}

func searchMessages(s *Server, c *wire.Call, args searchArgs) (any, error) {
	return s.messages(c, parseQuery(args.Query), args.Before, args.Limit)
}

// queryOperators are the operators that a query can have. Everything else is a word to search for.
var queryOperators = []string{"channel", "channels", "topic", "sender", "has", "is", "dm", "dm-including", "mentions",
	"near", "id", "in", "with"}

// parseQuery returns the terms of a query. Words become one search term.
func parseQuery(query string) []term {
	terms, words := []term{}, []string{}
	for _, part := range splitQuery(query) {
		name, operand, ok := strings.Cut(part, ":")
		negated := strings.HasPrefix(name, "-")
		name = strings.TrimPrefix(name, "-")
		known := false
		for _, o := range queryOperators {
			known = known || o == name
		}
		if !ok || !known {
			words = append(words, part)
			continue
		}
		terms = append(terms, term{name, strings.Trim(operand, `"`), negated})
	}
	if len(words) > 0 {
		terms = append(terms, term{Operator: "search", Operand: strings.Join(words, " ")})
	}
	return terms
}

// splitQuery splits at spaces outside of double quotes.
func splitQuery(query string) []string {
	quoted := false
	return strings.FieldsFunc(query, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	})
}

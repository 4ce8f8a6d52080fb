package mcp

import (
	"encoding/json"
	"strings"
	"time"

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

// apiMessage is a message in answers of the API.
type apiMessage struct {
	ID        int64           `json:"id"`
	Time      int64           `json:"timestamp"`
	Sender    string          `json:"sender_full_name"`
	SenderID  int64           `json:"sender_id"`
	ChannelID int64           `json:"stream_id"`
	Recipient json.RawMessage `json:"display_recipient"` // the name of the channel, or the users
	Topic     string          `json:"subject"`
	Content   string          `json:"content"`
}

func newMessage(m *apiMessage, whole bool) message {
	out := message{ID: m.ID, Time: time.Unix(m.Time, 0).UTC().Format(time.RFC3339), Sender: m.Sender,
		SenderID: m.SenderID, ChannelID: m.ChannelID, Topic: m.Topic, Content: m.Content}
	if m.ChannelID != 0 {
		json.Unmarshal(m.Recipient, &out.Channel)
	} else {
		json.Unmarshal(m.Recipient, &out.With)
	}
	if !whole {
		out.Content, out.Cut = cut(m.Content)
	}
	return out
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
	var a struct {
		Messages []apiMessage `json:"messages"`
		Oldest   bool         `json:"found_oldest"`
	}
	if err := s.ask(c, "GET /messages", &a, p); err != nil {
		return nil, err
	}
	out, size := []message{}, 0
	for i := len(a.Messages) - 1; i >= 0; i-- { // the newest messages have priority
		m := newMessage(&a.Messages[i], false)
		if size += len(encode(m)); size > MaxResultBytes-200 {
			a.Oldest = false
			break
		}
		out = append([]message{m}, out...)
	}
	return map[string]any{"messages": out, "has_older_messages": !a.Oldest}, nil
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
	var a struct {
		Message apiMessage `json:"message"`
	}
	err := s.ask(c, "GET /messages/{message_id}", &a, params{"message_id": args.Message, "apply_markdown": false,
		"allow_empty_topic_name": true})
	if err != nil {
		return nil, err
	}
	return newMessage(&a.Message, true), nil
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

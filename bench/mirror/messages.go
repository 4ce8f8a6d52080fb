package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
)

func (m *Mirror) message(e Object) error {
	o, ok := e["message"].(Object)
	if !ok {
		return errors.New("message event without a message")
	}
	id := Int(o["id"])
	if m.messages[id] != nil {
		return fmt.Errorf("message %d told twice", id)
	}
	if m.kind.AllPublic && Int(o["stream_id"]) != 0 && m.tables["subscriptions"][text(o["stream_id"])] == nil {
		return nil // it was told in passing: nothing more will be said of it
	}
	if t := m.tables["streams"]; t != nil && Int(o["stream_id"]) != 0 && t[text(o["stream_id"])] == nil {
		return nil // the notice that a channel is archived comes where some have lost it already
	}
	o = maps.Clone(o)
	o["flags"] = e["flags"]
	if o["last_edit_timestamp"] == nil && o["last_moved_timestamp"] == nil {
		o[pastKey] = &past{topic: str(o["subject"]), content: o["content"]}
	}
	m.know(id, o)
	if !has(o, "read") {
		m.unread[id] = m.place(o)
	}
	if has(o, "starred") {
		m.starred[id] = true
	}
	return nil
}

func (m *Mirror) know(id int64, o Object) {
	if m.messages[id] == nil {
		m.order = append(m.order, id)
	}
	m.messages[id] = o
	for len(m.order) > maxMessages {
		delete(m.messages, m.order[0])
		m.order = m.order[1:]
	}
}

// Fetched takes an answer of GET /messages: what the client shows when somebody scrolls.
func (m *Mirror) Fetched(body []byte) error {
	var v struct {
		Messages []Object `json:"messages"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	for _, o := range v.Messages {
		m.know(Int(o["id"]), o)
	}
	return nil
}

// place is where an unread message stands.
func (m *Mirror) place(o Object) *unread {
	u := &unread{mentioned: has(o, "mentioned"), wildcard: has(o, "stream_wildcard_mentioned") ||
		has(o, "topic_wildcard_mentioned")}
	if str(o["type"]) == "stream" {
		u.stream, u.topic = Int(o["stream_id"]), str(o["subject"])
		return u
	}
	var who []int64
	for _, p := range objects(o["display_recipient"]) {
		who = append(who, Int(p["id"]))
	}
	u.people = m.others(who...)
	return u
}

func has(o Object, flag string) bool {
	list, _ := o["flags"].([]any)
	for _, f := range list {
		if f == flag {
			return true
		}
	}
	return false
}

func setFlag(o Object, flag string, on bool) {
	if o == nil {
		return
	}
	list, _ := o["flags"].([]any)
	var out []any
	for _, f := range list {
		if f != flag {
			out = append(out, f)
		}
	}
	if on {
		out = append(out, flag)
	}
	o["flags"] = out
}

func (m *Mirror) updated(e Object) error {
	id := Int(e["message_id"])
	moved := e["new_stream_id"] != nil || e["subject"] != nil
	edited := e["rendering_only"] != true
	if o := m.messages[id]; o != nil {
		if c, ok := e["rendered_content"].(string); ok {
			o["content"], o["is_me_message"] = c, e["is_me_message"]
			if str(o["content_type"]) == "text/x-markdown" {
				o["content"] = e["content"]
			}
			if edited {
				o["last_edit_timestamp"] = e["edit_timestamp"]
			}
		}
	}
	m.remember(id, e)
	if flags, ok := e["flags"].([]any); ok && edited && e["rendered_content"] != nil {
		m.flags(id, flags)
	}
	if !moved {
		return nil
	}
	for _, other := range Ints(e["message_ids"]) {
		if other != id {
			m.remember(other, e)
		}
	}
	for _, id := range Ints(e["message_ids"]) {
		if u := m.unread[id]; u != nil {
			m.moved(e, func(topic string) { u.topic = topic }, func(stream int64) { u.stream = stream })
			if m.tables["subscriptions"] != nil && m.tables["subscriptions"][text(float64(u.stream))] == nil { // what lies in channels one is not in is read
				delete(m.unread, id)
			}
		}
		if o := m.messages[id]; o != nil {
			m.moved(e, func(topic string) { o["subject"], o["topic_links"] = topic, e["topic_links"] },
				func(stream int64) { o["stream_id"] = float64(stream) })
			if e["new_stream_id"] != nil || !resolves(str(e["orig_subject"]), str(e["subject"])) {
				o["last_moved_timestamp"] = e["edit_timestamp"]
			}
		}
	}
	return nil
}

// resolves reports a change of topic that only marks it resolved, or takes the mark off: that is no move.
func resolves(from, to string) bool {
	const mark = "✔ "
	return strings.TrimPrefix(from, mark) == to || strings.TrimPrefix(to, mark) == from
}

// flags are the whole truth about a message that was edited.
func (m *Mirror) flags(id int64, flags []any) {
	now := Object{"flags": flags}
	if o := m.messages[id]; o != nil {
		o["flags"] = flags
	}
	if u := m.unread[id]; u != nil {
		u.mentioned, u.wildcard = has(now, "mentioned"), has(now, "stream_wildcard_mentioned") ||
			has(now, "topic_wildcard_mentioned")
	}
}

func (m *Mirror) moved(e Object, topic func(string), stream func(int64)) {
	if t, ok := e["subject"].(string); ok {
		topic(t)
	}
	if s, ok := e["new_stream_id"].(float64); ok {
		stream(int64(s))
	}
}

func (m *Mirror) deleted(e Object) error {
	for _, id := range append(Ints(e["message_ids"]), Int(e["message_id"])) {
		delete(m.unread, id)
		delete(m.starred, id)
		delete(m.messages, id)
	}
	return nil
}

func (m *Mirror) flagged(e Object) error {
	flag, add := str(e["flag"]), str(e["op"]) == "add"
	if e["all"] == true && flag == "read" && add {
		clear(m.unread)
		for _, o := range m.messages {
			setFlag(o, "read", true)
		}
		return nil
	}
	details := object(e["message_details"])
	for _, id := range Ints(e["messages"]) {
		if o := m.messages[id]; o != nil {
			setFlag(o, flag, add)
		}
		switch {
		case flag == "starred" && add:
			m.starred[id] = true
		case flag == "starred":
			delete(m.starred, id)
		case flag == "read" && add:
			delete(m.unread, id)
		case flag == "read":
			d := object(details[text(float64(id))])
			if d == nil {
				return fmt.Errorf("message %d is unread again, without message_details", id)
			}
			u := &unread{stream: Int(d["stream_id"]), topic: str(d["topic"]), mentioned: d["mentioned"] == true}
			if str(d["type"]) == "private" {
				u.people = m.others(Ints(d["user_ids"])...)
			}
			m.unread[id] = u
		}
	}
	return nil
}

func reactionKey(o Object) string {
	return text(o["user_id"]) + " " + str(o["reaction_type"]) + " " + str(o["emoji_code"])
}

func (m *Mirror) reaction(e Object) error {
	o := m.messages[Int(e["message_id"])]
	if o == nil {
		return nil
	}
	list, _ := o["reactions"].([]any)
	var out []any
	for _, x := range list {
		if reactionKey(object(x)) != reactionKey(e) {
			out = append(out, x)
		}
	}
	if add := str(e["op"]) == "add"; add != (len(out) == len(list)) {
		return errors.New("a reaction twice, or none to remove")
	} else if add {
		out = append(out, e)
	}
	o["reactions"] = out
	return nil
}

func (m *Mirror) submessage(e Object) error {
	if o := m.messages[Int(e["message_id"])]; o != nil {
		list, _ := o["submessages"].([]any)
		o["submessages"] = append(list[:len(list):len(list)],
			Object{"id": e["submessage_id"], "message_id": e["message_id"], "sender_id": e["sender_id"],
				"msg_type": e["msg_type"], "content": e["content"]})
	}
	return nil
}

// Messages are the ids of those it compares.
func (m *Mirror) Messages() []int64 { return keys(m.messages) }

// DiffMessages compares what it knows of messages with what GET /messages says of them now.
func (m *Mirror) DiffMessages(body []byte) error {
	var v struct {
		Messages []Object `json:"messages"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	got := map[int64]Object{}
	for _, o := range v.Messages {
		got[Int(o["id"])] = o
	}
	for _, id := range m.Messages() {
		fresh := got[id]
		if fresh == nil {
			return fmt.Errorf("message %d was told by an event and not deleted, but GET /messages does not have "+
				"it: %.300s", id, canonical(m.messages[id]))
		}
		if p, _ := m.messages[id][pastKey].(*past); p != nil {
			if err := m.diffRevisions(p, fresh); err != nil {
				return fmt.Errorf("message %d: %w", id, err)
			}
		}
		x, y := m.facets(m.messages[id]), m.facets(fresh)
		for k := range x {
			if a, b := canonical(x[k]), canonical(y[k]); a != b {
				return fmt.Errorf("message %d, %s: %s by events, %s by GET /messages", id, k, a, b)
			}
		}
	}
	return nil
}

// facets are what a message has of its own. Its sender's and channel's names and pictures follow from users and channels.
func (m *Mirror) facets(o Object) Object {
	out := Object{}
	for _, k := range []string{"content", "content_type", "subject", "stream_id", "type", "sender_id", "timestamp",
		"is_me_message", "last_edit_timestamp", "last_moved_timestamp"} {
		out[k] = o[k]
	}
	links, subs := o["topic_links"], o["submessages"]
	if list, _ := links.([]any); len(list) == 0 {
		links = nil
	}
	if list, _ := subs.([]any); len(list) == 0 {
		subs = nil
	}
	out["topic_links"], out["submessages"] = links, subs
	var who []int64
	for _, p := range objects(o["display_recipient"]) {
		who = append(who, Int(p["id"]))
	}
	out["people"] = numbers(who)
	reactions, flags := map[string]bool{}, map[string]bool{}
	for _, r := range objects(o["reactions"]) {
		reactions[reactionKey(r)] = true
	}
	list, _ := o["flags"].([]any)
	for _, f := range list {
		// The first is a legacy name beside the others; the second says how one came to a message, which no event tells.
		if f != "wildcard_mentioned" && f != "historical" {
			flags[str(f)] = true
		}
	}
	if c := text(o["stream_id"]); o["stream_id"] != nil && m.tables["subscriptions"][c] == nil &&
		(m.flat["is_guest"] == true || m.tables["streams"][c]["invite_only"] == true) {
		clear(reactions) // guests, and all in private channels, hear of these where they are subscribed, though they may read more
		delete(out, "submessages")
	}
	out["reactions"], out["flags"] = strings.Join(keys(reactions), ", "), strings.Join(keys(flags), ", ")
	return out
}

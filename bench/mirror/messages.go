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
		return fmt.Errorf("message %d was sent twice", id)
	}
	if m.client.AllPublic && Int(o["stream_id"]) != 0 && m.tables["subscriptions"][idText(o["stream_id"])] == nil {
		return nil // sent only because of all_public_streams: no later event will change it
	}
	if t := m.tables["streams"]; t != nil && Int(o["stream_id"]) != 0 && t[idText(o["stream_id"])] == nil {
		return nil // the notice of an archived channel is sent to users that have already lost the channel
	}
	o = maps.Clone(o)
	o["flags"] = e["flags"]
	if o["last_edit_timestamp"] == nil && o["last_moved_timestamp"] == nil {
		o[historyKey] = &editHistory{topic: str(o["subject"]), content: o["content"]}
	}
	m.storeMessage(id, o)
	if !hasFlag(o, "read") {
		m.unread[id] = m.newUnread(o)
	}
	if hasFlag(o, "starred") {
		m.starred[id] = true
	}
	return nil
}

func (m *Mirror) storeMessage(id int64, o Object) {
	if m.messages[id] == nil {
		m.order = append(m.order, id)
	}
	m.messages[id] = o
	for len(m.order) > maxMessages {
		delete(m.messages, m.order[0])
		m.order = m.order[1:]
	}
}

// newUnread returns the position of an unread message.
func (m *Mirror) newUnread(o Object) *unread {
	u := &unread{mentioned: hasFlag(o, "mentioned"), wildcard: hasFlag(o, "stream_wildcard_mentioned") ||
		hasFlag(o, "topic_wildcard_mentioned")}
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

func hasFlag(o Object, flag string) bool {
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

func (m *Mirror) messageUpdated(e Object) error {
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
	m.recordEdit(id, e)
	if flags, ok := e["flags"].([]any); ok && edited && e["rendered_content"] != nil {
		m.replaceFlags(id, flags)
	}
	if !moved {
		return nil
	}
	for _, other := range Ints(e["message_ids"]) {
		if other != id {
			m.recordEdit(other, e)
		}
	}
	for _, id := range Ints(e["message_ids"]) {
		if u := m.unread[id]; u != nil {
			m.applyMove(e, func(topic string) { u.topic = topic }, func(stream int64) { u.stream = stream })
			// messages in channels without a subscription count as read
			if m.tables["subscriptions"] != nil && m.tables["subscriptions"][idText(float64(u.stream))] == nil {
				delete(m.unread, id)
			}
		}
		if o := m.messages[id]; o != nil {
			m.applyMove(e, func(topic string) { o["subject"], o["topic_links"] = topic, e["topic_links"] },
				func(stream int64) { o["stream_id"] = float64(stream) })
			if e["new_stream_id"] != nil || !resolves(str(e["orig_subject"]), str(e["subject"])) {
				o["last_moved_timestamp"] = e["edit_timestamp"]
			}
		}
	}
	return nil
}

// resolves reports whether a change of topic only adds or removes the mark of resolved topics, which is no move.
func resolves(from, to string) bool {
	const mark = "✔ "
	return strings.TrimPrefix(from, mark) == to || strings.TrimPrefix(to, mark) == from
}

// replaceFlags sets all flags of an edited message.
func (m *Mirror) replaceFlags(id int64, flags []any) {
	now := Object{"flags": flags}
	if o := m.messages[id]; o != nil {
		o["flags"] = flags
	}
	if u := m.unread[id]; u != nil {
		u.mentioned, u.wildcard = hasFlag(now, "mentioned"), hasFlag(now, "stream_wildcard_mentioned") ||
			hasFlag(now, "topic_wildcard_mentioned")
	}
}

func (m *Mirror) applyMove(e Object, topic func(string), stream func(int64)) {
	if t, ok := e["subject"].(string); ok {
		topic(t)
	}
	if s, ok := e["new_stream_id"].(float64); ok {
		stream(int64(s))
	}
}

func (m *Mirror) messagesDeleted(e Object) error {
	for _, id := range append(Ints(e["message_ids"]), Int(e["message_id"])) {
		delete(m.unread, id)
		delete(m.starred, id)
		delete(m.messages, id)
	}
	return nil
}

func (m *Mirror) flagsChanged(e Object) error {
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
			d := object(details[idText(float64(id))])
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
	return idText(o["user_id"]) + " " + str(o["reaction_type"]) + " " + str(o["emoji_code"])
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
		return errors.New("a reaction was added twice, or removed without existing")
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

// Messages returns the ids of the messages that are compared.
func (m *Mirror) Messages() []int64 { return keys(m.messages) }

// DiffMessages compares the stored messages with an answer of GET /messages.
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
			return fmt.Errorf("message %d was sent by an event and not deleted, but GET /messages does not contain "+
				"it: %.300s", id, canonical(m.messages[id]))
		}
		if p, _ := m.messages[id][historyKey].(*editHistory); p != nil {
			if err := m.diffRevisions(p, fresh); err != nil {
				return fmt.Errorf("message %d: %w", id, err)
			}
		}
		x, y := m.comparedFields(m.messages[id]), m.comparedFields(fresh)
		for k := range x {
			if a, b := canonical(x[k]), canonical(y[k]); a != b {
				return fmt.Errorf("message %d, %s: %s by events, %s by GET /messages", id, k, a, b)
			}
		}
	}
	return nil
}

// comparedFields returns the members that belong to the message itself. The names and pictures of its sender and
// channel follow from users and channels.
func (m *Mirror) comparedFields(o Object) Object {
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
		// The first is an old name next to the others; the second says how the user got the message, which no event
		// contains.
		if f != "wildcard_mentioned" && f != "historical" {
			flags[str(f)] = true
		}
	}
	if c := idText(o["stream_id"]); o["stream_id"] != nil && m.tables["subscriptions"][c] == nil &&
		(m.flat["is_guest"] == true || m.tables["streams"][c]["invite_only"] == true) {
		// guests, and all users in private channels, get these events only in subscribed channels, though they can
		// read more
		clear(reactions)
		delete(out, "submessages")
	}
	out["reactions"], out["flags"] = strings.Join(keys(reactions), ", "), strings.Join(keys(flags), ", ")
	return out
}

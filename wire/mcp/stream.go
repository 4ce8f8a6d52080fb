package mcp

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/valyala/fastjson"

	"parley/actors/realm"
	"parley/wire"
)

// ErrNoStream is the error of Stream for a session that has ended.
var ErrNoStream = errors.New("session not found")

// streamRetry tells the client to open the stream again after so many milliseconds.
const streamRetry = "retry: 100\n"

// streamedTypes are the events that change a resource.
var streamedTypes = []string{"message", "update_message", "delete_message"}

// openQueue opens the event queue of a session, if it has none. Keys with all rights of an account also get events of
// public channels to which the account is not subscribed.
func (s *Server) openQueue(c *wire.Call, x *session) error {
	s.sessions.mu.Lock()
	open := x.queue != ""
	s.sessions.mu.Unlock()
	if open {
		return nil
	}
	var a struct {
		Queue string `json:"queue_id"`
		Last  int64  `json:"last_event_id"`
	}
	p := params{"event_types": streamedTypes, "fetch_event_types": []string{}, "slim_presence": true,
		"client_capabilities": map[string]bool{"bulk_message_deletion": true, "empty_topic_name": true}}
	if c.Account.Role != realm.Guest {
		p["all_public_streams"] = true
	}
	if err := s.ask(c, "POST /register", &a, p); err != nil {
		return err
	}
	s.sessions.mu.Lock()
	if x.queue == "" {
		x.queue, x.last, a.Queue = realm.QueueID(a.Queue), a.Last, ""
	}
	s.sessions.mu.Unlock()
	if a.Queue != "" { // another request of the session was faster
		s.ask(c, "DELETE /events", nil, params{"queue_id": a.Queue})
	}
	return nil
}

// Stream parks a GET until the session's event queue has an event or a heartbeat, and answers with a stream that ends
// then. park parks the request. acked is the Last-Event-ID of the client, "" if it has none.
func (s *Server) Stream(c *wire.Call, id, acked string, park func(gone func()) wire.Reply) error {
	x := s.sessions.find(c, []byte(id), s.now())
	if x == nil {
		return ErrNoStream
	}
	if err := wire.CheckPollScope(c); err != nil {
		return err
	}
	if err := s.openQueue(c, x); err != nil {
		return err
	}
	w, server := &StreamReply{}, c.Server
	p := s.poll(c, x, acked, w)
	w.Reply = park(func() { server.CancelPoll(p) })
	server.Poll(p)
	return nil
}

// PrepareStream is Stream for callers that must not block, and that have checked the scope of the key as Stream does. It
// returns the poll that the caller sends after it has parked the request, and that w answers; the caller sets w.Reply.
// It reports false if Stream must be used.
func (s *Server) PrepareStream(
	c *wire.Call, id []byte, acked string, w *StreamReply,
) (p wire.PollRequest, ok bool) {
	x := s.sessions.find(c, id, s.now())
	if x == nil {
		return p, false
	}
	p = s.poll(c, x, acked, w)
	return p, p.Queue != ""
}

// poll returns the poll of a session's event queue, which w answers.
func (s *Server) poll(c *wire.Call, x *session, acked string, w *StreamReply) wire.PollRequest {
	s.sessions.mu.Lock()
	queue, last := x.queue, x.last
	s.sessions.mu.Unlock()
	if n, err := strconv.ParseInt(acked, 10, 64); err == nil && n >= -1 && n <= last {
		last = n
	}
	w.server, w.session = s, x
	p := wire.NewPoll(c, queue, last)
	p.Reply = w
	return p
}

// StreamReply turns the answer to a poll into an event stream.
type StreamReply struct {
	wire.Reply
	server  *Server
	session *session
}

// maxInline is the size of an answer in bytes that the session actor itself turns into a stream: ten messages, which
// take some microseconds.
const maxInline = 16 << 10

// Answer turns an answer to a poll into a stream. Large ones are turned by another goroutine, because the session actor
// must not wait for it. The session actor then does not see whether the client has left: an update can be lost, and the
// client reads its resources again.
func (w *StreamReply) Answer(status int, parts ...[]byte) bool {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size <= maxInline {
		return w.answer(status, parts)
	}
	whole := bytes.Join(parts, nil)
	ends := make([][]byte, len(parts)) // the caller uses its parts again
	for i, part := range parts {
		ends[i], whole = whole[:len(part):len(part)], whole[len(part):]
	}
	go w.answer(status, ends)
	return true
}

func (w *StreamReply) answer(status int, parts [][]byte) bool {
	if status != 200 {
		t := &w.server.sessions
		t.mu.Lock()
		t.remove(w.session) // the queue has ended, and the session with it
		t.mu.Unlock()
		return w.Reply.Answer(404, parts...)
	}
	return w.Reply.Answer(200, w.stream(parts))
}

// streamedEvent is an event of the queue, as far as it names the change.
type streamedEvent struct {
	message              bool
	channel, newChannel  int64
	topic, old, newTopic *string
	users                []int64 // of a direct message, sorted
}

// newStreamedEvent returns an event of a queue.
func newStreamedEvent(v *fastjson.Value) (e streamedEvent) {
	if string(v.GetStringBytes("type")) != "message" {
		return streamedEvent{channel: v.GetInt64("stream_id"), newChannel: v.GetInt64("new_stream_id"),
			topic: textPointer(v, "topic"), old: textPointer(v, "orig_subject"), newTopic: textPointer(v, "subject")}
	}
	m := v.Get("message")
	e.message, e.channel, e.topic = true, m.GetInt64("stream_id"), textPointer(m, "subject")
	if e.channel == 0 {
		for _, u := range m.GetArray("display_recipient") {
			e.users = append(e.users, u.GetInt64("id"))
		}
		slices.Sort(e.users)
	}
	return e
}

// changes reports whether an event changes a resource.
func (e *streamedEvent) changes(p place) bool {
	switch {
	case e.message && e.channel != 0:
		return p.has(e.channel, e.topic)
	case e.message:
		return p.Channel == 0 && slices.Equal(e.users, p.Users)
	}
	before := e.topic
	if e.old != nil {
		before = e.old
	}
	if p.has(e.channel, before) {
		return true
	}
	after, topic := e.channel, e.newTopic
	if e.newChannel != 0 {
		after = e.newChannel
	}
	if topic == nil {
		topic = before
	}
	return p.has(after, topic)
}

// parsedEvent is an event with the bytes that it was parsed from.
type parsedEvent struct {
	json  []byte
	event streamedEvent
	known bool // else it changes no resource, as a heartbeat
}

// parsedOf parses an event without its id and its last brace. Each session gets the same event in the same bytes, one
// after the other, so the newest one is kept.
func (s *Server) parsedOf(json []byte) *parsedEvent {
	if x := s.parsed.Load(); x != nil && bytes.Equal(x.json, json) {
		return x
	}
	x := &parsedEvent{json: append(bytes.Clone(json), '}')}
	if parse(x.json, func(v *fastjson.Value) {
		if x.known = string(v.GetStringBytes("type")) != "heartbeat"; x.known {
			x.event = newStreamedEvent(v)
		}
	}) != nil {
		return x
	}
	x.json = x.json[:len(json)]
	s.parsed.Store(x)
	return x
}

// updatedHead and updatedTail are the data of an event of the stream before and after the URI of the resource that has
// changed.
const (
	updatedHead = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":`
	updatedTail = "}}"
)

// stream returns the event stream for an answer of the queue, and records the newest event of it.
func (w *StreamReply) stream(parts [][]byte) []byte {
	var room [4]*parsedEvent
	events, last := room[:0], int64(-1)
	wire.EachEvent(parts, func(json []byte, id int64) {
		last = id
		if e := w.server.parsedOf(json); e.known {
			events = append(events, e)
		}
	})
	w.server.sessions.mu.Lock()
	defer w.server.sessions.mu.Unlock()
	x := w.session
	x.last = max(x.last, last)
	out := append(make([]byte, 0, 256), streamRetry...)
	changed := false
	for i := range x.subs {
		p := &x.subs[i]
		if !slices.ContainsFunc(events, func(e *parsedEvent) bool { return e.event.changes(p.place) }) {
			continue
		}
		changed = true
		out = append(out, "event: message\nid: "...)
		out = strconv.AppendInt(out, x.last, 10)
		out = append(out, "\ndata: "...)
		out = append(out, updatedHead...)
		out = append(out, p.uri...)
		out = append(out, updatedTail+"\n\n"...)
	}
	if !changed {
		return append(out, ": nothing has changed\n\n"...)
	}
	return out
}

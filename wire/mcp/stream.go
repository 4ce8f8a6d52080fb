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
	x := s.sessions.find(c, id, s.now())
	if x == nil {
		return ErrNoStream
	}
	if err := s.openQueue(c, x); err != nil {
		return err
	}
	s.sessions.mu.Lock()
	queue, last := x.queue, x.last
	s.sessions.mu.Unlock()
	if n, err := strconv.ParseInt(acked, 10, 64); err == nil && n >= -1 && n <= last {
		last = n
	}
	p, server := wire.NewPoll(c, queue, last), c.Server
	w := &streamReply{sessions: &s.sessions, session: x, id: id}
	w.Reply = park(func() {
		p := p
		p.Reply = w
		server.CancelPoll(p)
	})
	p.Reply = w
	server.Poll(p)
	return nil
}

// streamReply turns the answer to a poll into an event stream.
type streamReply struct {
	wire.Reply
	sessions *sessionTable
	session  *session
	id       string
}

// maxInline is the size of an answer in bytes that the session actor itself turns into a stream: ten messages, which
// take some microseconds.
const maxInline = 16 << 10

// Answer turns an answer to a poll into a stream. Large ones are turned by another goroutine, because the session actor
// must not wait for it. The session actor then does not see whether the client has left: an update can be lost, and the
// client reads its resources again.
func (w *streamReply) Answer(status int, parts ...[]byte) bool {
	body := bytes.Join(parts, nil)
	if len(body) <= maxInline {
		return w.answer(status, body)
	}
	go w.answer(status, body)
	return true
}

func (w *streamReply) answer(status int, body []byte) bool {
	if status != 200 {
		w.sessions.mu.Lock()
		if w.sessions.list[w.id] == w.session { // the queue has ended, and the session with it
			w.sessions.remove(w.id, w.session)
		}
		w.sessions.mu.Unlock()
		return w.Reply.Answer(404, body)
	}
	return w.Reply.Answer(200, w.stream(body))
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

// stream returns the event stream for an answer of the queue, and records the newest event of it.
func (w *streamReply) stream(body []byte) []byte {
	out := []byte(streamRetry)
	var events []streamedEvent
	last := int64(-1)
	if parse(body, func(a *fastjson.Value) {
		for _, v := range a.GetArray("events") {
			last = v.GetInt64("id")
			if string(v.GetStringBytes("type")) != "heartbeat" {
				events = append(events, newStreamedEvent(v))
			}
		}
	}) != nil {
		return append(out, '\n')
	}
	w.sessions.mu.Lock()
	defer w.sessions.mu.Unlock()
	var uris []string
	for uri, p := range w.session.subs {
		if slices.ContainsFunc(events, func(e streamedEvent) bool { return e.changes(p) }) {
			uris = append(uris, uri)
		}
	}
	w.session.last = max(w.session.last, last)
	slices.Sort(uris)
	if len(uris) == 0 {
		return append(out, ": nothing has changed\n\n"...)
	}
	for _, uri := range uris {
		out = append(out, "event: message\nid: "...)
		out = strconv.AppendInt(out, w.session.last, 10)
		out = append(out, "\ndata: "+`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":`...)
		out = append(out, encode(uriParams{uri})...)
		out = append(out, "}\n\n"...)
	}
	return out
}

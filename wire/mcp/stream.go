package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

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

// Answer sends the answer from another goroutine, because the session actor must not decode it. So the session actor
// does not see whether the client has left: an update can be lost then, and the client reads its resources again.
func (w *streamReply) Answer(status int, parts ...[]byte) bool {
	body := bytes.Join(parts, nil)
	go func() {
		if status != 200 {
			w.sessions.mu.Lock()
			if w.sessions.list[w.id] == w.session { // the queue has ended, and the session with it
				w.sessions.remove(w.id, w.session)
			}
			w.sessions.mu.Unlock()
			w.Reply.Answer(404, body)
			return
		}
		w.Reply.Answer(200, w.stream(body))
	}()
	return true
}

// streamedEvent is an event of the queue, as far as it names the change.
type streamedEvent struct {
	Type    string `json:"type"`
	ID      int64  `json:"id"`
	Message struct {
		Channel   int64           `json:"stream_id"`
		Topic     string          `json:"subject"`
		Recipient json.RawMessage `json:"display_recipient"`
	} `json:"message"`
	Channel    int64   `json:"stream_id"`
	NewChannel int64   `json:"new_stream_id"`
	Topic      *string `json:"topic"`
	OldTopic   *string `json:"orig_subject"`
	NewTopic   *string `json:"subject"`
}

// changes reports whether an event changes a resource.
func (e *streamedEvent) changes(p place) bool {
	if e.Type == "message" {
		if e.Message.Channel != 0 {
			return p.has(e.Message.Channel, &e.Message.Topic)
		}
		var users []user
		json.Unmarshal(e.Message.Recipient, &users)
		var ids []int64
		for _, u := range users {
			ids = append(ids, u.ID)
		}
		slices.Sort(ids)
		return p.Channel == 0 && slices.Equal(ids, p.Users)
	}
	before := e.Topic
	if e.OldTopic != nil {
		before = e.OldTopic
	}
	if p.has(e.Channel, before) {
		return true
	}
	after := e.Channel
	if e.NewChannel != 0 {
		after = e.NewChannel
	}
	if e.NewTopic == nil {
		e.NewTopic = before
	}
	return p.has(after, e.NewTopic)
}

// stream returns the event stream for an answer of the queue, and records the newest event of it.
func (w *streamReply) stream(body []byte) []byte {
	var a struct {
		Events []streamedEvent `json:"events"`
	}
	out := []byte(streamRetry)
	if json.Unmarshal(body, &a) != nil {
		return append(out, '\n')
	}
	w.sessions.mu.Lock()
	defer w.sessions.mu.Unlock()
	changed := map[string]bool{}
	for i := range a.Events {
		e := &a.Events[i]
		if e.Type == "heartbeat" {
			continue
		}
		for uri, p := range w.session.subs {
			if !changed[uri] && e.changes(p) {
				changed[uri] = true
			}
		}
	}
	if n := len(a.Events); n > 0 {
		w.session.last = max(w.session.last, a.Events[n-1].ID)
	}
	uris := make([]string, 0, len(changed))
	for uri := range changed {
		uris = append(uris, uri)
	}
	slices.Sort(uris)
	if len(uris) == 0 {
		return append(out, ": nothing has changed\n\n"...)
	}
	for _, uri := range uris {
		out = append(out, "event: message\nid: "...)
		out = strconv.AppendInt(out, w.session.last, 10)
		out = append(out, "\ndata: "...)
		out = append(out, encode(map[string]any{"jsonrpc": "2.0", "method": "notifications/resources/updated",
			"params": uriParams{uri}})...)
		out = append(out, "\n\n"...)
	}
	return out
}

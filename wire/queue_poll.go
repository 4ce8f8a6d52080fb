package wire

import (
	"bytes"
	"slices"
	"strconv"
	"sync"

	"parley/actors/queue"
	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

var eventEndpoints = []Endpoint{
	Custom("GET", "/events", getEvents),
	CommandFromForm("DELETE", "/events", dropQueue, emptyAnswer),
}

type eventsAnswer struct {
	Events []eventJSON   `json:"events"`
	Queue  realm.QueueID `json:"queue_id"`
}

// eventJSON is an event of any kind, see eventShapes.
type eventJSON struct{}

// JSONShape returns the alternatives.
func (eventJSON) JSONShape() *shape.Shape {
	return &shape.Shape{AnyOf: each(eventShapes, func(e eventShape) *shape.Shape { return e.Shape })}
}

// Heartbeat is the event that only shows that the connection works.
var Heartbeat = &queue.Event{JSON: withoutClosingBrace(encode(heartbeatEvent{}))}

type heartbeatEvent struct {
	_ struct{} `const:"type=heartbeat"`
}

type getEventsForm struct {
	Queue     form.Opt[string] `form:"queue_id"`
	Last      form.Opt[int64]  `form:"last_event_id"`
	DontBlock bool             `form:"dont_block"`
}

// Check words a missing parameter as the protocol does here: without var_name.
func (f *getEventsForm) Check() *form.Error {
	if !f.Queue.Set && f.DontBlock {
		return nil // the request opens a new queue
	}
	if !f.Queue.Set {
		return form.Bad("Missing 'queue_id' argument")
	}
	if !f.Last.Set {
		return form.Bad("Missing 'last_event_id' argument")
	}
	return nil
}

func getEvents(c *Call, f getEventsForm) (*eventsAnswer, error) {
	if !f.Queue.Set {
		return openQueue(c)
	}
	p := f.request(c)
	// Polls are compared by the identity of their Reply, so CancelPoll must pass the same one.
	server := c.Server
	w := &pollReply{ignored: ignoredByPolls(c)}
	w.Reply = c.Park(func() {
		p := p
		p.Reply = w
		server.CancelPoll(p)
	})
	p.Reply = w
	server.Poll(p)
	return nil, errParked
}

var openQueueForm = form.Of[queueForm]()

// openQueue opens a queue for a client that requests events without one. The client gets no initial state; old
// programs worked like this before registration existed. Such clients get avatar URLs unless they declare that they
// compute them.
func openQueue(c *Call) (*eventsAnswer, error) {
	var f queueForm
	if err := openQueueForm.Decode(c.Params, &f); err != nil {
		return nil, err
	}
	c.ignored = ignoredByPolls(c)
	if !f.Gravatar.Set {
		f.Gravatar = form.Opt[bool]{Set: true}
	}
	q, err := f.queue(c)
	if err != nil {
		return nil, err
	}
	r, err := Execute(c, realm.Register{Queue: q, AllPublicGiven: f.AllPublic.Set,
		State: func(realm.View, *realm.Queue) (any, error) { return nil, nil }})
	if err != nil {
		return nil, err
	}
	return &eventsAnswer{Queue: r.Queue.ID}, nil
}

// ignoredByPolls returns the parameters that have no meaning for polls. The parameters of a new queue are accepted on
// polls of existing queues too.
func ignoredByPolls(c *Call) []string {
	known := openQueueForm.Ignored(c.Params)
	return slices.DeleteFunc(c.ignored, func(name string) bool { return !slices.Contains(known, name) })
}

// pollReply gives each poll an identity and remembers the ignored parameters to report.
type pollReply struct {
	Reply
	ignored []string
}

// Answer adds the ignored parameters to an answer with events.
func (w *pollReply) Answer(status int, parts ...[]byte) bool {
	if status == 200 && len(w.ignored) > 0 {
		last := len(parts) - 1
		rest := append([]byte(`,"ignored_parameters_unsupported":`), encode(w.ignored)...)
		parts = append(slices.Clone(parts[:last]), bytes.TrimSuffix(parts[last], eventsEnd), rest, eventsEnd)
	}
	return w.Reply.Answer(status, parts...)
}

type dropQueueForm struct {
	Queue string `form:"queue_id,required"`
}

func dropQueue(f dropQueueForm) realm.CloseQueue {
	return realm.CloseQueue{ID: realm.QueueID(f.Queue)}
}

// The constant parts of an answer to a poll.
var (
	eventsComma = []byte(",")
	eventsHead  = []byte(`{"result":"success","msg":"","events":[`)
	eventsTail  = []byte(`],"queue_id":"`)
	eventsClose = []byte("\"}\n")
	eventsEnd   = eventsClose[1:]
)

// maxPollAnswerBytes is the approximate size of an answer to a poll. The client gets the rest with its next poll.
// Without the limit, a client that is far behind on an unreliable connection could never receive a complete answer.
const maxPollAnswerBytes = 1 << 20

// pollAnswerBuffer is the reusable memory of an answer to a poll. parts points into shared events and into own.
type pollAnswerBuffer struct {
	parts [][]byte
	own   []byte
}

var pollAnswerPool = sync.Pool{New: func() any { return new(pollAnswerBuffer) }}

// maxPooledParts is the largest number of parts that is kept for the next answer: 100 kB for each processor. An answer
// of an overloaded server has as many.
const maxPooledParts = 4096

// AnswerPoll answers a poll with events: shared event bytes, each followed by the queue's own event id. It returns the
// weight of the answer, and reports whether all events fit into it. It ends before an event that cannot be encoded now,
// or answers with the error if that is the first one.
func AnswerPoll(r Reply, id realm.QueueID, events []queue.UnackedEvent) (weight int, complete bool) {
	buffer := pollAnswerPool.Get().(*pollAnswerBuffer)
	parts, own := append(buffer.parts[:0], eventsHead), buffer.own[:0]
	size, done := 0, 0
	for _, unacked := range events {
		json, err := unacked.Event.Bytes()
		if err != nil {
			if size > 0 {
				break
			}
			AnswerError(r, err)
			return 0, false
		}
		done++
		if json == nil {
			continue // the message was erased before delivery
		}
		if size > 0 {
			parts = append(parts, eventsComma)
		}
		from := len(own)
		own = append(own, eventIDHead...)
		own = strconv.AppendInt(own, unacked.ID, 10)
		own = append(own, '}')
		weight += queue.Weight(len(json))
		parts = append(parts, json, own[from:]) // stays valid when own is reallocated, because old bytes do not change
		if size += len(json) + 32; size >= maxPollAnswerBytes {
			break
		}
	}
	from := len(own)
	own = append(own, eventsTail...)
	own = append(own, id...)
	own = append(own, eventsClose...)
	parts = append(parts, own[from:])
	r.Answer(200, parts...)
	if cap(parts) <= maxPooledParts {
		clear(parts)
		buffer.parts, buffer.own = parts, own
		pollAnswerPool.Put(buffer)
	}
	return weight, done == len(events)
}

// EachEvent calls fn with each event of the parts that AnswerPoll has answered with: its JSON without the id and the last
// brace, and its id.
func EachEvent(parts [][]byte, fn func(json []byte, id int64)) {
	for i := 1; i+1 < len(parts); i++ {
		digits, ok := bytes.CutPrefix(parts[i+1], eventIDHead)
		if !ok {
			continue // a comma, or the id of the event before
		}
		id, err := strconv.ParseInt(string(bytes.TrimSuffix(digits, eventIDEnd)), 10, 64)
		if err == nil {
			fn(parts[i], id)
		}
	}
}

var eventIDHead, eventIDEnd = []byte(`,"id":`), []byte("}")

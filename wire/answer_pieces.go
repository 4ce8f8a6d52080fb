package wire

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"parley/actors/queue"
	"parley/actors/realm"
	"parley/wire/form"
)

// FeatureLevel is the protocol level this server speaks; Version is what it calls itself to clients.
const (
	FeatureLevel = 494
	Version      = "12.0"
)

var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// encode is JSON as the protocol writes it: nothing escaped for HTML, no newline.
func encode(v any) []byte { return encodeWithSuffix(v, "") }

// encodeLine is encode with a newline.
func encodeLine(v any) []byte { return encodeWithSuffix(v, "\n") }

func encodeWithSuffix(v any, end string) []byte {
	b := bufferPool.Get().(*[]byte)
	*b = append(appendJSON((*b)[:0], v), end...)
	out := bytes.Clone(*b)
	if cap(*b) <= 1<<20 { // a rare giant must not stay in the pool
		bufferPool.Put(b)
	}
	return out
}

// Success is the body of a success; ignored names parameters nobody consumed.
func Success(a Answer, ignored []string) []byte {
	out := make(Answer, len(a)+3)
	maps.Copy(out, a)
	return encodeLine(addSuccessFields(out, ignored))
}

// addSuccessFields puts what every success has into an answer.
func addSuccessFields(a Answer, ignored []string) Answer {
	if _, ok := a["msg"]; !ok {
		a["msg"] = ""
	}
	a["result"] = "success"
	if len(ignored) > 0 {
		a["ignored_parameters_unsupported"] = ignored
	}
	return a
}

// Fragments is JSON that is encoded already, cut where shared bytes begin and end. They are written one after another
// without ever being one.
type Fragments []Fragment

// Fragment is one of Fragments.
type Fragment struct {
	JSON   []byte
	Shared bool             // other answers have the same memory in them, so that it pays to remember what was made of it
	Run    *SharedFragments // instead of JSON
}

// SharedFragments is pieces that other answers have, too, all of them in this order. They do not change.
type SharedFragments struct {
	Fragments
	Derived atomic.Value // what whoever sends them made of them all
	size    int
}

// NewSharedFragments makes a run of pieces that are none themselves.
func NewSharedFragments(p Fragments) *SharedFragments {
	return &SharedFragments{Fragments: p, size: p.Len()}
}

// EncodedFields in an answer are more of its members, name and value, encoded already; the key they are under is not told.
type EncodedFields struct{ Fragment }

// rawJSON is a value that is encoded already, in a piece with what is around it.
type rawJSON []byte

// ownFragment is a piece of one answer alone, shared one of many.
func ownFragment(b []byte) Fragment    { return Fragment{JSON: b} }
func sharedFragment(b []byte) Fragment { return Fragment{JSON: b, Shared: true} }

// Len is how many bytes the pieces are.
func (p Fragments) Len() (n int) {
	for _, x := range p {
		if n += len(x.JSON); x.Run != nil {
			n += x.Run.size
		}
	}
	return n
}

// Each calls fn for each piece, those of runs too.
func (p Fragments) Each(fn func(json []byte)) {
	for _, x := range p {
		if x.Run != nil {
			x.Run.Each(fn)
		} else {
			fn(x.JSON)
		}
	}
}

// Bytes is the pieces as one.
func (p Fragments) Bytes() []byte { return appendJSON(make([]byte, 0, p.Len()), p) }

// MarshalJSON is for whoever does not mind a copy.
func (p Fragments) MarshalJSON() ([]byte, error) { return p.Bytes(), nil }

// SuccessFragments is Success without copying what the answer holds in pieces; nil if it holds none.
func SuccessFragments(a Answer, ignored []string) (out Fragments) {
	var names []string
	rest := make(Answer, len(a)+3)
	for name, v := range a {
		switch v.(type) {
		case Fragments, EncodedFields:
			names = append(names, name)
		default:
			rest[name] = v
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	body := encodeLine(addSuccessFields(rest, ignored))
	n := 2 + 2*len(names)
	for _, name := range names {
		if p, ok := a[name].(Fragments); ok {
			n += len(p)
		}
	}
	out = make(Fragments, 0, n)
	out = append(out, ownFragment(body[:len(body)-2])) // up to the closing brace and newline
	for _, name := range names {
		switch x := a[name].(type) {
		case Fragments:
			out = append(append(out, ownFragment([]byte(`,"`+name+`":`))), x...)
		case EncodedFields:
			out = append(out, comma, x.Fragment)
		}
	}
	return append(out, ownFragment([]byte("}\n")))
}

// Failure is the status and body of an error.
func Failure(err error) (int, []byte) {
	var f *form.Error
	if errors.As(err, &f) {
		status := 400
		if f.RouteMiss {
			status = 404
		}
		return status, errorBody(f.Code, f.Msg, f.Fields)
	}
	var r *realm.Refusal
	if errors.As(err, &r) {
		return statusOfKind[r.Kind], errorBody(r.Code, r.Msg, r.Data)
	}
	return 500, []byte(`{"result":"error","msg":"Internal server error"}` + "\n")
}

var statusOfKind = map[realm.RefusalKind]int{realm.Invalid: 400, realm.Unauthenticated: 401, realm.Forbidden: 403, realm.NotFound: 404, realm.TooMany: 429, realm.Busy: 503, realm.TooLarge: 413, realm.BadGateway: 502}

func errorBody(code, msg string, fields map[string]any) []byte {
	out := make(Answer, len(fields)+3)
	maps.Copy(out, fields)
	out["result"], out["msg"] = "error", msg
	if code != "" {
		out["code"] = code
	}
	return encodeLine(out)
}

// AnswerError answers a parked request with an error.
func AnswerError(r Reply, err error) {
	status, body := Failure(err)
	r.Answer(status, body)
}

// The pieces of an answer to a poll beside its events.
var (
	eventsComma = []byte(",")
	eventsHead  = []byte(`{"result":"success","msg":"","events":[`)
	eventsTail  = []byte(`],"queue_id":"`)
	eventsClose = []byte("\"}\n")
	eventsEnd   = eventsClose[1:]
)

// maxPollAnswerBytes is about how long an answer to a poll gets, in bytes; the client hears the rest when it asks again. One
// that is far behind, on a line that breaks now and then, would else never get any answer whole.
const maxPollAnswerBytes = 1 << 20

// pollAnswerBuffer is the memory of an answer in the making; its parts lie in shared events and in own.
type pollAnswerBuffer struct {
	parts [][]byte
	own   []byte
}

var pollAnswerPool = sync.Pool{New: func() any { return new(pollAnswerBuffer) }}

// maxPooledParts is how many parts may be kept for the next answer.
const maxPooledParts = 64

// AnswerPoll answers a poll: shared event bytes joined with the queue's own ids.
func AnswerPoll(r Reply, id realm.QueueID, events []queue.UnackedEvent) {
	x := pollAnswerPool.Get().(*pollAnswerBuffer)
	parts, own := append(x.parts[:0], eventsHead), x.own[:0]
	size := 0
	for _, h := range events {
		j := h.Event.Bytes()
		if j == nil {
			continue // the message was erased before it was delivered
		}
		if size > 0 {
			parts = append(parts, eventsComma)
		}
		from := len(own)
		own = append(own, `,"id":`...)
		own = strconv.AppendInt(own, h.ID, 10)
		own = append(own, '}')
		parts = append(parts, j, own[from:]) // stays right when own moves: what was there is not changed
		if size += len(j) + 32; size >= maxPollAnswerBytes {
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
		x.parts, x.own = parts, own
		pollAnswerPool.Put(x)
	}
}

// Heartbeat is the event that only says the connection lives.
var Heartbeat = &queue.Event{JSON: []byte(`{"type":"heartbeat"`)}

// obj is a JSON object written in place.
type obj = map[string]any

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

// FeatureLevel is the protocol level of this server. Version is the server version that clients see.
const (
	FeatureLevel = 494
	Version      = "12.0"
)

// bufferPool holds buffers for encoding.
var bufferPool = sync.Pool{New: func() any { return new([]byte) }}

// encode returns JSON as the protocol has it: no HTML escapes, no newline.
func encode(v any) []byte { return encodeWithSuffix(v, "") }

// encodeLine is encode with a newline.
func encodeLine(v any) []byte { return encodeWithSuffix(v, "\n") }

func encodeWithSuffix(v any, end string) []byte {
	b := bufferPool.Get().(*[]byte)
	*b = append(appendJSON((*b)[:0], v), end...)
	out := bytes.Clone(*b)
	if cap(*b) <= 1<<20 { // a rare large buffer must not stay in the pool
		bufferPool.Put(b)
	}
	return out
}

// Success returns the body of a success. ignored names the parameters that the endpoint does not know.
func Success(a Answer, ignored []string) []byte {
	out := make(Answer, len(a)+3)
	maps.Copy(out, a)
	return encodeLine(addSuccessFields(out, ignored))
}

// addSuccessFields adds the fields that every success has.
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

// Fragments is encoded JSON in several parts. Parts that other answers contain too share their memory. The parts are
// written one after another without being joined.
type Fragments []Fragment

// Fragment is one part of Fragments.
type Fragment struct {
	JSON   []byte
	Shared bool             // other answers contain the same memory, so caching a derived form (compressed bytes) pays
	Run    *SharedFragments // instead of JSON
}

// SharedFragments is a sequence of fragments that other answers contain in the same order. They do not change.
type SharedFragments struct {
	Fragments
	Derived atomic.Value // a value that the sender computed from them, such as their compressed bytes
	size    int
}

// NewSharedFragments returns a shared sequence. The fragments must not contain shared sequences themselves.
func NewSharedFragments(p Fragments) *SharedFragments {
	return &SharedFragments{Fragments: p, size: p.Len()}
}

// EncodedFields in an Answer is several encoded fields, names and values. The key it is stored under is not sent.
type EncodedFields struct{ Fragment }

// rawJSON is an encoded value that is copied into the surrounding JSON.
type rawJSON []byte

// ownFragment is a fragment of one answer, sharedFragment one that many answers contain.
func ownFragment(b []byte) Fragment    { return Fragment{JSON: b} }
func sharedFragment(b []byte) Fragment { return Fragment{JSON: b, Shared: true} }

// Len returns the total number of bytes.
func (p Fragments) Len() (n int) {
	for _, x := range p {
		if n += len(x.JSON); x.Run != nil {
			n += x.Run.size
		}
	}
	return n
}

// Each calls fn for each fragment, including those of shared sequences.
func (p Fragments) Each(fn func(json []byte)) {
	for _, x := range p {
		if x.Run != nil {
			x.Run.Each(fn)
		} else {
			fn(x.JSON)
		}
	}
}

// Bytes returns the joined fragments.
func (p Fragments) Bytes() []byte { return appendJSON(make([]byte, 0, p.Len()), p) }

// MarshalJSON is for callers that accept a copy.
func (p Fragments) MarshalJSON() ([]byte, error) { return p.Bytes(), nil }

// SuccessFragments is Success without copying the Fragments and EncodedFields of the answer. It returns nil if the
// answer has none.
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
	out = append(out, ownFragment(body[:len(body)-2])) // without the closing brace and newline
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

// Failure returns the status and body for an error. Form errors and refusals have their own; any other error is an
// internal server error, whose text is not sent.
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

// statusOfKind is the HTTP status of each kind of refusal.
var statusOfKind = map[realm.RefusalKind]int{realm.Invalid: 400, realm.Unauthenticated: 401, realm.Forbidden: 403,
	realm.NotFound: 404, realm.TooMany: 429, realm.Busy: 503, realm.TooLarge: 413, realm.BadGateway: 502}

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

// maxPooledParts is the largest number of parts that is kept for the next answer.
const maxPooledParts = 64

// AnswerPoll answers a poll with events: shared event bytes, each followed by the queue's own event id.
func AnswerPoll(r Reply, id realm.QueueID, events []queue.UnackedEvent) {
	buffer := pollAnswerPool.Get().(*pollAnswerBuffer)
	parts, own := append(buffer.parts[:0], eventsHead), buffer.own[:0]
	size := 0
	for _, unacked := range events {
		json := unacked.Event.Bytes()
		if json == nil {
			continue // the message was erased before delivery
		}
		if size > 0 {
			parts = append(parts, eventsComma)
		}
		from := len(own)
		own = append(own, `,"id":`...)
		own = strconv.AppendInt(own, unacked.ID, 10)
		own = append(own, '}')
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
}

// Heartbeat is the event that only shows that the connection works.
var Heartbeat = &queue.Event{JSON: []byte(`{"type":"heartbeat"`)}

// obj is a JSON object written in place.
type obj = map[string]any

package wire

import (
	"sync"
	"sync/atomic"

	"parley/actors/realm"
)

const (
	// maxHeldEncoding is the size of the largest encoding, in bytes, that an event holds until every queue has
	// acknowledged it, although it could be encoded again.
	maxHeldEncoding = 16 << 10
	// MaxEncodingBytes is how many bytes of larger encodings are shared. The queues that wait for an event need it at
	// once, and those of all session actors need the same one; queues that are behind read it from the disk again.
	MaxEncodingBytes = 16 << 20
)

// EventEncodings holds the newest large encodings of events, up to MaxEncodingBytes. It is safe for concurrent use. A
// nil one holds nothing.
type EventEncodings struct {
	bytes, dropped atomic.Int64

	mu     sync.Mutex
	byKey  map[eventEncoding][]byte
	oldest []eventEncoding // in the order of their addition
}

// eventEncoding identifies one encoding: an event by its address, and all that its bytes depend on.
type eventEncoding struct {
	event   realm.Event
	variant variant
	local   string // local_message_id
}

// NewEventEncodings returns an empty one.
func NewEventEncodings() *EventEncodings { return &EventEncodings{byKey: map[eventEncoding][]byte{}} }

// find returns an encoding, or nil.
func (e *EventEncodings) find(key eventEncoding) []byte {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byKey[key]
}

// add adds an encoding if it is large. The oldest ones are dropped if all take too many bytes.
func (e *EventEncodings) add(key eventEncoding, json []byte) {
	if e == nil || len(json) <= maxHeldEncoding {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKey[key] != nil {
		return // two session actors encoded it at the same time
	}
	e.byKey[key] = json
	e.oldest = append(e.oldest, key)
	for e.bytes.Add(int64(len(json))); e.bytes.Load() > MaxEncodingBytes && len(e.oldest) > 1; e.dropped.Add(1) {
		first := e.oldest[0]
		e.oldest[0] = eventEncoding{}
		e.oldest = e.oldest[1:]
		e.bytes.Add(int64(-len(e.byKey[first])))
		delete(e.byKey, first)
	}
}

// Bytes returns the size of all encodings. Dropped returns how many were dropped.
func (e *EventEncodings) Bytes() int64   { return e.bytes.Load() }
func (e *EventEncodings) Dropped() int64 { return e.dropped.Load() }

// Package queue is one event queue as plain data: append, poll, acknowledge, beat, expire. The session that owns it
// gives it the time and carries out what it answers.
package queue

import (
	"sort"

	"parley/actors/realm"
)

// Event is one client event, encoded up to its id: `{"type":…` without the closing brace. Make encodes it when the
// bytes are first needed; it belongs to one session shard, so nothing locks.
type Event struct {
	JSON []byte
	Make func() []byte
}

// Bytes is the event's JSON without id and closing brace; nil if the event turned out to be nothing.
func (e *Event) Bytes() []byte {
	if e.Make != nil {
		e.JSON, e.Make = e.Make(), nil
	}
	return e.JSON
}

// UnackedEvent is an event that the client has not acknowledged.
type UnackedEvent struct {
	ID    int64
	Event *Event
}

// Limits of one queue.
const (
	// MaxUnacked is how many unacknowledged events a queue holds before it is given up: about an hour of a very busy
	// organization for a client that is gone.
	MaxUnacked = 20000
	// Heartbeats come 45 to 55 seconds after a poll began to wait, below every client's own limit of 90.
	HeartbeatAfter, HeartbeatSpread = 45, 10
	// idsPerFact is how many ids lie between two facts; above room the session asks for an empty fact.
	idsPerFact, tickThreshold = 256, 200
)

// Queue is one client's event queue. What an event and a poll touch stands together in 128 bytes, two lines of a
// processor's cache: to 10,000 queues in turn, reaching the memory is most of the work. TestQueueFitsTwoCacheLines holds it.
type Queue struct {
	Reg          *realm.Queue
	Next         *Queue // another queue of the same user; its session's
	Options      any    // a pointer, what Reg says about how events read, shared among queues that are alike; its session's
	registeredAt realm.Seq
	unacked      []UnackedEvent
	ackedID      int64 // newest id the client has acknowledged; -1 at first
	newestID     int64 // newest id given out
	waiting      Reply
	inline       [1]UnackedEvent // where held begins: most queues hold one event at a time
	heartbeatAt  int32           // when the waiting poll gets a heartbeat, in seconds of the session's clock, which nobody sets
	// contact is the last time a poll came, likewise.
	lastContact int32
	// revived queues came back from disk: what their client acknowledged is unknown until it polls.
	restored       bool
	tickRequested  bool // for an empty fact
	CloseRequested bool // its end has been asked for
	closed         bool // and has come
}

// New is a fresh queue; a revived one accepts any id its client says it has seen.
func New(reg *realm.Queue, now int64, revived bool) *Queue {
	return &Queue{Reg: reg, registeredAt: reg.At, ackedID: -1, newestID: -1, lastContact: int32(now), restored: revived}
}

// add puts an event behind the others.
func (q *Queue) add(h UnackedEvent) {
	if q.unacked == nil {
		q.unacked = q.inline[:0]
	}
	q.unacked = append(q.unacked, h)
	q.newestID = max(q.newestID, h.ID)
}

// Append holds the events one fact tells this queue, under the ids (seq − registration) << 8 | k. first is the place
// of the first of them among the fact's events for this queue.
func (q *Queue) Append(seq realm.Seq, first int, events []*Event) {
	for i, e := range events {
		id := int64(seq-q.registeredAt)<<8 | int64(first+i)
		if id <= q.ackedID {
			continue // a revived client acknowledged it before the crash
		}
		q.add(UnackedEvent{id, e})
	}
}

// AppendEphemeral holds an event that no fact stands behind; its id is above everything given out and below the next
// fact's. It reports false when there is no room: the event is dropped, as a crash might have dropped it.
func (q *Queue) AppendEphemeral(seq realm.Seq, e *Event) bool {
	base := int64(seq-q.registeredAt) << 8
	id := max(q.newestID, q.ackedID, base-1) + 1
	if id >= base+idsPerFact {
		return false
	}
	q.add(UnackedEvent{id, e})
	return true
}

// NeedsTick reports, once per need, that an empty fact should be journaled to make room for more ephemeral ids.
func (q *Queue) NeedsTick(seq realm.Seq) bool {
	crowded := max(q.newestID, q.ackedID) >= int64(seq-q.registeredAt)<<8+tickThreshold
	fresh := crowded && !q.tickRequested
	q.tickRequested = crowded
	return fresh
}

// Answer is what a poll gets at once; Wait means it was parked instead.
type Answer struct {
	Events   []UnackedEvent
	Parked   bool
	Replaced Reply // an older poll that must be completed with no events
}

// Poll handles GET /events: acknowledge everything up to last, then answer or park. seq is the newest fact the session
// has heard of.
func (q *Queue) Poll(p Reply, last int64, dontBlock bool, now, beatDelay int64, seq realm.Seq) (Answer, error) {
	if err := q.acknowledge(last, seq); err != nil {
		return Answer{}, err
	}
	a := Answer{Replaced: q.waiting}
	q.waiting, q.lastContact = nil, int32(now)
	if len(q.unacked) > 0 || dontBlock {
		a.Events = q.unacked
		return a, nil
	}
	q.waiting, q.heartbeatAt, a.Parked = p, int32(now+HeartbeatAfter+beatDelay), true
	return a, nil
}

func (q *Queue) acknowledge(last int64, seq realm.Seq) error {
	if last < q.ackedID {
		return realm.BadRequest("An event newer than %d has already been pruned!", last)
	}
	if last == q.ackedID {
		q.restored = false // it has acknowledged nothing yet
		return nil
	}
	n := len(q.unacked)
	if n != 1 || q.unacked[0].ID != last { // as it mostly is
		n = sort.Search(len(q.unacked), func(i int) bool { return q.unacked[i].ID > last })
	}
	if n == 0 || q.unacked[n-1].ID != last {
		if !q.restored || last > int64(seq-q.registeredAt)<<8+idsPerFact-1 {
			return realm.BadRequest("Event %d was not in this queue", last)
		}
	}
	if n == len(q.unacked) {
		q.unacked = nil
	} else if n > 0 { // a new piece: the old one may be as large as the queue ever was
		q.unacked = append(make([]UnackedEvent, 0, len(q.unacked)-n), q.unacked[n:]...)
	}
	if n > 0 {
		q.inline = [1]UnackedEvent{}
	}
	q.ackedID, q.restored = last, false
	q.newestID = max(q.newestID, last)
	return nil
}

// TakePoll hands out the waiting poll together with what it should be answered, if there is anything.
func (q *Queue) TakePoll(now int64) (Reply, []UnackedEvent) {
	if q.waiting == nil || len(q.unacked) == 0 {
		return nil, nil
	}
	p := q.waiting
	q.waiting, q.lastContact = nil, int32(now)
	return p, q.unacked
}

// CancelPoll drops a waiting poll whose client has gone; a poll that was replaced since is left alone.
func (q *Queue) CancelPoll(p Reply, now int64) {
	if q.waiting == p {
		q.waiting, q.lastContact = nil, int32(now)
	}
}

// Close completes the waiting poll, if any, before the queue disappears.
func (q *Queue) Close() Reply {
	p := q.waiting
	q.waiting, q.unacked, q.inline, q.closed = nil, nil, [1]UnackedEvent{}, true
	return p
}

// Closed reports whether the queue is no more; who still knows of it must not ask it.
func (q *Queue) Closed() bool { return q.closed }

// HeartbeatDue reports whether the waiting poll should get a heartbeat.
func (q *Queue) HeartbeatDue(now int64) bool { return q.waiting != nil && now >= int64(q.heartbeatAt) }

// Expired reports whether nobody came for longer than the queue's lifetime.
func (q *Queue) Expired(now int64) bool {
	return q.waiting == nil && now-int64(q.lastContact) >= q.Reg.Idle
}

// Full reports whether the queue holds more than it may. A revived queue never is: until its client polls it holds
// everything that was kept for the queue farthest behind, most of which its client has acknowledged, and which has a bound
// of its own.
func (q *Queue) Full() bool { return len(q.unacked) > MaxUnacked && !q.restored }

// AckedThrough is the number up to which the client has acknowledged every fact, given the newest the session heard of.
func (q *Queue) AckedThrough(seq realm.Seq) realm.Seq {
	if q.restored {
		return q.registeredAt // unknown until the client polls
	}
	if len(q.unacked) == 0 {
		return seq
	}
	return q.registeredAt + realm.Seq(q.unacked[0].ID>>8) - 1
}

// Restored reports whether what the client has acknowledged is unknown, as it has not come since the queue came back.
func (q *Queue) Restored() bool { return q.restored }

// HasPoll reports whether a poll is parked; Len how many events are held; Contact when a client last came.
func (q *Queue) HasPoll() bool      { return q.waiting != nil }
func (q *Queue) UnackedCount() int  { return len(q.unacked) }
func (q *Queue) LastContact() int64 { return int64(q.lastContact) }

// Prefetch reads a word of each line of memory that an event or a poll is going to need, and returns the waiting poll: who has
// many queues to serve reaches for some of them first.
func (q *Queue) Prefetch() (waiting Reply, any int64) {
	any = int64(q.registeredAt) + q.ackedID
	if id := q.Reg.ID; id != "" {
		any += int64(id[0])
	}
	return q.waiting, any
}

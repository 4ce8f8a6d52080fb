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

// Held is an event that the client has not acknowledged.
type Held struct {
	ID    int64
	Event *Event
}

// Poll is a request that waits: the queue only tells polls apart.
type Poll any

// Limits of one queue.
const (
	// MaxHeld is how many unacknowledged events a queue holds before it is given up: about an hour of a very busy
	// organization for a client that is gone.
	MaxHeld = 20000
	// Heartbeats come 45 to 55 seconds after a poll began to wait, below every client's own limit of 90.
	BeatAfter, BeatSpread = 45, 10
	// idsPerSeq is how many ids lie between two facts; above room the session asks for an empty fact.
	idsPerSeq, room = 256, 200
)

// Queue is one client's event queue. What an event and a poll touch stands together in 128 bytes, two lines of a
// processor's cache: to 10,000 queues in turn, reaching the memory is most of the work. TestQueueFitsTwoLines holds it.
type Queue struct {
	Reg    *realm.Queue
	Next   *Queue // another queue of the same user; its session's
	Kind   any    // a pointer, what Reg says about how events read, shared among queues that are alike; its session's
	at     realm.Seq
	held   []Held
	acked  int64 // newest id the client has acknowledged; -1 at first
	newest int64 // newest id given out
	poll   Poll
	one    [1]Held // where held begins: most queues hold one event at a time
	beat   int32   // when the waiting poll gets a heartbeat, in seconds of the session's clock, which nobody sets
	// contact is the last time a poll came, likewise.
	contact int32
	// revived queues came back from disk: what their client acknowledged is unknown until it polls.
	revived bool
	asked   bool // for an empty fact
	Ending  bool // its end has been asked for
	ended   bool // and has come
}

// New is a fresh queue; a revived one accepts any id its client says it has seen.
func New(reg *realm.Queue, now int64, revived bool) *Queue {
	return &Queue{Reg: reg, at: reg.At, acked: -1, newest: -1, contact: int32(now), revived: revived}
}

// hold puts an event behind the others.
func (q *Queue) hold(h Held) {
	if q.held == nil {
		q.held = q.one[:0]
	}
	q.held = append(q.held, h)
	q.newest = max(q.newest, h.ID)
}

// Append holds the events one fact tells this queue, under the ids (seq − registration) << 8 | k. first is the place
// of the first of them among the fact's events for this queue.
func (q *Queue) Append(seq realm.Seq, first int, events []*Event) {
	for i, e := range events {
		id := int64(seq-q.at)<<8 | int64(first+i)
		if id <= q.acked {
			continue // a revived client acknowledged it before the crash
		}
		q.hold(Held{id, e})
	}
}

// AppendEphemeral holds an event that no fact stands behind; its id is above everything given out and below the next
// fact's. It reports false when there is no room: the event is dropped, as a crash might have dropped it.
func (q *Queue) AppendEphemeral(seq realm.Seq, e *Event) bool {
	base := int64(seq-q.at) << 8
	id := max(q.newest, q.acked, base-1) + 1
	if id >= base+idsPerSeq {
		return false
	}
	q.hold(Held{id, e})
	return true
}

// Crowded reports, once per need, that an empty fact should be journaled to make room for more ephemeral ids.
func (q *Queue) Crowded(seq realm.Seq) bool {
	crowded := max(q.newest, q.acked) >= int64(seq-q.at)<<8+room
	fresh := crowded && !q.asked
	q.asked = crowded
	return fresh
}

// Answer is what a poll gets at once; Wait means it was parked instead.
type Answer struct {
	Events   []Held
	Wait     bool
	Replaced Poll // an older poll that must be completed with no events
}

// Ask handles GET /events: acknowledge everything up to last, then answer or park. seq is the newest fact the session
// has heard of.
func (q *Queue) Ask(p Poll, last int64, dontBlock bool, now, beatDelay int64, seq realm.Seq) (Answer, error) {
	if err := q.acknowledge(last, seq); err != nil {
		return Answer{}, err
	}
	a := Answer{Replaced: q.poll}
	q.poll, q.contact = nil, int32(now)
	if len(q.held) > 0 || dontBlock {
		a.Events = q.held
		return a, nil
	}
	q.poll, q.beat, a.Wait = p, int32(now+BeatAfter+beatDelay), true
	return a, nil
}

func (q *Queue) acknowledge(last int64, seq realm.Seq) error {
	if last < q.acked {
		return realm.Bad("An event newer than %d has already been pruned!", last)
	}
	if last == q.acked {
		q.revived = false // it has acknowledged nothing yet
		return nil
	}
	n := len(q.held)
	if n != 1 || q.held[0].ID != last { // as it mostly is
		n = sort.Search(len(q.held), func(i int) bool { return q.held[i].ID > last })
	}
	if n == 0 || q.held[n-1].ID != last {
		if !q.revived || last > int64(seq-q.at)<<8+idsPerSeq-1 {
			return realm.Bad("Event %d was not in this queue", last)
		}
	}
	if n == len(q.held) {
		q.held = nil
	} else if n > 0 { // a new piece: the old one may be as large as the queue ever was
		q.held = append(make([]Held, 0, len(q.held)-n), q.held[n:]...)
	}
	if n > 0 {
		q.one = [1]Held{}
	}
	q.acked, q.revived = last, false
	q.newest = max(q.newest, last)
	return nil
}

// Take hands out the waiting poll together with what it should be answered, if there is anything.
func (q *Queue) Take(now int64) (Poll, []Held) {
	if q.poll == nil || len(q.held) == 0 {
		return nil, nil
	}
	p := q.poll
	q.poll, q.contact = nil, int32(now)
	return p, q.held
}

// Leave drops a waiting poll whose client has gone; a poll that was replaced since is left alone.
func (q *Queue) Leave(p Poll, now int64) {
	if q.poll == p {
		q.poll, q.contact = nil, int32(now)
	}
}

// End completes the waiting poll, if any, before the queue disappears.
func (q *Queue) End() Poll {
	p := q.poll
	q.poll, q.held, q.one, q.ended = nil, nil, [1]Held{}, true
	return p
}

// Ended reports whether the queue is no more; who still knows of it must not ask it.
func (q *Queue) Ended() bool { return q.ended }

// Due reports whether the waiting poll should get a heartbeat.
func (q *Queue) Due(now int64) bool { return q.poll != nil && now >= int64(q.beat) }

// Expired reports whether nobody came for longer than the queue's lifetime.
func (q *Queue) Expired(now int64) bool { return q.poll == nil && now-int64(q.contact) >= q.Reg.Idle }

// Full reports whether the queue holds more than it may. A revived queue never is: until its client polls it holds
// everything that was kept for the queue farthest behind, most of which its client has acknowledged, and which has a bound
// of its own.
func (q *Queue) Full() bool { return len(q.held) > MaxHeld && !q.revived }

// Through is the number up to which the client has acknowledged every fact, given the newest the session heard of.
func (q *Queue) Through(seq realm.Seq) realm.Seq {
	if q.revived {
		return q.at // unknown until the client polls
	}
	if len(q.held) == 0 {
		return seq
	}
	return q.at + realm.Seq(q.held[0].ID>>8) - 1
}

// Revived reports whether what the client has acknowledged is unknown, as it has not come since the queue came back.
func (q *Queue) Revived() bool { return q.revived }

// Waiting reports whether a poll is parked; Len how many events are held; Contact when a client last came.
func (q *Queue) Waiting() bool  { return q.poll != nil }
func (q *Queue) Len() int       { return len(q.held) }
func (q *Queue) Contact() int64 { return int64(q.contact) }

// Near reads a word of each line of memory that an event or a poll is going to need, and returns the waiting poll: who has
// many queues to serve reaches for some of them first.
func (q *Queue) Near() (waiting Poll, any int64) {
	any = int64(q.at) + q.acked
	if id := q.Reg.ID; id != "" {
		any += int64(id[0])
	}
	return q.poll, any
}

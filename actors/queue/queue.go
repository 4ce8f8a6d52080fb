package queue

import (
	"sort"

	"parley/actors/realm"
)

// Event is one event as some kind of client gets it, encoded up to its id: {"type":... without the closing brace.
// Queues of one session actor share it. Make encodes it when the bytes are needed; if cache is true, the event stores
// them. An event that does not store them is small until it is acknowledged, however large its bytes are. No lock is
// needed, because one actor uses the event.
type Event struct {
	JSON []byte
	Make func() (json []byte, cache bool)
}

// Unreadable is the panic of an Event.Make that cannot read a text now, because the node that has it cannot be reached.
type Unreadable struct{ Err error }

// Bytes returns the event's JSON without id and closing brace. It is nil if the message was
// erased. It returns an error if the bytes cannot be made now.
func (e *Event) Bytes() (json []byte, err error) {
	if e.Make == nil {
		return e.JSON, nil
	}
	defer func() {
		if p := recover(); p != nil {
			x, ok := p.(Unreadable)
			if !ok {
				panic(p)
			}
			err = x.Err
		}
	}()
	json, cache := e.Make()
	if cache {
		e.JSON, e.Make = json, nil
	}
	return json, nil
}

// weightBytes is how many bytes of an event, beside the first ones, make as much work as a small event: sending a
// thousand small events in one answer takes about as long as sending a megabyte.
const weightBytes = 1 << 10

// Weight returns the work of sending an event of so many bytes, or with a text of so many. The work of a small event is
// 1.
func Weight(bytes int) int { return 1 + bytes/weightBytes }

// UnackedEvent is an event that the client has not acknowledged, with its id in the queue.
type UnackedEvent struct {
	ID    int64
	Event *Event
}

// Limits of one queue.
const (
	// MaxUnacked is how many unacknowledged events a queue may have before it is evicted. For a client that is gone
	// that is about an hour in a very busy organization.
	MaxUnacked = 20000
	// A heartbeat is sent 45 to 55 seconds after a poll began to wait, less than every client's own limit of 90.
	HeartbeatAfter, HeartbeatSpread = 45, 10
	// idsPerFact is how many ids there are from one fact to the next. When tickThreshold of them are used, the session
	// actor asks for an empty fact.
	idsPerFact, tickThreshold = 256, 200
)

// Queue is one client's event queue. The fields that an event or a poll uses take 128 bytes, two lines of the
// processor's cache: with 10,000 queues, waiting for memory is most of the work. TestQueueFitsTwoCacheLines checks the
// size.
type Queue struct {
	Reg  *realm.Queue
	Next *Queue // another queue of the same user; the session sets it
	// the options of the registration, a pointer: see session.Protocol.NewQueueOptions; the session sets it
	Options      any
	registeredAt realm.Seq
	unacked      []UnackedEvent
	ackedID      int64           // newest id that the client has acknowledged; -1 at first
	newestID     int64           // newest id in use
	waiting      Reply           // the parked poll, or nil
	inline       [1]UnackedEvent // where unacked begins: most queues have one event at a time
	heartbeatAt  int32           // when the waiting poll gets a heartbeat, in seconds of Server.elapsed
	// when the last poll arrived or was answered, in the same seconds
	lastContact int32
	// The queue existed before this process, or at another node. Until its client polls, it is unknown which events the
	// client has acknowledged.
	restored       bool
	tickRequested  bool // an empty fact has been asked for
	CloseRequested bool // the realm has been asked to close the queue
}

// New returns an empty queue. A restored queue accepts every last_event_id that its client may have got from an earlier
// process.
func New(reg *realm.Queue, now int64, restored bool) *Queue {
	return &Queue{
		Reg:          reg,
		registeredAt: reg.At,
		ackedID:      -1,
		newestID:     -1,
		lastContact:  int32(now),
		restored:     restored,
	}
}

// add appends an event.
func (q *Queue) add(e UnackedEvent) {
	if q.unacked == nil {
		q.unacked = q.inline[:0]
	}
	q.unacked = append(q.unacked, e)
	q.newestID = max(q.newestID, e.ID)
}

// Append adds the events that one fact has for this queue, under the ids (seq - registration) << 8 | k. first is the k
// of the first one.
func (q *Queue) Append(seq realm.Seq, first int, events []*Event) {
	for i, e := range events {
		id := int64(seq-q.registeredAt)<<8 | int64(first+i)
		if id <= q.ackedID {
			continue // the client acknowledged it before a crash
		}
		q.add(UnackedEvent{id, e})
	}
}

// AppendEphemeral adds an event that has no fact. Its id is above every id in use and below the next fact's ids. It
// reports false if there is no such id; then the event is dropped, because ephemeral events may be lost.
func (q *Queue) AppendEphemeral(seq realm.Seq, e *Event) bool {
	base := int64(seq-q.registeredAt) << 8
	id := max(q.newestID, q.ackedID, base-1) + 1
	if id >= base+idsPerFact {
		return false
	}
	q.add(UnackedEvent{id, e})
	return true
}

// ReplaceThrough replaces the events up to those of fact seq by the events that appendEvents adds with Append.
func (q *Queue) ReplaceThrough(seq realm.Seq, appendEvents func()) {
	n := sort.Search(len(q.unacked), func(i int) bool { return q.SeqOf(q.unacked[i].ID) > seq })
	later := append([]UnackedEvent{}, q.unacked[n:]...)
	q.unacked, q.inline = nil, [1]UnackedEvent{}
	appendEvents()
	for _, e := range later {
		q.add(e)
	}
}

// NeedsTick reports whether an empty fact should be journaled, after which there are further ids for ephemeral events.
// It returns true only once until that fact has arrived.
func (q *Queue) NeedsTick(seq realm.Seq) bool {
	needed := max(q.newestID, q.ackedID) >= int64(seq-q.registeredAt)<<8+tickThreshold
	first := needed && !q.tickRequested
	q.tickRequested = needed
	return first
}

// Answer is the result of a poll.
type Answer struct {
	Events   []UnackedEvent
	Parked   bool  // the poll waits for an event
	Replaced Reply // an older poll that waited: it must be answered with no events
}

// Poll handles one GET /events: it acknowledges every event up to last, then answers or parks the request.
// heartbeatDelay is added to HeartbeatAfter. seq is the newest fact that the session actor has received.
func (q *Queue) Poll(p Reply, last int64, dontBlock bool, now, heartbeatDelay int64, seq realm.Seq) (Answer, error) {
	if err := q.acknowledge(last, seq); err != nil {
		return Answer{}, err
	}
	a := Answer{Replaced: q.waiting}
	q.waiting, q.lastContact = nil, int32(now)
	if len(q.unacked) > 0 || dontBlock {
		a.Events = q.unacked
		return a, nil
	}
	q.waiting, q.heartbeatAt, a.Parked = p, int32(now+HeartbeatAfter+heartbeatDelay), true
	return a, nil
}

// acknowledge removes the events up to an id. The id must be the newest acknowledged one or that of an event in the
// queue; for a restored queue, any id up to that of fact seq.
func (q *Queue) acknowledge(last int64, seq realm.Seq) error {
	if last < q.ackedID {
		return realm.BadRequest("An event newer than %d has already been pruned!", last)
	}
	if last == q.ackedID {
		q.restored = false // its client has acknowledged no event
		return nil
	}
	n := len(q.unacked)
	if n != 1 || q.unacked[0].ID != last { // the usual case
		n = sort.Search(len(q.unacked), func(i int) bool { return q.unacked[i].ID > last })
	}
	if n == 0 || q.unacked[n-1].ID != last {
		if !q.restored || last > int64(seq-q.registeredAt)<<8+idsPerFact-1 {
			return realm.BadRequest("Event %d was not in this queue", last)
		}
	}
	if n == len(q.unacked) {
		q.unacked = nil
	} else if n > 0 { // a copy: the old memory may be as large as the queue ever was
		q.unacked = append(make([]UnackedEvent, 0, len(q.unacked)-n), q.unacked[n:]...)
	}
	if n > 0 {
		q.inline = [1]UnackedEvent{}
	}
	q.ackedID, q.restored = last, false
	q.newestID = max(q.newestID, last)
	return nil
}

// IsAhead reports whether a last_event_id is newer than everything that the queue can have sent. seq is the newest fact
// that the session actor has received.
func (q *Queue) IsAhead(last int64, seq realm.Seq) bool {
	if q.restored {
		return last >= int64(seq-q.registeredAt)<<8+idsPerFact
	}
	return last > q.newestID && last > q.ackedID
}

// SetRestored records that the client may have acknowledged events at another node.
func (q *Queue) SetRestored() { q.restored = true }

// EndPoll returns the waiting poll, or nil. The poll does not wait any more.
func (q *Queue) EndPoll(now int64) Reply {
	p := q.waiting
	if p != nil {
		q.waiting, q.lastContact = nil, int32(now)
	}
	return p
}

// TakePoll returns the waiting poll and its events, if there are both. The poll does not wait any more.
func (q *Queue) TakePoll(now int64) (Reply, []UnackedEvent) {
	if q.waiting == nil || len(q.unacked) == 0 {
		return nil, nil
	}
	p := q.waiting
	q.waiting, q.lastContact = nil, int32(now)
	return p, q.unacked
}

// CancelPoll forgets a waiting poll whose client has left. Another poll that has replaced it stays.
func (q *Queue) CancelPoll(p Reply, now int64) {
	if q.waiting == p {
		q.waiting, q.lastContact = nil, int32(now)
	}
}

// Close ends the queue. It returns the waiting poll, if any, which must be answered.
func (q *Queue) Close() Reply {
	p := q.waiting
	q.waiting, q.unacked, q.inline = nil, nil, [1]UnackedEvent{}
	return p
}

// HeartbeatDue reports whether the waiting poll should get a heartbeat.
func (q *Queue) HeartbeatDue(now int64) bool { return q.waiting != nil && now >= int64(q.heartbeatAt) }

// Expired reports whether no client has polled for longer than the queue's lifetime.
func (q *Queue) Expired(now int64) bool {
	return q.waiting == nil && now-int64(q.lastContact) >= q.Reg.Idle
}

// Full reports whether the queue has too many events. A restored queue is never full: until its client polls it has all
// the events that the realm stored for its slowest queue, most of which its client has acknowledged. The realm's limit
// applies to those.
func (q *Queue) Full() bool { return len(q.unacked) > MaxUnacked && !q.restored }

// AckedThrough returns the fact up to which the client has acknowledged everything. seq is the newest fact that the
// session actor has received.
func (q *Queue) AckedThrough(seq realm.Seq) realm.Seq {
	if q.restored {
		return q.registeredAt // it is unknown until the client polls
	}
	if len(q.unacked) == 0 {
		return seq
	}
	return q.registeredAt + realm.Seq(q.unacked[0].ID>>8) - 1
}

// SeqOf returns the fact of an event. For an ephemeral event it is the fact before it.
func (q *Queue) SeqOf(id int64) realm.Seq { return q.registeredAt + realm.Seq(id>>8) }

// Restored reports whether the queue existed before this process and its client has not polled since.
func (q *Queue) Restored() bool { return q.restored }

// HasPoll reports whether a poll waits. UnackedCount returns the number of events in the queue, LastContact the time of
// the last poll.
func (q *Queue) HasPoll() bool      { return q.waiting != nil }
func (q *Queue) UnackedCount() int  { return len(q.unacked) }
func (q *Queue) LastContact() int64 { return int64(q.lastContact) }

// Prefetch reads a word of each cache line that an event or a poll is going to need, and returns the waiting poll.
// Callers with many queues prefetch some before they use them. The sum has no meaning.
func (q *Queue) Prefetch() (waiting Reply, sum int64) {
	sum = int64(q.registeredAt) + q.ackedID
	if id := q.Reg.ID; id != "" {
		sum += int64(id[0])
	}
	return q.waiting, sum
}

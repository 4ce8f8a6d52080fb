package delivery

import (
	"time"

	"parley/actors/realm"
)

const (
	// MaxAdoptionWait is how long a poll waits for the adoption of its queue. After a failure of the owner, a new owner
	// exists within 3 seconds.
	MaxAdoptionWait = 10 * time.Second
	// ackReportInterval is the least time between two reports of a replica.
	ackReportInterval = time.Second
	// listQueuesInterval is the time in seconds between two lists of the hosted queues that a replica sends to the
	// owner. They correct any difference that lost messages have caused.
	listQueuesInterval = 60
)

// Messages to the Follower about its event queues.
type (
	retryAdoption struct{ adoption *adoption }
	queueAdopted  struct { // the owner's answer
		adoption *adoption
		asked    Adoption
		answer   Adopted
		err      error
	}
	hostedList struct { // a session actor's answer to List
		round uint64
		list  []QueueRef
	}
	sendAckReport struct{}
	// OwnerConnected says that there is a new connection to the owner.
	OwnerConnected struct{}
	// DropQueues removes queues that have moved to other nodes. Their clients poll there, so the queues are not closed.
	DropQueues []DroppedQueue
	// EvictQueues closes the queues that have not acknowledged the facts before one, because the owner stores too many
	// events for them.
	EvictQueues struct{ Before realm.Seq }
)

// HostingMessage is a message to a Follower about the queues that this node hosts.
type HostingMessage interface{ HandleHosting(*Hosting) }

// Follower is the actor of a realm that another node owns, in whose mailbox Hosting runs.
type Follower interface {
	Realm() *realm.Realm
	// Durable returns the last fact that was applied.
	Durable() realm.Seq
	// CanServe reports whether the state is known to be new enough for clients.
	CanServe() bool
	// Owner returns the node that owns the realm, or nil if this node must not host queues.
	Owner() Owner
	// KeepText puts a text that the owner has sent into the cache.
	KeepText(realm.TextWrite)
}

// ErrCannotFollow is the answer to requests while this node cannot follow the owner.
var ErrCannotFollow = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"This server cannot reach the other servers; try again in a few seconds.")

// adoption is a queue that this node is adopting.
type adoption struct {
	queue        QueueRef
	last         int64
	began        time.Duration // Env.SinceOpen
	asked        Adoption
	publications []realm.Publication
	finishAt     realm.Seq // fact that this node must have applied to continue; 0: the owner has not answered
	complete     bool      // all events are there
}

// Hosting is the state of the event queues that a node hosts for a realm that it follows. Its methods run in the
// mailbox of the Follower.
type Hosting struct {
	all      *Sessions
	main     Follower
	adopting map[QueueRef]*adoption
	acks     QueueAcks
	reportAt time.Duration // Env.SinceOpen; when the next report of acknowledgements may be sent
	timed    bool          // a timer will send it
	round    uint64        // counts the lists of queues that were asked for
	kept     HostedQueues
	answers  int   // session actors that have answered
	listAt   int64 // Env.elapsed; when the next list is due
	// Queues that were opened on this node since it last had none; 0: it has none, and events need not be delivered.
	opened       int
	openedBefore int  // the same at the beginning of the list
	used         bool // a queue was opened or asked for since the start: the owner may believe that it is here
}

// Opened records that a queue is being opened here.
func (h *Hosting) Opened() { h.opened, h.used = h.opened+1, true }

// None reports whether this node hosts no queue.
func (h *Hosting) None() bool { return h.opened == 0 }

// HandleHosting begins to adopt a queue.
func (m AdoptQueue) HandleHosting(h *Hosting) {
	x := &adoption{queue: m.Queue, last: m.Last, began: h.all.env.SinceOpen()}
	if h.adopting == nil {
		h.adopting = map[QueueRef]*adoption{}
	}
	h.adopting[m.Queue] = x
	h.tryAdoption(x)
}

// tryAdoption asks the owner for the queue. If the replica knows the queue, the session actor opens it first: it gets
// the events up to this moment from the owner and later events from the replica. Each attempt starts from the
// beginning, because the outcome of the previous one is unknown.
func (h *Hosting) tryAdoption(x *adoption) {
	if h.adopting[x.queue] != x {
		return
	}
	if !h.main.CanServe() {
		h.finishAdoption(x, ErrCannotFollow)
		return
	}
	x.publications, x.finishAt, x.complete = nil, 0, false
	x.asked = Adoption{Queue: x.queue, Last: x.last}
	if q := h.main.Realm().FindQueue(x.queue.ID); q != nil {
		if q.User != x.queue.User {
			h.finishAdoption(x, realm.ErrBadQueue(x.queue.ID))
			return
		}
		k := ActorOf(q.User)
		h.Opened()
		x.asked.Through, x.asked.Number = h.main.Durable(), h.all.nextOpening(k)
		h.all.SendInOrder(k, &OpenAdopted{Queue: *q, Seq: x.asked.Through, Opening: x.asked.Number})
	}
	h.askForAdoption(x)
}

// askForAdoption asks the owner for the queue, or for further events of it.
func (h *Hosting) askForAdoption(x *adoption) {
	pid, asked, owner := h.all.main, x.asked, h.main.Owner()
	if owner == nil {
		h.finishAdoption(x, ErrCannotFollow)
		return
	}
	owner.AdoptQueue(h.all.Realm, asked, func(answer Adopted, err error) {
		h.all.env.Runtime.Send(pid, &queueAdopted{x, asked, answer, err})
	})
}

// HandleHosting continues an adoption after the owner has answered.
func (m *queueAdopted) HandleHosting(h *Hosting) {
	x := m.adoption
	if h.adopting[x.queue] != x || m.asked != x.asked {
		return
	}
	switch {
	case m.err != nil && h.all.env.SinceOpen()-x.began > MaxAdoptionWait:
		h.all.env.Log.Warn("event queue not adopted", "realm", h.all.Realm, "user", int64(x.queue.User),
			"queue", string(x.queue.ID), "err", m.err)
		h.finishAdoption(x, ErrCannotFollow)
	case m.err != nil:
		h.all.env.Runtime.After(adoptRetryInterval, func() { h.all.env.Runtime.Send(h.all.main, retryAdoption{x}) })
	case !m.answer.Found:
		h.finishAdoption(x, realm.ErrBadQueue(x.queue.ID))
	case m.answer.Moved:
		h.finishAdoption(x, ErrCannotFollow)
	case x.asked.Through == 0: // the replica is behind its registration
		x.finishAt = m.answer.Seq
		h.continueAdoption(x)
	default:
		x.publications = append(x.publications, m.answer.Events...)
		for _, t := range m.answer.Texts {
			h.main.KeepText(t)
		}
		if m.answer.More {
			x.asked.After = m.answer.Through
			h.askForAdoption(x)
			return
		}
		// The client may have events of newer facts than this node has applied. Checking its last_event_id needs these
		// facts.
		x.complete, x.finishAt = true, 1
		if q := h.main.Realm().FindQueue(x.queue.ID); q != nil && x.last > 0 {
			x.finishAt = min(q.At+realm.Seq(x.last>>8), m.answer.Seq)
		}
		h.continueAdoption(x)
	}
}

// continueAdoption continues an adoption if the replica has applied the facts that it waits for.
func (h *Hosting) continueAdoption(x *adoption) {
	switch {
	case x.finishAt == 0 || x.finishAt > h.main.Durable():
	case x.complete:
		h.finishAdoption(x, nil)
	default:
		h.tryAdoption(x)
	}
}

// Continue continues the adoptions that wait for facts. It is called after a batch was applied.
func (h *Hosting) Continue() {
	for _, x := range h.adopting {
		h.continueAdoption(x)
	}
}

// finishAdoption sends the result of an adoption to the session actor.
func (h *Hosting) finishAdoption(x *adoption, err error) {
	delete(h.adopting, x.queue)
	if err == nil {
		h.all.env.Metrics.QueuesAdopted.Add(1)
	}
	h.all.SendInOrder(ActorOf(x.queue.User), &FinishAdoption{Queue: x.queue,
		Publications: x.publications, Seq: h.main.Durable(), Err: err})
}

// Fail ends all adoptions with an error, because facts are missing on this node. The clients poll again.
func (h *Hosting) Fail() {
	for _, x := range h.adopting {
		h.finishAdoption(x, ErrCannotFollow)
	}
}

// HandleHosting records the acknowledgements of a session actor's queues and reports them to the owner.
func (m AckReport) HandleHosting(h *Hosting) {
	k := m.SessionActor
	h.acks.Acked[k], h.acks.Seen[k], h.acks.Adopted[k] = m.Seq, m.Newest, m.Opening
	if h.timed {
		return
	}
	wait := h.reportAt - h.all.env.SinceOpen()
	if wait <= 0 {
		h.sendAckReport()
		return
	}
	h.timed = true
	h.all.env.Runtime.After(wait, func() { h.all.env.Runtime.Send(h.all.main, sendAckReport{}) })
}

func (h *Hosting) sendAckReport() {
	h.timed, h.reportAt = false, h.all.env.SinceOpen()+ackReportInterval
	if owner := h.main.Owner(); owner != nil {
		owner.ReportAcks(h.all.Realm, h.acks)
	}
}

// ListQueues asks the session actors for their queues, and reports these to the owner.
func (h *Hosting) ListQueues() {
	h.round++
	h.answers, h.listAt = 0, h.all.env.elapsed()+listQueuesInterval
	h.kept, h.openedBefore = HostedQueues{Through: h.main.Durable(), Number: h.all.openings}, h.opened
	round, pid := h.round, h.all.main
	h.all.SendAllInOrder(List{Reply: func(list []QueueRef) {
		h.all.env.Runtime.Send(pid, hostedList{round, list})
	}})
}

// HandleHosting reports the hosted queues to the owner when all session actors have answered.
func (m hostedList) HandleHosting(h *Hosting) {
	if m.round != h.round {
		return
	}
	h.kept.Queues = append(h.kept.Queues, m.list...)
	if h.answers++; h.answers < SessionActors {
		return
	}
	k := h.kept
	h.kept = HostedQueues{}
	owner := h.main.Owner()
	if owner == nil {
		return
	}
	if len(k.Queues) == 0 && h.opened == h.openedBefore {
		h.opened = 0
	}
	for all := k.Queues; ; all = all[MaxHostedQueues:] {
		k.Queues, k.More = all, false
		if len(all) > MaxHostedQueues {
			k.Queues, k.More = all[:MaxHostedQueues], true
		}
		owner.ReportQueues(h.all.Realm, k)
		if !k.More {
			break
		}
	}
	h.sendAckReport()
}

func (m retryAdoption) HandleHosting(h *Hosting) { h.tryAdoption(m.adoption) }
func (sendAckReport) HandleHosting(h *Hosting)   { h.sendAckReport() }
func (OwnerConnected) HandleHosting(h *Hosting)  { h.ListQueues() }

// HandleHosting makes the session actors remove queues.
func (m DropQueues) HandleHosting(h *Hosting) {
	var parts [SessionActors][]DroppedQueue
	for _, q := range m {
		k := ActorOf(q.User)
		parts[k] = append(parts[k], q)
	}
	for k, part := range parts {
		if len(part) > 0 {
			h.all.SendInOrder(k, Forget(part))
		}
	}
}

// HandleHosting makes the session actors close queues.
func (m EvictQueues) HandleHosting(h *Hosting) { h.all.SendAllInOrder(Evict{Before: m.Before}) }

// NewHosting returns the state of a node that hosts no queue.
func NewHosting(all *Sessions, main Follower) Hosting { return Hosting{all: all, main: main} }

// Reset forgets the adoptions and lists in progress, because the queues of this node were replaced.
func (h *Hosting) Reset() {
	*h = Hosting{all: h.all, main: h.main, round: h.round + 1, used: h.used}
}

// Expect records that a queue may be opened here by a request that this node has sent.
func (h *Hosting) Expect() { h.used = true }

// Tick lists the queues from time to time, if the owner may believe that there are some.
func (h *Hosting) Tick() {
	if h.used && h.all.env.elapsed() >= h.listAt {
		h.ListQueues()
	}
}

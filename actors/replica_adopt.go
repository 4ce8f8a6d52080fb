package actors

import (
	"time"

	"parley/actors/realm"
)

const (
	// MaxAdoptionWait is how long a poll waits for a queue that this node does not keep. A new owner is there after 3
	// seconds.
	MaxAdoptionWait = 10 * time.Second
	// adoptAgainAfter is the time between two tries.
	adoptAgainAfter = 50 * time.Millisecond
	// ackReportsEvery is the least time between two reports of a replica.
	ackReportsEvery = time.Second
	// keepQueuesEvery is how often a replica tells the owner which queues it keeps, so that both agree whatever got
	// lost, in seconds.
	keepQueuesEvery = 60
)

// Messages of a replica actor about its event queues.
type (
	adoptAgain   struct{ adoption *adoption }
	queueAdopted struct { // the owner's answer
		adoption *adoption
		asked    Adoption
		answer   Adopted
		err      error
	}
	ownerConnected struct{}
	queuesKept     struct { // a session actor's answer to listQueues
		round uint64
		list  []QueueRef
	}
	sendAckReport struct{}
)

// adoption is a queue that this node is about to get from the owner.
type adoption struct {
	queue        QueueRef
	last         int64
	began        time.Duration // Server.sinceOpen
	asked        Adoption
	publications []realm.Publication
	finishAt     realm.Seq // fact that this node must have applied to go on; 0: the owner has not answered
	complete     bool      // all events are there
}

// replicaQueues is the knowledge of a replica actor about the event queues of its node.
type replicaQueues struct {
	adopting map[QueueRef]*adoption
	number   uint64 // of adoptions
	acks     QueueAcks
	reportAt time.Duration // Server.sinceOpen; when the next report of acknowledgements may be sent
	timed    bool          // a timer will send it
	round    uint64        // counts the lists of queues that were asked for
	kept     KeptQueues
	answers  int   // session actors that have answered
	keepAt   int64 // Server.elapsed; when the next list is due
	// Queues that were opened here since this node had none; 0: it has none, and events need not be delivered.
	opened       int
	openedBefore int  // the same at the beginning of the list
	used         bool // a queue was opened or asked for since the start: the owner may believe that it is here
}

// noteOpened records that a queue is being opened here.
func (q *replicaQueues) noteOpened() { q.opened, q.used = q.opened+1, true }

// none reports whether no queue is kept here.
func (q *replicaQueues) none() bool { return q.opened == 0 }

// adoptQueue begins to adopt a queue.
func (a *replicaClients) adoptQueue(m adoptQueue) {
	x := &adoption{queue: m.queue, last: m.last, began: a.srv.sinceOpen()}
	if a.queues.adopting == nil {
		a.queues.adopting = map[QueueRef]*adoption{}
	}
	a.queues.adopting[m.queue] = x
	a.tryAdoption(x)
}

// tryAdoption asks the owner for the queue. If the replica knows the queue, the session actor opens it first: it gets
// the later events from the replica, and those up to now from the owner. Each try begins anew, because it is not known
// what became of the last one.
func (a *replicaClients) tryAdoption(x *adoption) {
	if a.queues.adopting[x.queue] != x {
		return
	}
	if a.cannotServe() {
		a.finishAdoption(x, errCannotFollow)
		return
	}
	x.publications, x.finishAt, x.complete = nil, 0, false
	x.asked = Adoption{Queue: x.queue, Last: x.last}
	if q := a.realm.FindQueue(x.queue.ID); q != nil {
		if q.User != x.queue.User {
			a.finishAdoption(x, realm.ErrBadQueue(x.queue.ID))
			return
		}
		a.queues.number++
		a.queues.noteOpened()
		x.asked.Through, x.asked.Number = a.durable, a.queues.number
		a.sendInOrder(shardOf(q.User), &openAdopted{a.handle, *q, a.durable, a.queues.number})
	}
	a.askForAdoption(x)
}

// askForAdoption asks the owner for the queue, or for further events of it.
func (a *replicaClients) askForAdoption(x *adoption) {
	pid, asked, owner := a.handle.pid, x.asked, a.srv.ownerOf(a.handle)
	if owner == nil {
		a.finishAdoption(x, errCannotFollow)
		return
	}
	owner.AdoptQueue(a.realm.ID(), asked, func(answer Adopted, err error) {
		a.srv.runtime.send(pid, &queueAdopted{x, asked, answer, err})
	})
}

// handleAdopted goes on with an adoption after the owner has answered.
func (a *replicaClients) handleAdopted(m *queueAdopted) {
	x := m.adoption
	if a.queues.adopting[x.queue] != x || m.asked != x.asked {
		return
	}
	switch {
	case m.err != nil && a.srv.sinceOpen()-x.began > MaxAdoptionWait:
		a.srv.log.Warn("event queue not adopted", "realm", a.realm.ID(), "user", int64(x.queue.User),
			"queue", string(x.queue.ID), "err", m.err)
		a.finishAdoption(x, errCannotFollow)
	case m.err != nil:
		a.srv.runtime.after(adoptAgainAfter, func() { a.srv.runtime.send(a.handle.pid, adoptAgain{x}) })
	case !m.answer.Found:
		a.finishAdoption(x, realm.ErrBadQueue(x.queue.ID))
	case m.answer.Moved:
		a.finishAdoption(x, errCannotFollow)
	case x.asked.Through == 0: // the replica is behind its registration
		x.finishAt = m.answer.Seq
		a.continueAdoption(x)
	default:
		x.publications = append(x.publications, m.answer.Events...)
		for _, t := range m.answer.Texts {
			a.srv.texts.put(a.realm.ID(), t.Ref, *t.Body)
		}
		if m.answer.More {
			x.asked.After = m.answer.Through
			a.askForAdoption(x)
			return
		}
		// The client may have seen newer facts than this node. The queue needs them to check last_event_id.
		x.complete, x.finishAt = true, 1
		if q := a.realm.FindQueue(x.queue.ID); q != nil && x.last > 0 {
			x.finishAt = min(q.At+realm.Seq(x.last>>8), m.answer.Seq)
		}
		a.continueAdoption(x)
	}
}

// continueAdoption goes on if the replica has the facts that the adoption waits for.
func (a *replicaClients) continueAdoption(x *adoption) {
	switch {
	case x.finishAt == 0 || x.finishAt > a.durable:
	case x.complete:
		a.finishAdoption(x, nil)
	default:
		a.tryAdoption(x)
	}
}

// continueAdoptions goes on with the adoptions that wait for facts, after a batch was applied.
func (a *replicaClients) continueAdoptions() {
	for _, x := range a.queues.adopting {
		a.continueAdoption(x)
	}
}

// finishAdoption gives the queue to its session actor.
func (a *replicaClients) finishAdoption(x *adoption, err error) {
	delete(a.queues.adopting, x.queue)
	if err == nil {
		a.srv.Metrics.QueuesAdopted.Add(1)
	}
	a.sendInOrder(shardOf(x.queue.User), &finishAdoption{realm: a.realm.ID(), queue: x.queue,
		publications: x.publications, seq: a.durable, err: err})
}

// endAdoptions ends all adoptions, because facts are missing here. The clients ask again.
func (a *replicaClients) endAdoptions() {
	for _, x := range a.queues.adopting {
		a.finishAdoption(x, errCannotFollow)
	}
}

// handleAckReport notes the acknowledgements of a session actor's queues, and reports them to the owner.
func (a *replicaClients) handleAckReport(m ackReport) {
	q := &a.queues
	q.acks.Acked[m.shard], q.acks.Seen[m.shard], q.acks.Adopted[m.shard] = m.seq, m.newest, m.taken
	if q.timed {
		return
	}
	wait := q.reportAt - a.srv.sinceOpen()
	if wait <= 0 {
		a.sendAckReport()
		return
	}
	q.timed = true
	a.srv.runtime.after(wait, func() { a.srv.runtime.send(a.handle.pid, sendAckReport{}) })
}

func (a *replicaClients) sendAckReport() {
	q := &a.queues
	q.timed, q.reportAt = false, a.srv.sinceOpen()+ackReportsEvery
	if owner := a.srv.ownerOf(a.handle); owner != nil {
		owner.ReportAcks(a.realm.ID(), q.acks)
	}
}

// OwnerConnected says that the connection to the owner of a realm is new: the replica tells the owner which queues this
// node keeps.
func (srv *Server) OwnerConnected(id realm.ID) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.send(r.pid, ownerConnected{})
	}
}

// listKeptQueues asks the session actors for their queues.
func (a *replicaClients) listKeptQueues() {
	q := &a.queues
	q.round++
	q.answers, q.keepAt = 0, a.srv.elapsed()+keepQueuesEvery
	q.kept, q.openedBefore = KeptQueues{Through: a.durable, Number: q.number}, q.opened
	round, pid := q.round, a.handle.pid
	for k := range a.handle.shards {
		a.sendInOrder(k, listQueues{a.realm.ID(), func(list []QueueRef) {
			a.srv.runtime.send(pid, queuesKept{round, list})
		}})
	}
}

// handleKeptQueues tells the owner which queues this node keeps, when all session actors have answered.
func (a *replicaClients) handleKeptQueues(m queuesKept) {
	q := &a.queues
	if m.round != q.round {
		return
	}
	q.kept.Queues = append(q.kept.Queues, m.list...)
	if q.answers++; q.answers < Shards {
		return
	}
	k := q.kept
	q.kept = KeptQueues{}
	owner := a.srv.ownerOf(a.handle)
	if owner == nil {
		return
	}
	if len(k.Queues) == 0 && q.opened == q.openedBefore {
		q.opened = 0
	}
	for all := k.Queues; ; all = all[MaxKeptQueues:] {
		k.Queues, k.More = all, false
		if len(all) > MaxKeptQueues {
			k.Queues, k.More = all[:MaxKeptQueues], true
		}
		owner.KeepQueues(a.realm.ID(), k)
		if !k.More {
			break
		}
	}
	a.sendAckReport()
}

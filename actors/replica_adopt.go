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
	queue    QueueRef
	last     int64
	began    time.Duration // Server.sinceOpen
	asked    Adoption
	told     []realm.Told
	finishAt realm.Seq // fact that this node must have applied to go on; 0: the owner has not answered
	complete bool      // all events are there
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
}

// adoptQueue begins to adopt a queue.
func (a *replicaActor) adoptQueue(m adoptQueue) {
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
func (a *replicaActor) tryAdoption(x *adoption) {
	if a.queues.adopting[x.queue] != x {
		return
	}
	if a.failed != nil || a.reloading || a.srv.replicasPaused.Load() {
		a.finishAdoption(x, errCannotFollow)
		return
	}
	x.told, x.finishAt, x.complete = nil, 0, false
	x.asked = Adoption{Queue: x.queue, Last: x.last}
	if q := a.realm.FindQueue(x.queue.ID); q != nil {
		if q.User != x.queue.User {
			a.finishAdoption(x, realm.ErrBadQueue(x.queue.ID))
			return
		}
		a.queues.number++
		x.asked.Through, x.asked.Number = a.durable, a.queues.number
		a.sendInOrder(shardOf(q.User), &openAdopted{a.handle, *q, a.durable, a.queues.number})
	}
	a.askForAdoption(x)
}

// askForAdoption asks the owner for the queue, or for further events of it.
func (a *replicaActor) askForAdoption(x *adoption) {
	pid, asked := a.handle.pid, x.asked
	a.options.Owner.AdoptQueue(a.realm.ID(), asked, func(answer Adopted, err error) {
		a.srv.runtime.send(pid, &queueAdopted{x, asked, answer, err})
	})
}

// handleAdopted goes on with an adoption after the owner has answered.
func (a *replicaActor) handleAdopted(m *queueAdopted) {
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
		x.told = append(x.told, m.answer.Events...)
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
func (a *replicaActor) continueAdoption(x *adoption) {
	switch {
	case x.finishAt == 0 || x.finishAt > a.durable:
	case x.complete:
		a.finishAdoption(x, nil)
	default:
		a.tryAdoption(x)
	}
}

// continueAdoptions goes on with the adoptions that wait for facts, after a batch was applied.
func (a *replicaActor) continueAdoptions() {
	for _, x := range a.queues.adopting {
		a.continueAdoption(x)
	}
}

// finishAdoption gives the queue to its session actor.
func (a *replicaActor) finishAdoption(x *adoption, err error) {
	delete(a.queues.adopting, x.queue)
	if err == nil {
		a.srv.Metrics.QueuesAdopted.Add(1)
	}
	a.sendInOrder(shardOf(x.queue.User), &finishAdoption{a.realm.ID(), x.queue, x.told, a.durable, err})
}

// endAdoptions ends all adoptions, because facts are missing here. The clients ask again.
func (a *replicaActor) endAdoptions() {
	for _, x := range a.queues.adopting {
		a.finishAdoption(x, errCannotFollow)
	}
}

// handleAckReport notes the acknowledgements of a session actor's queues, and reports them to the owner.
func (a *replicaActor) handleAckReport(m ackReport) {
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

func (a *replicaActor) sendAckReport() {
	q := &a.queues
	q.timed, q.reportAt = false, a.srv.sinceOpen()+ackReportsEvery
	a.options.Owner.ReportAcks(a.realm.ID(), q.acks)
}

// OwnerConnected says that the connection to the owner of a realm is new: the replica tells the owner which queues this
// node keeps.
func (srv *Server) OwnerConnected(id realm.ID) {
	if r := srv.find(id); r != nil && r.owner != nil {
		srv.runtime.send(r.pid, ownerConnected{})
	}
}

// listKeptQueues asks the session actors for their queues.
func (a *replicaActor) listKeptQueues() {
	q := &a.queues
	q.round++
	q.answers, q.keepAt = 0, a.srv.elapsed()+keepQueuesEvery
	q.kept = KeptQueues{Through: a.durable, Number: q.number}
	round, pid := q.round, a.handle.pid
	for k := range a.handle.shards {
		a.sendInOrder(k, listQueues{a.realm.ID(), func(list []QueueRef) {
			a.srv.runtime.send(pid, queuesKept{round, list})
		}})
	}
}

// handleKeptQueues tells the owner which queues this node keeps, when all session actors have answered.
func (a *replicaActor) handleKeptQueues(m queuesKept) {
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
	for all := k.Queues; ; all = all[MaxKeptQueues:] {
		k.Queues, k.More = all, false
		if len(all) > MaxKeptQueues {
			k.Queues, k.More = all[:MaxKeptQueues], true
		}
		a.options.Owner.KeepQueues(a.realm.ID(), k)
		if !k.More {
			break
		}
	}
	a.sendAckReport()
}

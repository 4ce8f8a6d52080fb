package actors

import (
	"time"

	"parley/actors/delivery"
	"parley/actors/realm"
)

const (
	// MaxAdoptionWait is how long a poll waits for the adoption of its queue. After a failure of the owner, a new owner
	// exists within 3 seconds.
	MaxAdoptionWait = 10 * time.Second
	// adoptRetryInterval is the time between two requests for a queue to the owner.
	adoptRetryInterval = 50 * time.Millisecond
	// ackReportInterval is the least time between two reports of a replica.
	ackReportInterval = time.Second
	// listQueuesInterval is the time in seconds between two lists of the hosted queues that a replica sends to the
	// owner. They correct any difference that lost messages have caused.
	listQueuesInterval = 60
)

// Messages of a replica actor about its event queues.
type (
	retryAdoption struct{ adoption *adoption }
	queueAdopted  struct { // the owner's answer
		adoption *adoption
		asked    Adoption
		answer   Adopted
		err      error
	}
	ownerConnected struct{}
	hostedList     struct { // a session actor's answer to listQueues
		round uint64
		list  []delivery.QueueRef
	}
	sendAckReport struct{}
)

// adoption is a queue that this node is adopting.
type adoption struct {
	queue        delivery.QueueRef
	last         int64
	began        time.Duration // Server.sinceOpen
	asked        Adoption
	publications []realm.Publication
	finishAt     realm.Seq // fact that this node must have applied to continue; 0: the owner has not answered
	complete     bool      // all events are there
}

// replicaQueues is the state of a replica actor about the event queues of its node.
type replicaQueues struct {
	adopting map[delivery.QueueRef]*adoption
	number   uint64 // of the last adoption
	acks     QueueAcks
	reportAt time.Duration // Server.sinceOpen; when the next report of acknowledgements may be sent
	timed    bool          // a timer will send it
	round    uint64        // counts the lists of queues that were asked for
	kept     HostedQueues
	answers  int   // session actors that have answered
	listAt   int64 // Server.elapsed; when the next list is due
	// Queues that were opened on this node since it last had none; 0: it has none, and events need not be delivered.
	opened       int
	openedBefore int  // the same at the beginning of the list
	used         bool // a queue was opened or asked for since the start: the owner may believe that it is here
}

// recordOpened records that a queue is being opened here.
func (q *replicaQueues) recordOpened() { q.opened, q.used = q.opened+1, true }

// none reports whether this node hosts no queue.
func (q *replicaQueues) none() bool { return q.opened == 0 }

// adoptQueue begins to adopt a queue.
func (a *replicaClients) adoptQueue(m delivery.AdoptQueue) {
	x := &adoption{queue: m.Queue, last: m.Last, began: a.srv.sinceOpen()}
	if a.queues.adopting == nil {
		a.queues.adopting = map[delivery.QueueRef]*adoption{}
	}
	a.queues.adopting[m.Queue] = x
	a.tryAdoption(x)
}

// tryAdoption asks the owner for the queue. If the replica knows the queue, the session actor opens it first: it gets
// the events up to this moment from the owner and later events from the replica. Each attempt starts from the
// beginning, because the outcome of the previous one is unknown.
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
		a.queues.recordOpened()
		x.asked.Through, x.asked.Number = a.durable, a.queues.number
		a.handle.sessions.SendInOrder(delivery.ActorOf(q.User),
			&delivery.OpenAdopted{Queue: *q, Seq: a.durable, Generation: a.queues.number})
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
		a.srv.runtime.Send(pid, &queueAdopted{x, asked, answer, err})
	})
}

// handleAdopted continues an adoption after the owner has answered.
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
		a.srv.runtime.After(adoptRetryInterval, func() { a.srv.runtime.Send(a.handle.pid, retryAdoption{x}) })
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
		// The client may have events of newer facts than this node has applied. Checking its last_event_id needs these
		// facts.
		x.complete, x.finishAt = true, 1
		if q := a.realm.FindQueue(x.queue.ID); q != nil && x.last > 0 {
			x.finishAt = min(q.At+realm.Seq(x.last>>8), m.answer.Seq)
		}
		a.continueAdoption(x)
	}
}

// continueAdoption continues an adoption if the replica has applied the facts that it waits for.
func (a *replicaClients) continueAdoption(x *adoption) {
	switch {
	case x.finishAt == 0 || x.finishAt > a.durable:
	case x.complete:
		a.finishAdoption(x, nil)
	default:
		a.tryAdoption(x)
	}
}

// continueAdoptions continues the adoptions that wait for facts. It is called after a batch was applied.
func (a *replicaClients) continueAdoptions() {
	for _, x := range a.queues.adopting {
		a.continueAdoption(x)
	}
}

// finishAdoption sends the result of an adoption to the session actor.
func (a *replicaClients) finishAdoption(x *adoption, err error) {
	delete(a.queues.adopting, x.queue)
	if err == nil {
		a.srv.Metrics.QueuesAdopted.Add(1)
	}
	a.handle.sessions.SendInOrder(delivery.ActorOf(x.queue.User), &delivery.FinishAdoption{Queue: x.queue,
		Publications: x.publications, Seq: a.durable, Err: err})
}

// failAdoptions ends all adoptions with an error, because facts are missing on this node. The clients poll again.
func (a *replicaClients) failAdoptions() {
	for _, x := range a.queues.adopting {
		a.finishAdoption(x, errCannotFollow)
	}
}

// handleAckReport records the acknowledgements of a session actor's queues and reports them to the owner.
func (a *replicaClients) handleAckReport(m delivery.AckReport) {
	q := &a.queues
	k := m.SessionActor
	q.acks.Acked[k], q.acks.Seen[k], q.acks.Adopted[k] = m.Seq, m.Newest, m.Generation
	if q.timed {
		return
	}
	wait := q.reportAt - a.srv.sinceOpen()
	if wait <= 0 {
		a.sendAckReport()
		return
	}
	q.timed = true
	a.srv.runtime.After(wait, func() { a.srv.runtime.Send(a.handle.pid, sendAckReport{}) })
}

func (a *replicaClients) sendAckReport() {
	q := &a.queues
	q.timed, q.reportAt = false, a.srv.sinceOpen()+ackReportInterval
	if owner := a.srv.ownerOf(a.handle); owner != nil {
		owner.ReportAcks(a.realm.ID(), q.acks)
	}
}

// OwnerConnected must be called after a new connection to the owner of a realm was opened: the replica reports its
// hosted queues.
func (srv *Server) OwnerConnected(id realm.ID) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.Send(r.pid, ownerConnected{})
	}
}

// listHostedQueues asks the session actors for their queues.
func (a *replicaClients) listHostedQueues() {
	q := &a.queues
	q.round++
	q.answers, q.listAt = 0, a.srv.elapsed()+listQueuesInterval
	q.kept, q.openedBefore = HostedQueues{Through: a.durable, Number: q.number}, q.opened
	round, pid := q.round, a.handle.pid
	a.handle.sessions.SendAllInOrder(delivery.List{Reply: func(list []delivery.QueueRef) {
		a.srv.runtime.Send(pid, hostedList{round, list})
	}})
}

// handleHostedList reports the hosted queues to the owner when all session actors have answered.
func (a *replicaClients) handleHostedList(m hostedList) {
	q := &a.queues
	if m.round != q.round {
		return
	}
	q.kept.Queues = append(q.kept.Queues, m.list...)
	if q.answers++; q.answers < SessionActors {
		return
	}
	k := q.kept
	q.kept = HostedQueues{}
	owner := a.srv.ownerOf(a.handle)
	if owner == nil {
		return
	}
	if len(k.Queues) == 0 && q.opened == q.openedBefore {
		q.opened = 0
	}
	for all := k.Queues; ; all = all[MaxHostedQueues:] {
		k.Queues, k.More = all, false
		if len(all) > MaxHostedQueues {
			k.Queues, k.More = all[:MaxHostedQueues], true
		}
		owner.ReportQueues(a.realm.ID(), k)
		if !k.More {
			break
		}
	}
	a.sendAckReport()
}

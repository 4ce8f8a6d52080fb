package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
)

// deliveryFlow is the flow control of one organization. It sends events to the session actors a few at a time, so that
// organizations share the session actors fairly. If events wait too long, it lets commands wait for their turn. This
// back-pressure keeps the delivery close behind the journal.
//
// Its methods may be called by any goroutine. No method blocks while it holds mu.
type deliveryFlow struct {
	srv    *Server
	handle *realmHandle

	mu         sync.Mutex
	lag        admission.Lag
	limiter    admission.FetchLimiter
	queue      *admission.WaitQueue[int64, *ask] // waiting commands; nil until a command has to wait
	waiting    []*delivery                       // not yet sent to the session actors; in order
	timerSet   bool                              // a timer will call admitWaiting
	recipients int64                             // of the deliveries in progress
}

// delivery is the delivery of the events of one turn to the event queues.
type delivery struct {
	flow       *deliveryFlow
	recipients int64
	number     int          // see admission.Lag
	left       atomic.Int32 // session actors that have not delivered their part
	deferred   *deferredDelivery
	inOrder    func() // see deliveryFlow.runInOrder; nothing else is set then
}

// deferredDelivery has the events of a delivery that could not be sent to the session actors at once, and the answer
// that waits for it.
type deferredDelivery struct {
	output pendingOutput
	parts  [SessionActors][]realm.Publication
	sizes  [SessionActors]int64
}

// Limits of the commands that wait because events are late.
const (
	// MaxWaitingCommands is how many commands of one organization wait. Each one holds a connection, and 20 kB if it is
	// not an ordinary message.
	MaxWaitingCommands = 4096
	// MaxWaitingOfAccount is how many of them may belong to one account: more than the concurrent requests of a client.
	MaxWaitingOfAccount = 64
	// MaxCommandWait is how long a command may wait. Clients repeat a request after 15 seconds or later.
	MaxCommandWait = 10 * time.Second
	// DeliveryWindow is how many recipients of one organization's events may be in progress in the session actors;
	// later events wait. A full window is some milliseconds of work, by which it may delay another organization.
	DeliveryWindow = 4096
	// admitRetryInterval is the time after which waiting commands are checked again, if no delivery ends before.
	admitRetryInterval = 5 * time.Millisecond
	// DefaultDeliveryLag is how long events may wait for their delivery before commands have to wait.
	DefaultDeliveryLag = 250 * time.Millisecond
)

// errOverloaded is the answer to commands that cannot wait or have waited too long.
var errOverloaded = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"The server is overloaded; try again in a few seconds.")

// tryAdmit admits a command and returns true if it may have its turn now: the caller then sends it to the realm actor,
// with admitted set. Otherwise the command must wait.
func (f *deliveryFlow) tryAdmit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue != nil && f.queue.Len() > 0 || !f.allowsCommand() {
		return false
	}
	f.lag.Admit()
	return true
}

// wait queues a command that was not admitted. It is later sent to the realm actor or refused.
func (f *deliveryFlow) wait(m *ask) {
	m.admitted = true
	charged, bot := f.srv.charged(f.handle.id, m.caller.User)
	account := admission.Account[int64]{User: int64(charged), Bot: bot}
	f.mu.Lock()
	if f.queue == nil {
		f.queue = admission.NewWaitQueue[int64, *ask](MaxWaitingCommands, MaxWaitingOfAccount)
	}
	before := f.queue.Len()
	refused, full := f.queue.Add(account, m, f.srv.sinceOpen())
	f.srv.Metrics.CommandsWaited.Add(1)
	f.srv.Metrics.CommandsWaiting.Add(int64(f.queue.Len() - before))
	f.admitWaiting()
	f.mu.Unlock()
	if full {
		f.refuse(refused)
	}
}

// allowsCommand reports whether the events of another command would be delivered and fetched in time. mu is held.
func (f *deliveryFlow) allowsCommand() bool {
	limit := f.srv.deliveryLag
	if limit <= 0 {
		return true
	}
	now := f.srv.sinceOpen()
	return f.lag.Estimate(now) < limit && f.limiter.Allows(f.lag.Admitted(), now)
}

// state returns the number of waiting commands, and the expected waiting time of new events in nanoseconds.
func (f *deliveryFlow) state() (waiting, lag int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue != nil {
		waiting = int64(f.queue.Len())
	}
	return waiting, int64(f.lag.Estimate(f.srv.sinceOpen()))
}

// countPolls counts the answers to polls that one session actor has sent.
func (f *deliveryFlow) countPolls(a admission.Answers, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limiter.CountFetched(a, now)
	f.admitWaiting()
}

// refuse answers a command that did not get a turn.
func (f *deliveryFlow) refuse(m *ask) {
	f.srv.Metrics.CommandsRefused.Add(1)
	f.srv.countRefusal(errOverloaded)
	if m.async != nil {
		f.handle.inFlight.Add(-1)
		m.async.Done(nil, errOverloaded)
		return
	}
	m.reply <- answer{err: errOverloaded}
}

// admitWaiting gives waiting commands their turns. mu is held.
func (f *deliveryFlow) admitWaiting() {
	for f.queue != nil && f.queue.Len() > 0 && f.allowsCommand() {
		m, waited, _ := f.queue.Next(f.srv.sinceOpen())
		f.srv.Metrics.CommandsWaiting.Add(-1)
		f.srv.Metrics.CommandWaitNanos.Add(int64(waited))
		f.lag.Admit()
		f.srv.runtime.Send(f.handle.pid, m)
	}
	if f.queue != nil && f.queue.Len() > 0 && !f.timerSet {
		f.timerSet = true
		f.srv.runtime.After(admitRetryInterval, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.timerSet = false
			f.admitWaiting()
		})
	}
}

// expire refuses the commands that have waited too long.
func (f *deliveryFlow) expire() {
	f.mu.Lock()
	var late []*ask
	if f.queue != nil && f.queue.Len() > 0 {
		late = f.queue.Expire(f.srv.sinceOpen() - MaxCommandWait)
		f.srv.Metrics.CommandsWaiting.Add(-int64(len(late)))
		f.admitWaiting()
	}
	f.mu.Unlock()
	for _, m := range late {
		f.refuse(m)
	}
}

// release delivers the output of a turn whose facts are on disk. It sends the events to the session actors, at once or
// later, and the answer after the events. So a client that has received the id of its new event queue can poll it.
func (f *deliveryFlow) release(p *pendingOutput) {
	if len(p.publications) == 0 {
		if p.admitted {
			f.mu.Lock()
			f.lag.Drop()
			f.admitWaiting()
			f.mu.Unlock()
		}
		f.srv.answer(f.handle, p)
		return
	}
	parts, sizes := splitBySessionActor(p.publications)
	d := &delivery{flow: f}
	left := int32(0)
	for k := range parts {
		if parts[k] != nil {
			left++
			d.recipients += sizes[k]
		}
	}
	if left == 0 {
		p.publications = nil
		f.release(p)
		return
	}
	d.left.Store(left)
	f.srv.Metrics.Undelivered.Add(d.recipients)
	f.mu.Lock()
	d.number = f.lag.Commit(p.admitted, f.srv.sinceOpen())
	f.limiter.CountProduced(int(d.recipients) * max(p.weight, 1))
	now := len(f.waiting) == 0 && f.recipients < DeliveryWindow
	if now {
		f.dispatch(d, &parts, &sizes)
	} else {
		d.deferred = &deferredDelivery{output: *p, parts: parts, sizes: sizes}
		d.deferred.output.publications = nil
		f.waiting = append(f.waiting, d)
	}
	f.mu.Unlock()
	if now {
		f.srv.answer(f.handle, p)
	}
}

// dispatch sends events to the session actors. mu is held.
func (f *deliveryFlow) dispatch(d *delivery, parts *[SessionActors][]realm.Publication, sizes *[SessionActors]int64) {
	f.recipients += d.recipients
	for k, part := range parts {
		if part != nil {
			f.srv.runtime.Send(f.handle.sessionActors[k], &deliver{f.handle, part, sizes[k], d})
		}
	}
}

// runInOrder calls send after all earlier released events have been sent to the session actors, and before later ones
// are sent. send must not block and must not use the flow.
func (f *deliveryFlow) runInOrder(send func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		send()
		return
	}
	f.waiting = append(f.waiting, &delivery{flow: f, inOrder: send})
}

// dispatchWaiting sends waiting events to the session actors, as far as the window allows. It returns the deliveries
// whose answers must be sent. mu is held.
func (f *deliveryFlow) dispatchWaiting() (passed []*deferredDelivery) {
	for len(f.waiting) > 0 && f.recipients < DeliveryWindow {
		d := f.waiting[0]
		f.waiting[0] = nil
		f.waiting = f.waiting[1:]
		if d.inOrder != nil {
			d.inOrder()
			continue
		}
		passed = append(passed, d.deferred)
		f.dispatch(d, &d.deferred.parts, &d.deferred.sizes)
	}
	return passed
}

// partDelivered must be called when a session actor has delivered its part.
func (d *delivery) partDelivered() {
	if d.left.Add(-1) > 0 {
		return
	}
	f := d.flow
	f.mu.Lock()
	f.lag.Deliver(d.number, f.srv.sinceOpen())
	f.recipients -= d.recipients
	passed := f.dispatchWaiting()
	f.admitWaiting()
	f.mu.Unlock()
	for _, x := range passed {
		f.srv.answer(f.handle, &x.output)
	}
}

// answer sends the answer of a turn or view, and its outbox jobs.
func (srv *Server) answer(r *realmHandle, p *pendingOutput) {
	if p.reply != nil {
		p.reply <- p.answer
	}
	if p.async != nil {
		r.inFlight.Add(-1)
		p.async.Done(p.answer.result, p.answer.err)
	}
	if p.released != nil {
		p.released()
	}
	srv.addOutboxJobs(r, p.jobs)
}

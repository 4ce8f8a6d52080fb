package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
)

// deliveryFlow couples the commands of one organization to the delivery of their events. It passes events to the
// session actors a few at a time, so that organizations share these fairly. If events wait too long, it lets commands
// wait for their turn: so the journal does not run ahead of delivery, and the clients feel it.
//
// Its methods may be called by any goroutine. Nothing waits for anything while mu is held.
type deliveryFlow struct {
	srv    *Server
	handle *realmHandle

	mu         sync.Mutex
	lag        admission.Lag
	pollers    admission.Pollers
	room       *admission.Room[int64, *ask] // nil until a command has to wait
	waiting    []*delivery                  // their events must be passed to the session actors, in this order
	timed      bool                         // a timer will call admitWaiting
	recipients int64                        // of the deliveries that were passed on and are in progress
}

// delivery is the events of one turn on their way to the event queues.
type delivery struct {
	flow       *deliveryFlow
	recipients int64
	number     int          // see admission.Lag
	left       atomic.Int32 // session actors that have not delivered their part
	late       *lateDelivery
	inOrder    func() // see deliveryFlow.inOrder; nothing else is set then
}

// lateDelivery is the part of a delivery that is needed until its events are passed to the session actors, if that
// could not be done at once.
type lateDelivery struct {
	output pendingOutput
	parts  [Shards][]realm.Publication
	sizes  [Shards]int64
}

// Limits of the commands that wait because events are late.
const (
	// MaxWaitingCommands is how many commands of one organization wait. Each one holds a connection, and 20 kB if it is
	// not an ordinary message.
	MaxWaitingCommands = 4096
	// MaxWaitingOfAccount is how many of them may be of one account: more than a client has requests under way.
	MaxWaitingOfAccount = 64
	// MaxCommandWait is how long one waits. Clients repeat a request after 15 seconds or later.
	MaxCommandWait = 10 * time.Second
	// DeliveryWindow is how many recipients of one organization's events may wait in the session actors; the events
	// after them wait until these are delivered. It takes them some milliseconds, by which they may delay another
	// organization.
	DeliveryWindow = 4096
	// admitAgainAfter is how soon the next commands are admitted, if no delivery ends before.
	admitAgainAfter = 5 * time.Millisecond
	// DefaultDeliveryLag is the time that events may wait before commands wait.
	DefaultDeliveryLag = 250 * time.Millisecond
)

// errOverloaded is the answer to commands that cannot wait or have waited too long.
var errOverloaded = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"The server is overloaded; try again in a few seconds.")

// tryAdmit reports whether a command may have its turn now. Then the caller passes it to the realm actor, with admitted
// set. Otherwise it must wait.
func (f *deliveryFlow) tryAdmit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room != nil && f.room.Len() > 0 || !f.hasRoom() {
		return false
	}
	f.lag.Admit()
	return true
}

// wait keeps a command that was not admitted. The flow passes it to the realm actor later, or answers it.
func (f *deliveryFlow) wait(m *ask) {
	m.admitted = true
	account := admission.Account[int64]{User: int64(m.caller.User), Bot: f.srv.isBot(f.handle.id, m.caller.User)}
	f.mu.Lock()
	if f.room == nil {
		f.room = admission.NewRoom[int64, *ask](MaxWaitingCommands, MaxWaitingOfAccount)
	}
	before := f.room.Len()
	refused, full := f.room.Add(account, m, f.srv.sinceOpen())
	f.srv.Metrics.CommandsWaited.Add(1)
	f.srv.Metrics.CommandsWaiting.Add(int64(f.room.Len() - before))
	f.admitWaiting()
	f.mu.Unlock()
	if full {
		f.refuse(refused)
	}
}

// hasRoom reports whether the events of a further command would be delivered in time. mu is held.
func (f *deliveryFlow) hasRoom() bool {
	limit := f.srv.deliveryLag
	if limit <= 0 {
		return true
	}
	now := f.srv.sinceOpen()
	return f.lag.Estimate(now) < limit && f.pollers.HasRoom(f.lag.Admitted(), now)
}

// state returns how many commands wait, and how many nanoseconds new events will wait.
func (f *deliveryFlow) state() (waiting, lag int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.room != nil {
		waiting = int64(f.room.Len())
	}
	return waiting, int64(f.lag.Estimate(f.srv.sinceOpen()))
}

// countPolls counts the answers to polls that one session actor has sent.
func (f *deliveryFlow) countPolls(a admission.Answers, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pollers.Count(a, now)
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
	for f.room != nil && f.room.Len() > 0 && f.hasRoom() {
		m, waited, _ := f.room.Next(f.srv.sinceOpen())
		f.srv.Metrics.CommandsWaiting.Add(-1)
		f.srv.Metrics.CommandWaitNanos.Add(int64(waited))
		f.lag.Admit()
		f.srv.runtime.send(f.handle.pid, m)
	}
	if f.room != nil && f.room.Len() > 0 && !f.timed {
		f.timed = true
		f.srv.runtime.after(admitAgainAfter, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.timed = false
			f.admitWaiting()
		})
	}
}

// expire refuses the commands that have waited too long.
func (f *deliveryFlow) expire() {
	f.mu.Lock()
	var late []*ask
	if f.room != nil && f.room.Len() > 0 {
		late = f.room.Expire(f.srv.sinceOpen() - MaxCommandWait)
		f.srv.Metrics.CommandsWaiting.Add(-int64(len(late)))
		f.admitWaiting()
	}
	f.mu.Unlock()
	for _, m := range late {
		f.refuse(m)
	}
}

// release lets the output of a turn leave whose facts are on disk: its answer when its events are passed to the session
// actors, which may be later. So a client that was told of its new event queue finds it.
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
	parts, sizes := splitByShard(p.publications)
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
	f.pollers.Spend(int(d.recipients) * max(p.weight, 1))
	now := len(f.waiting) == 0 && f.recipients < DeliveryWindow
	if now {
		f.pass(d, &parts, &sizes)
	} else {
		d.late = &lateDelivery{output: *p, parts: parts, sizes: sizes}
		d.late.output.publications = nil
		f.waiting = append(f.waiting, d)
	}
	f.mu.Unlock()
	if now {
		f.srv.answer(f.handle, p)
	}
}

// pass passes events to the session actors. mu is held.
func (f *deliveryFlow) pass(d *delivery, parts *[Shards][]realm.Publication, sizes *[Shards]int64) {
	f.recipients += d.recipients
	for k, part := range parts {
		if part != nil {
			f.srv.runtime.send(f.handle.shards[k], &deliver{f.handle, part, sizes[k], d})
		}
	}
}

// inOrder calls do when all events that were released before have been passed to the session actors, and before later
// ones are. do must not block, and not use the flow.
func (f *deliveryFlow) inOrder(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		do()
		return
	}
	f.waiting = append(f.waiting, &delivery{flow: f, inOrder: do})
}

// passWaiting passes waiting events on, as far as the window allows. It returns the deliveries whose answers may leave.
// mu is held.
func (f *deliveryFlow) passWaiting() (passed []*lateDelivery) {
	for len(f.waiting) > 0 && f.recipients < DeliveryWindow {
		d := f.waiting[0]
		f.waiting[0] = nil
		f.waiting = f.waiting[1:]
		if d.inOrder != nil {
			d.inOrder()
			continue
		}
		passed = append(passed, d.late)
		f.pass(d, &d.late.parts, &d.late.sizes)
	}
	return passed
}

// partDelivered says that a session actor has delivered its part.
func (d *delivery) partDelivered() {
	if d.left.Add(-1) > 0 {
		return
	}
	f := d.flow
	f.mu.Lock()
	f.lag.Deliver(d.number, f.srv.sinceOpen())
	f.recipients -= d.recipients
	passed := f.passWaiting()
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

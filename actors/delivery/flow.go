package delivery

import (
	"sync"
	"sync/atomic"
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/actors/stream"
)

// Flow is the flow control of one organization. It sends events to the session actors a few at a time, so that
// organizations share the session actors fairly. If events wait too long, it lets commands wait for their turn. This
// back-pressure keeps the delivery close behind the journal.
//
// Its methods may be called by any goroutine. No method blocks while it holds mu.
type Flow struct {
	env *Env
	all *Sessions

	mu         sync.Mutex
	lag        admission.Lag
	limiter    admission.FetchLimiter
	queue      *admission.WaitQueue[int64, Command] // waiting commands; nil until a command has to wait
	waiting    []*delivery                          // not yet sent to the session actors; in order
	timerSet   bool                                 // a timer will call admitWaiting
	recipients int64                                // of the deliveries in progress
}

// Command is a command that may have to wait for its turn.
type Command interface {
	User() realm.UserID // of the caller
	Refuse(error)       // answers it without a turn
}

// newFlow makes the flow control of some sessions.
func newFlow(env *Env, all *Sessions) *Flow {
	return &Flow{env: env, all: all, limiter: admission.NewFetchLimiter(env.Lag)}
}

// delivery is the delivery of the events of one turn to the event queues.
type delivery struct {
	flow       *Flow
	recipients int64
	number     int          // see admission.Lag
	left       atomic.Int32 // session actors that have not delivered their part
	deferred   *deferredDelivery
	inOrder    func() // see Flow.runInOrder; nothing else is set then
}

// deferredDelivery has the events of a delivery that could not be sent to the session actors at once, and the answer
// that waits for it.
type deferredDelivery struct {
	output stream.Output
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

// ErrOverloaded is the answer to commands that cannot wait or have waited too long.
var ErrOverloaded = realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
	"The server is overloaded; try again in a few seconds.")

// TryAdmit admits a command and returns true if it may have its turn now: the caller then sends it to Main, and its
// Output is Admitted. Otherwise the command must wait.
func (f *Flow) TryAdmit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue != nil && f.queue.Len() > 0 || !f.allowsCommand() {
		return false
	}
	f.lag.Admit()
	return true
}

// Wait queues a command that was not admitted. It is later sent to Main, with an Output that is Admitted, or refused.
func (f *Flow) Wait(m Command) {
	charged, bot := f.env.Node.Charged(f.all.Realm, m.User())
	account := admission.Account[int64]{User: int64(charged), Bot: bot}
	f.mu.Lock()
	if f.queue == nil {
		f.queue = admission.NewWaitQueue[int64, Command](MaxWaitingCommands, MaxWaitingOfAccount)
	}
	before := f.queue.Len()
	refused, full := f.queue.Add(account, m, f.env.SinceOpen())
	f.env.Metrics.CommandsWaited.Add(1)
	f.env.Metrics.CommandsWaiting.Add(int64(f.queue.Len() - before))
	f.admitWaiting()
	f.mu.Unlock()
	if full {
		f.refuse(refused)
	}
}

// allowsCommand reports whether the events of another command would be delivered and fetched in time. mu is held.
func (f *Flow) allowsCommand() bool {
	limit := f.env.Lag
	if limit <= 0 {
		return true
	}
	now := f.env.SinceOpen()
	return f.lag.Estimate(now) < limit && f.limiter.Allows(f.lag.Admitted(), now)
}

// State returns the number of waiting commands, and the expected waiting time of new events in nanoseconds.
func (f *Flow) State() (waiting, lag int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.queue != nil {
		waiting = int64(f.queue.Len())
	}
	return waiting, int64(f.lag.Estimate(f.env.SinceOpen()))
}

// countPolls counts the answers to polls that one session actor has sent.
func (f *Flow) countPolls(a admission.Answers, now time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limiter.CountFetched(a, now)
	f.admitWaiting()
}

// refuse answers a command that did not get a turn.
func (f *Flow) refuse(m Command) {
	f.env.Metrics.CommandsRefused.Add(1)
	f.env.Node.Refused(ErrOverloaded)
	m.Refuse(ErrOverloaded)
}

// admitWaiting gives waiting commands their turns. mu is held.
func (f *Flow) admitWaiting() {
	for f.queue != nil && f.queue.Len() > 0 && f.allowsCommand() {
		m, waited, _ := f.queue.Next(f.env.SinceOpen())
		f.env.Metrics.CommandsWaiting.Add(-1)
		f.env.Metrics.CommandWaitNanos.Add(int64(waited))
		f.lag.Admit()
		f.env.Runtime.Send(f.all.main, m)
	}
	if f.queue != nil && f.queue.Len() > 0 && !f.timerSet {
		f.timerSet = true
		f.env.Runtime.After(admitRetryInterval, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.timerSet = false
			f.admitWaiting()
		})
	}
}

// expire refuses the commands that have waited too long.
func (f *Flow) expire() {
	f.mu.Lock()
	var late []Command
	if f.queue != nil && f.queue.Len() > 0 {
		late = f.queue.Expire(f.env.SinceOpen() - MaxCommandWait)
		f.env.Metrics.CommandsWaiting.Add(-int64(len(late)))
		f.admitWaiting()
	}
	f.mu.Unlock()
	for _, m := range late {
		f.refuse(m)
	}
}

// Release delivers an output whose facts are on disk. It sends the events to the session actors, at once or later, and
// the answer after the events. So a client that has received the id of its new event queue can poll it.
func (f *Flow) Release(p *stream.Output) {
	if len(p.Publications) == 0 {
		if p.Admitted {
			f.mu.Lock()
			f.lag.Drop()
			f.admitWaiting()
			f.mu.Unlock()
		}
		p.Answer.Send()
		return
	}
	parts, sizes := Split(p.Publications)
	d := &delivery{flow: f}
	left := int32(0)
	for k := range parts {
		if parts[k] != nil {
			left++
			d.recipients += sizes[k]
		}
	}
	if left == 0 {
		p.Publications = nil
		f.Release(p)
		return
	}
	d.left.Store(left)
	f.all.CountUndelivered(d.recipients)
	f.mu.Lock()
	d.number = f.lag.Commit(p.Admitted, f.env.SinceOpen())
	f.limiter.CountProduced(int(d.recipients) * max(p.Weight, 1))
	now := len(f.waiting) == 0 && f.recipients < DeliveryWindow
	if now {
		f.dispatch(d, &parts, &sizes)
	} else {
		d.deferred = &deferredDelivery{output: *p, parts: parts, sizes: sizes}
		d.deferred.output.Publications = nil
		f.waiting = append(f.waiting, d)
	}
	f.mu.Unlock()
	if now {
		p.Answer.Send()
	}
}

// dispatch sends events to the session actors. mu is held.
func (f *Flow) dispatch(d *delivery, parts *[SessionActors][]realm.Publication, sizes *[SessionActors]int64) {
	f.recipients += d.recipients
	for k, part := range parts {
		if part != nil {
			f.env.Runtime.Send(f.all.actors[k], &deliver{part, sizes[k], d})
		}
	}
}

// runInOrder calls send after all earlier released events have been sent to the session actors, and before later ones
// are sent. send must not block and must not use the flow.
func (f *Flow) runInOrder(send func()) {
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
func (f *Flow) dispatchWaiting() (passed []*deferredDelivery) {
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
	f.lag.Deliver(d.number, f.env.SinceOpen())
	f.recipients -= d.recipients
	passed := f.dispatchWaiting()
	f.admitWaiting()
	f.mu.Unlock()
	for _, x := range passed {
		x.output.Answer.Send()
	}
}

package replica

import (
	"slices"
	"sync/atomic"

	"parley/actors/mailbox"
	"parley/actors/realm"
	"parley/actors/stream"
)

// MaxEphemeralAhead is how many ephemeral events a replica stores until it has applied the facts before them. Beyond it
// the oldest are dropped: ephemeral events may be lost.
const MaxEphemeralAhead = 1000

// Clients are the clients of a realm on a node that does not own it.
type Clients interface {
	// Address is where the messages of the subscription are sent.
	Address() mailbox.Address
	// Opens reports whether this node hosts the queue that a request opens, because it has sent the request to the
	// owner. The queue is being opened then.
	Opens(request string) bool
	// Expect says that this node has sent a request that may open a queue.
	Expect()
	// HasQueues reports whether this node hosts event queues.
	HasQueues() bool
	// Release sends an output to the queues.
	Release(*stream.Output)
	// Applied continues the requests that wait for applied facts.
	Applied()
}

// Follower is the replica of a realm that another node owns: it applies the batches of a Source.
type Follower struct {
	Replica
	clients      Clients
	published    *atomic.Uint64 // fact up to which all events have been sent to the queues
	subscription subscription
	waiting      []Wait
	ephemeral    []realm.Publication // by arrival; see MaxEphemeralAhead
	expected     map[string]*Expected
}

// NewFollower returns the replica of a realm all of whose facts up to durable are on disk.
func NewFollower(
	env *Env, caches Caches, clients Clients, published *atomic.Uint64, r *realm.Realm, durable realm.Seq,
) Follower {
	return Follower{Replica: Replica{env, caches, r, durable}, clients: clients, published: published}
}

// Messages of clients to a Follower.
type (
	// Wait is answered when a fact has been applied and its events have been sent to the session actors.
	Wait struct {
		Seq    realm.Seq
		Done   chan struct{}
		Forget bool // the caller does not wait any more
	}
	// Expect registers, or forgets, a view that runs right after the facts of a request.
	Expect struct {
		*Expected
		Forget bool
	}
	// Ephemeral is an ephemeral event of the owner.
	Ephemeral struct{ Publication realm.Publication }
	// delivered says that the events of all facts up to seq have been sent to the session actors.
	delivered struct{ seq realm.Seq }
)

// Expected is a view that runs on a replica right after the facts of a request, before later facts.
type Expected struct {
	Request string
	Caller  realm.Caller
	View    func(v realm.View, opened *realm.Queue) (any, error)
	Result  chan stream.Result // has room for the result
}

// Message is a message of clients to the actor of a realm.
type Message interface {
	// HandleFollower handles it on a node that follows.
	HandleFollower(*Follower)
	// HandleOwner answers it on the owner, to which it was sent before this node became the owner.
	HandleOwner(lost error)
}

// Follow subscribes to the batches after the last applied fact.
func (f *Follower) Follow(source Source) {
	f.subscription.end()
	f.subscription.begin(f.env, f.clients.Address(), source, f.realm)
}

// StopFollowing ends the subscription.
func (f *Follower) StopFollowing() { f.subscription.end() }

// IsFollowing reports whether there is a subscription.
func (f *Follower) IsFollowing() bool { return f.subscription.stop != nil }

// Retry returns the message that asks to subscribe again, if that has not happened before it arrives.
func (f *Follower) Retry() Retry { return Retry{f.subscription.number} }

// MustRetry reports whether there was no subscription since the message was made.
func (f *Follower) MustRetry(m Retry) bool { return m.subscription == f.subscription.number }

// HasEnded reports whether the message is about the present subscription.
func (f *Follower) HasEnded(m Ended) bool { return m.subscription == f.subscription.number }

// Apply applies the next batch. It returns nil for a batch of an earlier subscription, and an error if the batch does
// not follow the last applied fact. Deliver must be called with the result.
func (f *Follower) Apply(m *Next) (*stream.Committed, error) {
	<-m.slots
	if m.subscription != f.subscription.number {
		return nil, nil
	}
	if err := f.realm.CheckFollows(m.batch); err != nil {
		return nil, err
	}
	c := f.replay(m)
	f.Stored(f.realm.Seq(), m.batch.Texts)
	f.Publish(c)
	return c, nil
}

// replay applies the facts of a batch and returns them with their events. It omits the events that open queues on other
// nodes. The views that wait for a request of the batch run directly after the facts of the request.
func (f *Follower) replay(m *Next) *stream.Committed {
	var publications []realm.Publication
	requests := m.batch.Requests
	for _, fact := range m.facts {
		t := f.realm.ReplayAt(fact, m.batch.Now, m.batch.Level)
		id := ""
		if len(requests) > 0 && requests[0].Seq == t.Seq {
			id, requests = requests[0].ID, requests[1:]
		}
		opened, _ := fact.(*realm.QueueOpened)
		isHere := opened != nil && id != "" && f.clients.Opens(id) // a registration records only one fact
		if len(t.Notices) > 0 && (opened == nil || isHere) {
			publications = append(publications, t)
		}
		f.runExpected(id, opened)
	}
	return stream.NewCommitted(f.realm, m.batch, m.facts, publications)
}

// Deliver sends the events of an applied batch to the session actors, if this node hosts queues, and continues
// everything that waits for its facts. weight is that of stream.Output.
func (f *Follower) Deliver(c *stream.Committed, weight int) {
	if !f.clients.HasQueues() {
		f.SetPublished(f.durable)
	} else {
		m, to := delivered{f.durable}, f.clients.Address()
		f.clients.Release(&stream.Output{
			Publications: c.Publications,
			Weight:       weight,
			Answer:       stream.Answer{Sent: func() { f.env.Runtime.Send(to, m) }},
		})
	}
	waiting := f.ephemeral
	f.ephemeral = nil
	for _, t := range waiting {
		f.deliverEphemeral(t)
	}
	f.clients.Applied()
}

// SetPublished records that the events of all facts up to seq were sent to the session actors.
func (f *Follower) SetPublished(seq realm.Seq) {
	f.published.Store(max(f.published.Load(), uint64(seq)))
	f.AnswerWaiting()
}

// runExpected runs the view that waits for a request whose facts have just been applied.
func (f *Follower) runExpected(request string, opened *realm.QueueOpened) {
	x := f.expected[request]
	if x == nil {
		return
	}
	delete(f.expected, request)
	x.Result <- f.View(x.Caller, func(v realm.View) (any, error) {
		if opened == nil {
			return x.View(v, nil)
		}
		q := opened.Queue
		return x.View(v, &q)
	})
}

// EndExpected answers the views that wait for the facts of a request with an error.
func (f *Follower) EndExpected(err error) {
	for id, x := range f.expected {
		delete(f.expected, id)
		x.Result <- stream.Result{Err: err}
	}
}

// BecomeOwner answers everything that waits for facts of the owner, because this node has become the owner. The views
// that wait for the facts of a request get the error.
func (f *Follower) BecomeOwner(err error) {
	f.StopFollowing()
	f.EndExpected(err)
	for _, w := range f.waiting {
		close(w.Done)
	}
	f.waiting, f.ephemeral = nil, nil
	f.published.Store(uint64(f.durable))
}

// HandleFollower registers or forgets the view.
func (m Expect) HandleFollower(f *Follower) {
	if m.Forget {
		delete(f.expected, m.Request)
		return
	}
	f.clients.Expect()
	if f.expected == nil {
		f.expected = map[string]*Expected{}
	}
	f.expected[m.Request] = m.Expected
}

// HandleOwner refuses the view.
func (m Expect) HandleOwner(lost error) {
	if !m.Forget {
		m.Result <- stream.Result{Err: lost}
	}
}

// HandleFollower adds the caller, or forgets it.
func (m Wait) HandleFollower(f *Follower) {
	f.HoldWait(m)
	f.AnswerWaiting()
}

// HandleOwner answers at once: the owner has every fact.
func (m Wait) HandleOwner(error) {
	if !m.Forget {
		close(m.Done)
	}
}

// HoldWait adds the caller of a Wait, or forgets it. AnswerWaiting answers it.
func (f *Follower) HoldWait(m Wait) {
	if m.Forget {
		f.waiting = slices.DeleteFunc(f.waiting, func(w Wait) bool { return w.Done == m.Done })
		return
	}
	f.waiting = append(f.waiting, m)
}

// AnswerWaiting answers the callers of Wait whose facts have been applied.
func (f *Follower) AnswerWaiting() {
	f.waiting = slices.DeleteFunc(f.waiting, func(w Wait) bool {
		if w.Seq > realm.Seq(f.published.Load()) {
			return false
		}
		close(w.Done)
		return true
	})
}

// HandleFollower delivers the event, or stores it until the facts before it are applied.
func (m Ephemeral) HandleFollower(f *Follower) { f.deliverEphemeral(m.Publication) }

// HandleOwner drops the event: it may be lost.
func (Ephemeral) HandleOwner(error) {}

// HandleFollower records that the events were sent.
func (m delivered) HandleFollower(f *Follower) { f.SetPublished(m.seq) }

// HandleOwner does nothing: BecomeOwner has answered all waiting callers.
func (delivered) HandleOwner(error) {}

func (f *Follower) deliverEphemeral(t realm.Publication) {
	if t.Seq > f.durable {
		if f.ephemeral = append(f.ephemeral, t); len(f.ephemeral) > MaxEphemeralAhead {
			f.ephemeral = slices.Delete(f.ephemeral, 0, 1)
		}
		return
	}
	if !f.clients.HasQueues() {
		return
	}
	t.Ephemeral, t.Seq = true, f.durable
	f.clients.Release(&stream.Output{Publications: []realm.Publication{t}})
}

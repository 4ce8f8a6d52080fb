package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"parley/actors/delivery"
	"parley/actors/realm"
)

// MaxEphemeralAhead is how many ephemeral events a replica stores until it has applied the facts before them. Beyond it
// the oldest are dropped: ephemeral events may be lost.
const MaxEphemeralAhead = 1000

// ephemeralFollowers are the replicas that get the ephemeral events of a realm, such as typing: one follower for each
// node.
type ephemeralFollowers struct {
	count atomic.Int32 // of list; an atomic, because every turn reads it
	mu    sync.Mutex
	list  map[*ephemeralFollower]struct{}
}

type ephemeralFollower struct{ pass func(realm.Publication) }

// pass sends the ephemeral events of a turn to every follower.
func (f *ephemeralFollowers) pass(publications []realm.Publication) {
	if f.count.Load() == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range publications {
		if t.Ephemeral {
			for x := range f.list {
				x.pass(t)
			}
		}
	}
}

// FollowEphemeral calls pass with every ephemeral event of a realm, when the facts before it are on disk and before the
// answer to its turn is sent. pass must neither block nor modify the event.
func (srv *Server) FollowEphemeral(id realm.ID, pass func(realm.Publication)) (stop func()) {
	r := srv.find(id)
	if r == nil {
		return func() {}
	}
	f, x := &r.ephemeral, &ephemeralFollower{pass}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.list == nil {
		f.list = map[*ephemeralFollower]struct{}{}
	}
	f.list[x] = struct{}{}
	f.count.Store(int32(len(f.list)))
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.list, x)
		f.count.Store(int32(len(f.list)))
	}
}

// DeliverEphemeral delivers an ephemeral event of the owner to the queues of a replica.
func (srv *Server) DeliverEphemeral(id realm.ID, t realm.Publication) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.Send(r.pid, ephemeralEvent{t})
	}
}

// ephemeralEvent is the message with which DeliverEphemeral sends an event to the actor of a realm.
type ephemeralEvent struct{ publication realm.Publication }

// deliverEphemeral delivers an ephemeral event, or stores it until the facts before it are applied.
func (a *replicaClients) deliverEphemeral(t realm.Publication) {
	if t.Seq > a.durable {
		if a.ephemeral = append(a.ephemeral, t); len(a.ephemeral) > MaxEphemeralAhead {
			a.ephemeral = slices.Delete(a.ephemeral, 0, 1)
		}
		return
	}
	if a.hosting.None() {
		return
	}
	t.Ephemeral, t.Seq = true, a.durable
	a.handle.sessions.Flow.Release(&delivery.Output{Publications: []realm.Publication{t}})
}

// deliverEphemeralAfter delivers the stored ephemeral events for which all earlier facts are applied now.
func (a *replicaClients) deliverEphemeralAfter() {
	waiting := a.ephemeral
	a.ephemeral = nil
	for _, t := range waiting {
		a.deliverEphemeral(t)
	}
}

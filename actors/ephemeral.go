package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"parley/actors/realm"
)

// MaxEphemeralAhead is how many events without a fact a replica keeps until it has applied the facts before them. It
// drops the oldest ones beyond that: such events may be lost.
const MaxEphemeralAhead = 1000

// ephemeralFollowers are the replicas to which the events without a fact are passed, such as typing: once for each
// node.
type ephemeralFollowers struct {
	count atomic.Int32 // of list; without a lock, because every turn asks it
	mu    sync.Mutex
	list  map[*ephemeralFollower]struct{}
}

type ephemeralFollower struct{ pass func(realm.Publication) }

// pass passes the events without a fact of a turn to every follower.
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

// FollowEphemeral calls pass with every event of a realm that has no fact, when the facts before it are on disk, before
// the answer to its turn leaves. pass must not block, nor change the event.
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

// DeliverEphemeral passes an event without a fact, which the owner has sent, to the queues of a replica.
func (srv *Server) DeliverEphemeral(id realm.ID, t realm.Publication) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.send(r.pid, ephemeralEvent{t})
	}
}

// ephemeralEvent is an event without a fact on its way to the queues of a replica.
type ephemeralEvent struct{ publication realm.Publication }

// deliverEphemeral delivers an event without a fact, or keeps it until the facts before it are applied.
func (a *replicaClients) deliverEphemeral(t realm.Publication) {
	if t.Seq > a.durable {
		if a.ephemeral = append(a.ephemeral, t); len(a.ephemeral) > MaxEphemeralAhead {
			a.ephemeral = slices.Delete(a.ephemeral, 0, 1)
		}
		return
	}
	if a.queues.none() {
		return
	}
	t.Ephemeral, t.Seq = true, a.durable
	a.handle.flow.release(&pendingOutput{publications: []realm.Publication{t}})
}

// deliverEphemeralAfter delivers the events without a fact whose facts before them are applied now.
func (a *replicaClients) deliverEphemeralAfter() {
	kept := a.ephemeral
	a.ephemeral = nil
	for _, t := range kept {
		a.deliverEphemeral(t)
	}
}

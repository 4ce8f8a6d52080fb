package actors

import (
	"sync"
	"sync/atomic"

	"parley/actors/realm"
	"parley/actors/replica"
)

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
	if !srv.has(id) {
		return func() {}
	}
	f, x := &srv.followersOf(id).ephemeral, &ephemeralFollower{pass}
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
		srv.runtime.Send(r.pid, replica.Ephemeral{Publication: t})
	}
}

package actors

import (
	"fmt"
	"time"

	"parley/actors/delivery"
	"parley/actors/realm"
)

// closedReplicaLifetime is how long the actors of a closed replica continue to refuse requests that were sent to them
// before.
const closedReplicaLifetime = time.Minute

// HasQueues reports whether this node hosts event queues of a realm. A closed queue still counts for up to two seconds.
func (srv *Server) HasQueues(id realm.ID) bool {
	r := srv.find(id)
	if r == nil {
		return false
	}
	return r.sessions.HasQueues()
}

// CloseReplica removes the replica of a realm from memory. Waiting polls are answered with no events; the owner then
// hosts their queues. OpenReplica can load the realm again.
func (srv *Server) CloseReplica(id realm.ID) error {
	srv.creating.Lock()
	defer srv.creating.Unlock()
	r := srv.find(id)
	if r == nil || r.source == nil {
		return fmt.Errorf("realm %d is not a replica of this node", id)
	}
	srv.mu.Lock()
	delete(srv.realms, id)
	if srv.byName[r.name] == r {
		delete(srv.byName, r.name)
	}
	srv.mu.Unlock()
	done := make(chan error, 1)
	srv.runtime.Send(r.pid, closeRealm{done})
	<-done
	r.sessions.SendAll(delivery.Drop{})
	srv.accounts.removeRealm(id)
	srv.renderer.ForgetRealm(id)
	srv.texts.dropRealm(id)
	srv.runtime.After(closedReplicaLifetime, func() {
		srv.runtime.Stop(r.pid)
		srv.runtime.Stop(r.presence)
		r.sessions.Stop()
	})
	return nil
}

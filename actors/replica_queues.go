package actors

import (
	"parley/actors/delivery"
	"parley/actors/realm"
)

// dropQueues asks the actor of a realm to remove queues that have moved to other nodes.
type dropQueues struct{ list []delivery.DroppedQueue }

// DropQueues removes queues of a realm that have moved to other nodes. Their clients poll there, so the queues are not
// closed.
func (srv *Server) DropQueues(id realm.ID, list []delivery.DroppedQueue) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.Send(r.pid, dropQueues{list})
	}
}

// dropQueues makes the session actors remove queues.
func (a *replicaClients) dropQueues(list []delivery.DroppedQueue) {
	var parts [SessionActors][]delivery.DroppedQueue
	for _, q := range list {
		k := delivery.ActorOf(q.User)
		parts[k] = append(parts[k], q)
	}
	for k, part := range parts {
		if len(part) > 0 {
			a.handle.sessions.SendInOrder(k, delivery.Forget(part))
		}
	}
}

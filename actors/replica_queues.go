package actors

import (
	"parley/actors/queue"
	"parley/actors/realm"
)

// QueueRef names an event queue.
type QueueRef struct {
	User realm.UserID
	ID   realm.QueueID
}

// Messages about the home of a queue.
type (
	// listQueues asks a session actor for its queues of a realm.
	listQueues struct {
		realm realm.ID
		reply func([]QueueRef) // must not block
	}
	// dropQueues asks the actor of a realm to remove queues that have moved to other nodes.
	dropQueues struct{ list []DroppedQueue }
	// forgetQueues asks a session actor to remove queues that have moved to other nodes. They are not closed.
	forgetQueues struct {
		realm realm.ID
		list  []DroppedQueue
	}
)

// DropQueues removes queues of a realm that have moved to other nodes. Their clients poll there, so the queues are not
// closed.
func (srv *Server) DropQueues(id realm.ID, list []DroppedQueue) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.Send(r.pid, dropQueues{list})
	}
}

// dropQueues makes the session actors remove queues.
func (a *replicaClients) dropQueues(list []DroppedQueue) {
	var parts [SessionActors][]DroppedQueue
	for _, q := range list {
		k := sessionActorOf(q.User)
		parts[k] = append(parts[k], q)
	}
	for k, part := range parts {
		if len(part) > 0 {
			a.sendInOrder(k, forgetQueues{a.handle.id, part})
		}
	}
}

// listQueues lists the queues of this session actor. Before it, the actor reports their acknowledgements, because an
// earlier report may not include all of them. Requests to close queues may have been lost, so they are sent again.
func (s *sessionActor) listQueues(m listQueues) {
	var list []QueueRef
	if r := s.realms[m.realm]; r != nil {
		r.sessions.EachQueue(func(q *queue.Queue) {
			q.CloseRequested = false
			list = append(list, QueueRef{q.Reg.User, q.Reg.ID})
		})
		s.reportAcks(r, r.ackedThrough(), false)
	}
	m.reply(list)
}

// forgetQueues removes queues without closing them. A waiting poll is answered with no events: its client polls again,
// and reaches the new home of the queue.
func (s *sessionActor) forgetQueues(m forgetQueues) {
	r := s.realms[m.realm]
	if r == nil {
		return
	}
	for _, x := range m.list {
		ss := r.session(x.User)
		if y := r.adopting[x.QueueRef]; ss == nil || y != nil && y.number > x.Number {
			continue
		}
		if q := ss.Remove(x.ID); q != nil {
			s.srv.Metrics.OpenQueues.Add(-1)
			s.confirmQueue(r, q.Restored())
			r.forgetAdopting(x.QueueRef)
			if p := q.Close(); p != nil {
				s.srv.Metrics.ParkedPolls.Add(-1)
				s.srv.protocol.AnswerPoll(p, x.ID, nil)
			}
		}
	}
}

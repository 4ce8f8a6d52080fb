package actors

import (
	"parley/actors/realm"
	"parley/actors/stream"
)

// forgetLocalQueues makes a standby drop its event queues, because the owner does not allow this node to host any.
type forgetLocalQueues struct{}

// ForgetLocalQueues drops the event queues of all realms that this core does not own. Their clients poll again, and the
// owner answers them.
func (srv *Server) ForgetLocalQueues() {
	srv.eachRealm(func(r *realmHandle) { srv.runtime.Send(r.pid, forgetLocalQueues{}) })
}

// receiveOfClients handles the messages about clients on a node that does not own the organization. The owner ignores
// those that were sent before it became the owner.
func (a *realmActor) receiveOfClients(message any) {
	if a.standby {
		if _, is := message.(forgetLocalQueues); is {
			if !a.queues.none() {
				a.replaceQueues(nil, nil)
			}
			return
		}
		a.replicaClients.receive(message)
		return
	}
	switch m := message.(type) {
	case waitForFact:
		if !m.forget {
			close(m.done)
		}
	case expectRequest:
		if !m.forget {
			m.expected.result <- stream.Result{Err: errOwnershipLost}
		}
	}
}

// replaceQueues makes the session actors drop all event queues of this node and open the given ones, with their unacked
// events, after all events that were released before. Waiting polls are answered with no events. Earlier reports of
// acknowledgements are ignored, because they are about other queues.
func (a *realmActor) replaceQueues(queues []realm.Queue, publications []realm.Publication) {
	n := max(a.unacked.generation, a.queues.number) + 1
	a.unacked.generation = n
	a.queues = replicaQueues{number: n, round: a.queues.round + 1, used: a.queues.used}
	for k, m := range a.handle.sessions.Restored(queues, publications, &a.unacked.acked, a.durable) {
		m.Replace, m.Generation = true, n
		a.unacked.sentGenerations[k] = n
		a.handle.sessions.SendInOrder(k, m)
	}
}

// endFollowing answers all requests that wait for facts of the owner, because this node has become the owner.
func (a *realmActor) endFollowing() {
	a.stopFollowing()
	a.endExpected()
	for _, w := range a.waiting {
		close(w.done)
	}
	a.waiting, a.ephemeral = nil, nil
	a.handle.durable.Store(uint64(a.durable))
}

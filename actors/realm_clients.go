package actors

import "parley/actors/realm"

// forgetLocalQueues makes a standby drop its event queues, because the owner does not let this node keep any.
type forgetLocalQueues struct{}

// ForgetLocalQueues drops the event queues of all realms that this core does not own. Their clients poll again, and the
// owner answers them.
func (srv *Server) ForgetLocalQueues() {
	srv.eachRealm(func(r *realmHandle) { srv.runtime.send(r.pid, forgetLocalQueues{}) })
}

// receiveOfClients handles the messages about clients of a node that does not own the organization. The owner ignores
// what is left of the time before.
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
			m.expected.result <- answer{err: errOwnershipLost}
		}
	}
}

// replaceQueues makes the session actors drop the event queues that this node has kept and open others, with their
// unacked events, after all events that were released before. The polls that wait are answered with no events.
// Reports of acknowledgements from before are ignored: they are not about these queues.
func (a *realmActor) replaceQueues(queues []realm.Queue, publications []realm.Publication) {
	n := max(a.unacked.takes, a.queues.number) + 1
	a.unacked.takes = n
	a.queues = replicaQueues{number: n, round: a.queues.round + 1, used: a.queues.used}
	for k, m := range a.srv.restoredQueues(a, queues, publications) {
		m.replace, m.number = true, n
		a.unacked.taken[k] = n
		a.sendInOrder(k, m)
	}
}

// endFollowing answers everything that waits for facts of the owner, because this node is the owner now.
func (a *realmActor) endFollowing() {
	a.stopFollowing()
	a.endExpected()
	for _, w := range a.waiting {
		close(w.done)
	}
	a.waiting, a.ephemeral = nil, nil
	a.handle.durable.Store(uint64(a.durable))
}

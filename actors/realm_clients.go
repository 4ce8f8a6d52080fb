package actors

import (
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
			if !a.hosting.None() {
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

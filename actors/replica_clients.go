package actors

import (
	"context"
	"slices"

	"parley/actors/realm"
)

// replicaClients is what an actor needs to serve clients of an organization that another node owns: the replica of an
// edge, or the standby of a core that does not lead. It passes the events of applied facts to the event queues that
// this node keeps, and adopts queues whose clients poll here.
type replicaClients struct {
	replica
	reloading bool
	failed    error // why it cannot follow; requests are refused until it can
	waiting   []waitForFact
	ephemeral []realm.Publication // by arrival; see MaxEphemeralAhead
	expected  map[string]*expectedRequest
	queues    replicaQueues
}

func newReplicaClients(srv *Server, r *realm.Realm, durable realm.Seq) replicaClients {
	return replicaClients{replica: replica{srv: srv, realm: r, durable: durable}}
}

// remoteOwner is the node that owns organizations which this node follows.
type remoteOwner struct {
	OwnerLink
	home func(request string) bool // see ReplicaOptions.Home
}

// FollowOwner lets this core keep event queues of organizations while it does not own them, as an edge does: link leads
// to the owner, whichever core that is, and home is ReplicaOptions.Home. It begins with PauseReplicas(false).
func (srv *Server) FollowOwner(link OwnerLink, home func(request string) bool) {
	srv.following.Store(&remoteOwner{link, home})
}

// ownerOf returns the node that owns a realm; nil if it is this one, or a node that this one has no queues of.
func (srv *Server) ownerOf(r *realmHandle) *remoteOwner {
	if r.owner != nil || srv.cluster == nil || r.owned.Load() {
		return r.owner
	}
	return srv.following.Load()
}

// cannotServe reports whether the state may be old.
func (a *replicaClients) cannotServe() bool {
	return a.failed != nil || a.reloading || a.srv.replicasPaused.Load() || a.srv.ownerOf(a.handle) == nil
}

// receive handles the messages about clients.
func (a *replicaClients) receive(message any) {
	switch m := message.(type) {
	case ephemeralEvent:
		a.deliverEphemeral(m.publication)
	case batchReleased:
		a.setPublished(m.seq)
	case waitForFact:
		a.waitForFact(m)
	case expectRequest:
		a.expectRequest(m)
	case adoptQueue:
		a.adoptQueue(m)
	case adoptAgain:
		a.tryAdoption(m.adoption)
	case *queueAdopted:
		a.handleAdopted(m)
	case ackReport:
		a.handleAckReport(m)
	case sendAckReport:
		a.sendAckReport()
	case ownerConnected:
		a.listKeptQueues()
	case queuesKept:
		a.handleKeptQueues(m)
	case dropQueues:
		a.dropQueues(m.list)
	case evictQueues:
		for k := range a.handle.shards {
			a.sendInOrder(k, m)
		}
	}
}

// replay applies the facts of a batch and returns them with their events, except those of queues that other nodes keep.
// The views that wait for one of its requests run right after the facts of the request.
func (a *replicaClients) replay(m *followedBatch) *Committed {
	c := &Committed{Batch: m.batch, Facts: m.facts}
	requests := m.batch.Requests
	for _, f := range m.facts {
		t := a.realm.ReplayAt(f, m.batch.Now, m.batch.Level)
		id := ""
		if len(requests) > 0 && requests[0].Seq == t.Seq {
			id, requests = requests[0].ID, requests[1:]
		}
		opened, _ := f.(*realm.QueueOpened)
		home := opened != nil && a.isHome(id)
		if home {
			a.queues.noteOpened()
		}
		if len(t.Notices) > 0 && (opened == nil || home) {
			c.Publications = append(c.Publications, t)
		}
		a.runExpected(id, opened)
	}
	return c
}

// deliver passes the events of a batch that was applied to the session actors, if this node has queues, and goes on
// with everything that waits for its facts.
func (a *replicaClients) deliver(c *Committed) {
	if a.queues.none() {
		a.setPublished(a.durable)
	} else {
		released := batchReleased{a.durable}
		a.handle.flow.release(
			&pendingOutput{
				publications: c.Publications,
				weight:       c.weight(),
				released:     func() { a.srv.runtime.send(a.handle.pid, released) },
			},
		)
	}
	a.deliverEphemeralAfter()
	a.continueAdoptions()
}

// setPublished records that the events of all facts up to one were passed to the session actors.
func (a *replicaClients) setPublished(seq realm.Seq) {
	a.handle.durable.Store(max(a.handle.durable.Load(), uint64(seq)))
	a.answerWaiting()
}

// isHome reports whether the queue that a request opens is kept on this node. The fact of a registration is the only
// one of its turn.
func (a *replicaClients) isHome(request string) bool {
	owner := a.srv.ownerOf(a.handle)
	return request != "" && owner != nil && owner.home != nil && owner.home(request)
}

// runExpected runs the view that waits for a request whose facts have just been applied.
func (a *replicaClients) runExpected(request string, opened *realm.QueueOpened) {
	x := a.expected[request]
	if x == nil {
		return
	}
	delete(a.expected, request)
	x.result <- a.view(&ask{caller: x.caller, look: func(v realm.View) (any, error) {
		if opened == nil {
			return x.look(v, nil)
		}
		q := opened.Queue
		return x.look(v, &q)
	}})
}

// expectRequest registers or forgets a view.
func (a *replicaClients) expectRequest(m expectRequest) {
	if m.forget {
		delete(a.expected, m.expected.id)
		return
	}
	a.queues.used = true
	if a.expected == nil {
		a.expected = map[string]*expectedRequest{}
	}
	a.expected[m.expected.id] = m.expected
}

// waitForFact adds a caller of WaitFor, or forgets it.
func (a *replicaClients) waitForFact(m waitForFact) {
	if m.forget {
		a.waiting = slices.DeleteFunc(a.waiting, func(w waitForFact) bool { return w.done == m.done })
		return
	}
	a.waiting = append(a.waiting, m)
	if !a.reloading {
		a.answerWaiting()
	}
}

// answerWaiting answers the callers of WaitFor whose facts have been applied.
func (a *replicaClients) answerWaiting() {
	a.waiting = slices.DeleteFunc(a.waiting, func(w waitForFact) bool {
		if w.seq > realm.Seq(a.handle.durable.Load()) {
			return false
		}
		close(w.done)
		return true
	})
}

// PauseReplicas makes every replica refuse requests, or ends that: the node does not know whether its state is old.
func (srv *Server) PauseReplicas(on bool) { srv.replicasPaused.Store(on) }

// WaitFor returns when a replica has applied a fact and passed its events to the session actors, so that a client that
// reads or polls after it finds the fact. Events without a fact that were delivered before are with them, too. Where
// the realm is owned it returns at once.
func (srv *Server) WaitFor(ctx context.Context, id realm.ID, seq realm.Seq) error {
	r := srv.waitUntilOpen(ctx, id)
	if r == nil {
		return errUnknownRealm
	}
	if r.owner == nil && (srv.cluster == nil || r.owned.Load()) {
		return nil
	}
	done := make(chan struct{})
	srv.runtime.send(r.pid, waitForFact{seq: seq, done: done})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		srv.runtime.send(r.pid, waitForFact{done: done, forget: true})
		return ctx.Err()
	}
}

// expectedRequest is a view that runs on a replica right after the facts of a request, before later facts.
type expectedRequest struct {
	id     string
	caller realm.Caller
	look   func(v realm.View, opened *realm.Queue) (any, error)
	result chan answer // has room for the result
}

// ExpectRequest registers a view before a request with an id is sent to the owner. A registration builds its state in
// it: each change is either in the state or an event of the queue that the request has opened. wait returns the result
// of the view, or an error if the context ends before; one of wait and cancel must be called.
func (srv *Server) ExpectRequest(
	id realm.ID, c realm.Caller, request string, look func(v realm.View, opened *realm.Queue) (any, error),
) (wait func(context.Context) (any, error), cancel func()) {
	r := srv.find(id)
	if r == nil || srv.ownerOf(r) == nil {
		return func(context.Context) (any, error) { return nil, errUnknownRealm }, func() {}
	}
	x := &expectedRequest{id: request, caller: c, look: look, result: make(chan answer, 1)}
	srv.runtime.send(r.pid, expectRequest{x, false})
	cancel = func() { srv.runtime.send(r.pid, expectRequest{x, true}) }
	return func(ctx context.Context) (any, error) {
		select {
		case a := <-x.result:
			return a.result, a.err
		case <-ctx.Done():
			cancel()
			return nil, ctx.Err()
		}
	}, cancel
}

package actors

import (
	"context"
	"slices"

	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/actors/stream"
)

// replicaClients serves the clients of an organization that another node owns. The replica actor of an edge and the
// standby of a core that is not the leader contain it. It delivers the events of applied facts to the event queues that
// this node hosts, and adopts queues whose clients poll this node.
type replicaClients struct {
	replica
	reloading bool
	failed    error // why it cannot follow the owner; requests are refused until it can
	waiting   []waitForFact
	ephemeral []realm.Publication // by arrival; see MaxEphemeralAhead
	expected  map[string]*expectedRequest
	hosting   delivery.Hosting
}

func newReplicaClients(srv *Server, r *realm.Realm, durable realm.Seq) replicaClients {
	h := &realmHandle{id: r.ID()}
	h.sessions.Prepare(&srv.delivery, r.ID())
	return replicaClients{replica: replica{srv: srv, handle: h, realm: r, durable: durable}}
}

// CanServe reports whether the state is known to be new enough for clients.
func (a *replicaClients) CanServe() bool { return !a.cannotServe() }

// Owner returns the node that owns the realm, or nil.
func (a *replicaClients) Owner() delivery.Owner {
	if owner := a.srv.ownerOf(a.handle); owner != nil {
		return owner
	}
	return nil
}

// KeepText puts a text that the owner has sent into the cache.
func (a *replicaClients) KeepText(t realm.TextWrite) { a.srv.texts.put(a.realm.ID(), t.Ref, *t.Body) }

// remoteOwner is the node that owns organizations which this node follows.
type remoteOwner struct {
	OwnerLink
	home func(request string) bool // see ReplicaOptions.Home
}

// FollowOwner lets this core host event queues of organizations that it does not own, as an edge does. link sends to
// the owner, whichever core that is; home is ReplicaOptions.Home. Hosting begins with PauseReplicas(false).
func (srv *Server) FollowOwner(link OwnerLink, home func(request string) bool) {
	srv.following.Store(&remoteOwner{link, home})
}

// ownerOf returns the other node that owns a realm. It returns nil if this node owns the realm, or if it must not host
// queues of the realm.
func (srv *Server) ownerOf(r *realmHandle) *remoteOwner {
	if r.owner != nil || srv.cluster == nil || r.owned.Load() {
		return r.owner
	}
	return srv.following.Load()
}

// cannotServe reports whether requests must be refused because the state may be old.
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
	}
}

// replay applies the facts of a batch and returns them with their events. It omits the events that open queues on other
// nodes. The views that wait for a request of the batch run directly after the facts of the request.
func (a *replicaClients) replay(m *followedBatch) *stream.Committed {
	c := &stream.Committed{Batch: m.batch, Facts: m.facts}
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
			a.hosting.Opened()
		}
		if len(t.Notices) > 0 && (opened == nil || home) {
			c.Publications = append(c.Publications, t)
		}
		a.runExpected(id, opened)
	}
	return c
}

// deliver sends the events of an applied batch to the session actors, if this node hosts queues, and continues
// everything that waits for its facts.
func (a *replicaClients) deliver(c *stream.Committed) {
	if a.hosting.None() {
		a.setPublished(a.durable)
	} else {
		released := batchReleased{a.durable}
		a.handle.sessions.Flow.Release(&delivery.Output{
			Publications: c.Publications,
			Weight:       delivery.WeightOf(c),
			Answer:       stream.Answer{Sent: func() { a.srv.runtime.Send(a.handle.pid, released) }},
		})
	}
	a.deliverEphemeralAfter()
	a.hosting.Continue()
}

// setPublished records that the events of all facts up to seq were sent to the session actors.
func (a *replicaClients) setPublished(seq realm.Seq) {
	a.handle.durable.Store(max(a.handle.durable.Load(), uint64(seq)))
	a.answerWaiting()
}

// isHome reports whether this node hosts the queue that a request opens, because it has sent the request to the owner.
// A registration records only one fact.
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
	x.result <- a.view(&ask{caller: x.caller, view: func(v realm.View) (any, error) {
		if opened == nil {
			return x.view(v, nil)
		}
		q := opened.Queue
		return x.view(v, &q)
	}})
}

// expectRequest registers or forgets a view.
func (a *replicaClients) expectRequest(m expectRequest) {
	if m.forget {
		delete(a.expected, m.expected.id)
		return
	}
	a.hosting.Expect()
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

// PauseReplicas makes every replica refuse requests while on is true, because the node cannot know whether its state is
// old.
func (srv *Server) PauseReplicas(on bool) { srv.replicasPaused.Store(on) }

// WaitFor returns when a replica has applied a fact and sent its events to the session actors: a client that reads or
// polls after this sees the fact. This includes the ephemeral events that were delivered before the fact. On the owner
// WaitFor returns at once.
func (srv *Server) WaitFor(ctx context.Context, id realm.ID, seq realm.Seq) error {
	r := srv.waitUntilOpen(ctx, id)
	if r == nil {
		return errUnknownRealm
	}
	if r.owner == nil && (srv.cluster == nil || r.owned.Load()) {
		return nil
	}
	done := make(chan struct{})
	srv.runtime.Send(r.pid, waitForFact{seq: seq, done: done})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		srv.runtime.Send(r.pid, waitForFact{done: done, forget: true})
		return ctx.Err()
	}
}

// expectedRequest is a view that runs on a replica right after the facts of a request, before later facts.
type expectedRequest struct {
	id     string
	caller realm.Caller
	view   func(v realm.View, opened *realm.Queue) (any, error)
	result chan stream.Result // has room for the result
}

// ExpectRequest registers a view that runs directly after the facts of a request. It must be called before the request
// is sent to the owner. The registration of an event queue builds its initial state in such a view, so that each change
// is either part of the state or an event of the new queue. wait returns the result of the view, or an error if the
// context ends first. The caller must call wait or cancel.
func (srv *Server) ExpectRequest(
	id realm.ID, c realm.Caller, request string, view func(v realm.View, opened *realm.Queue) (any, error),
) (wait func(context.Context) (any, error), cancel func()) {
	r := srv.find(id)
	if r == nil || srv.ownerOf(r) == nil {
		return func(context.Context) (any, error) { return nil, errUnknownRealm }, func() {}
	}
	x := &expectedRequest{id: request, caller: c, view: view, result: make(chan stream.Result, 1)}
	srv.runtime.Send(r.pid, expectRequest{x, false})
	cancel = func() { srv.runtime.Send(r.pid, expectRequest{x, true}) }
	return func(ctx context.Context) (any, error) {
		select {
		case a := <-x.result:
			return a.Value, a.Err
		case <-ctx.Done():
			cancel()
			return nil, ctx.Err()
		}
	}, cancel
}

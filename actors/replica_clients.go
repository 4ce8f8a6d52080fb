package actors

import (
	"context"
	"sync"

	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
)

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
	defer r.leave()
	if r.owner == nil && (srv.cluster == nil || r.owned.Load()) {
		return nil
	}
	done := make(chan struct{})
	srv.runtime.Send(r.pid, replica.Wait{Seq: seq, Done: done})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		srv.runtime.Send(r.pid, replica.Wait{Done: done, Forget: true})
		return ctx.Err()
	}
}

// ExpectRequest registers a view that runs directly after the facts of a request. It must be called before the request
// is sent to the owner. The registration of an event queue builds its initial state in such a view, so that each change
// is either part of the state or an event of the new queue. wait returns the result of the view, or an error if the
// context ends first. The caller must call wait or cancel.
func (srv *Server) ExpectRequest(
	id realm.ID, c realm.Caller, request string, view func(v realm.View, opened *realm.Queue) (any, error),
) (wait func(context.Context) (any, error), cancel func()) {
	r := srv.enter(id, forClient)
	if r == nil {
		return func(context.Context) (any, error) { return nil, errUnknownRealm }, func() {}
	}
	if srv.ownerOf(r) == nil {
		r.leave()
		return func(context.Context) (any, error) { return nil, errUnknownRealm }, func() {}
	}
	leave := sync.OnceFunc(r.leave)
	x := &replica.Expected{Request: request, Caller: c, View: view, Result: make(chan stream.Result, 1)}
	srv.runtime.Send(r.pid, replica.Expect{Expected: x})
	cancel = func() {
		srv.runtime.Send(r.pid, replica.Expect{Expected: x, Forget: true})
		leave()
	}
	return func(ctx context.Context) (any, error) {
		defer leave()
		select {
		case a := <-x.Result:
			return a.Value, a.Err
		case <-ctx.Done():
			cancel()
			return nil, ctx.Err()
		}
	}, cancel
}

// ForgetLocalQueues drops the event queues of all realms that this core does not own. Their clients poll again, and the
// owner answers them.
func (srv *Server) ForgetLocalQueues() {
	srv.eachRealm(func(r *realmHandle) { srv.runtime.Send(r.pid, forgetLocalQueues{}) })
}

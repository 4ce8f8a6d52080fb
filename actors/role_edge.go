package actors

import (
	"errors"
	"fmt"

	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
)

// edgeActor runs the replica of an organization on an edge. It applies committed batches and runs views. It refuses
// commands: their requests must be forwarded to the owner.
//
//	OpenReplica ──► edgeRole ── facts missing ──► edgeLoadingRole
//	                 │   ▲                          │    │
//	                 │   └────────── loaded ────────┘    │
//	                 └── CloseReplica ──► closedRole ◄───┘
type edgeActor struct {
	localRealm
	role    realmRole
	options ReplicaOptions
}

// CanServe reports whether the state is known to be new enough for clients.
func (a *edgeActor) CanServe() bool {
	r, is := a.role.(*edgeRole)
	return is && r.failed == nil && a.ownerIsReachable()
}

// Receive handles one message.
func (a *edgeActor) Receive(message any) {
	switch m := message.(type) {
	case *ask:
		a.role.ask(m)
	case asyncBatch:
		for i := range m {
			a.role.ask(&m[i])
		}
	case closeRealm:
		a.close()
		m.done <- nil
	case storeAsleep:
		m.done <- nil
	case owner.Save: // an edge stores nothing
		m.Done <- nil
	case owner.SetFrozen:
		m.Done <- nil
	default:
		a.role.receive(message)
	}
}

// refuse answers a command or view because the state may be old.
func (a *edgeActor) refuse(m *ask) {
	p := m.output(stream.Result{Err: delivery.ErrCannotFollow})
	a.Release(&p)
}

// close stops following the owner. After it, requests and adoptions are refused.
func (a *edgeActor) close() {
	a.follower.StopFollowing()
	a.role = closedRole{a}
	a.hosting.Fail()
	a.follower.EndExpected(delivery.ErrCannotFollow)
}

// edgeRole follows the owner.
type edgeRole struct {
	*edgeActor
	failed error // the last batch could not be applied; requests are refused until one can
}

func (r *edgeRole) ask(m *ask) {
	if !r.CanServe() {
		r.refuse(m)
		return
	}
	p := m.output(stream.Result{Err: realm.ErrNotOwner})
	if m.view != nil {
		r.srv.Metrics.Views.Add(1)
		p.Answer.Result = r.follower.View(m.caller, m.view)
	}
	r.Release(&p)
}

func (r *edgeRole) receive(message any) {
	switch m := message.(type) {
	case *replica.Next:
		r.apply(m)
	case replica.Ended:
		if r.follower.HasEnded(m) {
			r.followAgain(m.Err)
		}
	case replica.Retry:
		if r.follower.MustRetry(m) {
			r.follower.Follow(r.options.Source)
		}
	case clockTick:
		r.hosting.Tick()
	case delivery.HostingMessage:
		m.HandleHosting(&r.hosting)
	case replica.Message:
		m.HandleFollower(&r.follower)
	}
}

// apply applies a committed batch and delivers its events. A batch that cannot be applied stops the replica.
func (r *edgeRole) apply(m *replica.Next) {
	c, err := r.follower.Apply(m)
	if err != nil {
		r.failed = err
		r.followAgain(err)
		return
	}
	if c != nil {
		r.failed = nil
		r.follower.Deliver(c, delivery.WeightOf(c))
	}
}

// followAgain subscribes again. If facts are missing, it first loads the rows again.
func (r *edgeRole) followAgain(err error) {
	r.follower.StopFollowing() // the batches in the mailbox are sent again
	r.srv.log.Warn("replica does not follow", "realm", r.handle.id, "seq", uint64(r.Durable()), "err", err)
	if errors.Is(err, realm.ErrBehind) {
		next := &edgeLoadingRole{r.edgeActor}
		r.role = next
		next.begin()
		return
	}
	retry := r.follower.Retry()
	r.srv.runtime.After(reclaimInterval, func() { r.srv.runtime.Send(r.handle.pid, retry) })
}

// edgeLoadingRole loads the rows again.
type edgeLoadingRole struct{ *edgeActor }

// replicaLoaded has the rows.
type replicaLoaded struct {
	realm *realm.Realm
	err   error
}

func (r *edgeLoadingRole) ask(m *ask) { r.refuse(m) }

func (r *edgeLoadingRole) receive(message any) {
	switch m := message.(type) {
	case *replicaLoaded:
		r.handleLoaded(m)
	case retryLoad:
		r.begin()
	case clockTick:
		r.hosting.Tick()
	case delivery.HostingMessage:
		m.HandleHosting(&r.hosting)
	case replica.Wait:
		r.follower.HoldWait(m)
	case replica.Message:
		m.HandleFollower(&r.follower)
	}
}

// begin loads the rows in the background. The result arrives as replicaLoaded.
func (r *edgeLoadingRole) begin() {
	r.hosting.Fail()
	r.srv.runtime.RunInBackground(func() {
		x, _, err := r.srv.loadReplica(r.handle.id, r.options.Source)
		r.srv.runtime.Send(r.handle.pid, &replicaLoaded{x, err})
	})
}

// handleLoaded continues with the loaded rows. The events of the skipped facts are missing on this node, so its queues
// are adopted again when their clients poll.
func (r *edgeLoadingRole) handleLoaded(m *replicaLoaded) {
	if m.err == nil && m.realm.Seq() < r.Durable() {
		m.err = fmt.Errorf("the rows are at fact %d, the replica is at fact %d", m.realm.Seq(), r.Durable())
	}
	if m.err != nil {
		r.srv.log.Error("replica is not loaded again", "realm", r.handle.id, "err", m.err)
		r.srv.runtime.After(reclaimInterval, func() { r.srv.runtime.Send(r.handle.pid, retryLoad{}) })
		return
	}
	r.role = &edgeRole{edgeActor: r.edgeActor}
	r.follower.Replace(m.realm, m.realm.Seq())
	r.srv.configureRealm(m.realm)
	r.forgetCaches()
	r.handle.durable.Store(uint64(r.Durable()))
	r.publishState()
	r.handle.sessions.SendAll(delivery.Reload{})
	r.handle.sessions.SendAll(&delivery.Restore{Seq: r.Durable()})
	r.updateAccounts()
	r.srv.search.Feed(r.handle.id, r.Durable(), nil)
	r.follower.EndExpected(delivery.ErrCannotFollow)
	r.srv.log.Info("replica open again", "realm", r.handle.id, "facts", uint64(r.Durable()))
	r.follower.AnswerWaiting()
	r.hosting.ListQueues()
	r.follower.Follow(r.options.Source)
}

// closedRole refuses messages that were sent to the replica before it was closed.
type closedRole struct{ *edgeActor }

func (r closedRole) ask(m *ask) { r.refuse(m) }

func (r closedRole) receive(message any) {
	switch m := message.(type) {
	case delivery.HostingMessage:
		m.HandleHosting(&r.hosting)
	case replica.Message:
		m.HandleOwner(delivery.ErrCannotFollow)
	}
}

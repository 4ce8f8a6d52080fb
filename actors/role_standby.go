package actors

import (
	"errors"
	"fmt"
	"time"

	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
)

// standbyRole follows the owner on a core node that does not lead: it applies committed batches of its own disk, writes
// rows, and stores the events that event queues may not have acknowledged. It refuses commands. While the leader allows
// it, it hosts the event queues whose clients poll this node, as an edge does. When the node becomes the leader, the
// standby claims the organization and applies the facts before the claim. Then it becomes the owner and hosts all event
// queues of the organization, as after a restart, but without loading anything.
type standbyRole struct {
	*realmActor
	claim *claim // nil: this node has not asked to be the owner
	idle  int64  // seconds for which the event queues have had no client, because the realm was asleep
}

// claim is a claim of the organization.
type claim struct {
	made *realm.Claimed // nil: it is in progress
}

// Messages of a realm actor on a core node.
type (
	// leadershipChanged says that this node has become the leader or has lost the leadership.
	leadershipChanged struct{ on bool }
	// reached asks the actor to close done when it has handled all messages before this one.
	reached    struct{ done chan struct{} }
	claimEnded struct {
		claim   *claim
		claimed realm.Claimed
		err     error
	}
	// forgetLocalQueues makes a standby drop its event queues, because the owner does not allow this node to host any.
	forgetLocalQueues struct{}
)

// followRetryInterval is the time after which a standby subscribes to its journal again: the installation of a backup
// closes the journal for a moment.
const followRetryInterval = 100 * time.Millisecond

// ask answers a view. The server compares the states of nodes, so it gets an answer in any case.
func (r *standbyRole) ask(m *ask) {
	p := m.output(stream.Result{Err: realm.ErrNotOwner})
	if m.view != nil && (m.caller.System || r.CanServe()) {
		p.Answer.Result = r.follower.View(m.caller, m.view)
	}
	r.Release(&p)
}

func (r *standbyRole) receive(message any) {
	switch m := message.(type) {
	case *replica.Next:
		r.apply(m)
	case replica.Ended:
		r.handleEnded(m)
	case replica.Retry:
		r.retry(m)
	case leadershipChanged:
		r.handleLeadership(m.on)
	case claimEnded:
		r.handleClaimed(m)
	case clockTick:
		r.hosting.Tick()
		r.rows.Tick()
	case forgetLocalQueues:
		r.forgetQueues()
	case idleReport:
		r.handleIdle(m)
	default:
		r.handleAsStandby(message)
	}
}

// handleAsStandby handles a message of clients on a core that does not own the organization. The lists of the queues
// that other nodes host are for the owner.
func (a *realmActor) handleAsStandby(message any) {
	switch m := message.(type) {
	case replica.Message:
		m.HandleFollower(&a.follower)
	case delivery.HostingMessage:
		m.HandleHosting(&a.hosting)
	case delivery.HostedReport:
	case delivery.OwnerMessage:
		m.HandleOwned(&a.owned)
	}
}

// begin follows the journal with the state in memory, all of whose facts are stored.
func (r *standbyRole) begin() {
	r.replaceQueues() // events are missing on this node: the queues are adopted when their clients poll again
	r.follower.EndExpected(delivery.ErrCannotFollow)
	r.publishState()
	r.follower.SetPublished(r.Durable())
	r.srv.log.Debug("following an organization", "realm", r.Realm().ID(), "facts", uint64(r.Durable()))
	r.follower.Follow(r.srv.cluster)
	r.claimIfLeader()
}

// replaceQueues drops the event queues of this node.
func (r *standbyRole) replaceQueues() {
	r.hosting.Reset()
	r.owned.Replace(nil, nil)
}

// forgetQueues drops the event queues of this node, if it has any.
func (r *standbyRole) forgetQueues() {
	if r.HasQueues() {
		r.replaceQueues()
	}
}

// retry subscribes again.
func (r *standbyRole) retry(m replica.Retry) {
	if r.follower.MustRetry(m) {
		r.follower.Follow(r.srv.cluster)
		r.claimIfLeader()
	}
}

// handleLeadership claims the organization on the new leader.
func (r *standbyRole) handleLeadership(on bool) {
	if !on {
		r.idle = 0
	}
	if !on && r.claim != nil && r.claim.made != nil {
		r.claim = nil
	}
	r.claimIfLeader()
}

// claimIfLeader claims the organization: the claim is part of the leadership, or is made in the background, after which
// handleClaimed is called. It does nothing before the standby follows: until then Server.openStandby reads the state.
func (r *standbyRole) claimIfLeader() {
	if r.claim != nil || !r.follower.IsFollowing() || !r.srv.isLeader.Load() {
		return
	}
	r.stay()
	m := claimEnded{claim: &claim{}}
	r.claim = m.claim
	id := r.Realm().ID()
	var ok bool
	if m.claimed, ok, m.err = r.srv.cluster.Owned(id); ok {
		r.handleClaimed(m)
		return
	}
	r.srv.runtime.RunInBackground(func() {
		m.claimed, m.err = r.srv.disk.Claim(id, realm.AnyEpoch)
		r.srv.runtime.Send(r.handle.pid, m)
	})
}

func (r *standbyRole) handleClaimed(m claimEnded) {
	if m.claim != r.claim { // of an earlier role
		return
	}
	r.claim = nil
	switch {
	case !r.srv.isLeader.Load():
	case errors.Is(m.err, realm.ErrMoved): // the leader has changed, perhaps back to this node
		r.srv.runtime.After(reclaimInterval, func() {
			r.srv.runtime.Send(r.handle.pid, leadershipChanged{r.srv.isLeader.Load()})
		})
	case m.err != nil:
		r.srv.fatal(fmt.Errorf("claim realm %d: %w", r.Realm().ID(), m.err))
	default:
		r.claim = &claim{&m.claimed}
		r.becomeOwner()
	}
}

// becomeOwner makes this node the owner when it has applied the facts before its claim. After a claim of an earlier
// leadership, another owner may have added facts.
func (r *standbyRole) becomeOwner() {
	if r.claim == nil || r.claim.made == nil || r.Realm().Seq() < r.claim.made.Last {
		return
	}
	made := r.claim.made
	if r.Realm().Seq() > made.Last {
		r.srv.log.Warn("the claim of an organization was made under another leadership", "realm", r.Realm().ID(),
			"seq", uint64(r.Realm().Seq()), "claimed_at", uint64(made.Last))
		r.claim = nil
		r.claimIfLeader()
		return
	}
	r.follower.BecomeOwner(delivery.ErrCannotFollow)
	o := r.own(made.Epoch)
	r.hosting.Reset()
	queues, events := r.owned.BecomeOwner(r.idle)
	r.srv.runtime.Send(r.handle.presence, presenceOwned{r.epoch})
	r.srv.setOwned(r.handle, true)
	r.srv.log.Debug("this node owns the organization", "realm", r.Realm().ID(), "epoch", r.epoch,
		"facts", uint64(r.Durable()), "queues", queues, "events", events)
	o.turns.Continue()
}

// apply applies a committed batch.
func (r *standbyRole) apply(m *replica.Next) {
	c, err := r.follower.Apply(m)
	if err != nil {
		r.srv.log.Error("a batch cannot be applied", "realm", r.Realm().ID(), "err", err)
		r.load()
		return
	}
	if c == nil {
		return
	}
	r.idle = 0
	r.rows.Journaled(c.Batch.Facts)
	r.handle.stayAwake(r.srv.second.Load() + r.srv.sleepers.after)
	for _, f := range c.Facts {
		r.srv.Metrics.countArchive(f)
		if _, is := f.(*realm.TextsCompacted); is {
			if erased := r.srv.onErased.Load(); erased != nil {
				(*erased)(r.Realm().ID())
			}
		}
	}
	r.owned.Publish(c, false)
	r.follower.Deliver(c, delivery.WeightOf(c))
	r.owned.CaughtUp(c.Facts)
	r.rows.BeginIfLong()
	r.becomeOwner()
}

// handleEnded follows again, or loads the realm if facts are missing: after the installation of a backup.
func (r *standbyRole) handleEnded(m replica.Ended) {
	if !r.follower.HasEnded(m) {
		return
	}
	r.srv.log.Warn("following the journal ended", "realm", r.Realm().ID(), "seq", uint64(r.Durable()), "err", m.Err)
	r.follower.StopFollowing()
	if errors.Is(m.Err, realm.ErrBehind) {
		r.load()
		return
	}
	retry := r.follower.Retry()
	r.srv.runtime.After(followRetryInterval, func() { r.srv.runtime.Send(r.handle.pid, retry) })
}

// load loads the realm again.
func (r *standbyRole) load() {
	r.stay()
	next := &loadingRole{r.realmActor}
	r.role = next
	next.begin()
}

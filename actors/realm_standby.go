package actors

import (
	"errors"
	"fmt"
	"time"

	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/actors/stream"
)

// On a core node that is not the leader, the realm actor is a standby: it applies committed batches of its own disk,
// writes rows, and stores the events that event queues may not have acknowledged. It refuses commands. While the leader
// allows it, it hosts the event queues whose clients poll this node, as an edge does; see replicaClients. When the node
// becomes the leader, the standby claims the organization and applies the facts before the claim. Then it is the owner
// and hosts all event queues of the organization, as after a restart, but without loading anything. When the node loses
// the leadership, or the journal refuses a batch, the owner becomes a standby again. If its state has facts that are
// not known to be stored, it discards the state, because these facts may be missing on other nodes.

// Messages of a realm actor on a core node.
type (
	standbyClaimed struct {
		claimed realm.Claimed
		err     error
	}
	standbyLoaded struct {
		loaded *loadedRealm
		texts  []realm.TextWrite // of the facts after the previous state
		err    error
	}
	// leaderVerified says that this node was still the leader after the first n waiting answers had been prepared.
	leaderVerified struct {
		n   int
		err error
	}
)

// handleLeadership claims the organization on the new leader, and ends the ownership on the former one.
func (a *realmActor) handleLeadership(on bool) {
	if a.srv.cluster == nil {
		return
	}
	switch {
	case !on && !a.standby:
		a.srv.log.Debug("this node has lost the leadership, and with it the organization", "realm", a.realm.ID())
		a.stepDown()
	case !on:
		a.claimed = nil
	default:
		a.claim()
	}
}

// claim claims the organization in the background, after which handleClaimed is called. It does nothing before the
// first follow: until then Server.openStandby reads the state.
func (a *realmActor) claim() {
	if !a.standby || a.reloading || a.claiming || a.claimed != nil || a.stop == nil || !a.srv.isLeader.Load() {
		return
	}
	a.claiming = true
	id := a.realm.ID()
	a.srv.runtime.RunInBackground(func() {
		m := standbyClaimed{}
		m.claimed, m.err = a.srv.disk.Claim(id, realm.AnyEpoch)
		a.srv.runtime.Send(a.handle.pid, m)
	})
}

func (a *realmActor) handleClaimed(m standbyClaimed) {
	a.claiming = false
	switch {
	case !a.srv.isLeader.Load():
	case errors.Is(m.err, realm.ErrMoved): // the leader has changed, perhaps back to this node
		a.srv.runtime.After(reclaimInterval, func() {
			a.srv.runtime.Send(a.handle.pid, leadershipChanged{a.srv.isLeader.Load()})
		})
	case m.err != nil:
		a.srv.fatal(fmt.Errorf("claim realm %d: %w", a.realm.ID(), m.err))
	default:
		a.claimed = &m.claimed
		a.becomeOwner()
	}
}

// becomeOwner makes a standby the owner when it has applied the facts before its claim. After a claim of an earlier
// leadership, another owner may have added facts.
func (a *realmActor) becomeOwner() {
	if !a.standby || a.reloading || a.claimed == nil || a.realm.Seq() < a.claimed.Last {
		return
	}
	if a.realm.Seq() > a.claimed.Last {
		a.srv.log.Warn("the claim of an organization was made under another leadership", "realm", a.realm.ID(),
			"seq", uint64(a.realm.Seq()), "claimed_at", uint64(a.claimed.Last))
		a.claimed = nil
		a.claim()
		return
	}
	a.endFollowing()
	a.standby, a.epoch, a.claimed = false, a.claimed.Epoch, nil
	a.requests = recentRequests{}
	a.realm.SetClock(a.srv.now().Unix())
	a.hosting.Reset()
	queues, events := a.owned.BecomeOwner()
	a.srv.runtime.Send(a.handle.presence, presenceOwned{a.epoch})
	a.srv.setOwned(a.handle, true)
	a.srv.log.Debug("this node owns the organization", "realm", a.realm.ID(), "epoch", a.epoch,
		"facts", uint64(a.durable), "queues", queues, "events", events)
	if a.realm.HasJobs() {
		a.scheduleContinue()
	}
}

// stepDown ends the ownership. After a planned move of the leadership the journal usually has every fact of the state.
// Then the actor keeps the state and follows. Otherwise it loads the realm again, because the journal has all
// acknowledged facts, but perhaps not the others.
func (a *realmActor) stepDown() {
	if a.standby || a.reloading {
		return
	}
	keepState := a.durable == a.realm.Seq() && len(a.pending) == 0 && !a.rows.IsClosing()
	a.srv.Metrics.OwnershipsLost.Add(1)
	a.standby, a.reloading, a.claimed = true, !keepState, nil
	a.srv.setOwned(a.handle, false)
	a.handle.sessions.SendAll(delivery.Drop{})
	pending := append(a.pending, a.unverified...)
	a.pending, a.unverified, a.verifying = nil, nil, 0
	for i := range pending {
		a.refusePending(&pending[i])
	}
	a.requests = recentRequests{}
	a.owned.StepDown(keepState)
	if keepState {
		a.becomeStandby()
	} else {
		a.rows.Cancel(errOwnershipLost)
		a.reloadStandby()
	}
	a.rows.ContinueClose()
}

// becomeStandby follows the journal with the state in memory, all of whose facts are stored.
func (a *realmActor) becomeStandby() {
	a.replaceQueues(nil, nil) // events are missing on this node: the queues are adopted when their clients poll again
	a.endExpected()
	a.publishState()
	a.setPublished(a.durable)
	a.srv.log.Debug("following an organization", "realm", a.realm.ID(), "facts", uint64(a.durable))
	a.follow()
	a.claim()
}

// reloadStandby loads the realm in the background. The result arrives as standbyLoaded.
func (a *realmActor) reloadStandby() {
	a.stopFollowing()
	a.reloading = true
	id, from := a.realm.ID(), a.durable
	a.srv.runtime.RunInBackground(func() {
		m := &standbyLoaded{}
		m.loaded, m.err = a.srv.loadStandby(id)
		if m.err == nil && m.loaded.rowsSeq <= from {
			var list []stream.Committed
			list, m.err = a.srv.committedAfter(m.loaded, from)
			for i := range list {
				m.texts = append(m.texts, list[i].Batch.Texts...)
			}
		}
		a.srv.runtime.Send(a.handle.pid, m)
	})
}

// handleStandbyLoaded continues with the loaded realm. It drops all caches that may include facts that were not stored:
// rendered texts, texts and accounts.
func (a *realmActor) handleStandbyLoaded(m *standbyLoaded) {
	if m.err == nil && m.loaded.realm.Seq() < a.durable {
		m.err = fmt.Errorf("the journal ends at fact %d, fact %d was stored", m.loaded.realm.Seq(), a.durable)
	}
	if m.err != nil {
		a.srv.log.Error("loading the organization again failed", "realm", a.realm.ID(), "err", m.err)
		a.srv.runtime.After(reclaimInterval, func() { a.srv.runtime.Send(a.handle.pid, retryLoad{}) })
		return
	}
	l, id := m.loaded, a.realm.ID()
	a.realm, a.durable, a.reloading = l.realm, l.realm.Seq(), false
	a.srv.configureRealm(a.realm)
	a.srv.renderer.ForgetRealm(id)
	a.srv.texts.dropRealm(id)
	a.owned.Reset()
	a.owned.Restore(l.publications, l.fromRows, l.ackedThrough)
	a.rows.Opened(l.rowsSeq, a.durable, false)
	a.realm.EachUser(func(u *realm.User) { a.srv.updateAccount(a.realm, u.ID) })
	a.srv.search.Feed(id, a.durable, m.texts)
	a.becomeStandby()
	a.rows.ContinueClose()
}

// publishState updates the fields of the handle, for other goroutines.
func (a *realmActor) publishState() {
	a.handle.markdownConfigSeq.Store(uint64(a.realm.MarkdownConfigVersion()))
	a.handle.setClosed(a.srv, a.realm.Closed())
}

// follow subscribes to the batches of this node's journal. A goroutine of the journal decodes them.
func (a *realmActor) follow() {
	if !a.standby || a.reloading || a.stop != nil {
		return
	}
	a.run++
	a.stop = followBatches(a.srv, a.handle.pid, a.realm, a.run, a.mailboxSlots, a.srv.cluster)
}

// stopFollowing ends the subscription. Batches that are already in the mailbox are ignored.
func (a *realmActor) stopFollowing() {
	a.run++
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// applyFollowed applies a committed batch.
func (a *realmActor) applyFollowed(m *followedBatch) {
	if m.run != a.run || !a.standby || a.reloading {
		return
	}
	if err := a.realm.CheckFollows(m.batch); err != nil {
		a.srv.log.Error("a batch cannot be applied", "realm", a.realm.ID(), "err", err)
		a.reloadStandby()
		return
	}
	c := a.replay(m)
	a.rows.Journaled(m.batch.Facts)
	a.durable = a.realm.Seq()
	a.srv.search.Feed(a.realm.ID(), a.durable, m.batch.Texts)
	a.publish(c)
	a.publishState()
	a.deliver(c)
	a.owned.CaughtUp(m.facts)
	a.rows.BeginIfLong()
	a.becomeOwner()
}

// journalAcks records in the journal how far the queues have acknowledged, so that standbys need not store older
// events. It records nothing if there was no new event since the last record.
func (a *realmActor) journalAcks() {
	if a.srv.cluster != nil && !a.standby && !a.reloading && !a.srv.readOnly.Load() {
		a.owned.JournalAcks()
	}
}

// replaceQueues replaces the event queues of this node; see delivery.Owned.
func (a *realmActor) replaceQueues(queues []realm.Queue, publications []realm.Publication) {
	a.hosting.Reset()
	a.owned.Replace(queues, publications)
}

// handleStandbyFollowEnded follows again, or loads the realm if facts are missing: after the installation of a backup.
func (a *realmActor) handleStandbyFollowEnded(m followEnded) {
	if m.run != a.run || a.reloading || !a.standby {
		return
	}
	a.srv.log.Warn("following the journal ended", "realm", a.realm.ID(), "seq", uint64(a.durable), "err", m.err)
	a.stopFollowing()
	if errors.Is(m.err, realm.ErrBehind) {
		a.reloadStandby()
		return
	}
	retry := retryFollow{a.run}
	a.srv.runtime.After(followRetryInterval, func() { a.srv.runtime.Send(a.handle.pid, retry) })
}

// followRetryInterval is the time after which a standby subscribes to its journal again: the installation of a backup
// closes the journal for a moment.
const followRetryInterval = 100 * time.Millisecond

// answerVerified delays the answer to a view, or to a command without facts, until a majority has confirmed that this
// node was still the leader after the view. A node that was suspended does not know that another node has become the
// leader. All waiting answers share one check.
func (a *realmActor) answerVerified(p pendingOutput) {
	if a.unverified = append(a.unverified, p); a.verifying == 0 {
		a.verifyLeader()
	}
}

func (a *realmActor) verifyLeader() {
	a.verifying = len(a.unverified)
	m := leaderVerified{n: a.verifying}
	a.srv.cluster.VerifyLeader(func(err error) {
		m.err = err
		a.srv.runtime.Send(a.handle.pid, m)
	})
}

func (a *realmActor) handleLeaderVerified(m leaderVerified) {
	if a.verifying == 0 || a.verifying != m.n { // a check of an ownership that has ended
		return
	}
	for i := range a.unverified[:m.n] {
		if m.err != nil {
			a.refusePending(&a.unverified[i])
		} else {
			a.handle.sessions.Flow.Release(&a.unverified[i].Output)
		}
	}
	a.unverified, a.verifying = append([]pendingOutput(nil), a.unverified[m.n:]...), 0
	if len(a.unverified) > 0 {
		a.verifyLeader()
	}
}

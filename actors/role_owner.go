package actors

import (
	"parley/actors/delivery"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/stream"
)

// ownerRole gives the organization its turns: the server is a single one, or this core leads the cluster.
type ownerRole struct {
	*realmActor
	turns *owner.Turns
}

// own makes this node the owner with the epoch of its claim.
func (a *realmActor) own(epoch uint64) *ownerRole {
	r := &ownerRole{realmActor: a}
	a.epoch, a.role = epoch, r
	r.turns = owner.NewTurns(&a.srv.owner, r, &a.rows, a.Realm(), epoch)
	return r
}

func (r *ownerRole) ask(m *ask) {
	switch {
	case m.view != nil:
		r.srv.Metrics.Views.Add(1)
		r.turns.View(m.output(r.follower.View(m.caller, m.view)))
	case m.async != nil:
		r.turns.Command(m.caller, m.async.Decide, m.output(stream.Result{}))
	default:
		r.turns.Command(m.caller, m.decide, m.output(stream.Result{}))
	}
}

func (r *ownerRole) receive(message any) {
	switch m := message.(type) {
	case owner.TurnsMessage:
		m.HandleTurns(r.turns)
	case owner.Refused:
		r.handleRefused(m)
	case leadershipChanged:
		r.handleLeadership(m.on)
	case clockTick:
		r.tick(m.now)
	case idleReport:
		r.handleIdle(m)
	case delivery.OwnerMessage:
		m.HandleOwned(&r.owned)
	case replica.Message:
		m.HandleOwner(owner.ErrOwnershipLost)
	}
}

// Stored records that all facts up to seq are on disk.
func (r *ownerRole) Stored(seq realm.Seq, texts []realm.TextWrite) {
	r.follower.Stored(seq, texts)
	r.handle.durable.Store(uint64(seq))
}

// Publish passes one committed batch to everything that follows the realm, except to the sessions: they get it together
// with the answer to the caller. The outbox gets its jobs after that.
func (r *ownerRole) Publish(c *stream.Committed, p *stream.Output) {
	r.follower.Publish(c)
	var jobs []*realm.OutboxJobsAdded
	for _, f := range c.Facts {
		r.srv.Metrics.countArchive(f)
		r.srv.Metrics.countSent(f, r.Realm())
		if f, is := f.(*realm.OutboxJobsAdded); is {
			jobs = append(jobs, f)
		}
	}
	if len(jobs) > 0 {
		p.Answer.Sent = func() { r.srv.addOutboxJobs(r.handle, jobs) }
	}
	p.Weight = delivery.WeightOf(c)
	r.owned.Publish(c, true)
}

// Release sends events and an answer to this node's clients, and ephemeral events also to the nodes that follow.
func (r *ownerRole) Release(p *stream.Output) {
	r.handle.followers.ephemeral.pass(p.Publications)
	p.Publications = r.owned.WithLocalQueues(p.Publications)
	r.realmActor.Release(p)
}

// Released answers adoptions that have waited for stored facts.
func (r *ownerRole) Released() {
	r.owned.AnswerAdoptions()
	r.owned.Limit()
}

// tick runs the command that is due, checks the limit of unacked events, and begins a snapshot if the last one is old.
func (r *ownerRole) tick(now int64) {
	r.turns.Tick(now)
	r.handle.retentionLag.Store(r.Realm().RetentionLag())
	r.handle.archived.Store(int64(r.Realm().ArchivedCount()))
	if n := r.Realm().Usage(); r.handle.usage.Load() == nil || *r.handle.usage.Load() != n {
		r.handle.usage.Store(&n)
	}
	r.owned.Limit()
	r.journalAcks()
	r.rows.Tick()
}

// handleLeadership ends the ownership when another node leads.
func (r *ownerRole) handleLeadership(on bool) {
	if !on && r.srv.cluster != nil {
		r.srv.log.Debug("this node has lost the leadership, and with it the organization", "realm", r.Realm().ID())
		r.stepDown()
	}
}

// handleRefused ends the ownership after the journal refused a batch. The state in memory then includes facts that are
// not in the journal. So all output that depends on them is refused, the state is discarded, and the realm is loaded
// again. State outside the realm includes committed facts only and stays valid; see stream.Committed.
func (r *ownerRole) handleRefused(m owner.Refused) {
	if m.Epoch != r.epoch {
		return
	}
	if r.srv.cluster != nil {
		r.srv.log.Warn("this node has lost the ownership of the organization", "realm", r.Realm().ID(),
			"seq", uint64(r.Durable()), "err", m.Err)
		r.stepDown()
		return
	}
	r.srv.log.Error("the journal refused a batch; loading the organization again", "realm", r.Realm().ID(),
		"seq", uint64(r.Durable()), "err", m.Err)
	next := &reclaimingRole{r.realmActor}
	r.lose(next)
	r.rows.Cancel(owner.ErrOwnershipLost)
	r.srv.renderer.ForgetRealm(r.Realm().ID())
	next.begin()
	r.rows.ContinueClose()
}

// lose gives the actor another role, and refuses everything that waits.
func (r *ownerRole) lose(next realmRole) {
	r.stay()
	r.srv.Metrics.OwnershipsLost.Add(1)
	r.role = next
	r.srv.setOwned(r.handle, false)
	r.turns.End()
}

// stepDown makes the owner a standby. After a planned move of the leadership the journal usually has every fact of the
// state. Then the actor keeps the state and follows. Otherwise it loads the realm again, because the journal has all
// acknowledged facts, but perhaps not the others.
func (r *ownerRole) stepDown() {
	keepState := r.turns.AllStored() && !r.rows.IsClosing()
	standby, loading := &standbyRole{realmActor: r.realmActor}, &loadingRole{r.realmActor}
	r.handle.sessions.SendAll(delivery.Drop{})
	if keepState {
		r.lose(standby)
		r.owned.StepDown(true)
		standby.begin()
	} else {
		r.lose(loading)
		r.owned.StepDown(false)
		r.rows.Cancel(owner.ErrOwnershipLost)
		loading.begin()
	}
	r.rows.ContinueClose()
}

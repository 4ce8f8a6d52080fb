package actors

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"parley/actors/delivery"
	"parley/actors/mailbox"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/stream"
)

// ask is one command or view on its way to a realm actor. Exactly one of decide, view and async is set.
type ask struct {
	caller realm.Caller
	decide func(*realm.Turn) (any, error)
	view   func(realm.View) (any, error)
	async  realm.CommandWithCallback // its caller does not wait
	reply  chan stream.Result        // nil with async
	// inFlight is realmHandle.inFlight, with async.
	inFlight *atomic.Int64
	// admitted says that the command is counted by its organization's deliveryFlow.
	admitted bool
}

// asyncBatch is commands that arrived together.
type asyncBatch []ask

// Messages of a realm actor besides ask.
type (
	clockTick    struct{ now int64 } // Unix seconds
	continueJobs struct{}            // run the next turn of a job
	closeRealm   struct{ done chan error }
)

// realmActor runs one organization on a node that stores it. On the owner it gives commands and views their turns, and
// delays their answers and events until the facts that they depend on are on disk. On another core it is a standby; see
// realm_standby.go. Only its own mailbox uses its fields. Turns and replica share the plain data, so no fact is applied
// twice.
type realmActor struct {
	replicaClients
	epoch uint64
	env   realm.TurnEnv // environment of its turns; the time is set for each turn

	pending    []pendingOutput // by seq
	continuing bool            // continueJobs is in the mailbox

	// On a core node; see realm_standby.go.
	standby      bool            // it follows the owner on another node
	claiming     bool            // a claim is in progress
	claimed      *realm.Claimed  // the claim is made; the facts before it are not all applied yet
	run          int             // number of the subscription to the journal; messages of earlier ones are ignored
	stop         func()          // ends the subscription; nil: there is none
	mailboxSlots chan struct{}   // one element for each batch in the mailbox
	unverified   []pendingOutput // wait until this node is known to be the leader
	verifying    int             // how many of them the running check covers; 0: none runs

	requests recentRequests // also of turns whose facts are not on disk yet

	owned delivery.Owned

	rows owner.Rows
}

// pendingOutput is the output of a turn or view: answer, events and outbox jobs. It is sent when all facts up to seq
// are on disk.
type pendingOutput struct {
	delivery.Output
	seq               realm.Seq
	committed         *stream.Committed // nil without facts
	markdownConfigSeq realm.Seq
	closed            bool
}

// newRealmActor makes the actor of a realm that is stored on this node.
func newRealmActor(srv *Server, r *realm.Realm, durable realm.Seq) *realmActor {
	a := &realmActor{replicaClients: newReplicaClients(srv, r, durable)}
	a.hosting = delivery.NewHosting(&a.handle.sessions, &a.replicaClients)
	a.owned = delivery.NewOwned(&a.handle.sessions, a)
	a.rows = owner.NewRows(&srv.owner, a, &a.owned, &a.handle.lastSnapshot)
	return a
}

// Run runs a command of the server itself.
func (a *realmActor) Run(decide func(*realm.Turn) (any, error)) { a.runSystemCommand(decide) }

// Address returns where messages to the actor are sent.
func (a *realmActor) Address() mailbox.Address { return a.handle.pid }

// Epoch returns the epoch of the last claim.
func (a *realmActor) Epoch() uint64 { return a.epoch }

// SendPresence asks the presence actor for changed rows.
func (a *realmActor) SendPresence(limit int, early bool) {
	a.srv.runtime.Send(a.handle.presence, savePresence{to: a.handle.pid, limit: limit, early: early})
}

// BeforeSave drops the events that every queue has acknowledged. Acknowledgements record no fact, but the rows of these
// events must go, too.
func (a *realmActor) BeforeSave() {
	if a.standby {
		a.owned.DropJournaled()
		return
	}
	a.owned.DropAcknowledged() // session actors without queues do not report
	a.journalAcks()
}

// Settled reports whether the realm is not being loaded again.
func (a *realmActor) Settled() bool { return !a.reloading }

// Owns reports whether this node gives the realm its turns now.
func (a *realmActor) Owns() bool { return !a.reloading && !a.standby }

// Receive handles one message and measures how long that took.
func (a *realmActor) Receive(message any) {
	if list, ok := message.(asyncBatch); ok {
		for i := range list {
			began := time.Now()
			a.ask(&list[i])
			a.handle.latencies.observe(list[i].caller.Operation, list[i].caller.User, began, time.Since(began))
		}
		return
	}
	began := time.Now()
	a.receive(message)
	if kind, user := messageKind(message); kind != "" {
		a.handle.latencies.observe(kind, user, began, time.Since(began))
	}
}

// receive calls the method for a message.
func (a *realmActor) receive(message any) {
	switch m := message.(type) {
	case *ask:
		a.ask(m)
	case owner.Durable:
		if !a.standby {
			a.release(m.Seq)
		}
	case owner.Refused:
		a.endOwnership(m)
	case *realmReloaded:
		a.handleReloaded(m)
	case reclaimRealm:
		a.reload()
	case leadershipChanged:
		a.handleLeadership(m.on)
	case standbyClaimed:
		a.handleClaimed(m)
	case *standbyLoaded:
		a.handleStandbyLoaded(m)
	case *followedBatch:
		<-a.mailboxSlots
		a.applyFollowed(m)
	case followEnded:
		a.handleStandbyFollowEnded(m)
	case retryFollow:
		if m.run == a.run {
			a.follow()
			a.claim()
		}
	case retryLoad:
		a.reloadStandby()
	case leaderVerified:
		a.handleLeaderVerified(m)
	case clockTick:
		a.handleClockTick(m.now)
	case continueJobs:
		a.continuing = false
		a.runDueCommand(a.srv.now().Unix())
	case delivery.OwnerMessage: // some are for nodes that follow, too
		x, both := m.(delivery.HostingMessage)
		_, report := m.(delivery.HostedReport)
		switch {
		case a.standby && both:
			x.HandleHosting(&a.hosting)
		case !a.standby || !report:
			m.HandleOwned(&a.owned)
		}
	case delivery.HostingMessage:
		if a.standby {
			m.HandleHosting(&a.hosting)
		}
	case expectRequest, waitForFact, batchReleased, ephemeralEvent, forgetLocalQueues:
		a.receiveOfClients(m)
	case owner.RowsMessage:
		m.HandleRows(&a.rows)
	case closeRealm:
		a.stopFollowing()
		a.rows.BeginClose(m.done)
	}
}

// ask runs one command or view. Its output is sent when everything that it could see is on disk.
func (a *realmActor) ask(m *ask) {
	var p pendingOutput
	if a.standby && !a.reloading {
		p.Output = m.output(stream.Result{Err: realm.ErrNotOwner})
		if m.view != nil && (m.caller.System || !a.cannotServe()) { // the server compares the states of nodes
			p.Answer.Result = a.view(m)
		}
		a.handle.sessions.Flow.Release(&p.Output)
		return
	}
	if a.reloading {
		p.Output = m.output(stream.Result{})
		a.refusePending(&p)
		return
	}
	if m.view != nil {
		a.srv.Metrics.Views.Add(1)
		p.Output = m.output(a.view(m))
	} else {
		a.srv.Metrics.Turns.Add(1)
		p = a.turn(m)
	}
	p.seq, p.markdownConfigSeq, p.closed = a.realm.Seq(), a.realm.MarkdownConfigVersion(), a.realm.Closed()
	if a.srv.cluster != nil && a.durable == p.seq && p.committed == nil && len(p.Publications) == 0 {
		a.answerVerified(p)
		return
	}
	a.pending = append(a.pending, p)
	if a.durable == p.seq {
		a.release(p.seq)
	}
}

// turn runs a command. A bug before the first recorded fact costs one answer; a bug after it ends the process.
func (a *realmActor) turn(m *ask) (p pendingOutput) {
	p.Output = m.output(stream.Result{})
	decide := m.decide
	if m.async != nil {
		decide = m.async.Decide
	}
	defer func() {
		if x := recover(); x != nil {
			if incomplete, ok := x.(realm.IncompleteTurn); ok {
				panic(incomplete)
			}
			a.srv.log.Error("panic in a turn", "realm", a.realm.ID(), "panic", x, "stack", string(debug.Stack()))
			p.Answer.Result = stream.Result{Err: errInternal}
		}
	}()
	if m.caller.Request != "" {
		if err := a.checkRequest(m.caller.Request); err != nil {
			p.Answer.Result = stream.Result{Err: err}
			return p
		}
	}
	if a.env.Token == nil {
		a.env = a.srv.turnEnv(a.handle)
	}
	env := a.env
	env.Now = a.srv.now().Unix()
	env.PushEnabled, env.PushBouncer = a.srv.pushEnabled.Load(), a.srv.bouncerEnabled.Load()
	env.EmailEnabled = a.srv.mailEnabled.Load()
	env.ReadOnly = a.srv.readOnly.Load()
	if a.srv.cluster != nil {
		env.OfSeveral, env.Level = true, a.srv.cluster.Level()
	}
	a.realm.SetClock(env.Now)
	v, facts, publications, err := realm.RunTurn(a.realm, m.caller, env, decide)
	if m.caller.Request != "" {
		publications = withoutOpened(publications)
	}
	p.Answer.Result, p.Publications = stream.Result{Value: v, Err: err}, publications
	if err != nil {
		a.srv.countRefusal(err)
	}
	if len(facts) > 0 {
		p.committed = &stream.Committed{Batch: a.appendToJournal(facts, m.caller.Request), Facts: facts,
			Publications: publications, Sender: m.caller.Edge}
		if a.realm.HasJobs() {
			a.scheduleContinue()
		}
	}
	return p
}

// appendToJournal sends facts, and the texts that belong to them, to the journal actor, and returns them as a batch.
// request is the id of the request that caused them, if it has one.
func (a *realmActor) appendToJournal(facts []realm.Fact, request string) realm.Batch {
	b := realm.NewBatch(a.realm, a.epoch, facts, a.srv.disk.Encode)
	if request != "" {
		b.Requests = []realm.Request{{ID: request, Seq: a.realm.Seq()}}
		a.requests.add(request, a.realm.Seq())
	}
	a.rows.Journaled(b.Facts)
	a.srv.runtime.Send(a.srv.journal, &owner.Append{Batch: b, From: a.handle.pid})
	return b
}

// release sends the output that depends on facts up to seq, in the order of the turns. Accounts and the Markdown
// configuration are published before the answers and events that depend on them. Then the work that waited for these
// facts continues.
func (a *realmActor) release(seq realm.Seq) {
	a.durable = max(a.durable, seq)
	a.handle.durable.Store(uint64(a.durable))
	n := 0
	for n < len(a.pending) && a.pending[n].seq <= a.durable {
		n++
	}
	a.feedSearch(a.pending[:n])
	for i := range a.pending[:n] {
		p := &a.pending[i]
		a.handle.markdownConfigSeq.Store(uint64(p.markdownConfigSeq))
		a.handle.setClosed(a.srv, p.closed)
		if p.committed != nil {
			if jobs := a.publish(p.committed); len(jobs) > 0 {
				p.Answer.Sent = func() { a.srv.addOutboxJobs(a.handle, jobs) }
			}
			p.Weight = delivery.WeightOf(p.committed)
			p.committed = nil
		}
		a.handle.ephemeral.pass(p.Publications)
		p.Publications = a.owned.WithLocalQueues(p.Publications)
		a.handle.sessions.Flow.Release(&p.Output)
	}
	a.owned.AnswerAdoptions()
	a.owned.Limit()
	if rest := a.pending[n:]; len(rest) <= n { // reuse the space at the front
		copy(a.pending, rest)
		clear(a.pending[len(rest):])
		a.pending = a.pending[:len(rest)]
	} else {
		clear(a.pending[:n])
		a.pending = rest
	}
	if len(a.pending) == 0 && cap(a.pending) > 4096 {
		a.pending = nil
	}
	a.rows.Continue()
}

// runSystemCommand gives a command of the server itself its turn.
func (a *realmActor) runSystemCommand(decide func(*realm.Turn) (any, error)) {
	a.ask(&ask{caller: realm.Caller{System: true, Client: "Internal"}, decide: decide})
}

// handleClockTick runs the command that is due, checks the limit of unacked events, and begins a snapshot if the last
// one is old.
func (a *realmActor) handleClockTick(now int64) {
	if a.reloading {
		return
	}
	if !a.standby {
		a.runDueCommand(now)
		a.owned.Limit()
		a.journalAcks()
	} else {
		a.hosting.Tick()
	}
	a.rows.Tick()
}

// runDueCommand runs the command that the organization's data says is due now, if any: a scheduled message, the next
// turn of a job.
func (a *realmActor) runDueCommand(now int64) {
	a.realm.SetClock(now)
	if a.reloading || a.standby || !a.realm.Founded() {
		return
	}
	due := a.realm.Due(now)
	a.handle.retentionLag.Store(a.realm.RetentionLag())
	a.handle.archived.Store(int64(a.realm.ArchivedCount()))
	if due != nil {
		before := a.realm.Seq()
		a.runSystemCommand(due)
		if a.realm.Seq() > before { // without a fact, the next one waits for the clock
			a.scheduleContinue()
		}
	}
}

// scheduleContinue makes the actor look for more due work soon, after the messages that wait already.
func (a *realmActor) scheduleContinue() {
	if !a.continuing {
		a.continuing = true
		a.srv.runtime.Send(a.handle.pid, continueJobs{})
	}
}

package actors

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/realm"
)

// ask is one command or view on its way to a realm. Exactly one of decide, look and order is set.
type ask struct {
	caller realm.Caller
	decide func(*realm.Turn) (any, error)
	look   func(realm.View) (any, error)
	async  realm.CommandWithCallback // nobody waits for it
	reply  chan answer
}

// asyncBatch are commands that came together.
type asyncBatch []ask

// Messages of a realm actor besides ask.
type (
	factsDurable    struct{ seq realm.Seq } // everything up to seq is on disk
	clockTick       struct{ now int64 }
	continueJobs    struct{} // the next turn of what takes many
	snapshotStep    struct{} // pendingWrite a slice of the running snapshot
	snapshotWritten struct { // a snapshot reached the disk
		at  realm.Seq
		err error
	}
	ackReport struct { // every queue of a shard has acknowledged everything up to seq
		shard     int
		seq       realm.Seq
		newest    realm.Seq // newest number the shard had heard of
		confirmed bool      // the clients of all its queues have come, just now, since the start
	}
	closeRealm struct{ done chan error }
	saveRealm  struct{ done chan error } // userOpResult gets nil when the rows are at most as old as a snapshot takes
	setFrozen  struct {                  // userOpResult gets nil when no snapshot is under way
		on   bool
		done chan error
	}
)

// realmActor is the shell around one organization: it owns the plain data and holds back what is not on disk yet.
type realmActor struct {
	srv    *Server
	handle *realmHandle
	realm  *realm.Realm
	epoch  uint64
	env    realm.TurnEnv // of its turns, but for the time

	durable    realm.Seq
	pending    []pendingOutput // in order of seq
	continuing bool            // continueJobs is on its way

	unacked unackedEvents // what some queue may not have acknowledged

	// The running snapshot, if any.
	iterator         *realm.SnapshotIterator
	snapshotRows     [][]realm.EncodedRow // rowsPerStep each: a list of all would be copied when it grows, which takes tens of milliseconds
	stepRows         int                  // rows and bytes of them that this slice has encoded
	stepBytes        int
	allEncoded       bool               // every row is encoded
	presenceRows     []realm.EncodedRow // nil until the presence actor has handed them in
	journalBytes     int64              // journal bytes since the last snapshot
	noSnapshotBefore int64              // elapsed seconds until which none begins, if it can be helped
	lastSnapshot     time.Time
	closeWaiters     []chan error
	snapshotWaiters  []chan error

	rowsSeq       realm.Seq // the number the rows on disk stand at
	snapshotState snapshotState
}

// snapshotState is what becomes of a realm's rows on disk.
type snapshotState int

const (
	snapshotIdle     snapshotState = iota // the next snapshot moves them on
	snapshotWriting                       // one is under way
	snapshotFreezing                      // one is under way, and then they are to stay
	snapshotFrozen                        // they are to stay as they are
	presenceWriting                       // the realm has come to its end frozen; what is in no journal is being written
	presenceDone
)

// pendingOutput is what may leave when everything up to seq is on disk.
type pendingOutput struct {
	seq               realm.Seq
	reply             chan answer
	async             realm.CommandWithCallback
	answer            answer
	told              []realm.Told
	jobs              []*realm.OutboxJobsAdded // for the outbox
	accounts          []realm.UserID
	markdownConfigSeq realm.Seq
	closed            bool
}

func (a *realmActor) Receive(c actor.Context) {
	if list, ok := c.Message().(asyncBatch); ok {
		for i := range list {
			began := time.Now()
			a.ask(&list[i])
			a.handle.latencies.observe(list[i].caller.Operation, list[i].caller.User, began, time.Since(began))
		}
		return
	}
	began := time.Now()
	a.receive(c.Message())
	if kind, user := messageKind(c.Message()); kind != "" {
		a.handle.latencies.observe(kind, user, began, time.Since(began))
	}
}

func (a *realmActor) receive(message any) {
	switch m := message.(type) {
	case *ask:
		a.ask(m)
	case factsDurable:
		a.release(m.seq)
	case clockTick:
		a.handleClockTick(m.now)
	case continueJobs:
		a.continuing = false
		a.runDueCommand(a.srv.now().Unix())
	case ackReport:
		a.handleAckReport(m)
	case snapshotStep:
		a.continueSnapshot()
	case presenceRows:
		if a.snapshotState == presenceWriting {
			a.writeLastPresence(m.rows)
			return
		}
		a.presenceRows = append([]realm.EncodedRow{}, m.rows...)
		if a.allEncoded {
			a.continueSnapshot()
		}
	case snapshotWritten:
		a.handleSnapshotWritten(m)
	case closeRealm:
		a.beginClose(m)
	case saveRealm:
		a.handleSaveRealm(m)
	case setFrozen:
		a.handleSetFrozen(m)
	}
}

func (a *realmActor) ask(m *ask) {
	var p pendingOutput
	if m.look != nil {
		a.srv.Metrics.Views.Add(1)
		p = pendingOutput{reply: m.reply, answer: a.view(m)}
	} else {
		a.srv.Metrics.Turns.Add(1)
		p = a.turn(m)
	}
	p.seq, p.markdownConfigSeq, p.closed = a.realm.Seq(), a.realm.MarkdownConfigVersion(), a.realm.Closed()
	a.pending = append(a.pending, p)
	if a.durable == p.seq {
		a.release(p.seq)
	}
}

// view answers a read. A bug in it costs one answer: nothing was changed.
func (a *realmActor) view(m *ask) (x answer) {
	defer func() {
		if p := recover(); p != nil {
			a.srv.log.Error("panic in a view", "panic", p, "stack", string(debug.Stack()))
			x = answer{err: errInternal}
		}
	}()
	now := a.srv.now().Unix()
	a.realm.SetClock(now)
	v, err := m.look(a.realm.ViewAs(m.caller, now))
	if err != nil {
		a.srv.countRefusal(err)
	}
	return answer{v, err}
}

// turn gives a command its moment. A bug before the first recorded fact costs one answer; after it the process ends.
func (a *realmActor) turn(m *ask) (p pendingOutput) {
	p.reply, p.async = m.reply, m.async
	decide := m.decide
	if m.async != nil {
		decide = m.async.Decide
	}
	defer func() {
		if x := recover(); x != nil {
			if half, ok := x.(realm.IncompleteTurn); ok {
				panic(half)
			}
			a.srv.log.Error("panic in a turn", "panic", x, "stack", string(debug.Stack()))
			p.answer = answer{err: errInternal}
		}
	}()
	if a.env.Token == nil {
		a.env = a.srv.turnEnv(a.handle)
	}
	moment := a.env
	moment.Now, moment.PushEnabled, moment.PushBouncer, moment.EmailEnabled = a.srv.now().Unix(), a.srv.pushEnabled.Load(), a.srv.bouncerEnabled.Load(), a.srv.mailEnabled.Load()
	a.realm.SetClock(moment.Now)
	v, facts, told, err := realm.RunTurn(a.realm, m.caller, moment, decide)
	p.answer, p.told = answer{v, err}, told
	if err != nil {
		a.srv.countRefusal(err)
	}
	if len(facts) > 0 {
		p.accounts = a.appendToJournal(facts)
		if a.realm.HasJobs() {
			a.scheduleContinue()
		}
	}
	for _, t := range told {
		if !t.Ephemeral {
			a.keepUnacked(t)
		}
	}
	a.limitUnacked()
	for i, f := range facts {
		switch f := f.(type) {
		case *realm.QueueOpened: // from here on the shard owes an acknowledgement
			k, n := shardOf(f.Queue.User), a.realm.Seq()-realm.Seq(len(facts)-1-i)
			a.unacked.newestQueue[k], a.unacked.acked[k] = n, min(a.unacked.acked[k], n)
		case *realm.OutboxJobsAdded:
			p.jobs = append(p.jobs, f)
		}
	}
	return p
}

// appendToJournal hands facts on and returns whose credentials they touch.
func (a *realmActor) appendToJournal(facts []realm.Fact) (accounts []realm.UserID) {
	b := realm.Batch{Realm: a.realm.ID(), Epoch: a.epoch, After: a.realm.Seq() - realm.Seq(len(facts))}
	for _, f := range facts {
		data := a.srv.disk.Encode(f)
		a.journalBytes += int64(len(data))
		b.Facts = append(b.Facts, data)
		if w, ok := f.(realm.TextWriter); ok {
			for ref, body := range w.Bodies() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref, Body: body})
				a.srv.texts.put(a.realm.ID(), ref, *body)
			}
		}
		if e, ok := f.(realm.TextEraser); ok {
			for _, ref := range e.Erased() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref})
				a.srv.texts.drop(a.realm.ID(), ref)
			}
		}
		if acc, ok := f.(realm.CredentialChange); ok {
			accounts = append(accounts, acc.Accounts()...)
		}
	}
	a.srv.runtime.send(a.srv.journal, &appendFacts{batch: b, from: a.handle.pid})
	return accounts
}

// release lets everything leave that rests on facts up to seq.
func (a *realmActor) release(seq realm.Seq) {
	a.durable = max(a.durable, seq)
	a.handle.durable.Store(uint64(a.durable))
	n := 0
	for ; n < len(a.pending) && a.pending[n].seq <= a.durable; n++ {
		p := &a.pending[n]
		a.handle.markdownConfigSeq.Store(uint64(p.markdownConfigSeq))
		a.handle.setClosed(a.srv, p.closed)
		for _, u := range p.accounts {
			a.srv.updateAccount(a.realm, u)
		}
		if len(p.told) > 0 {
			a.srv.deliver(a.handle, p.told)
		}
		if p.reply != nil {
			p.reply <- p.answer
		}
		if p.async != nil {
			a.handle.inFlight.Add(-1)
			p.async.Done(p.answer.result, p.answer.err)
		}
		a.srv.addOutboxJobs(a.handle, p.jobs)
	}
	if rest := a.pending[n:]; len(rest) <= n { // to the front, where there is room behind
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
	if a.iterator != nil && a.allEncoded && a.durable >= a.iterator.Seq {
		a.continueSnapshot()
	}
	if a.journalBytes >= SnapshotBytes && (a.journalBytes >= snapshotDelayBytes || a.srv.elapsed() >= a.noSnapshotBefore) || a.snapshotState == snapshotFrozen && a.journalBytes >= a.srv.maxFrozenBytes.Load() {
		a.beginSnapshot()
	}
	if a.snapshotState == snapshotFrozen || a.snapshotState == presenceDone {
		a.continueClose()
	}
}

// runSystemCommand runs a command of the server itself.
func (a *realmActor) runSystemCommand(decide func(*realm.Turn) (any, error)) {
	a.ask(&ask{caller: realm.Caller{System: true, Client: "Internal"}, decide: decide})
}

func (a *realmActor) handleClockTick(now int64) {
	a.runDueCommand(now)
	a.limitUnacked()
	if a.journalBytes > 0 && a.srv.now().Sub(a.lastSnapshot) > snapshotAge {
		a.beginSnapshot()
	}
}

// runDueCommand does what the organization wants done by itself, if anything.
func (a *realmActor) runDueCommand(now int64) {
	a.realm.SetClock(now)
	if !a.realm.Founded() {
		return
	}
	if due := a.realm.Due(now); due != nil {
		before := a.realm.Seq()
		a.runSystemCommand(due)
		if a.realm.Seq() > before { // one that did nothing waits for the clock
			a.scheduleContinue()
		}
	}
}

// scheduleContinue has what is due done at once, but behind whoever waits already.
func (a *realmActor) scheduleContinue() {
	if !a.continuing {
		a.continuing = true
		a.srv.runtime.send(a.handle.pid, continueJobs{})
	}
}

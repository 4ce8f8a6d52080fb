package actors

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/presence"
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
	h      *Server
	handle *realmHandle
	r      *realm.Realm
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

// replayedBytes is what a replayed fact counts for until the next snapshot, in bytes: about an ordinary message's. If
// replayed facts did not count, a server that is killed often would never write a snapshot.
const replayedBytes = 200

// openRealm loads a realm, or goes on from what was loaded of it before, plays the journal behind it, and starts its actor.
func (h *Server) openRealm(id realm.ID, before *loadedRealm) error {
	began := h.now()
	epoch, last, rows, err := h.disk.Claim(id)
	if err != nil {
		return fmt.Errorf("claim realm %d: %w", id, err)
	}
	l, from := before, rows
	if l == nil || l.rowsSeq != rows || l.r.Seq() > last {
		if l != nil {
			h.log.Info("the rows have moved since they were preloaded: loading them again", "realm", id)
			h.accounts.removeRealm(id)
		}
		if l, err = load(h.disk, id, rows, began); err != nil {
			return err
		}
		before = nil
	} else {
		from = l.r.Seq()
		l.book = presence.New() // of this alone the newest is in the rows, and not in the journal
		if err := h.disk.LoadPresence(id, l.book); err != nil {
			return fmt.Errorf("load presence of realm %d: %w", id, err)
		}
		t := readJournalTail(h.disk, id, from)
		defer t.close()
		if err := l.replay(t); err != nil {
			return err
		}
	}
	a := &realmActor{h: h, r: l.r, epoch: epoch, lastSnapshot: began, rowsSeq: rows}
	a.r.SetClock(began.Unix())
	a.keepLoadedUnacked(l)
	a.journalBytes = int64(last-rows) * replayedBytes
	a.unacked.graceUntil, a.noSnapshotBefore = h.elapsed()+evictionGrace, h.elapsed()+snapshotDelay
	a.durable = a.r.Seq()
	if a.durable != last {
		return fmt.Errorf("replay realm %d: reached number %d of %d", id, a.durable, last)
	}
	h.search.Attach(id, last, rows, h.searchTextReader(id))
	h.startRealm(a, l.book)
	if a.r.Founded() {
		a.handle.setClosed(h, a.r.Closed())
		if before == nil {
			h.accounts.addRealm(a.r)
		}
		for _, u := range l.accountsToUpdate {
			h.updateAccount(a.r, u)
		}
	}
	h.restoreQueues(a, l.queues, l.told)
	h.log.Info("realm open", "realm", id, "name", a.handle.name, "facts", uint64(last), "replayed", uint64(last-from), "preloaded", before != nil, "took", h.now().Sub(began).Round(time.Millisecond).String())
	return nil
}

// CreateRealm founds an organization under a subdomain ("" is the root) and returns its number.
func (h *Server) CreateRealm(stringID, name string) (realm.ID, error) {
	h.mu.RLock()
	_, taken := h.byName[stringID]
	var id realm.ID
	for x := range h.realms {
		id = max(id, x)
	}
	h.mu.RUnlock()
	switch {
	case taken && stringID == "":
		return 0, realm.BadRequest("There is a root organization already; another one needs a subdomain")
	case taken:
		return 0, realm.BadRequest("Organization '%s' exists already", stringID)
	}
	id++
	epoch, _, _, err := h.disk.Claim(id)
	if err != nil {
		return 0, fmt.Errorf("claim realm %d: %w", id, err)
	}
	a := &realmActor{h: h, r: realm.New(id), epoch: epoch, lastSnapshot: h.now()}
	h.search.Attach(id, 0, 0, h.searchTextReader(id))
	h.startRealm(a, presence.New())
	for _, k := range h.shards { // also the ones without users report how far they are
		h.runtime.send(k, &restoreQueues{realm: a.handle})
	}
	_, err = h.Turn(id, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) {
		return realm.FoundRealm{StringID: stringID, Name: name}.Decide(t)
	})
	if err != nil {
		return 0, err
	}
	h.mu.Lock()
	a.handle.name, a.handle.site = stringID, h.site(stringID)
	h.byName[stringID] = a.handle
	h.mu.Unlock()
	h.accounts.version.Add(1)
	return id, nil
}

func (h *Server) startRealm(a *realmActor, book *presence.Table) {
	a.handle = &realmHandle{id: a.r.ID(), replayedThrough: a.durable}
	if a.r.Founded() {
		a.handle.name = a.r.Org().StringID
		a.handle.site = h.site(a.handle.name)
	}
	a.handle.durable.Store(uint64(a.durable))
	a.handle.lastSnapshot.Store(a.lastSnapshot.Unix())
	a.handle.markdownConfigSeq.Store(uint64(a.r.MarkdownConfigVersion()))
	a.handle.pid = h.spawn(a)
	handle := a.handle
	handle.recentlyActive = func(u realm.UserID) bool {
		return handle.lastSeen.since(u, h.now().Unix()-presence.PartialSubscriberDays*86400)
	}
	for _, row := range book.ChangedSince(0, math.MinInt64) {
		a.handle.lastSeen.times.Store(row.User, max(row.Active, row.Connected))
	}
	a.handle.presence = h.spawn(&presenceActor{h, book, &a.handle.lastSeen})
	h.mu.Lock()
	h.realms[a.handle.id] = a.handle
	if a.r.Founded() {
		h.byName[a.handle.name] = a.handle
	}
	h.mu.Unlock()
	h.accounts.version.Add(1)
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
		a.runDueCommand(a.h.now().Unix())
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
		a.h.Metrics.Views.Add(1)
		p = pendingOutput{reply: m.reply, answer: a.view(m)}
	} else {
		a.h.Metrics.Turns.Add(1)
		p = a.turn(m)
	}
	p.seq, p.markdownConfigSeq, p.closed = a.r.Seq(), a.r.MarkdownConfigVersion(), a.r.Closed()
	a.pending = append(a.pending, p)
	if a.durable == p.seq {
		a.release(p.seq)
	}
}

// view answers a read. A bug in it costs one answer: nothing was changed.
func (a *realmActor) view(m *ask) (x answer) {
	defer func() {
		if p := recover(); p != nil {
			a.h.log.Error("panic in a view", "panic", p, "stack", string(debug.Stack()))
			x = answer{err: errInternal}
		}
	}()
	now := a.h.now().Unix()
	a.r.SetClock(now)
	v, err := m.look(a.r.ViewAs(m.caller, now))
	if err != nil {
		a.h.countRefusal(err)
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
			a.h.log.Error("panic in a turn", "panic", x, "stack", string(debug.Stack()))
			p.answer = answer{err: errInternal}
		}
	}()
	if a.env.Token == nil {
		a.env = a.h.turnEnv(a.handle)
	}
	moment := a.env
	moment.Now, moment.PushEnabled, moment.PushBouncer, moment.EmailEnabled = a.h.now().Unix(), a.h.pushEnabled.Load(), a.h.bouncerEnabled.Load(), a.h.mailEnabled.Load()
	a.r.SetClock(moment.Now)
	v, facts, told, err := realm.RunTurn(a.r, m.caller, moment, decide)
	p.answer, p.told = answer{v, err}, told
	if err != nil {
		a.h.countRefusal(err)
	}
	if len(facts) > 0 {
		p.accounts = a.appendToJournal(facts)
		if a.r.HasJobs() {
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
			k, n := shardOf(f.Queue.User), a.r.Seq()-realm.Seq(len(facts)-1-i)
			a.unacked.newestQueue[k], a.unacked.acked[k] = n, min(a.unacked.acked[k], n)
		case *realm.OutboxJobsAdded:
			p.jobs = append(p.jobs, f)
		}
	}
	return p
}

// appendToJournal hands facts on and returns whose credentials they touch.
func (a *realmActor) appendToJournal(facts []realm.Fact) (accounts []realm.UserID) {
	b := realm.Batch{Realm: a.r.ID(), Epoch: a.epoch, After: a.r.Seq() - realm.Seq(len(facts))}
	for _, f := range facts {
		data := a.h.disk.Encode(f)
		a.journalBytes += int64(len(data))
		b.Facts = append(b.Facts, data)
		if w, ok := f.(realm.TextWriter); ok {
			for ref, body := range w.Bodies() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref, Body: body})
				a.h.texts.put(a.r.ID(), ref, *body)
			}
		}
		if e, ok := f.(realm.TextEraser); ok {
			for _, ref := range e.Erased() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref})
				a.h.texts.drop(a.r.ID(), ref)
			}
		}
		if acc, ok := f.(realm.CredentialChange); ok {
			accounts = append(accounts, acc.Accounts()...)
		}
	}
	a.h.runtime.send(a.h.journal, &appendFacts{batch: b, from: a.handle.pid})
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
		a.handle.setClosed(a.h, p.closed)
		for _, u := range p.accounts {
			a.h.updateAccount(a.r, u)
		}
		if len(p.told) > 0 {
			a.h.deliver(a.handle, p.told)
		}
		if p.reply != nil {
			p.reply <- p.answer
		}
		if p.async != nil {
			a.handle.inFlight.Add(-1)
			p.async.Done(p.answer.v, p.answer.err)
		}
		a.h.addOutboxJobs(a.handle, p.jobs)
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
	if a.journalBytes >= SnapshotBytes && (a.journalBytes >= snapshotDelayBytes || a.h.elapsed() >= a.noSnapshotBefore) || a.snapshotState == snapshotFrozen && a.journalBytes >= a.h.maxFrozenBytes.Load() {
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
	if a.journalBytes > 0 && a.h.now().Sub(a.lastSnapshot) > snapshotAge {
		a.beginSnapshot()
	}
}

// runDueCommand does what the organization wants done by itself, if anything.
func (a *realmActor) runDueCommand(now int64) {
	a.r.SetClock(now)
	if !a.r.Founded() {
		return
	}
	if due := a.r.Due(now); due != nil {
		before := a.r.Seq()
		a.runSystemCommand(due)
		if a.r.Seq() > before { // one that did nothing waits for the clock
			a.scheduleContinue()
		}
	}
}

// scheduleContinue has what is due done at once, but behind whoever waits already.
func (a *realmActor) scheduleContinue() {
	if !a.continuing {
		a.continuing = true
		a.h.runtime.send(a.handle.pid, continueJobs{})
	}
}

package actors

import (
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire"
)

// ask is one command or view on its way to a realm. Exactly one of decide, look and order is set.
type ask struct {
	caller realm.Caller
	decide func(*realm.Turn) (any, error)
	look   func(realm.View) (any, error)
	order  wire.Command // nobody waits for it
	reply  chan answer
}

// orders are commands that came together.
type orders []ask

// Messages of a realm actor besides ask.
type (
	durable struct{ seq realm.Seq } // everything up to seq is on disk
	clock   struct{ now int64 }
	goOn    struct{} // the next turn of what takes many
	step    struct{} // write a slice of the running snapshot
	written struct { // a snapshot reached the disk
		at  realm.Seq
		err error
	}
	through struct { // every queue of a shard has acknowledged everything up to seq
		shard int
		seq   realm.Seq
		heard realm.Seq // newest number the shard had heard of
		sure  bool      // the clients of all its queues have come, just now, since the start
	}
	finish struct{ done chan error }
	save   struct{ done chan error } // done gets nil when the rows are at most as old as a snapshot takes
	freeze struct {                  // done gets nil when no snapshot is under way
		on   bool
		done chan error
	}
)

// realmActor is the shell around one organization: it owns the plain data and holds back what is not on disk yet.
type realmActor struct {
	h      *House
	handle *handle
	r      *realm.Realm
	epoch  uint64
	moment realm.Moment // of its turns, but for the time

	durable realm.Seq
	pending []pending // in order of seq
	going   bool      // goOn is on its way

	kept kept // what some queue may not have acknowledged

	// The running snapshot, if any.
	cut      *realm.Cut
	rows     [][]realm.EncodedRow // rowsAStep each: a list of all would be copied when it grows, which takes tens of milliseconds
	stepped  int                  // rows and bytes of them that this slice has encoded
	bytes    int
	whole    bool               // every row is encoded
	presence []realm.EncodedRow // nil until the presence actor has handed them in
	grown    int64              // journal bytes since the last snapshot
	calm     int64              // elapsed seconds until which none begins, if it can be helped
	last     time.Time
	finished []chan error
	saving   []chan error

	stands realm.Seq // the number the rows on disk stand at
	state  rowState
}

// rowState is what becomes of a realm's rows on disk.
type rowState int

const (
	moving   rowState = iota // the next snapshot moves them on
	writing                  // one is under way
	freezing                 // one is under way, and then they are to stay
	frozen                   // they are to stay as they are
	leaving                  // the realm has come to its end frozen; what is in no journal is being written
	left
)

// pending is what may leave when everything up to seq is on disk.
type pending struct {
	seq      realm.Seq
	reply    chan answer
	order    wire.Command
	answer   answer
	told     []realm.Told
	accounts []realm.UserID
	dialect  realm.Seq
	closed   bool
}

// replayedBytes is what a replayed fact counts for until the next snapshot, in bytes: about an ordinary message's. If
// replayed facts did not count, a server that is killed often would never write a snapshot.
const replayedBytes = 200

// openRealm loads a realm, or goes on from what was loaded of it before, plays the journal behind it, and starts its actor.
func (h *House) openRealm(id realm.ID, before *loaded) error {
	began := h.now()
	epoch, last, rows, err := h.disk.Claim(id)
	if err != nil {
		return fmt.Errorf("claim realm %d: %w", id, err)
	}
	l, from := before, rows
	if l == nil || l.rows != rows || l.r.Seq() > last {
		if l != nil {
			h.log.Info("the rows have moved since they were preloaded: loading them again", "realm", id)
			h.accounts.forget(id)
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
		t := readTail(h.disk, id, from)
		defer t.close()
		if err := l.replay(t); err != nil {
			return err
		}
	}
	a := &realmActor{h: h, r: l.r, epoch: epoch, last: began, stands: rows}
	a.r.Clock(began.Unix())
	a.keepLoaded(l)
	a.grown = int64(last-rows) * replayedBytes
	a.kept.spared, a.calm = h.elapsed()+keptGrace, h.elapsed()+calm
	a.durable = a.r.Seq()
	if a.durable != last {
		return fmt.Errorf("replay realm %d: reached number %d of %d", id, a.durable, last)
	}
	h.search.Attach(id, last, rows, h.textsToIndex(id))
	h.startRealm(a, l.book)
	if a.r.Founded() {
		a.handle.close(h, a.r.Closed())
		if before == nil {
			h.accounts.introduce(a.r)
		}
		for _, u := range l.touched {
			h.account(a.r, u)
		}
	}
	h.revive(a, l.queues, l.told)
	h.log.Info("realm open", "realm", id, "name", a.handle.name, "facts", uint64(last), "replayed", uint64(last-from), "preloaded", before != nil, "took", h.now().Sub(began).Round(time.Millisecond).String())
	return nil
}

// CreateRealm founds an organization under a subdomain ("" is the root) and returns its number.
func (h *House) CreateRealm(stringID, name string) (realm.ID, error) {
	h.mu.RLock()
	_, taken := h.byName[stringID]
	var id realm.ID
	for x := range h.realms {
		id = max(id, x)
	}
	h.mu.RUnlock()
	switch {
	case taken && stringID == "":
		return 0, realm.Bad("There is a root organization already; another one needs a subdomain")
	case taken:
		return 0, realm.Bad("Organization '%s' exists already", stringID)
	}
	id++
	epoch, _, _, err := h.disk.Claim(id)
	if err != nil {
		return 0, fmt.Errorf("claim realm %d: %w", id, err)
	}
	a := &realmActor{h: h, r: realm.New(id), epoch: epoch, last: h.now()}
	h.search.Attach(id, 0, 0, h.textsToIndex(id))
	h.startRealm(a, presence.New())
	for _, k := range h.shards { // also the ones without users report how far they are
		h.stage.send(k, &revive{realm: a.handle})
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
	h.accounts.vouched.Add(1)
	return id, nil
}

func (h *House) startRealm(a *realmActor, book *presence.Book) {
	a.handle = &handle{id: a.r.ID(), revived: a.durable}
	if a.r.Founded() {
		a.handle.name = a.r.Org().StringID
		a.handle.site = h.site(a.handle.name)
	}
	a.handle.durable.Store(uint64(a.durable))
	a.handle.saved.Store(a.last.Unix())
	a.handle.dialect.Store(uint64(a.r.DialectVersion()))
	a.handle.pid = h.spawn(a)
	handle := a.handle
	handle.recent = func(u realm.UserID) bool { return handle.seen.since(u, h.now().Unix()-wire.PartialDays*86400) }
	for _, row := range book.Since(0, math.MinInt64) {
		a.handle.seen.last.Store(row.User, max(row.Active, row.Connected))
	}
	a.handle.presence = h.spawn(&presenceActor{h, book, &a.handle.seen})
	h.mu.Lock()
	h.realms[a.handle.id] = a.handle
	if a.r.Founded() {
		h.byName[a.handle.name] = a.handle
	}
	h.mu.Unlock()
	h.accounts.vouched.Add(1)
}

func (a *realmActor) Receive(c actor.Context) {
	if list, ok := c.Message().(orders); ok {
		for i := range list {
			began := time.Now()
			a.ask(&list[i])
			a.handle.holds.note(list[i].caller.Doing, list[i].caller.User, began, time.Since(began))
		}
		return
	}
	began := time.Now()
	a.receive(c.Message())
	if kind, user := held(c.Message()); kind != "" {
		a.handle.holds.note(kind, user, began, time.Since(began))
	}
}

func (a *realmActor) receive(message any) {
	switch m := message.(type) {
	case *ask:
		a.ask(m)
	case durable:
		a.release(m.seq)
	case clock:
		a.clock(m.now)
	case goOn:
		a.going = false
		a.due(a.h.now().Unix())
	case through:
		a.through(m)
	case step:
		a.step()
	case savedRows:
		if a.state == leaving {
			a.leave(m.rows)
			return
		}
		a.presence = append([]realm.EncodedRow{}, m.rows...)
		if a.whole {
			a.step()
		}
	case written:
		a.written(m)
	case finish:
		a.finish(m)
	case save:
		a.save(m)
	case freeze:
		a.freeze(m)
	}
}

func (a *realmActor) ask(m *ask) {
	var p pending
	if m.look != nil {
		a.h.Metrics.Views.Add(1)
		p = pending{reply: m.reply, answer: a.view(m)}
	} else {
		a.h.Metrics.Turns.Add(1)
		p = a.turn(m)
	}
	p.seq, p.dialect, p.closed = a.r.Seq(), a.r.DialectVersion(), a.r.Closed()
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
	a.r.Clock(now)
	v, err := m.look(a.r.ViewAs(m.caller, now))
	if err != nil {
		a.h.refused(err)
	}
	return answer{v, err}
}

// turn gives a command its moment. A bug before the first recorded fact costs one answer; after it the process ends.
func (a *realmActor) turn(m *ask) (p pending) {
	p.reply, p.order = m.reply, m.order
	decide := m.decide
	if m.order != nil {
		decide = m.order.Decide
	}
	defer func() {
		if x := recover(); x != nil {
			if half, ok := x.(realm.HalfTurn); ok {
				panic(half)
			}
			a.h.log.Error("panic in a turn", "panic", x, "stack", string(debug.Stack()))
			p.answer = answer{err: errInternal}
		}
	}()
	if a.moment.Token == nil {
		a.moment = a.h.moment(a.handle)
	}
	moment := a.moment
	moment.Now, moment.Pushes, moment.Bouncer, moment.Mails = a.h.now().Unix(), a.h.pushes.Load(), a.h.bouncer.Load(), a.h.mails.Load()
	a.r.Clock(moment.Now)
	v, facts, told, err := realm.Play(a.r, m.caller, moment, decide)
	p.answer, p.told = answer{v, err}, told
	if err != nil {
		a.h.refused(err)
	}
	if len(facts) > 0 {
		p.accounts = a.journal(facts)
		if a.r.Working() {
			a.goOn()
		}
	}
	for _, t := range told {
		if !t.Ephemeral {
			a.keep(t)
		}
	}
	a.boundKept()
	for i, f := range facts {
		if o, ok := f.(*realm.QueueOpened); ok { // from here on the shard owes an acknowledgement
			k, n := shardOf(o.Queue.User), a.r.Seq()-realm.Seq(len(facts)-1-i)
			a.kept.opened[k], a.kept.acked[k] = n, min(a.kept.acked[k], n)
		}
	}
	return p
}

// journal hands facts on and returns whose credentials they touch.
func (a *realmActor) journal(facts []realm.Fact) (accounts []realm.UserID) {
	b := realm.Batch{Realm: a.r.ID(), Epoch: a.epoch, After: a.r.Seq() - realm.Seq(len(facts))}
	for _, f := range facts {
		data := a.h.disk.Encode(f)
		a.grown += int64(len(data))
		b.Facts = append(b.Facts, data)
		if w, ok := f.(realm.Writer); ok {
			for ref, body := range w.Bodies() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref, Body: body})
				a.h.texts.put(a.r.ID(), ref, *body)
			}
		}
		if e, ok := f.(realm.Eraser); ok {
			for _, ref := range e.Erased() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref})
				a.h.texts.drop(a.r.ID(), ref)
			}
		}
		if acc, ok := f.(realm.Accounted); ok {
			accounts = append(accounts, acc.Accounts()...)
		}
	}
	a.h.stage.send(a.h.journal, &appendFacts{batch: b, from: a.handle.pid})
	return accounts
}

// release lets everything leave that rests on facts up to seq.
func (a *realmActor) release(seq realm.Seq) {
	a.durable = max(a.durable, seq)
	a.handle.durable.Store(uint64(a.durable))
	n := 0
	for ; n < len(a.pending) && a.pending[n].seq <= a.durable; n++ {
		p := &a.pending[n]
		a.handle.dialect.Store(uint64(p.dialect))
		a.handle.close(a.h, p.closed)
		for _, u := range p.accounts {
			a.h.account(a.r, u)
		}
		if len(p.told) > 0 {
			a.h.deliver(a.handle, p.told)
		}
		if p.reply != nil {
			p.reply <- p.answer
		}
		if p.order != nil {
			a.handle.inFlight.Add(-1)
			p.order.Done(p.answer.v, p.answer.err)
		}
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
	if a.cut != nil && a.whole && a.durable >= a.cut.At {
		a.step()
	}
	if a.grown >= SnapshotBytes && (a.grown >= calmBytes || a.h.elapsed() >= a.calm) || a.state == frozen && a.grown >= a.h.frozenBytes.Load() {
		a.snapshot()
	}
	if a.state == frozen || a.state == left {
		a.finishing()
	}
}

// system runs a command of the server itself.
func (a *realmActor) system(decide func(*realm.Turn) (any, error)) {
	a.ask(&ask{caller: realm.Caller{System: true, Client: "Internal"}, decide: decide})
}

func (a *realmActor) clock(now int64) {
	a.due(now)
	a.boundKept()
	if a.grown > 0 && a.h.now().Sub(a.last) > snapshotAge {
		a.snapshot()
	}
}

// due does what the organization wants done by itself, if anything.
func (a *realmActor) due(now int64) {
	a.r.Clock(now)
	if !a.r.Founded() {
		return
	}
	if due := a.r.Due(now); due != nil {
		before := a.r.Seq()
		a.system(due)
		if a.r.Seq() > before { // one that did nothing waits for the clock
			a.goOn()
		}
	}
}

// goOn has what is due done at once, but behind whoever waits already.
func (a *realmActor) goOn() {
	if !a.going {
		a.going = true
		a.h.stage.send(a.handle.pid, goOn{})
	}
}

// Package actors is where Parley lives: mailboxes, supervision and timers around the plain data of its sub-packages.
//
// A realm actor gives each command its turn and hands the facts to the journal actor, which commits the facts of many
// turns in one synced batch. Only then do answers and notices leave: nobody is told what a crash could take back.
// Notices go to session actors. One session actor holds a shard of all users with their event queues, because one
// mailbox a queue costs more than the queue: see BenchmarkFanout.
package actors

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire"
)

// Disk is the journal, the rows and the texts, in the realm's own terms.
type Disk interface {
	Realms() ([]realm.ID, error)
	// Claim makes this process the realm's only writer; rows is the number its rows stand at, last the journal's end.
	Claim(id realm.ID) (epoch uint64, last, rows realm.Seq, err error)
	// Load puts the rows into r and the book of presence, and returns the events kept for queues that had not acknowledged them.
	Load(id realm.ID, r *realm.Realm, book *presence.Book) ([]realm.Told, error)
	// LoadPresence puts what the rows say of presence alone into the book.
	LoadPresence(id realm.ID, book *presence.Book) error
	Tail(id realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error
	Encode(f realm.Fact) []byte
	EncodeRow(table uint16, key, row any) realm.EncodedRow
	EncodeKept(t realm.Told) realm.EncodedRow
	// Append commits batches with one sync. An error means nothing later can be trusted either.
	Append([]realm.Batch) error
	Snapshot(id realm.ID, epoch uint64, at realm.Seq, rows []realm.EncodedRow) error
	Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error)
}

// Outside does the errands of organizations: what leaves the server. Errands must not block.
type Outside interface {
	Errands(realm.ID, wire.Site, *realm.ErrandsAdded)
}

// Outside has errands done from now on, those of missed messages among them; pushes says that there is a service that
// notifies phones, bouncer that it passes notifications on for us.
func (h *House) Outside(o Outside, pushes, bouncer bool) {
	h.pushes.Store(pushes)
	h.bouncer.Store(bouncer)
	h.mails.Store(true)
	h.outside.Store(&o)
}

// Limits of the house; each protects the process from one busy part.
const (
	// Shards is how many session actors there are: enough that two cores never wait for one, few enough that a
	// notice to everybody is a handful of sends.
	Shards = 16
	// MaxInFlight is how many commands and views may wait for one realm before more are refused as busy: at 50,000
	// turns a second a full mailbox is a fifth of a second.
	MaxInFlight = 10000
	// MaxUndelivered is how many recipients of notices may wait for the sessions before commands are refused as busy: 8
	// bytes each, and some seconds of work. Without it a realm could tell faster than anybody can hear.
	MaxUndelivered = 4 << 20
	// SnapshotBytes and snapshotAge: the changed rows are written when the journal behind them has so many bytes, or when
	// the last snapshot is so old. So many bytes are about 45,000 messages, which are replayed in an eighth of a second
	// after a crash.
	SnapshotBytes = 4 << 20
	snapshotAge   = 5 * time.Minute
	// calm is for how many seconds after a realm was opened no snapshot begins, unless its journal gets calmBytes long: those
	// who all come back at once need the processors. What was replayed counts, so a server that is killed every few seconds
	// writes one too.
	calm      = 5
	calmBytes = 4 * SnapshotBytes
	// MaxFrozenBytes is how much of a realm's journal gathers while a successor reads the rows: enough for what is sent
	// meanwhile, little enough to be replayed in a moment. Past it rows are written, and the successor reads them again.
	MaxFrozenBytes = 8 * SnapshotBytes
	// TextCacheBytes bounds the message texts kept in memory.
	TextCacheBytes = 64 << 20
)

// House is every actor of one process.
type House struct {
	disk    Disk
	log     *slog.Logger
	now     func() time.Time // the wall clock, which may be set
	elapsed func() int64     // seconds since the house was opened, which only grow
	fatal   func(error)
	secret  []byte
	stage   stage
	journal *actor.PID
	shards  []*actor.PID
	texts   *textCache
	search  Search
	site    func(stringID string) wire.Site

	keptBytes, keptTotal atomic.Int64 // MaxKeptBytes and MaxKeptTotal, but for tests, which set them while realms look

	frozenBytes atomic.Int64 // MaxFrozenBytes, but for tests

	mu       sync.RWMutex // guards realms and byName; both only grow
	realms   map[realm.ID]*handle
	byName   map[string]*handle
	accounts *accounts
	stop     chan struct{}
	stopped  sync.WaitGroup
	Metrics  Metrics
	// Renderer is shared with the endpoints: each organization's dialect is prepared once.
	Renderer wire.Renderer
	outside  atomic.Pointer[Outside]
	pushes   atomic.Bool
	bouncer  atomic.Bool
	mails    atomic.Bool
	refusals sync.Map // code -> *atomic.Int64
}

// Metrics are counted where things happen and read by the metrics page.
type Metrics struct {
	Turns, Views, Busy, Deliveries, Polls, Beats, GivenUp, Snapshots atomic.Int64
	// Parked polls, open queues, events their clients have not acknowledged, and facts whose events are kept for them.
	Parked, Queues, Held, Kept atomic.Int64
	// KeptBytes is about what these events take in memory; Undelivered is the recipients of notices that wait for sessions.
	KeptBytes, Undelivered atomic.Int64
	// GivenUpBytes of the queues given up are those that fell to MaxKeptBytes or MaxKeptTotal.
	GivenUpBytes atomic.Int64
}

// RealmMeters are the meters of each organization.
type RealmMeters struct {
	InFlight           map[realm.ID]int64 // commands and views in its mailbox or waiting for the disk
	DurableFacts       map[realm.ID]int64
	SnapshotAgeSeconds map[realm.ID]int64 // since its rows were last written, or it was opened
	Refusals           map[string]int64   // commands and views refused, by the protocol's code
}

// RealmMeters reads them.
func (h *House) RealmMeters() RealmMeters {
	m := RealmMeters{map[realm.ID]int64{}, map[realm.ID]int64{}, map[realm.ID]int64{}, map[string]int64{}}
	now := h.now().Unix()
	h.eachRealm(func(r *handle) {
		m.InFlight[r.id], m.DurableFacts[r.id] = r.inFlight.Load(), int64(r.durable.Load())
		m.SnapshotAgeSeconds[r.id] = max(0, now-r.saved.Load())
	})
	h.refusals.Range(func(code, n any) bool {
		m.Refusals[code.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return m
}

// refused counts a refusal by its code; there are as many codes as the protocol has.
func (h *House) refused(err error) {
	code := "INTERNAL"
	var r *realm.Refusal
	if errors.As(err, &r) {
		code = r.Code
	}
	n, ok := h.refusals.Load(code)
	if !ok {
		n, _ = h.refusals.LoadOrStore(code, new(atomic.Int64))
	}
	n.(*atomic.Int64).Add(1)
}

// handle is how the rest of the process reaches a realm.
type handle struct {
	id       realm.ID
	name     string // string id
	pid      *actor.PID
	presence *actor.PID
	seen     sightings
	recent   func(realm.UserID) bool // who was seen in the last wire.PartialDays
	inFlight atomic.Int64
	durable  atomic.Uint64
	saved    atomic.Int64 // when its rows were last written, Unix seconds
	dialect  atomic.Uint64
	revived  realm.Seq // facts up to here were replayed: their queues had a life before this process
	site     wire.Site
	closed   atomic.Bool // the organization is deactivated, on disk
	holds    holds
}

// Account is what login needs to know of a user.
type Account = wire.Account

// Options of a house.
type Options struct {
	Secret []byte // API keys follow from it; nil: a random one that ends with the process
	Log    *slog.Logger
	Now    func() time.Time // the wall clock; nil: the system's
	// Elapsed is a clock that nobody sets: event queues live and heartbeats come by it. nil: the system's.
	Elapsed func() time.Duration
	Fatal   func(error) // nil: log and exit at once, so that the restart recovers
	Site    func(stringID string) wire.Site
	// Search is the full-text index; nil: none, and searches are refused.
	Search Search
	// Preloaded is what was read of a copy of the disk before; nil: nothing. Open takes it.
	Preloaded *Preloaded

	stage stage // nil: actors that run by themselves, and the clock's ticks
}

// Open starts the actors and brings every realm of the disk back.
func Open(disk Disk, o Options) (*House, error) {
	h := &House{disk: disk, log: o.Log, now: o.Now, fatal: o.Fatal, site: o.Site, search: o.Search, realms: map[realm.ID]*handle{}, byName: map[string]*handle{}, accounts: newAccounts(), stop: make(chan struct{})}
	h.keptBytes.Store(MaxKeptBytes)
	h.keptTotal.Store(MaxKeptTotal)
	h.frozenBytes.Store(MaxFrozenBytes)
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.now == nil {
		h.now = time.Now
	}
	if o.Elapsed == nil {
		began := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(began) }
	}
	h.elapsed = func() int64 { return int64(o.Elapsed() / time.Second) }
	if h.fatal == nil {
		h.fatal = func(err error) {
			h.log.Error("cannot go on; stopping at once so that a restart recovers", "error", err)
			os.Exit(2)
		}
	}
	if h.search == nil {
		h.search = noSearch{}
	}
	if h.secret = o.Secret; len(h.secret) == 0 {
		h.secret = []byte(Token(32))
	}
	h.texts = newTextCache(TextCacheBytes)
	if h.stage = o.stage; h.stage == nil {
		h.stage = newTheatre()
	}
	h.journal = h.spawn(&journalActor{h: h})
	for i := range Shards {
		h.shards = append(h.shards, h.stage.spawnSession(guarded{h, newShard(h, i)}))
	}
	if o.Preloaded != nil {
		h.accounts = o.Preloaded.accounts
	}
	ids, err := disk.Realms()
	if err != nil {
		return nil, fmt.Errorf("list realms: %w", err)
	}
	for _, id := range ids {
		if err := h.openRealm(id, o.Preloaded.take(id)); err != nil {
			return nil, err
		}
	}
	if o.stage == nil {
		h.stopped.Add(1)
		go h.tick()
	}
	return h, nil
}

// guarded is an actor whose panic ends the process: supervision must never bring back half-changed state.
type guarded struct {
	h     *House
	inner actor.Actor
}

func (g guarded) Receive(c actor.Context) {
	defer func() {
		if p := recover(); p != nil {
			g.h.fatal(fmt.Errorf("panic in %T: %v\n%s", g.inner, p, debug.Stack()))
		}
	}()
	g.inner.Receive(c)
}

func (h *House) spawn(a actor.Actor) *actor.PID {
	return h.stage.spawn(guarded{h, a})
}

// tick drives every timer of the house: one coarse clock instead of a timer a queue.
func (h *House) tick() {
	defer h.stopped.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-h.stop:
			return
		case <-t.C:
		}
		h.sweep()
		if n%5 == 0 {
			h.clock()
		}
	}
}

func (h *House) sweep() {
	now := h.elapsed()
	for _, s := range h.shards {
		h.stage.send(s, sweep{now})
	}
}

func (h *House) clock() {
	now := h.now().Unix()
	h.eachRealm(func(r *handle) { h.stage.send(r.pid, clock{now}) })
}

func (h *House) eachRealm(fn func(*handle)) {
	h.mu.RLock()
	list := make([]*handle, 0, len(h.realms))
	for _, r := range h.realms {
		list = append(list, r)
	}
	h.mu.RUnlock()
	for _, r := range list {
		fn(r)
	}
}

func (h *House) find(id realm.ID) *handle {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.realms[id]
}

// Save writes a snapshot of every realm while turns go on, so that a Close soon after has little left to write.
func (h *House) Save(ctx context.Context) error {
	return h.all(ctx, func(r *handle, done chan error) { h.stage.send(r.pid, save{done}) })
}

// Freeze waits for snapshots under way and lets no other begin: the rows on disk stay as they are, and what happens is in
// the journal behind them, for a successor that has read the rows. Thaw ends it, and so does a realm whose journal gets
// MaxFrozenBytes long. A Close of a frozen house writes no last snapshot, only what is in no journal: presence.
func (h *House) Freeze(ctx context.Context) error {
	return h.all(ctx, func(r *handle, done chan error) { h.stage.send(r.pid, freeze{true, done}) })
}

// Thaw ends Freeze.
func (h *House) Thaw() {
	h.eachRealm(func(r *handle) { h.stage.send(r.pid, freeze{false, make(chan error, 1)}) })
}

// Close lets pending turns reach the disk, writes a last snapshot of every realm, and stops the actors.
func (h *House) Close(ctx context.Context) error {
	close(h.stop)
	h.stopped.Wait()
	if err := h.all(ctx, func(r *handle, done chan error) { h.stage.send(r.pid, finish{done}) }); err != nil {
		return err
	}
	h.stage.end()
	return nil
}

// all asks every realm for something and waits until each has said that it is done.
func (h *House) all(ctx context.Context, ask func(*handle, chan error)) error {
	var all []chan error
	h.eachRealm(func(r *handle) {
		done := make(chan error, 1)
		all = append(all, done)
		ask(r, done)
	})
	for _, c := range all {
		select {
		case err := <-c:
			if err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// answer is what a realm actor sends back.
type answer struct {
	v   any
	err error
}

// replies are reused: a channel a request would cost more than the turn.
var replies = sync.Pool{New: func() any { return make(chan answer, 1) }}

// Turn gives decide one turn in a realm and returns when its facts are on disk.
func (h *House) Turn(id realm.ID, c realm.Caller, decide func(*realm.Turn) (any, error)) (any, error) {
	return h.ask(id, &ask{caller: c, decide: decide})
}

// View lets look at a realm between turns and returns when everything it could see is on disk.
func (h *House) View(id realm.ID, c realm.Caller, look func(realm.View) (any, error)) (any, error) {
	return h.ask(id, &ask{caller: c, look: look})
}

var errUnknownRealm = realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")

func (h *House) ask(id realm.ID, a *ask) (any, error) {
	r := h.find(id)
	if r == nil {
		return nil, errUnknownRealm
	}
	if err := h.admit(r, a.look == nil); err != nil {
		return nil, err
	}
	a.reply = replies.Get().(chan answer)
	h.stage.send(r.pid, a)
	x := <-a.reply
	replies.Put(a.reply)
	r.inFlight.Add(-1)
	return x.v, x.err
}

// admit counts a command or view in, or refuses it where too many wait.
func (h *House) admit(r *handle, command bool) error {
	if r.inFlight.Add(1) > MaxInFlight || command && h.Metrics.Undelivered.Load() > MaxUndelivered {
		r.inFlight.Add(-1)
		h.Metrics.Busy.Add(1)
		return realm.Refuse(realm.Busy, "BAD_REQUEST", "The server is busy; try again.")
	}
	return nil
}

// Order gives commands that nobody waits for their turns. Those of one realm that follow each other come to it together.
func (h *House) Order(list []wire.Order) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Realm == list[0].Realm {
			n++
		}
		r := h.find(list[0].Realm)
		batch := make(orders, 0, n)
		for i := range list[:n] {
			o := &list[i]
			if r == nil {
				o.Done(nil, errUnknownRealm)
			} else if err := h.admit(r, true); err != nil {
				o.Done(nil, err)
			} else {
				batch = append(batch, ask{caller: o.Caller, order: o.Command})
			}
		}
		if len(batch) > 0 {
			h.stage.send(r.pid, batch)
		}
		list = list[n:]
	}
}

// Dialect is the number of the newest fact on disk that may have changed how texts are rendered.
func (h *House) Dialect(id realm.ID) realm.Seq {
	if r := h.find(id); r != nil {
		return realm.Seq(r.dialect.Load())
	}
	return 0
}

// errInternal is the answer to a caller who ran into a bug before anything was recorded.
var errInternal = errors.New("internal error")

// Text is one version of a message's text, from memory or disk.
func (h *House) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool) {
	if b, ok := h.texts.get(id, ref); ok {
		return b, true
	}
	b, ok, err := h.disk.Text(id, ref)
	if err != nil {
		h.log.Error("read message text", "realm", id, "message", ref.Message, "error", err)
		return realm.Body{}, false
	}
	if ok {
		h.texts.put(id, ref, b)
	}
	return b, ok
}

// textsToIndex reads an organization's texts for the search index. Each is read once, so those that are not in the cache are
// not put there: they would drive out what people read.
func (h *House) textsToIndex(id realm.ID) realm.TextReader {
	return func(ref realm.BodyRef) (realm.Body, bool, error) {
		if b, ok := h.texts.peek(id, ref); ok {
			return b, true, nil
		}
		return h.disk.Text(id, ref)
	}
}

// moment is what a turn gets to know of the world.
func (h *House) moment(r *handle) realm.Moment {
	return realm.Moment{Now: h.now().Unix(), Token: h.stage.token, UUID: h.stage.uuid, Hash: HashKey,
		Key:       func(u realm.UserID, epoch int64) string { return h.key(r.id, u, epoch) },
		Pushes:    h.pushes.Load(),
		Bouncer:   h.bouncer.Load(),
		LinkToken: func(id int64) string { return h.LinkToken(r.id, id) },
		Render:    func(text string, v realm.View) (realm.Body, realm.Content) { return h.Renderer.Inside(text, v, r.site) },
		Describe:  func(text string, v realm.View) string { return h.Renderer.Describe(text, v, r.site) },
		Links:     func(topic string, v realm.View) []realm.TopicLink { return h.Renderer.Links(topic, v, r.site) }}
}

// key is an account's API key: a keyed hash of who it is, so that it can be made again but not guessed.
func (h *House) key(id realm.ID, u realm.UserID, epoch int64) string {
	return derived(h.secret, fmt.Sprintf("api key %d %d %d", id, u, epoch))
}

// LinkToken is what an organization's invitation link of that number ends in.
func (h *House) LinkToken(id realm.ID, link int64) string {
	return LinkToken(h.secret, id, link)
}

// LinkToken is House.LinkToken of a server with that secret.
func LinkToken(secret []byte, id realm.ID, link int64) string {
	return derived(secret, fmt.Sprintf("invitation link %d %d", id, link))
}

// derived is 32 characters that follow from the server's secret and what they are for.
func derived(secret []byte, what string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(what))
	n := new(big.Int).SetBytes(mac.Sum(nil))
	b, base, digit := make([]byte, 32), big.NewInt(int64(len(tokenAlphabet))), new(big.Int)
	for i := range b {
		n.DivMod(n, base, digit)
		b[i] = tokenAlphabet[digit.Int64()]
	}
	return string(b)
}

// HashKey is the one-way form of API keys and tokens. They are long and random, so a plain hash is enough and lookup by
// hash stays possible.
func HashKey(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

const tokenAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Token is random characters of [A-Za-z0-9].
func Token(length int) string {
	b := make([]byte, length)
	for i := range b {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(tokenAlphabet))))
		if err != nil {
			panic("BUG: no randomness: " + err.Error())
		}
		b[i] = tokenAlphabet[n.Int64()]
	}
	return string(b)
}

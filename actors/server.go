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
	"parley/actors/session"
)

// Disk is the journal, the rows and the texts, in the realm's own terms.
type Disk interface {
	Realms() ([]realm.ID, error)
	// Claim makes this process the realm's only writer; rows is the number its rows stand at, last the journal's end.
	Claim(id realm.ID) (epoch uint64, last, rows realm.Seq, err error)
	// Load puts the rows into r and the book of presence, and returns the events kept for queues that had not acknowledged them.
	Load(id realm.ID, r *realm.Realm, book *presence.Table) ([]realm.Told, error)
	// LoadPresence puts what the rows say of presence alone into the book.
	LoadPresence(id realm.ID, book *presence.Table) error
	Tail(id realm.ID, after realm.Seq, fn func(realm.Seq, realm.Fact) error) error
	Encode(f realm.Fact) []byte
	EncodeRow(table uint16, key, row any) realm.EncodedRow
	EncodeUnacked(t realm.Told) realm.EncodedRow
	// Append commits batches with one sync. An error means nothing later can be trusted either.
	Append([]realm.Batch) error
	Snapshot(id realm.ID, epoch uint64, at realm.Seq, rows []realm.EncodedRow) error
	Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error)
}

// Outbox does the errands of organizations: what leaves the server. Errands must not block.
type Outbox interface {
	AddJobs(realm.ID, realm.Site, *realm.OutboxJobsAdded)
}

// Renderer renders, inside a turn, texts that become part of facts: messages of the server itself, descriptions and
// topics. Package wire implements it.
type Renderer interface {
	RenderInTurn(text string, v realm.View, site realm.Site) (realm.Body, realm.ContentInfo)
	RenderDescription(text string, v realm.View, site realm.Site) string
	TopicLinks(topic string, v realm.View, site realm.Site) []realm.TopicLink
}

// SetOutbox has errands done from now on, those of missed messages among them; pushes says that there is a service that
// notifies phones, bouncer that it passes notifications on for us.
func (h *Server) SetOutbox(o Outbox, pushes, bouncer bool) {
	h.pushEnabled.Store(pushes)
	h.bouncerEnabled.Store(bouncer)
	h.mailEnabled.Store(true)
	h.outbox.Store(&o)
}

// addOutboxJobs hands jobs that are on disk to the outbox. Before SetOutbox nothing is lost: when the outbox starts it
// reads every job that waits from the realm.
func (h *Server) addOutboxJobs(r *realmHandle, list []*realm.OutboxJobsAdded) {
	if o := h.outbox.Load(); o != nil {
		for _, f := range list {
			(*o).AddJobs(r.id, r.site, f)
		}
	}
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
	// snapshotDelay is for how many seconds after a realm was opened no snapshot begins, unless its journal gets snapshotDelayBytes long: those
	// who all come back at once need the processors. What was replayed counts, so a server that is killed every few seconds
	// writes one too.
	snapshotDelay      = 5
	snapshotDelayBytes = 4 * SnapshotBytes
	// MaxFrozenBytes is how much of a realm's journal gathers while a successor reads the rows: enough for what is sent
	// meanwhile, little enough to be replayed in a moment. Past it rows are written, and the successor reads them again.
	MaxFrozenBytes = 8 * SnapshotBytes
	// TextCacheBytes bounds the message texts kept in memory.
	TextCacheBytes = 64 << 20
)

// Server is every actor of one process.
type Server struct {
	disk    Disk
	log     *slog.Logger
	now     func() time.Time // the wall clock, which may be set
	elapsed func() int64     // seconds since the house was opened, which only grow
	fatal   func(error)
	secret  []byte
	runtime actorRuntime
	journal *actor.PID
	shards  []*actor.PID
	texts   *textCache
	search  Search
	site    func(stringID string) realm.Site

	maxUnackedBytes, maxUnackedTotal atomic.Int64 // MaxUnackedBytes and MaxUnackedTotal, but for tests, which set them while realms look

	maxFrozenBytes atomic.Int64 // MaxFrozenBytes, but for tests

	mu             sync.RWMutex // guards realms and byName; both only grow
	realms         map[realm.ID]*realmHandle
	byName         map[string]*realmHandle
	accounts       *accountTable
	stop           chan struct{}
	stopped        sync.WaitGroup
	Metrics        Metrics
	protocol       session.Protocol
	renderer       Renderer
	outbox         atomic.Pointer[Outbox]
	pushEnabled    atomic.Bool
	bouncerEnabled atomic.Bool
	mailEnabled    atomic.Bool
	refusals       sync.Map // code -> *atomic.Int64
}

// Metrics are counted where things happen and read by the metrics page.
type Metrics struct {
	Turns, Views, Busy, Deliveries, Polls, Heartbeats, QueuesEvicted, Snapshots atomic.Int64
	// Parked polls, open queues, events their clients have not acknowledged, and facts whose events are kept for them.
	ParkedPolls, OpenQueues, UnackedEvents, UnackedFacts atomic.Int64
	// KeptBytes is about what these events take in memory; Undelivered is the recipients of notices that wait for sessions.
	UnackedBytes, Undelivered atomic.Int64
	// GivenUpBytes of the queues given up are those that fell to MaxUnackedBytes or MaxUnackedTotal.
	QueuesEvictedForMemory atomic.Int64
}

// RealmMetrics are the meters of each organization.
type RealmMetrics struct {
	InFlight           map[realm.ID]int64 // commands and views in its mailbox or waiting for the disk
	DurableFacts       map[realm.ID]int64
	SnapshotAgeSeconds map[realm.ID]int64 // presenceSince its rows were last written, or it was opened
	Refusals           map[string]int64   // commands and views refused, by the protocol's code
}

// RealmMetrics reads them.
func (h *Server) RealmMetrics() RealmMetrics {
	m := RealmMetrics{map[realm.ID]int64{}, map[realm.ID]int64{}, map[realm.ID]int64{}, map[string]int64{}}
	now := h.now().Unix()
	h.eachRealm(func(r *realmHandle) {
		m.InFlight[r.id], m.DurableFacts[r.id] = r.inFlight.Load(), int64(r.durable.Load())
		m.SnapshotAgeSeconds[r.id] = max(0, now-r.lastSnapshot.Load())
	})
	h.refusals.Range(func(code, n any) bool {
		m.Refusals[code.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return m
}

// countRefusal counts a refusal by its code; there are as many codes as the protocol has.
func (h *Server) countRefusal(err error) {
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

// realmHandle is how the rest of the process reaches a realm.
type realmHandle struct {
	id                realm.ID
	name              string // string id
	pid               *actor.PID
	presence          *actor.PID
	lastSeen          lastSeenTable
	recentlyActive    func(realm.UserID) bool // who was seen in the last presence.PartialSubscriberDays
	inFlight          atomic.Int64
	durable           atomic.Uint64
	lastSnapshot      atomic.Int64 // when its rows were last written, Unix seconds
	markdownConfigSeq atomic.Uint64
	replayedThrough   realm.Seq // facts up to here were replayed: their queues had a life before this process
	site              realm.Site
	closed            atomic.Bool // the organization is deactivated, on disk
	latencies         turnLatencies
}

// Options of a house.
type Options struct {
	Secret []byte // API keys follow from it; nil: a random one that ends with the process
	Log    *slog.Logger
	Now    func() time.Time // the wall clock; nil: the system's
	// Elapsed is a clock that nobody sets: event queues live and heartbeats come by it. nil: the system's.
	Elapsed  func() time.Duration
	Fatal    func(error) // nil: log and exit at once, so that the restart recovers
	Site     func(stringID string) realm.Site
	Protocol session.Protocol // required
	Renderer Renderer         // required
	// Search is the full-text index; nil: none, and searches are refused.
	Search Search
	// Preloaded is what was read of a copy of the disk before; nil: nothing. Open takes it.
	Preloaded *Preloaded

	runtime actorRuntime // nil: actors that run by themselves, and the clock's ticks
}

// Open starts the actors and brings every realm of the disk back.
func Open(disk Disk, o Options) (*Server, error) {
	if o.Protocol == nil || o.Renderer == nil {
		return nil, errors.New("BUG: actors.Open needs Options.Protocol and Options.Renderer")
	}
	h := &Server{disk: disk, log: o.Log, now: o.Now, fatal: o.Fatal, site: o.Site, protocol: o.Protocol, renderer: o.Renderer, search: o.Search, realms: map[realm.ID]*realmHandle{}, byName: map[string]*realmHandle{}, accounts: newAccountTable(), stop: make(chan struct{})}
	h.maxUnackedBytes.Store(MaxUnackedBytes)
	h.maxUnackedTotal.Store(MaxUnackedTotal)
	h.maxFrozenBytes.Store(MaxFrozenBytes)
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
	if h.runtime = o.runtime; h.runtime == nil {
		h.runtime = newProtoactorRuntime()
	}
	h.journal = h.spawn(&journalActor{h: h})
	for i := range Shards {
		h.shards = append(h.shards, h.runtime.spawnSession(fatalOnPanic{h, newShard(h, i)}))
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
	if o.runtime == nil {
		h.stopped.Add(1)
		go h.runClock()
	}
	return h, nil
}

// fatalOnPanic is an actor whose panic ends the process: supervision must never bring back half-changed state.
type fatalOnPanic struct {
	h     *Server
	inner actor.Actor
}

func (g fatalOnPanic) Receive(c actor.Context) {
	defer func() {
		if p := recover(); p != nil {
			g.h.fatal(fmt.Errorf("panic in %T: %v\n%s", g.inner, p, debug.Stack()))
		}
	}()
	g.inner.Receive(c)
}

func (h *Server) spawn(a actor.Actor) *actor.PID {
	return h.runtime.spawn(fatalOnPanic{h, a})
}

// runClock drives every timer of the house: one coarse clock instead of a timer a queue.
func (h *Server) runClock() {
	defer h.stopped.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-h.stop:
			return
		case <-t.C:
		}
		h.sweepQueues()
		if n%5 == 0 {
			h.tickRealms()
		}
	}
}

func (h *Server) sweepQueues() {
	now := h.elapsed()
	for _, s := range h.shards {
		h.runtime.send(s, sweepQueues{now})
	}
}

func (h *Server) tickRealms() {
	now := h.now().Unix()
	h.eachRealm(func(r *realmHandle) { h.runtime.send(r.pid, clockTick{now}) })
}

func (h *Server) eachRealm(fn func(*realmHandle)) {
	h.mu.RLock()
	list := make([]*realmHandle, 0, len(h.realms))
	for _, r := range h.realms {
		list = append(list, r)
	}
	h.mu.RUnlock()
	for _, r := range list {
		fn(r)
	}
}

func (h *Server) find(id realm.ID) *realmHandle {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.realms[id]
}

// Save writes a snapshot of every realm while turns go on, so that a Close soon after has little left to write.
func (h *Server) Save(ctx context.Context) error {
	return h.askAllRealms(ctx, func(r *realmHandle, done chan error) { h.runtime.send(r.pid, saveRealm{done}) })
}

// Freeze waits for snapshots under way and lets no other begin: the rows on disk stay as they are, and what happens is in
// the journal behind them, for a successor that has read the rows. Thaw ends it, and so does a realm whose journal gets
// MaxFrozenBytes long. A Close of a frozen house writes no last snapshot, only what is in no journal: presence.
func (h *Server) Freeze(ctx context.Context) error {
	return h.askAllRealms(ctx, func(r *realmHandle, done chan error) { h.runtime.send(r.pid, setFrozen{true, done}) })
}

// Unfreeze ends Freeze.
func (h *Server) Unfreeze() {
	h.eachRealm(func(r *realmHandle) { h.runtime.send(r.pid, setFrozen{false, make(chan error, 1)}) })
}

// Close lets pending turns reach the disk, writes a last snapshot of every realm, and stops the actors.
func (h *Server) Close(ctx context.Context) error {
	close(h.stop)
	h.stopped.Wait()
	if err := h.askAllRealms(ctx, func(r *realmHandle, done chan error) { h.runtime.send(r.pid, closeRealm{done}) }); err != nil {
		return err
	}
	h.runtime.shutdown()
	return nil
}

// askAllRealms asks every realm for something and waits until each has said that it is done.
func (h *Server) askAllRealms(ctx context.Context, ask func(*realmHandle, chan error)) error {
	var all []chan error
	h.eachRealm(func(r *realmHandle) {
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
func (h *Server) Turn(id realm.ID, c realm.Caller, decide func(*realm.Turn) (any, error)) (any, error) {
	return h.ask(id, &ask{caller: c, decide: decide})
}

// View lets look at a realm between turns and returns when everything it could see is on disk.
func (h *Server) View(id realm.ID, c realm.Caller, look func(realm.View) (any, error)) (any, error) {
	return h.ask(id, &ask{caller: c, look: look})
}

var errUnknownRealm = realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")

func (h *Server) ask(id realm.ID, a *ask) (any, error) {
	r := h.find(id)
	if r == nil {
		return nil, errUnknownRealm
	}
	if err := h.admit(r, a.look == nil); err != nil {
		return nil, err
	}
	a.reply = replies.Get().(chan answer)
	h.runtime.send(r.pid, a)
	x := <-a.reply
	replies.Put(a.reply)
	r.inFlight.Add(-1)
	return x.v, x.err
}

// admit counts a command or view in, or refuses it where too many wait.
func (h *Server) admit(r *realmHandle, command bool) error {
	if r.inFlight.Add(1) > MaxInFlight || command && h.Metrics.Undelivered.Load() > MaxUndelivered {
		r.inFlight.Add(-1)
		h.Metrics.Busy.Add(1)
		return realm.Refuse(realm.Busy, "BAD_REQUEST", "The server is busy; try again.")
	}
	return nil
}

// RunAsync gives commands that nobody waits for their turns. Those of one realm that follow each other come to it together.
func (h *Server) RunAsync(list []realm.AsyncCommand) {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Realm == list[0].Realm {
			n++
		}
		r := h.find(list[0].Realm)
		batch := make(asyncBatch, 0, n)
		for i := range list[:n] {
			o := &list[i]
			if r == nil {
				o.Done(nil, errUnknownRealm)
			} else if err := h.admit(r, true); err != nil {
				o.Done(nil, err)
			} else {
				batch = append(batch, ask{caller: o.Caller, async: o.CommandWithCallback})
			}
		}
		if len(batch) > 0 {
			h.runtime.send(r.pid, batch)
		}
		list = list[n:]
	}
}

// MarkdownConfigSeq is the number of the newest fact on disk that may have changed how texts are rendered.
func (h *Server) MarkdownConfigSeq(id realm.ID) realm.Seq {
	if r := h.find(id); r != nil {
		return realm.Seq(r.markdownConfigSeq.Load())
	}
	return 0
}

// errInternal is the answer to a caller who ran into a bug before anything was recorded.
var errInternal = errors.New("internal error")

// Text is one version of a message's text, from memory or disk.
func (h *Server) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool) {
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

// searchTextReader reads an organization's textGeneration for the search index. Each is read once, so those that are not in the cache are
// not put there: they would drive out what people read.
func (h *Server) searchTextReader(id realm.ID) realm.TextReader {
	return func(ref realm.BodyRef) (realm.Body, bool, error) {
		if b, ok := h.texts.peek(id, ref); ok {
			return b, true, nil
		}
		return h.disk.Text(id, ref)
	}
}

// turnEnv is what a turn gets to know of the world.
func (h *Server) turnEnv(r *realmHandle) realm.TurnEnv {
	return realm.TurnEnv{Now: h.now().Unix(), Token: h.runtime.token, UUID: h.runtime.uuid, Hash: HashKey,
		APIKey:          func(u realm.UserID, epoch int64) string { return h.apiKey(r.id, u, epoch) },
		PushEnabled:     h.pushEnabled.Load(),
		PushBouncer:     h.bouncerEnabled.Load(),
		InviteLinkToken: func(id int64) string { return h.LinkToken(r.id, id) },
		RenderMessage: func(text string, v realm.View) (realm.Body, realm.ContentInfo) {
			return h.renderer.RenderInTurn(text, v, r.site)
		},
		RenderDescription: func(text string, v realm.View) string { return h.renderer.RenderDescription(text, v, r.site) },
		TopicLinks:        func(topic string, v realm.View) []realm.TopicLink { return h.renderer.TopicLinks(topic, v, r.site) }}
}

// apiKey is an account's API apiKey: a keyed hash of who it is, so that it can be made again but not guessed.
func (h *Server) apiKey(id realm.ID, u realm.UserID, epoch int64) string {
	return deriveToken(h.secret, fmt.Sprintf("api key %d %d %d", id, u, epoch))
}

// LinkToken is what an organization's invitation link of that number ends in.
func (h *Server) LinkToken(id realm.ID, link int64) string {
	return LinkToken(h.secret, id, link)
}

// LinkToken is Server.LinkToken of a server with that secret.
func LinkToken(secret []byte, id realm.ID, link int64) string {
	return deriveToken(secret, fmt.Sprintf("invitation link %d %d", id, link))
}

// deriveToken is 32 characters that follow from the server's secret and what they are for.
func deriveToken(secret []byte, what string) string {
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

package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/realm"
	"parley/actors/session"
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
	turnLatency    func(kind string) Observer
	renderer       Renderer
	outbox         atomic.Pointer[Outbox]
	pushEnabled    atomic.Bool
	bouncerEnabled atomic.Bool
	mailEnabled    atomic.Bool
	refusals       sync.Map // code -> *atomic.Int64
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
	// TurnLatency returns where to report the latency of one kind of turn; nil: it is not reported. It is asked once for
	// each kind and realm.
	TurnLatency func(kind string) Observer
	// Preloaded is what was read of a copy of the disk before; nil: nothing. Open takes it.
	Preloaded *Preloaded

	runtime actorRuntime // nil: actors that run by themselves, and the clock's ticks
}

// Open starts the actors and brings every realm of the disk back.
func Open(disk Disk, o Options) (*Server, error) {
	if o.Protocol == nil || o.Renderer == nil {
		return nil, errors.New("BUG: actors.Open needs Options.Protocol and Options.Renderer")
	}
	srv := &Server{disk: disk, log: o.Log, now: o.Now, fatal: o.Fatal, site: o.Site, protocol: o.Protocol, renderer: o.Renderer, turnLatency: o.TurnLatency, search: o.Search, realms: map[realm.ID]*realmHandle{}, byName: map[string]*realmHandle{}, accounts: newAccountTable(), stop: make(chan struct{})}
	srv.maxUnackedBytes.Store(MaxUnackedBytes)
	srv.maxUnackedTotal.Store(MaxUnackedTotal)
	srv.maxFrozenBytes.Store(MaxFrozenBytes)
	if srv.log == nil {
		srv.log = slog.Default()
	}
	if srv.now == nil {
		srv.now = time.Now
	}
	if o.Elapsed == nil {
		began := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(began) }
	}
	srv.elapsed = func() int64 { return int64(o.Elapsed() / time.Second) }
	if srv.fatal == nil {
		srv.fatal = func(err error) {
			srv.log.Error("cannot go on; stopping at once so that a restart recovers", "error", err)
			os.Exit(2)
		}
	}
	if srv.search == nil {
		srv.search = noSearch{}
	}
	if srv.secret = o.Secret; len(srv.secret) == 0 {
		srv.secret = []byte(Token(32))
	}
	srv.texts = newTextCache(TextCacheBytes)
	if srv.runtime = o.runtime; srv.runtime == nil {
		srv.runtime = newProtoactorRuntime()
	}
	srv.journal = srv.spawn(&journalActor{srv: srv})
	for i := range Shards {
		srv.shards = append(srv.shards, srv.runtime.spawnSession(fatalOnPanic{srv, newShard(srv, i)}))
	}
	if o.Preloaded != nil {
		srv.accounts = o.Preloaded.accounts
	}
	ids, err := disk.Realms()
	if err != nil {
		return nil, fmt.Errorf("list realms: %w", err)
	}
	for _, id := range ids {
		if err := srv.openRealm(id, o.Preloaded.take(id)); err != nil {
			return nil, err
		}
	}
	if o.runtime == nil {
		srv.stopped.Add(1)
		go srv.runClock()
	}
	return srv, nil
}

// fatalOnPanic is an actor whose panic ends the process: supervision must never bring back half-changed state.
type fatalOnPanic struct {
	srv   *Server
	inner actor.Actor
}

func (g fatalOnPanic) Receive(c actor.Context) {
	defer func() {
		if p := recover(); p != nil {
			g.srv.fatal(fmt.Errorf("panic in %T: %v\n%s", g.inner, p, debug.Stack()))
		}
	}()
	g.inner.Receive(c)
}

func (srv *Server) spawn(a actor.Actor) *actor.PID {
	return srv.runtime.spawn(fatalOnPanic{srv, a})
}

// runClock drives every timer of the house: one coarse clock instead of a timer a queue.
func (srv *Server) runClock() {
	defer srv.stopped.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-srv.stop:
			return
		case <-t.C:
		}
		srv.sweepQueues()
		if n%5 == 0 {
			srv.tickRealms()
		}
	}
}

func (srv *Server) sweepQueues() {
	now := srv.elapsed()
	for _, s := range srv.shards {
		srv.runtime.send(s, sweepQueues{now})
	}
}

func (srv *Server) tickRealms() {
	now := srv.now().Unix()
	srv.eachRealm(func(r *realmHandle) { srv.runtime.send(r.pid, clockTick{now}) })
}

func (srv *Server) eachRealm(fn func(*realmHandle)) {
	srv.mu.RLock()
	list := make([]*realmHandle, 0, len(srv.realms))
	for _, r := range srv.realms {
		list = append(list, r)
	}
	srv.mu.RUnlock()
	for _, r := range list {
		fn(r)
	}
}

func (srv *Server) find(id realm.ID) *realmHandle {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return srv.realms[id]
}

// Save writes a snapshot of every realm while turns go on, so that a Close soon after has little left to write.
func (srv *Server) Save(ctx context.Context) error {
	return srv.askAllRealms(ctx, func(r *realmHandle, done chan error) { srv.runtime.send(r.pid, saveRealm{done}) })
}

// Freeze waits for snapshots under way and lets no other begin: the rows on disk stay as they are, and what happens is in
// the journal behind them, for a successor that has read the rows. Thaw ends it, and so does a realm whose journal gets
// MaxFrozenBytes long. A Close of a frozen house writes no last snapshot, only what is in no journal: presence.
func (srv *Server) Freeze(ctx context.Context) error {
	return srv.askAllRealms(ctx, func(r *realmHandle, done chan error) { srv.runtime.send(r.pid, setFrozen{true, done}) })
}

// Unfreeze ends Freeze.
func (srv *Server) Unfreeze() {
	srv.eachRealm(func(r *realmHandle) { srv.runtime.send(r.pid, setFrozen{false, make(chan error, 1)}) })
}

// Close lets pending turns reach the disk, writes a last snapshot of every realm, and stops the actors.
func (srv *Server) Close(ctx context.Context) error {
	close(srv.stop)
	srv.stopped.Wait()
	if err := srv.askAllRealms(ctx, func(r *realmHandle, done chan error) { srv.runtime.send(r.pid, closeRealm{done}) }); err != nil {
		return err
	}
	srv.runtime.shutdown()
	return nil
}

// askAllRealms asks every realm for something and waits until each has said that it is done.
func (srv *Server) askAllRealms(ctx context.Context, ask func(*realmHandle, chan error)) error {
	var all []chan error
	srv.eachRealm(func(r *realmHandle) {
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

// MarkdownConfigSeq is the number of the newest fact on disk that may have changed how texts are rendered.
func (srv *Server) MarkdownConfigSeq(id realm.ID) realm.Seq {
	if r := srv.find(id); r != nil {
		return realm.Seq(r.markdownConfigSeq.Load())
	}
	return 0
}

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

	"parley/actors/delivery"
	"parley/actors/mailbox"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/actors/replica"
	"parley/actors/session"
)

// Server is every actor of one process, and the interface through which endpoints reach them. Its methods may be called
// by any goroutine.
type Server struct {
	creating sync.Mutex // one organization is created at a time: each takes the next id

	disk      Disk
	log       *slog.Logger
	now       func() time.Time     // the wall clock; it may jump
	elapsed   func() int64         // seconds since the server was opened; it never jumps
	sinceOpen func() time.Duration // elapsed as a duration
	delivery  delivery.Env
	fatal     func(error)
	secret    []byte
	runtime   mailbox.Runtime
	journal   mailbox.Address
	texts     *textCache
	damaged   damagedTexts
	search    Search
	// archiveDays is Options.ArchiveDays.
	archiveDays *int
	site        func(stringID string) realm.Site

	owner    owner.Env
	replicas replica.Env
	limits   realm.Limits

	mu             sync.RWMutex // guards the next four; CloseReplica and beginRest remove from realms and byName
	realms         map[realm.ID]*realmHandle
	byName         map[string]*realmHandle // by string id
	sleepers       sleepers                // realms that are not in memory
	followers      map[realm.ID]*realmFollowers
	second         atomic.Int64 // elapsed, as of the last tick of the clock
	accounts       *accountTable
	stop           chan struct{} // closed by Close
	stopped        sync.WaitGroup
	Metrics        Metrics
	protocol       session.Protocol
	turnLatency    func(kind string) Observer
	renderer       Renderer
	outbox         atomic.Pointer[Outbox]
	onErased       atomic.Pointer[func(realm.ID)]
	pushEnabled    atomic.Bool
	bouncerEnabled atomic.Bool
	mailEnabled    atomic.Bool
	ownerTasksMu   sync.RWMutex // guards ownerTasks; read-locked while a realmHandle.owned changes; taken before mu
	ownerTasks     []OwnerTask
	refusals       sync.Map // protocol code -> *atomic.Int64
	readOnly       atomic.Bool
	replicasPaused atomic.Bool                 // see PauseReplicas
	cluster        Cluster                     // Options.Cluster
	isLeader       atomic.Bool                 // see SetLeader
	following      atomic.Pointer[remoteOwner] // of a core; see FollowOwner
	openingNew     atomic.Bool                 // see openNewRealmsLater
	edges          sync.Map                    // connections from edges: Edge.Key -> *Edge
	edgeCount      atomic.Uint64
}

// realmHandle gives the rest of the process access to a realm actor. Fields without atomics do not change after the
// realm was opened, except name and site: CreateRealm sets them before it publishes the name.
type realmHandle struct {
	id                realm.ID
	name              string          // string id
	pid               mailbox.Address // the realm actor
	presence          mailbox.Address // the presence actor
	sessions          delivery.Sessions
	lastSeen          lastSeenTable
	inFlight          atomic.Int64    // commands and views in progress; see MaxInFlight
	entered           atomic.Int64    // see Server.enter
	sleepAt           atomic.Int64    // elapsed seconds; it stays in memory until then
	durable           atomic.Uint64   // last fact on disk
	lastSnapshot      atomic.Int64    // when its rows were last written, Unix seconds
	markdownConfigSeq atomic.Uint64   // see Server.MarkdownConfigSeq
	source            ReplicaSource   // of an edge; cores read their own disk
	owner             *remoteOwner    // of an edge; else see Server.ownerOf
	owned             atomic.Bool     // this node gives the realm its turns; see OwnerTask
	followers         *realmFollowers // other nodes
	closed            atomic.Bool     // a fact on disk says that the organization is deactivated
	latencies         turnLatencies
	retentionLag      atomic.Int64                       // see realm.Realm.RetentionLag
	archived          atomic.Int64                       // messages in the archive
	usage             atomic.Pointer[realm.UsageNumbers] // nil: not yet known
}

// Options configure a server.
type Options struct {
	Secret []byte // API keys are derived from it; nil: a random one for this process only
	Log    *slog.Logger
	Now    func() time.Time // the wall clock; nil: the system's
	// Elapsed is a clock that never jumps. Queue lifetimes and heartbeats go by it. nil: the system's.
	Elapsed func() time.Duration
	// DeliveryLag is how long events may wait for their delivery before commands have to wait for their turn; 0:
	// without limit.
	DeliveryLag time.Duration
	// Fatal is called when the process must end; nil: it logs the error and exits at once, so that a restart recovers.
	Fatal func(error)
	// Site returns the address of the organization with a string id.
	Site     func(stringID string) realm.Site
	Protocol session.Protocol // required
	Renderer Renderer         // required
	// Search is the full-text index. nil: none, and searches are rejected as busy.
	Search Search
	// TurnLatency returns the observer of one kind of turn. It is called once for each kind and realm. nil: latencies
	// are not reported.
	TurnLatency func(kind string) Observer
	// ArchiveDays is for how many days deleted messages can be restored. nil: messages are neither deleted by the
	// retention policies nor purged from the archive, as in tools that work on a stopped server.
	ArchiveDays *int
	// Preloaded is what Preload read from a copy of the disk; nil: nothing. Open takes it over.
	Preloaded *Preloaded
	// Cluster makes this process a core of a cluster, which owns organizations only while it is the leader; see
	// SetLeader. nil: the process is a single server and owns every organization.
	Cluster Cluster

	// SleepAfter is how long an organization without requests stays in memory; 0: for ever. MaxAwake is how many are in
	// memory before those without requests leave it earlier; 0: without limit. Neither applies to edges.
	SleepAfter time.Duration
	MaxAwake   int

	// Limits are the limits of the objects that users of each realm create; fields that are 0 have their defaults.
	Limits realm.Limits
	// UnackedBytes is the limit of the unacked events of all realms, in bytes; one realm can use half of it. 0: the
	// default, delivery.MaxUnackedTotal.
	UnackedBytes int64

	runtime mailbox.Runtime // nil: protoactor, and a ticker
}

// Open starts the actors and opens every realm of the disk, except those that are known to be asleep. It returns when
// all of them are ready.
func Open(disk Disk, o Options) (*Server, error) {
	if o.Protocol == nil || o.Renderer == nil {
		return nil, errors.New("BUG: actors.Open needs Options.Protocol and Options.Renderer")
	}
	srv := &Server{
		disk:        disk,
		log:         o.Log,
		now:         o.Now,
		fatal:       o.Fatal,
		site:        o.Site,
		protocol:    o.Protocol,
		renderer:    o.Renderer,
		turnLatency: o.TurnLatency,
		search:      o.Search,
		archiveDays: o.ArchiveDays,
		cluster:     o.Cluster,
		realms:      map[realm.ID]*realmHandle{},
		byName:      map[string]*realmHandle{},
		followers:   map[realm.ID]*realmFollowers{},
		accounts:    newAccountTable(),
		stop:        make(chan struct{}),
	}
	if o.UnackedBytes == 0 {
		o.UnackedBytes = delivery.MaxUnackedTotal
	}
	srv.limits = o.Limits
	srv.delivery.Limits.Set(o.UnackedBytes)
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
	srv.sinceOpen = o.Elapsed
	srv.elapsed = func() int64 { return int64(o.Elapsed() / time.Second) }
	if srv.fatal == nil {
		srv.fatal = func(err error) {
			srv.log.Error("fatal error: exiting at once, so that a restart recovers", "err", err)
			os.Exit(2)
		}
	}
	if srv.search == nil {
		srv.search = noSearch{}
	}
	if srv.secret = o.Secret; len(srv.secret) == 0 {
		srv.secret = []byte(Token(32))
	}
	srv.sleepers.prepare(disk, &o)
	srv.replicasPaused.Store(srv.cluster != nil)
	srv.texts = newTextCache(TextCacheBytes)
	if srv.runtime = o.runtime; srv.runtime == nil {
		srv.runtime = mailbox.NewRuntime(Token)
	}
	srv.startDelivery(o.DeliveryLag)
	srv.startOwner()
	journal := &owner.Journal{Env: &srv.owner}
	srv.journal = srv.spawn(journal)
	journal.Self, srv.owner.Journal = srv.journal, srv.journal
	srv.replicas = replica.Env{Runtime: srv.runtime, Log: srv.log, Now: srv.now, Refused: srv.countRefusal}
	if o.Preloaded != nil {
		srv.accounts = o.Preloaded.accounts
	}
	if err := srv.openRealms(o.Preloaded); err != nil {
		return nil, err
	}
	if o.runtime == nil {
		srv.stopped.Add(1)
		go srv.runClock()
	}
	return srv, nil
}

// openRealms opens every realm of the disk.
func (srv *Server) openRealms(p *Preloaded) error {
	if srv.cluster != nil {
		return srv.openNewRealms()
	}
	ids, err := srv.disk.Realms()
	if err != nil {
		return fmt.Errorf("list realms: %w", err)
	}
	for _, id := range ids {
		before := p.take(id)
		if srv.sleepers.disk != nil && before == nil {
			if known, ok := srv.sleepers.disk.Asleep(id); ok {
				srv.addSleeper(id, known)
				continue
			}
		}
		if err := srv.openRealm(id, before); err != nil {
			return err
		}
	}
	return nil
}

// startOwner prepares the parts that the owners of all realms share.
func (srv *Server) startOwner() {
	o := &srv.owner
	o.Runtime, o.Disk, o.Log, o.Now, o.Elapsed = srv.runtime, srv.disk, srv.log, srv.now, srv.elapsed
	o.Fatal, o.ReadOnly, o.Refused, o.Counters = srv.fatal, srv.readOnly.Load, srv.countRefusal, &srv.Metrics.Counters
	if srv.cluster != nil {
		o.Confirm = srv.cluster.VerifyLeader
	}
	o.MaxFrozenBytes.Store(owner.MaxFrozenBytes)
}

// startDelivery prepares the parts that the sessions of all realms share.
func (srv *Server) startDelivery(lag time.Duration) {
	d := &srv.delivery
	d.Node, d.Runtime, d.Log, d.SinceOpen = deliveryNode{srv}, srv.runtime, srv.log, srv.sinceOpen
	d.Guard = func(a mailbox.Actor) mailbox.Actor { return fatalOnPanic{srv, a} }
	d.Protocol, d.Texts, d.Metrics, d.Lag = srv.protocol, srv, &srv.Metrics.Metrics, lag
	d.MaxRefs.Store(delivery.MaxUnackedRefs)
}

// fatalOnPanic is an actor whose panic ends the process. The actor library would restart the actor with half-changed
// state.
type fatalOnPanic struct {
	srv   *Server
	inner mailbox.Actor
}

func (g fatalOnPanic) Receive(message any) {
	defer func() {
		if p := recover(); p != nil {
			g.srv.fatal(fmt.Errorf("panic in %T: %v\n%s", g.inner, p, debug.Stack()))
		}
	}()
	g.inner.Receive(message)
}

// spawn starts an actor whose panic ends the process.
func (srv *Server) spawn(a mailbox.Actor) mailbox.Address {
	return srv.runtime.Spawn(fatalOnPanic{srv, a})
}

// Now returns the time by the wall clock of the organizations; on an edge it is that of the core.
func (srv *Server) Now() time.Time { return srv.now() }

// runClock drives every timer of the server: one ticker instead of one timer a queue.
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
		srv.second.Store(srv.elapsed())
		srv.sweepQueues()
		srv.expireKeys()
		srv.wakeDue()
		if srv.cluster != nil {
			srv.openNewRealmsLater()
		}
		if n%5 == 0 {
			srv.tickRealms()
			srv.restIdle()
		}
	}
}

// sweepQueues lets every session actor send heartbeats, close idle queues and report acknowledgements, and refuses
// commands that have waited too long.
func (srv *Server) sweepQueues() {
	srv.eachRealm(func(r *realmHandle) { r.sessions.Sweep() })
}

// CollectAcks lets the owner of an organization know at once, instead of within a second, what the clients of this node
// have acknowledged.
func (srv *Server) CollectAcks(id realm.ID) {
	if r := srv.find(id); r != nil {
		r.sessions.CollectAcks()
	}
}

// tickRealms lets every realm actor run the commands that are due.
func (srv *Server) tickRealms() {
	now := srv.now().Unix()
	srv.eachRealm(func(r *realmHandle) { srv.runtime.Send(r.pid, clockTick{now}) })
}

// eachRealm calls fn with every realm, without holding the lock.
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

// has reports whether there is a realm, in memory or asleep.
func (srv *Server) has(id realm.ID) bool {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return srv.realms[id] != nil || srv.sleepers.byID[id] != nil
}

// find returns the handle of a realm in memory, or nil.
func (srv *Server) find(id realm.ID) *realmHandle {
	srv.mu.RLock()
	defer srv.mu.RUnlock()
	return srv.realms[id]
}

// Save writes a snapshot of every realm while turns continue, so that a Close soon after has little left to write.
func (srv *Server) Save(ctx context.Context) error {
	return srv.askAllRealms(ctx, func(r *realmHandle, done chan error) {
		srv.runtime.Send(r.pid,
			owner.Save{Done: done})
	})
}

// SetReadOnly disables or enables all changes, because the disk is full or has space again. While changes are disabled,
// commands that would record a fact are refused with realm.ErrReadOnly before anything is applied, and no snapshot
// begins. Polls, views and ephemeral events continue. Facts that are already recorded are still written.
func (srv *Server) SetReadOnly(on bool) { srv.readOnly.Store(on) }

// IsReadOnly reports whether all changes are refused.
func (srv *Server) IsReadOnly() bool { return srv.readOnly.Load() }

// checkWritable returns the refusal of a change while all changes are refused.
func (srv *Server) checkWritable() error {
	if srv.readOnly.Load() {
		return realm.ErrReadOnly(srv.cluster != nil)
	}
	return nil
}

// Freeze stops snapshots while a successor process reads the rows: it waits for those in progress, and no other begins.
// New facts are only written to the journal. Unfreeze ends this state, and so does a journal of owner.MaxFrozenBytes.
// Close writes no last snapshot in this state, only presence, which is not in the journal.
func (srv *Server) Freeze(ctx context.Context) error {
	if err := srv.freezeSleepers(ctx); err != nil {
		return err
	}
	return srv.askAllRealms(ctx, func(r *realmHandle, done chan error) {
		srv.runtime.Send(r.pid, owner.SetFrozen{On: true, Done: done})
	})
}

// Unfreeze ends Freeze.
func (srv *Server) Unfreeze() {
	srv.mu.Lock()
	srv.sleepers.frozen = false
	srv.mu.Unlock()
	srv.eachRealm(func(r *realmHandle) { srv.runtime.Send(r.pid, owner.SetFrozen{Done: make(chan error, 1)}) })
}

// Close waits until the facts of pending turns are on disk, writes a last snapshot of every realm, and stops the
// actors. The next start finds the realms asleep.
func (srv *Server) Close(ctx context.Context) error {
	close(srv.stop)
	srv.stopped.Wait()
	if err := srv.freezeSleepers(ctx); err != nil {
		return err
	}
	err := srv.askAllRealms(ctx, func(r *realmHandle, done chan error) { srv.runtime.Send(r.pid, closeRealm{done}) })
	if err != nil {
		return err
	}
	if srv.sleepers.disk != nil {
		err = srv.askAllRealms(ctx, func(r *realmHandle, done chan error) {
			srv.runtime.Send(r.pid, storeAsleep{done})
		})
		if err != nil {
			return err
		}
	}
	srv.runtime.Shutdown()
	return nil
}

// askAllRealms sends a request to every realm actor and waits for all the answers. It returns the first error.
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

// MarkdownConfigSeq returns the number of the newest fact on disk that may have changed how texts of a realm are
// rendered.
func (srv *Server) MarkdownConfigSeq(id realm.ID) realm.Seq {
	if r := srv.find(id); r != nil {
		return realm.Seq(r.markdownConfigSeq.Load())
	}
	return 0
}

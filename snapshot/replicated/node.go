package replicated

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"parley/actors/realm"
	"parley/snapshot"
)

// Limits and times of a node. Those that depend on the deployment can be changed in Options.
const (
	// DefaultElectionTimeout is how long a voter waits for the leader before it asks for votes; the wait is random, up
	// to twice this time. Service is back in under 2 s, and sooner if the process of the leader has ended: see
	// ReplaceLeader. A busy host of two cores answers heartbeats in far less.
	DefaultElectionTimeout = 500 * time.Millisecond
	// DefaultLogBytes is how many bytes of new entries make the node truncate its log, and how many bytes of old
	// entries it then retains for nodes that are a little behind.
	DefaultLogBytes = 64 << 20
	// DefaultSnapshotThreshold is how many new entries make the node take a Raft snapshot. A start reads the entries
	// after the last snapshot, which takes some tenths of a second.
	DefaultSnapshotThreshold = 10_000
	// DefaultCheckpointInterval is the time between two comparisons of the logs of all nodes; see Checkpoint.
	DefaultCheckpointInterval = time.Minute

	// maxAppendEntries is how many entries are sent to a node, or applied, at a time.
	maxAppendEntries = 64
	// enqueueTimeout is how long an append may wait for Raft to accept it.
	enqueueTimeout = 5 * time.Second
	// linkTimeout is how long another node may take to answer a request.
	linkTimeout = 5 * time.Second
	// maxPooledLinks is how many idle connections to each node stay open.
	maxPooledLinks = 3
	// commitTimeout is how soon followers learn that an entry is committed when no other entry follows; it may take up
	// to twice as long. The clients of a follower get the events of the entry after that.
	commitTimeout = 8 * time.Millisecond
	// idleRequestInterval is the time between two requests without new entries. They show whether the link still works.
	idleRequestInterval = 50 * time.Millisecond

	// firstIndex is the index of the Raft snapshot with which Bootstrap begins a log. Every other node begins with a
	// backup.
	firstIndex, firstTerm = 1, 1
)

// subDir is the directory of the log and the Raft snapshot in a data directory.
const subDir = "raft"

// HasLog reports whether a data directory has a replicated log. A core creates it at its first start.
func HasLog(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, subDir))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Links connects the nodes of a cluster. Closing it ends Accept.
type Links interface {
	net.Listener
	Dial(address string, timeout time.Duration) (net.Conn, error)
}

// Options of a node.
type Options struct {
	ID      string       // of this node in the cluster; required
	Address string       // where the other nodes reach this one, as Links.Dial takes it; required
	Links   Links        // nil: no other node can be reached
	Log     *slog.Logger // nil: nothing is logged
	Store   snapshot.Options

	ElectionTimeout    time.Duration // 0: DefaultElectionTimeout
	LogBytes           int64         // 0: DefaultLogBytes
	SnapshotThreshold  uint64        // 0: DefaultSnapshotThreshold
	SegmentBytes       int           // 0: DefaultSegmentBytes
	CheckpointInterval time.Duration // 0: DefaultCheckpointInterval

	Level uint16 // newest rule level that the program knows; 0: realm.Level
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Store.FS == nil {
		o.Store.FS = vfs.Default
	}
	if o.ElectionTimeout == 0 {
		o.ElectionTimeout = DefaultElectionTimeout
	}
	if o.LogBytes == 0 {
		o.LogBytes = DefaultLogBytes
	}
	if o.SnapshotThreshold == 0 {
		o.SnapshotThreshold = DefaultSnapshotThreshold
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.Level == 0 {
		o.Level = realm.Level
	}
	if o.CheckpointInterval == 0 {
		o.CheckpointInterval = DefaultCheckpointInterval
	}
	return o
}

// Node is one running member of a cluster. Its methods may be called from any goroutine.
type Node struct {
	dir   string
	o     Options
	fs    vfs.FS
	log   *slog.Logger
	lock  io.Closer
	store atomic.Pointer[snapshot.Store]

	snapshots *raftSnapshotStore
	wal       *checkedLog
	logs      *comparedLog
	transport raft.Transport
	raft      *raft.Raft
	failed    *failure
	damage    damage
	opened    time.Time

	proposeMu sync.Mutex // one append at a time, so that the entries of one follow each other in the log
	claims    sharedProposals
	// Bytes and number of the entries that were applied since the log was truncated. The Raft snapshot stores them for
	// the next start.
	logBytes, logEntries atomic.Int64

	installs      atomic.Int64
	level         atomic.Uint32 // of the cluster
	verified      atomic.Int64  // comparisons of the log that found no difference
	differing     atomic.Int64  // comparisons with a wrong sum of the leader
	uncompared    atomic.Int64  // checkpoints without a comparison
	rounds        verifyRounds
	confirmations *confirmations
	commits       commits // see throttledPipeline

	leaderCommit atomic.Uint64 // see recordLeaderCommit
	fsmApplied   atomic.Uint64 // last entry that the state machine has got and applied

	metaMu sync.Mutex
	onMeta map[string]func([]byte)

	leaderMu     sync.Mutex
	onLeadership []func(leader bool)
	leading      bool
	leadership   atomic.Uint64 // epoch of this node's leadership; 0: none, or it needs claims

	started   chan struct{} // closed when raft is set
	closing   chan struct{}
	ended     chan struct{} // closed when Raft has shut down
	closeOnce sync.Once
	closeErr  error
	loops     sync.WaitGroup
}

// Bootstrap turns a data directory into that of the first node of a new cluster. The directory may contain
// organizations. No server may use it.
func Bootstrap(dir string, o Options) error {
	o = o.withDefaults()
	n := &Node{dir: dir, o: o, fs: o.Store.FS, failed: newFailure()}
	s, err := snapshot.Open(dir, o.Store)
	if err != nil {
		return err
	}
	if err := makeDir(n.fs, n.raftDir()); err != nil {
		return errors.Join(err, s.Close())
	}
	n.snapshots = &raftSnapshotStore{fs: n.fs, dir: n.raftDir(), failed: n.failed}
	old, err := n.snapshots.read()
	if err == nil && (old != nil || s.Replicated()) {
		err = fmt.Errorf("%s belongs to a cluster already", dir)
	}
	if err == nil { // the journal of a single node may have facts of any level that the program knows
		err = s.PutMeta(snapshot.LevelKey, []byte(strconv.Itoa(int(o.Level))))
	}
	if err == nil {
		err = s.Replicate(firstIndex)
	}
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	return n.snapshots.write(&raftSnapshot{Index: firstIndex, Term: firstTerm, ServersIndex: firstIndex,
		Servers: []raft.Server{{ID: raft.ServerID(o.ID), Address: raft.ServerAddress(o.Address)}}})
}

// PrepareJoin turns an empty data directory into that of a node that can join a cluster. A directory that already
// belongs to a cluster is not changed.
func PrepareJoin(dir string, o Options) error {
	o = o.withDefaults()
	s, err := snapshot.Open(dir, o.Store)
	if err != nil {
		return err
	}
	if !s.Replicated() {
		list, lerr := s.Realms()
		if err = lerr; err == nil && len(list) > 0 {
			err = fmt.Errorf("%s contains organizations: join with an empty data directory", dir)
		}
		if err == nil {
			err = s.Replicate(0)
		}
	}
	return errors.Join(err, s.Close())
}

// Open starts the node of a directory that Bootstrap or PrepareJoin has made. After PrepareJoin the node waits until a
// leader adds it.
func Open(dir string, o Options) (*Node, error) {
	o = o.withDefaults()
	if o.ID == "" || o.Address == "" {
		return nil, errors.New("BUG: a node needs an id and an address")
	}
	n := &Node{dir: dir, o: o, fs: o.Store.FS, log: o.Log, failed: newFailure(), started: make(chan struct{}),
		closing: make(chan struct{}), ended: make(chan struct{}), confirmations: newConfirmations(),
		opened: time.Now()}
	err := n.checkNotDamaged()
	if err == nil {
		err = n.openStore()
	}
	if err == nil {
		err = n.openLog()
	}
	if err == nil {
		err = n.startRaft()
	}
	if err != nil {
		close(n.closing)
		return nil, errors.Join(err, n.releaseFiles())
	}
	if d := n.damage.get(); d != nil && n.stopForDamage(d) {
		return nil, n.Close()
	}
	n.loops.Add(4)
	go n.watchLeadership()
	go n.truncateLog()
	go n.addCheckpoints()
	go n.verifyLeader()
	return n, nil
}

func (n *Node) raftDir() string { return n.fs.PathJoin(n.dir, subDir) }

// errNoCluster is the error for a data directory that neither Bootstrap nor PrepareJoin has made.
var errNoCluster = errors.New("the data directory belongs to no cluster")

// openStore finishes an interrupted installation and opens the store.
func (n *Node) openStore() error {
	n.snapshots = &raftSnapshotStore{fs: n.fs, dir: n.raftDir(), failed: n.failed, space: n.diskFullRetrier(),
		backup:  func(w io.Writer) error { return n.store.Load().Backup(w) },
		logSize: func() (bytes, entries int64) { return n.logBytes.Load(), n.logEntries.Load() }}
	if err := makeDir(n.fs, n.dir); err != nil {
		return err
	}
	if err := makeDir(n.fs, n.raftDir()); err != nil {
		return err
	}
	lock, err := n.fs.Lock(n.fs.PathJoin(n.raftDir(), "LOCK"))
	if err != nil {
		return fmt.Errorf("%w: %w", snapshot.ErrInUse, err)
	}
	n.lock = lock
	x, err := n.snapshots.read()
	if err != nil {
		return err
	}
	installing := x != nil && x.Backup != ""
	if installing {
		if err := n.finishInstall(x); err != nil {
			return err
		}
	}
	s, err := snapshot.Open(n.dir, n.storeOptions())
	if err != nil {
		return n.damagedAtStart(err)
	}
	n.setStore(s)
	if installing {
		if err := n.snapshots.markInstalled(s.Applied()); err != nil {
			return err
		}
	}
	if !s.Replicated() {
		return fmt.Errorf("%s: %w", n.dir, errNoCluster)
	}
	if err := n.loadLevel(s); err != nil {
		return err
	}
	if x != nil && s.Applied() < x.Index {
		return fmt.Errorf("the store in %s has the log up to entry %d, but had synced entry %d: entries are lost; "+
			"remove this data directory and join the cluster again", n.dir, s.Applied(), x.Index)
	}
	return nil
}

// diskFullRetrier lets writes wait for space while the node is open.
func (n *Node) diskFullRetrier() *diskFullRetrier {
	release := func() bool {
		s := n.store.Load()
		return s != nil && s.ReleaseBallast()
	}
	hasRoom := func() bool { return n.store.Load().HasSpace() }
	return &diskFullRetrier{release: release, hasRoom: hasRoom, failed: n.failed, closing: n.closing}
}

// openLog opens the log and checks that no entry is missing between it and the Raft snapshot.
func (n *Node) openLog() (err error) {
	if n.wal, err = openCheckedLog(n.fs, n.raftDir(), n.o.SegmentBytes, n.log, n.failed,
		n.diskFullRetrier()); err != nil {
		return err
	}
	x, err := n.snapshots.read()
	if err != nil {
		return err
	}
	if x == nil {
		x = &raftSnapshot{}
	}
	n.snapshots.index.Store(x.Index)
	n.logBytes.Store(x.LogBytes)
	n.logEntries.Store(x.LogEntries)
	first, err := n.wal.FirstIndex()
	if err != nil {
		return err
	}
	last, err := n.wal.LastIndex()
	if err != nil {
		return err
	}
	if last > 0 && last < x.Index {
		// An installed backup has replaced these entries, and the process ended before Raft deleted them.
		if err := n.wal.DeleteRange(first, last); err != nil {
			return err
		}
		first, last = 0, 0
	}
	applied := n.store.Load().Applied()
	if last > 0 && first > x.Index+1 || applied > max(last, x.Index, x.Contains) {
		return fmt.Errorf("the replicated log in %s has entries %d to %d, but the store has synced %d and contains "+
			"%d: entries are lost; %s", n.raftDir(), first, last, x.Index, applied, rejoinAdvice)
	}
	n.logs = newComparedLog(n.wal, n.reportCompared)
	return nil
}

// startRaft starts Raft on the open files.
func (n *Node) startRaft() (err error) {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.o.ID)
	c.HeartbeatTimeout, c.ElectionTimeout = n.o.ElectionTimeout, n.o.ElectionTimeout
	// Reads do not rely on the lease (see VerifyLeader), so a shorter lease would only depose leaders on busy hosts.
	c.LeaderLeaseTimeout = n.o.ElectionTimeout
	c.CommitTimeout, c.MaxAppendEntries, c.BatchApplyCh = commitTimeout, maxAppendEntries, true
	c.NoSnapshotRestoreOnStart = true                             // the store continues at its own index
	c.SnapshotInterval, c.SnapshotThreshold = 24*time.Hour, 1<<62 // see truncateLog
	c.TrailingLogs = keepAll
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.Logger = newLogger(n.log)
	if n.o.Links == nil {
		_, n.transport = raft.NewInmemTransport(raft.ServerAddress(n.o.Address))
	} else {
		n.transport = newRetryingTransport(n, raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: streamLayer{n.o.Links}, MaxPool: maxPooledLinks, Timeout: linkTimeout, Logger: c.Logger,
		}))
	}
	n.wal.leads = func() bool { return n.isStarted() && n.raft.State() == raft.Leader }
	if n.raft, err = raft.NewRaft(c, &stateMachine{n: n}, n.logs, n.wal, n.snapshots, n.transport); err != nil {
		return fmt.Errorf("start the replicated log: %w", err)
	}
	close(n.started)
	return nil
}

// isStarted reports whether Raft runs.
func (n *Node) isStarted() bool {
	select {
	case <-n.started:
		return true
	default: // also in Bootstrap and Dissolve, which do not start Raft
		return false
	}
}

// streamLayer is the raft.StreamLayer of a node: it opens connections with Links.
type streamLayer struct{ Links }

func (s streamLayer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return s.Links.Dial(string(to), timeout)
}

// setStore sets the store of the node. If the store fails, the node fails.
func (n *Node) setStore(s *snapshot.Store) {
	n.store.Store(s)
	go func() {
		select {
		case <-s.Failed():
			n.storeFailed(s.Err())
		case <-n.closing:
		}
	}()
}

// Disk returns the store with the types of package realm. The installation of a backup replaces the store: the methods
// of an earlier Disk then return snapshot.ErrClosed.
func (n *Node) Disk() snapshot.Disk { return snapshot.Disk{Store: n.store.Load()} }

// Failed returns a channel that is closed when the node has failed. Err then returns the reason.
func (n *Node) Failed() <-chan struct{} { return n.failed.done }

// Err returns the reason of a failure; nil without one.
func (n *Node) Err() error { return n.failed.get() }

// Close stops the node. Appends in progress get an error; they may have been stored.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		close(n.closing)
		n.closeErr = n.raft.Shutdown().Error()
		close(n.ended)
		if t, ok := n.transport.(raft.WithClose); ok {
			n.closeErr = errors.Join(n.closeErr, t.Close())
		}
		n.loops.Wait()
		n.closeErr = errors.Join(n.closeErr, n.releaseFiles(), n.failed.get())
	})
	return n.closeErr
}

// wait returns the error of a future of Raft. Raft never answers one that it has taken at the moment of its shutdown:
// then the error is raft.ErrRaftShutdown, and whether it took effect is unknown.
func (n *Node) wait(f raft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- f.Error() }()
	select {
	case err := <-answer:
		return err
	case <-n.ended:
	}
	select {
	case err := <-answer:
		return err
	default:
		return raft.ErrRaftShutdown
	}
}

// releaseFiles closes what Open has opened.
func (n *Node) releaseFiles() (err error) {
	switch {
	case n.logs != nil:
		err = n.logs.Close() // and the log below it
	case n.wal != nil:
		err = n.wal.Close()
	}
	if s := n.store.Load(); s != nil {
		err = errors.Join(err, s.Close())
	}
	if n.lock != nil {
		err = errors.Join(err, n.lock.Close())
	}
	return err
}

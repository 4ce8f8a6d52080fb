// Package snapshot is the disk of Parley: the journal of facts, the rows a snapshot keeps, and message bodies, in one
// Pebble store. It moves bytes and knows nothing of what they mean (snapshot/codec does).
//
// The contract:
//
//   - A realm is claimed before it is written. Claim raises the realm's epoch; an Append or Snapshot under an older
//     epoch, or one that does not follow the last number, is refused as a whole with ErrMoved.
//   - Append returns nil for an entry only when its facts and bodies are on stable storage.
//   - A write or sync that failed is final: the store is failed, every later write answers ErrFailed, nothing is tried
//     again (what a disk kept of a failed sync is unknowable). The process should end and recover by opening anew.
//   - Every journal record carries a checksum and the hash of the record before it, every row and body a checksum.
//     All are verified on every read; a mismatch is a *DamageError that names its place.
//   - A snapshot is visible whole or not at all, whatever the moment of a crash.
//   - Slices given to callbacks are only valid during the call.
//
// A data directory holds LOCK (one process at a time), store (Pebble's files) and watermark (what was durable at some
// moment, so that a store that lost its tail is noticed; see watermark.go).
package snapshot

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Seq is a fact's place in its realm's journal; the first fact is number 1.
type Seq = uint64

// RealmID names an organization. 0 is the process itself and cannot be claimed.
type RealmID = uint32

// Limits of the store. Those that suit a deployment differently are also in Options.
const (
	DefaultCache                   = 32 << 20  // bytes of uncompressed blocks; keeps an idle server under 60 MB
	DefaultMemTable                = 16 << 20  // bytes of a memtable, and of log to replay after a crash: 40 ms of its opening
	DefaultSnapshotBatch           = 256 << 10 // bytes of rows in one commit: two or three milliseconds in which appends wait
	DefaultDurabilityManifestBytes = 8 << 20   // bytes committed between two watermarks: a millisecond or two of the disk for each

	MaxFact    = 16 << 20  // bytes of one fact, row value or body: far above any message, far below a batch
	MaxKey     = 4 << 10   // bytes of a row's or body's key
	MaxRequest = 256       // bytes of a request id
	MaxEntry   = 64 << 20  // bytes of one entry, facts and bodies
	MaxBatch   = 128 << 20 // bytes of one commit; an Append of more entries than fit makes several

	openFiles = 500 // table files Pebble keeps open
)

var (
	// ErrMoved refuses an entry or snapshot whose epoch or number is not the realm's.
	ErrMoved = errors.New("the realm's journal has moved on")
	// ErrDuplicate refuses an entry whose request id is in the journal already; see DuplicateError.
	ErrDuplicate = errors.New("request is in the journal already")
	// ErrFailed answers every write after one has failed.
	ErrFailed = errors.New("the data directory cannot be written")
	// ErrTooLarge refuses what exceeds a limit of this package.
	ErrTooLarge = errors.New("too large for the journal")
	// ErrSnapshotted answers Tail from a number whose successor is no longer in the journal.
	ErrSnapshotted = errors.New("facts are in the rows already")
	// ErrInUse refuses to open a data directory that another process has open.
	ErrInUse = errors.New("data directory is in use by another parley")
	// ErrClosed answers calls after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrReadOnly answers writes to a store that was opened for inspection.
	ErrReadOnly = errors.New("the store is open for reading only")
)

// Options of a store. The zero value is right for a server.
type Options struct {
	FS  vfs.FS       // nil is the disk
	Log *slog.Logger // nil is silent

	Cache                   int64 // bytes; 0 is DefaultCache
	MemTable                int64 // bytes; 0 is DefaultMemTable
	SnapshotBatch           int   // bytes; 0 is DefaultSnapshotBatch
	DurabilityManifestBytes int64 // bytes; 0 is DefaultDurabilityManifestBytes

	// Calm is for how long after opening Pebble merges no tables: whoever opens a store has something better to do.
	CompactionDelay time.Duration

	// Unsynced answers for appends before they are on disk: a crash loses what was answered for. It is there to measure
	// what durability costs.
	Unsynced bool
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Cache == 0 {
		o.Cache = DefaultCache
	}
	if o.MemTable == 0 {
		o.MemTable = DefaultMemTable
	}
	if o.SnapshotBatch == 0 {
		o.SnapshotBatch = DefaultSnapshotBatch
	}
	if o.DurabilityManifestBytes == 0 {
		o.DurabilityManifestBytes = DefaultDurabilityManifestBytes
	}
	return o
}

// Store is an open data directory. Its methods may be called from any goroutine.
type Store struct {
	dir  string
	o    Options
	fs   vfs.FS
	db   *pebble.DB
	lock io.Closer
	mode
	rows         pebble.Reader // db, or for inspection an interrupted snapshot on top of it
	checkpointMu sync.Mutex

	// Commits go through one goroutine, so that one that Pebble never returns from (see fatalLogger) can be given up.
	commitQueue   chan *pebble.Batch
	commitResults chan error
	committing    bool

	failOnce    sync.Once
	failed      chan struct{} // closed when a write has failed
	failure     error         // set before failed is closed
	stopOnce    sync.Once
	stopped     chan struct{} // closed when Pebble has stopped a goroutine for good
	pebbleStuck atomic.Bool   // Pebble cannot be used, not even be closed

	// Everything that reads Pebble counts itself among the readers; Close waits for them.
	closeMu sync.Mutex
	closed  bool // under closing; set under mu as well, so either is enough to read it
	readers sync.WaitGroup

	mu      sync.Mutex // one writer at a time; held while a commit syncs
	realms  map[uint32]*realmState
	commits uint64 // number of the last commit, kept in every batch
	pending map[string]Seq
	hash    hasher

	logs               logFiles
	bytesSinceManifest int64      // bytes committed since the last watermark; under mu
	manifestMu         sync.Mutex // one watermark at a time; taken before mu

	latency      latency
	facts        atomic.Uint64
	writtenBytes atomic.Uint64
}

// realmState is what appending to a realm takes.
type realmState struct {
	id         uint32
	snapshotMu sync.Mutex // held by what reads or writes all rows, and by Claim; taken before Store.mu

	// under Store.mu
	epoch        uint64
	last         Seq
	lastHash     chain
	importSeq    Seq // the number rows are being planted at, else 0
	snapshot     snapshotState
	journalBytes int64 // bytes of records after the rows, as far as they were read or written by this process
	damage       error // found when opening; every use of the realm answers it
}

// Open opens or creates the data directory. It fails when another process has it open, when what is there is damaged
// beyond a single realm, or when it has lost what a watermark says was durable.
func Open(dir string, o Options) (*Store, error) {
	return open(dir, o, mode{})
}

// OpenReadOnly opens a data directory for inspection: nothing in it changes, and every write is refused. It too keeps
// other processes out.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	return open(dir, o, mode{readOnly: true})
}

type mode struct {
	readOnly bool
	onDamage func(error) error // if set, takes damage beside Pebble's store, and opening goes on if it returns nil
}

func open(dir string, o Options, m mode) (*Store, error) {
	o = o.withDefaults()
	dir, err := canonicalDir(o.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	s := &Store{
		dir: dir, o: o, fs: o.FS,
		commitQueue:   make(chan *pebble.Batch),
		commitResults: make(chan error),
		failed:        make(chan struct{}),
		stopped:       make(chan struct{}),
		realms:        map[uint32]*realmState{},
		pending:       map[string]Seq{},
		mode:          m,
	}
	if s.onDamage == nil {
		s.onDamage = func(err error) error { return err }
	}
	if err := s.open(); err != nil {
		if s.committing {
			close(s.commitQueue)
		}
		s.closeOverlay()
		s.release()
		s.unlock()
		return nil, err
	}
	return s, nil
}

// canonicalDir makes one name for one directory: locks within a process are by name.
func canonicalDir(fs vfs.FS, dir string) (string, error) {
	if fs != vfs.Default {
		return dir, nil
	}
	return filepath.Abs(dir)
}

func (s *Store) open() error {
	storeDir := s.storeDir()
	if !s.readOnly {
		if err := makeDir(s.fs, storeDir); err != nil {
			return fmt.Errorf("create data directory: %w", err)
		}
	}
	lock, err := s.fs.Lock(s.fs.PathJoin(s.dir, lockFile))
	if err != nil {
		if lockHeld(err) {
			return &inUseError{s.dir}
		}
		return fmt.Errorf("lock data directory: %w", err)
	}
	s.lock = lock

	mark, err := s.readDurabilityManifest()
	if err != nil {
		if err := s.onDamage(err); err != nil {
			return err
		}
	}
	if err := s.checkDurableFiles(mark); err != nil {
		if err := s.onDamage(err); err != nil {
			return err
		}
	}
	if !s.readOnly {
		s.removeSpare()
	}
	var db *pebble.DB
	returned, err := s.callPebble(func() (err error) {
		db, err = pebble.Open(storeDir, s.pebbleOptions())
		return err
	})
	if returned {
		s.db = db
	}
	if err != nil {
		return s.pebbleError("open data directory", err)
	}
	s.rows = db
	if err := s.load(); err != nil {
		return err
	}
	if err := s.checkDurablePositions(mark); err != nil {
		if err := s.onDamage(err); err != nil {
			return err
		}
	}
	if s.readOnly {
		return s.overlayStagedChunks()
	}
	for _, left := range []string{backupDir, checkpointDir} { // by a process that ended meanwhile; whoever makes one anew removes it first
		if err := s.fs.RemoveAll(s.fs.PathJoin(s.dir, left)); err != nil {
			s.o.Log.Warn("what is left of a backup or an upgrade takes up room and cannot be removed",
				"directory", s.fs.PathJoin(s.dir, left), "why", err)
		}
	}
	go s.committer()
	s.committing = true
	if err := s.finishSnapshots(); err != nil {
		return err
	}
	return s.writeDurabilityManifest()
}

// makeDir makes a directory and those above it, durably: what is synced into a directory is lost if the directory is.
func makeDir(fs vfs.FS, dir string) error {
	var above []string
	for d := dir; ; {
		_, err := fs.Stat(d)
		if err == nil {
			break
		}
		if !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		parent := fs.PathDir(d)
		if parent == d {
			break
		}
		above = append(above, parent)
		d = parent
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range above {
		if err := syncDir(fs, d); err != nil {
			return err
		}
	}
	return nil
}

const (
	lockFile = "LOCK"
	subDir   = "store"
)

func (s *Store) storeDir() string { return s.fs.PathJoin(s.dir, subDir) }

type inUseError struct{ dir string }

func (e *inUseError) Error() string {
	return "data directory " + e.dir + " is in use by another parley"
}
func (e *inUseError) Unwrap() error { return ErrInUse }

func lockHeld(err error) bool {
	var pathErr *iofs.PathError
	if errors.As(err, &pathErr) {
		return false // the lock file itself could not be made
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		err.Error() == "lock held by current process"
}

func (s *Store) pebbleOptions() *pebble.Options {
	stalled := func(i pebble.WriteStallBeginInfo) { s.o.Log.Warn("appends wait for the disk", "why", i.Reason) }
	o := &pebble.Options{
		FS:                          failStopFS{s.fs, s},
		Logger:                      fatalLogger{s},
		CacheSize:                   s.o.Cache,
		MemTableSize:                uint64(s.o.MemTable),
		MemTableStopWritesThreshold: 6, // one being written, five on their way to disk
		MaxOpenFiles:                openFiles,
		BytesPerSync:                512 << 10,
		WALBytesPerSync:             1 << 20, // staged snapshot rows are not synced one by one
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		ReadOnly:                    s.readOnly,
		ErrorIfNotExists:            s.readOnly,
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) { s.fail(s.pebbleError("write in the background", err)) },
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				s.o.Log.Error("data directory damaged", "file", i.Path, "why", i.Details)
			},
			WriteStallBegin: stalled,
		},
	}
	o.Experimental.FileCacheShards = 1
	if s.o.CompactionDelay > 0 {
		c := newCompactionScheduler(s.o.CompactionDelay)
		o.Experimental.CompactionScheduler = c
		o.EventListener.WriteStallBegin = func(i pebble.WriteStallBeginInfo) {
			stalled(i)
			c.endDelay()
		}
	}
	for i := range o.Levels {
		// A body or row is looked up by its whole key, often in a level that lacks it.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// Close writes everything out and releases the directory. After a failed write it writes nothing out, and answers the
// failure.
func (s *Store) Close() error {
	s.mu.Lock() // no commit is under way
	s.closeMu.Lock()
	closed := s.closed
	s.closed = true
	s.closeMu.Unlock()
	s.mu.Unlock()
	if closed {
		return nil
	}
	if s.committing {
		close(s.commitQueue)
	}
	if s.pebbleStuck.Load() {
		return s.Err()
	}
	s.readers.Wait()
	if err := s.closeOverlay(); err != nil {
		s.o.Log.Warn("close rows", "why", err)
	}
	if !s.readOnly && s.Err() == nil {
		// Flushed tables carry checksums and exact lengths, a log's tail does not: close leaves nothing in the log.
		if _, err := s.callPebble(s.db.Flush); err != nil {
			s.fail(fmt.Errorf("flush: %w", err))
		}
	}
	clean := s.release() && s.Err() == nil
	if clean && !s.readOnly {
		s.removeSpare()
		s.writeDurabilityManifest()
	}
	s.unlock()
	return s.Err()
}

// release closes Pebble, if that can be done: a stuck one may hold its own locks, and may have a last write under way.
func (s *Store) release() bool {
	if s.db == nil || s.pebbleStuck.Load() {
		return false
	}
	returned, err := s.callPebble(s.db.Close)
	if err != nil {
		s.fail(fmt.Errorf("close: %w", err))
	}
	if returned {
		s.db = nil
	}
	return returned
}

// unlock lets others open the directory. Not while Pebble may still write: then the end of the process does it.
func (s *Store) unlock() {
	if s.lock != nil && !s.pebbleStuck.Load() && s.db == nil {
		s.lock.Close()
		s.lock = nil
	}
}

// committer applies batches in order, synced, until Close.
func (s *Store) committer() {
	for b := range s.commitQueue {
		s.commitResults <- s.apply(b)
	}
}

func (s *Store) apply(b *pebble.Batch) (err error) {
	defer func() {
		// Pebble panics on a log that has failed before.
		if p := recover(); p != nil {
			s.pebbleStuck.Store(true)
			err = panicError(p)
		}
	}()
	if s.o.Unsynced {
		return s.db.Apply(b, pebble.NoSync)
	}
	return s.db.Apply(b, pebble.Sync)
}

// commit numbers the batch and writes it with a sync. s.mu is held. The batch is closed.
func (s *Store) commit(b *pebble.Batch) error {
	if err := s.usable(); err != nil {
		return err
	}
	s.commits++
	op := b.SetDeferred(len(commitsKey), numberLen)
	copy(op.Key, commitsKey)
	putNumber(op.Value, commitsKey, s.commits)
	op.Finish()
	size := int64(b.Len())

	start := time.Now()
	s.commitQueue <- b
	select {
	case err := <-s.commitResults:
		if err != nil {
			s.fail(err)
		}
	case <-s.stopped:
	}
	// A background write that failed meanwhile leaves this one in doubt.
	if err := s.Err(); err != nil {
		return err
	}
	s.latency.add(time.Since(start))
	s.writtenBytes.Add(uint64(size))
	b.Close()
	s.bytesSinceManifest += size
	s.writeDurabilityManifestLater()
	return nil
}

// isClosing reports whether Close has been called.
func (s *Store) isClosing() bool {
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	return s.closed
}

// acquireReader guards Pebble against being closed while it is acquireReader. Unless it fails, the caller ends with s.readers.Done.
func (s *Store) acquireReader() error {
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.readers.Add(1)
	return nil
}

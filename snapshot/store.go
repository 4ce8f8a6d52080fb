package snapshot

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

// The types that the store shares with the organizations.
type (
	// RealmID is the number of an organization. 0 is the process itself and cannot be claimed.
	RealmID = realm.ID
	// Seq is the number of a fact in its realm's journal. The first fact has number 1.
	Seq = realm.Seq
	// Claimed is the state of a realm when it was claimed.
	Claimed = realm.Claimed
	// Request is the id of a request that caused facts of an entry. An id is accepted only once.
	Request = realm.Request
	// Row is a row of a table. In a snapshot, a nil Value deletes the row.
	Row = realm.EncodedRow
)

// AnyEpoch is an epoch for Claim that every realm has.
const AnyEpoch = realm.AnyEpoch

// Limits of the store. Those that depend on the deployment can be changed in Options.
const (
	DefaultCache                   = 32 << 20  // bytes of uncompressed blocks; an idle server stays below 60 MB
	DefaultMemTable                = 16 << 20  // bytes of a memtable, and of log to replay after a crash, in 40 ms
	DefaultSnapshotBatch           = 256 << 10 // bytes of rows in one commit, which blocks appends for 2 to 3 ms
	DefaultDurabilityManifestBytes = 8 << 20   // bytes committed between two manifests, which take 1 to 2 ms each

	// DefaultMarkInterval is the time from a commit to the durability manifest that includes it. The loss of younger
	// commits cannot be detected. Each manifest takes two syncs of small files.
	DefaultMarkInterval = time.Second

	MaxFact    = 16 << 20           // bytes of one fact, row value or body; messages are far smaller
	MaxKey     = 4 << 10            // bytes of the key of a row or body
	MaxRequest = realm.MaxRequestID // bytes of a request id
	MaxEntry   = 64 << 20           // bytes of one entry, facts and bodies
	MaxBatch   = 128 << 20          // bytes of one commit; an Append with more makes several commits

	openFiles = 500 // table files that Pebble keeps open
)

var (
	// ErrMoved rejects an entry or snapshot with another epoch or number than the realm's.
	ErrMoved = realm.ErrMoved
	// ErrDuplicate rejects an entry whose request id is in the journal already; see DuplicateError.
	ErrDuplicate = errors.New("request is in the journal already")
	// ErrFailed is returned by every write after a write has failed.
	ErrFailed = errors.New("the data directory cannot be written")
	// ErrTooLarge rejects input that exceeds a limit of this package.
	ErrTooLarge = errors.New("too large for the journal")
	// ErrSnapshotted is returned by Tail if some of the facts are only in the rows.
	ErrSnapshotted = errors.New("facts are in the rows already")
	// ErrInUse is returned if another process has the data directory open.
	ErrInUse = errors.New("data directory is in use by another parley")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrReplicated rejects a journal write that is not in the log of the directory's cluster.
	ErrReplicated = errors.New("the data directory belongs to a cluster: send the change to its running servers")
	// ErrReadOnly is returned by writes to a store that was opened read-only.
	ErrReadOnly = errors.New("the store is open for reading only")
)

// Options of a store. The zero value is right for a server.
type Options struct {
	FS  vfs.FS       // nil: the operating system's
	Log *slog.Logger // nil: nothing is logged

	Cache                   int64 // bytes; 0: DefaultCache
	MemTable                int64 // bytes; 0: DefaultMemTable
	SnapshotBatch           int   // bytes; 0: DefaultSnapshotBatch
	DurabilityManifestBytes int64 // bytes; 0: DefaultDurabilityManifestBytes

	MarkInterval time.Duration // 0: DefaultMarkInterval; less than 0: no durability manifests by time

	Ballast int64  // bytes of the ballast that RestoreBallast makes; 0: none
	Full    func() // called when a write has found no space, unless nil; must not block

	// Damaged is called with each damage that a read finds, unless nil. While it blocks, the reader gets no error.
	Damaged func(*DamageError)

	// AcceptLoss opens a store whose journal ends before a durable position. The facts in between are lost.
	AcceptLoss bool

	// CompactionDelay is how long after opening no table is compacted, so that compactions do not slow the start.
	CompactionDelay time.Duration

	// Kept says which facts stay in the journal when the rows contain them. Zero: none.
	Kept Kept

	// Unsynced makes appends return before they are on disk. A crash then loses acknowledged facts. It is for measuring
	// the cost of durability.
	Unsynced bool

	paced bool // the files of a backup are unpacked by a PacedWriter
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
	if o.MarkInterval == 0 {
		o.MarkInterval = DefaultMarkInterval
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
	rows         pebble.Reader // db; in a read-only store with an interrupted snapshot, a batch over db
	checkpointMu sync.Mutex
	held         atomic.Bool // the files of HoldBackup are not released

	// One goroutine commits, so that Close can return even if a commit blocks for ever (see fatalLogger).
	commitQueue   chan queuedBatch
	commitResults chan error
	committing    bool

	failOnce    sync.Once
	failed      chan struct{} // closed when a write has failed
	failure     error         // set before failed is closed
	stopOnce    sync.Once
	stopped     chan struct{} // closed when a goroutine of Pebble is blocked for ever
	pebbleStuck atomic.Bool   // Pebble cannot be used any more, nor closed

	// Everything that reads Pebble is counted in readers; Close waits for them.
	closeMu     sync.Mutex
	closed      bool          // under closeMu; written also under mu, so either lock is enough to read it
	closing     chan struct{} // closed by Close
	closingOnce sync.Once
	readers     sync.WaitGroup

	mu      sync.Mutex // held by the writer, while a commit syncs
	realms  map[RealmID]*realmState
	commits uint64 // number of the last commit; part of every batch
	applied uint64 // index of the last entry of a replicated log; see applied.go
	// replicated says that commits are not synced, because they are in a replicated log.
	replicated bool
	owned      uint64         // epoch of the newest leadership of a cluster; see applied_own.go
	pending    map[string]Seq // request keys of the current Append; under mu
	hash       hasher

	full      atomic.Bool // see space.go
	opened    atomic.Bool // set at the end of opening
	ballastMu sync.Mutex

	logs               logFiles
	bytesSinceManifest int64         // bytes committed since the last durability manifest; under mu
	manifestMu         sync.Mutex    // held while a durability manifest is written; taken before mu
	manifestCalls      atomic.Uint64 // of writeDurabilityManifest
	manifestAnswered   uint64        // the last of them that a manifest has answered; under manifestMu
	manifestFiles      []durableFile // of the last manifest; under manifestMu
	manifestCommits    atomic.Uint64 // commits that the last manifest includes
	unsyncedRows       atomic.Bool   // rows were written that no sync has included

	feeds feeds // see Disk.Follow

	latency      latency
	facts        atomic.Uint64
	writtenBytes atomic.Uint64
}

// realmState is the state of a realm that writes need.
type realmState struct {
	id         RealmID
	snapshotMu sync.Mutex // held by everything that reads or writes all rows, and by Claim; taken before Store.mu

	// under Store.mu
	epoch        uint64
	last         Seq
	lastHash     chain
	importSeq    Seq    // the number of a running import, else 0
	importChunks uint32 // of rows that an import through a replicated log has staged
	snapshot     snapshotState
	lastNow      int64       // clock reading of the last fact
	journalBytes int64       // bytes of records after the rows, as far as this process has read or written them
	firstKept    Seq         // number of the first record in the journal; last + 1 if there is none
	kept         []keptFacts // of the records behind the rows, by number
	damage       error       // found when opening; every use of the realm returns it
}

// Open opens or creates the data directory. It fails if another process has it open, if more than single realms are
// damaged, or if it contains less than its durability manifest.
func Open(dir string, o Options) (*Store, error) {
	return open(dir, o, mode{})
}

// OpenReadOnly opens a data directory for inspection. Nothing in it changes, and every write is rejected. Other
// processes cannot open it meanwhile.
func OpenReadOnly(dir string, o Options) (*Store, error) {
	return open(dir, o, mode{readOnly: true})
}

type mode struct {
	readOnly bool
	onDamage func(error) error // if set, called with damage outside Pebble; opening continues if it returns nil
}

func open(dir string, o Options, m mode) (*Store, error) {
	o = o.withDefaults()
	dir, err := canonicalDir(o.FS, dir)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	s := &Store{
		feeds: feeds{readers: make(chan struct{}, maxJournalReaders)},
		dir:   dir, o: o, fs: o.FS,
		commitQueue:   make(chan queuedBatch),
		commitResults: make(chan error),
		failed:        make(chan struct{}),
		stopped:       make(chan struct{}),
		closing:       make(chan struct{}),
		realms:        map[RealmID]*realmState{},
		pending:       map[string]Seq{},
		mode:          m,
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

// canonicalDir returns one name for a directory, because locks within a process are by name.
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
		if err := s.damage(err); err != nil {
			return err
		}
	}
	if err := s.checkDurableFiles(mark); err != nil {
		if err := s.tolerateLoss(err); err != nil {
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
	if err := s.reportLosses(s.checkDurablePositions(mark)); err != nil {
		return err
	}
	if s.readOnly {
		return s.overlayStagedChunks()
	}
	// Of a process that crashed.
	for _, name := range []string{backupDir, heldDir, checkpointDir, ballastFile + ".new"} {
		if err := s.fs.RemoveAll(s.fs.PathJoin(s.dir, name)); err != nil {
			s.o.Log.Warn("remains of a backup or upgrade not removed",
				"directory", s.fs.PathJoin(s.dir, name), "err", err)
		}
	}
	go s.committer()
	s.committing = true
	if err := s.finishSnapshots(); err != nil {
		return err
	}
	if mark != nil && mark.at != 0 && !mark.closed {
		s.o.Log.Info("the data directory was not closed; a loss of data from its last second cannot be detected",
			"dir", s.dir, "last_mark", time.UnixMilli(mark.at).UTC().Format(time.RFC3339Nano))
	}
	if err := s.writeDurabilityManifest(); err != nil {
		return err
	}
	s.opened.Store(true)
	if s.o.MarkInterval > 0 && !s.o.Unsynced {
		go s.markDurable(s.o.MarkInterval)
	}
	return nil
}

// reportLosses returns an error that names every loss, or reports each to a check.
func (s *Store) reportLosses(losses []string) error {
	if len(losses) == 0 {
		return nil
	}
	if !s.readOnly || s.onDamage == nil {
		return s.tolerateLoss(s.damagedFile(subDir, strings.Join(losses, "; ")))
	}
	for _, why := range losses {
		if err := s.damage(s.damagedFile(subDir, why)); err != nil {
			return err
		}
	}
	return nil
}

// tolerateLoss returns an error about lost data unless the operator accepts the loss.
func (s *Store) tolerateLoss(err error) error {
	if !s.o.AcceptLoss {
		return s.damage(err)
	}
	s.o.Log.Error("the loss of data is accepted", "err", err)
	return nil
}

// damage passes damage outside Pebble to a check, or returns it.
func (s *Store) damage(err error) error {
	if s.onDamage == nil {
		return err
	}
	return s.onDamage(err)
}

// makeDir makes a directory and its parents, durably. A file is lost with its directory, even if the file is synced.
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

// Exists reports whether a data directory has a store.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, subDir))
	return err == nil
}

func (s *Store) storeDir() string { return s.fs.PathJoin(s.dir, subDir) }

type inUseError struct{ dir string }

func (e *inUseError) Error() string {
	return "data directory " + e.dir + " is in use by another parley"
}
func (e *inUseError) Unwrap() error { return ErrInUse }

func lockHeld(err error) bool {
	var pathErr *iofs.PathError
	if errors.As(err, &pathErr) {
		return false // the lock file could not be made
	}
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		err.Error() == "lock held by current process"
}

func (s *Store) pebbleOptions() *pebble.Options {
	stalled := func(i pebble.WriteStallBeginInfo) { s.o.Log.Warn("appends blocked by Pebble", "reason", i.Reason) }
	o := &pebble.Options{
		FS:                          failStopFS{s.fs, s},
		Logger:                      fatalLogger{s},
		CacheSize:                   s.o.Cache,
		MemTableSize:                uint64(s.o.MemTable),
		MemTableStopWritesThreshold: 6, // one being written and five being flushed
		MaxOpenFiles:                openFiles,
		BytesPerSync:                512 << 10,
		WALBytesPerSync:             1 << 20, // staged snapshot rows are not synced one by one
		FormatMajorVersion:          pebble.FormatTableFormatV6,
		ReadOnly:                    s.readOnly,
		ErrorIfNotExists:            s.readOnly,
		EventListener: &pebble.EventListener{
			BackgroundError: func(err error) {
				if !IsFull(err) || !s.opened.Load() { // else Pebble tries again
					// Not pebbleError: Options.Damaged may block, and Pebble's locks are held.
					s.fail(s.wrapPebble("write in the background", err))
				}
			},
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				s.o.Log.Error("data directory damaged", "file", i.Path, "err", i.Details.Error())
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
		// A body or row is looked up by its whole key, often in levels that do not have it.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// Close flushes everything and releases the directory. After a failed write it flushes nothing and returns the failure.
func (s *Store) Close() error {
	s.closingOnce.Do(func() { close(s.closing) }) // first: a commit may wait for space
	s.mu.Lock()                                   // no commit is running
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
		s.o.Log.Warn("overlay of staged rows not closed", "err", err)
	}
	if !s.readOnly && s.Err() == nil && !s.full.Load() {
		// Flushed tables have checksums and exact lengths, the end of a log does not. So Close leaves nothing in the
		// log.
		if err := s.flushUnlessFull(); err != nil {
			s.fail(fmt.Errorf("flush: %w", err))
		}
	}
	clean := s.release() && s.Err() == nil
	if clean && !s.readOnly {
		s.removeSpare()
		s.replaceDurabilityManifest(s.durableFiles, true)
	}
	s.unlock()
	return s.Err()
}

// flushUnlessFull writes the memtables to tables, or gives up when there is no space for them.
func (s *Store) flushUnlessFull() error {
	result := make(chan error, 1)
	go func() {
		_, err := s.callPebble(s.db.Flush)
		result <- err
	}()
	for {
		select {
		case err := <-result:
			return err
		case <-time.After(spacePoll):
			if s.full.Load() {
				return nil
			}
		}
	}
}

// release closes Pebble unless it is stuck: then it may hold its own locks and may still write.
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

// unlock lets other processes open the directory, unless Pebble may still write. Then the end of the process unlocks
// it.
func (s *Store) unlock() {
	if s.lock != nil && !s.pebbleStuck.Load() && s.db == nil {
		s.lock.Close()
		s.lock = nil
	}
}

// queuedBatch is a batch on its way to the committer.
type queuedBatch struct {
	batch  *pebble.Batch
	synced bool
}

// committer applies batches in order until Close.
func (s *Store) committer() {
	for b := range s.commitQueue {
		s.commitResults <- s.apply(b)
	}
}

func (s *Store) apply(b queuedBatch) (err error) {
	defer func() {
		// Pebble panics if its log has failed before.
		if p := recover(); p != nil {
			s.pebbleStuck.Store(true)
			err = panicError(p)
		}
	}()
	if s.o.Unsynced || !b.synced {
		return s.db.Apply(b.batch, pebble.NoSync)
	}
	return s.db.Apply(b.batch, pebble.Sync)
}

// commit numbers the batch and writes it with a sync. It closes the batch. s.mu is held.
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
	if err := s.applyInOrder(queuedBatch{b, true}); err != nil {
		return err
	}
	s.latency.add(time.Since(start))
	s.writtenBytes.Add(uint64(size))
	b.Close()
	s.bytesSinceManifest += size
	s.writeDurabilityManifestLater()
	return nil
}

// applyInOrder passes a batch to the committer and waits until it is applied. s.mu is held.
func (s *Store) applyInOrder(b queuedBatch) error {
	s.commitQueue <- b
	select {
	case err := <-s.commitResults:
		if err != nil {
			s.fail(err)
		}
	case <-s.stopped:
	}
	// If a background write failed meanwhile, this one may not be durable.
	return s.Err()
}

// isClosing reports whether Close was called.
func (s *Store) isClosing() bool {
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	return s.closed
}

// acquireReader keeps Pebble open while the caller reads it. Unless it returns an error, the caller calls
// s.readers.Done at the end.
func (s *Store) acquireReader() error {
	s.closeMu.Lock()
	defer s.closeMu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.readers.Add(1)
	return nil
}

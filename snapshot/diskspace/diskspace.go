package diskspace

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"parley/snapshot"
)

// Watcher watches the free space of a file system.
type Watcher struct {
	dir          string
	log          *slog.Logger
	refused      error
	minFree      int64 // bytes
	minPercent   int64
	readOnlyFree int64 // bytes
	measure      func(dir string) (free, total int64, err error)

	// Set by start.
	store         *snapshot.Store
	organizations atomic.Pointer[Organizations]

	free, total  atomic.Int64
	refusedFiles atomic.Int64
	readOnly     atomic.Bool
	failing      bool          // measuring has failed, which is logged
	wake         chan struct{} // a write of the store has found no space
	stop, done   chan struct{}
}

const (
	// Interval is the time between two checks of the free space. A fast disk is filled by some 1 GB in that time,
	// so the store also needs its ballast.
	Interval = time.Second
	// spaceMargin is the part of disk-read-only that must be free in addition before changes are allowed again, so that
	// the state does not change all the time.
	spaceMargin = 4
)

// Settings are the settings of the free space.
type Settings struct {
	DiskMinFree        int // MiB
	DiskMinFreePercent int
	DiskReadOnly       int // MiB
	DiskBallast        int // MiB; see snapshot.Options.Ballast
}

// Organizations refuse every change while they are read-only.
type Organizations interface{ SetReadOnly(bool) }

// New returns a watcher of the file system that has the directory dir. Start begins the checks. refused is the error of
// a file that must not be stored.
func New(dir string, c Settings, refused error, log *slog.Logger) *Watcher {
	return &Watcher{
		dir: dir, log: log, refused: refused, measure: freeSpace,
		minFree: int64(c.DiskMinFree) << 20, minPercent: int64(c.DiskMinFreePercent),
		readOnlyFree: int64(c.DiskReadOnly) << 20,
		wake:         make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// freeSpace returns how many bytes of a directory's file system a process without privileges can still use, and how
// many bytes it has.
func freeSpace(dir string) (free, total int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}

// Full is called by the store when a write has found no space. It does not block.
func (d *Watcher) Full() {
	d.setReadOnly(true)
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Start checks the space once, and then every Interval until Close.
func (d *Watcher) Start(store *snapshot.Store, orgs Organizations) {
	d.store = store
	d.organizations.Store(&orgs)
	d.check()
	go d.run()
}

// setReadOnly lets the organizations refuse changes, or allow them. There are none before Start.
func (d *Watcher) setReadOnly(on bool) {
	if orgs := d.organizations.Load(); orgs != nil {
		(*orgs).SetReadOnly(on)
	}
}

// Close ends the checks.
func (d *Watcher) Close() {
	if d.store == nil { // not started
		return
	}
	close(d.stop)
	<-d.done
}

func (d *Watcher) run() {
	defer close(d.done)
	t := time.NewTicker(Interval)
	defer t.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-d.wake:
		case <-t.C:
		}
		d.check()
	}
}

// check measures the space and changes the state if needed.
func (d *Watcher) check() {
	free, total, err := d.measure(d.dir)
	if err != nil {
		if !d.failing {
			d.log.Error("measuring the free space failed", "err", err)
		}
		d.failing = true
		return
	}
	d.failing = false
	d.free.Store(free)
	d.total.Store(total)
	missing := d.store.MissingBallast()
	switch {
	case !d.readOnly.Load() && (free < d.readOnlyFree || d.store.Full()):
		d.readOnly.Store(true)
		d.setReadOnly(true)
		d.log.Error("the disk is full: every change is refused until there is space", "dir", d.dir, "free_bytes", free,
			"disk_read_only_bytes", d.readOnlyFree)
	case d.readOnly.Load() && free < d.readOnlyFree+d.readOnlyFree/spaceMargin+missing:
		d.setReadOnly(true)
	case d.readOnly.Load():
		if err := d.store.RestoreBallast(); err != nil {
			d.log.Warn("there is space again, but not for the ballast", "err", err)
			return
		}
		d.readOnly.Store(false)
		d.setReadOnly(false)
		d.log.Info("there is space again: changes are allowed", "dir", d.dir, "free_bytes", free)
	case missing > 0 && free >= d.readOnlyFree+missing: // at the first start
		if err := d.store.RestoreBallast(); err != nil {
			d.log.Warn("making the ballast failed", "err", err)
		}
	}
}

// minFreeBytes returns the free bytes below which no files are stored.
func (d *Watcher) minFreeBytes(total int64) int64 {
	return max(d.minFree, total/100*d.minPercent, d.readOnlyFree)
}

// CheckSpace returns the error refused of New if a file of so many bytes must not be stored.
func (d *Watcher) CheckSpace(bytes int64) error {
	free, total, err := d.measure(d.dir)
	if err != nil {
		return nil // the write itself returns the error
	}
	if d.readOnly.Load() || free-bytes < d.minFreeBytes(total) {
		d.refusedFiles.Add(1)
		return d.refused
	}
	return nil
}

// IsLow reports whether no files are stored now.
func (d *Watcher) IsLow() bool {
	return d.IsReadOnly() || d.free.Load() < d.minFreeBytes(d.total.Load())
}

// IsReadOnly reports whether every change is refused now.
func (d *Watcher) IsReadOnly() bool { return d.readOnly.Load() }

// State returns the state for the health check; "" is normal.
func (d *Watcher) State() string {
	switch {
	case d.IsReadOnly():
		return "full: every change is refused"
	case d.IsLow():
		return "almost full: files are refused"
	}
	return ""
}

// Free returns the free bytes of the file system at the last check.
func (d *Watcher) Free() int64 { return d.free.Load() }

// RefusedFiles returns how many files were not stored because of the space.
func (d *Watcher) RefusedFiles() int64 { return d.refusedFiles.Load() }

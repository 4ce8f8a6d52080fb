package server

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"parley/actors"
	"parley/snapshot"
	"parley/wire"
)

// diskSpace watches the free space of the file system that has the data directory, and protects the journal from
// running out of it. It has three states:
//
//	normal      everything is stored
//	almost full no files are stored: uploads, pictures, thumbnails, exports, new search indexes, copies for backups.
//	            Messages are. It begins below disk-min-free or disk-min-free-percent.
//	read-only   nothing is stored: every change is refused with status 507, or 503 by a core of several, because
//	            another one can take over. Polls and reads continue. It begins below disk-read-only, or when a write
//	            of the store has found no space; the store's ballast lets the writes in progress finish.
//
// Each state ends by itself when there is space again.
type diskSpace struct {
	dir          string
	log          *slog.Logger
	minFree      int64 // bytes
	minPercent   int64
	readOnlyFree int64 // bytes
	measure      func(dir string) (free, total int64, err error)

	// Set by start.
	store *snapshot.Store
	orgs  atomic.Pointer[actors.Server]

	free, total  atomic.Int64
	refusedFiles atomic.Int64
	readOnly     atomic.Bool
	failing      bool          // measuring has failed, which is logged
	wake         chan struct{} // a write of the store has found no space
	stop, done   chan struct{}
}

const (
	// spaceInterval is the time between two checks of the free space. A fast disk is filled by some 1 GB in that time,
	// so the store also needs its ballast.
	spaceInterval = time.Second
	// spaceMargin is the part of disk-read-only that must be free in addition before changes are allowed again, so that
	// the state does not change all the time.
	spaceMargin = 4
	mebibyte    = 1 << 20
)

func newDiskSpace(c *Settings, log *slog.Logger) *diskSpace {
	return &diskSpace{
		dir: c.Data, log: log, measure: freeSpace,
		minFree: int64(c.DiskMinFree) * mebibyte, minPercent: int64(c.DiskMinFreePercent),
		readOnlyFree: int64(c.DiskReadOnly) * mebibyte,
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

// full is called by the store when a write has found no space. It does not block.
func (d *diskSpace) full() {
	if orgs := d.orgs.Load(); orgs != nil {
		orgs.SetReadOnly(true)
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// start checks the space once, and then every spaceInterval until close.
func (d *diskSpace) start(store *snapshot.Store, orgs *actors.Server) {
	d.store = store
	d.orgs.Store(orgs)
	d.check()
	go d.run()
}

// close ends the checks.
func (d *diskSpace) close() {
	if d.store == nil { // not started
		return
	}
	close(d.stop)
	<-d.done
}

func (d *diskSpace) run() {
	defer close(d.done)
	t := time.NewTicker(spaceInterval)
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
func (d *diskSpace) check() {
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
		d.orgs.Load().SetReadOnly(true)
		d.log.Error("the disk is full: every change is refused until there is space", "dir", d.dir, "free_bytes", free,
			"disk_read_only_bytes", d.readOnlyFree)
	case d.readOnly.Load() && free < d.readOnlyFree+d.readOnlyFree/spaceMargin+missing:
		d.orgs.Load().SetReadOnly(true)
	case d.readOnly.Load():
		if err := d.store.RestoreBallast(); err != nil {
			d.log.Warn("there is space again, but not for the ballast", "err", err)
			return
		}
		d.readOnly.Store(false)
		d.orgs.Load().SetReadOnly(false)
		d.log.Info("there is space again: changes are allowed", "dir", d.dir, "free_bytes", free)
	case missing > 0 && free >= d.readOnlyFree+missing: // at the first start
		if err := d.store.RestoreBallast(); err != nil {
			d.log.Warn("making the ballast failed", "err", err)
		}
	}
}

// minFreeBytes returns the free bytes below which no files are stored.
func (d *diskSpace) minFreeBytes(total int64) int64 {
	return max(d.minFree, total/100*d.minPercent, d.readOnlyFree)
}

// checkSpace returns wire.ErrNoSpace if a file of so many bytes must not be stored.
func (d *diskSpace) checkSpace(bytes int64) error {
	free, total, err := d.measure(d.dir)
	if err != nil {
		return nil // the write itself returns the error
	}
	if d.readOnly.Load() || free-bytes < d.minFreeBytes(total) {
		d.refusedFiles.Add(1)
		return wire.ErrNoSpace
	}
	return nil
}

// isLow reports whether no files are stored now.
func (d *diskSpace) isLow() bool {
	return d.isReadOnly() || d.free.Load() < d.minFreeBytes(d.total.Load())
}

func (d *diskSpace) isReadOnly() bool { return d.readOnly.Load() }

// state returns the state for the health check; "" is normal.
func (d *diskSpace) state() string {
	switch {
	case d.isReadOnly():
		return "full: every change is refused"
	case d.isLow():
		return "almost full: files are refused"
	}
	return ""
}

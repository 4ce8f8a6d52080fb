package snapshot

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A full disk is not a failed one: a write that found no space has changed nothing and can be tried again. The store
// continues as follows.
//
//   - The data directory contains a ballast: a file whose only purpose is its space. The first write to a log or to
//     Pebble's metadata that finds no space removes it and is tried again. So an append in progress finishes. If the
//     ballast is gone already, the write waits for space.
//   - A table (a flush or a compaction) does not use the ballast. Pebble removes the part that was written and tries
//     again later.
//   - The store is full from then on, and Options.Full is called. The caller then sends no appends; those in progress
//     finish. A snapshot waits between two batches.
//   - RestoreBallast ends it when there is space again: it makes the ballast first.
//
// A sync that fails is final even if the reason is a full disk, because it is unknown what the disk has.
const ballastFile = "ballast"

const (
	// spacePoll is the time between two attempts of a write that waits for space.
	spacePoll = 100 * time.Millisecond
	// tablePause is how long a failed table waits, so that Pebble does not try again all the time.
	tablePause = 500 * time.Millisecond
	// closingPause is the same while Close waits for Pebble, which then tries no more.
	closingPause = 10 * time.Millisecond
	// openTries is how often a write is tried again while the store is being opened. Some file systems need a moment to
	// release the space of the ballast.
	openTries = 20
	// ballastPiece is how many bytes of the ballast are written at once.
	ballastPiece = 1 << 20
)

// ErrFull is the reason of a start that found no space.
var ErrFull = errors.New("the disk is full")

// IsFull reports whether an error says that the disk, or the quota of the process, is full.
func IsFull(err error) bool { return vfs.IsNoSpaceError(err) || errors.Is(err, syscall.EDQUOT) }

// Full reports whether a write has found no space since the last RestoreBallast.
func (s *Store) Full() bool { return s.full.Load() }

// becomeFull notes that a write has found no space.
func (s *Store) becomeFull() {
	if s.full.Swap(true) {
		return
	}
	s.o.Log.Warn("no space is left for the data directory", "dir", s.dir)
	if s.o.Full != nil {
		s.o.Full()
	}
}

// untilSpace makes a change of the file system again until there is space for it. It returns other errors, and that of
// a full disk if the store is being opened or closed.
func (s *Store) untilSpace(change func() error) error {
	for tries := 1; ; tries++ {
		err := change()
		if err == nil || !IsFull(err) {
			return err
		}
		s.becomeFull()
		if s.releaseBallast() {
			continue
		}
		if !s.opened.Load() && tries > openTries {
			return err
		}
		select {
		case <-s.closing:
			return err
		case <-s.failed:
			return err
		case <-time.After(spacePoll):
		}
	}
}

// tableError returns the error of writing a table to Pebble, which removes the table and tries again. Other errors than
// that of a full disk are final.
func (fs failStopFS) tableError(doing, name string, err error) error {
	if err == nil || !IsFull(err) {
		return fs.stopOnError(doing, name, err)
	}
	fs.s.becomeFull()
	select {
	case <-fs.s.closing:
		time.Sleep(closingPause)
	case <-time.After(tablePause):
	}
	return err
}

// writeTable makes a change of a table once. It makes no change while the store is full: the space that is left is for
// writes in progress.
func (fs failStopFS) writeTable(doing, name string, change func() error) error {
	if fs.s.full.Load() {
		return fs.tableError(doing, name, syscall.ENOSPC)
	}
	return fs.tableError(doing, name, change())
}

// ReleaseBallast is for a write of another part of the data directory that has found no space: it makes the store full
// and removes the ballast. It reports whether there was one, so that the write can be tried again at once.
func (s *Store) ReleaseBallast() bool {
	s.becomeFull()
	return s.releaseBallast()
}

// HasSpace reports whether a write would find space: the store is not full, or the ballast exists.
func (s *Store) HasSpace() bool {
	if !s.full.Load() {
		return true
	}
	s.ballastMu.Lock()
	defer s.ballastMu.Unlock()
	_, err := s.fs.Stat(s.ballastPath())
	return err == nil
}

// releaseBallast removes the ballast and reports whether there was one.
func (s *Store) releaseBallast() bool {
	s.ballastMu.Lock()
	defer s.ballastMu.Unlock()
	if _, err := s.fs.Stat(s.ballastPath()); errors.Is(err, iofs.ErrNotExist) {
		return false
	}
	if err := s.fs.Remove(s.ballastPath()); err != nil {
		s.o.Log.Error("removing the ballast failed", "file", s.ballastPath(), "err", err)
		return false
	}
	s.o.Log.Warn("ballast removed, so that writes in progress can finish", "file", s.ballastPath())
	return true
}

func (s *Store) ballastPath() string { return s.fs.PathJoin(s.dir, ballastFile) }

// MissingBallast returns how many bytes RestoreBallast needs for the ballast.
func (s *Store) MissingBallast() int64 {
	s.ballastMu.Lock()
	defer s.ballastMu.Unlock()
	return s.missingBallast()
}

func (s *Store) missingBallast() int64 {
	if _, err := s.fs.Stat(s.ballastPath()); err == nil {
		return 0
	}
	return s.o.Ballast
}

// RestoreBallast makes the ballast if it does not exist. After that the store is not full. Without enough space
// it returns an error and changes nothing.
func (s *Store) RestoreBallast() error {
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	s.ballastMu.Lock()
	defer s.ballastMu.Unlock()
	if size := s.missingBallast(); size > 0 && !s.readOnly {
		if err := s.makeBallast(size); err != nil {
			return fmt.Errorf("make ballast: %w", err)
		}
	}
	s.full.Store(false)
	return nil
}

// makeBallast makes the ballast. The file gets its name when it is complete.
func (s *Store) makeBallast(size int64) (err error) {
	path := s.ballastPath()
	f, err := s.fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = f.Preallocate(0, size); err != nil || allocated(f) < size {
		err = fillBallast(f, size)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.fs.Rename(path+".new", path)
	}
	if err != nil {
		s.fs.Remove(path + ".new")
	}
	return err
}

// allocated returns the space that a file takes on the disk; 0 if that is unknown.
func allocated(f vfs.File) int64 {
	const block = 512 // the unit of st_blocks
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	if x, ok := info.Sys().(*syscall.Stat_t); ok {
		return x.Blocks * block
	}
	return 0
}

// fillBallast writes random bytes, which no file system can compress.
func fillBallast(f vfs.File, size int64) error {
	random := rand.NewChaCha8([32]byte{})
	piece := make([]byte, ballastPiece)
	for ; size > 0; size -= int64(len(piece)) {
		piece = piece[:min(size, ballastPiece)]
		random.Read(piece)
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return f.Sync()
}

// waitForSpace blocks a snapshot while the store is full.
func (s *Store) waitForSpace() error {
	for s.full.Load() && s.opened.Load() {
		select {
		case <-s.closing:
			return ErrClosed
		case <-s.failed:
			return s.Err()
		case <-time.After(spacePoll):
		}
	}
	return nil
}

package snapshot

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A sync of a file that grows, or that is written where it never was, waits for the file system's own journal, which
// waits for what other files write meanwhile. So a log is written over zeros that are on the disk already: the spare,
// made of the log before last while the last is written. On ext4 that took a third off every sync, and more off the slow
// ones.
//
// Nobody sees the zeros behind what is written: who opens a log of this process reads what was written when he opened it.
// A copy would else have the zeros of one place and the record of a later place, which reads as damage. And a spare is
// zeros from beginning to end before it becomes a log, so that no text that was deleted long ago stays.
const (
	spareFile = "spare" // in the store's directory
	// A spare is written in small pieces, and then there is a pause: the log is synced meanwhile.
	sparePiece = 128 << 10
	sparePause = 2 * time.Millisecond
)

// logFiles are the logFiles this process has written.
type logFiles struct {
	mu      sync.Mutex
	written map[string]*atomic.Int64 // bytes of each
	spare   spareState
}

type spareState int

const (
	noSpare      spareState = iota
	writingSpare            // it is being written
	spareReady
	spareFailed // it cannot be written; logs do without
)

func (fs failStopFS) sparePath() string { return fs.PathJoin(fs.s.storeDir(), spareFile) }

// isStoreLog reports whether a name is that of a log of the store, and not of a copy.
func (fs failStopFS) isStoreLog(name string) bool {
	return isLog(name) && fs.PathDir(name) == fs.s.storeDir()
}

// createLog makes a log of the spare, if there is one.
func (fs failStopFS) createLog(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	l := &fs.s.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = map[string]*atomic.Int64{}
	}
	written := new(atomic.Int64)
	l.written[name] = written
	var f vfs.File
	var err error
	if l.spare == spareReady {
		l.spare = noSpare
		if err = fs.FS.Rename(fs.sparePath(), name); err == nil {
			f, err = fs.FS.OpenReadWrite(name, c)
		}
	} else {
		f, err = fs.FS.Create(name, c)
	}
	if f, err = fs.file("create", name, f, err); err != nil {
		return nil, err
	}
	return &logFile{File: f, fs: fs, written: written}, nil
}

// recycleLog makes what is to be the next spare of a log that Pebble has no more use for, or removes it.
func (fs failStopFS) recycleLog(name string) error {
	l := &fs.s.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.written, name)
	if l.spare == noSpare {
		return fs.FS.Rename(name, fs.sparePath())
	}
	return fs.FS.Remove(name)
}

// Remove forgets a log that goes.
func (fs failStopFS) Remove(name string) error {
	fs.s.logs.mu.Lock()
	delete(fs.s.logs.written, name)
	fs.s.logs.mu.Unlock()
	return fs.FS.Remove(name)
}

// startSpare begins to write a spare, unless there is one.
func (fs failStopFS) startSpare() {
	l := &fs.s.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare != noSpare || fs.s.acquireReader() != nil {
		return
	}
	l.spare = writingSpare
	go func() {
		defer fs.s.readers.Done()
		err := fs.writeSpare()
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.spare = spareReady; err != nil {
			l.spare = spareFailed
			if !errors.Is(err, ErrClosed) {
				fs.s.o.Log.Warn("logs will be written without a spare", "why", err)
			}
		}
	}()
}

// writeSpare fills the spare with zeros.
func (fs failStopFS) writeSpare() (err error) {
	f, err := fs.FS.OpenReadWrite(fs.sparePath(), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
	}()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := max(fs.s.o.MemTable*11/10, info.Size()) // a memtable's log and some: what Pebble would set aside
	zeros := make([]byte, sparePiece)
	for at := int64(0); at < size; at += sparePiece {
		if fs.s.isClosing() || fs.s.Err() != nil {
			return ErrClosed
		}
		clear(zeros) // a vfs.File may spoil what it is given to write
		if _, err := f.Write(zeros); err != nil {
			return fmt.Errorf("write %s: %w", fs.sparePath(), err)
		}
		if _, err := f.SyncTo(at + sparePiece); err != nil {
			return fmt.Errorf("sync %s: %w", fs.sparePath(), err)
		}
		time.Sleep(sparePause)
	}
	return f.Sync()
}

// removeSpare removes what this process, or one before it, left. What cannot be removed is written over first, too.
func (s *Store) removeSpare() {
	path := s.fs.PathJoin(s.storeDir(), spareFile)
	if err := s.fs.Remove(path); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		s.o.Log.Warn("what is left of a log takes up room and cannot be removed", "file", path, "why", err)
	}
}

// logFile is a log that is written.
type logFile struct {
	vfs.File
	fs      failStopFS
	written *atomic.Int64
}

func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	// A small store has small logs, and few: it goes without a spare.
	if before, early := f.written.Add(int64(n))-int64(n), f.fs.s.o.MemTable/4; before < early &&
		before+int64(n) >= early {
		f.fs.startSpare()
	}
	return n, err
}

// Open lets a log of this process end where it ends now.
func (fs failStopFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	l := &fs.s.logs
	l.mu.Lock()
	written := l.written[name]
	l.mu.Unlock()
	f, err := fs.FS.Open(name, opts...)
	if err != nil || written == nil {
		return f, err
	}
	return &limitedFile{f, io.LimitedReader{R: f, N: written.Load()}}, nil
}

// limitedFile is a file read up to a length.
type limitedFile struct {
	vfs.File
	limited io.LimitedReader
}

func (f *limitedFile) Read(p []byte) (int, error) { return f.limited.Read(p) }

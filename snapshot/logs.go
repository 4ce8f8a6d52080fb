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

// Syncing a file that grows, or writing to newly allocated blocks, waits for the file system's own journal. That in
// turn waits for writes to other files. So a log is written over zeros that are already on disk. The file with the
// zeros is the spare, made from a log that Pebble does not need any more. On ext4 this made every sync a third faster,
// and slow ones more.
//
// The zeros after the written part must not be visible: opening a log of this process returns only the part written by
// then. Otherwise a copy could have zeros at one place and a record at a later place, which reads as damage. A spare is
// completely overwritten before it becomes a log, so that old, deleted text cannot remain in it.
const (
	spareFile = "spare" // in the store's directory
	// The spare is written in small pieces with pauses, because the log is synced meanwhile.
	sparePiece = 128 << 10
	sparePause = 2 * time.Millisecond
)

// logFiles is the state of the logs that this process has written.
type logFiles struct {
	mu      sync.Mutex
	written map[string]*atomic.Int64 // bytes written to each
	spare   spareState
}

type spareState int

const (
	noSpare      spareState = iota
	writingSpare            // a goroutine is writing the zeros
	spareReady
	spareFailed // writing it failed; logs are made without
)

func (fs failStopFS) sparePath() string { return fs.PathJoin(fs.s.storeDir(), spareFile) }

// isStoreLog reports whether a file is a log of the store itself, not of a copy.
func (fs failStopFS) isStoreLog(name string) bool {
	return isLog(name) && fs.PathDir(name) == fs.s.storeDir()
}

// createLog makes a log, from the spare if it is ready.
func (fs failStopFS) createLog(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	l := &fs.s.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = map[string]*atomic.Int64{}
	}
	written := new(atomic.Int64)
	l.written[name] = written
	fromSpare := l.spare == spareReady
	f, err := fs.make("create", name, func() (vfs.File, error) {
		if !fromSpare {
			return fs.FS.Create(name, c)
		}
		if l.spare == spareReady {
			if err := fs.FS.Rename(fs.sparePath(), name); err != nil {
				return nil, err
			}
			l.spare = noSpare
		}
		return fs.FS.OpenReadWrite(name, c)
	})
	if err != nil {
		return nil, err
	}
	return &logFile{File: f, fs: fs, written: written}, nil
}

// recycleLog turns a log that Pebble does not need any more into the next spare, or removes it.
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

// Remove also forgets the length of a removed log.
func (fs failStopFS) Remove(name string) error {
	fs.s.logs.mu.Lock()
	delete(fs.s.logs.written, name)
	fs.s.logs.mu.Unlock()
	return fs.FS.Remove(name)
}

// startSpare starts to write the spare, unless there is one.
func (fs failStopFS) startSpare() {
	l := &fs.s.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spare != noSpare || fs.s.full.Load() || fs.s.acquireReader() != nil {
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
			if IsFull(err) { // the next log tries again
				l.spare = noSpare
				fs.s.removeSpare()
				fs.s.becomeFull()
			}
			if !errors.Is(err, ErrClosed) {
				fs.s.o.Log.Warn("logs are written without a spare file", "err", err)
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
	// Somewhat more than a memtable's log, as Pebble itself would preallocate.
	size := max(fs.s.o.MemTable*11/10, info.Size())
	zeros := make([]byte, sparePiece)
	for at := int64(0); at < size; at += sparePiece {
		if fs.s.isClosing() || fs.s.Err() != nil {
			return ErrClosed
		}
		clear(zeros) // a vfs.File may modify the slice it gets
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

// removeSpare removes the spare of this or an earlier process. If that fails, the file is overwritten before it is
// used.
func (s *Store) removeSpare() {
	path := s.fs.PathJoin(s.storeDir(), spareFile)
	if err := s.fs.Remove(path); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		s.o.Log.Warn("unused log file not removed", "file", path, "err", err)
	}
}

// logFile is a log that Pebble writes to.
type logFile struct {
	vfs.File
	fs      failStopFS
	written *atomic.Int64
}

func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	// The spare is started when a quarter of the log is written, so small stores never make one.
	if before, early := f.written.Add(int64(n))-int64(n), f.fs.s.o.MemTable/4; before < early &&
		before+int64(n) >= early {
		f.fs.startSpare()
	}
	return n, err
}

// Open limits a log of this process to its current length.
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

// limitedFile reads a file up to a length.
type limitedFile struct {
	vfs.File
	limited io.LimitedReader
}

func (f *limitedFile) Read(p []byte) (int, error) { return f.limited.Read(p) }

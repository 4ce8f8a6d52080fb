package snapshot

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failStopFS is the file system Pebble writes through. Pebble answers a failed write in many ways: it tries again, it
// panics (in places that cannot be recovered), it logs and goes on. Here there is one: the first write, sync, or making
// or renaming of a file that fails is the last; the store is failed with that reason, and the goroutine that asked never
// hears of it. What goes into a backup's directory is no part of the store and may fail.
type failStopFS struct {
	vfs.FS
	s *Store
}

// stopOnError stops here if a write failed, unless it was a backup's.
func (fs failStopFS) stopOnError(doing, name string, err error) error {
	if err == nil || strings.HasPrefix(name, fs.s.fs.PathJoin(fs.s.dir, backupDir)) {
		return err
	}
	fs.s.failAndBlock(fmt.Errorf("%s %s: %w", doing, name, err))
	return nil
}

func (fs failStopFS) Unwrap() vfs.FS { return fs.FS }

func (fs failStopFS) file(doing, name string, f vfs.File, err error) (vfs.File, error) {
	if err := fs.stopOnError(doing, name, err); err != nil {
		return nil, err
	}
	return failStopFile{f, fs, name}, nil
}

func (fs failStopFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.isStoreLog(name) {
		return fs.createLog(name, c)
	}
	f, err := fs.FS.Create(name, c)
	if err == nil && isManifest(fs.PathBase(name)) {
		// Pebble syncs the directory once, after it has made the manifest and the marker that points to it. A file
		// system that keeps only the second would leave a store that does not open.
		err = syncDir(fs.FS, fs.PathDir(name))
	}
	return fs.file("create", name, f, err)
}

func (fs failStopFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return fs.file("open", name, f, err)
}

// ReuseForWrite makes a new log after all: see logs. What was written in the old one must not show through.
func (fs failStopFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.createLog(newname, c)
	if err != nil {
		return nil, err
	}
	if err := fs.stopOnError("retire", oldname, fs.recycleLog(oldname)); err != nil {
		return nil, err
	}
	return f, nil
}

func (fs failStopFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return failStopFile{f, fs, name}, nil
}

func (fs failStopFS) Rename(oldname, newname string) error {
	return fs.stopOnError("rename", newname, fs.FS.Rename(oldname, newname))
}

type failStopFile struct {
	vfs.File
	fs   failStopFS
	name string
}

func (f failStopFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.stopOnError("write", f.name, err)
}

func (f failStopFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.fs.stopOnError("write", f.name, err)
}

func (f failStopFile) Sync() error { return f.fs.stopOnError("sync", f.name, f.File.Sync()) }

func (f failStopFile) SyncData() error { return f.fs.stopOnError("sync", f.name, f.File.SyncData()) }

func (f failStopFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.stopOnError("sync", f.name, err)
}

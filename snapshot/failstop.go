package snapshot

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failStopFS is the file system that Pebble writes to. Pebble handles failed writes in several ways: it tries again,
// panics where nothing can recover, or logs and continues. With failStopFS the first failed write, sync, creation or
// rename is the last. The store fails with that reason, and the goroutine that made the call blocks for ever. Failures
// in a backup's directory are returned, because it is not part of the store.
type failStopFS struct {
	vfs.FS
	s *Store
}

// stopOnError fails the store and blocks if err is not nil, unless the file is a backup's.
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
		// Pebble syncs the directory only once, after it has made both the manifest and the marker that points to it. A
		// file system that kept only the marker would leave a store that does not open.
		err = syncDir(fs.FS, fs.PathDir(name))
	}
	return fs.file("create", name, f, err)
}

func (fs failStopFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return fs.file("open", name, f, err)
}

// ReuseForWrite makes a new log; see logFiles for how its space is reused. The old content must never be readable in
// the new log.
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

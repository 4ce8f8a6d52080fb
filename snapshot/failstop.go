package snapshot

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failStopFS is the file system that Pebble writes to. Pebble handles failed writes in several ways: it tries again,
// panics where nothing can recover, or logs and continues. With failStopFS the first failed write, sync, creation or
// rename is the last. The store fails with that reason, and the goroutine that made the call blocks for ever. Failures
// in a backup's directory are returned, because it is not part of the store. A full disk is another matter: see
// space.go.
type failStopFS struct {
	vfs.FS
	s *Store
}

// stopOnError fails the store and blocks if err is not nil, unless the file is a backup's.
func (fs failStopFS) stopOnError(doing, name string, err error) error {
	if err == nil || fs.isOfBackup(name) {
		return err
	}
	fs.s.failAndBlock(fmt.Errorf("%s %s: %w", doing, name, err))
	return nil
}

func (fs failStopFS) Unwrap() vfs.FS { return fs.FS }

// make calls create until there is space for the file, or once for a table, and returns the file.
func (fs failStopFS) make(doing, name string, create func() (vfs.File, error)) (f vfs.File, err error) {
	change := func() (err error) {
		f, err = create()
		return err
	}
	if fs.isTable(name) {
		err = fs.writeTable(doing, name, change)
	} else {
		err = fs.stopOnError(doing, name, fs.retry(name, change))
	}
	if err != nil {
		return nil, err
	}
	return failStopFile{f, fs, name}, nil
}

// tableSuffix ends the name of each table of Pebble.
const tableSuffix = ".sst"

// isTable reports whether a file is a table of the store itself, which Pebble writes again if there is no space. While
// the store is being opened it does not.
func (fs failStopFS) isTable(name string) bool {
	return fs.s.opened.Load() && strings.HasSuffix(name, tableSuffix) && fs.PathDir(name) == fs.s.storeDir()
}

// retry makes a change until there is space, but once in the directory of a backup.
func (fs failStopFS) retry(name string, change func() error) error {
	if fs.isOfBackup(name) {
		return change()
	}
	return fs.s.untilSpace(change)
}

// isOfBackup reports whether a file is in the directory of a backup, which is not part of the store.
func (fs failStopFS) isOfBackup(name string) bool {
	return strings.HasPrefix(name, fs.s.fs.PathJoin(fs.s.dir, backupDir))
}

func (fs failStopFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.isStoreLog(name) {
		return fs.createLog(name, c)
	}
	return fs.make("create", name, func() (vfs.File, error) {
		f, err := fs.FS.Create(name, c)
		if err == nil && isManifest(fs.PathBase(name)) {
			// Pebble syncs the directory only once, after it has made both the manifest and the marker that points to
			// it. A file system that kept only the marker would leave a store that does not open.
			err = syncDir(fs.FS, fs.PathDir(name))
		}
		return f, err
	})
}

func (fs failStopFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return fs.make("open", name, func() (vfs.File, error) { return fs.FS.OpenReadWrite(name, c, opts...) })
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
	return fs.stopOnError("rename", newname, fs.retry(newname, func() error { return fs.FS.Rename(oldname, newname) }))
}

type failStopFile struct {
	vfs.File
	fs   failStopFS
	name string
}

// Write continues a write that was cut off by a full disk where it ended, once there is space.
func (f failStopFile) Write(p []byte) (n int, err error) {
	write := func() error {
		done, err := f.File.Write(p[n:])
		n += done
		return err
	}
	if f.fs.isTable(f.name) {
		return n, f.fs.writeTable("write", f.name, write)
	}
	err = f.fs.retry(f.name, write)
	if IsFull(err) && isLog(f.name) && f.fs.s.isClosing() {
		return len(p), nil // the mark of the log's end, which a log without one does not need: every commit is synced
	}
	return n, f.fs.stopOnError("write", f.name, err)
}

func (f failStopFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.fs.stopOnError("write", f.name, err)
}

func (f failStopFile) Sync() error { return f.synced(f.File.Sync()) }

func (f failStopFile) SyncData() error { return f.synced(f.File.SyncData()) }

func (f failStopFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.synced(err)
}

// synced handles the error of a sync. Only a table can be written again from the beginning.
func (f failStopFile) synced(err error) error {
	if f.fs.isTable(f.name) {
		return f.fs.tableError("sync", f.name, err)
	}
	return f.fs.stopOnError("sync", f.name, err)
}

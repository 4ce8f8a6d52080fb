package snapshot

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// finalFS is the file system Pebble writes through. Pebble answers a failed write in many ways: it tries again, it
// panics (in places that cannot be recovered), it logs and goes on. Here there is one: the first write, sync, or making
// or renaming of a file that fails is the last; the store is failed with that reason, and the goroutine that asked never
// hears of it. What goes into a backup's directory is no part of the store and may fail.
type finalFS struct {
	vfs.FS
	s *Store
}

// fatal stops here if a write failed, unless it was a backup's.
func (fs finalFS) fatal(doing, name string, err error) error {
	if err == nil || strings.HasPrefix(name, fs.s.fs.PathJoin(fs.s.dir, backupDir)) {
		return err
	}
	fs.s.stop(fmt.Errorf("%s %s: %w", doing, name, err))
	return nil
}

func (fs finalFS) Unwrap() vfs.FS { return fs.FS }

func (fs finalFS) file(doing, name string, f vfs.File, err error) (vfs.File, error) {
	if err := fs.fatal(doing, name, err); err != nil {
		return nil, err
	}
	return finalFile{f, fs, name}, nil
}

func (fs finalFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if fs.ownLog(name) {
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

func (fs finalFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return fs.file("open", name, f, err)
}

// ReuseForWrite makes a new log after all: see logs. What was written in the old one must not show through.
func (fs finalFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.createLog(newname, c)
	if err != nil {
		return nil, err
	}
	if err := fs.fatal("retire", oldname, fs.retire(oldname)); err != nil {
		return nil, err
	}
	return f, nil
}

func (fs finalFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return finalFile{f, fs, name}, nil
}

func (fs finalFS) Rename(oldname, newname string) error {
	return fs.fatal("rename", newname, fs.FS.Rename(oldname, newname))
}

type finalFile struct {
	vfs.File
	fs   finalFS
	name string
}

func (f finalFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.fatal("write", f.name, err)
}

func (f finalFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, f.fs.fatal("write", f.name, err)
}

func (f finalFile) Sync() error { return f.fs.fatal("sync", f.name, f.File.Sync()) }

func (f finalFile) SyncData() error { return f.fs.fatal("sync", f.name, f.File.SyncData()) }

func (f finalFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.fs.fatal("sync", f.name, err)
}

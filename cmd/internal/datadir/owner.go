package datadir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// GiveToOwner gives the files of a data directory that belong to root to the owner of the directory. A command that
// root runs on a stopped server makes such files, and a server that runs as another user could not open them. all also
// looks into the folders. It does nothing if the caller is not root, or the directory is root's.
func GiveToOwner(dir string, all bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	if owner.Uid == 0 {
		return nil
	}
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = give(root, path, int(owner.Uid), int(owner.Gid))
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // a running server has removed it
			return nil
		case err == nil && d.IsDir() && path != "." && !all:
			return fs.SkipDir
		}
		return err
	})
}

// give changes the owner of a file or folder if it is root's. A file with several names stays: the owner of the
// directory can have linked a file of root there. Links and sockets stay, too.
func give(root *os.Root, path string, uid, gid int) error {
	info, err := root.Lstat(path)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 || !info.IsDir() && !info.Mode().IsRegular() {
		return err
	}
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if info, err = f.Stat(); err == nil { // of what was opened: the name can be another file by now
		if s := info.Sys().(*syscall.Stat_t); s.Uid == 0 && (info.IsDir() || info.Mode().IsRegular() && s.Nlink == 1) {
			err = f.Chown(uid, gid)
		}
	}
	return errors.Join(err, f.Close())
}

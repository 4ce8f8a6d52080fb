package migration

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"parley/snapshot/files"
)

// dryRunFiles checks the files of an archive as a store does, and stores none of them. A dry run thereby reports the
// numbers of the real run.
type dryRunFiles struct {
	store *files.Store
	dir   string
}

func openDryRunFiles(dir string) (*dryRunFiles, error) {
	store, err := files.Open(dir, nil)
	return &dryRunFiles{store, dir}, err
}

func (d *dryRunFiles) Save(space string, r io.Reader, limit int64) (files.Saved, error) {
	saved, err := d.store.Save(space, r, limit)
	if err != nil {
		return saved, err
	}
	return saved, d.store.Release(saved.Hash, func() (bool, error) { return false, nil })
}

func (d *dryRunFiles) SaveAvatar(r io.Reader, limit int64) (string, error) {
	return d.picture(d.store.SaveAvatar(r, limit))
}

func (d *dryRunFiles) SaveLogo(r io.Reader, limit int64) (string, error) {
	return d.picture(d.store.SaveLogo(r, limit))
}

// picture removes a picture that was saved.
func (d *dryRunFiles) picture(name string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return name, errors.Join(d.store.Release(name, nil), os.RemoveAll(filepath.Join(d.dir, "pictures")))
}

// Release does nothing: no file is stored.
func (d *dryRunFiles) Release(string, func() (bool, error)) error { return nil }

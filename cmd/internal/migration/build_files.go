package migration

import (
	"errors"
	"io"
	"io/fs"
	"strconv"

	"parley/snapshot/files"
	"parley/wire/imports"
)

// addPicture stores a picture. A missing or invalid one is dropped.
func (x *importer) addPicture(
	f *imports.File, kind string, save func(Files, io.Reader, int64) (string, error), set func(name string),
) error {
	if x.o.DryRun {
		return nil
	}
	address := kind + " " + f.Path
	saved, known, err := x.fromLog(address)
	if err != nil {
		return err
	}
	if !known {
		r, err := x.source.Open(f.Path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
			saved.Missing = true
		} else if err != nil {
			return err
		} else {
			x.beforeWrite()
			saved.Hash, err = save(x.to.Files, r, maxPicture)
			r.Close()
			if err != nil && !isBadFile(err) {
				return err
			}
			saved.Missing = err != nil
			if err == nil {
				x.pins = append(x.pins, saved.Hash)
			}
		}
		x.log.add(&logRecord{Address: address, File: saved})
	}
	if saved.Missing {
		x.Drop(kind, "the file is missing or cannot be used", 1)
		return nil
	}
	set(saved.Hash)
	return nil
}

// isBadFile reports whether an error is the file's fault.
func isBadFile(err error) bool {
	return errors.Is(err, files.ErrNoImage) || errors.Is(err, files.ErrPixels) || errors.Is(err, files.ErrTooLarge)
}

// fromLog returns the next file of the log of an interrupted import. It must be the same as the one that is asked for.
func (x *importer) fromLog(address string) (savedFile, bool, error) {
	r, ok, err := x.log.next()
	if err == nil && ok && r.Address != address {
		err = errors.New("the archive has changed since the import was interrupted: drop it with --restart")
	}
	return r.File, ok, err
}

// saveFile stores the content of a file; known says that an earlier run has stored it.
func (x *importer) saveFile(f *imports.File, address string) (saved savedFile, err error) {
	saved, known, err := x.fromLog(address)
	if err != nil || known {
		return saved, err
	}
	r, err := x.source.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) || errors.Is(err, fs.ErrInvalid) {
		saved.Missing = true
		x.log.add(&logRecord{Address: address, File: saved})
		return saved, nil
	}
	if err != nil {
		return saved, err
	}
	defer r.Close()
	if x.o.DryRun {
		return savedFile{Hash: "00", Size: f.Size}, nil
	}
	x.beforeWrite()
	s, err := x.to.Files.Save(strconv.Itoa(int(x.id)), r, maxUpload)
	if err != nil {
		return saved, err
	}
	x.pins = append(x.pins, s.Hash)
	saved = savedFile{Hash: s.Hash, Size: s.Size, Type: s.Type, Width: s.Width, Height: s.Height, Animated: s.Animated}
	x.log.add(&logRecord{Address: address, File: saved})
	return saved, nil
}

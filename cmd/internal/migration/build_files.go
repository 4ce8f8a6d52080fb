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
	address := kind + " " + f.Path
	saved, known, err := x.fromLog(address)
	if err != nil {
		return err
	}
	if !known {
		r, err := x.source.Open(f.Path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) {
			saved.Missing = true
		} else if imports.Damaged(err) {
			saved.Missing = true
		} else if err != nil {
			return err
		} else {
			x.beforeWrite()
			in := &faultReader{r: r}
			saved.Hash, err = save(x.to.Files, in, maxPicture)
			r.Close()
			if err != nil && !isBadFile(err) && !in.damaged {
				return err
			}
			saved.Missing = err != nil
			if err == nil {
				x.pins = append(x.pins, saved.Hash)
			}
		}
		x.recordFile(address, saved)
	}
	if saved.Missing {
		x.Drop(kind, "the file is missing or cannot be used", 1)
		return nil
	}
	set(saved.Hash)
	return nil
}

// recordFile adds a file to the log, with which an interrupted import continues.
func (x *importer) recordFile(address string, saved savedFile) {
	if !x.o.DryRun {
		x.log.add(&logRecord{Address: address, File: saved})
	}
}

// faultReader reads a file of the archive, and records that its bytes are damaged.
type faultReader struct {
	r       io.Reader
	damaged bool
}

func (f *faultReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.damaged = f.damaged || err != nil && imports.Damaged(err)
	return n, err
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
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) || errors.Is(err, fs.ErrInvalid) ||
		imports.Damaged(err) {
		saved.Missing = true
		x.recordFile(address, saved)
		return saved, nil
	}
	if err != nil {
		return saved, err
	}
	defer r.Close()
	x.beforeWrite()
	in := &faultReader{r: r}
	s, err := x.to.Files.Save(strconv.Itoa(int(x.id)), in, maxUpload)
	if in.damaged {
		saved.Missing = true
		x.recordFile(address, saved)
		return saved, nil
	}
	if err != nil {
		return saved, err
	}
	x.pins = append(x.pins, s.Hash)
	saved = savedFile{Hash: s.Hash, Size: s.Size, Type: s.Type, Width: s.Width, Height: s.Height, Animated: s.Animated}
	x.recordFile(address, saved)
	return saved, nil
}

package meaning

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"parley/actors/realm"
)

// A node that becomes the owner of an organization lacks the vectors that the owner before it has made. It copies those
// whose texts are still the same from the file of another node, and asks the service only for the others.

const (
	// loanFrom is how many texts an organization must lack before another node is asked: fewer cost less than a file of
	// up to 300 MB.
	loanFrom = 100
	// loanWait is how long the texts wait while other nodes cannot be reached: as long as a restart takes. Then the
	// service is asked.
	loanWait = 10 * time.Minute
	// loanBatch is how many vectors are written to disk together: about 1.5 MB.
	loanBatch = 256
	// maxFileBytes is the size of the largest file.
	maxFileBytes = vectorsAt + MaxMessages*MaxDimensions*4
	// partSuffix is the end of the name of a file that is being fetched.
	partSuffix = ".part"
)

// loan is what an owner has asked other nodes for. It begins again when the node loses the organization.
type loan struct {
	done  bool
	since time.Time // of the first attempt; zero: none
}

// removeParts removes files whose transfer did not end before the node did.
func removeParts(dir string) error {
	parts, err := filepath.Glob(filepath.Join(dir, "*"+partSuffix))
	for _, path := range parts {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// borrow copies the vectors that an organization lacks from another node. It sets loan.done unless it must be tried
// again.
func (s *Service) borrow(o *organization, now time.Time) error {
	if s.o.NoWrites() {
		return nil
	}
	path := FileOf(s.o.Dir, o.id) + partSuffix
	defer os.Remove(path)
	err := s.o.Fetch(s.ctx, o.id, func(size int64, r io.Reader) error { return savePart(path, size, r) })
	switch {
	case err == nil:
		o.loan.done = true
		return s.copyFrom(o, path)
	case errors.Is(err, fs.ErrNotExist):
		o.loan.done = true
		return nil
	case s.ctx.Err() != nil:
		return err
	}
	first := o.loan.since.IsZero()
	if first {
		o.loan.since = now
	}
	o.loan.done = now.Sub(o.loan.since) >= loanWait
	o.todo = nil // until the next comparison
	s.Feed(o.id, true)
	if !first {
		return nil // it was logged
	}
	return fmt.Errorf("the vectors of another node cannot be fetched now, and are made again after %s: %w", loanWait, err)
}

// savePart stores a file that is fetched.
func savePart(path string, size int64, r io.Reader) error {
	if size > maxFileBytes {
		return fmt.Errorf("a file of vectors has %d bytes, more than %d", size, int64(maxFileBytes))
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, r, size)
	return errors.Join(err, f.Close())
}

// copyFrom copies the vectors of the texts that wait from a fetched file. A file of another model has none.
func (s *Service) copyFrom(o *organization, path string) error {
	from, err := openIndex(path, s.o.Name, 0)
	if errors.Is(err, errOtherModel) || from == nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.file.Close()
	to, err := s.open(o, from.dims)
	if err != nil || to == nil || to.dims != from.dims {
		return err
	}
	used, copied := to.usage, 0
	if from.usage.Day > used.Day || from.usage.Day == used.Day && from.usage.Tokens > used.Tokens {
		used = from.usage // the other node has spent them
	}
	var left, refs []realm.BodyRef
	var vectors [][]float32
	flush := func() error {
		if len(refs) == 0 {
			return nil
		}
		copied += len(refs)
		err := to.add(s.o.Name, refs, vectors, used)
		refs, vectors = refs[:0], vectors[:0]
		return err
	}
	for _, ref := range o.todo {
		v, err := from.vector(ref)
		if err != nil {
			return err
		}
		if v == nil {
			left = append(left, ref)
			continue
		}
		if refs, vectors = append(refs, ref), append(vectors, v); len(refs) == loanBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	if o.todo = left; len(left) == 0 {
		o.complete.Store(true)
	}
	s.o.Log.Info("vectors of another node are used", "realm", o.id, "vectors", copied, "missing", len(left))
	return nil
}

// vector returns the vector of a text; nil: the file does not have it, or it is damaged.
func (x *index) vector(ref realm.BodyRef) ([]float32, error) {
	e, ok := x.entries[ref.Message]
	if !ok || e.version != ref.Version {
		return nil, nil
	}
	slot, b := make([]byte, slotSize), make([]byte, x.vectorSize())
	if _, err := x.file.ReadAt(slot, headerSize+int64(e.slot)*slotSize); err != nil {
		return nil, err
	}
	if _, err := x.file.ReadAt(b, vectorsAt+int64(e.slot)*x.vectorSize()); err != nil {
		return nil, err
	}
	if string(slot) != string(slotOf(ref, b)) {
		return nil, nil
	}
	return decodeVector(b), nil
}

// StoredFile is the open file of an organization, for another node.
type StoredFile struct {
	file *os.File
	size int64
}

// OpenFile opens the file of an organization, whose id is the name, for another node. It returns fs.ErrNotExist if
// there is none, or if the owners of the organization do not agree.
func (s *Service) OpenFile(name string) (*StoredFile, error) {
	id, err := strconv.ParseUint(name, 10, 32)
	if err != nil || !s.started.Load() {
		return nil, fs.ErrNotExist
	}
	if agreed, _, err := s.source.Agreed(realm.ID(id)); err != nil || !agreed {
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	f, err := os.Open(FileOf(s.o.Dir, realm.ID(id)))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &StoredFile{f, info.Size()}, nil
}

// Size returns the size in bytes.
func (f *StoredFile) Size() int64 { return f.size }

// Section returns a part of the file.
func (f *StoredFile) Section(from, bytes int64) (io.ReadCloser, error) {
	return io.NopCloser(io.NewSectionReader(f.file, from, bytes)), nil
}

// Close closes the file.
func (f *StoredFile) Close() error { return f.file.Close() }

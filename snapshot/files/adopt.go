package files

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"parley/actors/realm"
)

// Adopt stores a file that another core of the cluster has, under the same name, and returns when it is on disk. size
// is in bytes. If the space of content is known (not ""), Adopt compares the hash of the content with its name, and
// returns ErrDamaged if they differ. A row that names the file must exist: the file is not removed meanwhile, and the
// next sweep removes it if the row has ended.
func (s *Store) Adopt(kind, file, space string, size int64, r io.Reader) error {
	name := rowName(kind, file)
	if name == "" {
		return fmt.Errorf("fetch file: %q is not the name of a stored file", file)
	}
	if err := s.checkSpace(size); err != nil {
		return fmt.Errorf("fetch file: %w", err)
	}
	if err := s.pin(name); err != nil {
		return err
	}
	defer s.Release(name, nil)
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "fetch-*")
	if err != nil {
		return fmt.Errorf("fetch file: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var h hash.Hash
	var to io.Writer = &limitedWriter{s: s, w: f}
	if kind == realm.ContentFile && space != "" {
		h = sha256.New()
		fmt.Fprintf(h, "%q", space)
		to = io.MultiWriter(to, h)
	}
	n, err := io.CopyBuffer(to, io.LimitReader(r, size+1), make([]byte, copyBuffer))
	if err != nil {
		return fmt.Errorf("fetch file: %w", err)
	}
	if n != size {
		return fmt.Errorf("fetch file: %w: %s has %d bytes instead of %d", io.ErrUnexpectedEOF, file, n, size)
	}
	if h != nil && hex.EncodeToString(h.Sum(nil)) != name[:hashDigits] {
		return ErrDamaged
	}
	return s.blobs.Put(Key(kind, file), f)
}

// Has reports whether there is a file with the name of a row: a picture, for example, in its main size.
func (s *Store) Has(kind, name string) (bool, error) {
	return s.Exists(kind, FilesOf(kind, name)[0])
}

// FilesOf returns the files that the name in a row may refer to. The first one exists, the others may be missing: a
// logo has one size.
func FilesOf(kind, name string) []string {
	switch kind {
	case realm.PictureFile:
		return []string{name + ".png", name + "-medium.png"}
	case realm.ArchiveFile:
		return []string{realm.ExportFile(name)}
	}
	return []string{name}
}

// RowNameOf returns the name in a row that refers to a file; "": no row can name it.
func RowNameOf(kind, file string) string { return rowName(kind, file) }

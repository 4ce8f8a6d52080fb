package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"parley/actors/realm"
)

// NewExport starts the file of a data export. It gets its name at Commit.
func (s *Store) NewExport(name string) (*Export, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "export-*")
	if err != nil {
		return nil, fmt.Errorf("write export: %w", err)
	}
	return &Export{s, f, &limitedWriter{s: s, w: f}, name}, nil
}

// Export writes a data export.
type Export struct {
	s    *Store
	f    *os.File
	w    io.Writer
	name string
}

func (e *Export) Write(p []byte) (int, error) { return e.w.Write(p) }

// Commit stores the file under its name.
func (e *Export) Commit() error {
	name := rowName(realm.ArchiveFile, e.name)
	if err := e.s.pin(name); err != nil {
		return err
	}
	defer e.s.Release(name, nil)
	return e.s.blobs.Put(Key(realm.ArchiveFile, e.name), e.f)
}

// Close removes the file unless it was committed.
func (e *Export) Close() error {
	os.Remove(e.f.Name())
	return e.f.Close()
}

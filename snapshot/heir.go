package snapshot

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// heirDir, under the data directory, is the store as of one moment, for a successor that loads what it can while its
// predecessor still writes. Its files are the store's own by another name, until one of both removes them. What a
// process that died left of it goes when the store is next opened.
const heirDir = "heir.new"

// Lend puts the store as of one moment during the call where OpenLent finds it, while the store goes on. What is in
// memory alone is written out first: the copy then opens quickly, and so does the store after a Close soon after.
func (s *Store) Lend() error {
	s.backup.Lock() // Pebble makes one checkpoint at a time
	defer s.backup.Unlock()
	if s.readOnly {
		return ErrReadOnly
	}
	if err := s.read(); err != nil {
		return err
	}
	defer s.readers.Done()
	dir := s.fs.PathJoin(s.dir, heirDir)
	if err := s.fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("lend the store: %w", err)
	}
	_, err := s.await(func() error {
		if err := s.db.Flush(); err != nil {
			return err
		}
		return s.db.Checkpoint(s.fs.PathJoin(dir, subDir), pebble.WithFlushedWAL())
	})
	if err != nil {
		s.fs.RemoveAll(dir)
		return fmt.Errorf("lend the store: %w", err)
	}
	return nil
}

// TakeBack removes what Lend made.
func (s *Store) TakeBack() error {
	s.backup.Lock()
	defer s.backup.Unlock()
	return s.fs.RemoveAll(s.fs.PathJoin(s.dir, heirDir))
}

// OpenLent opens what another process's Lend made in a data directory, to be read only. Close it with CloseLent.
func OpenLent(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	return OpenReadOnly(o.FS.PathJoin(dir, heirDir), o)
}

// CloseLent closes a store that OpenLent opened, and removes it.
func (s *Store) CloseLent() error {
	if err := s.Close(); err != nil {
		return err
	}
	return s.fs.RemoveAll(s.dir)
}

package snapshot

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// checkpointDir, under the data directory, is the store as of one moment, for a successor that loads what it can while its
// predecessor still writes. Its files are the store's own by another name, until one of both removes them. What a
// processRealm that died left of it goes when the store is next opened.
const checkpointDir = "heir.new"

// CreateCheckpoint puts the store as of one moment during the call where OpenCheckpoint finds it, while the store goes on. What is in
// memory alone is written out first: the copy then opens quickly, and so does the store after a Close soon after.
func (s *Store) CreateCheckpoint() error {
	s.checkpointMu.Lock() // Pebble makes one checkpoint at a time
	defer s.checkpointMu.Unlock()
	if s.readOnly {
		return ErrReadOnly
	}
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	dir := s.fs.PathJoin(s.dir, checkpointDir)
	if err := s.fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("lend the store: %w", err)
	}
	_, err := s.callPebble(func() error {
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

// RemoveCheckpoint removes what Lend made.
func (s *Store) RemoveCheckpoint() error {
	s.checkpointMu.Lock()
	defer s.checkpointMu.Unlock()
	return s.fs.RemoveAll(s.fs.PathJoin(s.dir, checkpointDir))
}

// OpenCheckpoint opens what another process's Lend made in a data directory, to be read only. Close it with CloseLent.
func OpenCheckpoint(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	return OpenReadOnly(o.FS.PathJoin(dir, checkpointDir), o)
}

// CloseCheckpoint closes a store that OpenCheckpoint opened, and removes it.
func (s *Store) CloseCheckpoint() error {
	if err := s.Close(); err != nil {
		return err
	}
	return s.fs.RemoveAll(s.dir)
}

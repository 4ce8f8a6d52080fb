package snapshot

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// checkpointDir, in the data directory, contains a Pebble checkpoint: the store at one moment. A successor process
// loads it while this process still writes. The files are hard links to the store's, so deleting one does not affect
// the other. Opening the store removes the checkpoint of a process that crashed.
const checkpointDir = "heir.new"

// CreateCheckpoint makes a checkpoint, for OpenCheckpoint, of the store at some moment during the call. Appends
// continue meanwhile. It flushes the memtables first: then the checkpoint opens quickly, and so does the store if it is
// closed soon.
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
		return fmt.Errorf("create checkpoint: %w", err)
	}
	err := s.flushUnlessFull()
	if err == nil && s.full.Load() {
		err = ErrFull
	}
	if err == nil {
		_, err = s.callPebble(func() error {
			return s.db.Checkpoint(s.fs.PathJoin(dir, subDir), pebble.WithFlushedWAL())
		})
	}
	if err != nil {
		s.fs.RemoveAll(dir)
		return fmt.Errorf("create checkpoint: %w", err)
	}
	return nil
}

// RemoveCheckpoint removes the checkpoint.
func (s *Store) RemoveCheckpoint() error {
	s.checkpointMu.Lock()
	defer s.checkpointMu.Unlock()
	return s.fs.RemoveAll(s.fs.PathJoin(s.dir, checkpointDir))
}

// OpenCheckpoint opens the checkpoint of another process in a data directory, read-only. CloseCheckpoint closes it.
func OpenCheckpoint(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	return OpenReadOnly(o.FS.PathJoin(dir, checkpointDir), o)
}

// CloseCheckpoint closes a store that OpenCheckpoint opened, and removes the checkpoint.
func (s *Store) CloseCheckpoint() error {
	if err := s.Close(); err != nil {
		return err
	}
	return s.fs.RemoveAll(s.dir)
}

package snapshot

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// An organization is imported through a replicated log in steps, under a number that has no facts yet. Its texts are
// entries without facts. Its rows follow in chunks, which every copy stages like those of a large snapshot. The last
// step sets the number of the rows: from then on the organization exists, on every copy at the same index. The chunks
// are then applied in the background, and readers of the rows wait for that. Every step can be repeated.

// ImportKind is a step of an import.
type ImportKind byte

// The steps of an import.
const (
	ImportClear  ImportKind = 1 + iota // deletes the texts and chunks of an earlier import
	ImportRows                         // stages a chunk of rows
	ImportFinish                       // makes the organization exist
)

// ImportOp is one step of an import in a replicated log.
type ImportOp struct {
	Kind   ImportKind
	Realm  RealmID
	Epoch  uint64 // of the importer's claim; the step is refused after another claim
	Chunk  uint32 // ImportRows: its number, from 0
	Rows   []byte // ImportRows: see ChunkRows
	At     Seq    // ImportFinish: the number of the rows
	Chunks uint32 // ImportFinish: how many chunks the organization has
	// Term is the term of the log in which the importer has checked that the name of the organization is free; 0: any.
	// Stale says that the step was added in another one.
	Term  uint64
	Stale bool
}

// ChunkRows encodes rows in chunks of about size bytes and passes each to fn, which must not keep it.
func ChunkRows(size int, rows func(yield func(Row) error) error, fn func(chunk []byte) error) error {
	w := rowWriter{}
	err := rows(func(r Row) error {
		if err := w.encode(r); err != nil || len(w.ops) < size {
			return err
		}
		err := fn(w.ops)
		w.ops = w.ops[:0]
		return err
	})
	if err == nil && len(w.ops) > 0 {
		err = fn(w.ops)
	}
	return err
}

// CheckImport returns an error if a step must not be put into a log: no copy could use it.
func (s *Store) CheckImport(op *ImportOp) error {
	switch op.Kind {
	case ImportClear:
		return nil
	case ImportRows:
		if len(op.Rows) == 0 || len(op.Rows) > MaxEntry {
			return fmt.Errorf("%w: a chunk of %d bytes", ErrTooLarge, len(op.Rows))
		}
		if err := s.acquireReader(); err != nil {
			return err
		}
		defer s.readers.Done()
		b := s.db.NewBatch()
		defer b.Close()
		return addRows(b, op.Realm, op.Rows)
	case ImportFinish:
		if op.Chunks == 0 || op.At == 0 {
			return errors.New("an import has no rows")
		}
		return nil
	}
	return fmt.Errorf("step %d of an import is unknown", op.Kind)
}

// lockImports locks the rows of the realms whose import a list of log entries finishes. It must be called before s.mu
// is locked.
func (s *Store) lockImports(list []LogEntry) (locked []*realmState) {
	for i := range list {
		for _, op := range list[i].Ops {
			if op.Import == nil || op.Import.Kind != ImportFinish {
				continue
			}
			s.mu.Lock()
			st := s.realms[op.Import.Realm]
			if st == nil { // its claim is in the list, too
				st = &realmState{id: op.Import.Realm, firstKept: 1}
				s.realms[st.id] = st
			}
			s.mu.Unlock()
			if slices.Contains(locked, st) {
				continue
			}
			st.snapshotMu.Lock()
			locked = append(locked, st)
		}
	}
	return locked
}

// applyImport adds a step to a batch. s.mu is held, and for ImportFinish the rows of the realm are locked.
func (s *Store) applyImport(b *pebble.Batch, op *ImportOp) (LogResult, error) {
	st := s.realms[op.Realm]
	moved := func(format string, args ...any) (LogResult, error) {
		return LogResult{Err: fmt.Errorf("%w: realm %d "+format, append([]any{ErrMoved, op.Realm}, args...)...)}, nil
	}
	switch {
	case st == nil || st.epoch == 0:
		return moved("is not claimed")
	case st.damage != nil:
		return LogResult{}, st.damage
	case op.Stale:
		return moved("was checked in term %d", op.Term)
	case op.Epoch != st.epoch:
		return moved("is at epoch %d, not %d", st.epoch, op.Epoch)
	case st.last != 0:
		return moved("is at number %d, not empty", st.last)
	}
	switch op.Kind {
	case ImportClear:
		for _, space := range []byte{spaceBodies, spaceStaged} {
			b.DeleteRange(spaceKey(op.Realm, space), spaceEnd(op.Realm, space), nil)
		}
		st.importChunks = 0
	case ImportRows:
		if op.Chunk > st.importChunks {
			return moved("has %d chunks of an import, not %d", st.importChunks, op.Chunk)
		}
		setValue(b, stagedKey(op.Realm, op.Chunk), op.Rows)
		st.importChunks = max(st.importChunks, op.Chunk+1)
	case ImportFinish:
		if op.Chunks > st.importChunks {
			return moved("has %d chunks of an import, not %d", st.importChunks, op.Chunks)
		}
		// An earlier run may have staged more.
		b.DeleteRange(stagedKey(op.Realm, op.Chunks), spaceEnd(op.Realm, spaceStaged), nil)
		next := snapshotState{seq: op.At, snapshots: st.snapshot.snapshots + 1, stagedChunks: op.Chunks}
		setValue(b, headKey(op.Realm, headSnapshot), next.encode())
		st.snapshot, st.last, st.lastHash = next, op.At, chain{}
		st.firstKept, st.kept, st.importChunks = op.At+1, nil, 0
	default:
		return LogResult{}, fmt.Errorf("step %d of an import is unknown to this program", op.Kind)
	}
	return LogResult{}, nil
}

// finishImports applies the chunks of finished imports in the background, and unlocks the rows.
func (s *Store) finishImports(locked []*realmState) {
	for _, st := range locked {
		if s.acquireReader() != nil {
			st.snapshotMu.Unlock() // the next start applies them
			continue
		}
		go func() {
			defer s.readers.Done()
			defer st.snapshotMu.Unlock()
			err := s.applyStagedChunks(st)
			var damage *DamageError
			switch {
			case errors.As(err, &damage):
				s.mu.Lock()
				st.damage = err
				s.mu.Unlock()
				s.o.Log.Error("the rows of an import are damaged", "realm", st.id, "err", err)
			case err != nil && !errors.Is(err, ErrClosed):
				s.fail(err)
			}
		}()
	}
}

// keepImport keeps the chunks of an import that is not finished, when a copy is opened. It reports whether the realm
// can have any: chunks of other realms are those of an interrupted snapshot.
func (s *Store) keepImport(st *realmState) (bool, error) {
	if !s.replicated || st.last != 0 {
		return false, nil
	}
	it, err := s.db.NewIter(
		&pebble.IterOptions{LowerBound: spaceKey(st.id, spaceStaged), UpperBound: spaceEnd(st.id, spaceStaged)},
	)
	if err != nil {
		return true, s.pebbleError("open rows", err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		st.importChunks++
	}
	return true, s.pebbleError("open rows", it.Error())
}

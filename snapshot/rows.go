package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cockroachdb/pebble/v2"
)

// Snapshot writes the rows that changed up to fact number at, and deletes the facts up to there, except the newest ones
// that Options.Kept says. rows is called once
// and yields the changed rows; appends continue meanwhile. If it returns an error, nothing has changed.
//
// A snapshot whose rows fit one batch (Options.SnapshotBatch) is one commit. A larger one is made in three phases.
// First its rows are staged, in order, as chunks that no reader sees. Then one small batch sets the snapshot's number
// and the count of chunks, and deletes the facts. Then each chunk is applied to the rows in its own batch. After a
// crash in the first phase, opening deletes the chunks. After a crash in the third, opening applies the remaining
// chunks before anything is read. So a large snapshot is written twice, but its memory is bounded and appends never
// wait for all of it.
func (s *Store) Snapshot(realm RealmID, epoch uint64, at Seq, rows func(yield func(Row) error) error) error {
	st, err := s.claimedRealm(realm)
	if err != nil {
		return err
	}
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	st.snapshotMu.Lock()
	defer st.snapshotMu.Unlock()

	next, behind, err := s.nextSnapshotState(st, epoch, at)
	if err != nil {
		return err
	}
	w := rowWriter{s: s, st: st}
	if err := rows(w.add); err != nil {
		return errors.Join(err, w.discardStaged())
	}
	if w.chunks > 0 {
		if err := w.stage(); err != nil {
			return err
		}
	}
	next.stagedChunks = w.chunks
	if err := s.commitSnapshot(st, next, behind, w.ops); err != nil {
		return err
	}
	if err := s.applyStagedChunks(st); err != nil {
		return err
	}
	return s.writeDurabilityManifest()
}

// SaveRowsUnsynced writes rows that no fact implies, such as presence, in one batch that is not synced. A snapshot that
// began before must be written before, or the rows must not be in it. The last such rows may be lost in a crash: they
// are on disk at the next durability manifest by time. They are no commit that the durability manifest counts.
func (s *Store) SaveRowsUnsynced(realm RealmID, epoch uint64, rows []Row) error {
	st, err := s.claimedRealm(realm)
	if err != nil {
		return err
	}
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	st.snapshotMu.Lock()
	defer st.snapshotMu.Unlock()
	w := rowWriter{s: s, st: st}
	for _, r := range rows {
		if err := w.encode(r); err != nil {
			return err
		}
	}
	b := s.db.NewBatch()
	if err := addRows(b, realm, w.ops); err != nil {
		return err
	}
	if b.Len() > MaxBatch {
		return fmt.Errorf("%w: %d bytes of rows", ErrTooLarge, b.Len())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.checkEpoch(st, epoch); err != nil {
		return err
	}
	if err := s.applyInOrder(queuedBatch{batch: b}); err != nil {
		return err
	}
	s.writtenBytes.Add(uint64(b.Len()))
	s.unsyncedRows.Store(true)
	return b.Close()
}

// ImportRows writes the rows of an imported organization to a claimed realm that is empty. The realm continues after
// number at, as if it had facts up to there. Like a snapshot it happens completely or not at all.
func (s *Store) ImportRows(realm RealmID, epoch uint64, at Seq, rows func(yield func(Row) error) error) error {
	st, err := s.claimedRealm(realm)
	if err != nil {
		return err
	}
	st.snapshotMu.Lock()
	s.mu.Lock()
	if st.last != 0 || epoch != s.epochOf(st) {
		err = fmt.Errorf("%w: realm %d is at number %d, epoch %d", ErrMoved, realm, st.last, s.epochOf(st))
	}
	if err == nil {
		st.importSeq = at
	}
	s.mu.Unlock()
	st.snapshotMu.Unlock()
	if err != nil {
		return err
	}
	err = s.Snapshot(realm, epoch, at, rows)
	s.mu.Lock()
	st.importSeq = 0
	s.mu.Unlock()
	return err
}

// ClearEmptyRealm removes every key of a realm that has no facts or rows: the remains of a failed or interrupted
// import.
func (s *Store) ClearEmptyRealm(realm RealmID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if st := s.realms[realm]; st != nil && (st.last != 0 || st.damage != nil) {
		return fmt.Errorf("%w: realm %d is at number %d", ErrMoved, realm, st.last)
	}
	b := s.db.NewBatch()
	for _, space := range []byte{spaceBodies, spaceRows, spaceStaged, spaceRequest} {
		b.DeleteRange(spaceKey(realm, space), spaceEnd(realm, space), nil)
	}
	return s.commit(b)
}

func (s *Store) claimedRealm(realm RealmID) (*realmState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	st := s.realms[realm]
	if st == nil || st.epoch == 0 && st.damage == nil {
		return nil, fmt.Errorf("%w: realm %d is not claimed", ErrMoved, realm)
	}
	return st, st.damage
}

// nextSnapshotState validates a snapshot's epoch and number. It returns the snapshot's state, with the hash of the
// record at the number, and the facts that are behind the rows from then on.
func (s *Store) nextSnapshotState(st *realmState, epoch uint64, at Seq) (snapshotState, keptFacts, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return snapshotState{}, keptFacts{}, err
	}
	next, behind := snapshotState{seq: at, snapshots: st.snapshot.snapshots + 1}, keptFacts{last: at}
	if err := s.checkEpoch(st, epoch); err != nil {
		return next, behind, err
	}
	if st.importSeq != 0 && at == st.importSeq && st.last == 0 {
		return next, behind, nil // an import: the hash chain begins here
	}
	if at < st.snapshot.seq || at > st.last {
		return next, behind, fmt.Errorf("%w: realm %d can be snapshotted at %d to %d, not at %d",
			ErrMoved, st.id, st.snapshot.seq, st.last, at)
	}
	if n := st.last - st.snapshot.seq; n > 0 {
		behind.bytes = int64(float64(st.journalBytes) * float64(at-st.snapshot.seq) / float64(n))
	}
	var err error
	next.hash, behind.now, err = s.hashAt(st, at)
	return next, behind, err
}

// hashAt returns the hash and the clock reading of the record at a number, which must not be before the rows'. s.mu is
// held.
func (s *Store) hashAt(st *realmState, at Seq) (chain, int64, error) {
	switch at {
	case st.last:
		return st.lastHash, st.lastNow, nil
	case st.snapshot.seq:
		return st.snapshot.hash, 0, nil // these facts are behind the rows already
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: journalKey(st.id, at), UpperBound: journalKey(st.id, at+1)})
	if err != nil {
		return chain{}, 0, s.pebbleError("read journal", err)
	}
	defer it.Close()
	it.First()
	r, _, hash, err := s.readRecord(it, &s.hash, st.id, at)
	return hash, r.Now, err
}

// rowWriter collects changed rows and stages them when they exceed a batch.
type rowWriter struct {
	s  *Store
	st *realmState
	// ops are rows, each as table (2 bytes), length of key, key, and then 0 for a deletion or the length of the value +
	// 1 and the value.
	ops    []byte
	chunks uint32
}

// add adds a row and stages the rows if they exceed a batch.
func (w *rowWriter) add(r Row) error {
	if err := w.encode(r); err != nil || len(w.ops) < w.s.o.SnapshotBatch {
		return err
	}
	return w.stage()
}

// encode appends a row to ops.
func (w *rowWriter) encode(r Row) error {
	if len(r.Key) > MaxKey || len(r.Value) > MaxFact {
		return fmt.Errorf("%w: row of table %d, %d bytes, key of %d", ErrTooLarge, r.Table, len(r.Value), len(r.Key))
	}
	w.ops = binary.BigEndian.AppendUint16(w.ops, r.Table)
	w.ops = binary.AppendUvarint(w.ops, uint64(len(r.Key)))
	w.ops = append(w.ops, r.Key...)
	if r.Value == nil {
		w.ops = append(w.ops, 0)
	} else {
		w.ops = binary.AppendUvarint(w.ops, uint64(len(r.Value))+1)
		w.ops = append(w.ops, r.Value...)
	}
	return nil
}

func (w *rowWriter) stage() error {
	if len(w.ops) == 0 {
		return nil
	}
	s := w.s
	if err := s.waitForSpace(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	setValue(b, stagedKey(w.st.id, w.chunks), w.ops)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.commit(b); err != nil {
		return err
	}
	w.chunks++
	w.ops = w.ops[:0]
	return nil
}

func (w *rowWriter) discardStaged() error {
	if w.chunks == 0 {
		return nil
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if err := w.s.usable(); err != nil {
		return err
	}
	b := w.s.db.NewBatch()
	b.DeleteRange(spaceKey(w.st.id, spaceStaged), spaceEnd(w.st.id, spaceStaged), nil)
	return w.s.commit(b)
}

// commitSnapshot commits a snapshot. It builds its batch before it blocks appends.
func (s *Store) commitSnapshot(st *realmState, next snapshotState, behind keptFacts, ops []byte) error {
	if err := s.waitForSpace(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	if err := addRows(b, st.id, ops); err != nil {
		return err
	}
	setValue(b, headKey(st.id, headSnapshot), next.encode())
	kept, firstKept := st.kept, st.firstKept
	if next.seq > st.snapshot.seq {
		setValue(b, headKey(st.id, headTime), encodeTime(next.seq, behind.now))
		kept, firstKept = s.keptFacts().facts(st, behind)
		b.DeleteRange(journalKey(st.id, 0), journalKey(st.id, firstKept), nil)
		if len(kept)+len(st.kept) > 0 {
			putKept(b, st.id, kept)
		}
	}
	// A request id is kept as long as its fact. When a snapshot deletes the fact, the next snapshot deletes the id.
	forgotten := min(st.snapshot.seq, firstKept-1)
	if err := s.forgetRequests(b, st.id, func(n Seq) bool { return n <= forgotten }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.commit(b); err != nil {
		return err
	}
	if st.last < next.seq { // an import
		st.last, st.lastHash = next.seq, next.hash
	}
	if next.seq == st.last {
		st.journalBytes = 0
	} else if next.seq > st.snapshot.seq {
		// An estimate by the number of facts; exact sizes would need reading them. It decides when the next snapshot is
		// due.
		st.journalBytes = int64(float64(st.journalBytes) * float64(st.last-next.seq) / float64(st.last-st.snapshot.seq))
	}
	st.snapshot, st.kept, st.firstKept = next, kept, firstKept
	return nil
}

func (s *Store) forgetRequests(b *pebble.Batch, realm RealmID, old func(Seq) bool) error {
	it, err := s.db.NewIter(
		&pebble.IterOptions{LowerBound: spaceKey(realm, spaceRequest), UpperBound: spaceEnd(realm, spaceRequest)},
	)
	if err != nil {
		return s.pebbleError("read requests", err)
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		stored, err := it.ValueAndErr()
		if err != nil {
			return s.readError(it.Key(), err)
		}
		v, err := verifyValue(it.Key(), stored)
		if err != nil || len(v) != 8 {
			return s.damaged(it.Key(), "checksum mismatch")
		}
		if old(Seq(binary.BigEndian.Uint64(v))) {
			b.Delete(it.Key(), nil)
		}
	}
	return s.pebbleError("read requests", it.Error())
}

// addRows adds the rows in ops to a batch.
func addRows(b *pebble.Batch, realm RealmID, ops []byte) error {
	bad := errors.New("staged rows cannot be decoded")
	for len(ops) > 0 {
		if len(ops) < 2 {
			return bad
		}
		table := binary.BigEndian.Uint16(ops)
		key, rest, ok := takeLengthPrefixed(ops[2:], 0)
		if !ok {
			return bad
		}
		if len(rest) > 0 && rest[0] == 0 {
			op := b.DeleteDeferred(rowKeyHead + len(key))
			putRowKey(op.Key, realm, table, key)
			op.Finish()
			ops = rest[1:]
			continue
		}
		value, rest, ok := takeLengthPrefixed(rest, 1)
		if !ok {
			return bad
		}
		op := b.SetDeferred(rowKeyHead+len(key), valueHead+len(value))
		putRowKey(op.Key, realm, table, key)
		copy(op.Value[valueHead:], value)
		setChecksum(op.Value, op.Key)
		op.Finish()
		ops = rest
	}
	return nil
}

// takeLengthPrefixed splits off bytes that are preceded by their length plus bias.
func takeLengthPrefixed(ops []byte, bias uint64) (taken, rest []byte, ok bool) {
	n, w := binary.Uvarint(ops)
	if w <= 0 || n < bias || n-bias > uint64(len(ops)-w) {
		return nil, nil, false
	}
	end := w + int(n-bias)
	return ops[w:end], ops[end:], true
}

// applyStagedChunks applies the staged chunks of a committed snapshot to the rows. st.snapshotMu is held.
func (s *Store) applyStagedChunks(st *realmState) error {
	chunks := st.snapshot.stagedChunks
	if chunks == 0 {
		return nil
	}
	first, err := s.firstStagedChunk(st)
	if err != nil {
		return err
	}
	for i := first; i < chunks; i++ {
		if err := s.waitForSpace(); err != nil {
			return err
		}
		if err := s.applyStagedChunk(st, i, i == chunks-1); err != nil {
			return err
		}
	}
	return nil
}

// firstStagedChunk returns the first chunk to apply. A crash can leave any number of the last chunks, but at least one:
// the batch that applies the last chunk also sets their count to 0.
func (s *Store) firstStagedChunk(st *realmState) (uint32, error) {
	first := st.snapshot.stagedChunks
	for first > 0 {
		_, found, err := s.get(stagedKey(st.id, first-1))
		if err != nil {
			return 0, err
		}
		if !found {
			break
		}
		first--
	}
	if first == st.snapshot.stagedChunks {
		return 0, s.damaged(stagedKey(st.id, first-1), "rows of the last snapshot are missing")
	}
	return first, nil
}

func (s *Store) applyStagedChunk(st *realmState, i uint32, last bool) error {
	key := stagedKey(st.id, i)
	ops, found, err := s.get(key)
	if err != nil {
		return err
	}
	if !found {
		return s.damaged(key, "rows of the last snapshot are missing")
	}
	b := s.db.NewBatch()
	if err := addRows(b, st.id, ops); err != nil {
		return s.damaged(key, err.Error())
	}
	b.Delete(key, nil)
	done := st.snapshot // only changed under st.snapshotMu
	done.stagedChunks = 0
	if last {
		setValue(b, headKey(st.id, headSnapshot), done.encode())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.commit(b); err != nil {
		return err
	}
	if last {
		st.snapshot = done
	}
	return nil
}

// finishSnapshots completes snapshots that a crash interrupted: a committed one is applied, an uncommitted one
// discarded.
func (s *Store) finishSnapshots() error {
	for _, st := range s.realms {
		if st.damage != nil {
			continue
		}
		if st.snapshot.stagedChunks > 0 {
			var damage *DamageError
			if err := s.applyStagedChunks(st); errors.As(err, &damage) {
				st.damage = err
			} else if err != nil {
				return err
			}
			continue
		}
		if keep, err := s.keepImport(st); err != nil {
			return err
		} else if keep {
			continue
		}
		it, err := s.db.NewIter(
			&pebble.IterOptions{LowerBound: spaceKey(st.id, spaceStaged), UpperBound: spaceEnd(st.id, spaceStaged)},
		)
		if err != nil {
			return s.pebbleError("open rows", err)
		}
		left := it.First()
		if err := it.Close(); err != nil {
			return s.pebbleError("open rows", err)
		}
		if left {
			w := rowWriter{s: s, st: st, chunks: 1}
			if err := w.discardStaged(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows calls fn with every row of the realm, verified, in the order of tables and keys, as of its last snapshot.
func (s *Store) Rows(realm RealmID, fn func(Row) error) error {
	return s.rowsInRange(realm, spaceKey(realm, spaceRows), spaceEnd(realm, spaceRows), fn)
}

// TableRows calls fn with every row of one table, like Rows.
func (s *Store) TableRows(realm RealmID, table uint16, fn func(Row) error) error {
	return s.rowsInRange(realm, rowKey(realm, table, nil), tableEnd(realm, table), fn)
}

// RowsParallel is like Rows, but calls parallel with the rows of one table, which has most rows, in a goroutine of its
// own.
func (s *Store) RowsParallel(realm RealmID, table uint16, fn, parallel func(Row) error) error {
	return s.withStableRows(realm, func(scan func(from, to []byte, fn func(Row) error) error) error {
		done := make(chan error)
		go func() { done <- scan(rowKey(realm, table, nil), tableEnd(realm, table), parallel) }()
		before := scan(spaceKey(realm, spaceRows), rowKey(realm, table, nil), fn)
		after := scan(tableEnd(realm, table), spaceEnd(realm, spaceRows), fn)
		return errors.Join(before, after, <-done)
	})
}

// rowsAtOneMoment calls fn with every row, verified, as of the realm's last snapshot, and returns the snapshot's
// number. Other snapshots may be written while fn runs.
func (s *Store) rowsAtOneMoment(realm RealmID, fn func(Row) error) (Seq, error) {
	if err := s.acquireReader(); err != nil {
		return 0, err
	}
	defer s.readers.Done()
	s.mu.Lock()
	st := s.realms[realm]
	s.mu.Unlock()
	if st == nil {
		return 0, nil
	}
	st.snapshotMu.Lock() // an iterator that is opened under it sees one whole snapshot
	if st.damage != nil {
		st.snapshotMu.Unlock()
		return 0, st.damage
	}
	at := st.snapshot.seq
	it, err := s.rows.NewIter(
		&pebble.IterOptions{LowerBound: spaceKey(realm, spaceRows), UpperBound: spaceEnd(realm, spaceRows)},
	)
	st.snapshotMu.Unlock()
	if err != nil {
		return 0, s.pebbleError("read rows", err)
	}
	defer it.Close()
	return at, s.eachValue(
		it,
		spaceKey(realm, spaceRows),
		func(key, value []byte) error { return s.passRow(key, value, fn) },
	)
}

// passRow calls fn with the row that a key and a value are.
func (s *Store) passRow(key, value []byte, fn func(Row) error) error {
	if len(key) < rowKeyHead {
		return s.damaged(key, "not a row's key")
	}
	return fn(Row{Table: binary.BigEndian.Uint16(key[5:]), Key: key[rowKeyHead:], Value: value})
}

func tableEnd(realm RealmID, table uint16) []byte {
	if table == math.MaxUint16 {
		return spaceEnd(realm, spaceRows)
	}
	return rowKey(realm, table+1, nil)
}

func (s *Store) rowsInRange(realm RealmID, from, to []byte, fn func(Row) error) error {
	return s.withStableRows(realm,
		func(scan func(from, to []byte, fn func(Row) error) error) error { return scan(from, to, fn) })
}

// withStableRows calls read with a function that scans the rows between two keys. The rows do not change meanwhile.
func (s *Store) withStableRows(
	realm RealmID,
	read func(scan func(from, to []byte, fn func(Row) error) error) error,
) error {
	s.mu.Lock()
	st := s.realms[realm]
	s.mu.Unlock()
	if st == nil {
		return nil
	}
	st.snapshotMu.Lock()
	defer st.snapshotMu.Unlock()
	if st.damage != nil {
		return st.damage
	}
	return read(func(from, to []byte, fn func(Row) error) error {
		return s.scan(from, to, func(key, value []byte) error { return s.passRow(key, value, fn) })
	})
}

// overlayStagedChunks shows a read-only store the rows as if interrupted snapshots had been completed, without writing.
func (s *Store) overlayStagedChunks() error {
	var overlay *pebble.Batch
	for _, st := range s.realms {
		if st.damage != nil || st.snapshot.stagedChunks == 0 {
			continue
		}
		if overlay == nil {
			overlay = s.db.NewIndexedBatch()
			s.rows = overlay
		}
		first, err := s.firstStagedChunk(st)
		if err != nil {
			st.damage = err
			continue
		}
		for i := first; i < st.snapshot.stagedChunks; i++ {
			ops, _, err := s.get(stagedKey(st.id, i))
			if err == nil {
				err = addRows(overlay, st.id, ops)
			}
			if err != nil {
				st.damage = err
				break
			}
		}
	}
	return nil
}

func (s *Store) closeOverlay() error {
	if overlay, ok := s.rows.(*pebble.Batch); ok {
		return overlay.Close()
	}
	return nil
}

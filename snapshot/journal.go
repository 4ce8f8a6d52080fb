package snapshot

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"parley/actors/realm"
)

// Claim durably makes the caller the realm's only writer, if the realm has the epoch that the caller has seen: older
// epochs are rejected from now on. Otherwise it returns ErrMoved. Claiming a new id creates the realm. Claim waits for
// a running snapshot of the realm.
func (s *Store) Claim(realm RealmID, seen uint64) (Claimed, error) {
	if realm == processRealm {
		return Claimed{}, fmt.Errorf("claim realm: %d is not a valid realm id", realm)
	}
	s.mu.Lock()
	st := s.realms[realm]
	if st == nil {
		st = &realmState{id: realm, firstKept: 1}
		s.realms[realm] = st
	}
	s.mu.Unlock()

	st.snapshotMu.Lock()
	defer st.snapshotMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.damage != nil {
		return Claimed{}, st.damage
	}
	if err := s.usable(); err != nil {
		return Claimed{}, err
	}
	if s.replicated {
		return Claimed{}, ErrReplicated
	}
	if err := s.checkSeen(st, seen); err != nil {
		return Claimed{}, err
	}
	b, next := s.db.NewBatch(), s.nextEpoch(st)
	setNumber(b, headKey(realm, headEpoch), next)
	if err := s.commit(b); err != nil {
		return Claimed{}, err
	}
	st.epoch = next
	return Claimed{Epoch: st.epoch, Last: st.last, Rows: st.snapshot.seq}, nil
}

// Bounds returns, without claiming the realm, the last fact that the rows contain and the last fact of the journal.
func (s *Store) Bounds(realm RealmID) (rows, last Seq, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.realms[realm]
	if st == nil {
		return 0, 0, nil
	}
	return st.snapshot.seq, st.last, st.damage
}

// usable returns the reason why the store cannot be written to, if there is one. s.mu is held.
func (s *Store) usable() error {
	if err := s.Err(); err != nil {
		return err
	}
	if s.closed {
		return ErrClosed
	}
	if s.readOnly {
		return ErrReadOnly
	}
	return nil
}

// Put writes a body, or deletes it if Value is nil.
type Put struct{ Key, Value []byte }

// Entry is one addition to a realm's journal: the facts of one turn or of several consecutive ones.
type Entry struct {
	Realm    RealmID
	Epoch    uint64
	After    Seq       // number of the last fact before; the facts of the entry get the following numbers
	Now      int64     // clock reading with which the facts are applied; 0: it is not stored
	Level    uint16    // rule level of the facts; stored with Now
	Requests []Request // Seq 0 is the last fact of the entry
	Facts    [][]byte  // one record each
	Bodies   []Put     // written in the same batch
}

// Record is one fact of a journal, as it is stored.
type Record struct {
	realm.Inputs
	Fact []byte
}

// DuplicateError reports the number under which a request is in the journal. A request id is remembered at least until
// the second snapshot of its realm.
type DuplicateError struct {
	Request string
	Last    Seq // the last fact of the entry with the request
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("request %q is in the journal already, up to number %d", e.Request, e.Last)
}
func (e *DuplicateError) Unwrap() error { return ErrDuplicate }

// Append writes all valid entries with one sync and returns a result for each; nil means durable. An entry is written
// or rejected as a whole. A rejected entry does not affect the others.
func (s *Store) Append(entries []Entry) []error {
	errs := make([]error, len(entries))
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.usable()
	if err == nil && s.replicated {
		err = ErrReplicated
	}
	if err != nil {
		failAll(errs, err)
		return errs
	}
	clear(s.pending)
	b, from := s.db.NewBatch(), 0
	for i := range entries {
		e := &entries[i]
		st, size, err := s.admit(e)
		if err != nil {
			errs[i] = err
			continue
		}
		if !b.Empty() && b.Len()+size > MaxBatch {
			if err := s.commit(b); err != nil {
				failAll(errs[from:i], err)
				failAll(errs[i:], err)
				return errs
			}
			b, from = s.db.NewBatch(), i
		}
		s.addToBatch(b, st, e)
	}
	if b.Empty() {
		b.Close()
		return errs
	}
	if err := s.commit(b); err != nil {
		failAll(errs[from:], err)
	}
	return errs
}

// failAll sets the error of the entries that were valid. Rejected entries keep their error.
func failAll(errs []error, err error) {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
}

// admit validates an entry against the realm's state after the entries before it.
func (s *Store) admit(e *Entry) (*realmState, int, error) {
	st := s.realms[e.Realm]
	if st == nil || st.epoch == 0 {
		return nil, 0, fmt.Errorf("%w: realm %d is not claimed", ErrMoved, e.Realm)
	}
	if st.damage != nil {
		return nil, 0, st.damage
	}
	size, err := sizeOf(e)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range e.Requests {
		last, found, err := s.request(e.Realm, r.ID)
		if err != nil {
			return nil, 0, err
		}
		if found {
			return nil, 0, &DuplicateError{r.ID, last}
		}
	}
	if err := s.checkEpoch(st, e.Epoch); err != nil {
		return nil, 0, err
	}
	if e.After != st.last {
		return nil, 0, fmt.Errorf("%w: realm %d is at number %d, not %d", ErrMoved, e.Realm, st.last, e.After)
	}
	return st, size, nil
}

func sizeOf(e *Entry) (int, error) {
	size := 0
	for _, r := range e.Requests {
		if len(r.ID) > MaxRequest {
			return 0, fmt.Errorf("%w: request id of %d bytes", ErrTooLarge, len(r.ID))
		}
		size += 2*len(r.ID) + valueHead
	}
	for _, f := range e.Facts {
		if len(f) > MaxFact {
			return 0, fmt.Errorf("%w: fact of %d bytes", ErrTooLarge, len(f))
		}
		size += len(f) + recordHead + maxInputsLen + journalKeyLen
	}
	for _, p := range e.Bodies {
		if len(p.Value) > MaxFact || len(p.Key) > MaxKey {
			return 0, fmt.Errorf("%w: body of %d bytes, key of %d", ErrTooLarge, len(p.Value), len(p.Key))
		}
		size += len(p.Key) + len(p.Value) + valueHead
	}
	if size > MaxEntry {
		return 0, fmt.Errorf("%w: entry of %d bytes", ErrTooLarge, size)
	}
	return size, nil
}

// addToBatch adds a valid entry to the batch and advances the realm's state.
func (s *Store) addToBatch(b *pebble.Batch, st *realmState, e *Entry) {
	next, end := 0, st.last+Seq(len(e.Facts)) // next is an index into e.Requests
	for _, fact := range e.Facts {
		st.last++
		r := Record{Inputs: realm.Inputs{Seq: st.last, Now: e.Now, Level: e.Level}, Fact: fact}
		if next < len(e.Requests) && cmp.Or(e.Requests[next].Seq, end) == st.last {
			r.Request = e.Requests[next].ID
			next++
		}
		op := b.SetDeferred(journalKeyLen, r.size())
		putJournalKey(op.Key, e.Realm, st.last)
		st.lastHash = s.hash.put(op.Value, e.Realm, st.lastHash, &r)
		op.Finish()
		st.journalBytes += int64(len(op.Value))
	}
	if len(e.Facts) > 0 {
		st.lastNow = e.Now
	}
	s.facts.Add(uint64(len(e.Facts)))
	for _, p := range e.Bodies {
		if p.Value == nil {
			op := b.DeleteDeferred(5 + len(p.Key))
			putBodyKey(op.Key, e.Realm, p.Key)
			op.Finish()
			continue
		}
		op := b.SetDeferred(5+len(p.Key), valueHead+len(p.Value))
		putBodyKey(op.Key, e.Realm, p.Key)
		copy(op.Value[valueHead:], p.Value)
		setChecksum(op.Value, op.Key)
		op.Finish()
	}
	for _, r := range e.Requests {
		key, last := requestKey(e.Realm, r.ID), cmp.Or(r.Seq, st.last)
		setNumber(b, key, uint64(last))
		s.pending[string(key)] = last
	}
}

func (s *Store) request(realm RealmID, id string) (Seq, bool, error) {
	key := requestKey(realm, id)
	if n, ok := s.pending[string(key)]; ok {
		return n, true, nil
	}
	n, found, err := s.number(key)
	return Seq(n), found, err
}

// FindRequest returns the last fact that a request caused, if its id is remembered. Entries that are not committed yet
// are not found.
func (s *Store) FindRequest(realm RealmID, id string) (Seq, bool, error) {
	if err := s.acquireReader(); err != nil {
		return 0, false, err
	}
	defer s.readers.Done()
	n, found, err := s.number(requestKey(realm, id))
	return Seq(n), found, err
}

// number reads a stored number.
func (s *Store) number(key []byte) (uint64, bool, error) {
	v, found, err := s.get(key)
	if err != nil || !found {
		return 0, false, err
	}
	if len(v) != 8 {
		return 0, false, s.damaged(key, fmt.Sprintf("%d bytes instead of 8", len(v)))
	}
	return binary.BigEndian.Uint64(v), true, nil
}

// get reads and verifies a value. The result belongs to the caller.
func (s *Store) get(key []byte) ([]byte, bool, error) {
	stored, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, s.readError(key, err)
	}
	defer closer.Close()
	v, err := verifyValue(key, stored)
	if err != nil {
		return nil, false, s.damaged(key, err.Error())
	}
	return append(make([]byte, 0, len(v)), v...), true, nil
}

// readError returns the error of reading a key: a DamageError if Pebble found corruption.
func (s *Store) readError(key []byte, err error) error {
	if pebble.IsCorruptionError(err) {
		return s.damagedBy(key, corruptionText(err), err)
	}
	_, _, what := describeKey(key)
	return fmt.Errorf("read %s: %w", what, err)
}

// Tail calls fn with every durable fact after the given number, in order and verified. It stops at fn's first error. It
// returns ErrSnapshotted if some of these facts are only in the rows.
func (s *Store) Tail(realm RealmID, after Seq, fn func(Record) error) error {
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	s.mu.Lock()
	st := s.realms[realm]
	if st == nil {
		s.mu.Unlock()
		return nil
	}
	// An iterator sees the store at one moment. Opened under the lock, it agrees with the numbers.
	last, snap, firstKept, damage := st.last, st.snapshot, st.firstKept, st.damage
	var it *pebble.Iterator
	err := damage
	if err == nil {
		it, err = s.db.NewIter(&pebble.IterOptions{
			LowerBound: journalKey(realm, max(after, 1)), UpperBound: journalKey(realm, last+1),
		})
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer it.Close()
	if after+1 < firstKept {
		return fmt.Errorf("%w: realm %d, its first fact is number %d, facts after %d were requested",
			ErrSnapshotted, realm, firstKept, after)
	}
	if after > last {
		return fmt.Errorf("%w: realm %d ends at number %d, facts after %d were requested", ErrMoved, realm, last, after)
	}
	bytes, err := s.verifyRecords(it, journalPart{realm, after, last, firstKept, snap}, fn)
	if err != nil {
		return err
	}
	if after == snap.seq {
		s.mu.Lock()
		if st.snapshot.seq == snap.seq && st.last == last {
			st.journalBytes = bytes
		}
		s.mu.Unlock()
	}
	return nil
}

// journalPart is the records of a realm after a number, up to the last one.
type journalPart struct {
	realm       RealmID
	after, last Seq
	firstKept   Seq // see realmState
	rows        snapshotState
}

// verifyRecords verifies the records of a part and calls fn with each.
func (s *Store) verifyRecords(it *pebble.Iterator, p journalPart, fn func(Record) error) (bytes int64, err error) {
	var h hasher
	realm, before := p.realm, p.rows.hash
	// The record before the first kept one is deleted. The hash at the rows shows that nothing is wrong in between.
	linked := p.after == p.rows.seq
	it.First()
	if p.after >= p.firstKept {
		// The record before is still in the journal; the next one contains its hash.
		_, _, hash, err := s.readRecord(it, &h, realm, p.after)
		if err != nil {
			return 0, err
		}
		if linked && hash != before {
			return 0, s.damaged(it.Key(), "it is not the fact that the rows contain")
		}
		before, linked = hash, true
		it.Next()
	}
	for next := p.after + 1; next <= p.last; next++ {
		record, follows, this, err := s.readRecord(it, &h, realm, next)
		if err != nil {
			return 0, err
		}
		if linked && follows != before {
			return 0, s.damaged(journalKey(realm, next), "its previous hash does not match")
		}
		if next == p.rows.seq && this != p.rows.hash {
			return 0, s.damaged(journalKey(realm, next), "it is not the fact that the rows contain")
		}
		linked = true
		if err := fn(record); err != nil {
			return 0, err
		}
		bytes += int64(record.size())
		before = this
		it.Next()
	}
	return bytes, nil
}

// readRecord verifies and decodes the record at the iterator, which must have the number n.
func (s *Store) readRecord(
	it *pebble.Iterator,
	h *hasher,
	realm RealmID,
	n Seq,
) (r Record, before, this chain, err error) {
	key := journalKey(realm, n)
	if !it.Valid() {
		if err := it.Error(); err != nil {
			return r, before, this, s.readError(key, err)
		}
		return r, before, this, s.damaged(key, "it is missing, and so is everything after it")
	}
	if string(it.Key()) != string(key) {
		_, _, what := describeKey(it.Key())
		return r, before, this, s.damaged(key, "it is missing; next is "+what)
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return r, before, this, s.readError(key, err)
	}
	r, before, this, err = h.get(value, realm, n)
	if err != nil {
		return r, before, this, s.damaged(key, err.Error())
	}
	return r, before, this, nil
}

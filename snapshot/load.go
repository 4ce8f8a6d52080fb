package snapshot

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// load reads the state of every realm. If one realm is damaged, its error is stored in it, and the others remain
// usable.
func (s *Store) load() error {
	n, _, err := s.number(commitsKey)
	if err != nil {
		return err
	}
	s.commits = n
	if err := s.loadApplied(); err != nil {
		return err
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return s.pebbleError("open data directory", err)
	}
	defer it.Close()
	for ok := it.SeekGE(spaceKey(processRealm+1, 0)); ok; {
		if len(it.Key()) < 5 {
			return s.damaged(it.Key(), "not a key of this store")
		}
		realm := realmOf(it.Key())
		st := &realmState{id: realm}
		st.damage = s.loadRealm(st)
		s.realms[realm] = st
		if realm == ^RealmID(0) {
			break
		}
		ok = it.SeekGE(spaceKey(realm+1, 0))
	}
	return s.pebbleError("open data directory", it.Error())
}

func (s *Store) loadRealm(st *realmState) error {
	var err error
	var found bool
	if st.epoch, found, err = s.number(headKey(st.id, headEpoch)); err != nil {
		return err
	}
	if !found {
		return s.damaged(headKey(st.id, headEpoch), "it is missing")
	}
	if st.snapshot, err = s.readSnapshotState(st.id); err != nil {
		return err
	}
	st.last, st.lastHash, st.firstKept = st.snapshot.seq, st.snapshot.hash, st.snapshot.seq+1
	if st.kept, err = s.readKept(st); err != nil {
		return err
	}

	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: spaceKey(st.id, spaceJournal), UpperBound: spaceEnd(st.id, spaceJournal),
	})
	if err != nil {
		return s.pebbleError("open journal", err)
	}
	defer it.Close()
	if !it.First() {
		return s.pebbleError("open journal", it.Error())
	}
	var h hasher
	if len(it.Key()) == journalKeyLen {
		st.firstKept = min(st.firstKept, Seq(binary.BigEndian.Uint64(it.Key()[5:])))
	}
	if st.firstKept <= st.snapshot.seq {
		more, err := s.checkAtRows(it, &h, st)
		if err != nil || !more {
			return err
		}
	}
	_, before, _, err := s.readRecord(it, &h, st.id, st.snapshot.seq+1)
	if err != nil {
		return err
	}
	if before != st.snapshot.hash {
		return s.damaged(it.Key(), "it does not follow the rows")
	}
	if !it.Last() {
		return s.pebbleError("open journal", it.Error())
	}
	if len(it.Key()) != journalKeyLen {
		return s.damaged(it.Key(), "not a record's key")
	}
	last := Seq(binary.BigEndian.Uint64(it.Key()[5:]))
	r, _, hash, err := s.readRecord(it, &h, st.id, last)
	if err != nil {
		return err
	}
	st.last, st.lastHash, st.lastNow = last, hash, r.Now
	// An estimate; Tail reads the exact sizes.
	st.journalBytes = int64(r.size()) * int64(st.last-st.snapshot.seq)
	return nil
}

// checkAtRows verifies the record at the number of the rows, if facts are kept behind the rows. It moves the iterator
// to the record after it, and reports whether there is one.
func (s *Store) checkAtRows(it *pebble.Iterator, h *hasher, st *realmState) (more bool, err error) {
	it.SeekGE(journalKey(st.id, st.snapshot.seq))
	r, _, hash, err := s.readRecord(it, h, st.id, st.snapshot.seq)
	if err != nil {
		return false, err
	}
	if hash != st.snapshot.hash {
		return false, s.damaged(it.Key(), "it is not the fact that the rows contain")
	}
	st.lastNow = r.Now
	return it.Next(), s.pebbleError("open journal", it.Error())
}

func (s *Store) readSnapshotState(realm RealmID) (snapshotState, error) {
	key := headKey(realm, headSnapshot)
	v, found, err := s.get(key)
	if err != nil || !found {
		return snapshotState{}, err
	}
	st, err := decodeSnapshotState(v)
	if err != nil {
		return st, s.damaged(key, err.Error())
	}
	return st, nil
}

// Realms returns the ids of all realms that were ever claimed, in ascending order.
func (s *Store) Realms() ([]RealmID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	ids := make([]RealmID, 0, len(s.realms))
	for id, st := range s.realms {
		if st.epoch > 0 || st.damage != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Meta returns a small value of the process itself; nil if there is none.
func (s *Store) Meta(key string) ([]byte, error) {
	if err := s.acquireReader(); err != nil {
		return nil, err
	}
	defer s.readers.Done()
	v, _, err := s.get(metaKey(key))
	return v, err
}

// PutMeta durably writes a small value of the process itself; nil deletes it.
func (s *Store) PutMeta(key string, value []byte) error {
	if len(key) > MaxKey || len(value) > MaxFact {
		return fmt.Errorf("%w: value of %d bytes, key of %d", ErrTooLarge, len(value), len(key))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	if value == nil {
		b.Delete(metaKey(key), nil)
	} else {
		setValue(b, metaKey(key), value)
	}
	return s.commit(b)
}

// Body returns a body, which belongs to the caller. The Append that wrote it may not have returned yet.
func (s *Store) Body(realm RealmID, key []byte) ([]byte, bool, error) {
	if err := s.acquireReader(); err != nil {
		return nil, false, err
	}
	defer s.readers.Done()
	return s.get(bodyKey(realm, key))
}

// Bodies calls fn with every body whose key is at least from and less than to, if to is not nil.
func (s *Store) Bodies(realm RealmID, from, to []byte, fn func(key, value []byte) error) error {
	end := spaceEnd(realm, spaceBodies)
	if to != nil {
		end = bodyKey(realm, to)
	}
	return s.scan(bodyKey(realm, from), end, func(key, value []byte) error { return fn(key[5:], value) })
}

// scan calls fn with every value between two keys, verified.
func (s *Store) scan(from, to []byte, fn func(key, value []byte) error) error {
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	it, err := s.rows.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return s.pebbleError("read", err)
	}
	defer it.Close()
	return s.eachValue(it, from, fn)
}

// eachValue calls fn with every value of an iterator, verified. from is where it begins.
func (s *Store) eachValue(it *pebble.Iterator, from []byte, fn func(key, value []byte) error) error {
	for it.First(); it.Valid(); it.Next() {
		stored, err := it.ValueAndErr()
		if err != nil {
			return s.readError(it.Key(), err)
		}
		value, err := verifyValue(it.Key(), stored)
		if err != nil {
			return s.damaged(it.Key(), err.Error())
		}
		if err := fn(it.Key(), value); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return s.readError(from, err)
	}
	return nil
}

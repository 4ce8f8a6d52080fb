package snapshot

import (
	"fmt"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// writeAsleep stores what must be known of an organization that is not in memory, without a sync: after a crash it can
// be missing, and then the organization is loaded at the start. A later claim of the organization makes it invalid. nil
// removes it.
func (s *Store) writeAsleep(id RealmID, epoch uint64, value []byte) error {
	if len(value) > MaxFact {
		return fmt.Errorf("%w: %d bytes of a sleeping organization", ErrTooLarge, len(value))
	}
	st, err := s.claimedRealm(id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.checkEpoch(st, epoch); err != nil {
		return err
	}
	b := s.db.NewBatch()
	if value == nil {
		b.Delete(headKey(id, headAsleep), nil)
	} else {
		setValue(b, headKey(id, headAsleep), value)
	}
	if err := s.applyInOrder(queuedBatch{batch: b}); err != nil {
		return err
	}
	s.unsyncedRows.Store(true)
	return b.Close()
}

// WriteAsleep stores what must be known of a sleeping organization; nil removes it. See Store.writeAsleep.
func (d Disk) WriteAsleep(id realm.ID, epoch uint64, a *realm.Asleep) error {
	if a == nil {
		return d.writeAsleep(id, epoch, nil)
	}
	return d.writeAsleep(id, epoch, codec.EncodeRow(a))
}

// Asleep returns the record of an organization that was not opened since WriteAsleep. It reports false if there is
// nothing, or if the organization has another epoch or facts: then it must be loaded. In a copy of a replicated log the
// epoch changes with every leader and says nothing about this node. An unreadable value counts as none, because it can
// be computed again.
func (d Disk) Asleep(id realm.ID) (a realm.Asleep, ok bool) {
	s := d.Store
	s.mu.Lock()
	st := s.realms[id]
	var epoch uint64
	var last Seq
	anyEpoch := s.replicated
	if st != nil && st.damage == nil {
		epoch, last = s.epochOf(st), st.last
	}
	s.mu.Unlock()
	if epoch == 0 || s.acquireReader() != nil {
		return a, false
	}
	defer s.readers.Done()
	value, found, err := s.get(headKey(id, headAsleep))
	if err != nil || !found {
		return a, false
	}
	if err := codec.Decoder(value)(&a); err != nil {
		s.o.Log.Warn("the state of a sleeping organization cannot be read; the organization is loaded", "realm", id,
			"err", err)
		return realm.Asleep{}, false
	}
	return a, (anyEpoch || a.Epoch == epoch) && a.Seq == last
}

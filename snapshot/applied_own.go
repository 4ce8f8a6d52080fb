package snapshot

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// A new leader of a cluster does not claim each realm: the first entry of its leadership raises the epoch of all realms
// that have facts. This epoch is one value of the whole store, so the entry costs the same for any number of realms.
// The epoch of a realm is the larger one of its own and that of the leadership. A claim of a single realm, for a new
// realm or an import, raises its own above that.

// ownedKey has the epoch of the newest leadership.
var ownedKey = headKey(processRealm, headOwned)

// epochOf returns the epoch of a realm; 0 if it was never claimed. A realm without facts is being created or imported:
// a change of the leader does not end the claim of its creator. s.mu is held.
func (s *Store) epochOf(st *realmState) uint64 {
	if st.epoch == 0 || st.last == 0 {
		return st.epoch
	}
	return max(st.epoch, s.owned)
}

// checkEpoch refuses a writer of a realm that has another epoch. s.mu is held.
func (s *Store) checkEpoch(st *realmState, epoch uint64) error {
	if at := s.epochOf(st); epoch != at {
		return fmt.Errorf("%w: realm %d is at epoch %d, not %d", ErrMoved, st.id, at, epoch)
	}
	return nil
}

// checkSeen refuses a claim by a node that has seen another epoch of a realm. s.mu is held.
func (s *Store) checkSeen(st *realmState, seen uint64) error {
	if seen == AnyEpoch {
		return nil
	}
	return s.checkEpoch(st, seen)
}

// nextEpoch returns the epoch that a claim gives a realm. s.mu is held.
func (s *Store) nextEpoch(st *realmState) uint64 { return 1 + max(st.epoch, s.owned) }

// applyOwn adds the beginning of a leadership to a batch: writers with the epochs before it are refused from then on.
// All copies have the same epochs, and so they come to the same new one. s.mu is held.
func (s *Store) applyOwn(b *pebble.Batch) (LogResult, error) {
	next := s.owned
	for _, st := range s.realms {
		if st.damage != nil {
			return LogResult{}, st.damage
		}
		next = max(next, st.epoch)
	}
	s.owned = next + 1
	setNumber(b, ownedKey, s.owned)
	return LogResult{Claimed: Claimed{Epoch: s.owned}}, nil
}

// Owned returns the same as a claim of a realm by the leader whose leadership has an epoch. The error is an
// ErrMoved if a later leadership has begun.
func (s *Store) Owned(realm RealmID, epoch uint64) (Claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.realms[realm]
	switch {
	case s.owned != epoch:
		return Claimed{}, fmt.Errorf("%w: the leadership with epoch %d has ended; now it is %d", ErrMoved, epoch,
			s.owned)
	case st == nil || st.epoch == 0:
		return Claimed{}, fmt.Errorf("%w: realm %d is not claimed", ErrMoved, realm)
	case st.damage != nil:
		return Claimed{}, st.damage
	}
	return Claimed{Epoch: s.epochOf(st), Last: st.last, Rows: st.snapshot.seq}, nil
}

package snapshot

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Kept says which facts stay in the journal behind the rows, so that a follower that is a little behind can read them:
// those that are within both limits. The age of a fact is the time to the newest fact that the rows contain, by the
// clock readings of the facts.
type Kept struct {
	Bytes int64 // of the records; 0: no facts are kept
	Age   time.Duration
}

// FollowedKept is how many facts stay behind the rows where other nodes may follow: a node that restarts needs these,
// and no rows.
var FollowedKept = Kept{Bytes: 64 << 20, Age: 10 * time.Minute}

// maxBackedUpBytes limits the facts that stay behind the rows for the next backup: a day of 20 messages a second.
const maxBackedUpBytes = 1 << 30

// KeptForBackups returns how many facts stay behind the rows when backups are made in an interval, so that each backup
// has all facts since the one before it, also when it is late by an interval and an hour. For 0 it is Kept{}.
func KeptForBackups(interval time.Duration) Kept {
	if interval <= 0 {
		return Kept{}
	}
	return Kept{Bytes: maxBackedUpBytes, Age: 2*interval + time.Hour}
}

// Or returns the larger limits of both.
func (k Kept) Or(other Kept) Kept {
	return Kept{max(k.Bytes, other.Bytes), max(k.Age, other.Age)}
}

// KeepFacts raises the limits of Options.Kept.
func (s *Store) KeepFacts(k Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.Kept = s.o.Kept.Or(k)
}

func (s *Store) keptFacts() Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Kept
}

// maxKeptGroups limits how many groups of kept facts a realm has. Beyond it neighbours are joined, so a group is
// deleted later than its oldest facts would be.
const maxKeptGroups = 64

// keptFacts is a group of facts behind the rows: those that one snapshot put there.
type keptFacts struct {
	last  Seq   // number of the last one; the first one follows the last one of the group before
	bytes int64 // of their records; may be an estimate
	now   int64 // clock reading of the last one
}

const keptFactsLen = 3 * 8

// facts returns the groups that stay when a snapshot puts another one behind the rows, and the number of the first fact
// that stays.
func (k Kept) facts(st *realmState, behind keptFacts) (kept []keptFacts, first Seq) {
	groups := append(append([]keptFacts{}, st.kept...), behind)
	from, bytes := len(groups), int64(0)
	oldest := behind.now - int64(k.Age/time.Second)
	for from > 0 {
		g := groups[from-1]
		if bytes += g.bytes; k.Bytes == 0 || bytes > k.Bytes || g.now < oldest {
			break
		}
		from--
	}
	switch {
	case from == len(groups):
		return nil, behind.last + 1
	case from > 0:
		first = groups[from-1].last + 1
	default:
		first = st.firstKept
	}
	return joinKept(groups[from:]), first
}

// joinKept joins the smallest neighbours until there are at most maxKeptGroups groups.
func joinKept(groups []keptFacts) []keptFacts {
	for len(groups) > maxKeptGroups {
		least := 0
		for i := range groups[:len(groups)-1] {
			if groups[i].bytes+groups[i+1].bytes < groups[least].bytes+groups[least+1].bytes {
				least = i
			}
		}
		groups[least+1].bytes += groups[least].bytes
		groups = append(groups[:least], groups[least+1:]...)
	}
	return groups
}

func encodeKept(groups []keptFacts) []byte {
	v := make([]byte, 0, len(groups)*keptFactsLen)
	for _, g := range groups {
		v = binary.BigEndian.AppendUint64(v, uint64(g.last))
		v = binary.BigEndian.AppendUint64(v, uint64(g.bytes))
		v = binary.BigEndian.AppendUint64(v, uint64(g.now))
	}
	return v
}

func decodeKept(v []byte) (groups []keptFacts, err error) {
	if len(v)%keptFactsLen != 0 {
		return nil, fmt.Errorf("%d bytes are no list of kept facts", len(v))
	}
	for ; len(v) > 0; v = v[keptFactsLen:] {
		groups = append(groups, keptFacts{
			last:  Seq(binary.BigEndian.Uint64(v)),
			bytes: int64(binary.BigEndian.Uint64(v[8:])),
			now:   int64(binary.BigEndian.Uint64(v[16:])),
		})
	}
	return groups, nil
}

// putKept writes the list of a realm's kept facts. A realm without any has no list.
func putKept(b *pebble.Batch, realm RealmID, groups []keptFacts) {
	if len(groups) == 0 {
		b.Delete(headKey(realm, headKept), nil)
		return
	}
	setValue(b, headKey(realm, headKept), encodeKept(groups))
}

// readKept returns the groups of a realm's kept facts.
func (s *Store) readKept(st *realmState) ([]keptFacts, error) {
	key := headKey(st.id, headKept)
	v, found, err := s.get(key)
	if err != nil || !found {
		return nil, err
	}
	groups, err := decodeKept(v)
	if err != nil {
		return nil, s.damaged(key, err.Error())
	}
	return groups, nil
}

// deleteKept deletes the facts up to a number that are kept behind the rows.
func (s *Store) deleteKept(realm RealmID, upto Seq) error {
	st, err := s.claimedRealm(realm)
	if err != nil {
		return err
	}
	st.snapshotMu.Lock()
	defer st.snapshotMu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	upto = min(upto, st.snapshot.seq)
	if upto < st.firstKept {
		return nil
	}
	kept := st.kept
	for len(kept) > 0 && kept[0].last <= upto {
		kept = kept[1:]
	}
	b := s.db.NewBatch()
	b.DeleteRange(journalKey(realm, 0), journalKey(realm, upto+1), nil)
	putKept(b, realm, kept)
	if err := s.commit(b); err != nil {
		return err
	}
	st.kept, st.firstKept = kept, upto+1
	return nil
}

package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Finding is one thing that is wrong in a data directory.
type Finding struct {
	Realm RealmID
	Seq   Seq    // of a journal record, else 0
	Key   []byte // as stored, nil if it is about no key
	What  string // "number 1841", "row 0a of table 4"
	Where string // the file, when it is known
	Why   string
}

func (f Finding) String() string {
	text := f.Why
	if f.What != "" {
		text = f.What + ": " + text
	}
	if f.Realm != processRealm {
		text = fmt.Sprintf("realm %d, %s", f.Realm, text)
	}
	if f.Where != "" {
		text += " (in " + f.Where + ")"
	}
	return text
}

// Check walks the whole data directory, without changing it, and reports what is not as it was written: lengths and
// positions against the watermark, every record's checksum and hash before it, numbers without gaps, the checksum of
// every row, body and other value, and Pebble's own checksums of the blocks all this is in. It goes on behind what it
// finds as far as there is something to read. The error says why the walk could not be made or finished; findings are
// not errors.
func Check(dir string, o Options, report func(Finding)) error {
	found := func(err error) error {
		var d *DamageError
		if !errors.As(err, &d) {
			return err
		}
		f := Finding{Realm: d.Realm, Seq: d.Seq, Key: d.Key, Where: d.Where, Why: d.Why}
		if d.Key != nil {
			_, _, f.What = describeKey(d.Key)
		}
		report(f)
		return nil
	}
	s, err := open(dir, o, mode{readOnly: true, onDamage: found})
	if err != nil {
		return found(err)
	}
	defer s.Close()
	ids, err := s.Realms()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.checkJournal(id, found); err != nil {
			return err
		}
	}
	return s.checkValues(found)
}

// checkJournal verifies each record against itself and the one before it. Behind damage it goes on with the next record
// that is there.
func (s *Store) checkJournal(realm uint32, found func(error) error) error {
	stand, err := s.readSnapshotState(realm)
	if err != nil {
		if err := found(err); err != nil {
			return err
		}
	}
	it, err := s.db.NewIter(
		&pebble.IterOptions{LowerBound: spaceKey(realm, spaceJournal), UpperBound: spaceEnd(realm, spaceJournal)},
	)
	if err != nil {
		return s.pebbleError("read journal", err)
	}
	defer it.Close()
	var h hasher
	next, before, linked := stand.seq+1, stand.hash, err == nil
	for it.First(); it.Valid(); it.Next() {
		if len(it.Key()) != journalKeyLen {
			if err := found(s.damaged(it.Key(), "not a record's key")); err != nil {
				return err
			}
			continue
		}
		n := binary.BigEndian.Uint64(it.Key()[5:])
		if n != next {
			d := s.damaged(journalKey(realm, next), fmt.Sprintf("it is missing; next is number %d", n))
			if err := found(d); err != nil {
				return err
			}
			linked = false
		}
		next = n + 1
		_, follows, this, err := s.readRecord(it, &h, realm, n)
		if err != nil {
			if err := found(err); err != nil {
				return err
			}
			linked = false
			continue
		}
		if linked && follows != before {
			if err := found(s.damaged(it.Key(), "it follows another record")); err != nil {
				return err
			}
		}
		before, linked = this, true
	}
	if err := it.Error(); err != nil {
		return found(s.readError(journalKey(realm, next), err))
	}
	return nil
}

// checkValues verifies everything but journal records. Each space has an iterator of its own: behind damage inside
// Pebble the next space is still read.
func (s *Store) checkValues(found func(error) error) error {
	from := spaceKey(processRealm, 0)
	for from != nil {
		next, err := s.checkSpace(from, found)
		if err != nil {
			return err
		}
		from = next
	}
	return nil
}

// checkSpace verifies the values from a key to the end of the space that key is found in, and answers where the next
// space begins; nil at the end.
func (s *Store) checkSpace(from []byte, found func(error) error) ([]byte, error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return nil, s.pebbleError("read", err)
	}
	defer it.Close()
	if !it.First() {
		if err := it.Error(); err != nil {
			return nil, found(s.readError(from, err))
		}
		return nil, nil
	}
	if len(it.Key()) < 5 {
		key := append(append([]byte(nil), it.Key()...), 0)
		return key, found(s.damaged(it.Key(), "not a key of this store"))
	}
	realm, space := realmOf(it.Key()), it.Key()[4]
	end := spaceEnd(realm, space)
	for ; space != spaceJournal && it.Valid() && string(it.Key()) < string(end); it.Next() {
		stored, err := it.ValueAndErr()
		if err != nil {
			if err := found(s.readError(it.Key(), err)); err != nil {
				return nil, err
			}
			continue
		}
		_, err = verifyValue(it.Key(), stored)
		if err == nil && !knownSpace(space) {
			err = errors.New("not a key of this store")
		}
		if err != nil {
			if err := found(s.damaged(it.Key(), err.Error())); err != nil {
				return nil, err
			}
		}
	}
	if err := it.Error(); err != nil {
		return end, found(s.readError(from, err))
	}
	return end, nil
}

func knownSpace(space byte) bool {
	switch space {
	case spaceBodies, spaceHead, spaceJournal, spaceMeta, spaceRequest, spaceRows, spaceStaged:
		return true
	}
	return false
}

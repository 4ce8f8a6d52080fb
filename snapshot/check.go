package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Finding is one defect in a data directory.
type Finding struct {
	Realm RealmID
	Seq   Seq    // of a journal record, else 0
	Key   []byte // as stored; nil if the defect is not at a key
	What  string // "number 1841", "row 0a of table 4"
	Where string // the file, if known
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

// Check reads the whole data directory without changing it and reports every difference from the data as written. It
// checks lengths and positions against the durability manifest, the checksum and the previous hash of every record,
// that no number is missing, and the checksum of every row, body and other value. Reading also checks Pebble's own
// block checksums. After a defect Check continues where it can. The error is the reason why it could not finish;
// defects are not errors.
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

// checkJournal verifies each record and its link to the previous one. After a defect it continues with the next record.
func (s *Store) checkJournal(realm RealmID, found func(error) error) error {
	snap, err := s.readSnapshotState(realm)
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
	known := err == nil // the number and hash of the rows
	next, before, linked := snap.seq+1, snap.hash, known
	if it.First() && len(it.Key()) == journalKeyLen {
		if n := Seq(binary.BigEndian.Uint64(it.Key()[5:])); n <= snap.seq { // facts are kept behind the rows
			next, linked = n, false
		}
	}
	for ; it.Valid(); it.Next() {
		if len(it.Key()) != journalKeyLen {
			if err := found(s.damaged(it.Key(), "not a record's key")); err != nil {
				return err
			}
			continue
		}
		n := Seq(binary.BigEndian.Uint64(it.Key()[5:]))
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
			if err := found(s.damaged(it.Key(), "its previous hash does not match")); err != nil {
				return err
			}
		}
		if known && n == snap.seq && this != snap.hash {
			if err := found(s.damaged(it.Key(), "it is not the fact that the rows contain")); err != nil {
				return err
			}
		}
		before, linked = this, true
	}
	if err := it.Error(); err != nil {
		return found(s.readError(journalKey(realm, next), err))
	}
	if next <= snap.seq {
		return found(s.damaged(journalKey(realm, next), "it is missing, and so is everything up to the rows"))
	}
	return nil
}

// checkValues verifies everything except journal records. Each space has its own iterator, so a damaged block does not
// hide the next space.
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

// checkSpace verifies the values from a key to the end of the space that contains the next key. It returns where the
// next space begins, or nil at the end.
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

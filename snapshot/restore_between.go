package snapshot

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// laterDir is the directory, in the data directory, where RestoreBetween unpacks the later backup.
const laterDir = "later.new"

// RestoreBetween makes a data directory of a time, in Unix seconds, between two backups of the same server. It has the
// rows and facts of the earlier one, and those facts of the later one that were recorded up to the time. So the journal
// of the later one must begin at the end of the earlier one; see KeptForBackups. Texts are restored as the later backup
// has them, without those that were deleted in between. The files of both backups are restored.
func RestoreBetween(earlier, later io.Reader, dir string, at int64) error {
	return restoreBetween(earlier, later, dir, at, Options{})
}

func restoreBetween(earlier, later io.Reader, dir string, at int64, o Options) (err error) {
	o = o.withDefaults()
	fs := o.FS
	b, err := openBackup(later)
	if err != nil {
		return fmt.Errorf("restore: the later backup: %w", err)
	}
	if dir, err = canonicalDir(fs, dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := makeDir(fs, dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	unpacked := fs.PathJoin(dir, laterDir)
	if err := fs.RemoveAll(unpacked); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, fs.RemoveAll(unpacked)) }()
	if err := b.unpack(fs, unpacked); err != nil {
		return fmt.Errorf("restore: the later backup: %w", err)
	}
	return restoreAs(earlier, dir, nil, func(s *Store) error {
		newer, err := Open(unpacked, o)
		if err != nil {
			return fmt.Errorf("the later backup: %w", err)
		}
		err = errors.Join(s.LeaveLog(), newer.LeaveLog())
		if err == nil {
			err = s.extendTo(newer, at)
		}
		if err = errors.Join(err, newer.Close()); err != nil {
			return err
		}
		return moveExtraFiles(fs, fs.PathJoin(unpacked, extraFilesDir), fs.PathJoin(s.dir, extraFilesDir))
	}, o)
}

var errOtherServer = errors.New("the backups are of different servers")

// extendTo appends the facts of a newer copy of the store that were recorded up to a time, in Unix seconds.
func (s *Store) extendTo(newer *Store, at int64) error {
	ids, err := newer.Realms()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.extendRealm(newer, id, at); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) extendRealm(newer *Store, id RealmID, at int64) error {
	hash, last := s.LastHash(id)
	end, err := newer.endAt(id, last, at)
	switch {
	case errors.Is(err, ErrSnapshotted) && last == 0:
		return fmt.Errorf("organization %d was imported or created between the two backups, and the later one does "+
			"not have all of its facts: restore one of the backups whole", id)
	case errors.Is(err, ErrSnapshotted):
		return fmt.Errorf("the later backup does not have all facts of organization %d after the earlier one: %w; "+
			"restore to %s or earlier, or to a time after the later backup", id, err, s.lastTime(id))
	case errors.Is(err, ErrMoved):
		return fmt.Errorf("organization %d has fewer facts in the later backup: %w", id, errOtherServer)
	case err != nil || end == last:
		return err
	}
	before, err := newer.hashBefore(id, last+1)
	if err != nil {
		return err
	}
	if before != hash {
		return fmt.Errorf("organization %d has other facts in the later backup: %w", id, errOtherServer)
	}
	claimed, err := s.Claim(id, AnyEpoch)
	if err != nil {
		return err
	}
	for last < end {
		batches, err := Disk{Store: newer}.journalBatches(id, last)
		if err != nil {
			return err
		}
		for i := range batches {
			batches[i].Epoch = claimed.Epoch
			if batches[i].After >= end {
				break
			}
			if err := s.Append(Entries(batches[i : i+1]))[0]; err != nil {
				return err
			}
			last = batches[i].Last()
		}
	}
	return nil
}

// endAt returns the last fact after a number that was recorded up to a time, or the number.
func (s *Store) endAt(id RealmID, after Seq, at int64) (end Seq, err error) {
	end = after
	return end, s.Tail(id, after, func(r Record) error {
		if r.Now <= at {
			end = r.Seq
		}
		return nil
	})
}

// hashBefore returns the hash of the record before a record of the journal, as the record has it.
func (s *Store) hashBefore(id RealmID, n Seq) (Chain, error) {
	key := journalKey(id, n)
	stored, closer, err := s.db.Get(key)
	if err != nil {
		return Chain{}, s.readError(key, err)
	}
	defer closer.Close()
	var h hasher
	_, before, _, err := h.get(stored, id, n)
	if err != nil {
		return Chain{}, s.damaged(key, err.Error())
	}
	return before, nil
}

// lastTime returns the time of the last fact of a realm, for error messages.
func (s *Store) lastTime(id RealmID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Unix(s.realms[id].lastNow, 0).UTC().Format(time.RFC3339)
}

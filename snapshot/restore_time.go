package snapshot

import (
	"fmt"
	"io"
	"math"
	"time"
)

// RestoreAt is Restore with the facts of all organizations up to a time, in Unix seconds, by the clock of the server
// that recorded them. A backup reaches back to its rows: an earlier time needs an older backup.
func RestoreAt(r io.Reader, dir string, at int64) error {
	return restoreAs(r, dir, nil, toTime(at), Options{})
}

// toTime returns the change of a restored store that drops the facts after a time, in Unix seconds.
func toTime(at int64) func(*Store) error {
	return func(s *Store) error {
		if err := s.rewindTo(at); err != nil {
			return err
		}
		return s.LeaveLog()
	}
}

// rewindTo drops the facts of all organizations after a time, in Unix seconds.
func (s *Store) rewindTo(at int64) error {
	ids, err := s.Realms()
	if err != nil {
		return err
	}
	for _, id := range ids {
		end, err := s.lastAt(id, at)
		if err == nil {
			err = s.rewind(id, end)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastAt returns the last fact of a realm that was recorded at a time or before it.
func (s *Store) lastAt(id RealmID, at int64) (end Seq, err error) {
	s.mu.Lock()
	st := s.realms[id]
	rows, last, after := st.snapshot.seq, st.last, max(st.firstKept, 1)-1
	s.mu.Unlock()
	if rows == last && after >= rows && rows > 0 {
		return 0, fmt.Errorf("realm %d: the backup does not say when its last fact was recorded; restore it "+
			"without a time", id)
	}
	end, earliest := 0, int64(math.MaxInt64) // earliest is a time to which the backup can be restored
	err = s.Tail(id, min(after, last), func(r Record) error {
		if r.Now <= at {
			end = r.Seq
		}
		if r.Seq >= rows {
			earliest = min(earliest, r.Now)
		}
		return nil
	})
	if err == nil && end < rows {
		err = fmt.Errorf("realm %d: this backup can be restored to times from %s on; take an older backup", id,
			time.Unix(earliest, 0).UTC().Format(time.RFC3339))
	}
	return end, err
}

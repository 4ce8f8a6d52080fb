package snapshot

import (
	"fmt"
	"io"
	"math"
	"time"
)

// RestoreAt is Restore with the facts of all organizations up to a time, in Unix seconds, by the clock of the server
// that recorded them. A backup reaches back to its rows: an earlier time needs an older backup. An organization whose
// facts are all in the rows, and of which the journal has none, is refused with a TimeUnknownError, unless it is one of
// whole: those are restored as they are in the backup.
func RestoreAt(r io.Reader, dir string, at int64, whole map[RealmID]bool) error {
	return restoreAs(r, dir, nil, toTime(at, whole), Options{})
}

// TimeUnknownError names the organizations of which a backup does not say when their last fact was recorded.
type TimeUnknownError struct{ Realms []RealmID }

func (e *TimeUnknownError) Error() string {
	return fmt.Sprintf("the backup does not say when the last changes of organizations %d were made", e.Realms)
}

// toTime returns the change of a restored store that drops the facts after a time, in Unix seconds.
func toTime(at int64, whole map[RealmID]bool) func(*Store) error {
	return func(s *Store) error {
		if err := s.rewindTo(at, whole); err != nil {
			return err
		}
		return s.LeaveLog()
	}
}

// rewindTo drops the facts of all organizations after a time, in Unix seconds, except those of whole.
func (s *Store) rewindTo(at int64, whole map[RealmID]bool) error {
	ids, err := s.Realms()
	if err != nil {
		return err
	}
	ends, unknown := map[RealmID]Seq{}, &TimeUnknownError{}
	for _, id := range ids {
		end, known, err := s.lastAt(id, at)
		switch {
		case known && err != nil:
			return err
		case known:
			ends[id] = end
		case !whole[id]:
			unknown.Realms = append(unknown.Realms, id)
		}
	}
	if len(unknown.Realms) > 0 {
		return unknown
	}
	for id, end := range ends {
		if err := s.rewind(id, end); err != nil {
			return err
		}
	}
	return nil
}

// lastAt returns the last fact of a realm that was recorded at a time or before it. known is false if all facts are in
// the rows, so that their times are unknown.
func (s *Store) lastAt(id RealmID, at int64) (end Seq, known bool, err error) {
	s.mu.Lock()
	st := s.realms[id]
	rows, last, after := st.snapshot.seq, st.last, max(st.firstKept, 1)-1
	s.mu.Unlock()
	if rows == last && after >= rows && rows > 0 {
		return 0, false, nil
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
	return end, true, err
}

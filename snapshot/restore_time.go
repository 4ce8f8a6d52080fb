package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"
)

// RestoreAt is Restore with the facts of all organizations up to a time, in Unix seconds, by the clock of the server
// that recorded them. A backup reaches back to its rows: an earlier time needs an older backup. An organization that
// was imported, or stored by an older release, and has not changed since, is refused with a TimeUnknownError, unless it
// is one of whole: those are restored as they are in the backup.
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

// encodeTime returns the time of the last fact in the rows, in Unix seconds, and its number.
func encodeTime(seq Seq, now int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(seq)), uint64(now))
}

// rowsTime returns when the last fact in the rows of a realm was recorded; 0: unknown.
func (s *Store) rowsTime(id RealmID, rows Seq) (now int64, err error) {
	key := headKey(id, headTime)
	v, found, err := s.get(key)
	switch {
	case err != nil || !found:
		return 0, err
	case len(v) != 16:
		return 0, s.damaged(key, fmt.Sprintf("%d bytes instead of 16", len(v)))
	case Seq(binary.BigEndian.Uint64(v)) != rows: // an older release has written rows since
		return 0, nil
	}
	return int64(binary.BigEndian.Uint64(v[8:])), nil
}

// lastAt returns the last fact of a realm that was recorded at a time or before it. known is false if all facts are in
// the rows and their times are unknown.
func (s *Store) lastAt(id RealmID, at int64) (end Seq, known bool, err error) {
	s.mu.Lock()
	st := s.realms[id]
	rows, last, after := st.snapshot.seq, st.last, max(st.firstKept, 1)-1
	s.mu.Unlock()
	earliest := int64(math.MaxInt64) // a time to which the backup can be restored
	if rows == last && after >= rows && rows > 0 {
		now, err := s.rowsTime(id, rows)
		if err != nil || now == 0 {
			return 0, err != nil, err
		}
		if earliest = now; now <= at {
			end = rows
		}
	}
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

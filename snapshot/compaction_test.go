package snapshot

import (
	"bytes"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestCompactionsWaitAfterOpen(t *testing.T) {
	fs := vfs.NewMem()
	open := func(delay time.Duration) *Store {
		o := smallOptions(fs)
		o.CompactionDelay = delay
		s, err := Open("data", o)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open(time.Hour)
	c := mustClaim(t, s, 1)
	for i := range Seq(8) { // each makes a table
		mustAppend(t, s,
			Entry{Realm: 1, Epoch: c.Epoch, After: i, Facts: [][]byte{bytes.Repeat([]byte{byte(i)}, 200<<10)}})
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.db.Metrics().Compact.Count; n != 0 {
		t.Errorf("%d merges in the delay", n)
	}
	for i := Seq(8); i < 40; i++ { // more tables than may exist without a compaction, as after many starts in a row
		mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, After: i, Facts: [][]byte{{byte(i)}}})
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)

	s = open(10 * time.Millisecond)
	for end := time.Now().Add(time.Minute); s.db.Metrics().Levels[0].TablesCount > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no compaction after the delay:\n%v", s.db.Metrics())
		}
	}
	if n := len(tail(t, s, 1, 0)); n != 40 {
		t.Errorf("%d facts after the merge", n)
	}
	mustClose(t, s)
}

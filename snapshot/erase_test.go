package snapshot

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestEraseDeleted checks that the bytes of deleted bodies and rows are in no backup after EraseDeleted, and that other
// data stays.
func TestEraseDeleted(t *testing.T) {
	s, err := Open("data", smallOptions(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const gone, kept, row = "JFQXZVWKPLMHRTBD", "WPLXQZTJMKVHBRFD", "ZKXJWQVPHTRDLMFB"
	c := mustClaim(t, s, 1)
	put := func(key, value string) Put { return Put{Key: []byte(key), Value: []byte(value)} }
	mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, Facts: [][]byte{[]byte("one")},
		Bodies: []Put{put("b1", gone), put("b2", kept)}})
	snapshot := func(at Seq, value []byte) {
		t.Helper()
		err := s.Snapshot(1, c.Epoch, at, func(yield func(Row) error) error {
			return yield(Row{Table: 7, Key: []byte("k"), Value: value})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	backup := func() []byte {
		t.Helper()
		var out bytes.Buffer
		if err := s.Backup(&out); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	contains := func(want bool, texts ...string) {
		t.Helper()
		data := backup()
		for _, text := range texts {
			if bytes.Contains(data, []byte(text)) != want {
				t.Errorf("the backup contains %s: %v, want %v", text, !want, want)
			}
		}
	}
	snapshot(1, []byte(row))
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Compact(context.Background(), []byte{0}, []byte{255}, false); err != nil { // now in the last level
		t.Fatal(err)
	}
	contains(true, gone, kept, row)
	mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, After: 1, Facts: [][]byte{[]byte("two")},
		Bodies: []Put{{Key: []byte("b1")}}})
	snapshot(2, nil)
	contains(true, gone, row) // without the compaction, the bytes of deleted values stay
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.EraseDeleted(canceled, 1, 0, []byte("b1"), []byte("b2")); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled compaction returned %v", err)
	}
	if err := s.EraseDeleted(context.Background(), 1, 0, []byte("b1"), []byte("b2")); err != nil {
		t.Fatal(err)
	}
	contains(false, gone, row)
	contains(true, kept)
}

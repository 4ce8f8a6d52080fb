package realm_test

import (
	"bytes"
	"fmt"
	"testing"

	. "parley/actors/realm"
	"parley/snapshot/codec"
)

// A snapshot has the state of the moment it began. Moves, edits, new messages, reactions and deletions before its rows
// are written must not change it.
func TestSnapshotIgnoresLaterChanges(t *testing.T) {
	for before := range 6 { // number of slices that are written before the changes
		s := newTestScene(t)
		var ids []MessageID
		for i := range 700 { // in three blocks; the last one is not full
			ids = append(ids, s.post(s.ann, s.public, []string{"a", "b", "c"}[i%3], "hi"))
		}
		do(s, s.ann, moveToTopic(ids[0], MoveAll, "d")) // some messages have a MessageExtra row already
		want := map[string][]byte{}
		s.Realm.EachRow(func(table uint16, key, row any) {
			want[fmt.Sprint(table, " ", key)] = codec.EncodeRow(row)
		})
		got := map[string][]byte{}
		cut := s.Realm.BeginSnapshot(func(table uint16, key, row any) {
			s.SaveRow(table, key, row)
			k := fmt.Sprint(table, " ", key)
			if _, twice := got[k]; twice {
				t.Errorf("row %s is written twice", k)
			}
			if got[k] = nil; row != nil {
				got[k] = codec.EncodeRow(row)
			}
		})
		slice := func() bool {
			n := 0
			return cut.NextRows(func() bool { n++; return n > 150 })
		}
		for range before {
			slice()
		}
		for _, topic := range []string{"elsewhere", "d"} {
			do(s, s.ann, moveToTopic(ids[0], MoveAll, topic))
		}
		do(s, s.ann, moveToChannel(ids[1], MoveAll, s.private))
		do(s, s.ann, s.editText(ids[0], "edited"))
		do(s, s.bo, AddReaction{Message: ids[0], Name: "wave", NameCode: "1f44b"})
		do(s, s.admin, DeleteMessage{ids[3]})
		s.post(s.ann, s.public, "a", "new")
		for !slice() {
		}
		for k, row := range want {
			if !bytes.Equal(got[k], row) {
				t.Fatalf("after %d slices: row %s was %x and is written as %x", before, k, row, got[k])
			}
		}
		for k, row := range got {
			if row != nil && want[k] == nil {
				t.Fatalf("after %d slices: row %s is written but did not exist when the snapshot began", before, k)
			}
		}
	}
}

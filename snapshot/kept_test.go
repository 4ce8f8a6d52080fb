package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

func openKept(t testing.TB, fs vfs.FS, k Kept) *Store {
	t.Helper()
	o := smallOptions(fs)
	o.Kept = k
	s, err := Open("data", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// appendAt appends one fact at a clock reading and puts it behind the rows.
func appendAt(t testing.TB, s *Store, epoch uint64, n Seq, now int64, size int) {
	t.Helper()
	fact := append([]byte(fmt.Sprintf("fact %d ", n)), bytes.Repeat([]byte("x"), size)...)
	mustAppend(t, s, Entry{Realm: 1, Epoch: epoch, After: n - 1, Now: now, Facts: [][]byte{fact}})
	if err := s.Snapshot(1, epoch, n, yieldRows()); err != nil {
		t.Fatal(err)
	}
}

// firstFact returns the number of the oldest fact that Tail reads.
func firstFact(t testing.TB, s *Store) Seq {
	t.Helper()
	for after := Seq(0); ; after++ {
		next := after + 1
		err := s.Tail(1, after, func(r Record) error {
			if r.Seq != next || !strings.HasPrefix(string(r.Fact), fmt.Sprintf("fact %d ", next)) {
				t.Errorf("fact %d is %q", next, r.Fact)
			}
			next++
			return nil
		})
		if err == nil {
			return after + 1
		}
		if !errors.Is(err, ErrSnapshotted) {
			t.Fatal(err)
		}
	}
}

// Facts stay behind the rows while they are within both limits, and a restart changes nothing of that.
func TestKeptFacts(t *testing.T) {
	fs := vfs.NewMem()
	limits := Kept{Bytes: 10_000, Age: 10 * time.Minute}
	s := openKept(t, fs, limits)
	mustClaim(t, s, 1)
	epoch, n := uint64(1), Seq(0)
	add := func(now int64, size int, want Seq) {
		t.Helper()
		n++
		appendAt(t, s, epoch, n, now, size)
		if got := firstFact(t, s); got != want {
			t.Errorf("after fact %d the first one is %d, want %d", n, got, want)
		}
	}
	add(1000, 10, 1)
	add(1300, 10, 1)
	add(1600, 10, 1) // 10 minutes after the first one
	add(1601, 10, 2)
	mustClose(t, s)
	same(t, "findings", findings(t, fs), []string(nil))
	s = openKept(t, fs, limits)
	same(t, "the first fact after opening", firstFact(t, s), 2)
	same(t, "claim", mustClaim(t, s, 1), Claimed{Epoch: 2, Last: 4, Rows: 4})
	epoch = 2
	add(1700, 4000, 2)
	add(1700, 5500, 2)
	add(1700, 4000, 6) // with fact 5 it is more than the limit
	add(900, 10, 6)    // the clock was set back
	mustAppend(t, s, Entry{Realm: 1, Epoch: 2, After: 8, Now: 5000, Facts: facts("fact 9 ", "fact 10 ")})
	same(t, "facts behind and after the rows", firstFact(t, s), 6)
	mustClose(t, s)
	s = openKept(t, fs, Kept{})
	same(t, "facts after another start", firstFact(t, s), 6)
	same(t, "claim", mustClaim(t, s, 1), Claimed{Epoch: 3, Last: 10, Rows: 8})
	if err := s.Snapshot(1, 3, 9, yieldRows()); err != nil {
		t.Fatal(err)
	}
	same(t, "without limits", firstFact(t, s), 10)
	mustClose(t, s)
	same(t, "findings", findings(t, fs), []string(nil))
}

// The list of kept facts has a bounded length, however small the snapshots are.
func TestKeptFactsAreGrouped(t *testing.T) {
	s := openKept(t, vfs.NewMem(), Kept{Bytes: 1 << 20, Age: time.Hour})
	defer s.Close()
	mustClaim(t, s, 1)
	for n := Seq(1); n <= 3*maxKeptGroups; n++ {
		appendAt(t, s, 1, n, 1000, 10)
	}
	if n := len(s.realms[1].kept); n != maxKeptGroups {
		t.Errorf("%d groups, want %d", n, maxKeptGroups)
	}
	same(t, "the first fact", firstFact(t, s), 1)
}

// A request id is known as long as its fact is kept.
func TestRequestsOfKeptFacts(t *testing.T) {
	s := openKept(t, vfs.NewMem(), Kept{Bytes: 1 << 20, Age: time.Minute})
	defer s.Close()
	mustClaim(t, s, 1)
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Now: 1000, Requests: []Request{{ID: "r"}}, Facts: facts("fact 1 ")})
	again := func() error {
		return s.Append([]Entry{{Realm: 1, Epoch: 1, After: s.realms[1].last, Requests: []Request{{ID: "r"}},
			Facts: facts("again")}})[0]
	}
	for n := Seq(2); n < 5; n++ {
		appendAt(t, s, 1, n, 1000, 1)
		if err := again(); !errors.Is(err, ErrDuplicate) {
			t.Errorf("after fact %d: %v", n, err)
		}
	}
	appendAt(t, s, 1, 5, 2000, 1)
	appendAt(t, s, 1, 6, 2000, 1)
	if err := again(); err != nil {
		t.Errorf("after its fact was deleted: %v", err)
	}
}

// EraseDeleted leaves no fact up to its number, so that nothing of a purged message stays in the journal.
func TestEraseKeptFacts(t *testing.T) {
	fs := vfs.NewMem()
	s := openKept(t, fs, Kept{Bytes: 1 << 20, Age: time.Hour})
	mustClaim(t, s, 1)
	for n := Seq(1); n <= 4; n++ {
		appendAt(t, s, 1, n, 1000, 10)
	}
	backup := func() string {
		var out bytes.Buffer
		if err := s.Backup(&out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if !strings.Contains(backup(), "fact 2 x") {
		t.Error("a backup does not have the kept facts")
	}
	if err := s.EraseDeleted(context.Background(), 1, 3, []byte("a"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	same(t, "the first fact", firstFact(t, s), 4)
	if got := backup(); strings.Contains(got, "fact 3 x") || !strings.Contains(got, "fact 4 x") {
		t.Error("the backup has erased facts, or not the others")
	}
	mustClose(t, s)
	same(t, "findings", findings(t, fs), []string(nil))
	s = openKept(t, fs, Kept{Bytes: 1 << 20, Age: time.Hour})
	defer s.Close()
	same(t, "the first fact after opening", firstFact(t, s), 4)
}

// Damage in and after kept facts is found by a check, and where it concerns the state, by opening.
func TestDamagedKeptFacts(t *testing.T) {
	forged := func(n Seq, before chain) func(*pebble.DB) {
		return func(db *pebble.DB) {
			var h hasher
			v := make([]byte, recordHead+1)
			h.put(v, 1, before, &Record{Inputs: realm.Inputs{Seq: n}, Fact: []byte("x")})
			db.Set(journalKey(1, n), v, pebble.Sync)
		}
	}
	remove := func(n Seq) func(*pebble.DB) {
		return func(db *pebble.DB) { db.Delete(journalKey(1, n), pebble.Sync) }
	}
	for _, c := range []struct {
		what         string
		spoil        func(*pebble.DB)
		check, claim string // claim "": the realm can be used
		tail         string // error of Tail after fact 1
	}{
		{"a kept fact is missing", remove(3), "number 3: it is missing; next is number 4", "",
			"number 3"},
		{"a kept fact is forged", forged(3, chain{1}), "number 3: its previous hash does not match", "", "number 3"},
		{"the first kept fact is forged", forged(2, chain{1}), "number 3: its previous hash does not match", "",
			"number 3"},
		{"the fact at the rows is forged", forged(4, chain{1}), "number 4: it is not the fact that the rows contain",
			"number 4", "number 4"},
		{"the fact at the rows is missing", remove(4), "number 4: it is missing; next is number 5", "number 4",
			"number 4"},
		{"the fact after the rows is missing", remove(5), "number 5: it is missing; next is number 6", "number 5",
			"number 5"},
		{"the end of the kept facts is missing", func(db *pebble.DB) {
			db.DeleteRange(journalKey(1, 4), journalKey(1, 7), pebble.Sync)
		}, "number 4: it is missing, and so is everything up to the rows", "number 4", "number 4"},
		{"the list", func(db *pebble.DB) { db.Set(headKey(1, headKept), []byte("?"), pebble.Sync) },
			"list of kept facts: too short", "list of kept facts", "list of kept facts"},
	} {
		t.Run(c.what, func(t *testing.T) {
			fs := vfs.NewMem()
			s := openKept(t, fs, Kept{Bytes: 1 << 20, Age: time.Minute})
			mustClaim(t, s, 1)
			for n, now := range []int64{1000, 2000, 2000, 2000} { // fact 1 is not kept
				appendAt(t, s, 1, Seq(n+1), now, 1)
			}
			mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: 4, Now: 2000, Facts: facts("fact 5 ", "fact 6 ")})
			mustClose(t, s)
			editPebble(t, fs, c.spoil)
			if found := strings.Join(findings(t, fs), "\n"); !strings.Contains(found, c.check) {
				t.Errorf("check found\n%s\nwithout %q", found, c.check)
			}
			o := smallOptions(fs)
			o.AcceptLoss = true
			s, err := Open("data", o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Claim(1, AnyEpoch)
			if c.claim == "" && err != nil || c.claim != "" && (err == nil || !strings.Contains(err.Error(), c.claim)) {
				t.Errorf("claim: %v, want %q", err, c.claim)
			}
			err = s.Tail(1, 1, func(Record) error { return nil })
			var d *DamageError
			if !errors.As(err, &d) || !strings.Contains(err.Error(), c.tail) {
				t.Errorf("tail: %v, want %q", err, c.tail)
			}
		})
	}
}

// The list of kept facts on disk must not change.
func TestKeptFormat(t *testing.T) {
	list := []keptFacts{{last: 1841, bytes: 77, now: 1795451045}, {last: 1850, bytes: 5, now: 1795451046}}
	const pinned = "0000000000000731000000000000004d000000006b0468a5" +
		"000000000000073a0000000000000005000000006b0468a6"
	if got := fmt.Sprintf("%x", encodeKept(list)); got != pinned {
		t.Errorf("%s, pinned is %s", got, pinned)
	}
	got, err := decodeKept(encodeKept(list))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(list) {
		t.Errorf("%v decodes to %v, %v", list, got, err)
	}
}

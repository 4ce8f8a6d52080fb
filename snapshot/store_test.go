package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func smallOptions(fs vfs.FS) Options {
	return Options{FS: fs, Cache: 1 << 20, MemTable: 256 << 10, MarkInterval: -1}
}

func mustOpen(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("data", smallOptions(fs))
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func mustClaim(t testing.TB, s *Store, realm RealmID) Claimed {
	t.Helper()
	c, err := s.Claim(realm, AnyEpoch)
	if err != nil {
		t.Fatalf("claim %d: %v", realm, err)
	}
	return c
}

func facts(texts ...string) [][]byte {
	var out [][]byte
	for _, text := range texts {
		out = append(out, []byte(text))
	}
	return out
}

func mustAppend(t testing.TB, s *Store, entries ...Entry) {
	t.Helper()
	for i, err := range s.Append(entries) {
		if err != nil {
			t.Fatalf("append entry %d: %v", i, err)
		}
	}
}

func tail(t testing.TB, s *Store, realm RealmID, after Seq) []string {
	t.Helper()
	var out []string
	err := s.Tail(realm, after, func(r Record) error {
		out = append(out, fmt.Sprintf("%d %s", r.Seq, r.Fact))
		return nil
	})
	if err != nil {
		t.Fatalf("tail: %v", err)
	}
	return out
}

func rows(t testing.TB, s *Store, realm RealmID) []string {
	t.Helper()
	var out []string
	if err := s.Rows(realm, func(r Row) error {
		out = append(out, fmt.Sprintf("%d %s=%s", r.Table, r.Key, r.Value))
		return nil
	}); err != nil {
		t.Fatalf("rows: %v", err)
	}
	return out
}

func yieldRows(rs ...Row) func(func(Row) error) error {
	return func(yield func(Row) error) error {
		for _, r := range rs {
			if err := yield(r); err != nil {
				return err
			}
		}
		return nil
	}
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); g != w {
		t.Fatalf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func TestReadBackAfterReopen(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs)
	c := mustClaim(t, s, 3)
	same(t, "first claim", c, Claimed{Epoch: 1})
	mustAppend(
		t,
		s,
		Entry{
			Realm:  3,
			Epoch:  1,
			Facts:  facts("a", "b"),
			Bodies: []Put{{[]byte("m1"), []byte("hello")}, {[]byte("m2"), []byte("there")}},
		},
		Entry{Realm: 3, Epoch: 1, After: 2, Facts: facts("c"), Bodies: []Put{{[]byte("m1"), nil}}},
	)
	if err := s.PutMeta("server", []byte("id")); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	s = mustOpen(t, fs)
	same(t, "second claim", mustClaim(t, s, 3), Claimed{Epoch: 2, Last: 3})
	same(t, "tail", tail(t, s, 3, 0), []string{"1 a", "2 b", "3 c"})
	same(t, "tail after 2", tail(t, s, 3, 2), []string{"3 c"})
	same(t, "tail after the last", len(tail(t, s, 3, 3)), 0)
	if _, found, err := s.Body(3, []byte("m1")); found || err != nil {
		t.Fatalf("a deleted body still exists: %v %v", found, err)
	}
	text, found, err := s.Body(3, []byte("m2"))
	if !found || err != nil || string(text) != "there" {
		t.Fatalf("body: %q %v %v", text, found, err)
	}
	if _, found, _ := s.Body(4, []byte("m2")); found {
		t.Fatal("a body is visible in another realm")
	}
	v, err := s.Meta("server")
	if err != nil || string(v) != "id" {
		t.Fatalf("meta: %q %v", v, err)
	}
	if v, err := s.Meta("nothing"); v != nil || err != nil {
		t.Fatalf("absent meta: %q %v", v, err)
	}
	ids, err := s.Realms()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "realms", ids, []RealmID{3})
}

func TestBodiesBetween(t *testing.T) {
	s := OpenMemory()
	defer s.Close()
	c := mustClaim(t, s, 1)
	var puts []Put
	for i := range 10 {
		puts = append(puts, Put{fmt.Appendf(nil, "%02d", i), fmt.Appendf(nil, "text %d", i)})
	}
	mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, Facts: facts("x"), Bodies: puts})
	list := func(from, to []byte) (keys []string) {
		if err := s.Bodies(1, from, to, func(k, v []byte) error {
			keys = append(keys, string(k))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	same(t, "3 to 6", list([]byte("03"), []byte("06")), []string{"03", "04", "05"})
	same(t, "8 to the end", list([]byte("08"), nil), []string{"08", "09"})
	same(t, "all", len(list(nil, nil)), 10)
}

func TestEntryOutOfOrderIsRejectedAlone(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs)
	mustClaim(t, s, 1)
	mustClaim(t, s, 2)
	old := mustClaim(t, s, 2).Epoch - 1
	errs := s.Append([]Entry{
		{Realm: 1, Epoch: 1, Facts: facts("a")},
		{Realm: 2, Epoch: old, Facts: facts("of an old owner")},
		{Realm: 1, Epoch: 1, After: 0, Facts: facts("number is taken", "x")},
		{Realm: 1, Epoch: 1, After: 1, Facts: facts("b")},
		{Realm: 2, Epoch: old + 1, Facts: facts("c")},
		{Realm: 9, Epoch: 0, Facts: facts("realm 9 is not claimed")},
		{Realm: 1, Epoch: 1, After: 2, Facts: [][]byte{make([]byte, MaxFact+1)}},
	})
	for i, want := range []error{nil, ErrMoved, ErrMoved, nil, nil, ErrMoved, ErrTooLarge} {
		if !errors.Is(errs[i], want) {
			t.Errorf("entry %d: %v, want %v", i, errs[i], want)
		}
	}
	mustClose(t, s)
	s = mustOpen(t, fs)
	same(t, "realm 1", tail(t, s, 1, 0), []string{"1 a", "2 b"})
	same(t, "realm 2", tail(t, s, 2, 0), []string{"1 c"})
}

func TestARequestIsAcceptedOnce(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs)
	mustClaim(t, s, 1)
	errs := s.Append([]Entry{
		{Realm: 1, Epoch: 1, Requests: []Request{{ID: "r1"}}, Facts: facts("a", "b")},
		{Realm: 1, Epoch: 1, After: 2, Requests: []Request{{ID: "r1"}}, Facts: facts("again")},
	})
	var dup *DuplicateError
	if errs[0] != nil || !errors.As(errs[1], &dup) || dup.Last != 2 {
		t.Fatalf("same batch: %v", errs)
	}
	mustClose(t, s)
	s = mustOpen(t, fs)
	c := mustClaim(t, s, 1)
	again := []Entry{{Realm: 1, Epoch: c.Epoch, After: 2, Requests: []Request{{ID: "r1"}}, Facts: facts("again")}}
	if err := s.Append(again)[0]; !errors.Is(err, ErrDuplicate) {
		t.Fatalf("after a restart: %v", err)
	}
	// The id is remembered after one snapshot and forgotten after the second.
	if err := s.Snapshot(1, c.Epoch, 2, yieldRows()); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(again)[0]; !errors.Is(err, ErrDuplicate) {
		t.Fatalf("after a snapshot: %v", err)
	}
	if err := s.Snapshot(1, c.Epoch, 2, yieldRows()); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(again)[0]; err != nil {
		t.Fatalf("after two snapshots: %v", err)
	}
}

func TestSnapshot(t *testing.T) {
	for _, batch := range []int{1, 20, 1 << 20} {
		t.Run(fmt.Sprintf("batch of %d bytes", batch), func(t *testing.T) {
			fs := vfs.NewMem()
			o := smallOptions(fs)
			o.SnapshotBatch = batch
			s, err := Open("data", o)
			if err != nil {
				t.Fatal(err)
			}
			mustClaim(t, s, 1)
			mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a", "b", "c", "d")})
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(s.Snapshot(1, 1, 2, yieldRows(
				Row{
					Table: 1,
					Key:   []byte("k"),
					Value: []byte("v"),
				},
				Row{Table: 1, Key: []byte("gone"), Value: []byte("soon")},
				Row{Table: 2, Key: nil, Value: []byte("no key")},
				Row{Table: 2, Key: []byte("empty"), Value: []byte{}},
			)))
			must(s.Snapshot(1, 1, 3, yieldRows(Row{Table: 1, Key: []byte("gone"), Value: nil},
				Row{Table: 1, Key: []byte("k"), Value: []byte("w")})))
			want := []string{"1 k=w", "2 =no key", "2 empty="}
			same(t, "rows", rows(t, s, 1), want)
			same(t, "tail", tail(t, s, 1, 3), []string{"4 d"})
			if err := s.Tail(1, 1, func(Record) error { return nil }); !errors.Is(err, ErrSnapshotted) {
				t.Fatalf("tail of replaced facts: %v", err)
			}
			mustClose(t, s)

			s = mustOpen(t, fs)
			same(t, "claim", mustClaim(t, s, 1), Claimed{Epoch: 2, Last: 4, Rows: 3})
			same(t, "rows after opening", rows(t, s, 1), want)
			same(t, "tail after opening", tail(t, s, 1, 3), []string{"4 d"})
			must(s.Snapshot(1, 2, 4, yieldRows()))
			mustAppend(t, s, Entry{Realm: 1, Epoch: 2, After: 4, Facts: facts("e")})
			same(t, "the chain continues", tail(t, s, 1, 4), []string{"5 e"})
		})
	}
}

func TestSnapshotThatFailsChangesNothing(t *testing.T) {
	fs := vfs.NewMem()
	o := smallOptions(fs)
	o.SnapshotBatch = 10
	s, err := Open("data", o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustClaim(t, s, 1)
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a", "b")})
	broken := errors.New("broken")
	err = s.Snapshot(1, 1, 2, func(yield func(Row) error) error {
		for i := range 20 {
			if err := yield(Row{Table: 1, Key: fmt.Appendf(nil, "k%d", i), Value: []byte("value")}); err != nil {
				return err
			}
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	same(t, "rows", len(rows(t, s, 1)), 0)
	same(t, "tail", tail(t, s, 1, 0), []string{"1 a", "2 b"})
	if err := s.Snapshot(1, 1, 1, yieldRows(Row{Table: 1, Key: []byte("k"), Value: []byte("v")})); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"old epoch":       s.Snapshot(1, 0, 2, yieldRows()),
		"after the last":  s.Snapshot(1, 1, 3, yieldRows()),
		"before the rows": s.Snapshot(1, 1, 0, yieldRows()),
		"unclaimed realm": s.Snapshot(2, 1, 0, yieldRows()),
	} {
		if !errors.Is(err, ErrMoved) {
			t.Errorf("%s: %v", what, err)
		}
	}
	same(t, "rows", rows(t, s, 1), []string{"1 k=v"})
}

func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	if !errors.Is(err, ErrInUse) ||
		!strings.Contains(err.Error(), "data directory "+dir+" is in use by another parley") {
		t.Fatalf("second open: %v", err)
	}
	mustClose(t, s)
	s, err = Open(dir, Options{})
	if err != nil {
		t.Fatalf("open after close: %v", err)
	}
	mustClose(t, s)
}

func TestClosedStoreRefuses(t *testing.T) {
	s := OpenMemory()
	mustClaim(t, s, 1)
	mustClose(t, s)
	mustClose(t, s)
	_, claim := s.Claim(1, AnyEpoch)
	_, meta := s.Meta("x")
	for what, err := range map[string]error{
		"append": s.Append([]Entry{{Realm: 1, Epoch: 1}})[0], "claim": claim, "meta": meta,
		"tail": s.Tail(1, 0, nil), "rows": s.Rows(1, nil), "snapshot": s.Snapshot(1, 1, 0, yieldRows()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestLargeAppendsAreSplit(t *testing.T) {
	s := OpenMemory()
	defer s.Close()
	mustClaim(t, s, 1)
	big := bytes.Repeat([]byte("x"), MaxFact)
	var entries []Entry
	for i := range 10 {
		entries = append(entries, Entry{Realm: 1, Epoch: 1, After: Seq(i), Facts: [][]byte{big}})
	}
	mustAppend(t, s, entries...)
	if n := len(tail(t, s, 1, 0)); n != 10 {
		t.Fatalf("%d of 10 facts", n)
	}
}

func TestImportRows(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := mustOpen(t, fs)
	mustClaim(t, s, 1)
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, Facts: facts("a")})
	rows := yieldRows(Row{Table: 1, Key: []byte("k"), Value: []byte("v")})
	if err := s.ImportRows(1, 1, 9, rows); !errors.Is(err, ErrMoved) {
		t.Errorf("over facts: %v", err)
	}
	if err := s.ClearEmptyRealm(1); !errors.Is(err, ErrMoved) {
		t.Errorf("facts can be cleared: %v", err)
	}
	mustClaim(t, s, 2)
	if err := s.ImportRows(2, 7, 9, rows); !errors.Is(err, ErrMoved) {
		t.Errorf("under another epoch: %v", err)
	}
	if err := s.Append([]Entry{{Realm: 2, Epoch: 1, Bodies: []Put{{[]byte("left"), []byte("over")}}}})[0]; err != nil {
		t.Fatal(err)
	}
	if err := s.ClearEmptyRealm(2); err != nil {
		t.Fatal(err)
	}
	if err := s.ImportRows(2, 1, 9, rows); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, Entry{Realm: 2, Epoch: 1, After: 9, Facts: facts("continued")})
	want := dumpStore(s)
	if strings.Contains(want, "left over") {
		t.Error("a body was not cleared")
	}
	crashed := mustOpen(t, fs.CrashClone(vfs.CrashCloneCfg{}))
	same(t, "contents", dumpStore(crashed), want)
	same(t, "claim", mustClaim(t, crashed, 2), Claimed{Epoch: 2, Last: 10, Rows: 9})
	mustClose(t, crashed)
	mustClose(t, s)
	same(t, "findings", len(findings(t, fs)), 0)
}

package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// newFilledStore returns a store with two realms, rows, bodies, facts after the rows, and a meta value.
func newFilledStore(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	s := mustOpen(t, fs)
	for realm := RealmID(1); realm <= 2; realm++ {
		mustClaim(t, s, realm)
		for n := range Seq(6) {
			mustAppend(t, s, Entry{
				Realm:    realm,
				Epoch:    1,
				After:    n,
				Requests: []Request{{ID: fmt.Sprintf("r%d", n)}},
				Facts:    facts(fmt.Sprintf("fact %d", n+1)),
				Bodies:   []Put{{fmt.Appendf(nil, "m%d", n), fmt.Appendf(nil, "text %d of %d", n, realm)}},
			})
			if n == 3 {
				if err := s.Snapshot(realm, 1, 3, yieldRows(
					Row{Table: 1, Key: []byte("a"), Value: []byte("row a")},
					Row{Table: 7, Key: []byte("b"), Value: []byte("row b")})); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := s.PutMeta("realms", []byte("1 2")); err != nil {
		t.Fatal(err)
	}
	return s
}

// dumpStore returns everything a store contains as text, including errors.
func dumpStore(s *Store) string {
	var b strings.Builder
	ids, err := s.Realms()
	fmt.Fprintln(&b, ids, err)
	for _, id := range ids {
		s.mu.Lock()
		epoch, after := s.realms[id].epoch, s.realms[id].snapshot.seq
		s.mu.Unlock()
		fmt.Fprintf(&b, "realm %d epoch %d\n", id, epoch)
		fmt.Fprintln(&b, s.Tail(id, after, func(r Record) error {
			fmt.Fprintf(&b, "fact %d %s\n", r.Seq, r.Fact)
			return nil
		}))
		fmt.Fprintln(&b, s.Rows(id, func(r Row) error {
			if r.Table == unsyncedTable {
				return nil
			}
			fmt.Fprintf(&b, "row %d %s %s\n", r.Table, r.Key, r.Value)
			return nil
		}))
		fmt.Fprintln(&b, s.Bodies(id, nil, nil, func(k, v []byte) error {
			fmt.Fprintf(&b, "body %s %s\n", k, v)
			return nil
		}))
	}
	v, err := s.Meta("realms")
	fmt.Fprintf(&b, "meta %s %v\n", v, err)
	return b.String()
}

func findings(t testing.TB, fs vfs.FS) []string {
	t.Helper()
	var out []string
	if err := Check("data", smallOptions(fs), func(f Finding) { out = append(out, f.String()) }); err != nil {
		t.Fatalf("check: %v", err)
	}
	return out
}

func TestBackupAndRestore(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	want := dumpStore(s)
	var file bytes.Buffer
	if err := s.Backup(&file); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: 6, Facts: facts("after the backup")})

	other := vfs.NewMem()
	if err := restore(bytes.NewReader(file.Bytes()), "data", nil, smallOptions(other)); err != nil {
		t.Fatal(err)
	}
	same(t, "findings", len(findings(t, other)), 0)
	r := mustOpen(t, other)
	same(t, "contents", dumpStore(r), want)
	c := mustClaim(t, r, 1)
	same(t, "claim", c, Claimed{Epoch: 2, Last: 6, Rows: 3})
	mustAppend(t, r, Entry{Realm: 1, Epoch: 2, After: 6, Facts: facts("continued")})
	mustClose(t, r)

	if err := restore(bytes.NewReader(file.Bytes()), "data", nil, smallOptions(other)); err == nil ||
		!strings.Contains(err.Error(), "already contains a store") {
		t.Fatalf("restore into a directory with a store: %v", err)
	}
}

func TestRestoreUpTo(t *testing.T) {
	s := newFilledStore(t, vfs.NewMem())
	var file bytes.Buffer
	if err := s.Backup(&file); err != nil {
		t.Fatal(err)
	}
	fs := vfs.NewMem()
	if err := restore(bytes.NewReader(file.Bytes()), "data", map[RealmID]Seq{2: 5}, smallOptions(fs)); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, fs)
	same(t, "realm 1", tail(t, r, 1, 3), []string{"4 fact 4", "5 fact 5", "6 fact 6"})
	same(t, "realm 2", tail(t, r, 2, 3), []string{"4 fact 4", "5 fact 5"})
	c := mustClaim(t, r, 2)
	mustAppend(
		t,
		r,
		Entry{Realm: 2, Epoch: c.Epoch, After: 5, Requests: []Request{{ID: "r5"}}, Facts: facts("another 6")},
	)
	same(t, "realm 2 continues", tail(t, r, 2, 5), []string{"6 another 6"})
	mustClose(t, r)

	for upTo, want := range map[Seq]string{2: "realm 2 can end at 3 to 6", 7: "realm 2 can end at 3 to 6"} {
		fs := vfs.NewMem()
		err := restore(bytes.NewReader(file.Bytes()), "data", map[RealmID]Seq{2: upTo}, smallOptions(fs))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("up to %d: %v", upTo, err)
		}
		if _, err := fs.Stat("data/store"); err == nil {
			t.Errorf("up to %d: a refused restore left a store", upTo)
		}
	}
}

func TestDamagedBackupIsRefused(t *testing.T) {
	s := newFilledStore(t, vfs.NewMem())
	want := dumpStore(s)
	var file bytes.Buffer
	if err := s.Backup(&file); err != nil {
		t.Fatal(err)
	}
	try := func(what string, data []byte) {
		fs := vfs.NewMem()
		if err := restore(bytes.NewReader(data), "data", nil, smallOptions(fs)); err != nil {
			return
		}
		r, err := Open("data", smallOptions(fs))
		if err != nil {
			t.Errorf("%s: restored, but does not open: %v", what, err)
			return
		}
		// Padding and the times in tar headers are not protected.
		if got := dumpStore(r); got != want {
			t.Errorf("%s: restored something else:\n%s", what, got)
		}
		mustClose(t, r)
	}
	step := max(file.Len()/200, 1)
	for i := 0; i < file.Len(); i += step {
		data := bytes.Clone(file.Bytes())
		data[i] ^= 0x41
		try(fmt.Sprintf("byte %d changed", i), data)
		if i < file.Len()-2048 { // after the manifest there is only tar's own end
			fs := vfs.NewMem()
			if err := restore(bytes.NewReader(file.Bytes()[:i]), "data", nil, smallOptions(fs)); err == nil {
				t.Errorf("cut to %d bytes of %d: restored", i, file.Len())
			}
		}
	}
}

func TestBackupWhileServing(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, fs)
	mustClaim(t, s, 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Add(1)
	go func() {
		defer wg.Done()
		for n := Seq(0); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.Append([]Entry{{Realm: 1, Epoch: 1, After: n, Facts: facts("x")}})[0]; err != nil {
				t.Error(err)
				return
			}
			if n%50 == 49 {
				row := Row{Table: 1, Key: []byte("n"), Value: fmt.Append(nil, n)}
				if err := s.Snapshot(1, 1, n, yieldRows(row)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	for range 5 {
		var file bytes.Buffer
		if err := s.Backup(&file); err != nil {
			t.Fatal(err)
		}
		other := vfs.NewMem()
		if err := restore(&file, "data", nil, smallOptions(other)); err != nil {
			t.Fatal(err)
		}
		same(t, "findings", len(findings(t, other)), 0)
	}
}

func TestBackupOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, 1)
	mustAppend(t, s,
		Entry{Realm: 1, Epoch: 1, Facts: facts("a", "b", "c"), Bodies: []Put{{[]byte("m"), []byte("text")}}})
	if err := s.Snapshot(1, 1, 1, yieldRows(Row{Table: 1, Key: []byte("k"), Value: []byte("v")})); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := s.Backup(&file); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("files left after a backup: %v", left)
	}
	mustClose(t, s)

	// The extra files exist already.
	other := filepath.Join(t.TempDir(), "not", "yet", "there")
	if err := os.MkdirAll(filepath.Join(other, "uploads"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Restore(&file, other, map[RealmID]Seq{1: 2}); err != nil {
		t.Fatal(err)
	}
	s, err = Open(other, Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "claim", mustClaim(t, s, 1), Claimed{Epoch: 2, Last: 2, Rows: 1})
	same(t, "tail", tail(t, s, 1, 1), []string{"2 b"})
	same(t, "rows", rows(t, s, 1), []string{"1 k=v"})
	mustClose(t, s)
	names, err := filepath.Glob(filepath.Join(other, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	same(t, "files", names, []string{"LOCK", "store", "uploads", "watermark"})
}

func TestBackupIncludesExtraFiles(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	put := func(fs vfs.FS, name, text string) {
		t.Helper()
		if err := fs.MkdirAll(fs.PathDir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(text))
		f.Close()
	}
	put(fs, "data/uploads/content/ab/abcd", "a file")
	put(fs, "data/elsewhere/x", "not asked for")
	var file bytes.Buffer
	if err := s.Backup(&file, "uploads/content", "uploads/pictures"); err != nil {
		t.Fatal(err)
	}
	other := vfs.NewMem()
	if err := restore(bytes.NewReader(file.Bytes()), "data", nil, smallOptions(other)); err != nil {
		t.Fatal(err)
	}
	f, err := other.Open("data/uploads/content/ab/abcd")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(f)
	same(t, "the file", string(text), "a file")
	names, _ := other.List("data")
	if strings.Contains(strings.Join(names, " "), "elsewhere") {
		t.Errorf("restored %v", names)
	}
	for _, name := range []string{"beside/../../x", "beside//x", "beside/a/./x", "elsewhere/x"} {
		var evil bytes.Buffer
		b := NewBackupWriter(&evil)
		if err := errors.Join(b.addBytes(name, []byte("x")), b.Finish()); err != nil {
			t.Fatal(err)
		}
		if err := restore(&evil, "data", nil, smallOptions(vfs.NewMem())); err == nil ||
			!strings.Contains(err.Error(), "unknown file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A restore to a time drops the facts that were recorded later, of every organization. It refuses times before the
// rows of the backup, names organizations of which no time is known, and makes a backup of a cluster's copy a store of
// its own.
func TestRestoreToTime(t *testing.T) {
	o := smallOptions(vfs.NewMem())
	o.Kept = Kept{Bytes: 1 << 20, Age: time.Hour}
	s, err := Open("data", o)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []RealmID{1, 2} {
		epoch := mustClaim(t, s, id).Epoch
		for i, now := range []int64{100, 200, 300} {
			mustAppend(t, s, Entry{Realm: id, Epoch: epoch, After: Seq(i), Now: now, Facts: facts(fmt.Sprint(now))})
		}
	}
	if err := s.Snapshot(1, 1, 2, func(func(Row) error) error { return nil }); err != nil {
		t.Fatal(err)
	}
	row := Row{Table: 1, Key: []byte("key"), Value: []byte("imported")}
	err = s.ImportRows(3, mustClaim(t, s, 3).Epoch, 5, func(yield func(Row) error) error { return yield(row) })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.PutMeta("cluster", []byte("members")), s.Replicate(7)); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := s.Backup(&file); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	restoreTo := func(at int64, whole ...RealmID) (*Store, error) {
		o, all := smallOptions(vfs.NewMem()), map[RealmID]bool{}
		for _, id := range whole {
			all[id] = true
		}
		err := restoreAs(bytes.NewReader(file.Bytes()), "data", nil, toTime(at, all), o)
		if err != nil {
			return nil, err
		}
		return Open("data", o)
	}
	var unknown *TimeUnknownError
	if _, err := restoreTo(250); !errors.As(err, &unknown) || !slices.Equal(unknown.Realms, []RealmID{3}) {
		t.Errorf("a restore to a time with an organization that has only rows: %v", err)
	}
	r, err := restoreTo(250, 3)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "realm 2", tail(t, r, 2, 0), []string{"1 100", "2 200"})
	if _, last, err := r.Bounds(3); err != nil || last != 5 {
		t.Errorf("the imported organization ends at %d: %v", last, err)
	}
	value, err := r.Meta("cluster")
	if err != nil || value != nil || r.Replicated() {
		t.Errorf("the restored store belongs to a cluster with %q: %v", value, err)
	}
	mustAppend(t, r, Entry{Realm: 1, Epoch: mustClaim(t, r, 1).Epoch, After: 2, Now: 260, Facts: facts("goes on")})
	mustClose(t, r)
	if _, err := restoreTo(150, 3); err == nil || !strings.Contains(err.Error(), "from 1970-01-01T00:03:20Z on") {
		t.Errorf("a restore to a time before the rows: %v", err)
	}
}

// A backup says when the last fact of an organization was recorded that has all its facts in the rows, as those have
// that are asleep.
func TestRestoreToTimeOfRows(t *testing.T) {
	s, err := Open("data", smallOptions(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []RealmID{1, 2} {
		epoch := mustClaim(t, s, id).Epoch
		for i, now := range []int64{100, 200, 300} {
			mustAppend(t, s, Entry{Realm: id, Epoch: epoch, After: Seq(i), Now: now, Facts: facts(fmt.Sprint(now))})
		}
		for _, upto := range []Seq{2, 3} {
			if err := s.Snapshot(id, epoch, upto, yieldRows()); err != nil {
				t.Fatal(err)
			}
		}
	}
	restoreTo := func(at int64) (*Store, error) {
		var file bytes.Buffer
		if err := s.Backup(&file); err != nil {
			t.Fatal(err)
		}
		o := smallOptions(vfs.NewMem())
		if err := restoreAs(&file, "data", nil, toTime(at, nil), o); err != nil {
			return nil, err
		}
		return Open("data", o)
	}
	r, err := restoreTo(300)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []RealmID{1, 2} {
		if _, last, err := r.Bounds(id); err != nil || last != 3 {
			t.Errorf("organization %d ends at %d: %v", id, last, err)
		}
	}
	mustClose(t, r)
	if _, err := restoreTo(299); err == nil || !strings.Contains(err.Error(), "from 1970-01-01T00:05:00Z on") {
		t.Errorf("a restore to a time before the rows: %v", err)
	}
	var unknown *TimeUnknownError
	older := s.db.NewBatch()
	if err := errors.Join(setValue(older, headKey(2, headTime), encodeTime(2, 200)), s.commit(older)); err != nil {
		t.Fatal(err)
	}
	if _, err := restoreTo(400); !errors.As(err, &unknown) || !slices.Equal(unknown.Realms, []RealmID{2}) {
		t.Errorf("rows that an older release has written: %v", err)
	}
	mustClose(t, s)
}

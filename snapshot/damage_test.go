package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

// sampleStep returns the step by which a long test samples bytes or crash points; it is 1 with PARLEY_EXHAUSTIVE=1.
func sampleStep(short int) int {
	if os.Getenv("PARLEY_EXHAUSTIVE") != "" {
		return 1
	}
	return short
}

type fileImage map[string][]byte

func imageOf(t testing.TB, fs vfs.FS, dir string) fileImage {
	t.Helper()
	image := fileImage{}
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			for p, data := range imageOf(t, fs, path) {
				image[p] = data
			}
			continue
		}
		data, err := readFile(fs, path)
		if err != nil {
			t.Fatal(err)
		}
		image[path] = data
	}
	return image
}

func (image fileImage) fs(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data/store", 0o700); err != nil {
		t.Fatal(err)
	}
	for path, data := range image {
		f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 0 {
			if _, err := f.Write(data); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

func (image fileImage) with(path string, data []byte) fileImage {
	changed := fileImage{}
	for p, d := range image {
		changed[p] = d
	}
	changed[path] = data
	return changed
}

// readBack opens an image and returns its whole content, or "" if the damage was detected.
func readBack(t testing.TB, image fileImage) string {
	t.Helper()
	s, err := Open("data", smallOptions(image.fs(t)))
	if err != nil {
		return ""
	}
	defer s.Close()
	got := dumpStore(s)
	if strings.Contains(got, "damaged") {
		return ""
	}
	return got
}

// eachDamage calls try with every image in which one byte is changed or one file is truncated.
func eachDamage(image fileImage, step int, try func(what string, image fileImage)) {
	var paths []string
	for path := range image {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		data := image[path]
		for i := 0; i < len(data); i += step {
			for _, mask := range []byte{0x01, 0xff} {
				changed := slices.Clone(data)
				changed[i] ^= mask
				try(fmt.Sprintf("%s, byte %d xor %x", path, i, mask), image.with(path, changed))
			}
			try(fmt.Sprintf("%s cut to %d of %d", path, i, len(data)), image.with(path, data[:i:i]))
		}
	}
}

func TestDamageToEveryByteOfAClosedStore(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	want := dumpStore(s)
	mustClose(t, s)
	image := imageOf(t, fs, "data")
	if got := readBack(t, image); got != want {
		t.Fatalf("undamaged: %s", got)
	}
	noticed, harmless := 0, 0
	eachDamage(image, sampleStep(31), func(what string, image fileImage) {
		switch got := readBack(t, image); got {
		case "":
			noticed++
			// Check must report everything that makes reading fail.
			found := 0
			if err := Check("data", smallOptions(image.fs(t)), func(Finding) { found++ }); err == nil && found == 0 {
				t.Errorf("%s: a check is content", what)
			}
		case want:
			harmless++
		default:
			t.Errorf("%s: silently different:\n%s", what, got)
		}
	})
	t.Logf("%d noticed, %d harmless", noticed, harmless)
}

// After a crash, a damaged last commit cannot be told from one that was never written. So the store may return to an
// earlier state, but only to a state that existed, and not to one before the last durability manifest.
func TestDamageToEveryByteOfACrashedStore(t *testing.T) {
	fs := vfs.NewCrashableMem()
	// The store ends with commits after the last durability manifest, which is that of realm 2's snapshot.
	s := newFilledStore(t, fs)
	history := []string{dumpStore(s)}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, dumpStore(s))
	}
	step(s.Snapshot(1, 1, 5, yieldRows(Row{Table: 1, Key: []byte("a"), Value: []byte("newer")},
		Row{Table: 7, Key: []byte("b"), Value: nil})))
	marked := len(history) - 1
	for n := Seq(6); n < 9; n++ {
		step(
			s.Append([]Entry{{
				Realm: 1, Epoch: 1, After: n,
				Facts: facts(fmt.Sprintf("more %d", n)), Bodies: []Put{{[]byte("m0"), fmt.Append(nil, n)}},
			}})[0],
		)
	}
	step(s.PutMeta("realms", []byte("changed")))
	image := imageOf(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data")
	last := history[len(history)-1]
	if got := readBack(t, image); got != last {
		t.Fatalf("undamaged: %s", got)
	}
	noticed, harmless, earlier := 0, 0, 0
	eachDamage(image, sampleStep(31), func(what string, image fileImage) {
		got := readBack(t, image)
		switch {
		case got == "":
			noticed++
		case got == last:
			harmless++
		case slices.Contains(history[marked:], got):
			earlier++
			if !strings.Contains(what, ".log") {
				t.Errorf("%s: took back commits, and it is not the log", what)
			}
		default:
			t.Errorf("%s: silently different:\n%s", what, got)
		}
	})
	t.Logf("%d noticed, %d harmless, %d like a crash before the last commits", noticed, harmless, earlier)
}

// editPebble changes the store directly, with valid Pebble checksums.
func editPebble(t testing.TB, fs vfs.FS, change func(db *pebble.DB)) {
	t.Helper()
	db, err := pebble.Open("data/store",
		&pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatTableFormatV6, Logger: silentLogger{}})
	if err != nil {
		t.Fatal(err)
	}
	change(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

type silentLogger struct{}

func (silentLogger) Infof(string, ...any)         {}
func (silentLogger) Errorf(string, ...any)        {}
func (silentLogger) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

func TestDamageErrorNamesThePlace(t *testing.T) {
	get := func(db *pebble.DB, key []byte) []byte {
		v, closer, err := db.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		defer closer.Close()
		return slices.Clone(v)
	}
	flip := func(key []byte, at int) func(*pebble.DB) {
		return func(db *pebble.DB) {
			v := get(db, key)
			v[at] ^= 1
			db.Set(key, v, pebble.Sync)
		}
	}
	for _, c := range []struct {
		what   string
		spoil  func(*pebble.DB)
		read   func(*Store) error
		error  string
		checks []string
	}{
		{
			"a fact's byte", flip(journalKey(2, 5), recordHead+1),
			func(s *Store) error { return s.Tail(2, 3, func(Record) error { return nil }) },
			"journal damaged: realm 2, number 5, in ", []string{"realm 2, number 5: checksum mismatch"},
		}, {
			"a fact's hash of the one before", flip(journalKey(2, 5), 1+checkLen),
			func(s *Store) error { return s.Tail(2, 3, func(Record) error { return nil }) },
			"checksum mismatch (record follows 4); run parley log check data",
			[]string{"realm 2, number 5: checksum mismatch"},
		}, {
			"a fact replaced by a valid one",
			func(db *pebble.DB) {
				var h hasher
				v := make([]byte, recordHead+1)
				h.put(v, 2, chain{1}, &Record{Inputs: realm.Inputs{Seq: 5}, Fact: []byte("x")})
				db.Set(journalKey(2, 5), v, pebble.Sync)
			},
			func(s *Store) error { return s.Tail(2, 3, func(Record) error { return nil }) },
			"realm 2, number 5",
			[]string{"number 5: its previous hash does not match", "number 6: its previous hash does not match"},
		}, {
			"a fact missing", func(db *pebble.DB) { db.Delete(journalKey(2, 5), pebble.Sync) },
			func(s *Store) error { return s.Tail(2, 3, func(Record) error { return nil }) },
			"number 5, in ", []string{"realm 2, number 5: it is missing; next is number 6"},
		}, {
			"the first fact missing", func(db *pebble.DB) { db.Delete(journalKey(2, 4), pebble.Sync) },
			func(s *Store) error { _, err := s.Claim(2, AnyEpoch); return err },
			"number 4, in ", []string{"realm 2, number 4: it is missing; next is number 5"},
		}, {
			"the first fact replaced by a valid one",
			func(db *pebble.DB) {
				var h hasher
				v := make([]byte, recordHead+1)
				h.put(v, 2, chain{1}, &Record{Inputs: realm.Inputs{Seq: 4}, Fact: []byte("x")})
				db.Set(journalKey(2, 4), v, pebble.Sync)
			},
			func(s *Store) error { _, err := s.Claim(2, AnyEpoch); return err },
			"it does not follow the rows", []string{"number 4: its previous hash does not match"},
		}, {
			"the last fact", flip(journalKey(2, 6), recordHead),
			func(s *Store) error { return s.Append([]Entry{{Realm: 2, Epoch: 1, After: 6}})[0] },
			"realm 2, number 6, in ", []string{"realm 2, number 6: checksum mismatch"},
		}, {
			"a row", flip(rowKey(1, 7, []byte("b")), valueHead),
			func(s *Store) error { return s.Rows(1, func(Row) error { return nil }) },
			"data directory damaged: realm 1, row 62 of table 7, in ",
			[]string{"realm 1, row 62 of table 7: checksum mismatch"},
		}, {
			"a row under another key", func(db *pebble.DB) {
				db.Set(rowKey(1, 7, []byte("c")), get(db, rowKey(1, 7, []byte("b"))), pebble.Sync)
			},
			func(s *Store) error { return s.Rows(1, func(Row) error { return nil }) },
			"row 63 of table 7", []string{"realm 1, row 63 of table 7: checksum mismatch"},
		}, {
			"a body", flip(bodyKey(1, []byte("m2")), valueHead),
			func(s *Store) error { _, _, err := s.Body(1, []byte("m2")); return err },
			"realm 1, body 6d32, in ", []string{"realm 1, body 6d32: checksum mismatch"},
		}, {
			"the snapshot state", flip(headKey(1, headSnapshot), valueHead+7),
			func(s *Store) error { _, err := s.Claim(1, AnyEpoch); return err },
			"realm 1, number of the rows", []string{"realm 1, number of the rows: checksum mismatch"},
		}, {
			"an unknown key", func(db *pebble.DB) { db.Set(append(spaceKey(1, 'z'), 1), []byte("?"), pebble.Sync) },
			nil, "", []string{"realm 1, unknown key 000000017a01"},
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			fs := vfs.NewMem()
			mustClose(t, newFilledStore(t, fs))
			editPebble(t, fs, c.spoil)
			found := strings.Join(findings(t, fs), "\n")
			for _, want := range c.checks {
				if !strings.Contains(found, want) {
					t.Errorf("check found\n%s\nwithout %q", found, want)
				}
			}
			if c.read == nil {
				return
			}
			s := mustOpen(t, fs)
			err := c.read(s)
			var d *DamageError
			if !errors.As(err, &d) || !strings.Contains(err.Error(), c.error) ||
				!strings.HasSuffix(err.Error(), "; run parley log check data") {
				t.Errorf("reading: %v", err)
			}
			// The other realm is usable.
			other := 3 - d.Realm
			claimed := mustClaim(t, s, other)
			mustAppend(t, s, Entry{Realm: other, Epoch: claimed.Epoch, After: claimed.Last, Facts: facts("on")})
		})
	}
}

func TestCheckOfAnUndamagedStore(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	if err := Check("data", smallOptions(fs), func(Finding) {}); !errors.Is(err, ErrInUse) {
		t.Fatalf("check of a store in use: %v", err)
	}
	mustClose(t, s)
	before := imageOf(t, fs, "data")
	same(t, "findings", findings(t, fs), []string(nil))
	after := imageOf(t, fs, "data")
	for path, data := range before {
		if string(after[path]) != string(data) {
			t.Errorf("check changed %s", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("check added or removed files")
	}
	if err := Check("nowhere", smallOptions(fs), func(Finding) {}); err == nil {
		t.Error("check of a missing directory found nothing")
	}
}

func TestReadOnlyRefusesWrites(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	want := dumpStore(s)
	mustClose(t, s)
	s, err := OpenReadOnly("data", smallOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contents", dumpStore(s), want)
	_, claim := s.Claim(1, AnyEpoch)
	for what, err := range map[string]error{
		"claim": claim, "append": s.Append([]Entry{{Realm: 1, Epoch: 1, After: 6}})[0],
		"snapshot": s.Snapshot(1, 1, 6, yieldRows()), "meta": s.PutMeta("x", nil),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := s.Backup(io.Discard); !errors.Is(err, ErrReadOnly) {
		t.Errorf("backup: %v", err)
	}
	mustClose(t, s)
}

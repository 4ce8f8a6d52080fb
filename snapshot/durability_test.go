package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"parley/actors/realm"
)

// These losses look like an earlier end or an earlier state to Pebble. The durability manifest detects them.
func TestDurabilityManifestDetectsLostData(t *testing.T) {
	set := func(change func(db *pebble.DB, b *pebble.Batch)) func(*testing.T, *vfs.MemFS) {
		return func(t *testing.T, fs *vfs.MemFS) {
			editPebble(t, fs, func(db *pebble.DB) {
				b := db.NewBatch()
				change(db, b)
				if err := b.Commit(pebble.Sync); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	rewrite := func(suffix string, change func([]byte) []byte) func(*testing.T, *vfs.MemFS) {
		return func(t *testing.T, fs *vfs.MemFS) {
			for path, data := range imageOf(t, fs, "data") {
				if !strings.Contains(path, suffix) || len(data) == 0 {
					continue
				}
				f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.Write(change(data)); err != nil {
					t.Fatal(err)
				}
				f.Close()
			}
		}
	}
	for _, c := range []struct {
		what  string
		spoil func(*testing.T, *vfs.MemFS)
		error string
	}{
		{
			"commits",
			set(func(_ *pebble.DB, b *pebble.Batch) { setNumber(b, commitsKey, 5) }),
			"it has 5 commits; 17 were durable",
		},
		{
			"epoch",
			set(func(_ *pebble.DB, b *pebble.Batch) { setNumber(b, headKey(1, headEpoch), 0) }),
			"realm 1 has epoch 0; epoch 1 was durable",
		},
		{
			"the last fact",
			set(func(_ *pebble.DB, b *pebble.Batch) { b.Delete(journalKey(2, 6), nil) }),
			"the journal of realm 2 ends at number 5; 6 was durable",
		},
		{"another last fact", set(func(db *pebble.DB, b *pebble.Batch) {
			var h hasher
			v, closer, _ := db.Get(journalKey(2, 6))
			_, before, _, _ := h.get(v, 2, 6)
			closer.Close()
			record := make([]byte, recordHead+1)
			h.put(record, 2, before, &Record{Inputs: realm.Inputs{Seq: 6}, Fact: []byte("y")})
			b.Set(journalKey(2, 6), record, nil)
		}), "fact 6 of realm 2 differs from the durable one"},
		{
			"a realm",
			set(func(_ *pebble.DB, b *pebble.Batch) { b.DeleteRange(spaceKey(2, 0), spaceKey(3, 0), nil) }),
			"realm 2 is missing",
		},
		{"rows", set(func(_ *pebble.DB, b *pebble.Batch) {
			b.DeleteRange(spaceKey(2, spaceJournal), spaceEnd(2, spaceJournal), nil)
			setValue(b, headKey(2, headSnapshot), snapshotState{seq: 2}.encode())
		}), "the rows of realm 2 are at number 2; 3 was durable"},
		{"Pebble's files", func(t *testing.T, fs *vfs.MemFS) {
			if err := fs.RemoveAll("data/store"); err != nil {
				t.Fatal(err)
			}
		}, "Pebble's store is missing"},
		{
			"a manifest's byte",
			rewrite("/MANIFEST-", func(d []byte) []byte { d[len(d)-1] ^= 1; return d }),
			"manifest is unreadable after ",
		},
		{"a manifest's end", rewrite("/MANIFEST-", func(d []byte) []byte { return d[:len(d)-1] }), " were durable"},
		{"a log's end", rewrite(".log", func(d []byte) []byte { return d[:len(d)-1] }), " were durable"},
		{
			"the durability manifest",
			rewrite("watermark", func(d []byte) []byte { d[30] ^= 1; return d }),
			"checksum mismatch (the store may be undamaged",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			fs := vfs.NewMem()
			mustClose(t, newFilledStore(t, fs))
			c.spoil(t, fs)
			_, err := Open("data", smallOptions(fs))
			var d *DamageError
			if !errors.As(err, &d) || !strings.Contains(err.Error(), c.error) {
				t.Errorf("open: %v", err)
			}
			// Check reports the loss and checks the rest, if there is a store.
			var found []string
			err = Check("data", smallOptions(fs), func(f Finding) { found = append(found, f.String()) })
			if len(found) == 0 || !strings.Contains(found[0], c.error) || err != nil && c.what != "Pebble's files" {
				t.Errorf("check: %q, %v", found, err)
			}
		})
	}
}

func TestOpenWithoutDurabilityManifest(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	want := dumpStore(s)
	mustClose(t, s)
	if err := fs.Remove("data/watermark"); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, fs)
	same(t, "contents", dumpStore(s), want)
}

// Every truncation of the log before the durability manifest is detected, with or without a crash.
func TestDurabilityManifestIsNeverAhead(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := mustOpen(t, fs)
	mustClaim(t, s, 1)
	for n := range Seq(10) {
		mustAppend(t, s,
			Entry{Realm: 1, Epoch: 1, After: n, Facts: facts("fact"), Bodies: []Put{{[]byte("m"), fmt.Append(nil, n)}}})
	}
	if err := s.PutMeta("realms", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := s.writeDurabilityManifest(); err != nil {
		t.Fatal(err)
	}
	want := dumpStore(s)
	image := imageOf(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data")
	eachDamage(image, sampleStep(13), func(what string, image fileImage) {
		if got := readBack(t, image); got != "" && got != want {
			t.Errorf("%s: silently different: %s", what, difference(got, want))
		}
	})
}

// Snapshots that are written at the same time share durability manifests: each is in one when it returns.
func TestSnapshotsShareDurabilityManifests(t *testing.T) {
	const realms, rounds = 20, 10
	s := mustOpen(t, vfs.NewCrashableMem())
	for id := range RealmID(realms) {
		mustClaim(t, s, id+1)
	}
	var all sync.WaitGroup
	for id := range RealmID(realms) {
		all.Go(func() {
			for n := range Seq(rounds) {
				err := s.Append([]Entry{{Realm: id + 1, Epoch: 1, After: n, Facts: facts("fact")}})[0]
				if err == nil {
					err = s.Snapshot(id+1, 1, n+1, func(func(Row) error) error { return nil })
				}
				if err != nil {
					t.Error(err)
					return
				}
				s.manifestMu.Lock()
				w, err := s.readDurabilityManifest()
				s.manifestMu.Unlock()
				if err != nil || w.realms[id].realm != id+1 || w.realms[id].rows != n+1 {
					t.Errorf("organization %d after its snapshot at %d: %v, %v", id+1, n+1, w.realms[id], err)
				}
			}
		})
	}
	all.Wait()
}

func TestCloseEmptiesTheLog(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	want := dumpStore(s)
	mustClose(t, s)
	image := imageOf(t, fs, "data")
	delete(image, "data/watermark")
	for path := range image {
		if strings.HasSuffix(path, ".log") {
			delete(image, path)
		}
	}
	if got := readBack(t, image); got != want {
		t.Errorf("without the log: %s", difference(got, want))
	}
}

// If the process crashes while it makes a new directory, the directory opens.
func TestCrashWhileCreating(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		disk := vfs.NewCrashableMem()
		var mu sync.Mutex
		var points []*vfs.MemFS
		s, err := Open("data", smallOptions(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if isWrite(op) {
				points = append(points, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng}))
			}
			return nil
		}))))
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		taken := points
		mu.Unlock()
		for i, fs := range taken {
			s, err := Open("data", smallOptions(fs))
			if err != nil {
				t.Errorf("seed %d, crash %d: %v", seed, i, err)
				continue
			}
			mustClaim(t, s, 1)
			s.Close()
		}
		s.Close()
	}
}

// openMarked opens a store in memory that writes a mark each millisecond.
func openMarked(t *testing.T) (*vfs.MemFS, *Store) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	options := smallOptions(fs)
	options.MarkInterval = time.Millisecond
	s, err := Open("data", options)
	if err != nil {
		t.Fatal(err)
	}
	return fs, s
}

// A log whose end is missing is detected from a mark interval after the commits on, and the lost numbers are named. The
// store opens only if the loss is accepted.
func TestMarksByTimeDetectALostEnd(t *testing.T) {
	fs, s := openMarked(t)
	defer s.Close()
	mustClaim(t, s, 1)
	mustClaim(t, s, 2)
	for n := range Seq(10) {
		mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: n, Facts: facts("fact")})
	}
	whole := imageOf(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data")
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: 10, Facts: facts("a", "b", "c")},
		Entry{Realm: 2, Epoch: 1, Facts: facts("d")})
	s.mu.Lock()
	commits := s.commits
	s.mu.Unlock()
	for end := time.Now().Add(time.Minute); s.manifestCommits.Load() < commits; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no durability manifest was written after the commit")
		}
	}
	image := imageOf(t, fs.CrashClone(vfs.CrashCloneCfg{}), "data")
	for path := range image { // the logs as they were before the last commit
		if strings.HasSuffix(path, ".log") {
			image = image.with(path, whole[path])
		}
	}
	want := []string{"it has 12 commits; 13 were durable at ",
		"the journal of realm 1 ends at number 10; 13 was durable: numbers 11 to 13 are lost",
		"the journal of realm 2 ends at number 0; 1 was durable: numbers 1 to 1 are lost"}
	var d *DamageError
	_, err := Open("data", smallOptions(image.fs(t)))
	if !errors.As(err, &d) {
		t.Fatalf("open: %v", err)
	}
	found := findings(t, image.fs(t))
	for i, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("open: %v, without %q", err, text)
		}
		if i >= len(found) || !strings.Contains(found[i], text) {
			t.Errorf("check found %q, without %q", found, text)
		}
	}
	disk := image.fs(t)
	accepting := smallOptions(disk)
	accepting.AcceptLoss = true
	s, err = Open("data", accepting)
	if err != nil {
		t.Fatalf("open with AcceptLoss: %v", err)
	}
	c := mustClaim(t, s, 1)
	same(t, "last fact", c.Last, Seq(10))
	mustAppend(t, s, Entry{Realm: 1, Epoch: c.Epoch, After: c.Last, Facts: facts("on")})
	mustClose(t, s)
	same(t, "findings afterwards", findings(t, disk), []string(nil))
	mark, err := ReadLastMark("data", smallOptions(disk))
	if err != nil || !mark.Closed || time.Since(mark.At) > time.Minute {
		t.Errorf("last mark after a clean close: %+v, %v", mark, err)
	}
}

// Rows without a sync are on disk at the next mark, also if nothing else is committed.
func TestUnsyncedRowsReachTheDisk(t *testing.T) {
	fs, s := openMarked(t)
	defer s.Close()
	mustClaim(t, s, 1)
	if err := s.SaveRowsUnsynced(1, 2, nil); !errors.Is(err, ErrMoved) {
		t.Errorf("rows of another epoch: %v", err)
	}
	if err := s.SaveRowsUnsynced(1, 1, []Row{{Table: 7, Key: []byte("k"), Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for end := time.Now().Add(time.Minute); len(got) == 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		after, err := Open("data", smallOptions(fs.CrashClone(vfs.CrashCloneCfg{})))
		if err != nil {
			t.Fatal(err)
		}
		got = rows(t, after, 1)
		mustClose(t, after)
	}
	same(t, "rows after a power loss", got, []string{"7 k=v"})
}

package snapshot

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

// backupOf returns a backup.
func backupOf(t *testing.T, s *Store) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := s.Backup(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A restore to a time between two backups has the earlier one's facts and those of the later one up to the time, with
// the same hashes as the server had, although the later one's rows are newer. It refuses a later backup that lacks
// facts in between, or that is of another server.
func TestRestoreBetween(t *testing.T) {
	s := openKept(t, vfs.NewMem(), KeptForBackups(time.Hour))
	d := Disk{Store: s}
	epoch := mustClaim(t, s, 1).Epoch
	appendNumbered(t, d, epoch, 0, 10)
	earlier := backupOf(t, s)
	appendNumbered(t, d, epoch, 10, 30)
	mustSnapshot := func(at Seq) {
		t.Helper()
		if err := s.Snapshot(1, epoch, at, yieldRows()); err != nil {
			t.Fatal(err)
		}
	}
	want := map[Seq]Chain{}
	for n := Seq(10); n < 40; n++ {
		want[n], _ = s.hashBefore(1, n+1)
	}
	mustSnapshot(40)
	later := backupOf(t, s)
	for _, end := range []Seq{13, 27, 34} { // the last facts of their second
		fs := vfs.NewMem()
		at := int64(1000 + end/7)
		err := restoreBetween(bytes.NewReader(earlier), bytes.NewReader(later), "data", at, smallOptions(fs))
		if err != nil {
			t.Fatal(err)
		}
		r := mustOpen(t, fs)
		if hash, last := r.LastHash(1); last != end || hash != want[end] {
			t.Errorf("a restore to the second of fact %d ends at %d, hash %x, want %x", end, last, hash, want[end])
		}
		names, _ := fs.List("data")
		if slices.Contains(names, laterDir) {
			t.Errorf("the restored directory has %v", names)
		}
		mustClose(t, r)
	}
	refuse := func(what string, earlier, later []byte, reason string) {
		t.Helper()
		fs := vfs.NewMem()
		err := restoreBetween(bytes.NewReader(earlier), bytes.NewReader(later), "data", 1004, smallOptions(fs))
		if err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want %q", what, err, reason)
		}
		if _, err := fs.Stat("data/" + subDir); err == nil {
			t.Errorf("%s: a store was made", what)
		}
	}
	if err := s.deleteKept(1, 20); err != nil {
		t.Fatal(err)
	}
	refuse("facts are missing", earlier, backupOf(t, s), "does not have all facts of organization 1")
	refuse("another order", later, earlier, "fewer facts in the later backup")
	other := openKept(t, vfs.NewMem(), KeptForBackups(time.Hour))
	mustClaim(t, other, 1)
	mustAppend(t, other, Entry{Realm: 1, Epoch: 1, After: 0, Now: 999, Facts: facts("not that server's")})
	appendNumbered(t, Disk{Store: other}, 1, 1, 30)
	refuse("another server", earlier, backupOf(t, other), "the backups are of different servers")
	mustClose(t, other)
	mustClose(t, s)
}

// The files of a held backup stay as they are while the store is written to, and are gone after release. A second
// backup is refused meanwhile, and a process that was killed leaves no files.
func TestHoldBackup(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	list, release, err := s.HoldBackup()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.HoldBackup(); !errors.Is(err, ErrBackupHeld) {
		t.Errorf("a second backup: %v", err)
	}
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: 6, Facts: facts("fact 7")})
	if err := s.Snapshot(1, 1, 7, yieldRows()); err != nil {
		t.Fatal(err)
	}
	backupOf(t, s)
	var copied bytes.Buffer
	w := NewBackupWriter(&copied)
	for _, f := range list {
		if f.Path == "" {
			err = w.addBytes(f.Name, f.Data)
		} else {
			err = w.addFile(fs, fs.PathJoin(s.dir, f.Path), f.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Finish(), release()); err != nil {
		t.Fatal(err)
	}
	other := vfs.NewMem()
	if err := restore(&copied, "data", nil, smallOptions(other)); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, other)
	if _, last, err := r.Bounds(realm.ID(1)); last != 6 || err != nil {
		t.Errorf("the held backup ends at %d, %v", last, err)
	}
	if _, release, err = s.HoldBackup(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s) // it does not wait for release
	again := mustOpen(t, fs)
	if names, _ := fs.List(again.dir); slices.Contains(names, heldDir) {
		t.Errorf("after a restart the directory has %v", names)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

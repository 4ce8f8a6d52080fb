package datadir

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Files of root in a directory of another user become that user's, except those that can be from elsewhere.
func TestGiveToOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make files of two users")
	}
	const nobody = 65534
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "store/deep"), 0o700),
		os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "store/deep/table"), nil, 0o600),
		os.WriteFile(outside, nil, 0o600),
		os.Link(outside, filepath.Join(dir, "link")),
		os.Symlink(outside, filepath.Join(dir, "symlink")),
		GiveToOwner(dir, true), // of a directory of root: nothing changes
		GiveToOwner(filepath.Join(dir, "missing"), true),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	owners := func(want map[string]uint32) {
		t.Helper()
		for name, uid := range want {
			var s syscall.Stat_t
			if err := syscall.Lstat(filepath.Join(dir, name), &s); err != nil || s.Uid != uid {
				t.Errorf("%s belongs to %d, not %d: %v", name, s.Uid, uid, err)
			}
		}
	}
	owners(map[string]uint32{".": 0, "secret": 0, "store/deep/table": 0})
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := GiveToOwner(dir, false); err != nil {
		t.Fatal(err)
	}
	owners(map[string]uint32{"secret": nobody, "store": nobody, "store/deep": 0})
	if err := GiveToOwner(dir, true); err != nil {
		t.Fatal(err)
	}
	owners(map[string]uint32{"store/deep": nobody, "store/deep/table": nobody, "link": 0, "symlink": 0})
}

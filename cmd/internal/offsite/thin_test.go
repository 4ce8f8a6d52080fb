package offsite

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/snapshot/files"
)

// testFolder is a folder on this machine.
func testFolder(t *testing.T) (*Folder, string) {
	t.Helper()
	dir := t.TempDir()
	if _, err := CreateKey(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	key, err := ReadKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	return &Folder{blobs: files.NewLocalBlobs(dir), key: key, spool: t.TempDir()}, dir
}

// putBackup sends a backup of some contents.
func (f *Folder) putBackup(t *testing.T, begun time.Time, contents ...string) Backup {
	t.Helper()
	l := &List{Format: listFormat, Begun: begun.UTC()}
	for _, text := range contents {
		sum := sha256.Sum256([]byte(text))
		hash := hex.EncodeToString(sum[:])
		if _, _, err := f.put(strings.NewReader(text), int64(len(text)), hash); err != nil {
			t.Fatal(err)
		}
		l.Files = append(l.Files, File{Name: text, Size: int64(len(text)), Hash: hash, Object: f.key.objectKey(hash)})
	}
	b, err := f.write(l)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Objects go with the last backup that has them, when they are a day old. If a list cannot be read, nothing is removed:
// the objects that it needs are not known.
func TestUnusedObjectsAreRemoved(t *testing.T) {
	f, dir := testFolder(t)
	now := time.Now()
	f.putBackup(t, now.AddDate(0, 0, -9), "shared", "only old")
	damaged := f.putBackup(t, now.AddDate(0, 0, -3), "of the damaged list")
	f.putBackup(t, now, "shared", "new")
	have := func() string {
		sizes, err := f.sizes()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, text := range []string{"shared", "only old", "of the damaged list", "new", "unfinished"} {
			sum := sha256.Sum256([]byte(text))
			if _, ok := sizes[f.key.objectKey(hex.EncodeToString(sum[:]))]; ok {
				names = append(names, text)
			}
		}
		return strings.Join(names, ", ")
	}
	age := func() {
		err := filepath.Walk(filepath.Join(dir, "objects"), func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				err = os.Chtimes(path, now.Add(-25*time.Hour), now.Add(-25*time.Hour))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	thin := func(status *Status) (int, error) {
		all, err := f.Backups()
		if err != nil {
			t.Fatal(err)
		}
		return f.thin(Keep{Days: 2}, all, status)
	}
	if n, err := thin(&Status{}); n != 1 || err != nil || have() != "shared, only old, of the damaged list, new" {
		t.Errorf("%d backups were removed, %v, and young objects are %s", n, err, have())
	}
	age()
	if _, err := thin(&Status{Collected: now.Unix()}); err != nil || !strings.Contains(have(), "only old") {
		t.Errorf("objects were removed again within the interval: %s, %v", have(), err)
	}
	list := filepath.Join(dir, "backups", damaged.Name)
	text, err := os.ReadFile(list)
	if err == nil {
		err = os.WriteFile(list, text[:len(text)-1], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := thin(&Status{}); err == nil || have() != "shared, only old, of the damaged list, new" {
		t.Errorf("beside a damaged list the objects are %s, %v", have(), err)
	}
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var status Status
	if _, err := thin(&status); err != nil || have() != "shared, of the damaged list, new" || status.Collected == 0 {
		t.Errorf("the objects are %s, %v", have(), err)
	}
}

// Backups that are begun in one second are listed in the order in which they were begun, so that a restore takes the
// newest.
func TestBackupsOfOneSecond(t *testing.T) {
	f, _ := testFolder(t)
	second := time.Date(2026, 3, 15, 12, 30, 7, 0, time.UTC)
	var want []string
	for ms := range 40 {
		want = append(want, f.putBackup(t, second.Add(time.Duration(25*ms)*time.Millisecond), "x").Name)
	}
	all, err := f.Backups()
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range all {
		if b.Name != want[i] || !b.Begun.Equal(second) {
			t.Errorf("backup %d is %s of %s, not %s", i, b.Name, b.Begun, want[i])
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d backups are listed", len(all))
	}
}

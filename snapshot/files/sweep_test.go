package files

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

// sweepScene is a store and the names that rows have.
type sweepScene struct {
	*Store
	t     *testing.T
	named []string
	asked func(names []string) // called while the rows are asked
}

func (s *sweepScene) sweep(before time.Time) int {
	s.t.Helper()
	n, err := s.Sweep(before, func(_ string, names []string) ([]string, error) {
		if s.asked != nil {
			s.asked(names)
		}
		return s.named, nil
	}, func() bool { return true })
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *sweepScene) save(text string) string {
	s.t.Helper()
	x, err := s.Save("1", strings.NewReader(text), 100)
	if err != nil {
		s.t.Fatal(err)
	}
	return x.Hash
}

func (s *sweepScene) exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The files are those that a process leaves if it ends between writing a file and storing its row.
func TestSweepRemovesUnreferencedFiles(t *testing.T) {
	dir := t.TempDir()
	before, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &sweepScene{Store: before, t: t}
	orphan, named := s.save("orphan"), s.save("named")
	avatar, err := s.SaveAvatar(bytes.NewReader(encodePicture(t, 30, 20)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	logo, err := s.SaveLogo(bytes.NewReader(encodePicture(t, 30, 20)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old", "kept"} {
		f, err := s.NewExport(name + ".jsonl.gz")
		if err == nil {
			err = errors.Join(f.Commit(), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mine := filepath.Join(dir, "pictures", "notes.txt")
	if err := os.WriteFile(mine, []byte("an operator's"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.named = []string{"kept"} // the row of an export exists before its file
	if n := s.sweep(time.Now().Add(time.Hour)); n != 1 {
		t.Errorf("%d files were removed while content and pictures were being saved; want 1, the old export", n)
	}

	store, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	s = &sweepScene{Store: store, t: t, named: []string{named, logo, "kept"}}
	if n := s.sweep(time.Now().Add(-time.Hour)); n != 0 {
		t.Errorf("%d files were removed that are not old", n)
	}
	if n := s.sweep(time.Now().Add(time.Hour)); n != 3 {
		t.Errorf("%d files were removed, want 3: content, and two of an avatar", n)
	}
	for path, want := range map[string]bool{
		s.Path(orphan): false, s.Path(named): true,
		s.Picture(avatar + ".png"): false, s.Picture(avatar + "-medium.png"): false, s.Picture(logo + ".png"): true,
		s.Export("kept.jsonl.gz"): true, mine: true,
	} {
		if s.exists(path) != want {
			t.Errorf("%s exists: %v", path, !want)
		}
	}
}

func TestSweepKeepsFilesBeingSaved(t *testing.T) {
	store, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &sweepScene{Store: store, t: t}
	content, later := s.save("the same"), time.Now().Add(time.Hour)
	if n := s.sweep(later); n != 0 {
		t.Error("content was removed while it was being saved")
	}
	if err := s.Release(content, nil); err != nil {
		t.Fatal(err)
	}
	s.asked = func(names []string) {
		if !slices.Contains(names, content) {
			t.Error("used was not asked about the content")
		}
		if s.save("the same") != content { // saved and stored in a row after the rows were asked
			t.Error("the same content got another name")
		}
		if err := s.Release(content, nil); err != nil {
			t.Error(err)
		}
	}
	if n := s.sweep(later); n != 0 || !s.exists(s.Path(content)) {
		t.Error("content went that was saved while rows were asked")
	}
	s.asked = nil
	if n := s.sweep(later); n != 1 || s.exists(s.Path(content)) {
		t.Error("it stays for ever")
	}
}

func TestSweepInSteps(t *testing.T) {
	store, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const many = sweepStep + sweepStep/2
	for i := range many {
		if err := os.WriteFile(store.Export(strconv.Itoa(i)+".jsonl.gz"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := func() int {
		list, err := os.ReadDir(filepath.Join(store.dir, "exports"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	later := time.Now().Add(time.Hour)
	bad := errors.New("no answer")
	failing := func(string, []string) ([]string, error) { return nil, bad }
	_, err = store.Sweep(later, failing, func() bool { return true })
	if !errors.Is(err, bad) || left() != many {
		t.Errorf("files were removed though the rows could not be read: %v", err)
	}
	none := func(kind string, names []string) ([]string, error) {
		if kind != realm.ArchiveFile || len(names) > sweepStep {
			t.Errorf("asked about %d names of %s at once", len(names), kind)
		}
		return nil, nil
	}
	if n, err := store.Sweep(later, none, func() bool { return left() > many-sweepStep }); err != nil ||
		n != sweepStep ||
		left() != many-n {
		t.Errorf("a sweep that ends after one step: %d %v", n, err)
	}
	if n, err := store.Sweep(later, none, func() bool { return true }); err != nil || n != many-sweepStep ||
		left() != 0 {
		t.Errorf("the next sweep: %d %v", n, err)
	}
}

package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeScanner finds a virus in each text that contains "virus".
type fakeScanner struct {
	down    bool
	scanned []string
}

func (f *fakeScanner) Scan(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	f.scanned = append(f.scanned, string(text))
	switch {
	case f.down:
		return ErrNotScanned
	case strings.Contains(string(text), "virus"):
		return &InfectedError{Name: "Test"}
	}
	return nil
}

// Nothing of a refused file is stored, and a file that is not refused is stored completely.
func TestUploadsAreScanned(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &fakeScanner{}
	s.UseScanner(x)
	stored := func() (n int) {
		t.Helper()
		filepath.WalkDir(filepath.Join(dir, "content"), func(_ string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return err
		})
		return n
	}
	resume := func(text string) error {
		t.Helper()
		u, err := s.BeginUpload(PartialUpload{ID: text[:1], Space: "1", Owner: "7", Size: int64(len(text))})
		if err == nil {
			_, err = s.AppendUpload(u.ID, 0, strings.NewReader(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.FinishUpload(u.ID, func(_ PartialUpload, x Saved) (string, error) {
			return "done", s.Release(x.Hash, nil)
		})
		return err
	}
	infected := new(InfectedError)
	if _, err := s.Save("1", strings.NewReader("a virus"), 100); !errors.As(err, &infected) || stored() != 0 {
		t.Errorf("an upload: %v, %d files stored", err, stored())
	}
	if err := resume("b virus"); !errors.As(err, &infected) || stored() != 0 {
		t.Errorf("a resumable upload: %v, %d files stored", err, stored())
	}
	x.down = true
	if _, err := s.Save("1", strings.NewReader("c"), 100); !errors.Is(err, ErrNotScanned) || stored() != 0 {
		t.Errorf("an upload without the scanner: %v, %d files stored", err, stored())
	}
	if err := resume("d later"); !errors.Is(err, ErrNotScanned) || stored() != 0 {
		t.Errorf("a resumable upload without the scanner: %v, %d files stored", err, stored())
	}
	x.down = false
	saved, err := s.Save("1", strings.NewReader("clean"), 100)
	if err != nil || saved.Size != 5 || stored() != 1 {
		t.Errorf("a clean upload: %+v, %v, %d files stored", saved, err, stored())
	}
	_, err = s.FinishUpload("d", func(_ PartialUpload, x Saved) (string, error) {
		return "done", s.Release(x.Hash, nil)
	})
	if err != nil || stored() != 2 {
		t.Errorf("the resumable upload once more: %v, %d files stored", err, stored())
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "incoming")); len(left) != 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
	if len(x.scanned) != 6 {
		t.Errorf("scanned: %q", x.scanned)
	}
}

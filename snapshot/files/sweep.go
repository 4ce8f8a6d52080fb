package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/actors/realm"
)

// sweepStep is how many files a sweep looks at, and asks about, at once: some 500 kB of names, and few rounds over the rows
// that may have them.
const sweepStep = 4096

// sweepFile is a file a sweep came upon.
type sweepFile struct {
	kind, name string // as rows name it
	path       string
}

// Sweep removes content, pictures and data exports that were written before a moment and are named by no row: of a process
// that died between file and row, of pictures that were replaced. used is asked about at most sweepStep names of a kind at
// once and returns those that rows name; what is being saved stays, and so does what is saved again meanwhile. pause is
// called between steps and ends the sweep if it says false. A sweep that ends early, by a crash too, has removed what it
// removed; the next finds the rest. It returns how many files it removed.
func (s *Store) Sweep(
	before time.Time,
	used func(kind string, names []string) ([]string, error),
	pause func() bool,
) (removed int, err error) {
	content := filepath.Join(s.dir, "content")
	list, err := os.ReadDir(content)
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	var dirs []string
	for _, d := range list {
		dirs = append(dirs, filepath.Join(content, d.Name()))
	}
	for kind, list := range map[string][]string{realm.ContentFile: dirs, realm.PictureFile: {filepath.Join(s.dir, "pictures")}, realm.ArchiveFile: {filepath.Join(s.dir, "exports")}} {
		var step []sweepFile
		looked := 0
		finish := func() error {
			n, err := s.sweepStep(kind, step, before, used)
			removed, looked, step = removed+n, 0, step[:0]
			if err == nil && !pause() {
				err = errPaused
			}
			return err
		}
		for _, dir := range list {
			err = errors.Join(err, eachEntry(dir, func(e fs.DirEntry) error {
				if name := rowName(kind, e.Name()); name != "" && isOlder(e, before) {
					step = append(step, sweepFile{kind, name, filepath.Join(dir, e.Name())})
				}
				if looked++; looked < sweepStep {
					return nil
				}
				return finish()
			}))
			if err != nil {
				break
			}
		}
		if err == nil {
			err = finish()
		}
		if errors.Is(err, errPaused) {
			return removed, nil
		}
		if err != nil {
			return removed, fmt.Errorf("sweep: %w", err)
		}
	}
	return removed, nil
}

// errPaused ends a sweep that is to go no further.
var errPaused = errors.New("enough")

// rowName is what a row calls a file of that name; "" if it is none of ours.
func rowName(kind, file string) string {
	switch kind {
	case realm.PictureFile:
		if name, ok := strings.CutSuffix(file, ".png"); ok {
			return strings.TrimSuffix(name, "-medium")
		}
		return ""
	case realm.ArchiveFile:
		name, _ := strings.CutSuffix(file, ".jsonl.gz")
		if name == file {
			return ""
		}
		return name
	}
	if len(file) != 64 || strings.Trim(file, "0123456789abcdef") != "" {
		return ""
	}
	return file
}

// eachEntry calls f with each entry of a directory until it fails.
func eachEntry(dir string, f func(fs.DirEntry) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		list, err := d.ReadDir(256) // a directory may have a million
		for _, e := range list {
			if err := f(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func isOlder(e fs.DirEntry, before time.Time) bool {
	info, err := e.Info()
	return err == nil && info.Mode().IsRegular() && info.ModTime().Before(before)
}

// sweepStep removes those of some files that no row names. While the rows are asked nothing is locked: whoever begins to
// save one of them takes it out of the doomed, and whoever was done before has his row.
func (s *Store) sweepStep(
	kind string,
	step []sweepFile,
	before time.Time,
	used func(string, []string) ([]string, error),
) (removed int, err error) {
	if len(step) == 0 {
		return 0, nil
	}
	var names []string
	s.mu.Lock()
	s.removalCandidates = map[string]bool{}
	for _, f := range step {
		if s.pins[f.name] == 0 && !s.removalCandidates[f.name] {
			s.removalCandidates[f.name] = true
			names = append(names, f.name)
		}
	}
	s.mu.Unlock()
	named, err := used(kind, names)
	s.mu.Lock()
	defer s.mu.Unlock()
	doomed := s.removalCandidates
	s.removalCandidates = nil
	if err != nil || s.removalPauses > 0 {
		return 0, err
	}
	for _, name := range named {
		delete(doomed, name)
	}
	for _, f := range step {
		if !doomed[f.name] {
			continue
		}
		if info, err := os.Stat(f.path); err != nil || !info.ModTime().Before(before) { // an export written anew
			continue
		}
		if kind == realm.ContentFile {
			err = s.remove(f.name)
		} else {
			err = os.Remove(f.path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

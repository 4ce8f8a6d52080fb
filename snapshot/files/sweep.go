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

// sweepStep is how many files a sweep handles in one step: about 500 kB of names, and few scans of the rows.
const sweepStep = 4096

// sweepFile is a file that a sweep examines.
type sweepFile struct {
	kind, name string // as in rows
	path       string
}

// Sweep removes content, pictures and data exports that no row names and that were written before the given time. A
// process that ended between writing a file and storing its row leaves such files, and so do replaced pictures. used is
// called with at most sweepStep names of one kind and returns those that rows name. Files that are being saved, or are
// saved again during the sweep, are kept. pause is called between steps; the sweep ends if it returns false. An
// interrupted sweep leaves the rest to the next one. Sweep returns the number of removed files.
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
	for kind, list := range map[string][]string{
		realm.ContentFile: dirs,
		realm.PictureFile: {filepath.Join(s.dir, "pictures")},
		realm.ArchiveFile: {filepath.Join(s.dir, "exports")},
	} {
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

// errPaused ends a sweep after pause returned false.
var errPaused = errors.New("sweep ended by its caller")

// rowName returns the name that rows have for a file; "" for a file that is not part of the store.
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

// eachEntry calls f with each entry of a directory until f fails.
func eachEntry(dir string, f func(fs.DirEntry) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		list, err := d.ReadDir(256) // in parts: a directory may have a million entries
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

// sweepStep removes the files of one step that no row names. Nothing is locked while the rows are asked. A call that
// starts to save one of these files meanwhile deletes it from removalCandidates; a call that finished before has stored
// its row.
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
	candidates := s.removalCandidates
	s.removalCandidates = nil
	if err != nil || s.removalPauses > 0 {
		return 0, err
	}
	for _, name := range named {
		delete(candidates, name)
	}
	for _, f := range step {
		if !candidates[f.name] {
			continue
		}
		if info, err := os.Stat(f.path); err != nil || !info.ModTime().Before(before) {
			continue // an export that was written again
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

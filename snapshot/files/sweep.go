package files

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"parley/actors/realm"
)

// sweepStep is how many files a sweep handles in one step: about 500 kB of names, and few scans of the rows.
const sweepStep = 4096

// sweepFile is a file that a sweep examines.
type sweepFile struct {
	kind, name string // as in rows
	key        string
}

// Sweep removes content, pictures and data exports that no row names and that were written before the given time. A
// process that ended between writing a file and storing its row leaves such files, and so do replaced pictures. used is
// called with at most sweepStep names of one kind and returns those that rows name. Files that are being saved, or are
// saved again during the sweep, are kept. pause is called between steps; the sweep ends if it returns false. An
// interrupted sweep leaves the rest to the next one. Sweep returns the number of removed files. It ends with an error
// that wraps ErrUnavailable if the files are on another machine that cannot be reached.
func (s *Store) Sweep(
	before time.Time,
	used func(kind string, names []string) ([]string, error),
	pause func() bool,
) (removed int, err error) {
	if err := s.Foreign(); err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	s.expireUncertain()
	for kind, prefix := range map[string]string{
		realm.ContentFile: contentPrefix, realm.PictureFile: picturePrefix, realm.ArchiveFile: exportPrefix,
	} {
		var step []sweepFile
		checked := 0
		finish := func() error {
			n, err := s.sweepStep(kind, step, used)
			removed, checked, step = removed+n, 0, step[:0]
			if err == nil && !pause() {
				err = errPaused
			}
			return err
		}
		err = s.blobs.Each(prefix, func(b BlobInfo) error {
			file := path.Base(b.Key)
			if name := rowName(kind, file); name != "" && b.Key == Key(kind, file) && b.Modified.Before(before) {
				step = append(step, sweepFile{kind, name, b.Key})
			}
			if checked++; checked < sweepStep {
				return nil
			}
			return finish()
		})
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

// hashDigits is the length of a hash in the name of content. The term may follow; see UseTerms.
const hashDigits = 64

// rowName returns the name that rows have for a file; "" for a file that is not part of the store.
func rowName(kind, file string) string {
	switch kind {
	case realm.PictureFile:
		if name, ok := strings.CutSuffix(file, ".png"); ok {
			return strings.TrimSuffix(name, "-medium")
		}
		return ""
	case realm.ArchiveFile:
		name := strings.TrimSuffix(strings.TrimSuffix(file, ".jsonl.gz"), ".zip")
		if realm.ExportFile(name) != file {
			return ""
		}
		return name
	}
	if len(file) != hashDigits && len(file) != hashDigits+termDigits || strings.Trim(file, "0123456789abcdef") != "" {
		return ""
	}
	return file
}

// sweepStep removes the files of one step that no row names. Nothing is locked while the rows are asked and while a
// file is removed. A call that starts to save one of these files meanwhile deletes it from removalCandidates, or waits
// for the end of its removal; a call that finished before has stored its row.
func (s *Store) sweepStep(
	kind string,
	step []sweepFile,
	used func(string, []string) ([]string, error),
) (removed int, err error) {
	if len(step) == 0 {
		return 0, nil
	}
	var names []string
	s.mu.Lock()
	candidates := map[string]bool{}
	for _, f := range step {
		if s.pins[f.name] == 0 && !candidates[f.name] {
			candidates[f.name] = true
			names = append(names, f.name)
		}
	}
	s.removalCandidates = candidates
	s.mu.Unlock()
	named, err := used(kind, names)
	if err == nil {
		s.mu.Lock()
		for _, name := range named {
			delete(candidates, name)
		}
		s.mu.Unlock()
		removed, err = s.removeCandidates(step)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removalCandidates = nil
	return removed, err
}

// removeCandidates removes those files of a step that are still in removalCandidates.
func (s *Store) removeCandidates(step []sweepFile) (removed int, err error) {
	for _, f := range step {
		end := s.beginRemoval(f.name, func() bool { return s.removalCandidates[f.name] })
		if end == nil {
			continue
		}
		err := s.remove(f.name, f.key)
		end()
		if err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

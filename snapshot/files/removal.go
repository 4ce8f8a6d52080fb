package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/actors/realm"
)

// A removal must not overtake a new save of the same content, and must not keep saves of other content waiting:
//
//   - pins counts the calls that are saving a name. A pinned name is not removed.
//   - removing has a channel for each name that is being removed. No lock is held during the removal, which can be a
//     request to another machine. A save of that name pins it, waits for the channel and writes afterwards.
//   - A removal at another machine that was sent and not answered may happen later, so the name is not saved again for
//     uncertainTime; such saves get ErrUnavailable. A file in the folder removing remembers this across a crash.

// uncertainTime is how long a removal without an answer may still happen. Requests do not survive longer in proxies
// and servers of S3, whose timeouts are about a minute.
const uncertainTime = 5 * time.Minute

// pin protects a name from removal until Release, and waits for the end of a removal in progress.
func (s *Store) pin(name string) error {
	s.mu.Lock()
	s.pins[name]++
	delete(s.removalCandidates, name)
	removed := s.removing[name]
	s.mu.Unlock()
	if removed != nil {
		<-removed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	until, uncertain := s.uncertain[name]
	switch {
	case !uncertain:
		return nil
	case time.Now().After(until):
		s.forgetUncertain(name)
		return nil
	}
	s.unpin(name)
	return fmt.Errorf("save file: %w: a removal of the same content was not answered", ErrUnavailable)
}

// unpin ends one protection. mu is held.
func (s *Store) unpin(name string) {
	if s.pins[name]--; s.pins[name] <= 0 {
		delete(s.pins, name)
	}
}

// Release ends the protection that Save, SaveAvatar or SaveLogo began. By then the caller has stored a row with the
// hash or name, or never will. In the latter case used, if not nil, must report whether any row has the content; if
// none has, it is removed. A picture is removed by the next sweep.
func (s *Store) Release(hash string, used func() (bool, error)) error {
	s.mu.Lock()
	s.unpin(hash)
	s.mu.Unlock()
	if used == nil {
		return nil
	}
	return s.Remove(hash, used)
}

// Remove deletes content unless used reports that a row has it. The same content cannot be saved and stored in a row in
// between: content that is being saved is not removed, a save that begins meanwhile waits, and content that was
// released is in a row already. Content that cannot be removed now is left to the next sweep.
func (s *Store) Remove(hash string, used func() (bool, error)) error {
	end := s.beginRemoval(hash, nil)
	if end == nil {
		return nil
	}
	defer end()
	if yes, err := used(); err != nil || yes {
		return err
	}
	err := s.remove(hash, ContentKey(hash))
	if errors.Is(err, ErrUnavailable) {
		return nil
	}
	return err
}

// RemoveExport deletes a data export, if it exists.
func (s *Store) RemoveExport(name string) error {
	row := rowName(realm.ArchiveFile, name)
	end := s.beginRemoval(row, nil)
	if end == nil {
		return nil
	}
	defer end()
	err := s.remove(row, Key(realm.ArchiveFile, name))
	if errors.Is(err, ErrUnavailable) {
		return nil
	}
	return err
}

// beginRemoval returns a function that ends the removal of a name, or nil if the name must not be removed now. ok, if
// not nil, is asked while mu is held.
func (s *Store) beginRemoval(name string, ok func() bool) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.foreign != nil || s.pins[name] > 0 || s.removalPauses > 0 || s.removing[name] != nil || ok != nil && !ok() {
		return nil
	}
	done := make(chan struct{})
	s.removing[name] = done
	return func() {
		s.mu.Lock()
		delete(s.removing, name)
		s.mu.Unlock()
		close(done)
	}
}

// remove deletes a file between beginRemoval and its end. It deletes derived files on this machine first, because no
// sweep would find them without the original.
func (s *Store) remove(name, key string) error {
	s.removeDerived(key)
	if !s.remote {
		return s.blobs.Remove(key)
	}
	if err := s.blobs.Ready(); err != nil {
		return err
	}
	record := s.removalRecord(name)
	if err := os.WriteFile(record, []byte(name), 0o600); err != nil {
		return fmt.Errorf("remove file: %w", err)
	}
	err := s.blobs.Remove(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, ErrUncertain) {
		s.uncertain[name] = time.Now().Add(uncertainTime)
		return err
	}
	if _, earlier := s.uncertain[name]; !earlier { // an earlier request may still be on its way
		os.Remove(record)
	}
	return err
}

func (s *Store) removalRecord(name string) string { return filepath.Join(s.dir, "removing", name) }

// forgetUncertain ends the time in which a name is not saved. mu is held.
func (s *Store) forgetUncertain(name string) {
	delete(s.uncertain, name)
	os.Remove(s.removalRecord(name))
}

// loadUncertain loads the removals that the last process sent and did not see answered.
func (s *Store) loadUncertain() error {
	list, err := os.ReadDir(filepath.Join(s.dir, "removing"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range list {
		if info, err := f.Info(); err == nil {
			s.uncertain[f.Name()] = info.ModTime().Add(uncertainTime)
		}
	}
	return nil
}

// expireUncertain forgets the removals without an answer that can no longer happen.
func (s *Store) expireUncertain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, until := range s.uncertain {
		if time.Now().After(until) {
			s.forgetUncertain(name)
		}
	}
}

// removeDerived removes the files on this machine that were made from a stored file.
func (s *Store) removeDerived(key string) {
	switch {
	case strings.HasPrefix(key, contentPrefix):
		s.removeThumbnail(filepath.Base(key))
	case s.remote && strings.HasPrefix(key, picturePrefix):
		s.removeCached(s.cachePath(key))
	}
}

// PauseRemoval makes the Store keep all content, pictures and exports until the returned function is called. A backup
// needs them: its rows may name files that no current row names. The next sweep removes the rest.
// It returns when no removal is in progress.
func (s *Store) PauseRemoval() (end func()) {
	s.mu.Lock()
	s.removalPauses++
	var running []chan struct{}
	for _, done := range s.removing {
		running = append(running, done)
	}
	s.mu.Unlock()
	for _, done := range running {
		<-done
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removalPauses--
	}
}

// SetForeign makes the Store remove nothing, because the files may belong to another server, too. Sweep returns the
// error. Nil ends that.
func (s *Store) SetForeign(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign = reason
}

// Foreign returns the error of SetForeign.
func (s *Store) Foreign() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.foreign
}

// DiscardNew removes files that a failed import has stored and no row names.
func (s *Store) DiscardNew(keys []string) {
	for _, key := range keys {
		s.blobs.Remove(key)
	}
}

package search

import (
	"cmp"
	"slices"
	"syscall"
	"time"

	"parley/actors/realm"
)

// A server has many more organizations than it can have indexes open. The writer closes the indexes that were used
// longest ago: they are parked. A parked index is opened again for a search, or when many texts wait for it.

const (
	// MaxOpen is how many indexes are open. Each has two files and one for each segment, three goroutines, and about
	// 0.1 MB. With 10,000 open ones the server had no descriptors left for its data.
	MaxOpen = 256
	// descriptorsPerOpen bounds the open indexes where a process may have few files: an index with all its segments has
	// about as many.
	descriptorsPerOpen = 16
	// visitInterval is after how long an index is opened for few texts. They take 32 bytes each, and a search does not
	// wait for it.
	visitInterval = 10 * time.Minute
	// maxClosing is how many indexes are closed at the same time. Each waits persistDelay for the disk.
	maxClosing = 64
)

// maxOpenHere returns how many indexes this process may have open.
func maxOpenHere() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return MaxOpen
	}
	return int(max(1, min(MaxOpen, limit.Cur/descriptorsPerOpen)))
}

// isDue reports whether the index must be open now, for its texts or for a search. s.mu is held.
func (s *Service) isDue(r *realmIndex) bool {
	return !r.parked || r.wanted || r.needsCompare || r.rewriteAsked || len(r.queue) >= gatherTexts ||
		len(r.queue) > 0 && s.visiting
}

// release ends the use of an index that wait has returned.
func (s *Service) release(r *realmIndex) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.users--
}

// touch records that the index is used. s.mu is held.
func (s *Service) touch(r *realmIndex) {
	s.uses++
	r.lastUse = s.uses
}

// parkIdle closes the indexes that were used longest ago, if more than limit are open. It returns the limit for the
// next call: it looks at all organizations, so it is not repeated for each index that is opened.
func (s *Service) parkIdle(limit int) (next int) {
	s.mu.Lock()
	next = max(limit, s.maxOpen)
	if s.opened <= next {
		s.mu.Unlock()
		return next
	}
	var idle []*realmIndex
	for _, r := range s.realms {
		if s.mayPark(r) {
			idle = append(idle, r)
		}
	}
	// Some more are closed, so that the next ones are not each looked for.
	n := min(len(idle), s.opened-s.maxOpen+s.maxOpen/8)
	next = max(s.maxOpen, s.opened-n+s.maxOpen/8)
	s.mu.Unlock()
	slices.SortFunc(idle, func(a, b *realmIndex) int { return cmp.Compare(a.lastUse, b.lastUse) })
	for _, r := range idle[:n] {
		s.writeSeq(r)
		s.mu.Lock()
		x := r.index
		if x == nil || !s.mayPark(r) {
			s.mu.Unlock()
			continue
		}
		r.index, r.parked = nil, true
		s.mu.Unlock()
		s.closeIndex(r.id, x)
	}
	return next
}

// mayPark reports whether nothing needs the index now. s.mu is held.
func (s *Service) mayPark(r *realmIndex) bool {
	return r.index != nil && r.users == 0 && len(r.queue) == 0 && !r.needsCompare && r.failed == nil &&
		r.rewritten == nil && r.index.format == textFormat
}

// closeIndex closes an index while the writer goes on.
func (s *Service) closeIndex(id realm.ID, x *Index) {
	done := make(chan struct{})
	s.mu.Lock()
	s.opened--
	s.closing[id] = done
	s.mu.Unlock()
	s.closers <- struct{}{}
	go func() {
		if err := x.Close(); err != nil {
			s.log.Warn("closing a search index failed", "realm", id, "err", err)
		}
		s.mu.Lock()
		if s.closing[id] == done {
			delete(s.closing, id)
		}
		s.mu.Unlock()
		close(done)
		<-s.closers
	}()
}

// waitForClose waits until an index is closed that the writer has begun to close.
func (s *Service) waitForClose(id realm.ID) {
	s.mu.Lock()
	done := s.closing[id]
	s.mu.Unlock()
	if done != nil {
		<-done
	}
}

// mostOpen returns how many indexes may be open. The reference pages, which have no service, show the usual limit.
func (s *Service) mostOpen() int64 {
	if s == nil {
		return MaxOpen
	}
	return int64(s.maxOpen)
}

// Opened returns the number of open indexes, without those that are being closed.
func (s *Service) Opened() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.opened)
}

func (s *Service) setVisiting(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.visiting = on
}

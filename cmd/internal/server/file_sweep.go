package server

import (
	"errors"
	"log/slog"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot/files"
)

// Timing of the sweep.
const (
	// sweepAge is how old an unreferenced file must be before it is removed. Clients that do not know a new picture yet
	// may still request the old one, and an operator has a day to examine a file.
	sweepAge = 24 * time.Hour
	// sweepInterval is the time between two sweeps; the first one begins when the server starts.
	sweepInterval = 24 * time.Hour
	// sweepOwnerPoll is how often a core that does not lead checks whether it has become the leader, which sweeps.
	sweepOwnerPoll = time.Minute
	// sweepRetry is the time until the next sweep after one that could not reach the bucket of the files.
	sweepRetry = time.Minute
	// sweepPause is the time between two steps of a sweep, so that requests come first.
	sweepPause = 100 * time.Millisecond
)

// sweeper removes files that no organization's rows refer to.
type sweeper struct {
	orgs  *actors.Server
	files *files.Store
	log   *slog.Logger
	// leftovers removes unfinished uploads of a killed process from a bucket; nil: there is no bucket.
	leftovers func() error
	// ownerKnown is closed when it is known whether this server may remove files; nil: it may.
	ownerKnown <-chan struct{}
	// checkOwner finds out whether this server may remove files; nil: it may.
	checkOwner func() bool
	early      chan struct{} // asks for a sweep before its time
	stop       chan struct{}
	done       chan struct{}
}

func newSweeper(orgs *actors.Server, f *files.Store, leftovers func() error, checkOwner func() bool,
	ownerKnown <-chan struct{}, log *slog.Logger) *sweeper {
	s := &sweeper{orgs: orgs, files: f, leftovers: leftovers, checkOwner: checkOwner, ownerKnown: ownerKnown, log: log,
		early: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *sweeper) run() {
	defer close(s.done)
	if s.ownerKnown != nil {
		select {
		case <-s.stop:
			return
		case <-s.ownerKnown:
		}
	}
	for s.waitForNext(s.sweep()) {
	}
}

// waitForNext waits for the next sweep, at most for interval. It returns false at once if the sweeper is closed.
func (s *sweeper) waitForNext(interval time.Duration) bool {
	t := time.NewTimer(interval)
	defer t.Stop()
	select {
	case <-s.stop:
		return false
	case <-s.early:
		return true
	case <-t.C:
		return true
	}
}

// sweepSoon begins the next sweep without waiting for its time, because files of purged messages may be left.
func (s *sweeper) sweepSoon() {
	select {
	case s.early <- struct{}{}:
	default:
	}
}

// wait waits for d. It returns false at once if the sweeper is closed.
func (s *sweeper) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.stop:
		return false
	case <-t.C:
		return true
	}
}

// sweep removes files and returns the time until the next sweep. It does nothing unless this node owns every
// organization: only owners know all references.
func (s *sweeper) sweep() (next time.Duration) {
	for _, id := range s.orgs.Realms() {
		if !s.orgs.Owns(id) {
			return sweepOwnerPoll
		}
	}
	if s.files.Foreign() != nil && s.checkOwner != nil {
		s.checkOwner() // another core may have changed it
	}
	if s.leftovers != nil {
		if err := s.leftovers(); err != nil && !errors.Is(err, files.ErrUnavailable) {
			s.log.Warn("removing unfinished uploads to the bucket failed", "err", err)
		}
	}
	removed, err := s.files.Sweep(time.Now().Add(-sweepAge), s.referenced, func() bool { return s.wait(sweepPause) })
	if removed > 0 {
		s.log.Info("removed unreferenced files", "count", removed)
	}
	if errors.Is(err, files.ErrUnavailable) { // which the bucket has logged
		return sweepRetry
	}
	if err != nil {
		s.log.Error("sweep of unreferenced files failed", "err", err)
	}
	return sweepInterval
}

// referenced returns those of the named files that rows of any organization refer to. It has to ask every organization:
// a file of content belongs to one, but its name does not say to which, and pictures are shared.
func (s *sweeper) referenced(kind string, names []string) (found []string, err error) {
	return referencedFiles(s.orgs, kind, names)
}

func referencedFiles(orgs *actors.Server, kind string, names []string) (found []string, err error) {
	wanted := make(map[string]bool, len(names))
	for _, n := range names {
		wanted[n] = true
	}
	for _, id := range orgs.Realms() {
		for from := int64(1); from != 0; {
			_, err := orgs.View(id, systemCaller, func(v realm.View) (any, error) {
				part, next := v.ReferencedFiles(kind, wanted, from)
				found, from = append(found, part...), next
				return nil, nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// Close stops the sweeper after the current step.
func (s *sweeper) Close() {
	close(s.stop)
	<-s.done
}

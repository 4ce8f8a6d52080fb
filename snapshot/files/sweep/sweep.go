package sweep

import (
	"errors"
	"log/slog"
	"time"

	"parley/actors/realm"
	"parley/snapshot/files"
)

// Organizations refer to files.
type Organizations interface {
	realm.Views
	// Realms returns the organizations by subdomain.
	Realms() map[string]realm.ID
	// Owns reports whether this node owns an organization.
	Owns(realm.ID) bool
	// SleepingFiles returns the digests of the files of an organization that is not in memory; false if it is.
	SleepingFiles(realm.ID) (realm.Digests, bool)
}

// Timing of the sweep.
const (
	// MinAge is how old an unreferenced file must be before it is removed. Clients that do not know a new picture yet
	// may still request the old one, and an operator has a day to examine a file.
	MinAge = 24 * time.Hour
	// interval is the time between two sweeps; the first one begins when the server starts.
	interval = 24 * time.Hour
	// ownerPoll is how often a core that does not lead checks whether it has become the leader, which sweeps.
	ownerPoll = time.Minute
	// retry is the time until the next sweep after one that could not reach the bucket of the files.
	retry = time.Minute
	// pause is the time between two steps of a sweep, so that requests come first.
	pause = 100 * time.Millisecond
)

// Sweeper removes files regularly that no organization's rows refer to.
type Sweeper struct {
	orgs  Organizations
	files *files.Store
	log   *slog.Logger
	// See Start.
	leftovers  func() error
	ownerKnown <-chan struct{}
	checkOwner func() bool
	early      chan struct{} // asks for a sweep before its time
	stop       chan struct{}
	done       chan struct{}
}

// Start starts a sweeper. leftovers removes unfinished uploads of a killed process from a bucket; nil: there is no
// bucket. checkOwner finds out whether this server may remove files, and ownerKnown is closed when that is known; nil:
// it may.
func Start(orgs Organizations, f *files.Store, leftovers func() error, checkOwner func() bool,
	ownerKnown <-chan struct{}, log *slog.Logger) *Sweeper {
	s := &Sweeper{orgs: orgs, files: f, leftovers: leftovers, checkOwner: checkOwner, ownerKnown: ownerKnown, log: log,
		early: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *Sweeper) run() {
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

// waitForNext waits for the next sweep, at most for interval. It returns false at once if the Sweeper is closed.
func (s *Sweeper) waitForNext(interval time.Duration) bool {
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

// SweepSoon begins the next sweep without waiting for its time, because files of purged messages may be left.
func (s *Sweeper) SweepSoon() {
	select {
	case s.early <- struct{}{}:
	default:
	}
}

// wait waits for d. It returns false at once if the Sweeper is closed.
func (s *Sweeper) wait(d time.Duration) bool {
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
func (s *Sweeper) sweep() (next time.Duration) {
	for _, id := range s.orgs.Realms() {
		if !s.orgs.Owns(id) {
			return ownerPoll
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
	removed, err := Sweep(s.orgs, s.files, time.Now().Add(-MinAge), func() bool { return s.wait(pause) })
	if removed > 0 {
		s.log.Info("removed unreferenced files", "count", removed)
	}
	if errors.Is(err, files.ErrUnavailable) { // which the bucket has logged
		return retry
	}
	if err != nil {
		s.log.Error("sweep of unreferenced files failed", "err", err)
	}
	return interval
}

// Sweep removes the files that are older than before and that no row of any organization refers to. proceed is called
// between two steps; the sweep ends if it returns false.
func Sweep(orgs Organizations, f *files.Store, before time.Time, proceed func() bool) (removed int, err error) {
	return f.Sweep(before, func(kind string, names []string) ([]string, error) {
		return Referenced(orgs, kind, names)
	}, proceed)
}

// Referenced returns those of the named files that rows of any organization refer to. It has to ask every organization:
// a file of content belongs to one, but its name does not say to which, and pictures are shared.
func Referenced(orgs Organizations, kind string, names []string) (found []string, err error) {
	wanted := make(map[string]bool, len(names))
	for _, n := range names {
		wanted[n] = true
	}
	digests := make(map[realm.Digest]string, len(names))
	for _, n := range names {
		digests[realm.FileDigest(kind, n)] = n
	}
	for _, id := range orgs.Realms() {
		if used, ok := orgs.SleepingFiles(id); ok {
			used.Each(func(d realm.Digest) {
				if n, is := digests[d]; is {
					found = append(found, n)
				}
			})
			continue
		}
		for from := int64(1); from != 0; {
			_, err := orgs.View(id, realm.System, func(v realm.View) (any, error) {
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

// Close stops the Sweeper after the current step.
func (s *Sweeper) Close() {
	close(s.stop)
	<-s.done
}

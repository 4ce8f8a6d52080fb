package main

import (
	"log/slog"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot/files"
)

const (
	// sweepAge is how old a file must be that no row names before it goes: clients that have not heard of a new picture may
	// still ask for the old one, and who wonders where a file comes from has a day to look.
	sweepAge = 24 * time.Hour
	// sweepEvery is how often files are looked through while the server runs; it also does so when it starts.
	sweepEvery = 24 * time.Hour
	// sweepPause lies between two steps: requests come first.
	sweepPause = 100 * time.Millisecond
)

// sweeper removes files that no organization's rows name.
type sweeper struct {
	house *actors.Server
	files *files.Store
	log   *slog.Logger
	stop  chan struct{}
	done  chan struct{}
}

func newSweeper(house *actors.Server, kept *files.Store, log *slog.Logger) *sweeper {
	s := &sweeper{house: house, files: kept, log: log, stop: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *sweeper) run() {
	defer close(s.done)
	for s.sweep(); s.wait(sweepEvery); s.sweep() {
	}
}

// wait reports whether that much time has passed; false: the server stops.
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

func (s *sweeper) sweep() {
	removed, err := s.files.Sweep(time.Now().Add(-sweepAge), s.referenced, func() bool { return s.wait(sweepPause) })
	if err != nil {
		s.log.Error("look for files nobody names", "error", err)
	}
	if removed > 0 {
		s.log.Info("files that nobody names are gone", "files", removed)
	}
}

// referenced asks every organization which of these files its rows name: content belongs to one, but its name does not say
// which, and pictures are shared.
func (s *sweeper) referenced(kind string, names []string) (named []string, err error) {
	asked := make(map[string]bool, len(names))
	for _, n := range names {
		asked[n] = true
	}
	for _, id := range s.house.Realms() {
		for from := int64(1); from != 0; {
			_, err := s.house.View(id, systemCaller, func(v realm.View) (any, error) {
				found, next := v.ReferencedFiles(kind, asked, from)
				named, from = append(named, found...), next
				return nil, nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return named, nil
}

// Close ends the work between two steps.
func (s *sweeper) Close() {
	close(s.stop)
	<-s.done
}

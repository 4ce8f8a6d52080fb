package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// collectAt is how far the heap may grow over what is live before it is collected, in percent. The live heap is small
// beside what polls and sends allocate and drop: at Go's 100 a seventh of the processor went into collecting. Where it is
// collected more often than collections in lookEvery, it may grow farther, up to collectLate: whoever sends meanwhile helps,
// and waits. Only as far as spareLate bytes, though: a heap of large bodies grows by collectAt.
const (
	collectAt   = 300
	collectLate = 900
	collections = 2
	spareLate   = 256 << 20
)

// A heap that may grow to several times what is live keeps the memory of its busiest time. It is given back when things
// have become calm: when so little is allocated that the next collection would be long in coming.
const (
	lookEvery  = 10 * time.Second
	calmBytes  = 10 << 20 // allocated from one look to the next: the heartbeats of 20,000 polls are about half of that
	spareBytes = 16 << 20 // that are worth a collection; or a quarter of what is live
)

// steward minds how much memory the heap takes, from its making on; run has it look every lookEvery.
type steward struct {
	samples   []metrics.Sample
	cycles    uint64 // collections so far
	allocated uint64
	calm      bool // so it was the last time

	mu      sync.Mutex
	late    int // what collectAt is now, for a heap that is small enough; 0: somebody else decides
	percent int
}

func newSteward() *steward {
	s := &steward{}
	for _, name := range []string{"/gc/cycles/automatic:gc-cycles", "/gc/heap/allocs:bytes", "/gc/heap/live:bytes",
		"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes"} {
		s.samples = append(s.samples, metrics.Sample{Name: name})
	}
	if os.Getenv("GOGC") == "" {
		s.late = collectAt
		s.collected()
	}
	return s
}

// collected is called after each collection: what is live may be far more than it was.
func (s *steward) collected() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	s.grow(live[0].Value.Uint64())
	runtime.AddCleanup(new([64]byte), (*steward).collected, s)
}

// grow lets the heap grow as far as it may with so many live bytes.
func (s *steward) grow(live uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late == 0 {
		return
	}
	if percent := max(collectAt, min(s.late, int(spareLate*100/max(live, 1)))); percent != s.percent {
		s.percent = percent
		debug.SetGCPercent(percent)
	}
}

// look gives back what there is to spare if it has been calm for two looks.
func (s *steward) look() {
	metrics.Read(s.samples)
	value := func(i int) uint64 { return s.samples[i].Value.Uint64() }
	cycles, allocated, live, held := value(0), value(1), value(2), value(3)+value(4)+value(5)
	calm := allocated-s.allocated < calmBytes
	s.mu.Lock()
	if s.late > 0 {
		s.late = min(max(s.late*int(cycles-s.cycles)/collections, collectAt), collectLate)
	}
	s.mu.Unlock()
	s.grow(live)
	if s.calm && calm && held > live+max(spareBytes, live/4) {
		debug.FreeOSMemory()
	}
	s.cycles, s.allocated, s.calm = cycles, allocated, calm
}

func (s *steward) run(stop <-chan struct{}) {
	metrics.Read(s.samples)
	s.cycles, s.allocated = s.samples[0].Value.Uint64(), s.samples[1].Value.Uint64() // from here on it counts
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.look()
		case <-stop:
			return
		}
	}
}

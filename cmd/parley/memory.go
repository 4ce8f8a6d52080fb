package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// baseGCPercent is how far the heap may grow over what is live before it is collected, in percent. The live heap is small
// beside what polls and sends allocate and drop: at Go's 100 a seventh of the processor went into collecting. Where it is
// collected more often than collections in checkInterval, it may grow farther, up to maxGCPercent: whoever sends meanwhile helps,
// and waits. Only as far as maxExtraHeap bytes, though: a heap of large bodies grows by baseGCPercent.
const (
	baseGCPercent     = 300
	maxGCPercent      = 900
	targetCollections = 2
	maxExtraHeap      = 256 << 20
)

// A heap that may grow to several times what is live keeps the memory of its busiest time. It is given back when things
// have become calm: when so little is allocated that the next collection would be long in coming.
const (
	checkInterval  = 10 * time.Second
	idleAllocation = 10 << 20 // allocated from one look to the next: the heartbeats of 20,000 polls are about half of that
	minReclaim     = 16 << 20 // that are worth a collection; or a quarter of what is live
)

// gcTuner minds how much memory the heap takes, from its making on; run has it look every checkInterval.
type gcTuner struct {
	samples   []metrics.Sample
	cycles    uint64 // targetCollections so far
	allocated uint64
	idle      bool // so it was the last time

	mu           sync.Mutex
	percentLimit int // what baseGCPercent is now, for a heap that is small enough; 0: somebody else decides
	percent      int
}

func newGCTuner() *gcTuner {
	s := &gcTuner{}
	for _, name := range []string{"/gc/cycles/automatic:gc-cycles", "/gc/heap/allocs:bytes", "/gc/heap/live:bytes",
		"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes"} {
		s.samples = append(s.samples, metrics.Sample{Name: name})
	}
	if os.Getenv("GOGC") == "" {
		s.percentLimit = baseGCPercent
		s.collected()
	}
	return s
}

// collected is called after each collection: what is live may be far more than it was.
func (s *gcTuner) collected() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	s.setPercent(live[0].Value.Uint64())
	runtime.AddCleanup(new([64]byte), (*gcTuner).collected, s)
}

// setPercent lets the heap setPercent as far as it may with so many live bytes.
func (s *gcTuner) setPercent(live uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.percentLimit == 0 {
		return
	}
	if percent := max(baseGCPercent, min(s.percentLimit, int(maxExtraHeap*100/max(live, 1)))); percent != s.percent {
		s.percent = percent
		debug.SetGCPercent(percent)
	}
}

// check gives back what there is to spare if it has been calm for two looks.
func (s *gcTuner) check() {
	metrics.Read(s.samples)
	value := func(i int) uint64 { return s.samples[i].Value.Uint64() }
	cycles, allocated, live, held := value(0), value(1), value(2), value(3)+value(4)+value(5)
	calm := allocated-s.allocated < idleAllocation
	s.mu.Lock()
	if s.percentLimit > 0 {
		s.percentLimit = min(max(s.percentLimit*int(cycles-s.cycles)/targetCollections, baseGCPercent), maxGCPercent)
	}
	s.mu.Unlock()
	s.setPercent(live)
	if s.idle && calm && held > live+max(minReclaim, live/4) {
		debug.FreeOSMemory()
	}
	s.cycles, s.allocated, s.idle = cycles, allocated, calm
}

func (s *gcTuner) run(stop <-chan struct{}) {
	metrics.Read(s.samples)
	s.cycles, s.allocated = s.samples[0].Value.Uint64(), s.samples[1].Value.Uint64() // from here on it counts
	t := time.NewTicker(checkInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.check()
		case <-stop:
			return
		}
	}
}

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Limits of heap growth. The live heap is small beside the memory that polls and sends allocate and drop: with Go's
// default of 100 percent, a seventh of the processor time went into garbage collection. baseGCPercent is the growth in
// percent between two collections. If more than targetCollections happen in adaptChecks checks, the heap may grow
// further, up to maxGCPercent, because senders help with each collection and wait. The growth is at most maxExtraHeap
// bytes, or minGCPercent if that is more: an overloaded server must not take memory that it does not need.
//
// Answers on their way to clients are live, but the heap does not grow because of them: they use up the growth, as
// garbage does. At least minExtraHeap is left, or half of the rest of the live heap if that is more: a collection takes
// processor time in proportion to it.
//
// When thousands of clients register at once, collections took a fifth of the processor time. So as long as the live
// heap is below ampleShare of the memory limit, fewAnswers bytes of answers are not counted, and those beyond them
// twice until all are; and while there are only so few, a large heap may grow by up to ampleGCPercent.
const (
	baseGCPercent     = 300
	minGCPercent      = 100
	maxGCPercent      = 900
	targetCollections = 2
	maxExtraHeap      = 192 << 20
	minExtraHeap      = 48 << 20
	ampleGCPercent    = 200
	ampleShare        = 0.25
	fewAnswers        = 64 << 20
)

// A heap that may grow to several times its live part keeps the memory of its busiest time. It is released when the
// server is idle: when so little is allocated that the next collection would be far away.
// The garbage of thousands of registrations or TLS handshakes is released some seconds after them.
const (
	checkInterval = 2 * time.Second
	adaptChecks   = 5 // checks between two adaptations of the growth
	// bytes allocated between two checks; the heartbeats of 20,000 polls are about half of that
	idleAllocation = 2 << 20
	// bytes that must be free, and that must have been allocated since the last release, to be worth a collection;
	// also an eighth of the live heap must be free
	minReclaim = 4 << 20
	// checks between two releases of the program's pages; the first one is at the end of the start
	unmapChecks = 4
)

// gcTuner controls how far the heap grows, and releases memory when the server is idle. It concerns the whole process,
// so there is one. run calls check every checkInterval.
type gcTuner struct {
	samples   []metrics.Sample
	checks    int
	cycles    uint64 // collections until the last adaptation
	allocated uint64 // bytes allocated until the last check
	released  uint64 // bytes allocated until the last release
	unmapped  int    // checks since the last release of the program's pages
	idle      bool   // whether the server was idle at the last check

	mu           sync.Mutex
	answers      func() int // bytes of answers on their way; nil: unknown
	percentLimit int        // the growth allowed now for a small heap; 0: GOGC is set, so the operator decides
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

// countAnswers sets the function that returns the bytes of answers on their way.
func (s *gcTuner) countAnswers(answers func() int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = answers
}

// collected runs after each collection: the live heap may have grown a lot since the last check.
func (s *gcTuner) collected() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	s.setPercent(live[0].Value.Uint64())
	runtime.AddCleanup(new([64]byte), (*gcTuner).collected, s)
}

// setPercent sets the growth for a heap with so many live bytes.
func (s *gcTuner) setPercent(live uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.percentLimit == 0 {
		return
	}
	answers := uint64(0)
	if s.answers != nil {
		answers = min(live, uint64(max(0, s.answers())))
	}
	ample := uint64(ampleShare * float64(debug.SetMemoryLimit(-1))) // it returns the limit
	if percent := gcPercent(live, answers, uint64(s.percentLimit), ample); percent != s.percent {
		s.percent = percent
		debug.SetGCPercent(percent)
	}
}

// gcPercent returns the growth in percent, at most limit, for a heap with live bytes. answers is the part of the live
// bytes that belongs to answers on their way. Up to ample bytes, a large heap may grow further than it must.
func gcPercent(live, answers, limit, ample uint64) int {
	if live < ample {
		answers = min(answers, 2*(max(answers, fewAnswers)-fewAnswers))
	}
	rest := live - answers
	extra := max(rest*minGCPercent/100, min(rest*limit/100, maxExtraHeap))
	if rest > maxExtraHeap && answers == 0 && live < ample {
		// from minGCPercent at maxExtraHeap to ampleGCPercent at twice that
		more := min((rest-maxExtraHeap)*ampleGCPercent/100, rest*(ampleGCPercent-minGCPercent)/100)
		extra = max(extra, min(extra+more, ample-live))
	}
	if answers > 0 {
		extra = max(extra, answers+minExtraHeap, answers+rest/2) - answers
	}
	return int(min(extra*100/max(live, 1), limit))
}

// check adapts the growth to the number of collections, and releases memory if the server was idle at two checks.
func (s *gcTuner) check() {
	metrics.Read(s.samples)
	value := func(i int) uint64 { return s.samples[i].Value.Uint64() }
	cycles, allocated, live, held := value(0), value(1), value(2), value(3)+value(4)+value(5)
	quiet := allocated-s.allocated < idleAllocation
	s.mu.Lock()
	if s.checks++; s.percentLimit > 0 && s.checks%adaptChecks == 0 {
		s.percentLimit = min(max(s.percentLimit*int(cycles-s.cycles)/targetCollections, baseGCPercent), maxGCPercent)
		s.cycles = cycles
	}
	s.mu.Unlock()
	s.setPercent(live)
	if s.idle && quiet && held > live+max(minReclaim, live/8) && allocated > s.released+minReclaim {
		debug.FreeOSMemory()
		s.released = allocated
	}
	if s.unmapped++; s.idle && quiet && s.unmapped >= unmapChecks && mappedPages() > maxIdlePages {
		releaseProgramPages() // the start has logged an error
		s.unmapped = 0
	}
	s.allocated, s.idle = allocated, quiet
}

func (s *gcTuner) run(stop <-chan struct{}) {
	metrics.Read(s.samples)
	s.cycles, s.allocated = s.samples[0].Value.Uint64(), s.samples[1].Value.Uint64() // count from now on
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

// setImportMemory makes the garbage collector keep the process of an import below a limit in bytes. Some 60 MiB are
// left of the default for the program's own pages, and the rest for the time until a collection has ended.
func setImportMemory(limit int64) { debug.SetMemoryLimit(limit * 5 / 8) }

package main

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

var garbage [][]byte

// Memory is released when the server has been idle for two checks, not before.
func TestIdleMemoryIsReleased(t *testing.T) {
	t.Setenv("GOGC", "300") // so that newGCTuner does not change the collector of other tests
	released := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	busy := func() {
		for range 64 {
			garbage = append(garbage, make([]byte, 1<<20))
		}
		garbage = nil
	}
	g := newGCTuner()
	busy()
	before := released()
	g.check() // busy
	busy()
	g.check() // still busy
	g.check() // idle for the first time
	if now := released(); now > before+32<<20 {
		t.Errorf("%d bytes were released while busy", now-before)
	}
	g.check()
	if now := released(); now < before+32<<20 {
		t.Errorf("%d bytes are released, %d before: no memory was released", now, before)
	}
}

// A small heap with many collections may grow to ten times its size, an idle one to four times; a large one to three
// times.
func TestGCPercentFollowsTheHeap(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	for _, x := range []struct {
		late   int
		live   uint64
		growth int
	}{{maxGCPercent, 1 << 20, 900}, {maxGCPercent, 48 << 20, 400}, {maxGCPercent, 1 << 30, 200},
		{baseGCPercent, 64 << 20, 300},
		{baseGCPercent, 1 << 20, 300}} {
		g := &gcTuner{percentLimit: x.late}
		g.setPercent(x.live)
		if growth := debug.SetGCPercent(100); growth != x.growth {
			t.Errorf("%d live bytes, late %d: %d percent, want %d", x.live, x.late, growth, x.growth)
		}
	}
}

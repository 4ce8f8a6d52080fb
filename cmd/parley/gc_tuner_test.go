package main

import (
	"math"
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

// A small heap with many collections may grow to ten times its size, an idle one to four times; a large one to twice
// its size. Large answers that clients do not read do not multiply with the growth: 250 MB of them in a heap of 70 MB
// took 1 GB.
func TestGCPercentFollowsTheHeap(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	const mb = 1 << 20
	for _, x := range []struct {
		limit   int
		live    uint64
		answers int
		memory  int64 // its limit
		growth  int
	}{
		{maxGCPercent, mb, 0, mb << 7, 900},
		{maxGCPercent, 48 * mb, 0, mb << 7, 400},
		{maxGCPercent, 1024 * mb, 0, mb << 7, 100},
		{baseGCPercent, 64 * mb, 0, mb << 7, 300},
		{baseGCPercent, mb, 0, mb << 7, 300},
		{baseGCPercent, 320 * mb, 0, mb << 7, 100},
		{baseGCPercent, 320 * mb, 250 * mb, mb << 7, 15},  // 368 MB
		{baseGCPercent, 80 * mb, 10 * mb, mb << 7, 227},   // 262 MB
		{baseGCPercent, 1024 * mb, 256 * mb, mb << 7, 50}, // 1.5 GB, as without answers
		{baseGCPercent, 1024 * mb, 1000 * mb, mb << 7, 4}, // nearly all is answers
		{baseGCPercent, 4 * mb, 4 * mb, mb << 7, 300},     // a small heap
		{baseGCPercent, 64 * mb, 1024 * mb, mb << 7, 75},  // counted after the collection
		// with much memory
		{baseGCPercent, 64 * mb, 0, mb << 13, 300},
		{baseGCPercent, 192 * mb, 0, mb << 13, 100},
		{baseGCPercent, 200 * mb, 0, mb << 13, 108},
		{baseGCPercent, 320 * mb, 0, mb << 13, 180},
		{baseGCPercent, 1024 * mb, 0, mb << 13, 100}, // 2 GB, a quarter
		{baseGCPercent, 1024 * mb, 0, mb << 14, 200},
		{baseGCPercent, 320 * mb, 0, mb * 3 << 10, 140}, // up to 768 MB, a quarter
		{baseGCPercent, 320 * mb, 60 * mb, mb << 13, 180},
		{baseGCPercent, 100 * mb, 50 * mb, mb << 13, 192}, // thousands of clients register
		{baseGCPercent, 200 * mb, 80 * mb, mb << 13, 80},  // 32 MB are counted
		{baseGCPercent, 320 * mb, 128 * mb, mb << 13, 30}, // all are counted
		{baseGCPercent, 1024 * mb, 0, math.MaxInt64, 200}, // no limit is known
	} {
		debug.SetMemoryLimit(x.memory)
		g := &gcTuner{percentLimit: x.limit, answers: func() int { return x.answers }}
		g.setPercent(x.live)
		if growth := debug.SetGCPercent(100); growth != x.growth {
			t.Errorf("%d MB live, %d MB answers, limit %d: %d percent, want %d", x.live/mb, x.answers/mb, x.limit,
				growth, x.growth)
		}
	}
}

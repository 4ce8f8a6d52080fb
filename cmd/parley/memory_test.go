package main

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

var garbage [][]byte

// Memory of a busy time goes back to the system when it has been calm for a while, and not before.
func TestIdleMemoryIsReleased(t *testing.T) {
	t.Setenv("GOGC", "300") // leaves the collector of the other tests alone
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
	g.check() // was busy
	busy()
	g.check() // still
	g.check() // is calm for the first time
	if now := released(); now > before+32<<20 {
		t.Errorf("%d bytes given back in a busy time", now-before)
	}
	g.check()
	if now := released(); now < before+32<<20 {
		t.Errorf("%d bytes are with the system, %d before: nothing was given back", now, before)
	}
}

// A small heap that is collected often may grow to ten times its size; one of large bodies, and one that rests, to four times.
func TestGCPercentFollowsTheHeap(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	for _, x := range []struct {
		late   int
		live   uint64
		growth int
	}{{maxGCPercent, 1 << 20, 900}, {maxGCPercent, 64 << 20, 400}, {maxGCPercent, 1 << 30, 300}, {baseGCPercent, 1 << 20, 300}} {
		g := &gcTuner{percentLimit: x.late}
		g.setPercent(x.live)
		if growth := debug.SetGCPercent(100); growth != x.growth {
			t.Errorf("%d live bytes, late %d: %d percent, want %d", x.live, x.late, growth, x.growth)
		}
	}
}

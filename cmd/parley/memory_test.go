package main

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

var garbage [][]byte

// Memory of a busy time goes back to the system when it has been calm for a while, and not before.
func TestMemoryIsGivenBack(t *testing.T) {
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
	g := newSteward()
	busy()
	before := released()
	g.look() // was busy
	busy()
	g.look() // still
	g.look() // is calm for the first time
	if now := released(); now > before+32<<20 {
		t.Errorf("%d bytes given back in a busy time", now-before)
	}
	g.look()
	if now := released(); now < before+32<<20 {
		t.Errorf("%d bytes are with the system, %d before: nothing was given back", now, before)
	}
}

// A small heap that is collected often may grow to ten times its size; one of large bodies, and one that rests, to four times.
func TestTheHeapGrowsAsFarAsItMay(t *testing.T) {
	was := debug.SetGCPercent(100)
	defer debug.SetGCPercent(was)
	for _, x := range []struct {
		late   int
		live   uint64
		growth int
	}{{collectLate, 1 << 20, 900}, {collectLate, 64 << 20, 400}, {collectLate, 1 << 30, 300}, {collectAt, 1 << 20, 300}} {
		g := &steward{late: x.late}
		g.grow(x.live)
		if growth := debug.SetGCPercent(100); growth != x.growth {
			t.Errorf("%d live bytes, late %d: %d percent, want %d", x.live, x.late, growth, x.growth)
		}
	}
}

package main

import (
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

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The size of the short form of TestEdgeKillPollers, and the most users that the long form has.
const (
	edgeKillPollers = 300
	edgeKillUsers   = 100
	edgeKillMost    = 9500
)

// TestEdgeKillPollers kills edges with kill -9 while many clients poll them. Every client gets the next message from
// another edge within 3 s, each message once and in order, and no client registers again. KILLS, POLLERS and SEED make
// the test longer or repeat it: make kill-edges has 9,500 pollers.
func TestEdgeKillPollers(t *testing.T) {
	kills, pollers := environmentNumber("KILLS", 2), environmentNumber("POLLERS", edgeKillPollers)
	seed := environmentNumber("SEED", int(time.Now().UnixNano()%1e9))
	users := edgeKillUsers
	if pollers > edgeKillPollers {
		users = min(pollers, edgeKillMost)
	}
	load := parleyCommand("bench", "cluster", "--self", "--ratios=false", "--core-kills", "0",
		"--kills", fmt.Sprint(kills), "--pollers", fmt.Sprint(pollers), "--users", fmt.Sprint(users), "--seed",
		fmt.Sprint(seed))
	var out strings.Builder
	load.Stdout, load.Stderr = &out, &out
	if kills > 2 {
		load.Stdout, load.Stderr = os.Stdout, os.Stderr // it reports its progress
	}
	if err := load.Run(); err != nil {
		t.Errorf("KILLS=%d POLLERS=%d SEED=%d: %v", kills, pollers, seed, err)
	}
	t.Log(out.String())
}

// TestCoreKillUnderEdges kills the core under three edges that clients poll, and starts it again. Nothing is lost,
// doubled, reordered or leaked, no client registers again, and all nodes have the same state in the end. KILLS, CLIENTS
// and SEED make the test longer or repeat it: make kill-core-edges.
func TestCoreKillUnderEdges(t *testing.T) {
	run := newKillRun(t, "KILLS", 2, 18)
	c := startEdges(t, 3)
	l := newKillRecord(t, run, c.edges[0].url(), c.edges[1].url(), c.edges[2].url())
	l.startSending()
	l.measureGaps()
	var longest time.Duration
	for i := range run.times {
		l.waitForMoment(50*time.Millisecond, 300*time.Millisecond)
		l.gaps.next()
		c.core.kill()
		c.start(c.core)
		longest = max(longest, l.gaps.next())
		if i%20 == 19 {
			t.Logf("%d kills, the longest time without an acknowledged change was %v", i+1, longest)
		}
	}
	l.end()
	c.verify(4)
	t.Logf("%d kills, the longest time without an acknowledged change was %v", run.times,
		longest.Round(time.Millisecond))
}

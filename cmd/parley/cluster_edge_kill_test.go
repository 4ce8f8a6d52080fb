package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
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
	kills, clients := environmentNumber("KILLS", 2), environmentNumber("CLIENTS", 18)
	seed := uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("KILLS=%d CLIENTS=%d SEED=%d", kills, clients, seed)
	c := startEdges(t, 3)
	l := newKillRecord(t, c.edges[0].url(), clients, c.edges[1].url(), c.edges[2].url())
	random := rand.New(rand.NewPCG(seed, 1))
	stop := make(chan struct{})
	var sending sync.WaitGroup
	for i := range killSenders {
		sending.Go(func() { l.sendUntil(stop, i, rand.New(rand.NewPCG(seed, uint64(100+i)))) })
	}
	gaps := &longestGap{}
	sending.Go(func() { gaps.measure(stop, demoAccount(t, c.edges[0].url(), "ann@example.org")) })
	var longest time.Duration
	for i := range kills {
		time.Sleep(time.Duration(50+random.IntN(300)) * time.Millisecond) // a random moment
		l.waitForClients()
		gaps.next()
		c.core.kill()
		c.start(c.core)
		longest = max(longest, gaps.next())
		if i%20 == 19 {
			t.Logf("%d kills, the longest time without an acknowledged change was %v", i+1, longest)
		}
	}
	close(stop)
	sending.Wait()
	l.finish()
	l.check()
	c.verify(4)
	t.Logf("%d kills, the longest time without an acknowledged change was %v", kills, longest.Round(time.Millisecond))
}

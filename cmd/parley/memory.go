package main

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A heap that may grow to four times what is live keeps the memory of its busiest time. It is given back when things have
// become calm: when so little is allocated that the next collection would be long in coming.
const (
	lookEvery  = 10 * time.Second
	calmBytes  = 10 << 20 // allocated from one look to the next: the heartbeats of 20,000 polls are about half of that
	spareBytes = 16 << 20 // that are worth a collection; or a quarter of what is live
)

// giver gives memory back; look is to be called now and then.
type giver struct {
	samples   []metrics.Sample
	allocated uint64
	calm      bool // so it was the last time
}

func newGiver() *giver {
	g := &giver{}
	for _, name := range []string{"/gc/heap/allocs:bytes", "/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes"} {
		g.samples = append(g.samples, metrics.Sample{Name: name})
	}
	return g
}

// look gives back what there is to spare if it has been calm for two looks.
func (g *giver) look() {
	metrics.Read(g.samples)
	allocated, live := g.samples[0].Value.Uint64(), g.samples[1].Value.Uint64()
	held := g.samples[2].Value.Uint64() + g.samples[3].Value.Uint64() + g.samples[4].Value.Uint64()
	before, was := g.allocated, g.calm
	g.allocated, g.calm = allocated, allocated-before < calmBytes
	if was && g.calm && held > live+max(spareBytes, live/4) {
		debug.FreeOSMemory()
	}
}

func (g *giver) run(stop <-chan struct{}) {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			g.look()
		case <-stop:
			return
		}
	}
}

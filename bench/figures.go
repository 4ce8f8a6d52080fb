package bench

import (
	"fmt"
	"time"
)

// serverInfo copies the description of the measured server to the result.
func (r *run) serverInfo() {
	s := r.server
	r.result.Server = ServerInfo{Version: s.version, Level: s.featureLevel, Pid: s.pid}
	if s.cmd != nil {
		r.result.Server.Answers = s.startTook.Seconds()
	}
}

// idleFigures measures a server that has just started with the crowd's data and has no connections.
func (r *run) idleFigures() {
	const look = 5 * time.Second
	p := process{r.server.pid}
	r.loop.RunFor(time.Second, nil) // the cost of the start itself is another figure
	before, _ := p.cpu()
	r.loop.RunFor(look, nil)
	after, _ := p.cpu()
	rss, err := p.rss()
	if err != nil {
		return
	}
	r.result.add(Figure{Name: "start.answers", Unit: "s", Value: r.server.startTook.Seconds(),
		Note: "start of the process to its first answer"})
	r.result.add(Figure{Name: "start.rss", Unit: "MB", Value: float64(rss) / (1 << 20),
		Note: "no connections, the crowd's organization loaded"})
	r.result.add(Figure{Name: "start.cores", Unit: "cores", Value: (after - before).Seconds() / look.Seconds(),
		Note: "no connections; the kernel counts CPU in steps of 10 ms, so 0.002 is the smallest value above zero"})
}

// recordMemoryBefore stores the memory use before queues are registered.
func (r *run) recordMemoryBefore() {
	if r.server.pid == 0 {
		return
	}
	x := r.sampler.takeSample(true)
	r.rssBefore, r.heapBefore = x.RSS, x.Heap
}

// parkedFigures adds the figures of a waiting poll, including its queue.
func (r *run) parkedFigures() {
	n := len(r.pollers)
	r.result.Build.Register = r.registerTook.Seconds()
	if n == 0 {
		return
	}
	r.logf("%d queues registered in %.1f s, %d polls parked", n, r.registerTook.Seconds(), n)
	if r.server.pid == 0 || n < 100 {
		return
	}
	r.memoryFigures("parked", n)
}

func (r *run) memoryFigures(when string, n int) {
	x := r.sampler.takeSample(true)
	per := float64(x.RSS-r.rssBefore) / float64(n) / 1024
	note := fmt.Sprintf("(%d - %d MB) / %d, queue and connection included, no forced collection", x.RSS>>20,
		r.rssBefore>>20, n)
	r.result.add(Figure{Name: when + ".rss_per_poll", Unit: "kB", Value: per, Note: note})
	if x.Heap > 0 {
		r.result.add(Figure{Name: when + ".heap_per_poll", Unit: "kB",
			Value: float64(x.Heap-r.heapBefore) / float64(n) / 1024})
	}
	if x.Goroutines > 0 {
		r.result.add(Figure{Name: when + ".goroutines", Unit: "", Value: float64(x.Goroutines)})
	}
	r.result.add(Figure{Name: when + ".threads", Unit: "", Value: float64(process{r.server.pid}.threads())})
}

// completeResult adds the violations, memory samples and notes of the whole run.
func (r *run) completeResult(took time.Duration) {
	res := r.result
	res.Seconds = took.Seconds()
	res.Violations, res.Broken = r.ledger.violations, r.ledger.violationCount
	res.BrokenByKind = r.ledger.violationsByKind
	res.Complaints = r.complaints
	if r.scenario.Fresh && r.server.pid != 0 && len(r.pollers) >= 100 {
		r.memoryFigures("steady", len(r.pollers))
	}
	all := r.sampler.samples()
	base := r.loop.Wall(0)
	for i, x := range all {
		pt := MemPoint{At: x.At.Sub(base).Seconds(), RSS: x.RSS, Heap: x.Heap, Goroutines: x.Goroutines}
		if i > 0 {
			if dt := x.At.Sub(all[i-1].At).Seconds(); dt > 0 && x.CPU >= all[i-1].CPU {
				pt.CPU = (x.CPU - all[i-1].CPU).Seconds() / dt
			}
		}
		res.Memory = append(res.Memory, pt)
	}
	if len(r.options.agents) > 0 {
		return // the notes below are those of the agents
	}
	var refused, lost, unknown int
	for i := range r.ledger.sends {
		switch r.ledger.sends[i].state {
		case sendRefused:
			refused++
		case sendUnknown:
			unknown++
		case sendPending:
			lost++
		}
	}
	res.Notes = append(res.Notes, fmt.Sprintf("%d sends (%d refused, %d unanswered), %d deliveries due, %d seen, "+
		"%d messages of other senders", len(r.ledger.sends), refused, unknown+lost, r.ledger.due, r.ledger.seen,
		r.ledger.foreignMessages))
	if r.emptyAnswers > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%d polls were answered without an event", r.emptyAnswers))
	}
	if r.lostWhileDown > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%d requests had no answer while the server was down or recovering",
			r.lostWhileDown))
	}
	if r.skippedSteps > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("%d requests of the trace name objects this crowd does not have "+
			"and were skipped", r.skippedSteps))
	}
	if r.server.pid == 0 {
		res.Notes = append(res.Notes, "the server's process is not on this machine or not visible: no CPU and "+
			"memory figures")
	}
}

// progress returns a function that shows the last second: on the live page, and as a line.
func (r *run) progress(p *Phase) func() {
	start := r.loop.Now()
	lastBusy, lastAt := r.loop.Busy(), start
	return func() {
		w := &r.meter.windows[len(r.meter.windows)-1]
		now, busy := r.loop.Now(), r.loop.Busy()
		x := livePoint{Phase: p.Name, Second: (now - start).Seconds(), Requests: w.requests, Delivered: w.delivered,
			Generator: 100 * (busy - lastBusy).Seconds() / (now - lastAt).Seconds(), Away: r.pollersAway,
			Broken: r.ledger.violationCount}
		if w.seen.TotalCount() > 0 {
			x.SeenP50, x.SeenP99 = ms(w.seen.ValueAtQuantile(50)), ms(w.seen.ValueAtQuantile(99))
		}
		if w.took.TotalCount() > 0 {
			x.TookP99 = ms(w.took.ValueAtQuantile(99))
		}
		lastBusy, lastAt = busy, now
		r.live.add(x)
		if !r.options.quiet {
			fmt.Fprintln(r.options.out, x.line())
		}
	}
}

// line returns the second as one line of text.
func (x livePoint) line() string {
	line := fmt.Sprintf("  %-10s %4.0f s  %7d req/s  %7d seen/s", x.Phase, x.Second, x.Requests, x.Delivered)
	if x.SeenP99 > 0 {
		line += fmt.Sprintf("  seen p50 %.2f p99 %.2f ms", x.SeenP50, x.SeenP99)
	}
	if x.TookP99 > 0 {
		line += fmt.Sprintf("  answered p99 %.2f ms", x.TookP99)
	}
	line += fmt.Sprintf("  generator %.0f %%", x.Generator)
	if x.Away > 0 {
		line += fmt.Sprintf("  away %d", x.Away)
	}
	if x.Broken > 0 {
		line += fmt.Sprintf("  BROKEN %d", x.Broken)
	}
	return line
}

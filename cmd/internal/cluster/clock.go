package cluster

import (
	"errors"
	"time"
)

const (
	// clockInterval is the time between two checks whether the wall clock was set.
	clockInterval = time.Second
	// minClockStep is the smallest change that counts. NTP usually corrects smaller ones slowly.
	minClockStep = time.Second
)

// errClockSet ends links, because nodes compare their clocks when they open a link.
var errClockSet = errors.New("the clock of the machine was set")

// clockWatch notices when the wall clock is set. One goroutine may use it.
type clockWatch struct {
	now  func() time.Time // the wall clock
	wall time.Time        // its time at began, without a monotonic reading
	// began is a time with a monotonic reading.
	began time.Time
}

func newClockWatch(now func() time.Time) *clockWatch {
	w := &clockWatch{now: now}
	w.reset()
	return w
}

func (w *clockWatch) reset() { w.wall, w.began = w.now().Round(0), time.Now() }

// step returns by how much the clock was set since the last step, or 0 if that is less than minClockStep.
func (w *clockWatch) step() time.Duration {
	d := w.now().Round(0).Sub(w.wall) - time.Since(w.began)
	if d.Abs() < minClockStep {
		return 0
	}
	w.reset()
	return d
}

// run calls fn after each step of the clock until done is closed.
func (w *clockWatch) run(done <-chan struct{}, fn func(step time.Duration)) {
	t := time.NewTicker(clockInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if d := w.step(); d != 0 {
				fn(d)
			}
		case <-done:
			return
		}
	}
}

// clockSet opens the link again after the clock of this machine was set. The node then knows how far the clock of the
// leader differs, and whether it may host event queues.
func (e *Follower) clockSet(step time.Duration) {
	e.mu.Lock()
	link, own := e.link, e.core == e.Directory.Node
	e.mu.Unlock()
	if link == nil || own { // see Leader.clockSet
		return
	}
	e.Log.Warn("the clock of this machine was set; opening the link to the core again", "step", step.String())
	link.Close(errClockSet)
}

// clockSet ends the links of the leader to the other nodes after the clock of this machine was set; see
// Follower.clockSet.
func (c *Leader) clockSet(step time.Duration) {
	if !c.isLeader.Load() {
		return
	}
	c.Log.Warn("the clock of this machine was set; the other nodes open their links again", "step", step.String())
	for _, p := range c.links.Peers() {
		if p.Node != c.Directory.Node {
			p.Cut(errClockSet)
		}
	}
}

package bench

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// coreReplaced is the replacement of one core.
type coreReplaced struct {
	CatchUp float64 `json:"catch_up_s"` // from the start of the new core until it has a vote
	replacedSends
	Gap float64 `json:"send_gap_s"` // longest time without an acknowledged send
}

// replacedSends is the p99 of sends while cores were replaced, and of those before.
type replacedSends struct {
	Before float64 `json:"send_p99_before_ms"`
	During float64 `json:"send_p99_during_ms"`
}

// replaceBefore is how long sends are measured before a core is replaced.
const replaceBefore = 5 * time.Second

// replaceCores lets a new core join and removes an old one, until no core of the beginning is left.
func (c *clusterKillRun) replaceCores() error {
	l, loop := c.load, c.run.loop
	before, during := newHist(), newHist() // a replacement has some hundred sends: too few for a p99
	for i := range c.nodes {
		l.took.take()
		if err := loop.RunFor(replaceBefore, nil); err != nil {
			return err
		}
		took := l.took.take()
		before.Merge(took)
		x := coreReplaced{}
		x.Before = ms(took.ValueAtQuantile(99))
		began, old, next := loop.Now(), c.nodes[i], c.nodes[(i+1)%len(c.nodes)]
		l.gap = 0
		var s *server
		err := c.serve(func() error {
			return startElsewhere(func() (err error) { // until it has a vote, no request waits for it
				s, err = c.joinNode(fmt.Sprint("new", i), "core", next)
				return err
			})
		})
		if err != nil {
			return err
		}
		if err := c.waitForVotes(next, clusterCoreCount+1); err != nil {
			return errors.Join(err, s.kill())
		}
		x.CatchUp = (loop.Now() - began).Seconds()
		moveElsewhere(s.pid, false)
		name := filepath.Base(dataOf(old))
		err = c.serve(func() error {
			_, err := c.command("cluster", "remove", name, "--data", dataOf(s))
			return err
		})
		if err != nil {
			return err
		}
		c.nodes[i], l.senders[i] = s, l.newPool(s)
		moveElsewhere(old.pid, true)
		if err := c.serve(func() error { old.close(); return nil }); err != nil {
			return err
		}
		if err := c.waitForVotes(s, clusterCoreCount); err != nil {
			return err
		}
		took = l.took.take()
		during.Merge(took)
		x.During, x.Gap = ms(took.ValueAtQuantile(99)), l.gap.Seconds()
		c.result.Replaced = append(c.result.Replaced, x)
		fmt.Fprintf(c.out, "  core %s replaced: the new one had a vote after %.1f s; p99 of sends %.1f ms, before "+
			"%.1f ms; at most %.2f s without an acknowledged send\n", name, x.CatchUp, x.During, x.Before, x.Gap)
	}
	all := &replacedSends{ms(before.ValueAtQuantile(99)), ms(during.ValueAtQuantile(99))}
	c.result.Replacing = all
	fmt.Fprintf(c.out, "  p99 of all sends while cores were replaced %.1f ms, before %.1f ms\n", all.During, all.Before)
	return c.serve(func() error {
		out, err := c.command("cluster", "verify", "--data", dataOf(c.nodes[0]))
		if err == nil && !strings.Contains(out, "equal=true") {
			err = fmt.Errorf("the new cores differ: %s", out)
		}
		return err
	})
}

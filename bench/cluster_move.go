package bench

import (
	"fmt"
	"slices"
	"time"
)

// leaderMoved is one planned move of the leadership.
type leaderMoved struct {
	Slowest float64 `json:"slowest_send_ms"` // longest time until a send was answered
	Gap     float64 `json:"send_gap_s"`      // longest time without an acknowledged send
	Refused int     `json:"refused_sends"`   // that were answered 503, or not at all
}

const (
	moveBefore = time.Second // without a move before each one, so that all cores host queues again
	moveAfter  = time.Second // until the figures of a move are read; a move takes some tens of milliseconds
)

// moveLeader moves the leadership to another core, a number of times.
func (c *clusterKillRun) moveLeader(times int) error {
	l, loop := c.load, c.run.loop
	for range times {
		if err := loop.RunFor(moveBefore, nil); err != nil {
			return err
		}
		l.took.take()
		l.gap, l.sentAt = 0, loop.Now()
		unknown := l.unknown
		err := c.serve(func() error {
			_, err := c.command("cluster", "move-leader", "--data", dataOf(c.nodes[0]))
			return err
		})
		if err != nil {
			return err
		}
		if err := loop.RunFor(moveAfter, nil); err != nil {
			return err
		}
		c.result.Moved = append(c.result.Moved, leaderMoved{Slowest: ms(l.took.take().Max()), Gap: l.gap.Seconds(),
			Refused: l.unknown - unknown})
	}
	return nil
}

// printMoves prints the median and the longest of the figures of all moves, and returns how many sends were refused.
func (c *clusterKillRun) printMoves() (refused int) {
	var slowest, gaps []float64
	for _, x := range c.result.Moved {
		slowest, gaps = append(slowest, x.Slowest), append(gaps, x.Gap)
		refused += x.Refused
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(slowest)
	slices.Sort(gaps)
	middle, last := len(gaps)/2, len(gaps)-1
	fmt.Fprintf(c.out, "  leadership moved %d times: slowest send of a move %.0f ms at most, median %.0f ms; longest "+
		"time without an acknowledged send %.2f s, median %.2f s; %d sends refused\n", len(gaps), slowest[last],
		slowest[middle], gaps[last], gaps[middle], refused)
	return refused
}

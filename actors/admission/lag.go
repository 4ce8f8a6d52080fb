package admission

import "time"

// rateWindow is how long deliveries are counted for an estimate of their rate.
const rateWindow = 100 * time.Millisecond

// Lag estimates how long the events of a new command would wait for their delivery. All times must come from one
// monotonic clock. The zero value has no commands or deliveries in progress.
type Lag struct {
	admitted int             // commands that have not been committed
	began    []time.Duration // when each delivery in progress was committed, in that order
	first    int             // number of the delivery began[0]
	ended    []bool          // by the same index

	gap   time.Duration // average time between the ends of two deliveries, while one is in progress
	since time.Duration // count is the number of deliveries that ended since then
	count int
}

// Admit counts a command that gets its turn. Commit or Drop must follow.
func (l *Lag) Admit() { l.admitted++ }

// Drop records that a command ended without events.
func (l *Lag) Drop() { l.admitted-- }

// Commit records that events are on disk and must be delivered. admitted is true if their command was counted by Admit.
// It returns a number for Deliver.
func (l *Lag) Commit(admitted bool, now time.Duration) int {
	if admitted {
		l.admitted--
	}
	if len(l.began) == 0 {
		l.since, l.count = now, 0
	}
	l.began, l.ended = append(l.began, now), append(l.ended, false)
	return l.first + len(l.began) - 1
}

// Deliver records that the events of a Commit are delivered.
func (l *Lag) Deliver(number int, now time.Duration) {
	l.ended[number-l.first] = true
	n := 0
	for n < len(l.ended) && l.ended[n] {
		n++
	}
	l.began, l.ended, l.first = l.began[n:], l.ended[n:], l.first+n
	l.count++
	took := now - l.since
	switch {
	case took >= rateWindow:
		l.gap = (l.gap + took/time.Duration(l.count)) / 2
		l.since, l.count = now, 0
	case len(l.began) == 0:
		l.gap = min(l.gap, took/time.Duration(l.count))
	}
}

// InProgress returns how many commands and deliveries are in progress.
func (l *Lag) InProgress() int { return l.admitted + len(l.began) }

// Admitted returns how many commands have not been committed.
func (l *Lag) Admitted() int { return l.admitted }

// Estimate returns how long the events of a command that is admitted now would wait: as long as the oldest ones have
// waited, or the time that everything in progress takes at the present rate, if that is longer.
func (l *Lag) Estimate(now time.Duration) time.Duration {
	lag := time.Duration(l.InProgress()) * l.gap
	if len(l.began) > 0 {
		lag = max(lag, now-l.began[0])
	}
	return lag
}

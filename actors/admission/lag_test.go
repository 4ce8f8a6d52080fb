package admission

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// The oldest delivery in progress says how long events wait.
func TestLagOfTheOldest(t *testing.T) {
	var l Lag
	if l.Estimate(second) != 0 {
		t.Error("a lag without events")
	}
	l.Admit()
	a, b := l.Commit(true, second), l.Commit(false, second+10*ms)
	if got := l.Estimate(second + 50*ms); got != 50*ms || l.Admitted() != 0 || l.InProgress() != 2 {
		t.Errorf("lag %v, %d admitted, %d in progress", got, l.Admitted(), l.InProgress())
	}
	l.Deliver(b, second+60*ms) // the first one is not delivered
	if got := l.Estimate(second + 70*ms); got != 70*ms {
		t.Errorf("lag %v", got)
	}
	l.Deliver(a, second+80*ms)
	if got := l.Estimate(2 * second); got != 0 || l.InProgress() != 0 {
		t.Errorf("lag %v, %d in progress", got, l.InProgress())
	}
}

// The rate of the deliveries says how long new ones will wait, before the oldest has waited so long.
func TestLagIsForeseen(t *testing.T) {
	var l Lag
	now, open := second, []int{}
	for range 20 {
		open = append(open, l.Commit(false, now))
	}
	for len(open) > 5 { // one each 20 ms
		now += 20 * ms
		l.Deliver(open[0], now)
		open = append(open[1:], l.Commit(false, now))
		if now > 3*second {
			open = open[:len(open)-1]
			l.Deliver(l.first+len(l.began)-1, now)
		}
	}
	for range 20 {
		l.Admit()
	}
	if got := l.Estimate(now); got < 300*ms || got > 800*ms {
		t.Errorf("25 in progress at 20 ms each: %v", got)
	}
	for range 20 {
		l.Drop()
	}
	for _, n := range open {
		l.Deliver(n, now)
	}
	if got := l.Estimate(now); got != 0 {
		t.Errorf("%v without anything in progress", got)
	}
}

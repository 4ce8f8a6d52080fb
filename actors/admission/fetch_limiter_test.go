package admission

import (
	"testing"
	"time"
)

// simulatedClients is a FetchLimiter whose clients fetch a fixed number of events a second.
type simulatedClients struct {
	FetchLimiter
	now     time.Duration
	backlog float64
}

// run offers commands of 1000 events for a while, to clients that fetch capacity events a second in total. It returns
// how many were admitted, and the longest time that events waited.
func (p *simulatedClients) run(offered, capacity float64, length time.Duration) (admitted int, longest time.Duration) {
	owed := 0.0
	for end := p.now + length; p.now < end; p.now += ms {
		for owed += offered / 1e6; owed >= 1; owed-- {
			if p.Allows(0, p.now) {
				p.CountProduced(1000)
				admitted++
				p.backlog += 1000
			}
		}
		fetched := min(p.backlog, capacity/1000)
		p.backlog -= fetched
		waits := time.Duration(p.backlog / capacity * float64(second))
		longest = max(longest, waits)
		p.CountFetched(Answers{Count: 10, Events: int(fetched), Waited: 10 * waits}, p.now)
	}
	return admitted, longest
}

// Clients that are offered more than they can fetch get nearly all that they can, and soon; afterwards nothing waits.
func TestFetchLimiterLimitsTheRate(t *testing.T) {
	for _, times := range []float64{2, 5} {
		p := simulatedClients{FetchLimiter: NewFetchLimiter(250 * ms), now: second}
		p.run(100e3, 800e3, 5*second) // quiet
		if _, longest := p.run(700e3, 800e3, 5*second); longest > 100*ms {
			t.Errorf("below capacity events waited %v", longest)
		}
		p.run(times*800e3, 800e3, 3*second)
		n, longest := p.run(times*800e3, 800e3, 20*second)
		if rate := float64(n) * 1000 / 20; rate < 0.9*800e3 || longest > 600*ms {
			t.Errorf("%g times the capacity: %.0f of 800,000 events a second, longest wait %v", times, rate, longest)
		}
		p.run(100e3, 800e3, second)
		if n, longest := p.run(600e3, 800e3, 2*second); n < 1190 || longest > 100*ms {
			t.Errorf("afterwards: %d of 1200 commands, longest wait %v", n, longest)
		}
	}
}

// Half of the queues have no client any more: this does not lower the rate of the others.
func TestFetchLimiterOfAbandonedQueues(t *testing.T) {
	p := NewFetchLimiter(250 * ms)
	now := second
	for range 10_000 {
		now += ms
		p.CountProduced(400)
		p.CountFetched(Answers{Count: 1, Events: 200}, now)
	}
	for range 400 { // now they are late
		now += ms
		p.CountProduced(400)
		p.CountFetched(Answers{Count: 1, Events: 200, Waited: 200 * ms}, now)
	}
	if p.rate < 0.8*400e3 || p.rate > 1.1*400e3 {
		t.Errorf("rate %.0f, want about 400,000", p.rate)
	}
}

// Clients that begin to fetch many events do not count as slow. The rate becomes that of their fetches: at the start,
// after a pause, and after a time with few events.
func TestFetchLimiterOfStartingClients(t *testing.T) {
	p := NewFetchLimiter(250 * ms)
	now := second
	few := func() {
		for range 5000 {
			now += ms
			p.Allows(0, now)
			p.CountProduced(1)
			p.CountFetched(Answers{Count: 1, Events: 1}, now)
		}
	}
	for i, before := range []func(){func() {}, func() { now += time.Minute }, few} {
		before()
		for range 300 {
			now += ms
			p.Allows(0, now)
			p.CountProduced(300)
			p.CountFetched(Answers{Count: 1, Events: 300, Waited: 200 * ms}, now)
		}
		if p.rate < 0.8*0.9*300e3 {
			t.Errorf("case %d: rate %.0f, want about 300,000", i, p.rate)
		}
	}
}

// If clients stop polling, nothing is held back for ever.
func TestFetchLimiterOfStoppedClients(t *testing.T) {
	p := NewFetchLimiter(250 * ms)
	now := second
	for range 300 {
		now += ms
		p.CountProduced(1000)
		p.CountFetched(Answers{Count: 1, Events: 1000, Waited: second}, now)
	}
	if p.Allows(0, now) {
		t.Fatal("clients are late, and there is room")
	}
	if now += 2 * pollWindow; !p.Allows(0, now) && !p.Allows(0, now+pollWindow) {
		t.Error("no room although no client polls")
	}
}

package admission

import "time"

// FetchLimiter is a token bucket that limits the rate at which an organization produces events to the rate at which its
// clients fetch them. Clients may fetch more slowly than the server delivers to their event queues, because the server
// reads their polls late or because they cannot poll as fast. An event counts once for each recipient, and a large
// event counts as several small ones. Use NewFetchLimiter.
type FetchLimiter struct {
	limit     time.Duration // how long events may wait
	rate      float64       // events a second that may be produced
	tokens    float64       // events that may be produced now; negative: too many were
	at        time.Duration // when tokens was computed
	mean      float64       // events of one command
	throttled bool          // a command had to wait in this window
	late      bool          // events waited longer than limit in the last window

	began    time.Duration // of this window
	answers  Answers       // in this window
	produced int           // events produced in this window

	fetched float64       // events a second that clients fetch while events wait
	behind  time.Duration // over which fetched is averaged: how long events have waited in the last windows
	// Events produced and fetched a second, averaged over averageWindow. The two differ: the events of abandoned queues
	// are never fetched, and users may have several queues.
	meanProduced, meanFetched float64
}

// Answers are answers to polls.
type Answers struct {
	Count  int
	Events int           // in all of them, by weight
	Waited time.Duration // how long the oldest event of each has waited in the queue, in total
}

// Add adds other answers.
func (a *Answers) Add(b Answers) {
	a.Count, a.Events, a.Waited = a.Count+b.Count, a.Events+b.Events, a.Waited+b.Waited
}

// MinBacklog is the number of events in an answer from which on their waiting time is measured. (It is also measured if
// the events do not fit into one answer.) A client with a slow connection gets its events late, too, but only a few at
// a time.
const MinBacklog = 32

// Parameters of FetchLimiter.
const (
	// pollWindow is how long answers are counted.
	pollWindow = 100 * time.Millisecond
	// maxWindow is the length from which on a window is not evaluated, because most of it was a pause.
	maxWindow = 2 * pollWindow
	// firstRate is how many events a second may be produced at first: more than two processors deliver.
	firstRate = 2e6
	// minRate is the lowest rate.
	minRate = 1000
	// burst is how much of the rate may be produced at once.
	burst = 50 * time.Millisecond
	// growth is the factor by which the rate grows after a window in which commands had to wait although clients
	// fetched events in time: twofold in 0.7 s.
	growth = 1.1
	// catchUpShare is the rate of new events, as a share of the rate of fetched events, while events wait for more than
	// half of the limit.
	catchUpShare = 0.9
	// fetchedWindow is how long the rate of fetched events is averaged.
	fetchedWindow = time.Second
	// averageWindow is how long ratios are averaged.
	averageWindow = 5 * time.Second
)

// NewFetchLimiter returns a FetchLimiter for events that may wait as long as limit. It begins with firstRate.
func NewFetchLimiter(limit time.Duration) FetchLimiter {
	return FetchLimiter{limit: limit, rate: firstRate, tokens: firstRate * burst.Seconds()}
}

// CountProduced counts the events of a command.
func (p *FetchLimiter) CountProduced(events int) {
	p.tokens -= float64(events)
	p.produced += events
	p.mean += (float64(events) - p.mean) / 16
}

// Allows reports whether clients will fetch the events of a further command in time. uncommitted is the number of
// commands whose events are not counted yet.
func (p *FetchLimiter) Allows(uncommitted int, now time.Duration) bool {
	p.refill(now)
	if p.late || p.tokens <= float64(uncommitted)*p.mean {
		p.throttled = true
		return false
	}
	return true
}

// refill adds the tokens since the last refill.
func (p *FetchLimiter) refill(now time.Duration) {
	p.endWindow(now)
	if most := p.rate * burst.Seconds(); p.tokens < most {
		p.tokens = min(p.tokens+p.rate*(now-p.at).Seconds(), most)
	}
	p.at = now
}

// CountFetched adds answers to polls.
func (p *FetchLimiter) CountFetched(a Answers, now time.Duration) {
	p.endWindow(now)
	p.answers.Add(a)
}

// endWindow adjusts the rate if the window is over.
func (p *FetchLimiter) endWindow(now time.Duration) {
	took := now - p.began
	if took < pollWindow {
		return
	}
	share := min(took.Seconds()/averageWindow.Seconds(), 1)
	fetched := float64(p.answers.Events) / took.Seconds()
	p.meanFetched += (fetched - p.meanFetched) * share
	p.meanProduced += (float64(p.produced)/took.Seconds() - p.meanProduced) * share
	if p.meanFetched > 0 { // converts to the unit of produced events
		fetched *= p.meanProduced / p.meanFetched
	}
	waited := time.Duration(0)
	if p.answers.Count > 0 && took < maxWindow {
		waited = p.answers.Waited / time.Duration(p.answers.Count)
	}
	if waited > p.limit/4 {
		p.behind = min(p.behind+took, fetchedWindow)
		p.fetched += (fetched - p.fetched) * min(took.Seconds()/p.behind.Seconds(), 1)
	} else { // clients fetch all events, so fetched would be less than they can fetch
		p.behind = max(p.behind-took, 0)
	}
	p.late = waited > p.limit
	switch {
	case waited > p.limit/2:
		p.rate = max(p.fetched*catchUpShare, minRate)
		p.tokens = min(p.tokens, 0)
	case waited > p.limit/4:
		p.rate = max(min(p.rate, p.fetched), minRate)
	case p.throttled:
		p.rate *= growth
	}
	p.answers, p.produced, p.throttled, p.began = Answers{}, 0, false, now
}

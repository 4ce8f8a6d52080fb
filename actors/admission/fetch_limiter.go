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
	refilled  time.Duration // when tokens was computed
	mean      float64       // average number of events of one command
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
	// firstRate is how many events a second may be produced at first: more than a server with two processors delivers.
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
func (f *FetchLimiter) CountProduced(events int) {
	f.tokens -= float64(events)
	f.produced += events
	f.mean += (float64(events) - f.mean) / 16
}

// Allows reports whether clients will fetch the events of a further command in time. uncommitted is the number of
// commands whose events are not counted yet.
func (f *FetchLimiter) Allows(uncommitted int, now time.Duration) bool {
	f.refill(now)
	if f.late || f.tokens <= float64(uncommitted)*f.mean {
		f.throttled = true
		return false
	}
	return true
}

// refill adds the tokens since the last refill.
func (f *FetchLimiter) refill(now time.Duration) {
	f.endWindow(now)
	if capacity := f.rate * burst.Seconds(); f.tokens < capacity {
		f.tokens = min(f.tokens+f.rate*(now-f.refilled).Seconds(), capacity)
	}
	f.refilled = now
}

// CountFetched adds answers to polls.
func (f *FetchLimiter) CountFetched(a Answers, now time.Duration) {
	f.endWindow(now)
	f.answers.Add(a)
}

// endWindow adjusts the rate if the window is over.
func (f *FetchLimiter) endWindow(now time.Duration) {
	took := now - f.began
	if took < pollWindow {
		return
	}
	share := min(took.Seconds()/averageWindow.Seconds(), 1)
	fetched := float64(f.answers.Events) / took.Seconds()
	f.meanFetched += (fetched - f.meanFetched) * share
	f.meanProduced += (float64(f.produced)/took.Seconds() - f.meanProduced) * share
	if f.meanFetched > 0 { // converts to the unit of produced events
		fetched *= f.meanProduced / f.meanFetched
	}
	waited := time.Duration(0)
	if f.answers.Count > 0 && took < maxWindow {
		waited = f.answers.Waited / time.Duration(f.answers.Count)
	}
	if waited > f.limit/4 {
		f.behind = min(f.behind+took, fetchedWindow)
		f.fetched += (fetched - f.fetched) * min(took.Seconds()/f.behind.Seconds(), 1)
	} else { // clients fetch all events, so fetched would be less than they can fetch
		f.behind = max(f.behind-took, 0)
	}
	f.late = waited > f.limit
	switch {
	case waited > f.limit/2:
		f.rate = max(f.fetched*catchUpShare, minRate)
		f.tokens = min(f.tokens, 0)
	case waited > f.limit/4:
		f.rate = max(min(f.rate, f.fetched), minRate)
	case f.throttled:
		f.rate *= growth
	}
	f.answers, f.produced, f.throttled, f.began = Answers{}, 0, false, now
}

package admission

import "time"

// Pollers limits how many events an organization produces to the number that its clients fetch from their event queues.
// They may be slower than the delivery to the queues: because the server does not read their polls in time, or because
// they cannot poll as fast. Events are counted for each recipient; a large one counts as many small ones do that make
// as much work. Use NewPollers.
type Pollers struct {
	limit  time.Duration // how long events may wait
	rate   float64       // events a second that may be produced
	tokens float64       // events that may be produced now; negative: too many were
	at     time.Duration // when tokens was computed
	mean   float64       // events of one command
	held   bool          // a command was held back in this window
	late   bool          // events waited longer than limit in the last window

	began   time.Duration // of this window
	answers Answers       // in this window
	spent   int           // events produced in this window

	fetched float64       // events a second that clients fetch while events wait
	behind  time.Duration // over which fetched is averaged: how long events have waited in the last windows
	// Events produced and fetched a second, averaged over averageOver. Not all events are fetched: the clients of some
	// queues are gone. And users have several queues.
	meanSpent, meanFetched float64
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

// MinBacklog is how many events an answer has at least if the time that they have waited counts; or they do not fit
// into one answer. A client far away gets events late too, but only a few at a time.
const MinBacklog = 32

// The behavior of Pollers.
const (
	// pollWindow is how long answers are counted.
	pollWindow = 100 * time.Millisecond
	// maxWindow is the length of a window about which nothing is concluded: most of it was a pause.
	maxWindow = 2 * pollWindow
	// firstRate is how many events a second may be produced at first: more than two processors deliver.
	firstRate = 2e6
	// minRate is the lowest rate.
	minRate = 1000
	// burst is how much of the rate may be produced at once.
	burst = 50 * time.Millisecond
	// growth is how much the rate grows in a window that held commands back although clients fetch events in time:
	// twofold in 0.7 s.
	growth = 1.1
	// catchUp is the part of the fetched events that may be produced while these wait for half of the limit.
	catchUp = 0.9
	// fetchedOver is how long the rate of fetched events is averaged.
	fetchedOver = time.Second
	// averageOver is how long ratios are averaged.
	averageOver = 5 * time.Second
)

// NewPollers returns a Pollers for events that may wait as long as limit. It knows nothing about the clients.
func NewPollers(limit time.Duration) Pollers {
	return Pollers{limit: limit, rate: firstRate, tokens: firstRate * burst.Seconds()}
}

// Spend counts the events of a command.
func (p *Pollers) Spend(events int) {
	p.tokens -= float64(events)
	p.spent += events
	p.mean += (float64(events) - p.mean) / 16
}

// HasRoom reports whether clients will fetch the events of a further command in time. uncommitted is the number of
// commands whose events are not counted yet.
func (p *Pollers) HasRoom(uncommitted int, now time.Duration) bool {
	p.refill(now)
	if p.late || p.tokens <= float64(uncommitted)*p.mean {
		p.held = true
		return false
	}
	return true
}

// refill adds the tokens since the last refill.
func (p *Pollers) refill(now time.Duration) {
	p.endWindow(now)
	if most := p.rate * burst.Seconds(); p.tokens < most {
		p.tokens = min(p.tokens+p.rate*(now-p.at).Seconds(), most)
	}
	p.at = now
}

// Count adds answers to polls.
func (p *Pollers) Count(a Answers, now time.Duration) {
	p.endWindow(now)
	p.answers.Add(a)
}

// endWindow judges the window, if it is over.
func (p *Pollers) endWindow(now time.Duration) {
	took := now - p.began
	if took < pollWindow {
		return
	}
	share := min(took.Seconds()/averageOver.Seconds(), 1)
	fetched := float64(p.answers.Events) / took.Seconds()
	p.meanFetched += (fetched - p.meanFetched) * share
	p.meanSpent += (float64(p.spent)/took.Seconds() - p.meanSpent) * share
	if p.meanFetched > 0 { // now in events as they are produced
		fetched *= p.meanSpent / p.meanFetched
	}
	waited := time.Duration(0)
	if p.answers.Count > 0 && took < maxWindow {
		waited = p.answers.Waited / time.Duration(p.answers.Count)
	}
	if waited > p.limit/4 {
		p.behind = min(p.behind+took, fetchedOver)
		p.fetched += (fetched - p.fetched) * min(took.Seconds()/p.behind.Seconds(), 1)
	} else { // clients fetch all there is, which may be far less than they could
		p.behind = max(p.behind-took, 0)
	}
	p.late = waited > p.limit
	switch {
	case waited > p.limit/2:
		p.rate = max(p.fetched*catchUp, minRate)
		p.tokens = min(p.tokens, 0)
	case waited > p.limit/4:
		p.rate = max(min(p.rate, p.fetched), minRate)
	case p.held:
		p.rate *= growth
	}
	p.answers, p.spent, p.held, p.began = Answers{}, 0, false, now
}

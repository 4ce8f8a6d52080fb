package delivery

import (
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
)

// absentAfter is the number of seconds without a poll after which a client counts as absent. The waiting time of its
// events is then not measured, because the server has not caused it. The first poll for a restored queue is not
// measured either: its client had to find another process or node first.
const absentAfter = 10

// pollLatency measures how long events wait in the queues until clients poll, for one organization in one session
// actor. It reads the clock only for polls that find many events.
type pollLatency struct {
	answers  admission.Answers // since the last report
	reported time.Duration     // time of the last report

	marks [maxMarks]deliveryTime // a ring: when facts were delivered to the queues
	next  int
}

// deliveryTime is the time at which the events of a fact were delivered to the queues.
type deliveryTime struct {
	seq realm.Seq
	at  time.Duration
}

// At most one mark is made in each markInterval, so the marks of a busy time reach back one second. reportInterval is
// the time between two reports.
const (
	maxMarks       = 32
	markInterval   = 32 * time.Millisecond
	reportInterval = 25 * time.Millisecond
)

// mark records that the events up to fact seq are delivered at time now.
func (p *pollLatency) mark(seq realm.Seq, now time.Duration) {
	if last := &p.marks[(p.next+maxMarks-1)%maxMarks]; now-last.at < markInterval && last.seq != 0 {
		return
	}
	p.marks[p.next] = deliveryTime{seq, now}
	p.next = (p.next + 1) % maxMarks
}

// waited returns how long the events of a fact have waited since their delivery. For facts before the oldest mark it
// returns the age of that mark.
func (p *pollLatency) waited(seq realm.Seq, now time.Duration) (longest time.Duration) {
	for i := range p.marks {
		if m := &p.marks[i]; m.seq >= seq {
			longest = max(longest, now-m.at)
		}
	}
	return longest
}

// count counts a poll that is answered at once with events of a total weight. oldest is the fact of the first event.
// Its waiting time is measured only if behind is true.
func (p *pollLatency) count(oldest realm.Seq, weight int, behind bool, clock func() time.Duration) {
	a := admission.Answers{Count: 1, Events: weight}
	if behind {
		a.Waited = p.waited(oldest, clock())
	}
	p.answers.Add(a)
}

// report passes the counted answers to the flow control of the organization.
func (p *pollLatency) report(f *Flow, now time.Duration) {
	if p.answers.Count > 0 && now-p.reported >= reportInterval {
		f.countPolls(p.answers, now)
		p.answers, p.reported = admission.Answers{}, now
	}
}

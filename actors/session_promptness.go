package actors

import (
	"time"

	"parley/actors/admission"
	"parley/actors/realm"
)

// absentAfter is after how many seconds without a poll a client was absent. That its events have waited says nothing
// about the server. Nor does it when the client of a restored queue polls for the first time: it had to find out that
// another process or node serves it.
const absentAfter = 10

// promptness measures, for one organization in one session actor, how long events wait for the polls of clients. Only
// polls that find many events need a look at the clock.
type promptness struct {
	answers  admission.Answers // since the last report
	reported time.Duration     // when that was

	marks [maxMarks]deliveryMark // a ring: when facts were delivered to the queues
	next  int
}

// deliveryMark says when the events of a fact were delivered.
type deliveryMark struct {
	seq realm.Seq
	at  time.Duration
}

// A mark is made each markInterval, so the marks of a busy time reach back a second. reportInterval is the time between
// two reports.
const (
	maxMarks       = 32
	markInterval   = 32 * time.Millisecond
	reportInterval = 25 * time.Millisecond
)

// mark records that the events up to a fact have been delivered now.
func (p *promptness) mark(seq realm.Seq, now time.Duration) {
	if last := &p.marks[(p.next+maxMarks-1)%maxMarks]; now-last.at < markInterval && last.seq != 0 {
		return
	}
	p.marks[p.next] = deliveryMark{seq, now}
	p.next = (p.next + 1) % maxMarks
}

// waited returns how long the events of a fact have waited since their delivery: at least that of the oldest mark.
func (p *promptness) waited(seq realm.Seq, now time.Duration) (longest time.Duration) {
	for i := range p.marks {
		if m := &p.marks[i]; m.seq >= seq {
			longest = max(longest, now-m.at)
		}
	}
	return longest
}

// count counts a poll that is answered at once with events of that weight. oldest is the fact of the first one. behind
// says that the time that it has waited counts.
func (p *promptness) count(oldest realm.Seq, weight int, behind bool, clock func() time.Duration) {
	a := admission.Answers{Count: 1, Events: weight}
	if behind {
		a.Waited = p.waited(oldest, clock())
	}
	p.answers.Add(a)
}

// report tells the organization's flow about the answers.
func (p *promptness) report(f *deliveryFlow, now time.Duration) {
	if p.answers.Count > 0 && now-p.reported >= reportInterval {
		f.countPolls(p.answers, now)
		p.answers, p.reported = admission.Answers{}, now
	}
}

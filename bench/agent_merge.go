package bench

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// encodeHist returns all counts of a histogram; nil for nil.
func encodeHist(h *hdrhistogram.Histogram) []byte {
	if h == nil {
		return nil
	}
	b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(fmt.Sprintf("BUG: encode a histogram: %v", err))
	}
	return b
}

// mergeHist adds an encoded histogram to h.
func mergeHist(h *hdrhistogram.Histogram, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	other, err := hdrhistogram.Decode(b)
	if err != nil {
		return fmt.Errorf("a histogram of an agent: %w", err)
	}
	if dropped := h.Merge(other); dropped > 0 {
		return fmt.Errorf("a histogram of an agent has %d values outside the range", dropped)
	}
	return nil
}

// exportPhase returns a phase of an agent in the form for the coordinator.
func exportPhase(m *meter, drain time.Duration) agentPhase {
	a := agentPhase{Name: m.name, Seconds: (m.end - m.begin).Seconds(), Drain: drain.Seconds(),
		Seen:     encodeHist(m.seen),
		Lateness: encodeHist(m.lateness), Delivered: m.delivered, Heartbeats: m.heartbeats, EventBytes: m.eventBytes,
		In: m.bytesIn, Out: m.bytesOut, Held: m.held, Busy: m.generatorBusy}
	for k := range m.kinds {
		t := &m.kinds[k]
		a.Kinds[k] = agentTally{N: t.n, Bytes: t.bytes, Status: t.status, Latency: encodeHist(t.latency)}
	}
	for _, w := range m.windows {
		a.WindowRequests, a.WindowSeens = append(a.WindowRequests, w.requests), append(a.WindowSeens, w.delivered)
	}
	return a
}

// merge adds a phase of an agent to the meter. The phase is as long as that of the slowest agent, and the generator as
// busy as the busiest.
func (m *meter) merge(a *agentPhase) error {
	m.end = max(m.end, m.begin+seconds(a.Seconds))
	m.generatorBusy = max(m.generatorBusy, a.Busy)
	m.delivered += a.Delivered
	m.heartbeats += a.Heartbeats
	m.eventBytes += a.EventBytes
	m.bytesIn += a.In
	m.bytesOut += a.Out
	m.held += a.Held
	if err := mergeHist(m.seen, a.Seen); err != nil {
		return err
	}
	if err := mergeHist(m.lateness, a.Lateness); err != nil {
		return err
	}
	for k := range a.Kinds {
		from, to := &a.Kinds[k], &m.kinds[k]
		to.n += from.N
		to.bytes += from.Bytes
		for status, n := range from.Status {
			if to.status == nil {
				to.status = map[int]int64{}
			}
			to.status[status] += n
		}
		if len(from.Latency) > 0 {
			if to.latency == nil {
				to.latency = newHist()
			}
			if err := mergeHist(to.latency, from.Latency); err != nil {
				return err
			}
		}
	}
	for i := range a.WindowRequests {
		if i >= len(a.WindowSeens) || i >= int(maxPhase/time.Second) {
			break
		}
		for len(m.windows) <= i {
			m.windows = append(m.windows, window{at: m.begin + time.Duration(len(m.windows)+1)*time.Second,
				seen: newHist(),
				took: newHist()})
		}
		m.windows[i].requests += a.WindowRequests[i]
		m.windows[i].delivered += a.WindowSeens[i]
	}
	return nil
}

// export returns the sends of this agent for the ledgers of the others.
func (l *ledger) export() []agentSend {
	list := make([]agentSend, 0, len(l.sends))
	for no := range l.sends {
		s := &l.sends[no]
		list = append(list, agentSend{l.global(no), s.audience, s.state, s.message})
	}
	return list
}

// global returns the number of a send of this agent that is unique among all agents.
func (l *ledger) global(no int) int { return no*max(1, l.agents) + l.index }

// has reports whether the poller saw a send, by its global number.
func (x *listener) has(no int) bool { return no>>6 < len(x.seen) && x.seen[no>>6]>>(no&63)&1 == 1 }

// mustSee reports whether a send of another agent must have been seen by x.
func (l *ledger) mustSee(x *listener, s *agentSend) bool {
	return s.State == sendAcked && int(s.Audience) < len(l.audiences) && l.audiences[s.Audience].contains(x.person)
}

// allExpectedSeen reports whether all pollers saw the acknowledged sends of the other agents. It forgets nothing: call
// it
// until it is true.
func (l *ledger) allExpectedSeen(sends []agentSend) bool {
	for ; l.checked < len(sends); l.checked++ {
		for _, x := range l.listeners {
			if l.mustSee(x, &sends[l.checked]) && !x.has(sends[l.checked].No) {
				return false
			}
		}
	}
	return true
}

// checkExpected adds a violation for each send of another agent that a poller of its audience did not see, and for each
// that another poller saw.
func (l *ledger) checkExpected(sends []agentSend) {
	for i := range sends {
		s := &sends[i]
		if int(s.Audience) >= len(l.audiences) {
			continue
		}
		name := l.audiences[s.Audience].name
		for _, x := range l.listeners {
			saw := x.has(s.No)
			switch {
			case l.mustSee(x, s) && !saw:
				l.report(x, s.Message, "loss", "send %d of another agent, message %d in %s, acknowledged, was "+
					"not seen by %s",
					s.No, s.Message, name, x)
			case saw && !l.audiences[s.Audience].contains(x.person):
				l.report(x, s.Message, "leak", "%s saw send %d of another agent, message %d in %s, but is not in "+
					"its audience",
					x, s.No, s.Message, name)
			case saw && s.State == sendRefused:
				l.report(x, s.Message, "refused but seen", "send %d of another agent was refused, but %s saw it",
					s.No, x)
			}
		}
	}
}

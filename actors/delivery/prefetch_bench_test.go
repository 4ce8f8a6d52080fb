package delivery

import (
	"math/rand/v2"
	"testing"

	"parley/actors/realm"
)

// BenchmarkPrefetch compares the loops of deliverNotice and handlePolls with and without prefetchQueues and
// prefetchPolls, for 10,000 queues that are not in the order of their memory. One operation is one delivery.
// Prefetching saves 14 % of its processor time, 0.91 instead of 1.04 us (8 pairs), for 30 lines of code.
//
//	go test -run - -bench Prefetch -count 10 ./actors/delivery
func BenchmarkPrefetch(b *testing.B) {
	for name, prefetch := range map[string]bool{"with": true, "without": false} {
		b.Run(name, func(b *testing.B) {
			f := newFanout(b, 10_000)
			r := rand.New(rand.NewPCG(1, 2))
			r.Shuffle(len(f.users), func(i, k int) {
				f.users[i], f.users[k] = f.users[k], f.users[i]
				f.polls[i], f.polls[k] = f.polls[k], f.polls[i]
			})
			f.loops(prefetch)
			b.ReportAllocs()
			b.ResetTimer()
			for range max(1, b.N/len(f.users)) {
				f.loops(prefetch)
			}
		})
	}
}

// loops sends every user's poll and delivers one message to all, as handlePolls and deliverNotice do.
func (f *fanout) loops(prefetch bool) {
	s, state := f.sessionActor, f.sessionActor.state
	for i, p := range f.polls {
		if prefetch && i%prefetchCount == 0 {
			s.prefetchPolls(f.polls[i:min(i+prefetchCount, len(f.polls))])
		}
		s.handlePoll(p)
	}
	f.seq++
	n := &realm.Notice{To: f.users, Event: &realm.MessageArrived{Message: realm.MessageInfo{ID: realm.MessageID(f.seq),
		Channel: 1, ChannelName: "general", Topic: "proof", Body: &realm.Body{Text: "text", HTML: "<p>text</p>"}}}}
	state.seq = f.seq
	renderer := s.renderer(n)
	for i, u := range n.To {
		if prefetch && i%prefetchCount == 0 {
			s.prefetchQueues(state, n.To[i:min(i+prefetchCount, len(n.To))])
		}
		q := state.session(u).First
		q.Append(f.seq, 0, renderer.EventsFor(u, q.Reg, q.Options))
		s.answerPoll(state, q)
	}
	for _, p := range f.polls {
		p.Last = int64(f.seq-1) << 8
	}
}

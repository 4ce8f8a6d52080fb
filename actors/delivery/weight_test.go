package delivery

import (
	"strings"
	"testing"
	"time"

	"parley/actors/admission"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/stream"
)

// Large messages count by the work of sending them to the clients. When each counted as one event, two thousand of them
// were admitted at once: the 140 that ten members could send in half a second delayed everything by a second.
func TestLargeMessagesCountByTheirWork(t *testing.T) {
	batch := func(bytes int) *stream.Committed {
		body := &realm.Body{Text: ":o:", HTML: strings.Repeat("o", bytes)}
		return &stream.Committed{Batch: realm.Batch{Texts: []realm.TextWrite{{Body: body},
			{Ref: realm.BodyRef{Message: 1}}}}}
	}
	admitted := func(c *stream.Committed) (n int) {
		for p := admission.NewFetchLimiter(DefaultDeliveryLag); n < 5000 && p.Allows(0, time.Second); n++ {
			p.CountProduced(50 * WeightOf(c))
		}
		return n
	}
	if n := admitted(batch(200_000)); n > 20 {
		t.Errorf("%d large messages to 50 users are admitted at once", n)
	}
	if n := admitted(batch(500)); n < 1500 {
		t.Errorf("only %d small messages to 50 users are admitted at once", n)
	}
	if small, large := queue.Weight(700), queue.Weight(100<<10); small != 1 || large != 101 {
		t.Errorf("an event of 700 bytes has weight %d, one of 100 kB %d", small, large)
	}
}

// A poll that finds large events, of which not all fit into an answer, shows that events wait, although there are few.
func TestFewLargeEventsShowThatClientsAreLate(t *testing.T) {
	var p pollLatency
	p.mark(7, time.Second)
	clock := func() time.Duration { return 2 * time.Second }
	for _, x := range []struct {
		behind bool
		waited time.Duration
	}{{false, 0}, {true, time.Second}} {
		p.answers = admission.Answers{}
		p.count(7, 1000, x.behind, clock)
		if p.answers.Waited != x.waited || p.answers.Events != 1000 {
			t.Errorf("behind %v: counted %+v", x.behind, p.answers)
		}
	}
}

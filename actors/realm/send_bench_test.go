package realm_test

import (
	"fmt"
	"testing"
	"time"

	. "parley/actors/realm"
)

// crowdedChannel is a realm with a channel of so many subscribers, nobody of whom is online, and the turn that sends to
// it.
func crowdedChannel(t testing.TB, subscribers int) (send func()) {
	r := New(1)
	m := Moment{Now: 1_700_000_000, Token: func(int) string { return "x" }, UUID: func() string { return "u" }, Hash: func(string) (h [32]byte) { return h }}
	var facts []Fact
	play := func(c Caller, decide func(*Turn) (any, error)) any {
		t.Helper()
		r.Clock(m.Now)
		a, f, _, err := Play(r, c, m, decide)
		if err != nil {
			t.Fatal(err)
		}
		facts = f
		return a
	}
	system := Caller{System: true}
	play(system, func(t *Turn) (any, error) { return FoundRealm{Name: "x"}.Decide(t) })
	var people []Principal
	for i := range subscribers {
		people = append(people, Principal{ID: play(system, func(t *Turn) (any, error) {
			return JoinUser{Name: fmt.Sprint("User ", i), Email: fmt.Sprintf("u%d@example.org", i)}.Decide(t)
		}).(UserID)})
	}
	me := Caller{User: people[0].ID, Client: "bench"}
	play(me, func(t *Turn) (any, error) {
		return Subscribe{Channels: []Joining{{Name: "all"}}, Principals: people, Fatal: true}.Decide(t)
	})
	all := r.FindChannelByName("all").ID
	first := true // it begins the topic, and its sender follows that
	return func() {
		play(me, func(t *Turn) (any, error) {
			return SendMessage{ToChannel: true, Channel: all, Topic: "a", Body: Body{Text: "hi", HTML: "<p>hi</p>"}}.Decide(t)
		})
		if len(facts) != 1 && !first {
			t.Fatalf("%d facts for one message", len(facts))
		}
		first = false
	}
}

// The cost of a message depends on who listens, not on who is subscribed.
func BenchmarkSendToCrowd(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("subscribers=%d", n), func(b *testing.B) {
			send := crowdedChannel(b, n)
			b.ResetTimer()
			for range b.N {
				send()
			}
		})
	}
}

// maxCrowdCost is how much more sending to 10,000 subscribers may cost than to 10, with nobody online.
const maxCrowdCost = 1.5

func TestSendingDoesNotDependOnSubscribers(t *testing.T) {
	few, many := crowdedChannel(t, 10), crowdedChannel(t, 10_000)
	best := func(send func()) time.Duration {
		least := time.Duration(1 << 62)
		for range 20 { // the least of many rounds: other work on the machine only ever adds
			began := time.Now()
			for range 500 {
				send()
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	best(few) // warm
	a, b := best(few), best(many)
	if ratio := float64(b) / float64(a); ratio > maxCrowdCost {
		t.Errorf("500 messages to 10 subscribers took %v, to 10,000 %v: %.2f times as long, at most %.1f allowed", a, b, ratio, maxCrowdCost)
	}
}

package realm_test

import (
	"fmt"
	"runtime"
	"testing"

	. "parley/actors/realm"
)

// newBareRealm returns an organization and a function that runs turns in it without the checks of realmtest.
func newBareRealm(t testing.TB) (*Realm, func(Caller, func(*Turn) (any, error)) any) {
	r := New(1)
	m := TurnEnv{
		Now: 1_700_000_000, EmailEnabled: true, Token: func(int) string { return "x" },
		UUID: func() string { return "u" }, Hash: func(string) (h [32]byte) { return h },
	}
	play := func(c Caller, decide func(*Turn) (any, error)) any {
		t.Helper()
		r.SetClock(m.Now)
		a, _, _, err := RunTurn(r, c, m, decide)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	play(Caller{System: true}, func(t *Turn) (any, error) { return FoundRealm{Name: "x"}.Decide(t) })
	return r, play
}

// newLargeChannel creates a channel with so many subscribers, none of them connected, and returns a function that sends
// a message to it.
func newLargeChannel(t testing.TB, subscribers int) (send func()) {
	r, play := newBareRealm(t)
	system := Caller{System: true}
	var people []Principal
	for i := range subscribers {
		people = append(people, Principal{ID: play(system, func(t *Turn) (any, error) {
			return CreateUser{Name: fmt.Sprint("User ", i), Email: fmt.Sprintf("u%d@example.org", i)}.Decide(t)
		}).(UserID)})
	}
	me := Caller{User: people[0].ID, Client: "bench"}
	play(me, func(t *Turn) (any, error) {
		return Subscribe{Channels: []ChannelToJoin{{Name: "all"}}, Principals: people, AllOrNothing: true}.Decide(t)
	})
	all := r.FindChannelByName("all").ID
	hi := channelMessage(all, "a", "hi")
	first := true // the first message creates the topic, and its sender follows it
	return func() {
		before := r.Seq()
		play(me, func(t *Turn) (any, error) {
			return hi.Decide(t)
		})
		if n := r.Seq() - before; n != 1 && !first {
			t.Fatalf("%d facts for one message", n)
		}
		first = false
	}
}

// The cost of a message depends on the number of connected users, not of subscribers.
func BenchmarkSendToLargeChannel(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("subscribers=%d", n), func(b *testing.B) {
			send := newLargeChannel(b, n)
			b.ResetTimer()
			for range b.N {
				send()
			}
		})
	}
}

// The allocations for a message do not depend on the number of subscribers. BenchmarkSendToLargeChannel measures the
// time.
func TestSendAllocationsIgnoreSubscriberCount(t *testing.T) {
	const sends = 500
	made := func(subscribers int) (objects, bytes uint64) {
		send := newLargeChannel(t, subscribers)
		send()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range sends {
			send()
		}
		runtime.ReadMemStats(&after)
		return (after.Mallocs - before.Mallocs) / sends, (after.TotalAlloc - before.TotalAlloc) / sends
	}
	a, x := made(10)
	b, y := made(10_000)
	if b > a+1 || y > x+x/10 { // other goroutines of the test process allocate a little, too
		t.Errorf("a message to 10 subscribers allocates %d objects and %d bytes, to 10,000 subscribers %d and %d",
			a, x, b, y)
	}
}

// A move is one turn, whatever the number of messages. This is how long it blocks the realm.
func BenchmarkMoveTopic(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			r, play := newBareRealm(b)
			ann := play(Caller{System: true}, func(t *Turn) (any, error) {
				return CreateUser{Name: "Ann", Email: "a@example.org", Role: Owner}.Decide(t)
			}).(UserID)
			me := Caller{User: ann, Client: "bench"}
			play(me, func(t *Turn) (any, error) {
				return Subscribe{Channels: []ChannelToJoin{{Name: "all"}}, AllOrNothing: true}.Decide(t)
			})
			all := r.FindChannelByName("all").ID
			var last MessageID
			for range n {
				last = play(me, func(t *Turn) (any, error) {
					return channelMessage(all, "a", "hi").Decide(t)
				}).(SendResult).ID
			}
			names := [2]string{"b", "a"}
			i := 0
			measure(b, func() {
				play(me, func(t *Turn) (any, error) { return moveToTopic(last, MoveAll, names[i%2]).Decide(t) })
				i++
			})
		})
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/actors/queue"
	"parley/actors/realm"
)

// TestEveryEventIsRendered checks that each event type of the realm has a renderer, and names the missing ones.
func TestEveryEventIsRendered(t *testing.T) {
	for n, typ := range realm.TypesByNumber() {
		x := reflect.New(typ).Interface()
		e, ok := x.(realm.Event)
		if !ok || e.EventType() == "" || typ == reflect.TypeFor[realm.MessageArrived]() {
			continue
		}
		if !HasRenderer(reflect.TypeOf(x)) {
			t.Errorf("no renderer for %v (number %d): add it to the list of events in its file in wire", typ, n)
		}
	}
}

// recordedReply records the body of an answer.
type recordedReply struct{ body []byte }

func (s *recordedReply) Answer(_ int, parts ...[]byte) bool {
	s.body = bytes.Join(parts, nil)
	return true
}

// TestLongPollAnswersAreSplit checks that a client that is far behind gets its events in several answers, in order
// and without gaps.
func TestLongPollAnswersAreSplit(t *testing.T) {
	var held []queue.UnackedEvent
	for id := range int64(5000) {
		held = append(held, queue.UnackedEvent{ID: id, Event: &queue.Event{JSON: []byte(`{"type":"x","text":"` +
			strings.Repeat("a", 1000) + `"`)}})
	}
	next, answers := int64(0), 0
	for ; next < 5000; answers++ {
		var s recordedReply
		weight, complete := AnswerPoll(&s, "q", held[next:])
		var a struct{ Events []struct{ ID int64 } }
		if err := json.Unmarshal(s.body, &a); err != nil {
			t.Fatal(err)
		}
		if len(a.Events) == 0 || len(s.body) > maxPollAnswerBytes+2000 {
			t.Fatalf("%d events in %d bytes", len(a.Events), len(s.body))
		}
		for _, e := range a.Events {
			if e.ID != next {
				t.Fatalf("event %d, want %d", e.ID, next)
			}
			next++
		}
		// The work that counts is that of the events in the answer, not of all that wait.
		if want := len(a.Events); weight != want || complete != (next == 5000) {
			t.Errorf("the answer with %d events has weight %d, want %d; complete: %v", len(a.Events), weight, want,
				complete)
		}
	}
	if answers < 5 {
		t.Errorf("%d answers for 5 MB", answers)
	}
}

// TestQueueOptionsAreShared checks that queues share options if, and only if, all their options are equal.
func TestQueueOptionsAreShared(t *testing.T) {
	var cache QueueOptionsCache
	scope := func(change realm.KeyScope) *realm.KeyScope {
		change.Rights = []string{realm.RightRead}
		return &change
	}
	topic := func(name string) *realm.KeyScope {
		return scope(realm.KeyScope{Places: []realm.KeyPlace{{Channel: 7, Topic: &name}}})
	}
	queues := func() []realm.Queue {
		return []realm.Queue{{}, {EventTypes: []string{}}, {EventTypes: []string{"message"}},
			{EventTypes: []string{"message", "typing"}}, {AllPublic: true}, {Markdown: true}, {Slim: true},
			{Gravatar: true},
			{Subscribers: "true"}, {Caps: realm.CapEmptyTopicName}, {Narrow: [][2]string{{"is", "dm"}}},
			{Narrow: [][2]string{{"is", "starred"}}}, {Scope: topic("deploy")}, {Scope: topic("salaries")},
			{Scope: scope(realm.KeyScope{Places: []realm.KeyPlace{{Channel: 7}}})}, {Scope: scope(realm.KeyScope{})},
			{Scope: scope(realm.KeyScope{Places: []realm.KeyPlace{}})}}
	}
	options := map[*QueueOptions]bool{}
	for i := range queues() {
		options[cache.Of(&queues()[i])] = true
		for j := range queues() {
			if one, other := cache.Of(&queues()[i]), cache.Of(&queues()[j]); (one == other) != (i == j) {
				t.Errorf("queues %d and %d share options: %t", i, j, one == other)
			}
		}
	}
	if len(options) != len(queues()) {
		t.Errorf("%d options for %d different queues", len(options), len(queues()))
	}
}

func BenchmarkQueueOptionsCache(b *testing.B) {
	var cache QueueOptionsCache
	q := realm.Queue{EventTypes: []string{"message", "update_message", "reaction"}, Markdown: true,
		Caps: realm.CapEmptyTopicName}
	for b.Loop() {
		cache.Of(&q)
	}
}

package queue

import (
	"testing"
	"unsafe"

	"parley/actors/realm"
)

// fakeReply is a parked request without a client.
type fakeReply struct{ _ int }

func (*fakeReply) Answer(int, ...[]byte) bool { return true }

// One more field, and each of 10,000 deliveries waits for a third cache line. Rarely used fields belong behind a
// pointer.
func TestQueueFitsTwoCacheLines(t *testing.T) {
	if n := unsafe.Sizeof(Queue{}); n > 128 {
		t.Errorf("a queue takes %d bytes, more than two lines of 64", n)
	}
}

// Acknowledged events leave the queue and no others do, whatever is appended in between.
func TestAcknowledgedEventsLeave(t *testing.T) {
	q := New(&realm.Queue{ID: "q", At: 10}, 0, false)
	event := func(text string) *Event { return &Event{JSON: []byte(text)} }
	waiting := func(last int64) (out string) {
		t.Helper()
		a, err := q.Poll(new(fakeReply), last, true, 0, 0, 20)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range a.Events {
			json, _ := h.Event.Bytes()
			out += string(json)
		}
		return out
	}
	id := func(seq, k int64) int64 { return (seq-10)<<8 | k }
	for _, c := range []struct {
		seq    realm.Seq
		events string
		last   int64
		want   string
	}{
		{11, "a", -1, "a"},
		{12, "b", id(11, 0), "b"},
		{13, "c", id(11, 0), "bc"},
		{14, "de", id(12, 0), "cde"},
		{15, "f", id(14, 0), "ef"},
		{16, "", id(14, 1), "f"},
		{17, "", id(15, 0), ""},
		{18, "g", id(15, 0), "g"},
	} {
		var list []*Event
		for _, x := range c.events {
			list = append(list, event(string(x)))
		}
		q.Append(c.seq, 0, list)
		if got := waiting(c.last); got != c.want {
			t.Errorf("after %d and %q: %q, want %q", c.last, c.events, got, c.want)
		}
	}
}

// A queue reuses its memory for each event.
func TestDeliveryAllocatesNothing(t *testing.T) {
	q := New(&realm.Queue{ID: "q"}, 0, false)
	events, seq := []*Event{{JSON: []byte("x")}}, realm.Seq(0)
	poll := new(fakeReply)
	n := testing.AllocsPerRun(100, func() {
		last := q.newestID
		if a, err := q.Poll(poll, last, false, 0, 0, seq); err != nil || !a.Parked {
			t.Fatal(a, err)
		}
		seq++
		q.Append(seq, 0, events)
		if p, events := q.TakePoll(0); p != poll || len(events) != 1 {
			t.Fatal(p, events)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

// An event whose Make says so does not hold its bytes: queues that are behind must not keep large ones in memory.
func TestEventHoldsItsBytesOnlyIfTold(t *testing.T) {
	for _, keep := range []bool{true, false} {
		made := 0
		e := &Event{Make: func() ([]byte, bool) { made++; return []byte("large"), keep }}
		for range 3 {
			if json, err := e.Bytes(); string(json) != "large" || err != nil {
				t.Fatalf("keep %v: the event has other bytes", keep)
			}
		}
		if kept := e.JSON != nil; kept != keep || (made == 1) != keep {
			t.Errorf("keep %v: encoded %d times, the bytes are held: %v", keep, made, kept)
		}
	}
}

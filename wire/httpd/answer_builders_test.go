package httpd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/actors/admission"
	"parley/wire/httpd/park"
)

// Large answers are built one after the other, and callers take turns: many of one caller delay another caller's by
// one.
func TestLargeAnswersTakeTurns(t *testing.T) {
	b := &answerBuilders{began: time.Now(), free: 1, queue: admission.NewWaitQueue[string, chan bool](100, 3)}
	if !b.enter(park.Caller{Account: "ann"}) {
		t.Fatal("the first answer is refused")
	}
	built := make(chan string)
	build := func(caller string) {
		before := b.waiting()
		go func() {
			if !b.enter(park.Caller{Account: caller}) {
				caller = "refused " + caller
			}
			built <- caller
		}()
		for end := time.Now().Add(time.Minute); b.waiting() == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	for _, x := range []string{"ann", "ann", "ann", "bo"} {
		build(x)
	}
	go func() { built <- fmt.Sprint(b.enter(park.Caller{Account: "ann"})) }()
	if got := <-built; got != "false" || b.refused.Load() != 1 {
		t.Errorf("one more of a caller with three that wait: %s, %d refused", got, b.refused.Load())
	}
	var got []string
	for range 4 {
		select {
		case x := <-built:
			t.Errorf("%s did not wait", x)
		case <-time.After(10 * time.Millisecond):
		}
		b.leave()
		got = append(got, <-built)
	}
	if want := []string{"ann", "bo", "ann", "ann"}; !slices.Equal(got, want) {
		t.Errorf("turns of %v, want %v", got, want)
	}
	b.leave()
	if b.free != 1 || b.waiting() != 0 {
		t.Errorf("%d free, %d waiting", b.free, b.waiting())
	}
}

// Requests that have waited too long are refused.
func TestWaitForTurnEnds(t *testing.T) {
	b := &answerBuilders{began: time.Now().Add(-time.Hour), queue: admission.NewWaitQueue[string, chan bool](100, 3)}
	old, young := make(chan bool, 1), make(chan bool, 1)
	b.queue.Add(admission.Account[string]{User: "ann"}, old, time.Hour-maxBuildWait-time.Second)
	b.queue.Add(admission.Account[string]{User: "ann"}, young, time.Hour)
	b.expire()
	b.leave()
	if <-old || !<-young {
		t.Error("the old one must be refused, the other one gets the slot")
	}
}

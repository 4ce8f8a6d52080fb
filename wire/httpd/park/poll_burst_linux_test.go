package park

import (
	"testing"
	"time"
)

// The loop pauses when many answered clients will poll again, and once for them. It does not pause for clients that do
// not return, nor when other requests would wait.
func TestPollBurst(t *testing.T) {
	var b pollBurst
	answers := int64(0)
	step := func(what string, answered, parks, others int64, want bool) {
		t.Helper()
		answers += answered
		b.events += parks + others
		b.parks += parks
		if got := b.shouldPause(answers); got != want {
			t.Errorf("%s: pause is %v, want %v", what, got, want)
		}
	}
	step("a message is sent", 0, 0, 1, false)
	step("a few of its polls are answered", 5, 1, 0, false)
	step("more are answered", 10, 1, 0, true)
	step("the others too, and nearly all clients polled", 85, 90, 0, false)
	step("a message to few", 4, 4, 1, false)
	step("clients that leave", 60, 0, 0, true)
	step("nothing follows", 0, 0, 0, false)
	step("another message to many", 60, 0, 1, true)
	step("all return", 0, 60, 0, false)
	step("many senders, each to few", 16, 0, 16, false)
	b = pollBurst{since: time.Now(), answers: answers}
	step("clients poll for the first time", 0, 100, 0, true)
}

package cluster

import (
	"testing"
	"time"
)

// A clock that is set by a second or more makes one step. One that is slow or fast by less makes none.
func TestClockWatch(t *testing.T) {
	var ahead time.Duration
	w := newClockWatch(func() time.Time { return time.Now().Add(ahead) })
	for _, x := range []struct{ ahead, step time.Duration }{
		{0, 0}, {500 * time.Millisecond, 0}, {-500 * time.Millisecond, 0},
		{time.Hour, time.Hour}, {time.Hour, 0}, {0, -time.Hour}, {0, 0}, {-2 * time.Second, -2 * time.Second},
	} {
		ahead = x.ahead
		if got := w.step(); got.Round(time.Second) != x.step {
			t.Errorf("the clock is %v ahead: a step of %v, want %v", x.ahead, got, x.step)
		}
	}
}

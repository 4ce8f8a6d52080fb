package main

import (
	"path/filepath"
	"testing"
)

// A demo has no rate limits unless they are set.
func TestDemoRateLimits(t *testing.T) {
	for _, c := range []struct {
		flags []string
		sent  int
	}{{nil, 20}, {[]string{"--rate-limit", "5"}, 5}} {
		p := demo(t, filepath.Join(t.TempDir(), "data"), c.flags...)
		ann := demoAccount(t, p.serving(), "ann@example.org")
		sent := 0
		for ; sent < 20; sent++ {
			if _, err := ann.send("hello"); err != nil {
				break
			}
		}
		if sent != c.sent {
			t.Errorf("%v: %d messages were accepted, want %d", c.flags, sent, c.sent)
		}
		p.stop()
	}
}

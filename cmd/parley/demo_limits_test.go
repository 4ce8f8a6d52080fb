package main

import (
	"path/filepath"
	"testing"
)

// A demo does not brake, unless it is told to.
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
			t.Errorf("%v: %d messages went through, expected %d", c.flags, sent, c.sent)
		}
		p.stop()
	}
}

package httpd

import (
	"testing"
	"time"
)

func TestLimiterLetsABudgetThroughAndRefills(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := newLimiter(5, 30*time.Minute)
	l.now = func() time.Time { return now }
	for i := range 5 {
		if v := l.take("ann"); v.retry > 0 || v.remaining != 4-i {
			t.Fatalf("request %d: %+v", i+1, v)
		}
	}
	v := l.take("ann")
	if v.retry != 6*time.Minute {
		t.Fatalf("the sixth may come again after %v, want 6m", v.retry)
	}
	if v := l.take("bo"); v.retry > 0 {
		t.Fatal("one caller's requests were counted against another")
	}
	now = now.Add(6 * time.Minute)
	if v := l.take("ann"); v.retry > 0 {
		t.Fatalf("refused after the wait it was told: %+v", v)
	}
}

func TestLimiterForgets(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := newLimiter(1, time.Minute)
	l.now = func() time.Time { return now }
	for i := range maxTracked {
		l.full[string(rune(i))+"x"] = now.Add(time.Duration(i%2) * time.Hour)
	}
	now = now.Add(time.Minute)
	l.take("new")
	if n := len(l.full); n > maxTracked {
		t.Fatalf("%d callers are remembered, more than %d", n, maxTracked)
	}
}

package httpd

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley/wire/form"
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
	for i := range MaxTracked {
		l.full[string(rune(i))+"x"] = now.Add(time.Duration(i%2) * time.Hour)
	}
	now = now.Add(time.Minute)
	l.take("new")
	if n := len(l.full); n > MaxTracked {
		t.Fatalf("%d callers are remembered, more than %d", n, MaxTracked)
	}
	for i := len(l.full); i < MaxTracked; i++ {
		l.full[string(rune(i))+"y"] = now.Add(time.Hour)
	}
	l.take("newer")
	if n := len(l.full); n > MaxTracked*7/8+1 {
		t.Fatalf("%d callers are remembered still: each newcomer would cost a search for the next to forget", n)
	}
}

func TestVisitorsOfOneHouseholdCountTogether(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3": "10.1.2.3", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64"} {
		if got := household(netip.MustParseAddr(in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestTooManyParametersAreCountedBeforeTheyCost(t *testing.T) {
	for n, want := range map[int]bool{1: false, form.MaxParams: false, form.MaxParams + 1: true} {
		if got := tooMany([]byte(strings.Repeat("a=b&", n-1) + "a=b")); got != want {
			t.Errorf("%d parameters: %v", n, got)
		}
	}
}

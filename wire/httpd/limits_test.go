package httpd

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"parley/wire/form"
)

func TestLimiterAllowsItsBudgetAndRefills(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := newLimiter(5, 30*time.Minute)
	l.now = func() time.Time { return now }
	for i := range 5 {
		if v := l.count("ann"); v.retry > 0 || v.remaining != 4-i {
			t.Fatalf("request %d: %+v", i+1, v)
		}
	}
	v := l.count("ann")
	if v.retry != 6*time.Minute {
		t.Fatalf("the sixth request may be repeated after %v, want 6m", v.retry)
	}
	if v := l.count("bo"); v.retry > 0 {
		t.Fatal("the requests of one caller were counted for another")
	}
	now = now.Add(6 * time.Minute)
	if v := l.count("ann"); v.retry > 0 {
		t.Fatalf("refused after waiting as told: %+v", v)
	}
}

func TestLimiterIsBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l := newLimiter(1, time.Minute)
	l.now = func() time.Time { return now }
	for i := range MaxTracked {
		l.fullAt[string(rune(i))+"x"] = now.Add(time.Duration(i%2) * time.Hour)
	}
	now = now.Add(time.Minute)
	l.count("new")
	if n := len(l.fullAt); n > MaxTracked {
		t.Fatalf("%d callers are tracked, more than %d", n, MaxTracked)
	}
	for i := len(l.fullAt); i < MaxTracked; i++ {
		l.fullAt[string(rune(i))+"y"] = now.Add(time.Hour)
	}
	l.count("newer")
	if n := len(l.fullAt); n > MaxTracked*7/8+1 {
		t.Fatalf("%d callers are still tracked: every new caller would cost an eviction", n)
	}
}

func TestRemoteAddressFromTrustedProxy(t *testing.T) {
	s := &Server{options: Options{Limits: Limits{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}}
	for _, x := range []struct {
		from  string
		lines []string
		want  string
	}{
		{"10.0.0.1", nil, "10.0.0.1"},
		{"10.0.0.1", []string{"192.0.2.7"}, "192.0.2.7"},
		{"10.0.0.1", []string{"192.0.2.66, 192.0.2.7, 10.0.0.2"}, "192.0.2.7"},
		{"10.0.0.1", []string{"192.0.2.66", "192.0.2.7"}, "192.0.2.7"}, // the client forged the first line
		{"10.0.0.1", []string{"192.0.2.7, nonsense"}, "10.0.0.1"},
		{"192.0.2.9", []string{"192.0.2.7"}, "192.0.2.9"},
	} {
		var ctx fasthttp.RequestCtx
		var r fasthttp.Request
		for _, l := range x.lines {
			r.Header.Add("X-Forwarded-For", l)
		}
		ctx.Init(&r, &net.TCPAddr{IP: net.ParseIP(x.from)}, nil)
		if got := s.remote(&ctx); got != x.want {
			t.Errorf("%s with %q: %s, want %s", x.from, x.lines, got, x.want)
		}
	}
}

func TestLimiterWithHugeLimit(t *testing.T) {
	if v := newLimiter(1<<62, time.Minute).count("ann"); v.retry > 0 {
		t.Errorf("the first request was refused: %+v", v)
	}
}

func TestVisitorsOfOneNetworkShareALimit(t *testing.T) {
	for in, want := range map[string]string{"10.1.2.3": "10.1.2.3", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64"} {
		if got := clientNetworkKey(netip.MustParseAddr(in)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestTooManyParams(t *testing.T) {
	for n, want := range map[int]bool{1: false, form.MaxParams: false, form.MaxParams + 1: true} {
		if got := tooManyParams([]byte(strings.Repeat("a=b&", n-1) + "a=b")); got != want {
			t.Errorf("%d parameters: %v", n, got)
		}
	}
}

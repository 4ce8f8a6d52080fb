package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestMetersNameTheirFields(t *testing.T) {
	m := struct {
		Turns       atomic.Int64
		CommitNanos int64
		P99         time.Duration
		Refused     map[string]int64
		MemTable    uint64
		hidden      int
	}{CommitNanos: 3, P99: 250 * time.Millisecond, Refused: map[string]int64{"slow": 2, "conns": 1}, MemTable: 9, hidden: 7}
	m.Turns.Store(5)
	var b strings.Builder
	writeMeters(&b, "x", &m)
	want := "x_turns 5\nx_commit_nanos 3\nx_p99_seconds 0.25\nx_refused{of=\"conns\"} 1\nx_refused{of=\"slow\"} 2\nx_mem_table 9\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestMetersOfARunningServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	debug := l.Addr().String()
	l.Close()
	data := filepath.Join(t.TempDir(), "data")
	at := demo(t, data, "--debug-listen", debug).serving()
	ann := demoPerson(t, at, "ann@example.org")
	if _, err := ann.listen(); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.call("POST", "messages", url.Values{"type": {"stream"}, "to": {"nowhere"}, "topic": {"t"}, "content": {"x"}}); err == nil {
		t.Fatal("a message to nowhere was sent")
	}
	get := func(url string) (int, string) {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	_, text := get("http://" + debug + "/metrics")
	for _, line := range []string{"parley_house_queues 1", "parley_house_given_up 0", "parley_house_parked 0", "parley_house_held 0", "parley_realm_in_flight{of=\"1\"} 0", "parley_realm_snapshot_age_seconds{of=\"1\"} ",
		"parley_realm_refusals{of=\"STREAM_DOES_NOT_EXIST\"} 1", "parley_store_p99_seconds ",
		"parley_realm_held_seconds_bucket{kind=\"POST /register\",le=\"+Inf\"} 1\n", "parley_realm_held_seconds_count{kind=\"POST /register\"} 1\n", "parley_realm_held_max_seconds{kind=\"POST /messages\"} ", "parley_http_parked 0",
		"parley_bound_limit{of=\"queue_events\"} 20000", "parley_bound_used{of=\"connections\"} ", "parley_bound_hits{of=\"kept_bytes\"} 0", "parley_bound_used{of=\"text_cache_bytes\"} "} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q among the meters", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	slowest, err := command(data, "realm-slowest", map[string]string{})
	if list, _ := slowest["slowest"].([]any); err != nil || len(list) > slowestShown || !strings.Contains(fmt.Sprint(list), "kind:POST /register") {
		t.Errorf("realm slowest: %v %v", slowest, err)
	}
	if status, _ := get("http://" + debug + "/debug/pprof/goroutine?debug=1"); status != 200 {
		t.Errorf("goroutine profile: %d", status)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if status, _ := get(at + path); status != 404 {
			t.Errorf("%s is answered %d where clients are", path, status)
		}
	}
	if status, text := get(at + "/health"); status != 200 || !strings.Contains(text, "success") {
		t.Errorf("health: %d %s", status, text)
	}
}

package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/internal/server"
)

func TestMetricsOfARunningServer(t *testing.T) {
	debug := freeAddress(t)
	data := filepath.Join(t.TempDir(), "data")
	at := demo(t, data, "--debug-listen", debug).serving()
	ann := demoAccount(t, at, "ann@example.org")
	if _, err := ann.newPoller(); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.call("POST", "messages",
		url.Values{"type": {"stream"}, "to": {"nowhere"}, "topic": {"t"}, "content": {"x"}}); err == nil {
		t.Fatal("a message to a missing channel was sent")
	}
	get := func(url string) (int, string) {
		r, text := getText(t, url)
		return r.StatusCode, text
	}
	_, text := get("http://" + debug + "/metrics")
	for _, line := range []string{"parley_queues 1", "parley_queues_evicted_total 0", "parley_polls_parked 0",
		"parley_unacked_events 0",
		`parley_realm_in_flight{realm="1"} 0`, `parley_realm_snapshot_age_seconds{realm="1"} `,
		`parley_refusals_total{code="STREAM_DOES_NOT_EXIST"} 1`,
		`parley_store_commit_seconds_bucket{le="0.001024"} `, `parley_store_commit_seconds_count `,
		"# TYPE parley_store_facts_total counter\n",
		`parley_realm_turn_latency_seconds_bucket{kind="POST /register",le="+Inf"} 1`,
		`parley_realm_turn_latency_seconds_count{kind="POST /register"} 1`,
		`parley_realm_turn_latency_max_seconds{kind="POST /messages"} `, "parley_http_parked_requests 0",
		`parley_bound_limit{of="queue_events"} 20000`,
		`parley_bound_used{of="connections"} `, `parley_bound_hits_total{of="unacked_bytes"} 0`,
		`parley_bound_used{of="text_cache_bytes"} `,
		"go_goroutines ", "process_resident_memory_bytes "} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q among the metrics", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
	slowest, err := server.Command(data, "realm-slowest", map[string]string{})
	if list, _ := slowest["slowest"].([]any); err != nil || len(list) > 10 ||
		!strings.Contains(fmt.Sprint(list), "kind:POST /register") {
		t.Errorf("realm slowest: %v %v", slowest, err)
	}
	if status, _ := get("http://" + debug + "/debug/pprof/goroutine?debug=1"); status != 200 {
		t.Errorf("goroutine profile: %d", status)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/"} {
		if status, _ := get(at + path); status != 404 {
			t.Errorf("%s is answered %d at the address for clients", path, status)
		}
	}
	if status, text := get(at + "/health"); status != 200 || !strings.Contains(text, "success") {
		t.Errorf("health: %d %s", status, text)
	}
}

// waitForParkedPolls waits until exactly n polls wait for events at the server with this debug address.
func waitForParkedPolls(t *testing.T, debug string, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " polls wait"), func() bool {
		_, text := getText(t, "http://"+debug+"/metrics")
		return strings.Contains(text, fmt.Sprintf("\nparley_polls_parked %d\n", n))
	})
}

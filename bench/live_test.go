package bench

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLivePage requires that the page, the JSON and the metrics show a run while it lasts.
func TestLivePage(t *testing.T) {
	srv := httptest.NewServer(newFake(""))
	defer srv.CloseClientConnections()
	r, w := io.Pipe()
	over := make(chan int, 1)
	go func() {
		code := Main([]string{"chat", "--target", srv.URL, "--users", "10", "--channels", "2", "--history", "0",
			"--rate", "50",
			"--duration", "5", "--live", "127.0.0.1:0"}, w, io.Discard)
		w.Close()
		over <- code
	}()
	url, phase := "", false
	lines := bufio.NewScanner(r)
	for !phase && lines.Scan() {
		if _, u, ok := strings.Cut(lines.Text(), "live page: "); ok {
			url = u
		}
		phase = strings.Contains(lines.Text(), "req/s")
	}
	get := func(path string) string {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	var points []livePoint
	if err := json.Unmarshal([]byte(get("live.json")), &points); err != nil || len(points) == 0 ||
		points[0].Requests == 0 {
		t.Errorf("live.json: %v %v", err, points)
	}
	if page := get(""); !strings.Contains(page, "live.json") {
		t.Errorf("the page does not fetch live.json:\n%s", page)
	}
	if text := get("metrics"); !strings.Contains(text, "parley_bench_live_requests_per_second{phase=") {
		t.Errorf("metrics:\n%s", text)
	}
	go io.Copy(io.Discard, r)
	if code := <-over; code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, bad := range []string{"0.0.0.0:0", "nonsense", "127.0.0.1:99999"} {
		if code, _, errs := runMain(benchArgs(srv.URL, "--live", bad)...); code != 2 || !strings.Contains(errs,
			"--live") {
			t.Errorf("--live %s: exit code %d: %s", bad, code, errs)
		}
	}
}

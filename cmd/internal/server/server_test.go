package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// eventTimeout bounds every wait in these tests. It only decides how long a broken server takes to fail.
const eventTimeout = 60 * time.Second

// eventually waits until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(eventTimeout); !done(); {
		if time.Now().After(end) {
			t.Fatal("did not happen in time: ", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// demoServer is a server in this process, with the API keys of its demo organization by email address.
type demoServer struct {
	*Server
	t    *testing.T
	keys map[string]string
}

// startDemo starts a server with a demo organization and a data directory of its own.
func startDemo(t *testing.T) *demoServer {
	t.Helper()
	return startDemoAt(t, nil)
}

// startDemoAt is startDemo with a clock for the organizations.
func startDemoAt(t *testing.T, now func() time.Time) *demoServer {
	t.Helper()
	s := DefaultSettings()
	s.Data, s.Listen, s.DebugListen, s.Demo = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0", "127.0.0.1:0", true
	if err := s.Check(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	running, err := Start(Config{Settings: s, Log: slog.New(slog.DiscardHandler), Output: &out, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &demoServer{running, t, map[string]string{}}
	for _, m := range regexp.MustCompile(`(\S+@example\.org) .* (\w{32})\n`).FindAllStringSubmatch(out.String(), -1) {
		d.keys[m[1]] = m[2]
	}
	return d
}

// call sends a request as a user and returns the decoded answer. It fails the test unless the answer is a success.
func (d *demoServer) call(email, method, path string, params url.Values) map[string]any {
	d.t.Helper()
	target, body := d.BaseURL()+"/api/v1/"+path, params.Encode()
	if method == "GET" {
		target, body = target+"?"+body, ""
	}
	r, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(email, d.keys[email])
	resp, err := (&http.Client{Timeout: eventTimeout}).Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		d.t.Fatalf("%s %s: %s %v %v", method, path, resp.Status, answer, err)
	}
	return answer
}

// poll reads a queue until it has received n messages, and returns their texts.
func (d *demoServer) poll(email, queue string, n int) (texts []string) {
	last := -1.0
	for len(texts) < n {
		a := d.call(email, "GET", "events", url.Values{"queue_id": {queue}, "last_event_id": {fmt.Sprint(last)}})
		for _, x := range a["events"].([]any) {
			e := x.(map[string]any)
			last = e["id"].(float64)
			if m, ok := e["message"].(map[string]any); ok {
				texts = append(texts, m["content"].(string))
			}
		}
	}
	return texts
}

// Three servers run in one process. Each has its own organization, and its clients receive its messages and no others.
func TestThreeServersInOneProcess(t *testing.T) {
	const messages = 20
	var servers []*demoServer
	for range 3 {
		servers = append(servers, startDemo(t))
	}
	var polling sync.WaitGroup
	for i, d := range servers {
		for _, email := range []string{"ann@example.org", "bo@example.org"} {
			a := d.call(email, "POST", "register",
				url.Values{"event_types": {`["message"]`}, "apply_markdown": {"false"}})
			polling.Go(func() {
				texts := d.poll(email, a["queue_id"].(string), messages)
				for n, text := range texts {
					if want := fmt.Sprintf("server %d message %d", i, n); text != want {
						t.Errorf("%s at server %d received %q, want %q", email, i, text, want)
					}
				}
			})
		}
	}
	for n := range messages {
		for i, d := range servers {
			d.call("cy@example.org", "POST", "messages",
				url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"},
					"content": {fmt.Sprintf("server %d message %d", i, n)}})
		}
	}
	polling.Wait()
	seen := map[string]bool{}
	for i, d := range servers {
		if d.Addr() == "" || seen[d.Addr()] || d.MailAddr() != "" {
			t.Errorf("server %d has the addresses %q and %q", i, d.Addr(), d.MailAddr())
		}
		seen[d.Addr()] = true
		resp, err := http.Get("http://" + d.MetricsAddr() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(text), "\nparley_queues 2\n") {
			t.Errorf("the metrics of server %d do not count its 2 queues", i)
		}
	}
	if err := servers[0].Close(); err != nil {
		t.Error(err)
	}
	servers[1].call("ann@example.org", "GET", "users/me", nil)
}

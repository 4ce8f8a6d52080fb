package main

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// edgeProcess is a node of a cluster that a test starts and kills.
type edgeProcess struct {
	*program
	id, data, listen string
	token            string
}

// edgesOfCore is a core and edges, each a process.
type edgesOfCore struct {
	t     *testing.T
	dir   string
	core  *edgeProcess
	edges []*edgeProcess
}

// startEdges starts a core with a demo organization, and edges.
func startEdges(t *testing.T, edges int) *edgesOfCore {
	t.Helper()
	return startEdgesOf(t, edges)
}

// startEdgesOf is startEdges with flags of the core.
func startEdgesOf(t *testing.T, edges int, flags ...string) *edgesOfCore {
	t.Helper()
	c := &edgesOfCore{t: t, dir: t.TempDir()}
	c.core = &edgeProcess{id: "a", data: filepath.Join(c.dir, "a"), listen: freeAddress(t)}
	mustRun(t, "cluster", "init", "--data", c.core.data, "--node", "a", "--peer-listen", freeAddress(t))
	c.start(c.core, flags...)
	for i := range edges {
		c.addEdge(string(rune('b' + i)))
	}
	return c
}

// mustRun runs a command that has to succeed, and returns its output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, code := runParley(args...)
	if code != 0 {
		t.Fatalf("parley %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// start starts a node, also after it was killed.
func (c *edgesOfCore) start(n *edgeProcess, flags ...string) {
	c.t.Helper()
	args := append([]string{"serve", "--data", n.data, "--node", n.id, "--listen", n.listen}, flags...)
	if n == c.core {
		args = append(args, "--demo")
	}
	if n.token != "" {
		args = append(args, "--join", n.token)
		n.token = ""
	}
	n.program = startProgram(c.t, parleyCommand(args...))
	n.serving()
}

func (c *edgesOfCore) token() string {
	c.t.Helper()
	return strings.TrimSpace(mustRun(c.t, "cluster", "token", "--data", c.core.data, "--role", "edge"))
}

func (c *edgesOfCore) addEdge(id string) *edgeProcess {
	c.t.Helper()
	n := &edgeProcess{id: id, data: filepath.Join(c.dir, id), listen: freeAddress(c.t), token: c.token()}
	c.start(n)
	c.edges = append(c.edges, n)
	return n
}

func (n *edgeProcess) url() string { return "http://" + n.listen }

// verify checks that every node has the same state.
func (c *edgesOfCore) verify(nodes int) {
	c.t.Helper()
	out := mustRun(c.t, "cluster", "verify", "--data", c.core.data)
	if !strings.Contains(out, "equal=true") || !strings.Contains(out, fmt.Sprintf("nodes=%d", nodes)) {
		c.t.Errorf("parley cluster verify: %s", out)
	}
}

// TestEdgesKill runs a core and two edges under load, and kills one of them again and again at random moments.
// Clients know only the edges, and poll another one when theirs is gone. Nothing is lost, doubled, reordered or leaked,
// and no client has to register again. KILLS, CLIENTS and SEED make the test longer or repeat it.
func TestEdgesKill(t *testing.T) {
	run := newKillRun(t, "KILLS", 6, 20)
	c := startEdges(t, 2)
	l := newKillRecord(t, run, c.edges[0].url(), c.edges[1].url())
	l.startSending()
	victims := append([]*edgeProcess{c.core}, c.edges...)
	for i := range run.times {
		if i > 0 && i%100 == 0 {
			t.Logf("%d kills", i)
		}
		l.waitForMoment(20*time.Millisecond, 200*time.Millisecond)
		victim := victims[i%len(victims)]
		victim.kill()
		c.start(victim)
	}
	l.end()
	c.verify(3)
}

// A client registers and polls at one edge; messages are sent at the other one. While the core is dead, the poll waits
// and a message is not refused; when it is back, both go on.
func TestEdgesKeepQueues(t *testing.T) {
	c := startEdges(t, 2)
	ann, bo := demoAccount(t, c.edges[0].url(), "ann@example.org"), demoAccount(t, c.edges[1].url(), "bo@example.org")
	q, err := bo.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() { polled <- q.pollUntil("the end") }()
	send := func(text string) {
		t.Helper()
		if _, err := ann.send(text); err != nil {
			t.Error(err)
		}
	}
	send("before")
	c.core.kill()
	sent := make(chan struct{})
	go func() { send("meanwhile"); close(sent) }()
	c.start(c.core)
	<-sent
	send("the end")
	if err := <-polled; err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(q.texts); got != "[before meanwhile]" {
		t.Errorf("the client of the other edge got %v", got)
	}
	c.verify(3)
	status := mustStatusLines(t, c.edges[0].data)
	for _, want := range []string{"node=a", "node=b", "node=c", "leader=true", "role=edge", "queues=1"} {
		if !strings.Contains(status, want) {
			t.Errorf("the status has no %s:\n%s", want, status)
		}
	}
}

// A file that was uploaded at one edge is downloaded at the other one. Users that may not see it do not get it there.
func TestEdgesPassFiles(t *testing.T) {
	c := startEdges(t, 2)
	ann, gus := demoAccount(t, c.edges[0].url(), "ann@example.org"), demoAccount(t, c.edges[1].url(), "gus@example.org")
	text := strings.Repeat("hello ", 1<<18) // more than a message of a link has
	status, a, err := ann.upload(map[string]io.Reader{"hello.txt": strings.NewReader(text)})
	if err != nil || status != 200 {
		t.Fatalf("upload: status %d, %v, %v", status, a, err)
	}
	path := a["url"].(string)
	get := func(from *account) (status int, body string) {
		t.Helper()
		r, body := getText(t, c.edges[1].url()+path+"?api_key="+from.key)
		return r.StatusCode, body
	}
	if status, body := get(ann); status != 200 || body != text {
		t.Errorf("the file at the other edge: status %d, %d bytes", status, len(body))
	}
	if status, _ := get(gus); status != 404 {
		t.Errorf("another user gets the file: status %d", status)
	}
	tus, a := ann.sendTus("POST", "/api/v1/tus", map[string]string{"Upload-Length": "5",
		"Upload-Metadata": "filename ZmlsZS50eHQ="}, "")
	if tus.StatusCode != 201 {
		t.Fatalf("resumable upload: %s, %v", tus.Status, a)
	}
	place, err := url.Parse(tus.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	ann.url = c.edges[1].url()
	tus, a = ann.sendTus("PATCH", place.Path, map[string]string{"Upload-Offset": "0",
		"Content-Type": "application/offset+octet-stream"}, "hello")
	if tus.StatusCode != 204 && tus.StatusCode != 200 {
		t.Errorf("a part of a resumable upload at the other edge: %s, %v", tus.Status, a)
	}
}

// The health check of an edge fails when the edge has had no core for some seconds, so that a load balancer sends
// clients away, and not before. It succeeds again when the core is back.
func TestEdgeHealth(t *testing.T) {
	c := startEdges(t, 1)
	health := func() (status int, body, retry string) {
		t.Helper()
		r, text := getText(t, c.edges[0].url()+"/health")
		return r.StatusCode, text, r.Header.Get("Retry-After")
	}
	if status, body, _ := health(); status != 200 {
		t.Fatalf("an edge with a link: %d %s", status, body)
	}
	gone := time.Now()
	c.core.kill()
	eventually(t, "the health check of the edge fails", func() bool {
		status, body, retry := health()
		if status == 200 {
			return false
		}
		if d := time.Since(gone); d < 2500*time.Millisecond {
			t.Errorf("it failed after %v already", d)
		}
		if status != 503 || retry == "" || !strings.Contains(body, `"health":"unavailable","cluster":"no link to`) {
			t.Errorf("an edge without a link: %d %s, Retry-After %q", status, body, retry)
		}
		return true
	})
	c.start(c.core)
	eventually(t, "the health check of the edge succeeds", func() bool {
		status, _, _ := health()
		return status == 200
	})
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// parley upgrade replaces an edge, twice, and its clients keep their queues. If no core accepts the new program, the
// old one continues.
func TestEdgeUpgrade(t *testing.T) {
	c := startEdges(t, 1)
	edge := c.edges[0]
	defer endSuccessor(t, edge.data)
	ann, bo := demoAccount(t, c.core.url(), "ann@example.org"), demoAccount(t, edge.url(), "bo@example.org")
	q, err := bo.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	polled := make(chan error, 1)
	go func() { polled <- (&killClient{poller: q}).pollUntil("the end", func() {}) }()
	for _, text := range []string{"first", "second"} {
		if _, err := ann.send("before the " + text); err != nil {
			t.Error(err)
		}
		if out, code := runParley("upgrade", "--data", edge.data); code != 0 {
			t.Fatalf("the %s upgrade: %s\n%s", text, out, edge.output())
		}
		if _, err := bo.send("after the " + text); err != nil {
			t.Errorf("a message after the %s upgrade: %v", text, err)
		}
	}
	if _, err := ann.send("the end"); err != nil {
		t.Error(err)
	}
	if err := <-polled; err != nil {
		t.Error(err)
	}
	want := "before the first, after the first, before the second, after the second"
	if got := strings.Join(q.texts, ", "); !strings.HasPrefix(got, want) {
		t.Errorf("the client of the edge got %s", got)
	}
	c.verify(2)
	c.core.kill()
	if out, code := runParley("upgrade", "--data", edge.data); code == 0 || !strings.Contains(out, "continues") {
		t.Errorf("an upgrade without a core: code %d: %s", code, out)
	}
	c.start(c.core)
	if _, err := bo.send("through the old program"); err != nil {
		t.Error(err)
	}
}

// A core that has joined but has never run takes no command of the operator: it has none of the data. It says what to
// do. The first core of a cluster takes commands before it has run.
func TestJoinedCoreWithoutData(t *testing.T) {
	c := startEdges(t, 0)
	token := strings.TrimSpace(mustRun(t, "cluster", "token", "--data", c.core.data, "--role", "core"))
	b := filepath.Join(c.dir, "b")
	out, code := runParley("serve", "--data", b, "--node", "b", "--join", token, "--listen", c.core.listen,
		"--peer-listen", freeAddress(t)) // the port is taken
	if code == 0 {
		t.Fatal(out)
	}
	for _, command := range []string{"realm create --realm x --name X", "realm list", "cluster token --role core"} {
		out, code := runParley(append(strings.Fields(command), "--data", b)...)
		if code == 0 || !strings.Contains(out, "has joined a cluster but has not run yet") ||
			!strings.Contains(out, "start it with parley serve --data "+b) {
			t.Errorf("parley %s: code %d: %s", command, code, out)
		}
	}
	first := filepath.Join(c.dir, "first")
	mustRun(t, "cluster", "init", "--data", first, "--node", "f", "--peer-listen", freeAddress(t))
	mustRun(t, "realm", "create", "--data", first, "--realm", "x", "--name", "X")
}

// parley log check reads the replicated log of a core, too: a changed byte is found.
func TestLogCheckReadsReplicatedLog(t *testing.T) {
	c := startEdges(t, 0)
	ann := demoAccount(t, c.core.url(), "ann@example.org")
	// Damage of the last write of all cannot be told from a write that a power loss has interrupted.
	for _, text := range []string{"to be damaged", "after that", "the end"} {
		if _, err := ann.send(text); err != nil {
			t.Fatal(err)
		}
	}
	c.core.kill()
	if out := mustRun(t, "log", "check", c.core.data); !strings.Contains(out, "the replicated log: every checksum of") {
		t.Errorf("the check of a sound log: %s", out)
	}
	files, err := filepath.Glob(filepath.Join(c.core.data, "raft", "*.wal"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(data), "to be damaged")
	if at < 0 {
		t.Fatal("the log does not have the text of the message")
	}
	data[at]++
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, code := runParley("log", "check", c.core.data)
	if code == 0 || !strings.Contains(out, "the replicated log is damaged: "+files[0]) {
		t.Errorf("the check of a damaged log: code %d: %s", code, out)
	}
}

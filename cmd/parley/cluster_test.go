package main

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A stopped single node becomes the first core of a cluster with all its data, keys and event queues. After all cores
// were killed at once nothing is lost.
func TestClusterOfSingleNode(t *testing.T) {
	dir := t.TempDir()
	c := &runningCore{name: "a", data: filepath.Join(dir, "a"), listen: freeAddress(t)}
	c.start(t)
	ann := demoAccount(t, c.program.serving(), "ann@example.org")
	q, err := ann.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.send("before"); err != nil {
		t.Fatal(err)
	}
	c.program.stop()
	all := joinCores(t, dir, c, "b", "c")
	ann.url = "http://" + all.list[1].listen
	if _, err := ann.send("in the cluster"); err != nil {
		t.Fatal(err)
	}
	for _, x := range all.list {
		x.program.kill()
	}
	began := time.Now()
	for _, x := range all.list {
		x.start(t)
	}
	for _, x := range all.list {
		x.program.serving()
	}
	ann.url = all.balance()
	all.retry("send", func() error {
		_, err := ann.send("the end")
		return err
	})
	t.Logf("serving %v after all cores were killed", time.Since(began).Round(time.Millisecond))
	if err := (&killClient{poller: q}).pollUntil("the end", func() {}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(q.texts, ", "); got != "before, in the cluster, the end" {
		t.Errorf("got %s", got)
	}
	if out, code := runParley("realm", "list", "--data", all.list[2].data); code != 0 {
		t.Errorf("a command of the operator at a core that does not lead: %s", out)
	}
	for _, x := range all.list[1:] {
		all.retry("remove a core", func() error {
			if out, code := runParley("cluster", "remove", x.name, "--yes", "--data", c.data); code != 0 {
				return errors.New(out)
			}
			return nil
		})
		x.program.kill()
	}
	if out, code := runParley("cluster", "dissolve", "--data", c.data); code == 0 {
		t.Errorf("a running core was dissolved: %s", out)
	}
	c.dissolve(t, q, "single again")
}

// dissolve makes the last core a single node and starts it. The poller goes on.
func (c *runningCore) dissolve(t *testing.T, q *poller, text string, flags ...string) {
	t.Helper()
	c.program.kill() // its store may lack entries of the log
	if out, code := runParley(append([]string{"cluster", "dissolve", "--data", c.data}, flags...)...); code != 0 {
		t.Fatal(out)
	}
	c.start(t)
	q.url = c.program.serving()
	if _, err := q.send(text); err != nil {
		t.Fatal(err)
	}
	if err := (&killClient{poller: q}).pollUntil(text, func() {}); err != nil {
		t.Fatal(err)
	}
	out, code := statusLines(c.data)
	if code == 0 || !strings.Contains(out, "single node") {
		t.Errorf("the status of a single node: %s", out)
	}
}

// When two of three cores are lost for ever, the operator makes the last one a single node, with everything that it
// has. Then it can be the first core of a new cluster.
func TestClusterTwoLost(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	a := all.list[0]
	ann := demoAccount(t, "http://"+a.listen, "ann@example.org")
	q, err := ann.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.send("acknowledged by all"); err != nil {
		t.Fatal(err)
	}
	all.retry("have the message at a", func() error {
		if out, _ := runParley("cluster", "verify", "--data", a.data); !strings.Contains(out, "nodes=3") {
			return errors.New(out)
		}
		return nil
	})
	for _, x := range all.list[1:] {
		x.program.kill()
	}
	a.program.kill()
	out, code := runParley("cluster", "dissolve", "--data", a.data)
	if code == 0 || !strings.Contains(out, "other cores with a vote: b, c") {
		t.Errorf("a core of three was dissolved, or without the reason: %s", out)
	}
	a.start(t) // the refusal has changed nothing
	a.program.serving()
	a.dissolve(t, q, "alone", "--accept-loss")
	if got := strings.Join(q.texts, ", "); got != "acknowledged by all, alone" {
		t.Errorf("received %s", got)
	}
	a.program.stop()
	again := joinCores(t, t.TempDir(), a, "d")
	q.url = "http://" + again.list[1].listen
	again.retry("send in the new cluster", func() error {
		_, err := q.send("a new cluster")
		return err
	})
	if err := (&killClient{poller: q}).pollUntil("a new cluster", func() {}); err != nil {
		t.Fatal(err)
	}
}

// retry tries until there is no error.
func (all *runningCores) retry(what string, try func() error) {
	all.t.Helper()
	for end := time.Now().Add(binaryTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			all.t.Fatalf("%s: %v", what, err)
		}
	}
}

// leader returns the core that says it is the leader, as asked at another one.
func (all *runningCores) leader(ask *runningCore) (leader *runningCore) {
	all.t.Helper()
	all.retry("find the leader", func() error {
		out, _ := statusLines(ask.data)
		for _, line := range strings.Split(out, "\n") {
			for _, c := range all.list {
				if strings.Contains(line, "leader=true") && strings.Contains(line, " node="+c.name+" ") {
					leader = c
					return nil
				}
			}
		}
		return fmt.Errorf("no leader in %s", out)
	})
	return leader
}

// other returns a core that is not the given one.
func (all *runningCores) other(c *runningCore) *runningCore {
	for _, x := range all.list {
		if x != c {
			return x
		}
	}
	return nil
}

// The operator can move the leadership and remove a core, at any node.
func TestClusterMembers(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	leader := all.leader(all.list[2])
	if out, code := runParley("cluster", "move-leader", "--data", all.list[1].data); code != 0 {
		t.Fatal(out)
	}
	all.retry("move the leader", func() error {
		if all.leader(all.list[0]) == leader {
			return fmt.Errorf("%s is still the leader", leader.name)
		}
		return nil
	})
	ann := demoAccount(t, "http://"+all.list[0].listen, "ann@example.org")
	all.retry("send", func() error {
		_, err := ann.send("moved")
		return err
	})
	if out, code := runParley("cluster", "remove", "c", "--data", all.list[0].data); code != 0 {
		t.Fatal(out)
	}
	all.list[2].program.kill()
	all.retry("send without the removed core", func() error {
		_, err := ann.send("removed")
		return err
	})
	out, _ := statusLines(all.list[0].data)
	if strings.Contains(out, "node=c ") || strings.Count(out, "voter=true") != 2 {
		t.Errorf("after the removal of c: %s", out)
	}
	// Only one core with a vote would remain.
	if out, code := runParley("cluster", "remove", "b", "--data", all.list[0].data); code == 0 ||
		!strings.Contains(out, "only one core has a vote") {
		t.Errorf("the removal of the second last core without --yes: code %d: %s", code, out)
	}
	if out := mustStatusLines(t, all.list[0].data); strings.Count(out, "voter=true") != 2 {
		t.Errorf("after the refused removal: %s", out)
	}
	// A command on the directory of a core that is not running is refused with a reason.
	if out, code := runParley("realm", "create", "--data", all.list[2].data, "--realm", "x", "--name",
		"X"); code == 0 || !strings.Contains(out, "is a core of a cluster: start it") {
		t.Errorf("a command on a stopped core changed it: %s", out)
	}
}

// A leader that is removed lets another core lead first, so no election is needed: by a command at its own machine, and
// at another one. The last core is not removed.
func TestClusterRemoveLeader(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	remove := func(old, at *runningCore) {
		t.Helper()
		if out, code := runParley("cluster", "remove", old.name, "--yes", "--data", at.data); code != 0 {
			t.Fatalf("code %d: %s", code, out)
		}
		if !strings.Contains(old.program.output(), "the leadership was moved to another core") {
			t.Error("the leader was removed while it led")
		}
		all.list = slices.DeleteFunc(all.list, func(c *runningCore) bool { return c == old })
	}
	first := all.leader(all.list[1])
	remove(first, first)
	second := all.leader(all.list[0])
	remove(second, all.other(second))
	last := all.list[0]
	ann := demoAccount(t, "http://"+last.listen, "ann@example.org")
	if _, err := ann.send("without the old leaders"); err != nil {
		t.Error(err)
	}
	if out, _ := statusLines(last.data); strings.Count(out, "voter=true") != 1 {
		t.Errorf("after the removal of two cores: %s", out)
	}
	out, code := runParley("cluster", "remove", last.name, "--data", last.data)
	if code == 0 || !strings.Contains(out, "the only core with a vote") {
		t.Errorf("the removal of the last core: code %d: %s", code, out)
	}
}

// Clients of an edge notice nothing but a pause when the leader is killed: the edge follows the new leader.
func TestClusterEdgeFollowsNewLeader(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	token, code := runParley("cluster", "token", "--data", all.list[0].data, "--role", "edge")
	if code != 0 {
		t.Fatal(token)
	}
	edge := startProgram(t, parleyCommand("serve", "--data", filepath.Join(t.TempDir(), "edge"), "--node", "edge",
		"--listen", freeAddress(t), "--peer-listen", freeAddress(t), "--join", strings.TrimSpace(token)))
	at := edge.serving()
	ann := demoAccount(t, at, "ann@example.org")
	q, err := ann.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan error, 1)
	go func() { received <- (&killClient{poller: q}).pollUntil("the end", func() {}) }()
	var want []string
	send := func(text string) {
		began := time.Now()
		if _, err := ann.send(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		t.Logf("%s was acknowledged after %v", text, time.Since(began).Round(time.Millisecond))
		want = append(want, text)
	}
	file := ann.uploadText(t, "notes.txt", "the notes")
	expectFile := func(want int) {
		t.Helper()
		r, err := http.NewRequest("GET", at+file, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(ann.email, ann.key)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("the file is answered %d instead of %d", a.StatusCode, want)
		}
	}
	expectFile(200)
	for i := range 3 {
		send(fmt.Sprint("before ", i))
		leader := all.leader(all.list[(i+1)%3])
		leader.program.kill()
		send(fmt.Sprint("after ", i)) // the edge sends it again to the new leader
		if i == 0 {
			expectFile(503) // the connection to the leader of before is not used again, and that core has the file
		}
		leader.start(t)
		leader.program.serving()
	}
	send("the end")
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	if strings.Join(q.texts, ", ") != strings.Join(want, ", ") {
		t.Errorf("got %q, want %q", q.texts, want)
	}
}

// TestClusterStopsInTurn stops the leader, and at once the core to which the leadership went, as when all cores are
// restarted one after the other: the second one moves the leadership to the third, not back to the first.
func TestClusterStopsInTurn(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	first := all.leader(all.list[0])
	first.program.stop()
	second := all.leader(all.other(first))
	second.program.stop()
	if log := second.program.output(); !strings.Contains(log, "the leadership was moved to another core") {
		t.Errorf("core %s stopped as the leader:\n%s", second.name, log)
	}
}

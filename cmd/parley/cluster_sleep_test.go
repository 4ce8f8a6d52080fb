package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sleepTimeout is how long a new organization may take to leave memory: it stays while it has outbox jobs, and after
// that the leader tries again once a minute.
const sleepTimeout = 4 * time.Minute

// asleep waits until no core has the organization in memory.
func (all *runningCores) asleep() {
	all.t.Helper()
	var err error
	for end := time.Now().Add(sleepTimeout); time.Now().Before(end); {
		for _, c := range all.list {
			if err = all.status(c, func(line string) bool {
				return strings.Contains(line, " realms=0 ") && strings.Contains(line, " asleep=1 ")
			}); err != nil {
				break
			}
		}
		if err == nil {
			return
		}
	}
	all.t.Fatalf("the organization stays in memory: %v", err)
}

// An organization whose client has polled a core that does not lead leaves the memory of all cores. It can be backed up
// then. After the leader was killed, the event queue goes on under its id at another core, and no message is lost.
func TestClusterSleeps(t *testing.T) {
	if os.Getenv("SLEEPERS") == "" {
		t.Skip("takes several minutes: make sleep-cluster")
	}
	dir := t.TempDir()
	all := startCluster(t, newCores(t, dir, []string{"a", "b", "c"}, "--sleep-after", "1s", "--demo-content=false")...)
	leader := all.leader(all.list[0])
	follower := all.other(leader)
	ann := demoAccount(t, "http://"+follower.listen, "ann@example.org")
	all.retry("the core hosts queues", func() error {
		if _, err := ann.newPoller(); err != nil {
			return err
		}
		return all.status(follower, func(line string) bool { return !strings.Contains(line, " queues=0 ") })
	})
	q, err := ann.call("POST", "register", url.Values{"event_types": {`["message"]`}})
	if err != nil {
		t.Fatal(err)
	}
	last, got := q["last_event_id"], []string{}
	poll := func(text string) {
		t.Helper()
		all.retry("the event of "+text, func() error {
			a, err := ann.call("GET", "events", url.Values{"queue_id": {fmt.Sprint(q["queue_id"])},
				"last_event_id": {fmt.Sprintf("%.0f", last)}, "dont_block": {"true"}})
			if err != nil {
				if strings.Contains(err.Error(), "BAD_EVENT_QUEUE_ID") {
					t.Fatal(err)
				}
				return err
			}
			for _, x := range a["events"].([]any) {
				e := x.(map[string]any)
				last = e["id"]
				if m, is := e["message"].(map[string]any); is {
					got = append(got, strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(m["content"]), "<p>"), "</p>"))
				}
			}
			if !slices.Contains(got, text) {
				return fmt.Errorf("the events are of %q", got)
			}
			return nil
		})
	}
	send := func(text string) {
		t.Helper()
		all.retry("send", func() error { _, err := ann.send(text); return err })
	}
	send("before")
	poll("before")
	all.asleep()
	backup := filepath.Join(dir, "backup")
	for _, args := range [][]string{{"backup", backup, "--data", follower.data}, {"verify", backup},
		{"realm", "list", "--data", follower.data}} {
		if out, code := runParley(args...); code != 0 {
			t.Fatal(out)
		}
	}
	all.asleep()
	leader.program.kill()
	next := all.leader(follower)
	if err := all.status(next, func(line string) bool { return strings.Contains(line, " realms=0 ") }); err != nil {
		t.Errorf("a change of the leader wakes the organization: %v", err)
	}
	ann.url = "http://" + next.listen
	send("after the kill")
	poll("after the kill")
	leader.start(t)
	leader.program.serving()
	ann.url = "http://" + all.other(all.leader(next)).listen
	send("the end")
	poll("the end")
	if want := []string{"before", "after the kill", "the end"}; !slices.Equal(got, want) {
		t.Errorf("the events are of %q, want %q", got, want)
	}
	all.expectEqual()
}

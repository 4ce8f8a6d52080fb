package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestClusterClocks has cores whose clocks differ by an hour in both directions, and lets each of them lead. No event
// queue ends, at whichever core its client polls, messages that are scheduled are sent once, and the states are equal.
// CLOCKS=all is the long form, in which messages also become due only by the clock of a later leader. It also has
// clocks that differ so little that cores keep event queues while they do not lead.
func TestClusterClocks(t *testing.T) {
	// The first letter of a step is the leader. A message with "later" is due when b leads again.
	if os.Getenv("CLOCKS") == "all" {
		steps := []string{"a", "b later", "c", "a", "c", "b"}
		t.Run("4 s", func(t *testing.T) { testClocks(t, 4*time.Second, steps) })
		t.Run("1 h", func(t *testing.T) { testClocks(t, time.Hour, steps) })
		return
	}
	testClocks(t, time.Hour, []string{"b"}) // an hour ahead, then back to a
}

// testClocks lets cores lead one after the other. The clock of b is ahead by a time, that of c behind.
func testClocks(t *testing.T, differ time.Duration, steps []string) {
	clocks := map[string]time.Duration{"a": 0, "b": differ, "c": -differ}
	list := newCores(t, t.TempDir(), []string{"a", "b", "c"})
	for _, c := range list {
		c.run = func(cmd *exec.Cmd) *program {
			cmd.Env = append(cmd.Env, clockAhead+"="+clocks[c.name].String())
			return startProgram(t, cmd)
		}
	}
	all := startCluster(t, list...)
	ann := demoAccount(t, "http://"+list[0].listen, "ann@example.org")
	channel := ann.must(t, "GET", "get_stream_id", url.Values{"stream": {"general"}})["stream_id"]
	if differ < time.Minute {
		all.waitUntilQueuesAreKept(ann)
	}
	var polled, idle []*killClient // two clients of each core
	for _, c := range list {
		for _, group := range []*[]*killClient{&polled, &idle} {
			from := *ann
			from.url = "http://" + c.listen
			q, err := from.newPoller()
			if err != nil {
				t.Fatal(err)
			}
			*group = append(*group, &killClient{poller: q, urls: []string{q.url}})
		}
	}
	var want []string
	for i, step := range steps {
		name := step[:1]
		all.moveLeader(name, ann)
		text := fmt.Sprintf("scheduled %d by %s", i, name)
		all.retry("schedule a message", func() error {
			_, err := ann.call("POST", "scheduled_messages", url.Values{"type": {"channel"},
				"to": {fmt.Sprint(channel)}, "topic": {"clocks"}, "content": {text},
				"scheduled_delivery_timestamp": {fmt.Sprint(time.Now().Add(clocks[name] + time.Second).Unix())}})
			return err
		})
		want = append(want, text)
		if strings.HasSuffix(step, "later") {
			continue
		}
		for _, p := range polled {
			if err := p.pollUntil(text, func() {}); err != nil {
				t.Fatalf("%s leads, a client of %s: %v", name, p.url, err)
			}
		}
	}
	all.moveLeader("a", ann)
	if _, err := ann.send("the end"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	for _, p := range append(polled, idle...) {
		if err := p.pollUntil("the end", func() {}); err != nil {
			t.Errorf("a queue at %s has ended: %v", p.url, err)
		}
		got := slices.DeleteFunc(p.texts, func(s string) bool { return !strings.HasPrefix(s, "sched") })
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("scheduled messages that arrived at %s: %q, want each of %q once", p.url, got, want)
		}
	}
	all.expectEqual()
}

// moveLeader moves the leadership until a core has it. The leader gives it to the core that has the newest entries, so
// the third one does not run meanwhile.
func (all *runningCores) moveLeader(name string, user *account) {
	all.t.Helper()
	all.retry("make "+name+" the leader", func() error {
		leader := all.leader(all.list[0])
		if leader.name == name {
			return nil
		}
		third := all.list[slices.IndexFunc(all.list, func(c *runningCore) bool {
			return c != leader && c.name != name
		})]
		third.program.kill()
		from := *user
		from.url = "http://" + leader.listen
		_, err := from.callWith(&http.Client{Timeout: 5 * time.Second}, "POST", "messages", url.Values{
			"type": {"stream"}, "to": {"general"}, "topic": {"moving"}, "content": {"a newer entry"}})
		out, code := runParley("cluster", "move-leader", "--data", leader.data)
		if code != 0 {
			err = errors.Join(err, errors.New(out))
		}
		third.start(all.t)
		third.program.serving()
		return errors.Join(err, fmt.Errorf("%s leads", leader.name))
	})
}

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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

// TestClusterClockSet sets the clock of a core that does not lead, that of the leader and that of an edge, by an hour
// and back, while clients poll all cores. No event queue ends, each client receives every message once, messages that
// are scheduled are sent once, and all nodes answer by the clock of the leader.
func TestClusterClockSet(t *testing.T) {
	if os.Getenv("CLOCKS") != "all" {
		t.Skip("takes half a minute: make clocks-cluster")
	}
	files := t.TempDir()
	setClock := func(node string, ahead time.Duration) {
		if err := os.WriteFile(filepath.Join(files, node), []byte(ahead.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(node string, cmd *exec.Cmd) *program {
		cmd.Env = append(cmd.Env, clockFile+"="+filepath.Join(files, node))
		return startProgram(t, cmd)
	}
	list := newCores(t, t.TempDir(), []string{"a", "b", "c"})
	for _, c := range list {
		c.run = func(cmd *exec.Cmd) *program { return run(c.name, cmd) }
	}
	all := startCluster(t, list...)
	edgeProgram := run("edge", parleyCommand("serve", "--data", filepath.Join(t.TempDir(), "edge"), "--node", "edge",
		"--listen", freeAddress(t), "--peer-listen", freeAddress(t), "--join",
		strings.TrimSpace(mustRun(t, "cluster", "token", "--data", list[0].data, "--role", "edge"))))
	edge := edgeProgram.serving()
	leader := all.leader(list[0])
	follower := all.other(leader)
	ann := demoAccount(t, "http://"+leader.listen, "ann@example.org")
	polls := startPolls(t, all, ann)
	var want []string
	for _, x := range []struct {
		core  *runningCore
		ahead time.Duration
	}{
		{follower, time.Hour}, {follower, 0}, {follower, -time.Hour}, {follower, 0},
		{leader, time.Hour}, {leader, 0}, {leader, -time.Hour}, {leader, 0},
	} {
		setClock(x.core.name, x.ahead)
		for _, c := range list {
			if c != leader && (x.core == leader || x.core == c) {
				all.retry(fmt.Sprintf("%s at %v: queues of %s", x.core.name, x.ahead, c.name), func() error {
					return all.status(c, func(line string) bool {
						return strings.Contains(line, " queues=0 ") == (x.ahead != 0)
					})
				})
			}
		}
		leaderAhead := x.ahead
		if x.core != leader {
			leaderAhead = 0
		}
		text := fmt.Sprintf("scheduled %d", len(want))
		all.expectScheduled(ann, text, leaderAhead)
		want = append(want, text)
		for _, node := range append(all.urls(), edge) {
			all.expectClock(ann, node, leaderAhead)
		}
		t.Logf("%s at %v: received after %v", x.core.name, x.ahead,
			polls.expectSoon("the clock was set").Round(time.Millisecond))
	}
	for _, ahead := range []time.Duration{time.Hour, 0} {
		setClock("edge", ahead)
		time.Sleep(50 * time.Millisecond) // until the edge has read its clock
		all.expectClock(ann, edge, 0)
	}
	polls.end(0)
	if got := ann.textsOfTopic(t, "clocks"); !slices.Equal(got, want) {
		t.Errorf("scheduled messages: %q, want %q", got, want)
	}
	edgeProgram.stop()
	all.expectEqual()
}

// expectScheduled schedules a message, which becomes due in a second by the clock of the leader, and waits until it is
// sent. ahead is how far that clock is ahead.
func (all *runningCores) expectScheduled(user *account, text string, ahead time.Duration) {
	all.t.Helper()
	channel := user.must(all.t, "GET", "get_stream_id", url.Values{"stream": {"general"}})["stream_id"]
	all.retry("schedule a message", func() error {
		_, err := user.call("POST", "scheduled_messages", url.Values{"type": {"channel"},
			"to": {fmt.Sprint(channel)}, "topic": {"clocks"}, "content": {text},
			"scheduled_delivery_timestamp": {fmt.Sprint(time.Now().Add(ahead + time.Second).Unix())}})
		return err
	})
	all.retry("send the scheduled message", func() error {
		if got := user.textsOfTopic(all.t, "clocks"); !slices.Contains(got, text) {
			return fmt.Errorf("only %q", got)
		}
		return nil
	})
}

// textsOfTopic returns the messages of a topic of #general.
func (a *account) textsOfTopic(t *testing.T, topic string) (list []string) {
	t.Helper()
	narrow := `[{"operator":"channel","operand":"general"},{"operator":"topic","operand":"` + topic + `"}]`
	page := a.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"100"}, "num_after": {"0"},
		"apply_markdown": {"false"}, "narrow": {narrow}})
	for _, m := range page["messages"].([]any) {
		list = append(list, m.(map[string]any)["content"].(string))
	}
	return list
}

// expectClock waits until a node answers registrations by the clock of the leader. ahead is how far that clock is
// ahead.
func (all *runningCores) expectClock(user *account, node string, ahead time.Duration) {
	all.t.Helper()
	from := *user
	from.url = node
	all.retry("use the clock of the leader at "+node, func() error {
		a, err := from.call("POST", "register",
			url.Values{"fetch_event_types": {`["presence"]`}, "event_types": {`["presence"]`}})
		if err != nil {
			return err
		}
		at := time.Unix(int64(a["server_timestamp"].(float64)), 0)
		if d := at.Sub(time.Now().Add(ahead)); d.Abs() > 5*time.Second {
			return fmt.Errorf("it differs by %v", d)
		}
		return nil
	})
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

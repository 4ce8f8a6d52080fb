package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// A core that does not lead keeps the event queues of its clients itself. They go on under their ids when it becomes
// the leader and when it is not the leader any more, when the leader is killed, and when the core itself is killed and
// its clients poll another one. A revoked key ends a poll that waits there.
func TestClusterFollowersKeepQueues(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	leader := all.leader(all.list[0])
	follower := all.other(leader)
	at := "http://" + follower.listen
	ann := demoAccount(t, at, "ann@example.org")
	all.retry("the core keeps queues", func() error {
		if _, err := ann.newPoller(); err != nil { // until it has begun to, the leader keeps them
			return err
		}
		return all.status(follower, func(line string) bool { return !strings.Contains(line, " queues=0 ") })
	})
	moves, stays := newFollowClient(t, all, at, "bo"), newFollowClient(t, all, at, "cy")
	stays.urls = []string{at}
	ended := make(chan error, 2)
	for _, c := range []*killClient{moves, stays} {
		go func() { ended <- c.pollUntil("the end", func() {}) }()
	}
	all.retry("polls wait at the core", func() error {
		return all.status(follower, func(line string) bool { return strings.Contains(line, " polls=2 ") })
	})
	if err := all.status(leader, func(line string) bool { return strings.Contains(line, " polls=0 ") }); err != nil {
		t.Errorf("polls are forwarded: %v", err)
	}
	all.expectRevokedKeyEndsPoll(follower, leader)
	all.expectTyping(follower, leader)
	var want []string
	tries := 0
	send := func(text string) {
		t.Helper()
		all.retry("send", func() error {
			from := *ann
			from.url = "http://" + all.list[tries%3].listen
			tries++
			_, err := from.callWith(&http.Client{Timeout: 5 * time.Second}, "POST", "messages", url.Values{
				"type": {"stream"}, "to": {"general"}, "topic": {"follow"}, "content": {text}})
			return err
		})
		want = append(want, text)
	}
	for i := range 3 {
		send(fmt.Sprint("first ", i))
	}
	leader.program.kill()
	send("the leader is killed")
	leader.start(t)
	leader.program.serving()
	send("it runs again")
	for i := range 2 {
		runParley("cluster", "move-leader", "--data", all.leader(follower).data)
		send(fmt.Sprint("moved ", i))
	}
	follower.program.kill()
	send("the follower is killed")
	follower.start(t)
	follower.program.serving()
	send("the end")
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for _, c := range []*killClient{moves, stays} {
		got := slices.Compact(slices.Clone(c.texts)) // a message whose answer was lost is sent again
		if !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("%s received %q, want %q", c.email, got, want)
		}
	}
	all.expectEqual()
}

// expectRevokedKeyEndsPoll requires that a poll which waits at a core ends when its key is replaced at the leader.
func (all *runningCores) expectRevokedKeyEndsPoll(follower, leader *runningCore) {
	all.t.Helper()
	di := newFollowClient(all.t, all, "http://"+follower.listen, "di")
	ended := make(chan error, 1)
	go func() { ended <- di.poller.pollUntil("never") }()
	all.retry("the poll waits", func() error {
		return all.status(follower, func(line string) bool { return strings.Contains(line, " polls=3 ") })
	})
	from := *di.account
	from.url = "http://" + leader.listen
	if _, err := from.call("POST", "users/me/api_key/regenerate", nil); err != nil {
		all.t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "Invalid API key") {
			all.t.Errorf("the poll with a revoked key ended with %v", err)
		}
	case <-time.After(binaryTimeout):
		all.t.Error("a poll with a revoked key goes on")
	}
}

// expectTyping requires that an event without a fact, of a user at the leader, reaches a client of another core.
func (all *runningCores) expectTyping(follower, leader *runningCore) {
	all.t.Helper()
	ed := demoAccount(all.t, "http://"+follower.listen, "ed@example.org")
	me, err := ed.call("GET", "users/me", nil)
	if err != nil {
		all.t.Fatal(err)
	}
	q, err := ed.call("POST", "register", url.Values{"event_types": {`["typing"]`}})
	if err != nil {
		all.t.Fatal(err)
	}
	fay := demoAccount(all.t, "http://"+leader.listen, "fay@example.org")
	all.retry("the event of typing", func() error {
		if _, err := fay.call("POST", "typing", url.Values{"type": {"direct"}, "op": {"start"},
			"to": {fmt.Sprintf("[%v]", me["user_id"])}}); err != nil {
			return err
		}
		a, err := ed.call("GET", "events", url.Values{"queue_id": {q["queue_id"].(string)}, "last_event_id": {"-1"},
			"dont_block": {"true"}})
		if err == nil && !strings.Contains(fmt.Sprint(a["events"]), "type:typing") {
			err = fmt.Errorf("the events are %v", a["events"])
		}
		return err
	})
}

// newFollowClient registers a client of a core.
func newFollowClient(t *testing.T, all *runningCores, at, name string) *killClient {
	t.Helper()
	p, err := demoAccount(t, at, name+"@example.org").newPoller()
	if err != nil {
		t.Fatal(err)
	}
	return &killClient{poller: p, urls: all.urls()}
}

// status returns an error unless the line of a core in parley cluster status has a property.
func (all *runningCores) status(c *runningCore, has func(line string) bool) error {
	out, _ := statusLines(c.data)
	for _, line := range strings.Split(out, "\n") {
		if strings.Contains(line, " node="+c.name+" ") && has(line) {
			return nil
		}
	}
	return fmt.Errorf("not so: %s", out)
}

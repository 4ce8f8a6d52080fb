package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/wire/httpd"
)

// clusterPolls has two clients at each core, which poll while there are faults: one stays at its core, and the other
// one polls the next core when it gets no answer or 503. Each client has one event queue from the beginning to the end.
// check requires that it has received every message once.
type clusterPolls struct {
	t       *testing.T
	user    *account
	nodes   []string // URLs
	clients []*clusterPoll
	polling sync.WaitGroup
	stop    chan struct{}

	mu sync.Mutex
}

// clusterPoll is one client.
type clusterPoll struct {
	*poller
	node     int // its first core
	stays    bool
	from     int64         // id of the last message before its queue was opened
	patience time.Duration // after which it polls again

	// guarded by clusterPolls.mu
	ids        []int64 // of the messages
	busy       int     // answers that were 503
	heartbeats int
	longest    time.Duration // until an answer, without the polls that waited for an event
	failed     error
}

const (
	// movesAfter is how long a client that can change to another core waits for an answer: the messages of the tests
	// are more frequent.
	movesAfter = 2 * time.Second
	// maxPollAnswer is how long a core may take to say that it cannot answer a poll. It takes a second to see that its
	// link is broken.
	maxPollAnswer = httpd.MaxForwardWait + 2*time.Second
	// maxHeartbeat is how long a poll may wait without an event, a second longer than the longest time between
	// heartbeats and the time between two looks for them.
	maxHeartbeat = 60 * time.Second
)

// startPolls waits until each core keeps the queues of its own clients, and starts the clients.
func startPolls(t *testing.T, all *runningCores, user *account) *clusterPolls {
	t.Helper()
	all.waitUntilQueuesAreKept(user)
	return startPollsAnywhere(t, all, user)
}

// startPollsAnywhere starts the clients, whichever core keeps their queues.
func startPollsAnywhere(t *testing.T, all *runningCores, user *account) *clusterPolls {
	t.Helper()
	p := &clusterPolls{t: t, user: user, nodes: all.urls(), stop: make(chan struct{})}
	for node, at := range p.nodes {
		for _, stays := range []bool{true, false} {
			from := *user
			from.url = at
			a := from.must(t, "POST", "register", url.Values{"event_types": {`["message"]`}})
			number := func(name string) int64 { return int64(a[name].(float64)) }
			c := &clusterPoll{node: node, stays: stays, patience: movesAfter, from: number("max_message_id"),
				poller: &poller{account: &from, queue: a["queue_id"].(string), last: number("last_event_id")}}
			if stays {
				c.patience = maxHeartbeat + maxPollAnswer
			}
			p.clients = append(p.clients, c)
			p.polling.Go(func() { p.poll(c) })
		}
	}
	return p
}

// waitUntilQueuesAreKept waits until each core keeps the event queues of its clients.
func (all *runningCores) waitUntilQueuesAreKept(user *account) {
	all.t.Helper()
	for _, c := range all.list {
		from := *user
		from.url = "http://" + c.listen
		all.retry("keep queues at "+c.name, func() error {
			if _, err := from.newPoller(); err != nil { // until it has begun to, the leader keeps them
				return err
			}
			return all.status(c, func(line string) bool { return !strings.Contains(line, " queues=0 ") })
		})
	}
}

// send sends a message at any core and returns its id.
func (p *clusterPolls) send(text string, within time.Duration) (id int64) {
	p.t.Helper()
	end := time.Now().Add(within)
	for i := 0; ; i++ {
		from := *p.user
		from.url = p.nodes[i%len(p.nodes)]
		a, err := from.callWith(&http.Client{Timeout: movesAfter}, "POST", "messages", url.Values{"type": {"stream"},
			"to": {"general"}, "topic": {"polls"}, "content": {text}})
		if err == nil {
			return int64(a["id"].(float64))
		}
		if time.Now().After(end) {
			p.t.Fatalf("no core accepts %q: %v", text, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// poll polls until the end.
func (p *clusterPolls) poll(c *clusterPoll) {
	client := &http.Client{Timeout: c.patience, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		select {
		case <-p.stop:
			return
		default:
		}
		began := time.Now()
		a, err := c.callWith(client, "GET", "events",
			url.Values{"queue_id": {c.queue}, "last_event_id": {fmt.Sprint(c.last)}})
		took := time.Since(began)
		if err == nil {
			err = p.receive(c, a)
		} else if a == nil || isBusy(err) {
			p.mu.Lock()
			if a != nil {
				c.busy++
				c.longest = max(c.longest, took)
			}
			p.mu.Unlock()
			err = nil
			if !c.stays {
				c.url = p.nodes[(slices.Index(p.nodes, c.url)+1)%len(p.nodes)]
				client.CloseIdleConnections()
			}
			time.Sleep(20 * time.Millisecond)
		}
		if err != nil {
			p.mu.Lock()
			c.failed = err
			p.mu.Unlock()
			return
		}
	}
}

// receive takes an answer.
func (p *clusterPolls) receive(c *clusterPoll, a map[string]any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range a["events"].([]any) {
		e := x.(map[string]any)
		id := int64(e["id"].(float64))
		if id <= c.last {
			return fmt.Errorf("event %d came after event %d was acknowledged", id, c.last)
		}
		switch c.last = id; e["type"] {
		case "heartbeat":
			c.heartbeats++
		case "message":
			c.ids = append(c.ids, int64(e["message"].(map[string]any)["id"].(float64)))
		}
	}
	return nil
}

// String names a client.
func (c *clusterPoll) String() string {
	if c.stays {
		return fmt.Sprintf("the client that stays at core %d", c.node)
	}
	return fmt.Sprintf("the client that was at core %d first", c.node)
}

// waitFor waits until all clients have received a message, and returns how long the last one took.
func (p *clusterPolls) waitFor(id int64) time.Duration {
	p.t.Helper()
	began := time.Now()
	for {
		var missing []string
		p.mu.Lock()
		for _, c := range p.clients {
			if c.failed != nil {
				p.t.Errorf("%v: %v", c, c.failed)
			} else if len(c.ids) == 0 || c.ids[len(c.ids)-1] < id {
				missing = append(missing, c.String())
			}
		}
		p.mu.Unlock()
		if p.t.Failed() || len(missing) == 0 {
			return time.Since(began)
		}
		if time.Since(began) > binaryTimeout {
			p.t.Fatalf("not received after %v by %s", binaryTimeout, strings.Join(missing, ", "))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// expectMoved waits until the client that does not stay at a core has got a new message at another one.
func (p *clusterPolls) expectMoved(node int) time.Duration {
	p.t.Helper()
	began := time.Now()
	id := p.send("while a core is cut off", maxKillGap)
	eventually(p.t, "the client polls another core", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return slices.ContainsFunc(p.clients, func(c *clusterPoll) bool {
			return c.node == node && !c.stays && (c.failed != nil || len(c.ids) > 0 && c.ids[len(c.ids)-1] >= id)
		})
	})
	return time.Since(began)
}

// expectSoon requires that every client receives a new message within the time that a fault may take after its end.
func (p *clusterPolls) expectSoon(after string) time.Duration {
	p.t.Helper()
	took := p.waitFor(p.send("after "+after, maxKillGap))
	if took > maxKillGap {
		p.t.Errorf("%s: the last client received a new message %v after it was sent", after, took)
	}
	return took
}

// answersAt returns how often the client that stays at a core got 503 and heartbeats until now.
func (p *clusterPolls) answersAt(node int) (busy, heartbeats int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		if c.stays && c.node == node {
			return c.busy, c.heartbeats
		}
	}
	return 0, 0
}

// end ends the clients and requires that each has received every message once and in order. stopped is how long a core
// has answered nothing because it was stopped.
func (p *clusterPolls) end(stopped time.Duration) {
	p.t.Helper()
	last := p.send("the end of the polls", binaryTimeout)
	p.waitFor(last)
	close(p.stop)
	p.send("wakes the polls that wait", binaryTimeout)
	p.polling.Wait()
	for _, c := range p.clients {
		got, stored := c.ids, p.stored(c.from, last)
		if i := slices.Index(got, last); i >= 0 {
			got = got[:i+1]
		}
		if !slices.Equal(got, stored) {
			p.t.Errorf("%v received %d messages, %d are stored: %v", c, len(got), len(stored),
				firstDifference(got, stored))
		}
		if c.longest > maxPollAnswer+stopped {
			p.t.Errorf("%v waited %v until 503", c, c.longest)
		}
		p.t.Logf("%v: %d messages, %d times 503 after %v at most, %d heartbeats", c, len(got), c.busy,
			c.longest.Round(time.Millisecond), c.heartbeats)
	}
}

// firstDifference describes where two lists differ.
func firstDifference(got, want []int64) string {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			return fmt.Sprintf("number %d: received %v, stored %v", i, got[min(i, len(got)):min(i+3, len(got))],
				want[min(i, len(want)):min(i+3, len(want))])
		}
	}
	return ""
}

// stored returns the ids of the messages after one, up to the last one.
func (p *clusterPolls) stored(anchor, last int64) (ids []int64) {
	p.t.Helper()
	for {
		a := p.user.must(p.t, "GET", "messages", url.Values{"anchor": {strconv.FormatInt(anchor, 10)},
			"num_before": {"0"}, "num_after": {"1000"}, "include_anchor": {"false"}})
		for _, x := range a["messages"].([]any) {
			if anchor = int64(x.(map[string]any)["id"].(float64)); anchor <= last {
				ids = append(ids, anchor)
			}
		}
		if a["found_newest"] == true {
			return ids
		}
	}
}

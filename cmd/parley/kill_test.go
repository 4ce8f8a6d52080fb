package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestKill runs the real program under load and kills it again and again at random moments. Its clients only retry.
// Every acknowledged message must arrive exactly once, in order, at its recipients, on the queues that they registered
// at the beginning. KILLS, CLIENTS and SEED make the test longer or repeat it: make kill.
func TestKill(t *testing.T) {
	run := newKillRun(t, "KILLS", 5, 20)
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	l := newKillRecord(t, run, at)
	l.startSending()
	for i := range run.times {
		if i > 0 && i%100 == 0 {
			t.Logf("%d kills", i)
		}
		l.waitForMoment(20*time.Millisecond, 200*time.Millisecond)
		p.kill()
		p = startProgram(t, parleyCommand("serve", "--data", data, "--listen", strings.TrimPrefix(at, "http://"),
			"--demo"))
		p.serving()
	}
	l.end()
	if out, code := func() (string, int) { p.stop(); return runParley("log", "check", data) }(); code != 0 {
		t.Errorf("after %d kills: %s", run.times, out)
	}
}

const (
	killSenders = 4
	// maxLag is how many acknowledged messages a client may be behind before sends and kills wait for it. Otherwise a
	// machine that is slower than the load would pile up messages for the end of the test.
	maxLag = 200
)

// After kill -9, users who were just connected do not seem to be offline. The first presence of a server is stored
// within 5 s, and marked a second later. A busy machine may take longer, but no machine loses more than the last 30 s.
func TestKillKeepsPresence(t *testing.T) {
	before, after := presenceAfterKill(t, 8*time.Second)
	if before != after {
		t.Logf("after 8 s: %s instead of %s", after, before)
		before, after = presenceAfterKill(t, 32*time.Second)
	}
	if before != after {
		t.Errorf("presence after kill -9: %s instead of %s", after, before)
	}
}

// presenceAfterKill returns the presence of a user before a kill, and after it. The kill follows the last report of the
// user after the given time.
func presenceAfterKill(t *testing.T, wait time.Duration) (before, after string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	p := demo(t, dir)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	presence := func() string {
		return fmt.Sprint(ann.must(t, "GET", "users/ann@example.org/presence", nil)["presence"])
	}
	ann.must(t, "POST", "users/me/presence", url.Values{"status": {"active"}})
	before = presence()
	time.Sleep(wait)
	p.kill()
	ann.url = demo(t, dir).serving()
	return before, presence()
}

func environmentNumber(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// killRun is how often a test kills servers or breaks their links, with how many clients, and the random numbers that
// decide when and which.
type killRun struct {
	*rand.Rand
	times, clients int
	seed           uint64
}

// newKillRun reads a run from the environment: variable is the name of the one that has the number of times.
func newKillRun(t *testing.T, variable string, times, clients int) *killRun {
	r := &killRun{times: environmentNumber(variable, times), clients: environmentNumber("CLIENTS", clients),
		seed: uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))}
	r.Rand = rand.New(rand.NewPCG(r.seed, 1))
	t.Logf("%s=%d CLIENTS=%d SEED=%d", variable, r.times, r.clients, r.seed)
	return r
}

// sentMessage is a message that a client tried to send.
type sentMessage struct {
	text  string
	to    []string // names of the recipients
	acked int64    // its id, if the server acknowledged it
}

// killRecord is the load of a run. It contains all messages with their senders and recipients, and the messages that
// every client received.
type killRecord struct {
	t       *testing.T
	run     *killRun
	urls    []string // of the nodes
	people  map[string]*account
	ids     map[string]int64
	clients []*killClient
	polling sync.WaitGroup
	sending sync.WaitGroup
	stop    chan struct{} // closed: no sender is left
	gaps    longestGap

	mu       sync.Mutex
	received *sync.Cond // of mu: a client has received more, or has stopped
	messages map[string]*sentMessage
	newest   int64 // id of the last acknowledged message to all clients
}

// killClient is a client with one queue that outlives the server.
type killClient struct {
	*poller
	urls   []string // of the nodes that it polls, one after the other
	ids    []int64  // of the received messages, in order
	failed error

	// guarded by mu of the killRecord
	upTo int64 // id of the last received message
	done bool
}

var killPeople = []string{"olive", "ada", "mo", "ann", "bo", "cy", "di", "ed", "fay"}

// newKillRecord connects the clients of a run to the nodes of a cluster, or to the only server.
func newKillRecord(t *testing.T, run *killRun, urls ...string) *killRecord {
	l := &killRecord{t: t, run: run, urls: urls, people: map[string]*account{}, ids: map[string]int64{},
		messages: map[string]*sentMessage{}, stop: make(chan struct{})}
	l.received = sync.NewCond(&l.mu)
	for _, name := range killPeople {
		p := demoAccount(t, urls[0], name+"@example.org")
		me, err := p.call("GET", "users/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		l.people[name], l.ids[name] = p, int64(me["user_id"].(float64))
	}
	for i := range run.clients {
		person := *l.people[killPeople[i%len(killPeople)]]
		person.url = urls[i%len(urls)]
		q, err := person.newPoller()
		if err != nil {
			t.Fatal(err)
		}
		s := &killClient{poller: q, urls: urls}
		l.clients = append(l.clients, s)
		l.polling.Add(1)
		go func() {
			defer l.polling.Done()
			s.failed = s.pollUntil("the end", func() {
				l.mu.Lock()
				s.upTo = s.ids[len(s.ids)-1]
				l.mu.Unlock()
				l.received.Broadcast()
			})
			l.mu.Lock()
			s.done = true
			l.mu.Unlock()
			l.received.Broadcast()
		}()
	}
	return l
}

// startSending lets a few users send until end.
func (l *killRecord) startSending() {
	for i := range killSenders {
		random := rand.New(rand.NewPCG(l.run.seed, uint64(100+i)))
		l.sending.Go(func() { l.sendUntil(l.stop, i, random) })
	}
}

// measureGaps lets a user of the first node make changes until end, so that gaps knows when there was no answer.
func (l *killRecord) measureGaps() {
	from := demoAccount(l.t, l.urls[0], "ann@example.org")
	l.sending.Go(func() { l.gaps.measure(l.stop, from) })
}

// waitForMoment waits for a random time, and until no client is too far behind.
func (l *killRecord) waitForMoment(least, more time.Duration) {
	time.Sleep(least + time.Duration(l.run.Int64N(int64(more))))
	l.waitForClients()
}

// end stops the senders, waits until every client has everything, and checks it.
func (l *killRecord) end() {
	close(l.stop)
	l.sending.Wait()
	l.finish()
	l.check()
}

// waitForClients waits until no client is too far behind.
func (l *killRecord) waitForClients() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for slices.ContainsFunc(l.clients, func(s *killClient) bool { return !s.done && s.upTo < l.newest-maxLag }) {
		l.received.Wait()
	}
}

// pollUntil polls until it receives the last message, and calls received after each answer with messages. It polls
// again, at the next node, while the server is down.
func (s *killClient) pollUntil(word string, received func()) error {
	client := &http.Client{Timeout: binaryTimeout, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		a, err := s.callWith(client, "GET", "events",
			url.Values{"queue_id": {s.queue}, "last_event_id": {fmt.Sprint(s.last)}})
		if a != nil && err != nil && !isBusy(err) {
			return err // an answer that is not a success, such as BAD_EVENT_QUEUE_ID
		}
		if err != nil {
			time.Sleep(5 * time.Millisecond) // it is down
			s.url = s.urls[(slices.Index(s.urls, s.url)+1)%len(s.urls)]
			continue
		}
		before := len(s.ids)
		for _, x := range a["events"].([]any) {
			e := x.(map[string]any)
			id := int64(e["id"].(float64))
			if id <= s.last {
				return fmt.Errorf("event %d came after %d was acknowledged", id, s.last)
			}
			s.last = id
			if e["type"] != "message" {
				continue
			}
			m := e["message"].(map[string]any)
			s.texts, s.ids = append(s.texts, m["content"].(string)), append(s.ids, int64(m["id"].(float64)))
			if m["content"] == word {
				return nil
			}
		}
		if len(s.ids) > before {
			received()
		}
	}
}

func (l *killRecord) sendUntil(stop chan struct{}, no int, random *rand.Rand) {
	client := &http.Client{Timeout: binaryTimeout, Transport: &http.Transport{}}
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		l.waitForClients()
		from := killPeople[random.IntN(len(killPeople))]
		x := &sentMessage{text: fmt.Sprintf("%d/%d", no, i), to: killPeople}
		form := url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"kill"}, "content": {x.text}}
		switch random.IntN(4) {
		case 0:
			other := killPeople[random.IntN(len(killPeople))]
			x.to = []string{from, other}
			form = url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%d]", l.ids[other])}, "content": {x.text}}
		case 1: // the private channel of the demo
			from = killPeople[random.IntN(3)]
			x.to = killPeople[:3]
			form.Set("to", "leads")
		}
		l.mu.Lock()
		l.messages[x.text] = x
		l.mu.Unlock()
		sender := *l.people[from]
		sender.url = l.urls[random.IntN(len(l.urls))]
		a, err := sender.callWith(client, "POST", "messages", form)
		switch {
		case err == nil:
			x.acked = int64(a["id"].(float64))
			if len(x.to) == len(killPeople) {
				l.mu.Lock()
				l.newest = max(l.newest, x.acked)
				l.mu.Unlock()
			}
		case a != nil && !isBusy(err):
			l.t.Errorf("%s was refused: %v", x.text, err)
		default:
			time.Sleep(5 * time.Millisecond) // it is down; the message may have been stored or not
		}
	}
}

// isBusy reports whether a node of a cluster has answered that it has no owner of the organization. A single server is
// never so slow in these tests.
func isBusy(err error) bool { return strings.Contains(err.Error(), "SERVER_OVERLOADED") }

// finish sends the last message and waits until every client has received it.
func (l *killRecord) finish() {
	id, err := l.people["ann"].send("the end")
	if err != nil {
		l.t.Fatal(err)
	}
	l.messages["the end"] = &sentMessage{"the end", killPeople, id}
	l.polling.Wait()
}

func (l *killRecord) check() {
	acked, unknown := 0, 0
	for _, x := range l.messages {
		if x.acked != 0 {
			acked++
		} else {
			unknown++
		}
	}
	received := map[string]map[*killClient]int64{} // the message id under which each client received a text
	for i, s := range l.clients {
		who := strings.TrimSuffix(s.email, "@example.org")
		if s.failed != nil {
			l.t.Errorf("client %d of %s: %v", i, who, s.failed)
		}
		if !slices.IsSorted(s.ids) {
			l.t.Errorf("client %d of %s received messages out of order", i, who)
		}
		for k, text := range s.texts {
			x := l.messages[text]
			switch {
			case x == nil || !slices.Contains(x.to, who):
				l.t.Errorf("client %d: %s received %q, which was for other users", i, who, text)
				continue
			case received[text][s] != 0:
				l.t.Errorf("client %d of %s received %q twice", i, who, text)
			case x.acked != 0 && x.acked != s.ids[k]:
				l.t.Errorf("%q is %d to its sender and %d to %s", text, x.acked, s.ids[k], who)
			}
			if received[text] == nil {
				received[text] = map[*killClient]int64{}
			}
			received[text][s] = s.ids[k]
		}
	}
	arrived := 0
	for text, x := range l.messages {
		audience := 0
		for _, s := range l.clients {
			if slices.Contains(x.to, strings.TrimSuffix(s.email, "@example.org")) {
				audience++
			}
		}
		n := len(received[text])
		if x.acked != 0 && n != audience || n != 0 && n != audience {
			l.t.Errorf("%q (acknowledged as %d) was received by %d of %d clients", text, x.acked, n, audience)
		}
		if x.acked == 0 && n > 0 {
			arrived++
		}
	}
	l.checkHistory()
	l.t.Logf("%d messages acknowledged, %d unanswered of which %d arrived, %d clients, none lost, duplicated, "+
		"reordered or leaked", acked, unknown, arrived, len(l.clients))
}

// checkHistory compares the stored messages with the acknowledged ones.
func (l *killRecord) checkHistory() {
	stored := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(l.people)) {
		seen := map[string]int{}
		for anchor := "oldest"; ; {
			a, err := l.people[name].call("GET", "messages",
				url.Values{"anchor": {anchor}, "num_before": {"0"}, "num_after": {"1000"}, "include_anchor": {"false"},
					"apply_markdown": {"false"}})
			if err != nil {
				l.t.Fatal(err)
			}
			list := a["messages"].([]any)
			for _, x := range list {
				m := x.(map[string]any)
				seen[m["content"].(string)]++
				anchor = fmt.Sprint(int64(m["id"].(float64)))
			}
			if a["found_newest"] == true {
				break
			}
		}
		for text, n := range seen {
			if stored[text] = max(stored[text], n); n > 1 && l.messages[text] != nil {
				l.t.Errorf("%s finds %q %d times", name, text, n)
			}
		}
	}
	for text, x := range l.messages {
		if x.acked != 0 && stored[text] != 1 {
			l.t.Errorf("%q was acknowledged and is stored %d times", text, stored[text])
		}
	}
}

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/bench/swarm"
)

// runAtLevel is an environment variable with the rule level that this test binary knows when it behaves as parley: as
// an older or newer version of the program.
const runAtLevel = "PARLEY_TEST_LEVEL"

// atLevel makes a command of this test binary one of another version.
func atLevel(cmd *exec.Cmd, level uint16) *exec.Cmd {
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", runAtLevel, level))
	return cmd
}

// restart stops a core with a signal, as a service manager does, and starts it with a version of the program.
func (c *runningCore) restart(t *testing.T, level uint16) {
	t.Helper()
	c.program.cmd.Process.Signal(syscall.SIGTERM)
	if code := c.program.end(); code != 0 {
		t.Errorf("core %s ended with code %d", c.name, code)
	}
	c.startAt(t, level)
}

// startAt starts a core with a version of the program.
func (c *runningCore) startAt(t *testing.T, level uint16) {
	t.Helper()
	cmd := parleyCommand("serve", "--data", c.data, "--listen", c.listen, "--demo")
	c.program = startProgram(t, atLevel(cmd, level))
	c.program.serving()
}

// A cluster of two versions: nodes of the old and of the new version work together, and each can go back, until the
// level is raised. Then the old version stops, names the reason, and cannot join.
func TestClusterLevel(t *testing.T) {
	all := startCores(t, "a", "b", "c")
	old, next := realm.Level, realm.Level+1
	ann := demoAccount(t, all.balance(), "ann@example.org")
	q, err := ann.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	send := func(text string) {
		t.Helper()
		all.retry("send", func() error {
			_, err := ann.send(text)
			return err
		})
	}
	a, b, c := all.list[0], all.list[1], all.list[2]
	b.restart(t, next)
	send("one new")
	if out, code := runParley("cluster", "level", "--data", b.data); code == 0 {
		t.Errorf("the level was raised although old nodes run: %s", out)
	}
	b.restart(t, old)
	send("gone back")
	for _, x := range all.list {
		x.restart(t, next)
	}
	all.retry("raise the level", func() error {
		out, code := runParley("cluster", "level", "--data", a.data)
		if code == 0 && strings.Contains(out, fmt.Sprintf("level: %d\nraised: true", next)) {
			return nil
		}
		return fmt.Errorf("%s", out)
	})
	send("raised")
	c.program.cmd.Process.Signal(syscall.SIGTERM)
	c.program.end()
	late := startProgram(t, parleyCommand("serve", "--data", c.data, "--listen", c.listen, "--demo"))
	if code := late.end(); code == 0 || !strings.Contains(late.output(), "install the release of the other nodes") {
		t.Errorf("an old version at the new level ended with code %d: %s", code, late.output())
	}
	token, _ := runParley("cluster", "token", "--data", a.data, "--role", "core")
	joins := startProgram(t, parleyCommand("serve", "--data", filepath.Join(t.TempDir(), "d"), "--listen",
		freeAddress(t), "--node", "d", "--peer-listen", freeAddress(t), "--join", strings.TrimSpace(token)))
	if code := joins.end(); code == 0 || !strings.Contains(joins.output(), "install the release of the other nodes") {
		t.Errorf("an old version that joins at the new level ended with code %d: %s", code, joins.output())
	}
	c.startAt(t, next)
	send("the end")
	if err := (&killClient{poller: q}).pollUntil("the end", func() {}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(q.texts, ", "); got != "one new, gone back, raised, the end" {
		t.Errorf("received %s", got)
	}
}

// TestRollingUpgrade replaces the program of three cores, one after the other, in two ways: with parley upgrade, which
// hands the connections over, and by SIGTERM and a start. Clients use any core that accepts their connection. No
// request may fail, and no client may have to register again. POLLERS is the number of waiting polls; PREVIOUS is the
// program file to begin with, else this test binary; PROGRAM is the new one: make rolling-upgrade. Without POLLERS the
// cores are only upgraded; TestClusterLevel restarts them.
func TestRollingUpgrade(t *testing.T) {
	ways := []string{"upgrade", "restart"}
	if os.Getenv("POLLERS") == "" {
		ways = ways[:1]
	}
	for _, way := range ways {
		t.Run(way, func(t *testing.T) { testRollingUpgrade(t, way) })
	}
}

func testRollingUpgrade(t *testing.T, way string) {
	pollers := environmentNumber("POLLERS", 40)
	programs := [2]string{os.Getenv("PREVIOUS"), os.Getenv("PROGRAM")}
	for i, p := range programs {
		if p == "" {
			programs[i] = os.Args[0]
		}
	}
	all := startCoresOf(t, programs[0], "a", "b", "c")
	l := newRollingLoad(t, all, pollers)
	// A core that stops closes idle connections. A client that begins to send at that moment cannot know whether its
	// message was sent, at any server: this one sends on new connections.
	l.sendOnNew = way == "restart"
	l.sending.Go(l.send)
	eventually(t, "all clients poll and receive messages", func() bool {
		return l.sent.Load() >= 20 && l.polls.Load() >= int64(pollers)
	})
	leader := all.leader(all.list[0])
	order := slices.Clone(all.list) // the leader first: then the leadership moves most often
	slices.SortFunc(order, func(x, y *runningCore) int { return strings.Compare(isNot(x, leader), isNot(y, leader)) })
	for _, c := range order {
		began := time.Now()
		install(t, programs[1], c.file)
		switch way {
		case "upgrade":
			if out, code := runParley("upgrade", "--data", c.data); code != 0 {
				t.Fatalf("upgrade of %s: %s", c.name, out)
			}
			t.Cleanup(func() { endSuccessor(t, c.data) })
		default:
			c.program.cmd.Process.Signal(syscall.SIGTERM)
			c.program.end()
			c.start(t)
			c.program.serving()
		}
		took := time.Since(began)
		all.retry("see the core again", func() error {
			out, _ := statusLines(c.data)
			if strings.Count(out, "connected=true") != len(all.list) {
				return fmt.Errorf("status:\n%s", out)
			}
			return nil
		})
		t.Logf("core %s serves again after %v, and all cores are connected after %v; longest send until now %v", c.name,
			took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), l.longestSend())
	}
	l.finish()
}

func isNot(x, leader *runningCore) string {
	if x == leader {
		return ""
	}
	return x.name
}

// install replaces a program file.
func install(t *testing.T, program, file string) {
	t.Helper()
	if out, err := exec.Command("cp", program, file+".new").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// startCoresOf starts a cluster whose cores have program files of their own.
func startCoresOf(t *testing.T, program string, names ...string) *runningCores {
	t.Helper()
	dir := t.TempDir()
	list := newCores(t, dir, names)
	for _, c := range list {
		c.file = filepath.Join(dir, "parley-"+c.name)
		install(t, program, c.file)
	}
	return startCluster(t, list...)
}

// dial connects a client to the next core that accepts the connection, as a load balancer does.
func (all *runningCores) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	var last error
	first := int(all.next.Add(1))
	for i := range all.list {
		c, err := d.DialContext(ctx, "tcp", all.list[(first+i)%len(all.list)].listen)
		if err == nil {
			return c, nil
		}
		last = err
	}
	return nil, last
}

// rollingLoad is clients that do not retry.
type rollingLoad struct {
	t       *testing.T
	pollers []*rollingPoller
	polling sync.WaitGroup
	sending sync.WaitGroup
	stop    chan struct{}
	sent    atomic.Int64
	polls   atomic.Int64
	failed  atomic.Int64
	longest atomic.Int64 // of a send, in nanoseconds
	late    atomic.Int64 // longest time from the beginning of a send to its event, in nanoseconds
	who     *account
	client  *http.Client

	sendOnNew bool // each send has a connection of its own
}

// The time between two sends is rollingSendEvery, or rollingSendEveryPoller for each poller if that is more: 10,000
// events a second are a steady load that does not use the whole machine.
const (
	rollingSendEvery       = 200 * time.Millisecond
	rollingSendEveryPoller = 100 * time.Microsecond
)

// rollingRegistrations is how many queues are registered at a time.
const rollingRegistrations = 12

func newRollingLoad(t *testing.T, all *runningCores, pollers int) *rollingLoad {
	l := &rollingLoad{t: t, stop: make(chan struct{})}
	loop, err := swarm.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(loop.Close)
	l.pollers = make([]*rollingPoller, pollers)
	var registering sync.WaitGroup
	for worker := range rollingRegistrations {
		registering.Go(func() {
			core := all.list[worker%len(all.list)]
			who := demoAccount(t, "http://"+core.listen, killPeople[worker%len(killPeople)]+"@example.org")
			for i := worker; i < pollers; i += rollingRegistrations {
				q, err := who.newPoller()
				if err != nil {
					t.Error(err)
					return
				}
				l.pollers[i] = &rollingPoller{l: l, all: all, core: worker, queue: url.QueryEscape(q.queue),
					last: q.last,
					auth: base64.StdEncoding.EncodeToString([]byte(who.email + ":" + who.key))}
				l.pollers[i].conn.Loop = loop
			}
		})
	}
	if registering.Wait(); t.Failed() {
		t.FailNow()
	}
	l.polling.Go(func() {
		for _, x := range l.pollers {
			x.poll()
		}
		err := loop.Run(func() bool {
			return !slices.ContainsFunc(l.pollers, func(x *rollingPoller) bool { return !x.done })
		})
		if err != nil {
			t.Error(err)
		}
	})
	l.who = demoAccount(t, "http://"+all.list[0].listen, "ann@example.org")
	l.who.url = "http://parley.invalid"
	l.client = &http.Client{Timeout: 2 * binaryTimeout, Transport: &http.Transport{DialContext: all.dial}}
	return l
}

// rollingPoller is an event queue and its client. All run in one loop, because clients that take more of the processor
// than the cores would be measured instead of these.
type rollingPoller struct {
	l        *rollingLoad
	all      *runningCores
	conn     swarm.Conn
	core     int  // that it polls
	used     bool // the connection has brought an answer
	refusals int  // of connections, one after the other
	queue    string
	auth     string
	last     int64
	received int   // messages
	newest   int64 // when the newest of them was sent, in Unix nanoseconds
	done     bool
}

func (x *rollingPoller) poll() {
	x.conn.Remote = netip.MustParseAddrPort(x.all.list[x.core%len(x.all.list)].listen)
	x.conn.Send(fmt.Appendf(nil, "GET /api/v1/events?queue_id=%s&last_event_id=%d HTTP/1.1\r\nHost: parley.invalid\r\n"+
		"Authorization: Basic %s\r\n\r\n", x.queue, x.last, x.auth), x, 2*binaryTimeout, false)
}

// Answer polls again. A connection that was used before may have been closed while the client sent its poll, and one
// that is refused reaches no core: a load balancer and the libraries of clients use another connection then.
func (x *rollingPoller) Answer(_ *swarm.Conn, a *swarm.Answer) {
	err := a.Err
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) && x.refusals < len(x.all.list):
		x.core, x.refusals = x.core+1, x.refusals+1
		x.poll()
		return
	case err != nil && x.used:
		x.used = false
		x.poll()
		return
	case err == nil && a.Status != http.StatusOK:
		err = fmt.Errorf("%d %.200s", a.Status, a.Body)
	case err == nil:
		x.l.polls.Add(1)
		x.used, x.refusals = true, 0
		err = x.take(a.Body)
	}
	switch {
	case err != nil:
		x.done = true
		if x.l.failed.Add(1) < 10 {
			x.l.t.Errorf("%v: a poll after event %d: %v", time.Now().Format(time.TimeOnly), x.last, err)
		}
	case !x.done:
		x.poll()
	}
}

// take takes the events of an answer. The text of a message is the time of its sending; the last one is "the end".
func (x *rollingPoller) take(body []byte) (err error) {
	var e swarm.Event
	scanned := swarm.ScanEvents(body, &e, func(e *swarm.Event) bool {
		if e.ID <= x.last {
			err = fmt.Errorf("event %d after %d", e.ID, x.last)
			return false
		}
		x.last = e.ID
		if string(e.Content) == "the end" {
			x.done = true
			return false
		}
		if e.Message == 0 {
			return true
		}
		at, _ := strconv.ParseInt(string(e.Content), 10, 64)
		if at <= x.newest {
			err = fmt.Errorf("the message of %d after that of %d", at, x.newest)
		}
		x.newest, x.received = at, x.received+1
		raise(&x.l.late, time.Now().UnixNano()-at)
		return err == nil
	})
	return errors.Join(err, scanned)
}

func raise(n *atomic.Int64, to int64) {
	for old := n.Load(); to > old && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}

// send sends messages one after the other. Each must be acknowledged at the first try.
func (l *rollingLoad) send() {
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(max(rollingSendEvery, time.Duration(len(l.pollers))*rollingSendEveryPoller)):
		}
		if l.sendOnNew {
			l.client.CloseIdleConnections()
		}
		began := time.Now()
		_, err := l.who.callWith(l.client, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"},
			"topic": {"rolling"}, "content": {fmt.Sprint(began.UnixNano())}})
		if err != nil {
			l.t.Errorf("%v: send: %v", time.Now().Format(time.TimeOnly), err)
			continue
		}
		l.sent.Add(1)
		raise(&l.longest, int64(time.Since(began)))
	}
}

func (l *rollingLoad) longestSend() time.Duration {
	return time.Duration(l.longest.Load()).Round(time.Millisecond)
}

// finish waits until every poller has every message, and checks that they are the same.
func (l *rollingLoad) finish() {
	l.t.Helper()
	close(l.stop)
	l.sending.Wait()
	if _, err := l.who.callWith(l.client, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"},
		"topic": {"rolling"}, "content": {"the end"}}); err != nil {
		l.t.Fatal(err)
	}
	l.polling.Wait()
	for i, x := range l.pollers {
		if x.received != int(l.sent.Load()) {
			l.t.Errorf("poller %d received %d of %d messages", i, x.received, l.sent.Load())
		}
	}
	l.t.Logf("%d pollers, %d polls, %d sends, %d failed, 0 registered again; the longest send took %v, the latest "+
		"event came %v after its send began", len(l.pollers), l.polls.Load(), l.sent.Load(), l.failed.Load(),
		l.longestSend(), time.Duration(l.late.Load()).Round(time.Millisecond))
}

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
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
	time.Sleep(time.Second)
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
			out, _ := runParley("cluster", "status", "--data", c.data)
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
	pollers []*poller
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

// rollingSendEvery is the time between two sends: a steady load that does not use the whole machine, whatever the
// number of pollers is.
const rollingSendEvery = 200 * time.Millisecond

func newRollingLoad(t *testing.T, all *runningCores, pollers int) *rollingLoad {
	l := &rollingLoad{t: t, stop: make(chan struct{})}
	newClient := func() *http.Client {
		return &http.Client{Timeout: 2 * binaryTimeout, Transport: &http.Transport{DialContext: all.dial}}
	}
	for i := range pollers {
		who := demoAccount(t, "http://"+all.list[i%3].listen, killPeople[i%len(killPeople)]+"@example.org")
		q, err := who.newPoller()
		if err != nil {
			t.Fatal(err)
		}
		q.url = "http://parley.invalid"
		l.pollers = append(l.pollers, q)
	}
	for i, q := range l.pollers {
		client := newClient()
		l.polling.Go(func() {
			if err := l.poll(q, client); err != nil && l.failed.Add(1) < 10 {
				t.Errorf("%v: poller %d: %v", time.Now().Format(time.TimeOnly), i, err)
			}
		})
	}
	who := *l.pollers[0].account
	l.who, l.client = &who, newClient()
	return l
}

// poll polls until the last message. The text of a message is the time of its sending.
func (l *rollingLoad) poll(q *poller, client *http.Client) error {
	for {
		a, err := q.callWith(client, "GET", "events",
			url.Values{"queue_id": {q.queue}, "last_event_id": {fmt.Sprint(q.last)}})
		if err != nil {
			return err
		}
		l.polls.Add(1)
		for _, x := range a["events"].([]any) {
			e := x.(map[string]any)
			id := int64(e["id"].(float64))
			if id <= q.last {
				return fmt.Errorf("event %d after %d", id, q.last)
			}
			q.last = id
			if e["type"] != "message" {
				continue
			}
			text := e["message"].(map[string]any)["content"].(string)
			if text == "the end" {
				return nil
			}
			at, _ := strconv.ParseInt(text, 10, 64)
			raise(&l.late, time.Now().UnixNano()-at)
			q.texts = append(q.texts, text)
		}
	}
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
		case <-time.After(rollingSendEvery):
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
	for i, q := range l.pollers {
		if len(q.texts) != int(l.sent.Load()) || !slices.IsSorted(q.texts) {
			l.t.Errorf("poller %d received %d of %d messages", i, len(q.texts), l.sent.Load())
		}
	}
	l.t.Logf("%d pollers, %d polls, %d sends, %d failed, 0 registered again; the longest send took %v, the latest "+
		"event came %v after its send began", len(l.pollers), l.polls.Load(), l.sent.Load(), l.failed.Load(),
		l.longestSend(), time.Duration(l.late.Load()).Round(time.Millisecond))
}

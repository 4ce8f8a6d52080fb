package actors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/replicated"
)

// clusterTimeout is how long a test waits for something that must happen.
const clusterTimeout = time.Minute

// core is one of the core nodes of a test, with its server.
type core struct {
	name, address string
	disk          *vfs.MemFS
	node          *replicated.Node
	srv           *Server
	dead          *atomic.Bool
	cut           atomic.Bool  // its links are cut
	elapsed       atomic.Int64 // added to its clock that never jumps, a time.Duration
	conns         []net.Conn   // under cores.mu
}

// cores are the core nodes of a test in one process, with links by loopback connections.
type cores struct {
	t          *testing.T
	mu         sync.Mutex
	list       []*core
	sleepAfter time.Duration
	wall       atomic.Int64 // added to the wall clock of all, a time.Duration
}

// coreLinks are the links of one core.
type coreLinks struct {
	net.Listener
	own *core
	all *cores
}

func (l *coreLinks) Dial(to string, timeout time.Duration) (net.Conn, error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	for _, c := range l.all.list {
		if c.address == to && (c.cut.Load() || l.own.cut.Load()) {
			return nil, errors.New("the link is cut")
		}
	}
	conn, err := net.DialTimeout("tcp", to, timeout)
	if err == nil {
		for _, c := range l.all.list {
			if c.address == to || c == l.own {
				c.conns = append(c.conns, conn)
			}
		}
	}
	return conn, err
}

// setCut cuts the links of a core, or connects it again.
func (all *cores) setCut(c *core, on bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	c.cut.Store(on)
	if on {
		for _, conn := range c.conns {
			conn.Close()
		}
		c.conns = nil
	}
}

// newCores starts core nodes with one voter each.
func newCores(t *testing.T, names ...string) *cores {
	t.Helper()
	return newSleepyCores(t, 0, names...)
}

// newSleepyCores starts core nodes whose organizations leave memory after a time without requests; 0: never.
func newSleepyCores(t *testing.T, sleepAfter time.Duration, names ...string) *cores {
	t.Helper()
	all := &cores{t: t, sleepAfter: sleepAfter}
	for i, name := range names {
		c := &core{name: name, disk: vfs.NewCrashableMem()}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.address = l.Addr().String()
		l.Close()
		all.mu.Lock()
		all.list = append(all.list, c)
		all.mu.Unlock()
		if i == 0 {
			err = replicated.Bootstrap("data", c.options())
		} else {
			err = replicated.PrepareJoin("data", c.options())
		}
		if err != nil {
			t.Fatal(err)
		}
		all.start(c)
		if i > 0 {
			leader := all.leader()
			if err := leader.node.Add(name, c.address); err != nil {
				t.Fatal(err)
			}
			all.wait("catch up", func() bool { return c.node.Status().Applied > 0 })
			if err := leader.node.Promote(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A core that does not know of a vote denies it to its holder, also if the leader is gone.
	for _, c := range all.list {
		all.wait(c.name+" knows all votes", func() bool {
			votes := 0
			for _, m := range c.node.Status().Members {
				if m.Voter {
					votes++
				}
			}
			return votes == len(names)
		})
	}
	t.Cleanup(func() {
		for _, c := range all.list {
			all.stop(c)
		}
	})
	return all
}

func (c *core) options() replicated.Options {
	return replicated.Options{ID: c.name, Address: c.address, ElectionTimeout: 500 * time.Millisecond,
		CheckpointInterval: 100 * time.Millisecond,
		Store: snapshot.Options{FS: c.disk, MemTable: 1 << 20, Cache: 1 << 20,
			Kept: snapshot.FollowedKept}}
}

func (all *cores) start(c *core) {
	all.t.Helper()
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		all.t.Fatal(err)
	}
	o := c.options()
	o.Links = &coreLinks{l, c, all}
	if c.node, err = replicated.Open("data", o); err != nil {
		all.t.Fatal(err)
	}
	dead := &atomic.Bool{}
	c.dead = dead
	began := time.Now()
	elapsed := func() time.Duration { return time.Since(began) + time.Duration(c.elapsed.Load()) }
	c.srv = openServerWith(all.t, c.node.Journal(), Options{Cluster: c.node.Journal(), Elapsed: elapsed,
		SleepAfter: all.sleepAfter, Now: func() time.Time { return time.Now().Add(time.Duration(all.wall.Load())) },
		Fatal: func(err error) {
			if !dead.Load() {
				all.t.Errorf("fatal at %s: %v", c.name, err)
			}
		}})
	c.node.OnLeadership(c.srv.SetLeader)
}

// kill ends a core as a power loss does.
func (all *cores) kill(c *core) {
	c.disk = c.disk.CrashClone(vfs.CrashCloneCfg{})
	c.dead.Store(true)
	all.setCut(c, true)
	close(c.srv.stop)
	c.node.Close()
	c.srv.runtime.Shutdown()
	all.setCut(c, false)
	c.node = nil
}

// stop ends a core in good order.
func (all *cores) stop(c *core) {
	if c.node == nil {
		return
	}
	c.dead.Store(true)
	if err := c.srv.Close(context.Background()); err != nil {
		all.t.Error(err)
	}
	if err := c.node.Close(); err != nil {
		all.t.Error(err)
	}
}

// wait waits until a condition holds.
func (all *cores) wait(what string, holds func() bool) {
	all.t.Helper()
	for end := time.Now().Add(clusterTimeout); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			all.t.Fatalf("%s: not within %v", what, clusterTimeout)
		}
	}
}

// leader waits for a leader whose links are not cut.
func (all *cores) leader() (leader *core) {
	all.t.Helper()
	all.wait("a leader", func() bool {
		for _, c := range all.list {
			if c.node != nil && !c.cut.Load() && c.node.Status().Leading && c.srv.isLeader.Load() {
				leader = c
				return true
			}
		}
		return false
	})
	return leader
}

// owner waits until a node owns the organization.
func (all *cores) owner() (owner *core) {
	all.t.Helper()
	all.wait("an owner", func() bool {
		for _, c := range all.list {
			if c.node != nil && !c.cut.Load() && c.node.Status().Leading && c.srv.Owns(1) {
				owner = c
				return true
			}
		}
		return false
	})
	return owner
}

// standby returns a core that is not the owner.
func (all *cores) standby() *core {
	owner := all.owner()
	for _, c := range all.list {
		if c != owner && c.node != nil {
			return c
		}
	}
	all.t.Fatal("no standby")
	return nil
}

// client is a user with an event queue, which asks whichever node owns the organization.
type client struct {
	all   *cores
	user  realm.UserID
	queue any
	last  any
	got   []string
}

func (all *cores) register(u realm.UserID) *client {
	all.t.Helper()
	q := mustCall(all.t, all.owner().srv, u, "POST /register", params{"event_types": []string{"message"}})
	return &client{all: all, user: u, queue: q["queue_id"], last: q["last_event_id"]}
}

// until polls until it has got a text.
func (c *client) until(text string) {
	c.all.t.Helper()
	c.all.wait(fmt.Sprintf("user %d gets %q", c.user, text), func() bool {
		a := <-call(c.all.owner().srv, c.user, "GET /events",
			params{"queue_id": c.queue, "last_event_id": c.last, "dont_block": true})
		if a.status == 503 {
			return false // the owner has changed meanwhile
		}
		if a.status != 200 {
			c.all.t.Fatalf("the poll was answered %d %v", a.status, a.body)
		}
		for _, e := range a.body["events"].([]any) {
			e := e.(map[string]any)
			c.last = e["id"]
			if m, is := e["message"].(map[string]any); is {
				c.got = append(c.got, fmt.Sprint(m["content"]))
			}
		}
		return slices.Contains(c.got, text)
	})
}

// send sends a message to channel one until it is acknowledged. It reports how often it was answered 503.
func (all *cores) send(u realm.UserID, text string) (refused int) {
	all.t.Helper()
	all.wait("sending "+text, func() bool {
		a := <-call(all.owner().srv, u, "POST /messages",
			params{"type": "stream", "to": "one", "topic": "t", "content": text})
		if a.status != 200 && a.status != 503 {
			all.t.Fatalf("the message was answered %d %v", a.status, a.body)
		}
		if a.status == 503 {
			refused++
		}
		return a.status == 200
	})
	return refused
}

// found creates an organization at the leader.
func (all *cores) found(names ...string) []realm.UserID {
	all.t.Helper()
	return createOrganization(all.t, all.leader().srv, names...)
}

// When the leader is killed, another core owns the organization: the event queues keep their ids, every event arrives
// once, and the state is that of before.
func TestClusterLeaderIsKilled(t *testing.T) {
	all := newCores(t, "a", "b", "c")
	people := all.found("ann", "bo")
	ann, bo := people[0], people[1]
	poller, idle := all.register(bo), all.register(bo)
	var sent []string
	send := func(text string) {
		all.send(ann, text)
		sent = append(sent, text)
	}
	for round := range 3 {
		for i := range 10 {
			send(fmt.Sprintf("%d-%d", round, i))
		}
		poller.until(sent[len(sent)-3])
		victim := all.owner()
		all.kill(victim)
		send(fmt.Sprintf("%d-after", round))
		poller.until(sent[len(sent)-1])
		all.start(victim)
	}
	idle.until(sent[len(sent)-1])
	for _, c := range []*client{poller, idle} {
		// A message whose answer was lost with the leader is sent twice; nothing is lost, reordered or delivered twice.
		var once []string
		for _, text := range c.got {
			if len(once) == 0 || once[len(once)-1] != text {
				once = append(once, text)
			}
		}
		if !slices.Equal(once, sent) {
			t.Errorf("got %q, want %q", c.got, sent)
		}
	}
	all.expectEqual()
}

// expectEqual moves the leadership from node to node and requires that each has the same state.
func (all *cores) expectEqual() {
	all.t.Helper()
	digests := map[realm.Seq]snapshot.Digest{}
	seen := map[*core]bool{}
	for range 4 * len(all.list) {
		owner := all.owner()
		if len(seen) == len(all.list) {
			return
		}
		seen[owner] = true
		x, err := owner.srv.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
			return snapshot.StateDigest(v.Realm), nil
		})
		if err != nil {
			continue // it is not the owner any more
		}
		got := x.(snapshot.Digest)
		for _, c := range all.list {
			all.wait(c.name+" follows", func() bool { return c.srv.DurableSeq(1) >= got.Seq })
			l, err := c.srv.loadStandby(1)
			if err != nil {
				all.t.Fatal(err)
			}
			if other := snapshot.StateDigest(l.realm); other.Seq == got.Seq && other != got {
				all.t.Errorf("the disk of %s has %s, the owner %s has %s", c.name, other, owner.name, got)
			}
		}
		if before, known := digests[got.Seq]; known && before != got {
			all.t.Errorf("%s has %s, another node had %s", owner.name, got, before)
		}
		digests[got.Seq] = got
		for _, c := range all.list {
			if !seen[c] {
				owner.node.MoveLeader(c.name)
				break
			}
		}
	}
}

// A leader that is cut off acknowledges nothing and answers no view: another node may have taken over. What it has
// recorded meanwhile is not in any state afterwards, also not in its caches.
func TestClusterLeaderIsCutOff(t *testing.T) {
	all := newCores(t, "a", "b", "c")
	people := all.found("ann", "bo")
	ann, bo := people[0], people[1]
	poller := all.register(bo)
	all.send(ann, "before")
	old := all.owner()
	all.setCut(old, true)
	refused := make(chan response, 10)
	for i := range 5 {
		go func() {
			refused <- <-call(old.srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
				"content": fmt.Sprint("nobody sees ", i)})
		}()
		go func() {
			refused <- <-call(old.srv, bo, "GET /messages", params{"anchor": "newest", "num_before": 5, "num_after": 0})
		}()
	}
	for range cap(refused) {
		if a := <-refused; a.status != 503 {
			t.Errorf("a leader that is cut off answered %d %v", a.status, a.body)
		}
	}
	for i := range 5 {
		all.send(ann, fmt.Sprint("after ", i))
	}
	all.setCut(old, false)
	poller.until("after 4")
	want := []string{"before", "after 0", "after 1", "after 2", "after 3", "after 4"}
	if !slices.Equal(poller.got, want) {
		t.Errorf("got %q, want %q", poller.got, want)
	}
	all.expectEqual()
	// The old leader owns the organization again. Its messages have the numbers of those that were not stored.
	for all.owner() != old {
		all.owner().node.MoveLeader(old.name)
	}
	a := mustCall(t, old.srv, bo, "GET /messages", params{"anchor": "newest", "num_before": 6, "num_after": 0})
	var texts []string
	for _, m := range a["messages"].([]any) {
		texts = append(texts, fmt.Sprint(m.(map[string]any)["content"]))
	}
	for i, text := range want {
		if i >= len(texts) || texts[i] != text && texts[i] != "<p>"+text+"</p>" {
			t.Fatalf("the messages are %q, want %q", texts, want)
		}
	}
}

// A deposed leader drops what it has compiled from changes that were not stored. The change of the new leader has the
// same number as that one.
func TestClusterMarkdownConfigIsDropped(t *testing.T) {
	all := newCores(t, "a", "b", "c")
	ann := all.found("ann")[0]
	all.send(ann, "before")
	old := all.owner()
	x, err := old.srv.Turn(1, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) {
		return realm.CreateUser{Email: "boss@example.org", Name: "Boss", Role: realm.Owner, Key: Token(32)}.Decide(t)
	})
	if err != nil {
		t.Fatal(err)
	}
	boss := x.(realm.UserID)
	all.send(ann, "the configuration is compiled")
	add := func(c *core, host string) response {
		return <-call(c.srv, boss, "POST /realm/filters", params{"pattern": "X(?P<id>[0-9]+)",
			"url_template": "https://" + host + "/{id}"})
	}
	all.setCut(old, true)
	waiting := make(chan response, 1)
	turns := old.srv.Metrics.Turns.Load()
	go func() { waiting <- add(old, "not-stored.example") }()
	all.wait("the change has its turn", func() bool { return old.srv.Metrics.Turns.Load() > turns })
	sent := make(chan response, 1) // its turn compiles the configuration, for links in topics
	go func() {
		sent <- <-call(old.srv, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t",
			"content": "X1"})
	}()
	all.wait("the message has its turn", func() bool { return old.srv.Metrics.Turns.Load() > turns+1 })
	for _, c := range []chan response{waiting, sent} {
		if a := <-c; a.status != 503 {
			t.Errorf("a leader that is cut off answered %d %v", a.status, a.body)
		}
	}
	all.wait("the new leader changes the configuration", func() bool {
		return add(all.owner(), "stored.example").status == 200
	})
	all.setCut(old, false)
	all.wait("the old leader leads again", func() bool {
		if all.owner() != old {
			all.owner().node.MoveLeader(old.name)
		}
		return all.owner() == old
	})
	all.send(ann, "X1")
	a := mustCall(t, old.srv, ann, "GET /messages", params{"anchor": "newest", "num_before": 1, "num_after": 0,
		"apply_markdown": "true"})
	list := a["messages"].([]any)
	if html := fmt.Sprint(list[len(list)-1].(map[string]any)["content"]); !strings.Contains(html,
		"https://stored.example/1") {
		t.Errorf("the message is rendered as %s", html)
	}
	all.expectEqual()
}

// A standby refuses everything, and knows the accounts that the leader creates.
func TestClusterStandbyRefuses(t *testing.T) {
	all := newCores(t, "a", "b")
	people := all.found("ann", "bo")
	ann := people[0]
	q := all.register(ann)
	s := all.standby()
	all.wait("the standby follows", func() bool { return s.srv.DurableSeq(1) >= all.owner().srv.DurableSeq(1) })
	for name, p := range map[string]params{
		"GET /messages":  {"anchor": "newest", "num_before": 5, "num_after": 0},
		"POST /messages": {"type": "stream", "to": "one", "topic": "t", "content": "no"},
		"POST /register": {},
		"GET /events":    {"queue_id": q.queue, "last_event_id": -1, "dont_block": true},
	} {
		if a := <-call(s.srv, ann, name, p); a.status != 503 {
			t.Errorf("%s at a standby was answered %d %v", name, a.status, a.body)
		}
	}
	s.srv.accounts.mu.RLock()
	known := s.srv.accounts.byUser[userKey{1, ann}] != nil
	s.srv.accounts.mu.RUnlock()
	if !known {
		t.Error("the standby does not know the account")
	}
	if _, err := s.srv.CreateRealm("other", "Other"); !errors.Is(err, realm.ErrMoved) {
		t.Errorf("a standby created an organization: %v", err)
	}
}

// A new organization can be used at another node when the leader changes.
func TestClusterCreatesOrganizations(t *testing.T) {
	all := newCores(t, "a", "b", "c")
	all.found("ann")
	if _, err := all.owner().srv.CreateRealm("second", "Second"); err != nil {
		t.Fatal(err)
	}
	old := all.owner()
	for all.owner() == old {
		old.node.MoveLeader("")
	}
	all.wait("the second organization", func() bool { return all.owner().srv.Owns(2) })
	if id, _, found := all.owner().srv.RealmByName("second"); !found || id != 2 {
		t.Errorf("the second organization is %d, %t", id, found)
	}
}

// The standbys drop events that the clients have acknowledged.
func TestClusterStandbysForgetAcknowledgedEvents(t *testing.T) {
	all := newCores(t, "a", "b")
	people := all.found("ann", "bo")
	poller := all.register(people[1])
	all.send(people[0], "one")
	all.send(people[0], "two")
	s := all.standby()
	events := func() int64 { return s.srv.Metrics.UnackedFacts.Load() }
	all.wait("the standby stores events", func() bool { return events() > 0 })
	poller.until("two")
	mustCall(t, all.owner().srv, people[1], "GET /events",
		params{"queue_id": poller.queue, "last_event_id": poller.last, "dont_block": true})
	all.wait("the standby forgets events", func() bool { return events() == 0 })
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/codec"
	"parley/snapshot/replicated"
	"parley/wire"
	"parley/wire/httpd"
	"parley/wire/peer"
)

const testTimeout = time.Minute

// testCore is a core with organizations in this process. It has no replicated log.
type testCore struct {
	*Leader
	t     *testing.T
	orgs  *actors.Server
	users map[realm.ID]realm.UserID // one of each organization
}

func openOrgs(t *testing.T, d actors.Disk) *actors.Server {
	t.Helper()
	orgs, err := actors.Open(d, actors.Options{
		Protocol: wire.SessionProtocol{Encodings: wire.NewEventEncodings()}, Renderer: &wire.Renderer{},
		Log: slog.New(slog.DiscardHandler), Fatal: func(err error) { t.Errorf("fatal: %v", err) },
		Site: func(name string) realm.Site { return realm.Site{Host: name + ".localhost", Name: name} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := orgs.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return orgs
}

// startTestCore starts a core with some organizations.
func startTestCore(t *testing.T, names ...string) *testCore {
	t.Helper()
	store, err := snapshot.Open(t.TempDir(), snapshot.Options{Unsynced: true, Kept: snapshot.FollowedKept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	disk := snapshot.Disk{Store: store}
	c := &testCore{t: t, orgs: openOrgs(t, disk), users: map[realm.ID]realm.UserID{}}
	for _, name := range names {
		id, err := c.orgs.CreateRealm(name, "Test")
		if err != nil {
			t.Fatal(err)
		}
		u, err := c.orgs.Turn(id, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
			return realm.CreateUser{Email: "ann@example.org", Name: "Ann", Role: realm.Owner, Key: actors.Token(32),
				First: true, NoDefaults: true}.Decide(t)
		})
		if err != nil {
			t.Fatal(err)
		}
		c.users[id] = u.(realm.UserID)
	}
	d, _ := newDirectory(t, "a")
	id, err := d.Identity()
	if err != nil {
		t.Fatal(err)
	}
	l, err := peer.Listen("127.0.0.1:0", id, peer.LinkProtocol, peer.JoinProtocol, peer.HTTPProtocol,
		peer.RaftProtocol, peer.FilesProtocol)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetPeerListen(l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	c.Leader, err = StartLeader(LeaderOptions{Directory: d, Node: &CoreNode{&replicated.Node{}, d, l}, Orgs: c.orgs,
		Disk: func() snapshot.Disk { return disk }, HTTP: &httpd.Server{}, Log: slog.New(slog.DiscardHandler),
		Now: time.Now, Program: "1", HasVote: func(node string) bool { return !strings.HasPrefix(node, "starting") },
		Command: func(x SentCommand) (any, error) { return x, nil }})
	if err != nil {
		t.Fatal(err)
	}
	c.SetLeader(true)
	t.Cleanup(func() { c.Close() })
	return c
}

// send sends a direct message of an organization's user to themselves, and returns where its text is.
func (c *testCore) send(id realm.ID, text string) realm.BodyRef {
	c.t.Helper()
	u := c.users[id]
	x, err := c.orgs.Turn(id, realm.Caller{User: u, Client: "test"}, func(t *realm.Turn) (any, error) {
		sent, err := realm.SendMessage{People: []realm.Principal{{ID: u}}, Body: realm.Body{Text: text}}.Decide(t)
		return sent.ID, err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return realm.BodyRef{Message: x.(realm.MessageID)}
}

// startTestEdge starts an edge of a core.
func startTestEdge(c *testCore, node string, change func(*FollowerOptions)) *Follower {
	c.t.Helper()
	d, _ := joinEdge(c.t, c.Directory, node)
	o := FollowerOptions{Directory: d, Program: "1", Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	e, err := NewFollower(o)
	if err != nil {
		c.t.Fatal(err)
	}
	g, err := e.Greet(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	e.Start(g, openOrgs(c.t, actors.NoDisk{}), func(host string) string { return host })
	c.t.Cleanup(e.Close)
	return e
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", testTimeout, what)
		}
	}
}

// greet opens a link with a greeting of a node, and returns the error.
func (c *testCore) greet(d *Directory, g greeting) error {
	c.t.Helper()
	g.NoSecret = true
	id, err := d.Identity()
	if err != nil {
		c.t.Fatal(err)
	}
	l, err := id.Open(c.t.Context(), c.Addr(), codec.EncodeRow(&g))
	if err == nil {
		l.Close(nil)
	}
	return err
}

// The core refuses links of other versions, clocks far off, removed nodes and second processes of a node, each with a
// text that names the remedy. It accepts a node whose clock is an hour off, and the next process of a node that was
// killed.
func TestRefusedGreetings(t *testing.T) {
	c := startTestCore(t, "")
	b, _ := joinEdge(t, c.Directory, "b")
	now := func(ahead time.Duration) int64 { return time.Now().Add(ahead).UnixMilli() }
	expect := func(what string, err error, text string) {
		t.Helper()
		if text == "" && err != nil || text != "" && (!errors.Is(err, peer.ErrRefused) ||
			!strings.Contains(err.Error(), text)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	expect("another version", c.greet(b, greeting{Version: peer.Version + 1, Clock: now(0)}), "the same release")
	expect("a clock 3 hours ahead", c.greet(b, greeting{Version: peer.Version, Clock: now(3 * time.Hour)}), "with NTP")
	expect("a clock 3 hours behind", c.greet(b, greeting{Version: peer.Version, Clock: now(-3 * time.Hour)}), "set it")
	expect("a clock 1 hour ahead", c.greet(b, greeting{Version: peer.Version, Clock: now(time.Hour)}), "")
	edge := startTestEdge(c, "e", nil)
	eventually(t, "the edge is ready", edge.IsReady)
	expect("a second process", c.greet(edge.Directory, greeting{Version: peer.Version, Boot: "x", Clock: now(0)}),
		"another process is connected as node e from 127.0.0.1")
	edge.Close()
	expect("the next process", c.greet(edge.Directory, greeting{Version: peer.Version, Boot: "x", Clock: now(0)}), "")
	if err := c.Directory.Remove("b"); err != nil {
		t.Fatal(err)
	}
	expect("a removed node", c.greet(b, greeting{Version: peer.Version, Clock: now(0)}), "node b was removed")
	c.SetLeader(false)
	err := c.greet(edge.Directory, greeting{Version: peer.Version, Boot: "x", Clock: now(0)})
	expect("a core that is not the leader", err, errNotLeader.Error())
}

// A core that is behind does not know the nodes that joined last. It sends them to the leader instead of refusing them,
// as the leader refuses a node that it does not know.
func TestGreetingOfNodeThatJoinedLast(t *testing.T) {
	c := startTestCore(t, "")
	b, _ := joinEdge(t, c.Directory, "b")
	hello := greeting{Version: peer.Version, Clock: time.Now().UnixMilli()}
	c.Directory.mu.Lock()
	c.Directory.Members = slices.DeleteFunc(c.Directory.Members, func(m Member) bool { return m.Node == "b" })
	c.Directory.publish()
	c.Directory.mu.Unlock()
	if err := c.greet(b, hello); !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), "not a member") {
		t.Errorf("the leader: %v", err)
	}
	c.SetLeader(false)
	if err := c.greet(b, hello); err == nil || !strings.Contains(err.Error(), errNotLeader.Error()) ||
		strings.Contains(err.Error(), "not a member") {
		t.Errorf("a core that is behind: %v", err)
	}
}

// An edge has the facts of a core, each of them sent once, and the core knows how far it is. It asks for the texts of a
// page once.
func TestEdgeFollows(t *testing.T) {
	c := startTestCore(t, "")
	edge := startTestEdge(c, "b", nil)
	if err := edge.Prepare(""); err != nil {
		t.Fatal(err)
	}
	var refs []realm.BodyRef
	for i := range 300 {
		refs = append(refs, c.send(1, fmt.Sprint("text ", i, strings.Repeat(".", 2000))))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	last := c.orgs.DurableSeq(1)
	if err := edge.orgs.WaitFor(ctx, 1, last); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the core knows that the edge has everything", func() bool {
		p := c.Peers()
		return len(p) == 1 && p[0].Connected && p[0].FactsBehind == 0 && p[0].SecondsBehind == 0 &&
			p[0].FactsFresh == int64(last)
	})
	p := c.Peers()[0]
	if p.FactsSent != int64(last) || p.Links != 1 || p.Sent < 300*2000 || p.Received == 0 {
		t.Errorf("counters of the edge: %+v, for %d facts", p, last)
	}
	eventually(t, "both sides count the same bytes", func() bool {
		p := c.Peers()[0]
		sent, received := edge.Traffic()
		return sent >= p.Received && received >= p.Sent
	})
	if err := c.orgs.Save(t.Context()); err != nil { // the texts do not come with the facts any more
		t.Fatal(err)
	}
	if err := edge.orgs.CloseReplica(1); err != nil {
		t.Fatal(err)
	}
	edge.mu.Lock()
	delete(edge.open, 1)
	edge.mu.Unlock()
	if err := edge.Prepare(""); err != nil {
		t.Fatal(err)
	}
	edge.orgs.FetchTexts(1, refs)
	for i, ref := range refs {
		b, ok, err := edge.orgs.Text(1, ref)
		if err != nil || !ok || !strings.HasPrefix(b.Text, fmt.Sprint("text ", i, ".")) {
			t.Fatalf("text %d: %v, %v, %.20q", i, ok, err, b.Text)
		}
	}
	if n := edge.Counters.TextCalls.Load(); n != 1 {
		t.Errorf("%d calls for the texts of a page", n)
	}
}

// An organization is served at an edge as soon as it is created, also if its subdomain was asked for before. Requests
// for many subdomains without an organization are bounded.
func TestNewOrganizationAtEdge(t *testing.T) {
	c := startTestCore(t, "")
	edge := startTestEdge(c, "b", nil)
	for i := range 5 {
		name := fmt.Sprint("new-", i)
		for range 2 {
			if err := edge.Prepare(name); err != nil {
				t.Fatal(err)
			}
		}
		id, err := c.orgs.CreateRealm(name, "New")
		if err != nil {
			t.Fatal(err)
		}
		if err := edge.Prepare(name); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := edge.orgs.RealmByName(name); got != id {
			t.Errorf("right after its creation, %s is organization %d at the edge, not %d", name, got, id)
		}
	}
	edge.asking.Store(MaxUnknownNames)
	if err := edge.Prepare("other"); err != errNoLink {
		t.Errorf("a subdomain too many: %v", err)
	}
	if waiting, refused := edge.UnknownNames(); waiting != MaxUnknownNames || refused != 1 {
		t.Errorf("%d requests wait, %d were refused", waiting, refused)
	}
	edge.asking.Store(0)
	if err := edge.Prepare("other"); err != nil {
		t.Errorf("a subdomain without an organization: %v", err)
	}
}

// An edge unloads organizations without clients, loads them again when they are asked for, and refuses further ones
// when it has no room.
func TestReplicasAreBounded(t *testing.T) {
	c := startTestCore(t, "", "one", "two")
	edge := startTestEdge(c, "b", func(o *FollowerOptions) { o.MaxReplicas = 2 })
	for _, name := range []string{"", "one", "absent", "absent"} {
		if err := edge.Prepare(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if s := edge.Replicas(); s.Open != 2 || s.Bytes == 0 {
		t.Errorf("replicas: %+v", s)
	}
	if err := edge.Prepare("two"); err != errNoRoom || edge.Counters.NoRoom.Load() != 1 {
		t.Errorf("an organization too many: %v", err)
	}
	eventually(t, "session actors know that they have no queues", func() bool {
		return !edge.orgs.HasQueues(1) && !edge.orgs.HasQueues(2)
	})
	edge.mu.Lock() // "" was used longest ago
	edge.open[1].used = time.Now().Add(-2 * minReplicaIdle)
	edge.open[2].used = time.Now().Add(-minReplicaIdle)
	edge.mu.Unlock()
	if err := edge.Prepare("two"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica used longest ago is unloaded", func() bool { return edge.orgs.DurableSeq(1) == 0 })
	if edge.orgs.DurableSeq(2) == 0 || edge.orgs.DurableSeq(3) == 0 {
		t.Error("another replica is unloaded")
	}
	eventually(t, "the core knows that", func() bool {
		p := c.links.Find("b").Link.(*edgeLink)
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.stopFollowing[1] == nil && p.stopFollowing[2] != nil && p.stopFollowing[3] != nil
	})
	eventually(t, "all are unloaded", func() bool {
		edge.unloadIdle(0)
		return len(edge.orgs.Realms()) == 0
	})
	c.send(1, "meanwhile")
	if err := edge.Prepare(""); err != nil {
		t.Fatal(err)
	}
	if got, want := edge.orgs.DurableSeq(1), c.orgs.DurableSeq(1); got < want {
		t.Errorf("the replica that was loaded again is at fact %d, the core at %d", got, want)
	}
}

// While an edge has no link, requests are refused after a while, and at once if the core refuses the node. It goes on
// when the core is back.
func TestEdgeWithoutLink(t *testing.T) {
	c := startTestCore(t, "")
	edge := startTestEdge(c, "b", nil)
	if err := edge.Prepare(""); err != nil {
		t.Fatal(err)
	}
	look := func() error {
		_, err := edge.orgs.View(1, realm.Caller{System: true}, func(realm.View) (any, error) { return nil, nil })
		return err
	}
	if err := look(); err != nil {
		t.Fatal(err)
	}
	c.SetLeader(false)
	eventually(t, "the edge has lost its link", func() bool { return !edge.IsReady() })
	eventually(t, "reads are refused", func() bool { return realm.IsBusy(look()) })
	expectCommandRefused(t, edge, "start the cores, or check the network")
	c.send(1, "meanwhile")
	c.SetLeader(true)
	eventually(t, "the edge is back", edge.IsReady)
	if err := look(); err != nil || edge.orgs.DurableSeq(1) < c.orgs.DurableSeq(1) {
		t.Errorf("after the link is back: %v, fact %d of %d", err, edge.orgs.DurableSeq(1), c.orgs.DurableSeq(1))
	}
	if err := c.Directory.Remove("b"); err != nil {
		t.Fatal(err)
	}
	c.CutOff("b")
	eventually(t, "the edge knows that it was removed", func() bool {
		edge.mu.Lock()
		defer edge.mu.Unlock()
		return edge.refused != nil
	})
	expectCommandRefused(t, edge, "node b was removed from the cluster")
	began := time.Now()
	if err := edge.Prepare(""); err != errNoLink || time.Since(began) > MaxLinkWait/2 {
		t.Errorf("a request to a removed edge: %v after %v", err, time.Since(began))
	}
}

// expectCommandRefused gives a command of the operator at a node without a link, and requires an answer that says what
// to do.
func expectCommandRefused(t *testing.T, e *Follower, says string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it does not wait for a link
	if _, err := e.Command(ctx, "cluster-status", nil); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("a command without a leader: %v", err)
	}
}

// A core that finds no leader names the other cores and the command that makes it a single server.
func TestCoreWithoutLeader(t *testing.T) {
	d, _ := newDirectory(t, "a")
	e, err := NewFollower(FollowerOptions{Directory: d, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	expectCommandRefused(t, e, "127.0.0.1:9992. Start the others")
	expectCommandRefused(t, e, "parley cluster dissolve")
}

// An edge that is more than 10 seconds behind refuses requests until it has caught up.
func TestLateReplica(t *testing.T) {
	c := startTestCore(t, "")
	edge := startTestEdge(c, "b", nil)
	if err := edge.Prepare(""); err != nil {
		t.Fatal(err)
	}
	last, now := edge.orgs.DurableSeq(1), time.Now()
	edge.updateLag(seqsMessage{1: last + 5}, now.Add(time.Second))
	if err := edge.Prepare(""); err != nil {
		t.Errorf("an edge that is behind by a moment: %v", err)
	}
	eventually(t, "an edge that is an hour behind refuses", func() bool { // the core says twice a second that it is not
		edge.updateLag(seqsMessage{1: last + 5}, now.Add(time.Hour))
		return edge.Prepare("") == errStale
	})
	c.send(1, "next")
	eventually(t, "the edge has caught up", func() bool { return edge.Prepare("") == nil && edge.Replicas().Late == 0 })
}

// The lag of an edge is the time since it had the newest fact, also if it never has all facts when its report arrives.
func TestLag(t *testing.T) {
	var l realmLag
	now := time.Unix(1000, 0)
	for i := range realm.Seq(100) { // 2 facts a second, and the edge is always one behind
		l.record(10+i, 11+i, now)
		now = now.Add(reportInterval)
	}
	if facts, seconds := l.behind(110, now); facts != 1 || seconds > 1 {
		t.Errorf("an edge that keeps up: %d facts, %v s behind", facts, seconds)
	}
	for i := range realm.Seq(3000) { // it stops
		l.record(109, 111+i, now)
		now = now.Add(reportInterval)
	}
	facts, seconds := l.behind(3110, now)
	if facts != 3001 || seconds < 1500 || seconds > 1502 || len(l.samples) > maxLagSamples {
		t.Errorf("an edge that has stopped: %d facts, %v s behind, %d samples", facts, seconds, len(l.samples))
	}
	l.record(3110, 3110, now)
	if facts, seconds := l.behind(3110, now); facts != 0 || seconds != 0 {
		t.Errorf("an edge that has caught up: %d facts, %v s behind", facts, seconds)
	}
}

// noteLog is a log whose lines a test can read.
type noteLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *noteLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *noteLog) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// A node of another release with the same messages joins, and both sides warn, with both releases. A node with another
// version of the messages is refused. TestClusterLevel shows the same for rule levels.
func TestAnotherRelease(t *testing.T) {
	c := startTestCore(t, "")
	here, there := &noteLog{}, &noteLog{}
	c.Leader.Log = slog.New(slog.NewTextHandler(here, nil))
	same := startTestEdge(c, "b", nil)
	eventually(t, "the edge of the same release is connected", same.IsReady)
	if here.has("another release") {
		t.Error("the core warns of a node of its own release")
	}
	other := startTestEdge(c, "c", func(o *FollowerOptions) {
		o.Program, o.Log = "2", slog.New(slog.NewTextHandler(there, nil))
	})
	eventually(t, "the edge of another release is connected", other.IsReady)
	if want := `msg="a node runs another release: upgrade all nodes" node=c program=2 here=1`; !here.has(want) {
		t.Errorf("the core does not warn: %s", here.text.String())
	}
	if want := `msg="the core runs another release: upgrade all nodes" core=a program=1 here=2`; !there.has(want) {
		t.Errorf("the edge does not warn: %s", there.text.String())
	}
	if err := other.Prepare(""); err != nil {
		t.Errorf("the edge of another release does not serve: %v", err)
	}
	d, _ := joinEdge(t, c.Directory, "d")
	err := c.greet(d, greeting{Version: peer.Version + 1, Program: "3", Clock: time.Now().UnixMilli()})
	if !errors.Is(err, peer.ErrRefused) || !strings.Contains(err.Error(), "run the same release on both") {
		t.Errorf("a release with other messages: %v", err)
	}
}

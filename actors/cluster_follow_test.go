package actors

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors/delivery"
	"parley/actors/realm"
)

// followStage is three cores of which those that do not lead keep event queues, and clients that poll any of them.
type followStage struct {
	*cores
	random  *rand.Rand
	links   map[*core]*coreLink
	people  []realm.UserID
	clients []*movingClient
	sent    int
	ended   sync.WaitGroup

	nodesMu sync.Mutex
	nodes   []*Server // of the cores that run
}

// coreLink is the link of a core to the one that owns the organization.
type coreLink struct {
	*directLink
	to *Server // nil: it is cut
}

func newFollowStage(t *testing.T, seed uint64) *followStage {
	s := &followStage{cores: newCores(t, "a", "b", "c"), random: rand.New(rand.NewPCG(seed, 6)),
		links: map[*core]*coreLink{}}
	s.people = s.found("ann", "bo", "cy", "di")
	s.wait("the organization is open on all cores", func() bool {
		return !slices.ContainsFunc(s.list, func(c *core) bool { return c.srv.find(1) == nil })
	})
	s.connect()
	return s
}

// connect connects every core that runs with the owner of now.
func (s *followStage) connect() {
	owner := s.owner()
	var nodes []*Server
	for _, c := range s.list {
		if c.node == nil {
			continue
		}
		nodes = append(nodes, c.srv)
		l := s.links[c]
		if l == nil || l.edge != c.srv {
			l = &coreLink{directLink: &directLink{name: c.name, edge: c.srv}}
			l.directLink.cut.Store(true)
			s.links[c] = l
			c.srv.FollowOwner(l, func(request string) bool { return strings.HasPrefix(request, c.name+"-") })
		}
		switch {
		case c == owner || c.cut.Load():
			s.disconnect(c)
		case l.to != owner.srv:
			s.disconnect(c)
			l.to = owner.srv
			l.at.Store(owner.srv.ConnectEdge(c.name, l.directLink))
			l.directLink.cut.Store(false)
			s.catchUp(c, owner)
		}
	}
	s.nodesMu.Lock()
	s.nodes = nodes
	s.nodesMu.Unlock()
	for _, c := range s.clients {
		c.leave()
	}
}

// catchUp lets a core serve when it has the facts that the owner has.
func (s *followStage) catchUp(c, owner *core) {
	ctx, cancel := context.WithTimeout(s.t.Context(), clusterTimeout)
	defer cancel()
	if err := c.srv.WaitFor(ctx, 1, owner.srv.DurableSeq(1)); err != nil {
		s.t.Fatalf("%s does not follow %s: %v", c.name, owner.name, err)
	}
	c.srv.OwnerConnected(1)
	c.srv.PauseReplicas(false)
}

func (s *followStage) disconnect(c *core) {
	l := s.links[c]
	if l == nil || l.to == nil {
		return
	}
	c.srv.PauseReplicas(true)
	l.cutOff()
	for _, x := range s.list {
		if x.node != nil && x.srv == l.to {
			l.at.Load().Disconnect()
		}
	}
	l.to = nil
}

// killOne kills a core and starts it again later.
func (s *followStage) killOne(c *core) {
	for x, l := range s.links {
		if x == c || l.to == c.srv {
			s.disconnect(x)
		}
	}
	s.kill(c)
	s.connect()
	s.note(3)
	s.start(c)
	s.wait("the organization is open again", func() bool { return c.srv.find(1) != nil })
	s.connect()
}

// note sends some messages.
func (s *followStage) note(n int) {
	for range n {
		s.sent++
		s.send(s.people[s.sent%len(s.people)], fmt.Sprint(s.sent))
	}
}

func (s *followStage) node(r *rand.Rand) *Server {
	s.nodesMu.Lock()
	defer s.nodesMu.Unlock()
	return s.nodes[r.IntN(len(s.nodes))]
}

// join registers a client, at the owner or at another core.
func (s *followStage) join(follows bool) {
	c := &movingClient{user: s.people[s.random.IntN(len(s.people))], last: -1, move: make(chan struct{}, 1),
		seed: s.random.Uint64()}
	owner := s.owner()
	if !follows {
		c.queue = mustCall(s.t, owner.srv, c.user, "POST /register",
			params{"apply_markdown": "false"})["queue_id"].(string)
	} else {
		x := s.standby()
		q, _ := registerAt(s.t, owner.srv, s.links[x].directLink, c.user, fmt.Sprintf("%s-%d", x.name, len(s.clients)))
		c.queue = string(q.ID)
		if n := len(queuesHere(x.srv)); n == 0 {
			s.t.Errorf("the core that has registered a client keeps no queue")
		}
	}
	s.clients = append(s.clients, c)
	s.ended.Go(func() { c.run(s.t, s.node, nil, clusterTimeout) })
}

// step does one random thing.
func (s *followStage) step() {
	switch s.random.IntN(16) {
	case 0:
		s.killOne(s.list[s.random.IntN(len(s.list))])
	case 1, 2: // the leader becomes another core, which has queues
		to := s.standby()
		if err := s.owner().node.MoveLeader(to.name); err != nil {
			s.t.Log(err)
		}
		s.connect()
	case 3: // a core is cut off for a while
		c := s.list[s.random.IntN(len(s.list))]
		s.setCut(c, true)
		s.disconnect(c)
		s.note(2)
		s.connect()
		s.note(2)
		s.setCut(c, false)
		s.connect()
	case 4: // a link breaks and is made again
		s.disconnect(s.standby())
		s.note(1)
		s.connect()
	case 5, 6:
		s.node(s.random).sweepQueues()
		for _, c := range s.list {
			c.srv.tickRealms()
		}
	case 7, 8:
		s.clients[s.random.IntN(len(s.clients))].leave()
	default:
		s.note(1 + s.random.IntN(4))
	}
}

// Clients that poll any of three cores get every message once and in order under the ids of their queues, while the
// leadership moves, cores are killed and cut off, and links between them break. N and SEED make the test longer.
func TestClusterQueuesAtAnyCore(t *testing.T) {
	steps, seed := runsAndSeed(25, uint64(time.Now().UnixNano()%1e9))
	t.Logf("%d steps, SEED=%d", steps, seed)
	s := newFollowStage(t, seed)
	for i := range 12 {
		s.join(i%3 > 0)
	}
	s.note(3)
	for range steps {
		s.step()
		if t.Failed() {
			return
		}
	}
	s.send(s.people[0], "end")
	all := make(chan struct{})
	go func() { s.ended.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(clusterTimeout):
		t.Error("some clients have not got the last message")
	}
	s.compare()
	s.expectEqual()
}

// A user whose clients poll another node counts as connected there, so no notification is sent: the client has received
// a message when it has acknowledged it.
func TestDeliveryStateOfQueuesElsewhere(t *testing.T) {
	s := newAdoptionStage(t, 1, 1)
	defer s.close()
	ann, edge := s.people[0], s.links[0].edge
	q, _ := registerAt(t, s.core, s.links[0], ann, "e1-1")
	s.core.ReportPresence(1, ann, true)
	s.send("hi")
	seq := seqOf(t, s.core)
	expect := func(online, received bool) {
		t.Helper()
		if a, b := s.core.DeliveryState(1, ann, seq); a != online || b != received {
			t.Errorf("online %v, received %v; want %v, %v", a, b, online, received)
		}
	}
	expect(true, false)
	poll := params{"queue_id": string(q.ID), "last_event_id": -1, "dont_block": true}
	for edge.DurableSeq(1) < seq {
		time.Sleep(time.Millisecond)
	}
	events := mustCall(t, edge, ann, "GET /events", poll)["events"].([]any)
	poll["last_event_id"] = events[len(events)-1].(map[string]any)["id"]
	mustCall(t, edge, ann, "GET /events", poll)
	for end := time.Now().Add(clusterTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		edge.sweepQueues()
		if _, received := s.core.DeliveryState(1, ann, seq); received {
			break
		}
	}
	expect(true, true)
	if err := edge.CloseReplica(1); err != nil {
		t.Fatal(err)
	}
	mustCall(t, s.core, ann, "DELETE /events", params{"queue_id": string(q.ID)})
	expect(false, false)
}

// A new owner ignores what its session actors have reported as a core that followed: that was not about the queues of
// other cores, which still need the events.
func TestReportsFromBeforeTheOwnership(t *testing.T) {
	s := newFollowStage(t, 1)
	idle := s.register(s.people[1])
	s.note(3)
	c := s.standby()
	if err := s.owner().node.MoveLeader(c.name); err != nil {
		t.Fatal(err)
	}
	c = s.owner()
	r, seq := c.srv.find(1), c.srv.DurableSeq(1)
	for k := range SessionActors {
		c.srv.runtime.Send(r.pid, delivery.AckReport{SessionActor: k, Seq: seq, Newest: seq})
	}
	digestOf(t, c.srv) // after the reports
	if n := c.srv.Metrics.UnackedFacts.Load(); n < 3 {
		t.Errorf("the owner stores the events of %d facts; three have not reached the idle client", n)
	}
	idle.until("3")
}

// After a planned move of the leadership the old owner follows with the state that it has. It still has the events for
// clients of other cores, which no session actor of its own has reported: when it is the owner again, and such a core
// is killed, the clients get them.
func TestPlannedMoveKeepsState(t *testing.T) {
	s := newFollowStage(t, 1)
	first := s.owner()
	i := slices.IndexFunc(s.list, func(c *core) bool { return c != first })
	host := s.list[i]
	next := s.list[i+1+slices.IndexFunc(s.list[i+1:], func(c *core) bool { return c != first })]
	q, _ := registerAt(t, first.srv, s.links[host].directLink, s.people[1], host.name+"-1")
	idle := &client{all: s.cores, user: s.people[1], queue: string(q.ID), last: -1}
	s.note(3)
	state := func() (x any) {
		s.wait("a view of the first owner", func() (done bool) {
			var err error
			x, err = first.srv.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
				return v.Realm, nil
			})
			return err == nil
		})
		return x
	}
	before := state()
	move := func(from, to *core) {
		t.Helper()
		if err := from.node.MoveLeader(to.name); err != nil {
			t.Fatal(err)
		}
		s.wait("another owner", func() bool { return to.srv.Owns(1) && !from.srv.Owns(1) })
		s.connect()
	}
	move(first, next)
	if state() != before {
		t.Error("the old owner has loaded its state again")
	}
	for range 2 { // the owner journals the acknowledgements
		for _, c := range s.list {
			c.srv.sweepQueues()
			c.srv.tickRealms()
		}
		s.note(1)
	}
	move(next, first)
	s.killOne(host)
	idle.until("8") // killOne sends three
	if want := []string{"1", "2", "3", "4", "5", "6", "7", "8"}; !slices.Equal(idle.got, want) {
		t.Errorf("the client of the killed core got %q", idle.got)
	}
	s.expectEqual()
}

// A poll with a last_event_id beyond all facts is refused by the owner, also while edges are connected, and whether the
// queue is kept there or by an edge.
func TestPollAheadOfAllFacts(t *testing.T) {
	s := newAdoptionStage(t, 1, 1)
	defer s.close()
	q, _ := registerAt(t, s.core, s.links[0], s.people[0], "e1-1")
	for range 2 {
		select {
		case a := <-call(s.core, s.people[0], "GET /events",
			params{"queue_id": string(q.ID), "last_event_id": 1 << 40}):
			if a.status != 400 {
				t.Errorf("answered %d %v", a.status, a.body)
			}
		case <-time.After(clusterTimeout):
			t.Fatal("the poll is not answered")
		}
	}
}

// compare requires that each client has received all messages in the order of the channel.
func (s *followStage) compare() {
	a := mustCall(s.t, s.owner().srv, s.people[0], "GET /messages",
		params{"anchor": "newest", "num_before": 5000, "num_after": 0, "apply_markdown": false})
	var log []string
	for _, m := range a["messages"].([]any) {
		if text := fmt.Sprint(m.(map[string]any)["content"]); !strings.Contains(text, "channel created") {
			log = append(log, text)
		}
	}
	for _, c := range s.clients {
		if !slices.Equal(c.texts, log) {
			s.t.Errorf("user %d, queue %s: %q\ninstead of %q", c.user, c.queue, c.texts, log)
		}
	}
	kept := 0
	for _, c := range s.list {
		kept += int(c.srv.Metrics.QueuesAdopted.Load())
	}
	s.t.Logf("%d messages to %d clients; %d queues moved to another core", len(log), len(s.clients), kept)
}

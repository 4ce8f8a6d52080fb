package actors

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot"
)

// adoptionStage is a core and some edges in one process, and clients that poll any of them.
type adoptionStage struct {
	t       *testing.T
	random  *rand.Rand
	fs      *vfs.MemFS
	disk    snapshot.Disk
	source  *crashingSource
	core    *Server
	links   []*directLink
	names   int
	people  []realm.UserID
	clients []*movingClient
	sent    int
	ended   sync.WaitGroup
	done    chan struct{}

	mu    sync.RWMutex // guards nodes
	nodes []*Server    // the core first
}

// crashingSource follows the disk of the core. A cut one gets nothing any more, like the connection to a killed core.
type crashingSource struct {
	mu      sync.RWMutex
	disk    snapshot.Disk
	process int // counts the restarts of the core
	down    bool
}

var errDown = errors.New("the core is down")

func (s *crashingSource) now() (d snapshot.Disk, process int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.down {
		err = errDown
	}
	return s.disk, s.process, err
}

func (s *crashingSource) LoadReplica(id realm.ID, r *realm.Realm, t *presence.Table) (realm.Seq, error) {
	d, _, err := s.now()
	if err != nil {
		return 0, err
	}
	return d.LoadReplica(id, r, t)
}

func (s *crashingSource) Follow(
	id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error),
) (stop func()) {
	d, process, err := s.now()
	if err != nil {
		done(err)
		return func() {}
	}
	return d.Follow(id, after, func(b realm.Batch) error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		if s.process != process {
			return errDown
		}
		return fn(b)
	}, done)
}

func (s *crashingSource) Decode(fact []byte) (realm.Fact, error) { return snapshot.Disk{}.Decode(fact) }

func (s *crashingSource) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	d, _, err := s.now()
	if err != nil {
		return realm.Body{}, false, err
	}
	return d.Text(id, ref)
}

// movingClient is a client with one queue that polls one node after the other.
type movingClient struct {
	user  realm.UserID
	queue string
	last  int64
	texts []string
	move  chan struct{} // has room for one: leave the poll and go to another node
	seed  uint64
}

// node returns a random node that runs.
func (s *adoptionStage) node(r *rand.Rand) *Server {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nodes[r.IntN(len(s.nodes))]
}

// run polls until the last message has arrived, done is closed, or the test has failed. With a limit above 0, it is an
// error if a poll is not answered for so long.
func (c *movingClient) run(t *testing.T, node func(*rand.Rand) *Server, done <-chan struct{}, limit time.Duration) {
	r := rand.New(rand.NewPCG(c.seed, 1))
	at := node(r)
	for !t.Failed() {
		answered := call(at, c.user, "GET /events", params{"queue_id": c.queue, "last_event_id": c.last})
		var late <-chan time.Time
		if limit > 0 {
			late = time.After(limit)
		}
		select {
		case <-c.move:
			at = node(r)
			continue
		case <-done:
			return
		case <-late:
			t.Errorf("user %d: queue %s after %d: no answer", c.user, c.queue, c.last)
			return
		case a := <-answered:
			if a.status == 503 {
				time.Sleep(time.Millisecond)
				at = node(r)
				continue
			}
			if a.status != 200 {
				t.Errorf("user %d: queue %s after %d: %d %v", c.user, c.queue, c.last, a.status, a.body)
				return
			}
			for _, e := range a.body["events"].([]any) {
				if c.take(t, e.(map[string]any)) {
					return
				}
			}
			if r.IntN(20) == 0 {
				at = node(r)
			}
		}
	}
}

// leave makes the client go to another node.
func (c *movingClient) leave() {
	select {
	case c.move <- struct{}{}:
	default:
	}
}

// take notes an event and reports whether it is the last message.
func (c *movingClient) take(t *testing.T, e map[string]any) (end bool) {
	id := int64(e["id"].(float64))
	if id <= c.last {
		t.Errorf("user %d: event %d after %d", c.user, id, c.last)
	}
	c.last = id
	if e["type"] != "message" {
		return false
	}
	text := e["message"].(map[string]any)["content"].(string)
	c.texts = append(c.texts, text)
	return text == "end"
}

func newAdoptionStage(t *testing.T, seed uint64, edges int) *adoptionStage {
	s := &adoptionStage{t: t, random: rand.New(rand.NewPCG(seed, 5)), fs: vfs.NewCrashableMem(),
		done: make(chan struct{})}
	s.disk = openStore(t, s.fs)
	s.source = &crashingSource{disk: s.disk}
	s.core = openCrashing(t, s.disk)
	s.people = createOrganization(t, s.core, "ann", "bo", "cy", "di", "eve")
	s.nodes = []*Server{s.core}
	for range edges {
		s.links = append(s.links, s.openEdge())
		s.nodes = append(s.nodes, s.links[len(s.links)-1].edge)
	}
	return s
}

// openCrashing opens a server that may still run when its disk is gone.
func openCrashing(t testing.TB, d snapshot.Disk) *Server {
	return openServerWith(t, d, Options{Fatal: func(err error) {
		if !errors.Is(err, snapshot.ErrClosed) {
			t.Errorf("fatal: %v", err)
		}
	}})
}

func (s *adoptionStage) openEdge() *directLink {
	s.names++
	return openEdge(s.t, s.core, s.source, fmt.Sprint("e", s.names))
}

// join registers a client at a random node.
func (s *adoptionStage) join() {
	c := &movingClient{user: s.people[s.random.IntN(len(s.people))], last: -1, move: make(chan struct{}, 1),
		seed: s.random.Uint64()}
	if i := s.random.IntN(len(s.links) + 1); i == len(s.links) {
		c.queue = mustCall(s.t, s.core, c.user, "POST /register",
			params{"apply_markdown": "false"})["queue_id"].(string)
	} else {
		link := s.links[i]
		q, _ := registerAt(s.t, s.core, link, c.user, fmt.Sprintf("%s-%d", link.name, len(s.clients)))
		c.queue = string(q.ID)
	}
	s.clients = append(s.clients, c)
}

func (s *adoptionStage) send(text string) {
	s.sent++
	mustCall(s.t, s.core, s.people[s.sent%len(s.people)], "POST /messages",
		params{"type": "stream", "to": "one", "topic": "t", "content": text})
}

// replace puts another node in the place of one, and moves the clients.
func (s *adoptionStage) replace(i int, by *Server) {
	s.mu.Lock()
	s.nodes[i] = by
	s.mu.Unlock()
	for _, c := range s.clients {
		c.leave()
	}
}

// killEdge cuts the connections of an edge and starts another one.
func (s *adoptionStage) killEdge(i int) {
	dead := s.links[i]
	dead.cutOff()
	dead.at.Load().Disconnect()
	s.links[i] = s.openEdge()
	s.replace(i+1, s.links[i].edge)
	closeServer(s.t, dead.edge)
}

// killCore kills the core and starts it again with the same disk.
func (s *adoptionStage) killCore() {
	old, oldDisk := s.core, s.disk
	s.source.mu.Lock()
	s.source.process, s.source.down = s.source.process+1, true
	s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{})
	s.source.mu.Unlock()
	for _, l := range s.links {
		l.cutOff()
	}
	s.disk = openStore(s.t, s.fs)
	s.core = openCrashing(s.t, s.disk)
	s.source.mu.Lock()
	s.source.disk, s.source.down = s.disk, false
	s.source.mu.Unlock()
	for _, l := range s.links {
		l.connect(s.core)
	}
	s.replace(0, s.core)
	closeServer(s.t, old)
	if err := oldDisk.Close(); err != nil {
		s.t.Error(err)
	}
}

// step does one random thing.
func (s *adoptionStage) step() {
	switch s.random.IntN(40) {
	case 0:
		s.killEdge(s.random.IntN(len(s.links)))
	case 1:
		s.killCore()
	case 2: // a connection breaks and is made again
		s.links[s.random.IntN(len(s.links))].connect(s.core)
	case 3:
		if err := s.core.Save(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	case 4, 5, 6:
		s.node(s.random).sweepQueues()
	case 7, 8, 9, 10:
		s.clients[s.random.IntN(len(s.clients))].leave()
	case 11: // an event without a fact
		mustCall(s.t, s.core, s.people[0], "POST /typing", params{"type": "direct", "op": "start", "to": s.people[1:2]})
	default:
		s.send(fmt.Sprint(s.sent))
	}
}

// Clients that poll the core or any edge, whichever, get every message once and in order under the ids of their queues,
// while edges and the core are killed and started again, connections break, and events are dropped when they are
// acknowledged.
func TestAdoption(t *testing.T) {
	n, seed := runsAndSeed(3, uint64(time.Now().UnixNano()%1e9))
	for i := range n {
		playAdoption(t, seed+uint64(i))
		if t.Failed() {
			t.Fatalf("repeat with SEED=%d N=1", seed+uint64(i))
		}
	}
	t.Logf("%d runs from SEED=%d", n, seed)
}

func playAdoption(t *testing.T, seed uint64) {
	s := newAdoptionStage(t, seed, 3)
	for range 12 {
		s.join()
	}
	for _, c := range s.clients {
		s.ended.Go(func() { c.run(s.t, s.node, s.done, 0) })
	}
	for range 250 {
		s.step()
	}
	s.send("end")
	all := make(chan struct{})
	go func() { s.ended.Wait(); close(all) }()
	select {
	case <-all:
	case <-time.After(clusterTimeout):
		t.Error("some clients have not got the last message")
		close(s.done)
		<-all
	}
	for _, c := range s.clients {
		for i, text := range c.texts {
			want := fmt.Sprint(i)
			if i == s.sent-1 {
				want = "end"
			}
			if text != want {
				t.Errorf("user %d, queue %s: message %d is %q: %q", c.user, c.queue, i, text, c.texts)
				break
			}
		}
		if len(c.texts) != s.sent {
			t.Errorf("user %d, queue %s: %d of %d messages", c.user, c.queue, len(c.texts), s.sent)
		}
	}
	s.checkDropped()
	s.close()
}

func (s *adoptionStage) close() {
	for _, l := range s.links {
		closeServer(s.t, l.edge)
	}
	closeServer(s.t, s.core)
	if err := s.disk.Close(); err != nil {
		s.t.Error(err)
	}
}

// checkDropped waits until the core has dropped the events that were acknowledged, and every queue has one home.
func (s *adoptionStage) checkDropped() {
	deadline := time.Now().Add(clusterTimeout)
	for {
		queues, facts := 0, s.core.Metrics.UnackedFacts.Load()
		for _, n := range s.nodes {
			n.sweepQueues()
			queues += len(queuesHere(n))
		}
		if queues == len(s.clients) && facts == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%d clients have %d queues; the core stores the events of %d facts", len(s.clients), queues,
				facts)
			return
		}
		for i, c := range s.clients { // the last acknowledgements
			a := <-call(s.nodes[i%len(s.nodes)], c.user, "GET /events",
				params{"queue_id": c.queue, "last_event_id": c.last, "dont_block": true})
			if a.status == 200 {
				for _, e := range a.body["events"].([]any) {
					c.take(s.t, e.(map[string]any))
				}
			}
		}
	}
}

// A client that polls two nodes at the same time has one queue: the newest poll gets the events, the other one is
// answered with none.
func TestNewestPollWins(t *testing.T) {
	s := newAdoptionStage(t, 1, 2)
	q, _ := registerAt(t, s.core, s.links[0], s.people[0], "e1-1")
	first := call(s.links[0].edge, s.people[0], "GET /events", params{"queue_id": string(q.ID), "last_event_id": -1})
	for s.links[0].edge.Metrics.ParkedPolls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for _, at := range []*Server{s.links[1].edge, s.core, s.links[0].edge} {
		next := call(at, s.people[0], "GET /events", params{"queue_id": string(q.ID), "last_event_id": -1})
		a := <-first
		if events, _ := a.body["events"].([]any); a.status != 200 || len(events) != 0 {
			t.Fatalf("the older poll is answered %d %v", a.status, a.body)
		}
		first = next
	}
	s.send("hi")
	if a := <-first; a.status != 200 || len(a.body["events"].([]any)) != 1 {
		t.Errorf("the newest poll is answered %d %v", a.status, a.body)
	}
	other := s.people[1]
	a := <-call(s.links[1].edge, other, "GET /events", params{"queue_id": string(q.ID), "last_event_id": -1})
	if a.body["code"] != "BAD_EVENT_QUEUE_ID" {
		t.Errorf("another user is answered %d %v", a.status, a.body)
	}
	a = <-call(s.links[1].edge, other, "GET /events", params{"queue_id": "unknown", "last_event_id": -1})
	if a.body["code"] != "BAD_EVENT_QUEUE_ID" {
		t.Errorf("a poll for an unknown queue is answered %d %v", a.status, a.body)
	}
	s.close()
}

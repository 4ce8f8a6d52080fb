package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot"
)

// directLink connects an edge and the owner in one process, in place of a link between two. A cut one loses everything.
type directLink struct {
	name string
	edge *Server
	at   atomic.Pointer[Edge] // the owner's end
	cut  atomic.Bool

	mu      sync.Mutex
	calls   int
	pending map[int]func(delivery.Adopted, error)
}

// send passes a call of the edge to the owner.
func (l *directLink) send(do func(*Edge)) {
	if !l.cut.Load() {
		do(l.at.Load())
	}
}

func (l *directLink) CloseQueue(id realm.ID, q realm.QueueID) {
	l.send(func(e *Edge) { e.CloseQueue(id, q) })
}

func (l *directLink) Tick(id realm.ID) { l.send(func(e *Edge) { e.srv.Tick(id) }) }

func (l *directLink) AdoptQueue(id realm.ID, a delivery.Adoption, answer func(delivery.Adopted, error)) {
	if l.cut.Load() {
		answer(delivery.Adopted{}, errors.New("the connection is cut"))
		return
	}
	l.mu.Lock()
	l.calls++
	n := l.calls
	if l.pending == nil {
		l.pending = map[int]func(delivery.Adopted, error){}
	}
	l.pending[n] = answer
	l.mu.Unlock()
	l.at.Load().AdoptQueue(id, a, func(x delivery.Adopted, err error) { l.answer(n, x, err) })
}

func (l *directLink) answer(n int, x delivery.Adopted, err error) {
	l.mu.Lock()
	answer := l.pending[n]
	delete(l.pending, n)
	l.mu.Unlock()
	if answer != nil {
		answer(x, err)
	}
}

// cutOff cuts the connection. The calls in progress fail.
func (l *directLink) cutOff() {
	l.cut.Store(true)
	l.mu.Lock()
	n := l.calls
	l.mu.Unlock()
	for i := range n {
		l.answer(i+1, delivery.Adopted{}, errors.New("the connection broke"))
	}
}

func (l *directLink) ReportQueues(id realm.ID, k delivery.HostedQueues) {
	l.send(func(e *Edge) { e.ReportQueues(id, k) })
}

func (l *directLink) ReportAcks(id realm.ID, a delivery.QueueAcks) {
	l.send(func(e *Edge) { e.ReportAcks(id, a) })
}

func (l *directLink) ReportPresence(id realm.ID, list []presence.Report) {
	l.send(func(e *Edge) { e.ReportPresence(id, list) })
}

func (l *directLink) DropQueues(id realm.ID, list []delivery.DroppedQueue) {
	if !l.cut.Load() {
		l.edge.DropQueues(id, list)
	}
}

func (l *directLink) EvictQueues(id realm.ID, before realm.Seq) { l.edge.EvictQueues(id, before) }

// connect connects the edge with an owner again.
func (l *directLink) connect(core *Server) {
	l.cutOff()
	before := l.at.Swap(core.ConnectEdge(l.name, l))
	before.Disconnect()
	l.cut.Store(false)
	l.edge.OwnerConnected(1)
}

// openEdge opens a server whose only realm is a replica of that of another server.
func openEdge(t testing.TB, core *Server, from ReplicaSource, name string) *directLink {
	t.Helper()
	l := &directLink{name: name, edge: openServer(t, NoDisk{})}
	l.at.Store(core.ConnectEdge(name, l))
	err := l.edge.OpenReplica(1, ReplicaOptions{Source: from, Owner: l,
		Home: func(request string) bool { return strings.HasPrefix(request, name+"-") }})
	if err != nil {
		t.Fatal(err)
	}
	l.edge.OwnerConnected(1)
	return l
}

// waitFor waits until an edge has everything that the core has.
func waitFor(t testing.TB, core, edge *Server) {
	t.Helper()
	if err := edge.WaitFor(t.Context(), 1, seqOf(t, core)); err != nil {
		t.Fatal(err)
	}
}

func seqOf(t testing.TB, srv *Server) realm.Seq {
	t.Helper()
	x, err := srv.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Seq(), nil })
	if err != nil {
		t.Fatal(err)
	}
	return x.(realm.Seq)
}

func digestOf(t testing.TB, srv *Server) string {
	t.Helper()
	x, err := srv.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
		return snapshot.StateDigest(v.Realm).String(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return x.(string)
}

// registerAt opens a queue at an edge: the owner records it, and the edge builds the state.
func registerAt(t testing.TB, core *Server, l *directLink, u realm.UserID, request string) (q *realm.Queue,
	at realm.Seq) {
	t.Helper()
	edge := l.edge
	c := realm.Caller{User: u, Client: "test", Edge: l.at.Load().Key()}
	wait, _ := edge.ExpectRequest(1, c, request, func(v realm.View, opened *realm.Queue) (any, error) {
		at = v.Seq()
		return opened, nil
	})
	c.Request = request
	_, err := core.Turn(1, c, func(t *realm.Turn) (any, error) {
		return realm.Register{State: func(realm.View, *realm.Queue) (any, error) { return nil, nil }}.Decide(t)
	})
	if err != nil {
		t.Fatal(err)
	}
	opened, err := wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q = opened.(*realm.Queue)
	if q == nil || at != q.At {
		t.Fatalf("the state is of fact %d, the queue %+v", at, q)
	}
	if err := edge.WaitFor(t.Context(), 1, at); err != nil {
		t.Fatal(err)
	}
	return q, at
}

// drain returns the events of a queue except heartbeats and those about the restart.
func drain(t testing.TB, srv *Server, u realm.UserID, queue string) (events []string) {
	t.Helper()
	a := mustCall(t, srv, u, "GET /events", params{"queue_id": queue, "last_event_id": -1, "dont_block": true})
	for _, e := range a["events"].([]any) {
		m := e.(map[string]any)
		if m["type"] == "heartbeat" || m["type"] == "restart" {
			continue
		}
		delete(m, "id") // relative to the queue's first fact
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, string(data))
	}
	return events
}

// A replica has the state of its owner, answers the same reads, refuses commands, and sends the same events to the
// queues that were registered through it, each by one node only.
func TestReplica(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 4))
	d := openStore(t, vfs.NewMem())
	core := openServer(t, d)
	people := createOrganization(t, core, "ann", "bo", "cy")
	ann, bo := people[0], people[1]
	mustCall(t, core, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": "early"})
	if err := core.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	links := []*directLink{openEdge(t, core, d, "e0"), openEdge(t, core, d, "e1")}
	edges := []*Server{links[0].edge, links[1].edge}
	local := mustCall(t, core, bo, "POST /register", params{})["queue_id"].(string)
	q, _ := registerAt(t, core, links[0], bo, "e0-1")
	remote := string(q.ID)
	for i := range 60 {
		u := people[rng.IntN(len(people))]
		switch rng.IntN(4) {
		case 0:
			mustCall(
				t,
				core,
				u,
				"POST /messages",
				params{"type": "direct", "to": []realm.UserID{bo}, "content": fmt.Sprint(i)},
			)
		case 1:
			mustCall(t, core, u, "POST /users/me/subscriptions",
				params{"subscriptions": []map[string]string{{"name": fmt.Sprint("new ", i)}}})
		case 2:
			if err := core.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
		default:
			mustCall(t, core, u, "POST /messages",
				params{"type": "stream", "to": "one", "topic": fmt.Sprint(rng.IntN(3)), "content": fmt.Sprint(i)})
		}
	}
	want := digestOf(t, core)
	messages := params{"anchor": "newest", "num_before": 100, "num_after": 0, "narrow": []string{}}
	read := fmt.Sprint(mustCall(t, core, bo, "GET /messages", messages))
	for i, edge := range edges {
		waitFor(t, core, edge)
		if got := digestOf(t, edge); got != want {
			t.Errorf("edge %d has the state %s, the core %s", i, got, want)
		}
		if got := fmt.Sprint(mustCall(t, edge, bo, "GET /messages", messages)); got != read {
			t.Errorf("edge %d reads\n%s\nthe core\n%s", i, got, read)
		}
		a := <-call(edge, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": "no"})
		if a.status != 503 {
			t.Errorf("edge %d answers a command with %d %v", i, a.status, a.body)
		}
		if edge.Owns(1) {
			t.Errorf("edge %d owns the realm", i)
		}
	}
	if n := len(queuesHere(core)); n != 1 {
		t.Errorf("the core keeps %d queues, want its own one", n)
	}
	here, there := drain(t, core, bo, local), drain(t, edges[0], bo, remote)
	if len(here) < 10 || fmt.Sprint(here) != fmt.Sprint(there) {
		t.Errorf("the edge sent\n%s\nthe core\n%s", strings.Join(there, "\n"), strings.Join(here, "\n"))
	}
	for _, srv := range append(edges, core) {
		closeServer(t, srv)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func hasQueue(t testing.TB, srv *Server, q realm.QueueID) bool {
	t.Helper()
	x, err := srv.View(
		1,
		realm.Caller{System: true},
		func(v realm.View) (any, error) { return v.FindQueue(q) != nil, nil },
	)
	if err != nil {
		t.Fatal(err)
	}
	return x.(bool)
}

// queuesHere returns the queues that a node keeps.
func queuesHere(srv *Server) (all []delivery.QueueRef) {
	r := srv.find(1)
	reply := make(chan []delivery.QueueRef, SessionActors)
	r.sessions.SendAll(delivery.List{Reply: func(list []delivery.QueueRef) { reply <- list }})
	for range SessionActors {
		all = append(all, <-reply...)
	}
	return all
}

// lostSource is a source whose stream can be cut, with a number that is not in the journal any more.
type lostSource struct {
	snapshot.Disk
	streams chan *lostStream
}

type lostStream struct {
	stop func()
	done func(error)
}

func (s *lostSource) Follow(
	id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error),
) (stop func()) {
	if after == 0 { // until the organization is founded
		return s.Disk.Follow(id, after, fn, done)
	}
	stop = s.Disk.Follow(id, after, fn, func(error) {})
	s.streams <- &lostStream{stop, done}
	return stop
}

// A replica whose facts are not in the journal any more loads the rows again. Its queues have missed events, so it
// drops them and gets them back with all their events when they are polled; meanwhile it refuses to answer from its
// old state.
func TestReplicaThatIsBehindLoadsAgain(t *testing.T) {
	d := openStore(t, vfs.NewMem())
	core := openServer(t, d)
	people := createOrganization(t, core, "ann", "bo")
	ann, bo := people[0], people[1]
	source := &lostSource{d, make(chan *lostStream, 100)}
	link := openEdge(t, core, source, "e0")
	edge := link.edge
	q, _ := registerAt(t, core, link, bo, "e0-1")
	stream := <-source.streams
	stream.stop()
	mustCall(t, core, ann, "POST /messages", params{"type": "direct", "to": []realm.UserID{bo}, "content": "missed"})
	if err := core.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	stream.done(fmt.Errorf("test: %w", realm.ErrBehind))
	waitFor(t, core, edge)
	if got, want := digestOf(t, edge), digestOf(t, core); got != want {
		t.Errorf("the edge has the state %s, the core %s", got, want)
	}
	expectTexts(t, edge, bo, string(q.ID), "missed")
	next, _ := registerAt(t, core, link, bo, "e0-2")
	mustCall(t, core, ann, "POST /messages", params{"type": "direct", "to": []realm.UserID{bo}, "content": "after"})
	waitFor(t, core, edge)
	expectTexts(t, edge, bo, string(next.ID), "after")
	edge.PauseReplicas(true)
	if a := <-call(edge, bo, "GET /users", params{}); a.status != 503 {
		t.Errorf("a paused replica answers %d %v", a.status, a.body)
	}
	closeServer(t, edge)
	closeServer(t, core)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// savingSource is a source whose first snapshot is written after its rows have been read, and whose journal does not
// keep the facts of these rows.
type savingSource struct {
	snapshot.Disk
	save func() error
}

func (s *savingSource) LoadReplica(id realm.ID, r *realm.Realm, t *presence.Table) (realm.Seq, error) {
	at, err := s.Disk.LoadReplica(id, r, t)
	if save := s.save; save != nil && err == nil {
		s.save = nil
		err = save()
	}
	return at, err
}

func (s *savingSource) Follow(
	id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error),
) (stop func()) {
	if after == 0 {
		done(fmt.Errorf("test: %w", realm.ErrBehind))
		return func() {}
	}
	return s.Disk.Follow(id, after, fn, done)
}

// A replica opens although the owner writes the first snapshot of the organization at the same moment.
func TestReplicaOpensDuringFirstSnapshot(t *testing.T) {
	d := openStore(t, vfs.NewMem())
	core := openServer(t, d)
	ann := createOrganization(t, core, "ann")[0]
	link := openEdge(t, core, &savingSource{d, func() error { return core.Save(t.Context()) }}, "e0")
	q, _ := registerAt(t, core, link, ann, "e0-1")
	mustCall(t, core, ann, "POST /messages", params{"type": "direct", "to": []realm.UserID{ann}, "content": "hello"})
	waitFor(t, core, link.edge)
	expectTexts(t, link.edge, ann, string(q.ID), "hello")
	closeServer(t, link.edge)
	closeServer(t, core)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// WaitFor and an expected request end with their context.
func TestReplicaWaitsEnd(t *testing.T) {
	d := openStore(t, vfs.NewMem())
	core := openServer(t, d)
	people := createOrganization(t, core, "ann")
	edge := openEdge(t, core, d, "e0").edge
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := edge.WaitFor(ctx, 1, 1<<40); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a fact that does not exist: %v", err)
	}
	wait, _ := edge.ExpectRequest(1, realm.Caller{User: people[0]}, "e0-9", nil)
	if _, err := wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a request that is not sent: %v", err)
	}
	wait, _ = core.ExpectRequest(1, realm.Caller{}, "e0-9", nil)
	if _, err := wait(t.Context()); err == nil {
		t.Error("an owner expects a request")
	}
	closeServer(t, edge)
	closeServer(t, core)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// movingSource follows the disk of the process that the core is now.
type movingSource struct{ disk atomic.Pointer[snapshot.Disk] }

func (s *movingSource) LoadReplica(id realm.ID, r *realm.Realm, t *presence.Table) (realm.Seq, error) {
	return s.disk.Load().LoadReplica(id, r, t)
}

func (s *movingSource) Follow(
	id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error),
) (stop func()) {
	return s.disk.Load().Follow(id, after, fn, done)
}

func (s *movingSource) Decode(fact []byte) (realm.Fact, error) { return s.disk.Load().Decode(fact) }

func (s *movingSource) Text(id realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	return s.disk.Load().Text(id, ref)
}

// A core that is restarted does not end the queues that an edge keeps, and they get the events after the restart.
func TestCoreRestartsUnderReplica(t *testing.T) {
	fs := vfs.NewMem()
	d := openStore(t, fs)
	core := openServer(t, d)
	people := createOrganization(t, core, "ann", "bo")
	ann, bo := people[0], people[1]
	source := &movingSource{}
	source.disk.Store(&d)
	link := openEdge(t, core, source, "e0")
	edge := link.edge
	q, _ := registerAt(t, core, link, bo, "e0-1")
	mustCall(t, core, ann, "POST /messages", params{"type": "direct", "to": []realm.UserID{bo}, "content": "before"})
	waitFor(t, core, edge)
	closeServer(t, core)
	next := openAgain(t, fs, d)
	source.disk.Store(&next)
	var elapsed atomic.Int64
	core = openServerWith(t, next, Options{Elapsed: func() time.Duration { return time.Duration(elapsed.Load()) }})
	if here := queuesHere(edge); len(here) != 1 || here[0] != (delivery.QueueRef{User: bo, ID: q.ID}) {
		t.Fatalf("the edge keeps %v", here)
	}
	link.connect(core)
	for len(queuesHere(core)) > 0 { // the edge says that it keeps the queue
		time.Sleep(time.Millisecond)
	}
	elapsed.Store(int64(2 * realm.MaxIdle * time.Second))
	core.sweepQueues()
	if n := len(queuesHere(core)); n != 0 {
		t.Errorf("the core keeps %d queues, too", n)
	}
	mustCall(t, core, ann, "POST /messages", params{"type": "direct", "to": []realm.UserID{bo}, "content": "after"})
	waitFor(t, core, edge)
	if !hasQueue(t, core, q.ID) {
		t.Error("the core has closed the queue of the edge")
	}
	expectTexts(t, edge, bo, string(q.ID), "before", "after")
	closeServer(t, edge)
	closeServer(t, core)
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
}

// openAgain closes a store and opens it again.
func openAgain(t testing.TB, fs vfs.FS, d snapshot.Disk) snapshot.Disk {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return openStore(t, fs)
}

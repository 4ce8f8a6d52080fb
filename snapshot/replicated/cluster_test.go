package replicated

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/codec"
)

// testTimeout is how long a test waits for something that must happen.
const testTimeout = time.Minute

// testElection is long enough for a busy machine, and short enough for tests with many elections.
const testElection = 500 * time.Millisecond

// testCheckpoints makes the nodes of every test compare their logs several times, also between two elections.
const testCheckpoints = 50 * time.Millisecond

// network connects the nodes of a test by loopback connections, which can be cut.
type network struct {
	mu    sync.Mutex
	cut   map[string]bool // addresses of nodes that are cut off
	conns map[net.Conn]string
	flips map[string]bool // addresses of nodes that get one flipped bit; see flip
	done  int             // bits that were flipped
	held  *heldAnswers    // nil: no answers are held
}

// heldAnswers are the answers that wait in the sockets of a node whose process is stopped.
type heldAnswers struct {
	own     string // address of the node
	arrived chan string
	release chan struct{}
	cut     bool // nothing that the node writes is sent
}

// holdAnswers holds the answers that a node gets from now on.
func (w *network) holdAnswers(own string) *heldAnswers {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = &heldAnswers{own: own, arrived: make(chan string, 1000), release: make(chan struct{})}
	return w.held
}

// heldBy returns the held answers of a node, or nil.
func (w *network) heldBy(own string) *heldAnswers {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil || w.held.own != own {
		return nil
	}
	return w.held
}

// cutWrites lets nothing that the node writes be sent any more.
func (w *network) cutWrites() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held.cut = true
}

func (c *flippingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if h := c.network.heldBy(c.own); h != nil {
		h.arrived <- c.to
		<-h.release
	}
	return n, err
}

// testLinks are the links of one node.
type testLinks struct {
	net.Listener
	network *network
	own     string
}

func newNetwork() *network {
	return &network{cut: map[string]bool{}, conns: map[net.Conn]string{}, flips: map[string]bool{}}
}

// flip changes one bit in the middle of the next large part that is sent to a node.
func (w *network) flip(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flips[address] = true
}

// flipped returns how many bits were changed.
func (w *network) flipped() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// flippingConn is a connection to a node; see network.flip.
type flippingConn struct {
	net.Conn
	network *network
	own, to string
}

func (c *flippingConn) Write(p []byte) (int, error) {
	c.network.mu.Lock()
	if h := c.network.held; h != nil && h.own == c.own && h.cut {
		c.network.mu.Unlock()
		return 0, errors.New("the link is cut")
	}
	flip := len(p) >= 2000 && c.network.flips[c.to]
	if flip {
		delete(c.network.flips, c.to)
		c.network.done++
		p = append([]byte{}, p...)
		p[len(p)/2] ^= 4
	}
	c.network.mu.Unlock()
	return c.Conn.Write(p)
}

func (w *network) listen(t testing.TB, address string) *testLinks {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return &testLinks{l, w, l.Addr().String()}
}

func (l *testLinks) Dial(to string, timeout time.Duration) (net.Conn, error) {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.network.cut[l.own] || l.network.cut[to] {
		return nil, errors.New("the link is cut")
	}
	c, err := net.DialTimeout("tcp", to, timeout)
	if err != nil {
		return nil, err
	}
	l.network.conns[c] = l.own + " " + to
	return &flippingConn{c, l.network, l.own, to}, nil
}

// setCut cuts a node off, or connects it again.
func (w *network) setCut(address string, on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[address] = on
	for c, ends := range w.conns {
		if on && bytes.Contains([]byte(ends), []byte(address)) {
			c.Close()
			delete(w.conns, c)
		}
	}
}

// cluster is the nodes of a test.
type cluster struct {
	t       testing.TB
	network *network
	nodes   map[string]*Node
	disks   map[string]*vfs.MemFS
	address map[string]string
	change  func(*Options)
}

// newCluster starts a cluster whose first node is "a", and adds the others as voters.
func newCluster(t testing.TB, change func(*Options), names ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, network: newNetwork(), nodes: map[string]*Node{}, disks: map[string]*vfs.MemFS{},
		address: map[string]string{}, change: change}
	t.Cleanup(func() {
		for name, n := range c.nodes {
			if got := n.Status().Differing; got != 0 {
				t.Errorf("%d checkpoints in the log of %s have a wrong sum", got, name)
			}
			if err := n.Close(); err != nil && n.Err() == nil {
				t.Errorf("close %s: %v", name, err)
			}
		}
	})
	for i, name := range names {
		if i == 0 {
			c.startNew(name, Bootstrap)
		} else {
			c.startNew(name, PrepareJoin)
			c.join(name)
		}
	}
	return c
}

// startNew starts a node with an empty disk, which begin makes one of the cluster.
func (c *cluster) startNew(name string, begin func(dir string, o Options) error) {
	c.t.Helper()
	c.disks[name] = vfs.NewCrashableMem()
	l := c.network.listen(c.t, "127.0.0.1:0")
	c.address[name] = l.own
	c.must(begin("data", c.options(name)))
	l.Close()
	c.start(name)
}

func (c *cluster) options(name string) Options {
	o := Options{ID: name, Address: c.address[name], ElectionTimeout: testElection,
		CheckpointInterval: testCheckpoints,
		Store: snapshot.Options{FS: c.disks[name], MemTable: 1 << 20, Cache: 1 << 20,
			Kept: snapshot.Kept{Bytes: 1 << 20, Age: time.Hour}}}
	if testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(c.t.Output(), nil)).With("node", name)
	}
	if c.change != nil {
		c.change(&o)
	}
	return o
}

func (c *cluster) start(name string) *Node {
	c.t.Helper()
	n, err := c.open(name)
	if err != nil {
		c.t.Fatalf("start %s: %v", name, err)
	}
	c.nodes[name] = n
	return n
}

// open starts a node whose start may be refused.
func (c *cluster) open(name string) (*Node, error) {
	c.t.Helper()
	o := c.options(name)
	o.Links = c.network.listen(c.t, c.address[name])
	n, err := Open("data", o)
	if err != nil {
		o.Links.Close()
	}
	return n, err
}

// join adds a node and gives it a vote when it has caught up.
func (c *cluster) join(name string) {
	c.t.Helper()
	leader := c.leader()
	c.must(leader.Add(name, c.address[name]))
	c.caughtUp(name)
	c.must(leader.Promote(name))
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// wait waits until a condition holds.
func (c *cluster) wait(what string, holds func() bool) {
	c.t.Helper()
	end := time.Now().Add(testTimeout)
	for !holds() {
		if time.Now().After(end) {
			for name, n := range c.nodes {
				c.t.Logf("%s: %+v", name, n.Status())
			}
			c.t.Fatalf("%s: not within %v", what, testTimeout)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// leader waits for a leader among the connected nodes that may make changes.
func (c *cluster) leader() (leader *Node) {
	c.t.Helper()
	c.wait("a leader", func() bool {
		for _, n := range c.nodes {
			if n.isLeading() && !c.isCut(n) && n.raft.VerifyLeader().Error() == nil {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

func (c *cluster) isCut(n *Node) bool {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	return c.network.cut[n.o.Address]
}

// caughtUp waits until a node has applied all committed entries of the leader.
func (c *cluster) caughtUp(name string) {
	c.t.Helper()
	want := c.leader().raft.CommitIndex()
	c.wait(name+" catches up", func() bool { return c.nodes[name].raft.AppliedIndex() >= want })
}

// kill ends a node as a power loss does: unsynced data is lost. It returns the node that was killed.
func (c *cluster) kill(name string) *Node {
	c.t.Helper()
	n := c.nodes[name]
	c.disks[name] = c.disks[name].CrashClone(vfs.CrashCloneCfg{})
	c.network.setCut(c.address[name], true)
	delete(c.nodes, name)
	if err := n.Close(); err != nil {
		c.t.Logf("%s: %v", name, err)
	}
	c.network.setCut(c.address[name], false)
	return n
}

// writer appends numbered facts to a realm.
type writer struct {
	journal Journal
	epoch   uint64
	last    realm.Seq
}

// claim makes the leader the owner of realm 1.
func (c *cluster) claim() *writer {
	c.t.Helper()
	for {
		j := c.leader().Journal()
		got, err := j.Claim(1, realm.AnyEpoch)
		if err == nil {
			return &writer{j, got.Epoch, got.Last}
		}
		if !errors.Is(err, realm.ErrMoved) {
			c.t.Fatal(err)
		}
	}
}

// batch returns the next batch: a fact that has its own number, and a text.
func (w *writer) batch(size int) realm.Batch {
	n := w.last + 1
	return realm.Batch{
		Realm: 1, Epoch: w.epoch, After: w.last, Now: int64(1000 + n),
		Facts: [][]byte{codec.EncodeFact(&realm.QueuesCaughtUp{Through: n})},
		Texts: []realm.TextWrite{{Ref: realm.BodyRef{Message: realm.MessageID(n), Version: 1},
			Body: &realm.Body{Text: fmt.Sprint("text ", n), HTML: string(bytes.Repeat([]byte{'x'}, size))}}},
	}
}

// add appends the next batch.
func (w *writer) add(size int) error {
	err := w.journal.Append([]realm.Batch{w.batch(size)})[0]
	if err == nil {
		w.last++
	}
	return err
}

func (w *writer) mustAdd(t *testing.T, count, size int) {
	t.Helper()
	for range count {
		if err := w.add(size); err != nil {
			t.Fatalf("append after %d: %v", w.last, err)
		}
	}
}

// facts reads the journal of realm 1 of a store and checks its facts; it verifies every record. It returns the hash of
// the last one.
func facts(t testing.TB, d snapshot.Disk) (last realm.Seq, hash snapshot.Chain) {
	t.Helper()
	rows, _, err := d.Bounds(1)
	if err != nil {
		t.Fatal(err)
	}
	last = rows
	if err := d.Tail(1, rows, func(r realm.Record) error {
		last++
		f, is := r.Fact.(*realm.QueuesCaughtUp)
		if !is || f.Through != last || r.Seq != last {
			return fmt.Errorf("fact %d is %+v", last, r)
		}
		body, found, err := d.Text(1, realm.BodyRef{Message: realm.MessageID(last), Version: 1})
		if err != nil || !found || body.Text != fmt.Sprint("text ", last) {
			return fmt.Errorf("text %d is %q, %t, %v", last, body.Text, found, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	hash, _ = d.LastHash(1)
	return last, hash
}

// expectEqual requires that all nodes have the same journal, which ends at a fact.
func (c *cluster) expectEqual(last realm.Seq) {
	c.t.Helper()
	var want snapshot.Chain
	for name, n := range c.nodes {
		c.wait(fmt.Sprintf("%s has fact %d", name, last), func() bool {
			_, got, err := n.Disk().Bounds(1)
			return err == nil && got >= last
		})
		got, hash := facts(c.t, n.Disk())
		if want == (snapshot.Chain{}) {
			want = hash
		}
		if got != last || hash != want {
			c.t.Errorf("%s has facts up to %d with hash %x, want %d with %x", name, got, hash, last, want)
		}
	}
}

// opsOf returns the operation that adds a batch.
func opsOf(b realm.Batch) []snapshot.LogOp {
	e := snapshot.Entries([]realm.Batch{b})
	return []snapshot.LogOp{{Entry: &e[0], Before: snapshot.Chain{1, 2, 3}}}
}

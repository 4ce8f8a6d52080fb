package main

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// linkProxy stands between the edges and their core. It delays, holds or cuts their traffic.
type linkProxy struct {
	listener net.Listener
	core     string // address

	mu      sync.Mutex
	changed *sync.Cond // of mu
	state   proxyState
	conns   map[net.Conn]bool
}

// proxyState is how the proxy treats bytes and connections.
type proxyState struct {
	delay            time.Duration // of every byte, in both directions
	holdUp, holdDown bool          // nothing is passed on to the core, or to the edges
	cut              bool          // there are no connections
}

func startLinkProxy(t *testing.T, core string) *linkProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &linkProxy{listener: l, core: core, conns: map[net.Conn]bool{}}
	p.changed = sync.NewCond(&p.mu)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.set(proxyState{cut: true})
	})
	return p
}

// set changes the state. Bytes that were held are passed on, unless their connections are cut.
func (p *linkProxy) set(s proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
	if s.cut {
		for c := range p.conns {
			c.Close()
		}
	}
	p.changed.Broadcast()
}

// add adds a connection, or reports that there are none now.
func (p *linkProxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.cut {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *linkProxy) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *linkProxy) serve(edge net.Conn) {
	defer edge.Close()
	if !p.add(edge) {
		return
	}
	defer p.remove(edge)
	core, err := net.Dial("tcp", p.core)
	if err != nil {
		return
	}
	defer core.Close()
	if !p.add(core) {
		return
	}
	defer p.remove(core)
	go func() {
		p.pass(core, edge, func(s *proxyState) bool { return s.holdUp })
		core.Close()
		edge.Close()
	}()
	p.pass(edge, core, func(s *proxyState) bool { return s.holdDown })
}

// delayedBytes are bytes that the proxy passes on at a time.
type delayedBytes struct {
	at   time.Time
	data []byte
}

// linkAhead is how many reads may wait in the proxy. More wait in the sockets, as on a network.
const linkAhead = 256

// pass copies bytes in one direction. A delay does not slow down later bytes.
func (p *linkProxy) pass(to, from net.Conn, held func(*proxyState) bool) {
	queue := make(chan delayedBytes, linkAhead)
	go func() {
		defer close(queue)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				p.mu.Lock()
				at := time.Now().Add(p.state.delay)
				p.mu.Unlock()
				queue <- delayedBytes{at, data[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	broken := false
	for x := range queue {
		if broken {
			continue // until the reader ends
		}
		time.Sleep(time.Until(x.at))
		p.mu.Lock()
		for held(&p.state) && !p.state.cut {
			p.changed.Wait()
		}
		p.mu.Unlock()
		if _, err := to.Write(x.data); err != nil {
			broken = true
			from.Close()
		}
	}
}

// startEdgesBehindProxy starts a core and edges that reach it through a proxy only: the core tells other nodes the
// address of the proxy instead of its own.
func startEdgesBehindProxy(t *testing.T, edges int) (*edgesOfCore, *linkProxy) {
	t.Helper()
	c := &edgesOfCore{t: t, dir: t.TempDir()}
	c.core = &edgeProcess{id: "a", data: filepath.Join(c.dir, "a"), listen: freeAddress(t)}
	address := freeAddress(t)
	mustRun(t, "cluster", "init", "--data", c.core.data, "--node", "a", "--peer-listen", address)
	p := startLinkProxy(t, address)
	file := filepath.Join(c.core.data, "cluster", "cluster.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	state["members"].([]any)[0].(map[string]any)["address"] = p.listener.Addr().String()
	if text, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, string(text))
	c.start(c.core)
	for i := range edges {
		c.addEdge(string(rune('b' + i)))
	}
	return c, p
}

// linkFaults are the faults of TestEdgeLinks, and for how long at least. A link counts as broken after 0.9 s
// of silence.
var linkFaults = []struct {
	name  string
	state proxyState
	lasts time.Duration
}{
	{"delayed by 100 ms", proxyState{delay: 100 * time.Millisecond}, 400 * time.Millisecond},
	{"cut", proxyState{cut: true}, 200 * time.Millisecond},
	{"one way, nothing reaches the core", proxyState{holdUp: true}, time.Second},
	{"one way, nothing reaches the edges", proxyState{holdDown: true}, time.Second},
}

// maxHealed is how long it may take until an edge serves again when its link is whole.
const maxHealed = 3 * time.Second

// TestEdgeLinks delays, cuts and blocks the links between two edges and their core under load. Nothing is lost,
// doubled, reordered or leaked, no client registers again, and changes are acknowledged within 3 s after a fault. A
// delay breaks no link. ROUNDS, CLIENTS and SEED make the test longer or repeat it: make cut-links.
func TestEdgeLinks(t *testing.T) {
	run := newKillRun(t, "ROUNDS", 1, 12)
	c, proxy := startEdgesBehindProxy(t, 2)
	l := newKillRecord(t, run, c.edges[0].url(), c.edges[1].url())
	l.startSending()
	l.measureGaps()
	longest := map[string]time.Duration{}
	for range run.times {
		faults := slices.Clone(linkFaults)
		run.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, x := range faults {
			l.waitForMoment(50*time.Millisecond, 200*time.Millisecond)
			links := c.linksOpened()
			proxy.set(x.state)
			time.Sleep(x.lasts + time.Duration(run.IntN(run.times)*50)*time.Millisecond)
			if x.state.delay > 0 {
				if now := c.linksOpened(); now != links {
					t.Errorf("a delay broke links: %d instead of %d were opened", now, links)
				}
			}
			proxy.set(proxyState{})
			healed := time.Now()
			l.gaps.next()
			took := time.Since(healed)
			longest[x.name] = max(longest[x.name], took)
			if took > maxHealed {
				t.Errorf("%s: the first change was acknowledged %v after the end", x.name, took)
			}
		}
	}
	l.end()
	c.verify(3)
	for _, x := range linkFaults {
		t.Logf("%s: a change was acknowledged %v after the end at most", x.name,
			longest[x.name].Round(time.Millisecond))
	}
}

// linksOpened returns how often the edges have opened a link to the core.
func (c *edgesOfCore) linksOpened() (n int) {
	for _, e := range c.edges {
		n += strings.Count(e.output(), `msg="link to the core opened"`)
	}
	return n
}

// While nothing that the core sends reaches its edge, a client's message is on the core's disk and its answer is under
// way. After that the client gets the answer of that message, which exists once.
func TestEdgeLinkLosesAnswer(t *testing.T) {
	c, proxy := startEdgesBehindProxy(t, 1)
	ann := demoAccount(t, c.edges[0].url(), "ann@example.org")
	if _, err := ann.send("before"); err != nil {
		t.Fatal(err)
	}
	proxy.set(proxyState{holdDown: true})
	sent := make(chan error, 1)
	go func() {
		_, err := ann.send("whose answer is lost")
		sent <- err
	}()
	atCore := *ann
	atCore.url = c.core.url()
	newest := url.Values{"anchor": {"newest"}, "num_before": {"10"}, "num_after": {"0"}, "apply_markdown": {"false"}}
	count := func(who *account) (n int) {
		for _, m := range who.must(t, "GET", "messages", newest)["messages"].([]any) {
			if m.(map[string]any)["content"] == "whose answer is lost" {
				n++
			}
		}
		return n
	}
	eventually(t, "the core stores the message", func() bool { return count(&atCore) == 1 })
	proxy.set(proxyState{cut: true})
	select {
	case err := <-sent:
		t.Fatalf("the message was answered without the core: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	proxy.set(proxyState{})
	if err := <-sent; err != nil {
		t.Errorf("the message is stored, its sender got: %v", err)
	}
	if n := count(ann); n != 1 {
		t.Errorf("the message exists %d times", n)
	}
	if n := c.linksOpened(); n < 2 { // more on a busy machine
		t.Errorf("%d links were opened, want at least 2", n)
	}
}

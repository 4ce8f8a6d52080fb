package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// edgeOp is an operation of a client that uses one edge.
type edgeOp struct {
	kind edgeOpKind
	edge int
	text string // of opSend and opSeen
}

type edgeOpKind int

const (
	opSend edgeOpKind = iota // a message is sent; without an answer it may exist since any later time
	opSeen                   // the moment in which opSend was answered: the edge has the message from now on
	opRead                   // the messages of the topic are read
)

// edgeState is the state that the model says the cluster has: how many messages there are, and how many of them each
// edge has at least.
type edgeState struct {
	count int
	seen  [2]int
}

// edgeModel is the promise to clients of edges. All messages have one order, which agrees with the order of sends
// one after the other, at whichever edges. A read at an edge returns a beginning of that order. It has every message
// whose send this edge has answered before, and every message that an earlier read at this edge has returned. log is
// the order, as it is stored in the end.
func edgeModel(log []string) porcupine.Model {
	place := map[string]int{}
	for i, text := range log {
		place[text] = i
	}
	return porcupine.Model{
		Init: func() any { return edgeState{} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(edgeState), input.(edgeOp)
			at, stored := place[in.text]
			switch in.kind {
			case opSend:
				s.count++
				return stored && at == s.count-1, s
			case opSeen:
				s.seen[in.edge] = max(s.seen[in.edge], at+1)
				return stored && at < s.count, s
			}
			got, before := output.([]string), s.seen[in.edge]
			s.seen[in.edge] = len(got)
			return len(got) >= before && len(got) <= s.count && slices.Equal(got, log[:len(got)]), s
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprint(in, " ", out) },
	}
}

// edgeHistory collects the operations of all clients.
type edgeHistory struct {
	began time.Time
	mu    sync.Mutex
	list  []porcupine.Operation
	lost  int // sends without an answer
}

func (h *edgeHistory) now() int64 { return time.Since(h.began).Nanoseconds() }

func (h *edgeHistory) add(ops ...porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, ops...)
}

func (h *edgeHistory) addLost(send porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list, h.lost = append(h.list, send), h.lost+1
}

// edgeClient is a client of one edge.
type edgeClient struct {
	*account
	h      *edgeHistory
	http   *http.Client
	number int
	edge   int
	topic  string
}

// run sends messages, and reads about as often.
func (c *edgeClient) run(t *testing.T, sends int, random *rand.Rand) {
	for n := 0; n < sends && !t.Failed(); {
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		if random.IntN(2) == 0 {
			c.read(t)
		} else {
			c.send(t, fmt.Sprint(c.number, "/", n))
			n++
		}
	}
}

func (c *edgeClient) send(t *testing.T, text string) {
	op := porcupine.Operation{ClientId: c.number, Input: edgeOp{opSend, c.edge, text}, Call: c.h.now()}
	a, err := c.callWith(c.http, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"},
		"topic": {c.topic}, "content": {text}})
	op.Return = c.h.now()
	switch {
	case err == nil:
		c.h.add(op, porcupine.Operation{ClientId: c.number, Input: edgeOp{opSeen, c.edge, text}, Call: op.Return,
			Return: op.Return + 1})
	case a == nil || isBusy(err): // the edge has not learned what became of it
		op.Return = math.MaxInt64
		c.h.addLost(op)
	default:
		t.Errorf("a send was refused: %v", err)
	}
}

// read reads the whole topic. It returns nil if there was no answer.
func (c *edgeClient) read(t *testing.T) (texts []string) {
	op := porcupine.Operation{ClientId: c.number, Input: edgeOp{kind: opRead, edge: c.edge}, Call: c.h.now()}
	a, err := c.callWith(c.http, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"5000"},
		"num_after": {"0"}, "apply_markdown": {"false"},
		"narrow": {fmt.Sprintf(`[["channel","general"],["topic",%q]]`, c.topic)}})
	op.Return = c.h.now()
	if a != nil && err != nil && !isBusy(err) {
		t.Errorf("a read was refused: %v", err)
	}
	if err != nil {
		return nil // a read without an answer changes nothing
	}
	texts = []string{}
	for _, m := range a["messages"].([]any) {
		texts = append(texts, m.(map[string]any)["content"].(string))
	}
	op.Output = texts
	c.h.add(op)
	return texts
}

// TestEdgesLinearizable lets clients of two edges send to and read one topic while the core is killed and its links are
// blocked, and lets porcupine search for an order of all operations that explains every answer; see edgeModel. SENDS is
// the number of sends of each client, N the number of runs: make linear-edges.
func TestEdgesLinearizable(t *testing.T) {
	runs, sends := environmentNumber("N", 1), environmentNumber("SENDS", 12)
	seed := uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))
	c, proxy := startEdgesBehindProxy(t, 2)
	for run := range runs {
		t.Logf("SENDS=%d SEED=%d N=1", sends, seed+uint64(run))
		playEdgeHistory(t, c, proxy, sends, seed+uint64(run))
		if t.Failed() {
			return
		}
	}
}

// playEdgeHistory is one run, in a topic of its own.
func playEdgeHistory(t *testing.T, c *edgesOfCore, proxy *linkProxy, sends int, seed uint64) {
	h := &edgeHistory{began: time.Now()}
	var clients sync.WaitGroup
	var last *edgeClient
	for i := range 8 {
		edge := i % 2
		x := &edgeClient{demoAccount(t, c.edges[edge].url(), killPeople[i]+"@example.org"), h,
			&http.Client{Timeout: binaryTimeout, Transport: &http.Transport{}}, i, edge, fmt.Sprint("order ", seed)}
		last = x
		clients.Go(func() {
			defer x.http.CloseIdleConnections()
			x.run(t, sends, rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
	random := rand.New(rand.NewPCG(seed, 100))
	for _, fault := range random.Perm(3) {
		time.Sleep(time.Duration(30+random.IntN(100)) * time.Millisecond) // a random moment
		switch fault {
		case 0:
			c.core.kill()
			c.start(c.core)
		case 1:
			proxy.set(proxyState{delay: time.Duration(random.IntN(100)) * time.Millisecond})
		case 2:
			proxy.set(proxyState{cut: true})
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		proxy.set(proxyState{})
	}
	clients.Wait()
	last.edge, last.url = 0, c.core.url() // the core has everything that an edge has
	log := last.read(t)
	// A send without an answer whose message does not exist has not happened.
	h.list = slices.DeleteFunc(h.list, func(op porcupine.Operation) bool {
		in := op.Input.(edgeOp)
		return in.kind == opSend && op.Return == math.MaxInt64 && !slices.Contains(log, in.text)
	})
	switch r := porcupine.CheckOperationsTimeout(edgeModel(log), h.list, time.Minute); r {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Skipf("SEED=%d: too many orders to check on this machine", seed)
	default:
		t.Errorf("SEED=%d: no order explains the answers of %d operations: %v", seed, len(h.list), r)
	}
	t.Logf("one order explains %d operations at two edges, %d sends of them without an answer", len(h.list), h.lost)
}

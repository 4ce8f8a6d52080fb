package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"parley/bench/swarm"
)

// clusterLoad is the clients of the nodes.
type clusterLoad struct {
	c       *clusterProcesses
	channel int64
	clients []*clusterClient
	senders []*swarm.Pool // of each node
	sent    int           // messages that were answered
	unknown int           // messages without an answer
	newest  int64         // id of the newest answered message
	gap     time.Duration // longest time between two answers since it was reset
	sentAt  time.Duration // time of the newest answer
	took    latencies     // until the answers
	// No further messages are sent along; the clients stop.
	finishing, finished bool

	scratch []byte
	event   swarm.Event
}

// clusterClient is one event queue, whose client polls a node and another one when that is gone.
type clusterClient struct {
	l          *clusterLoad
	conn       swarm.Conn
	person     *person
	preferred  int // node
	head, tail []byte
	last       int64
	message    int64  // newest message
	count      int    // messages since the start of the load
	hash       uint64 // of their ids, in order
	retry      time.Duration
	lost       bool
}

// newClusterLoad makes the clients' side of a cluster.
func newClusterLoad(c *clusterProcesses) *clusterLoad {
	l := &clusterLoad{c: c}
	for i := range c.run.population.channels {
		if x := &c.run.population.channels[i]; l.channel == 0 || len(x.Members) > len(c.run.population.people)-1 {
			l.channel = x.ID
		}
	}
	for _, s := range c.nodes {
		l.addNode(s)
	}
	return l
}

// addNode lets messages also be sent to a node.
func (l *clusterLoad) addNode(s *server) { l.senders = append(l.senders, l.newPool(s)) }

func (l *clusterLoad) newPool(s *server) *swarm.Pool {
	return swarm.NewPool(l.c.run.loop, s.addr, nil, clusterSenders, agent)
}

// join registers further clients until there are n, and lets them poll: each at the node with the fewest clients.
func (l *clusterLoad) join(n int) error {
	return l.joinAt(n, func() int { return l.leastLoadedNode() })
}

// leastLoadedNode returns the node with the fewest clients.
func (l *clusterLoad) leastLoadedNode() int {
	count := make([]int, max(1, len(l.c.nodes)))
	for _, x := range l.clients {
		count[x.preferred]++
	}
	return slices.Index(count, slices.Min(count))
}

// joinAt registers further clients at chosen nodes.
func (l *clusterLoad) joinAt(n int, node func() int) error {
	r := l.c.run
	first := len(l.clients)
	from := sourceAddresses(r.server.addr, r.scenario.Sources)
	for i := first; i < n; i++ {
		x := &clusterClient{l: l, person: &r.population.people[i%len(r.population.people)], preferred: node(), last: -1}
		x.conn = swarm.Conn{Loop: r.loop, Local: from[i%len(from)]}
		l.clients = append(l.clients, x)
	}
	pool := r.pool
	defer func() { r.pool = pool }()
	for e := range max(1, len(l.c.nodes)) {
		if len(l.senders) > 0 {
			r.pool = l.senders[e]
		}
		var mine []*clusterClient
		for _, x := range l.clients[first:] {
			if x.preferred == e {
				mine = append(mine, x)
			}
		}
		err := r.callEach(len(mine), func(i int) *swarm.Call {
			return r.newCall("POST", "register", mine[i].person, params{"event_types": []string{"message"},
				"fetch_event_types": []string{"message"}, "client_capabilities": capabilities,
				"idle_queue_timeout": 86400})
		}, func(i int, body []byte) error { return mine[i].handleRegister(body) })
		if err != nil {
			return err
		}
	}
	for i, x := range l.clients[first:] {
		r.loop.At(r.loop.Now()+time.Duration(i/1000)*50*time.Millisecond, x.poll)
	}
	return r.loop.RunFor(clusterSettle+time.Duration(n-first)*clusterSettlePoll, nil)
}

func (x *clusterClient) handleRegister(body []byte) error {
	queue, last, err := registered(body)
	x.last = last
	x.head, x.tail = pollRequest(queue, x.person)
	return err
}

// poll polls the preferred node, or another one while that is gone.
func (x *clusterClient) poll() {
	if x.l.finished || x.lost || x.conn.Waiting() {
		return
	}
	c := x.l.c
	if len(c.nodes) == 0 {
		x.conn.Remote = c.run.server.addr
	} else {
		at := x.preferred
		for !c.up[at] {
			at = (at + 1 + rand.IntN(len(c.nodes)-1)) % len(c.nodes)
		}
		if addr := c.nodes[at].addr; x.conn.Remote != addr {
			x.conn.Hangup()
			x.conn.Remote = addr
		}
	}
	b := append(x.l.scratch[:0], x.head...)
	b = strconv.AppendInt(b, x.last, 10)
	x.l.scratch = append(b, x.tail...)
	x.conn.Send(x.l.scratch, x, pollLimit, false)
}

// Answer notes the messages of an answer and polls again.
func (x *clusterClient) Answer(_ *swarm.Conn, a *swarm.Answer) {
	l := x.l
	if l.finished {
		return
	}
	if a.Err != nil || a.Status == 503 || a.Status == 502 {
		if a.Err == swarm.ErrTimeout {
			l.broken("a poll had no answer for %v", pollLimit)
		}
		x.retry = min(max(2*x.retry, 50*time.Millisecond), 400*time.Millisecond)
		l.c.run.loop.At(l.c.run.loop.Now()+x.retry/2+time.Duration(rand.Int64N(int64(x.retry))), x.poll)
		return
	}
	if a.Status != 200 {
		l.broken("user %d: a poll after event %d is answered %d %.200s", x.person.ID, x.last, a.Status, a.Body)
		l.c.registers++
		x.lost = true
		return
	}
	x.retry = 0
	n := 0
	err := swarm.ScanEvents(a.Body, &l.event, func(e *swarm.Event) bool {
		n++
		if e.ID <= x.last {
			l.broken("user %d got event %d after %d", x.person.ID, e.ID, x.last)
		}
		x.last = e.ID
		if e.Message != 0 {
			if e.Message <= x.message {
				l.broken("user %d got message %d after %d", x.person.ID, e.Message, x.message)
			}
			x.message = e.Message
			x.count++
			x.hash = (x.hash ^ uint64(e.Message)) * 1099511628211 // FNV-1a
		}
		return true
	})
	if err != nil {
		l.broken("user %d: %v: %.200s", x.person.ID, err, a.Body)
	}
	if n == 0 { // the queue has moved to another node
		l.c.run.loop.At(l.c.run.loop.Now()+5*time.Millisecond, x.poll)
		return
	}
	x.poll()
}

func (l *clusterLoad) broken(format string, args ...any) {
	if len(l.c.broken) < 100 {
		l.c.broken = append(l.c.broken, fmt.Sprintf(format, args...))
	}
}

// send sends a message through a pool of connections. done gets its id, or 0 if it is not known whether it was sent.
func (l *clusterLoad) send(p *swarm.Pool, done func(id int64)) {
	r := l.c.run
	who := &r.population.people[rand.IntN(len(r.population.people))]
	call := r.newCall("POST", "messages", who, params{"type": "channel", "to": l.channel, "topic": "cluster",
		"content": fmt.Sprint("message ", l.sent)})
	call.Done = func(_ *swarm.Call, a *swarm.Answer) {
		var v struct {
			ID int64 `json:"id"`
		}
		if a.Err == nil && a.Status == 200 && json.Unmarshal(a.Body, &v) == nil && v.ID > 0 {
			l.sent++
			l.newest = max(l.newest, v.ID)
			l.gap = max(l.gap, a.At-l.sentAt)
			l.sentAt = a.At
			l.took.add(a.At - call.Intended)
			done(v.ID)
			return
		}
		if a.Err == nil && a.Status != 503 {
			l.broken("a send is answered %d %.200s", a.Status, a.Body)
		}
		l.unknown++
		done(0)
	}
	p.Do(call)
}

// resetCounts forgets the messages so far, which not all clients have got: some have joined later.
func (l *clusterLoad) resetCounts() {
	l.sent, l.unknown = 0, 0
	for _, x := range l.clients {
		x.count, x.hash = 0, 0
	}
}

// sendContinuously sends messages all the time, so that nodes are killed in the middle of sends.
func (l *clusterLoad) sendContinuously() {
	rate := l.c.run.scenario.Phases[0].Rate
	if rate <= 0 {
		return
	}
	l.c.run.loop.Every(time.Duration(float64(time.Second)/rate), func() bool {
		if !l.finishing {
			l.send(l.nodePool(), func(int64) {})
		}
		return !l.finishing
	})
}

// sendAtFullLoad keeps clusterSenders sends in progress at one node until stop is called.
func (l *clusterLoad) sendAtFullLoad(at *swarm.Pool) (stop func()) {
	stopped := false
	var again func(int64)
	again = func(int64) {
		if !stopped {
			l.send(at, again)
		}
	}
	for range clusterSenders {
		again(0)
	}
	return func() { stopped = true }
}

// awaitSends waits until every send is answered.
func (l *clusterLoad) awaitSends() error {
	return l.c.run.loop.RunFor(clusterDrain, func() bool {
		pending := 0
		for _, p := range l.senders {
			pending += p.Pending()
		}
		return pending == 0
	})
}

// nodePool returns the connections to a node that runs.
func (l *clusterLoad) nodePool() *swarm.Pool {
	for {
		if i := rand.IntN(len(l.senders)); l.c.up[i] {
			return l.senders[i]
		}
	}
}

// probe sends a message and returns the time from began until every client has got it.
func (l *clusterLoad) probe(began time.Duration) (time.Duration, error) {
	loop := l.c.run.loop
	id, pending := int64(0), false
	deadline := loop.Now() + clusterDrain
	for id == 0 && loop.Now() < deadline {
		pending = true
		l.send(l.nodePool(), func(x int64) { id, pending = x, false })
		if err := loop.Run(func() bool { return !pending || loop.Now() > deadline }); err != nil {
			return 0, err
		}
	}
	checked := 0 // the clients before it have the message
	err := loop.RunFor(deadline-loop.Now(), func() bool {
		for checked < len(l.clients) && (l.clients[checked].message >= id || l.clients[checked].lost) {
			checked++
		}
		return id != 0 && checked == len(l.clients)
	})
	if err == nil && (id == 0 || checked < len(l.clients)) {
		late := 0
		for _, x := range l.clients {
			if x.message < id {
				late++
			}
		}
		return 0, fmt.Errorf("message %d has not reached %d of %d clients after %v", id, late, len(l.clients),
			clusterDrain)
	}
	return loop.Now() - began, err
}

// finish checks that every client has got the same messages, each once and in order, and stops.
func (l *clusterLoad) finish() error {
	l.finishing = true
	if err := l.awaitSends(); err != nil {
		return err
	}
	_, err := l.probe(l.c.run.loop.Now())
	l.finished = true
	if err != nil {
		return err
	}
	first := l.clients[0]
	l.c.messages = first.count
	for _, x := range l.clients {
		if x.count != first.count || x.hash != first.hash {
			l.broken("user %d got %d messages, user %d %d, or others", x.person.ID, x.count, first.person.ID,
				first.count)
		}
	}
	if first.count < l.sent || first.count > l.sent+l.unknown {
		l.broken("%d messages were answered and %d are unknown; the clients have %d", l.sent, l.unknown, first.count)
	}
	return nil
}

package swarm

import (
	"errors"
	"net/netip"
	"strconv"
	"time"
)

// A Call is one request that is not a long poll. Intended is when the scenario meant it to happen; how long it took is
// counted from there, so that a client or server that falls behind cannot hide it.
type Call struct {
	Method, Path string // Path with its query
	Host, Auth   string // Auth is the whole value of the header, or empty
	Body         string // url-encoded form
	Gzip         bool   // ask for a compressed answer
	Discard      bool   // count the answer, keep nothing of it
	Timeout      time.Duration
	Intended     time.Duration
	Kind         int // whatever the scenario counts by
	Done         func(*Call, *Answer)

	Sent time.Duration // when it was written
	pool *Pool
}

// A Pool spreads calls over a fixed number of connections; calls wait their turn when all are taken.
type Pool struct {
	Loop  *Loop
	all   []*Conn
	idle  []*Conn
	wait  []*Call // ring: head is the oldest
	head  int
	Size  int
	Busy  int
	Agent string
}

// NewPool makes size connections to one server, dialled when first used, from the given source addresses in turn.
func NewPool(l *Loop, to netip.AddrPort, from []netip.Addr, size int, agent string) *Pool {
	p := &Pool{Loop: l, Size: size, Agent: agent}
	for i := 0; i < size; i++ {
		c := &Conn{Loop: l, Remote: to}
		if len(from) > 0 {
			c.Local = from[i%len(from)]
		}
		p.all = append(p.all, c)
	}
	p.idle = append(p.idle, p.all...)
	return p
}

// ErrCut is told to calls that were given up from this side.
var ErrCut = errors.New("given up")

// Cut gives up every call that is not answered yet.
func (p *Pool) Cut() {
	wait := append([]*Call(nil), p.wait[p.head:]...)
	p.wait, p.head = nil, 0
	for _, c := range p.all {
		if c.Waiting() {
			c.fail(ErrCut)
		}
	}
	for _, c := range wait {
		if c.Done != nil {
			c.Done(c, &Answer{Err: ErrCut, At: p.Loop.Now()})
		}
	}
}

// Renew has the next calls dial anew, for whoever knows that the server has ended before its connections say so: a call
// sent on one of those would be lost.
func (p *Pool) Renew() {
	for _, c := range p.idle {
		c.drop()
	}
}

// Do sends c as soon as a connection is free.
func (p *Pool) Do(c *Call) {
	c.pool = p
	if len(p.idle) == 0 {
		p.wait = append(p.wait, c)
		return
	}
	conn := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	p.Busy++
	c.send(conn)
}

// Waiting is how many calls have no connection yet.
func (p *Pool) Waiting() int { return len(p.wait) - p.head }

// Under is how many calls are not answered yet.
func (p *Pool) Under() int { return p.Busy + p.Waiting() }

func (c *Call) send(conn *Conn) {
	l := conn.Loop
	b := l.out[:0]
	b = append(b, c.Method...)
	b = append(b, ' ')
	b = append(b, c.Path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.Host...)
	b = append(b, "\r\nUser-Agent: "...)
	b = append(b, c.pool.Agent...)
	if c.Auth != "" {
		b = append(b, "\r\nAuthorization: "...)
		b = append(b, c.Auth...)
	}
	if c.Gzip {
		b = append(b, "\r\nAccept-Encoding: gzip"...)
	}
	if c.Method != "GET" {
		b = append(b, "\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(c.Body)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	if c.Method != "GET" {
		b = append(b, c.Body...)
	}
	l.out = b
	c.Sent = l.Now()
	if c.Intended == 0 {
		c.Intended = c.Sent
	}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 60 * time.Second
	}
	conn.Send(b, c, timeout, c.Discard)
}

// Answer hands the answer on and gives the connection to the call that waited longest.
func (c *Call) Answer(conn *Conn, a *Answer) {
	p := c.pool
	if c.Done != nil {
		c.Done(c, a)
	}
	if p.head < len(p.wait) {
		next := p.wait[p.head]
		p.wait[p.head] = nil
		p.head++
		if p.head == len(p.wait) || p.head > 4096 && p.head*2 > len(p.wait) {
			p.wait = p.wait[:copy(p.wait, p.wait[p.head:])]
			p.head = 0
		}
		next.send(conn)
		return
	}
	p.Busy--
	p.idle = append(p.idle, conn)
}

package swarm

import (
	"crypto/tls"
	"errors"
	"net/netip"
	"strconv"
	"time"
)

// A Call is one request that is not a long poll. Intended is the time at which the scenario wanted to send it.
// Latency counts from there, so that a client or server that falls behind cannot hide its delay.
type Call struct {
	Method, Path string // Path with its query
	Host, Auth   string // Auth is the whole header value, or empty
	Body         string // URL-encoded form
	Gzip         bool   // ask for a compressed answer
	Discard      bool   // count the answer but do not store it
	Timeout      time.Duration
	Intended     time.Duration
	Kind         int // kind of request, for the caller's statistics
	Owner        any // of the caller, for example the user
	Done         func(*Call, *Answer)

	Sent time.Duration // time when it was written
	pool *Pool
}

// A Pool distributes calls over a fixed number of connections; calls wait while all connections are in use.
type Pool struct {
	Loop  *Loop
	all   []*Conn
	idle  []*Conn
	queue []*Call // calls without a connection; head is the index of the oldest
	head  int
	Size  int
	Busy  int
	Agent string
}

// UseTLS makes the connections of the pool speak TLS.
func (p *Pool) UseTLS(cfg *tls.Config) {
	for _, c := range p.all {
		c.TLS = cfg
	}
}

// NewPool returns a pool of size connections to one server. They connect on first use, from the given source
// addresses in turn.
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

// ErrCanceled is the error of calls that CancelAll ended.
var ErrCanceled = errors.New("canceled")

// CancelAll ends all calls without an answer with ErrCanceled.
func (p *Pool) CancelAll() {
	wait := append([]*Call(nil), p.queue[p.head:]...)
	p.queue, p.head = nil, 0
	for _, c := range p.all {
		if c.Waiting() {
			c.fail(ErrCanceled)
		}
	}
	for _, c := range wait {
		if c.Done != nil {
			c.Done(c, &Answer{Err: ErrCanceled, At: p.Loop.Now()})
		}
	}
}

// Reconnect closes all idle connections, so that the next calls connect again. Use it when the server was killed: a
// call on a connection whose end is not noticed yet would be lost.
func (p *Pool) Reconnect() {
	for _, c := range p.idle {
		c.drop()
	}
}

// Do sends c as soon as a connection is idle.
func (p *Pool) Do(c *Call) {
	c.pool = p
	if len(p.idle) == 0 {
		p.queue = append(p.queue, c)
		return
	}
	conn := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	p.Busy++
	c.send(conn)
}

// Waiting returns the number of calls without a connection.
func (p *Pool) Waiting() int { return len(p.queue) - p.head }

// Pending returns the number of calls without an answer.
func (p *Pool) Pending() int { return p.Busy + p.Waiting() }

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

// Answer passes the answer to the call and gives the connection to the call that has waited longest.
func (c *Call) Answer(conn *Conn, a *Answer) {
	p := c.pool
	if c.Done != nil {
		c.Done(c, a)
	}
	if p.head < len(p.queue) {
		next := p.queue[p.head]
		p.queue[p.head] = nil
		p.head++
		if p.head == len(p.queue) || p.head > 4096 && p.head*2 > len(p.queue) {
			p.queue = p.queue[:copy(p.queue, p.queue[p.head:])]
			p.head = 0
		}
		next.send(conn)
		return
	}
	p.Busy--
	p.idle = append(p.idle, conn)
}

package park

import (
	"fmt"
	"runtime/debug"
)

// Park is Server.Park for a quick request. p is the caller's memory, extra complete header lines for the answer.
func (q *QuickRequest) Park(p *Parked, gone Gone, extra []byte) {
	q.take(p, Parked{link: q.c, gone: gone, extra: extra})
}

// Hold is Park for a request whose answer comes in a moment, whatever its client does meanwhile: it is carried out also
// for one that has left, and a client that only sends no more gets its answer. It does not count as waiting.
func (q *QuickRequest) Hold(p *Parked, extra []byte) {
	q.take(p, Parked{link: q.c, extra: extra, held: true})
}

func (q *QuickRequest) take(p *Parked, as Parked) {
	c, s := q.c, q.c.l.s
	*p = as
	p.late = s.draining.Load()
	p.known = q.known
	q.taken = true
	c.l.taken++
	if p.held {
		s.active.Add(1)
	} else {
		c.l.parks++
		s.parked.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh, c.running = false, false
	c.deadline.Store(0)
	if p.held {
		if c.parked = p; c.broken != nil {
			c.closeLocked()
		}
		return
	}
	if c.broken != nil || s.dropped(p) {
		c.closeLocked()
		s.callGone([]*Parked{p})
		return
	}
	c.parked = p
}

// Remember keeps the request in m, but for the number that stands in Target between two places. Call it before Park, and
// only for one without a body.
func (q *QuickRequest) Remember(m *Memo, from, to int) {
	if len(q.head) > maxMemo {
		return
	}
	from, to = from+len(q.Method)+1, to+len(q.Method)+1
	m.around = append(append(make([]byte, 0, len(q.head)-(to-from)), q.head[:from]...), q.head[to:]...)
	m.before = from
	m.came(q.head[from:to])
	q.c.memo = m
	q.known = true
}

// quickBuffer is how much of a request a loop reads for Quick, in bytes: a poll or a message of a page, with cookies and a
// proxy's lines, fits; what is longer goes the usual way.
const quickBuffer = 4 << 10

// quickly reads what came on a resting connection, which is marked as running, and offers it to Quick. It reports
// whether that took it; otherwise what was read is in c.req, for the goroutine that has to go on.
func (l *loop) quickly(c *eventConn) bool {
	n, _ := read(c.fd, l.buf)
	if n > 0 {
		l.in += int64(n)
		if n < len(l.buf) && (l.repeat(c, l.buf[:n]) || l.offer(c, l.buf[:n])) {
			return true
		}
		c.req = takeRequest(c)
		c.req.copyIn(l.buf[:n])
	}
	if n <= 0 || n == len(l.buf) {
		c.mu.Lock()
		c.readable = true // the goroutine finds what this read found, or more
		c.mu.Unlock()
	}
	return false
}

// offer reports whether Quick took the request, or the connection is at its end.
func (l *loop) offer(c *eventConn, b []byte) (taken bool) {
	s := l.s
	if !s.quickTarget(b) || s.closes(c) {
		return false
	}
	size, _, ref := endOfHead(b, 0)
	if ref != nil || size == 0 {
		return false
	}
	h, ref := parseHead(b[:size])
	if ref != nil || h.length != int64(len(b)-size) || h.close || !h.plain {
		return false
	}
	if h.length > 0 && (h.length > int64(s.cfg.MaxBody) || s.active.Load() >= int64(s.cfg.MaxActive)) { // to be refused the usual way
		return false
	}
	l.request = QuickRequest{Method: h.method, Target: h.target, Host: h.host, Authorization: h.authorization, ContentType: h.kind, UserAgent: h.agent,
		Body: b[size:], Address: c.ip, c: c, head: b[:size]}
	defer l.survive()
	taken = true // if it panics
	return l.quick.Take(&l.request)
}

// repeat reports whether the request was the one remembered, and Quick took it. The head was found good when it was
// remembered, and a number in its target makes it no worse: Quick sees to it that it is one.
func (l *loop) repeat(c *eventConn, b []byte) (taken bool) {
	if c.memo == nil || l.s.closes(c) {
		return false
	}
	number := c.memo.number(b)
	if number == nil {
		return false
	}
	c.memo.came(number)
	l.request = QuickRequest{Address: c.ip, c: c, known: true}
	defer l.survive()
	taken = true
	return l.quick.Again(&l.request, c.memo, number)
}

// survive makes a panic cost one connection.
func (l *loop) survive() {
	x := recover()
	if x == nil {
		return
	}
	l.s.cfg.Log.Error("BUG: quick handler panicked", "panic", fmt.Sprint(x), "target", string(l.request.Target), "stack", string(debug.Stack()))
	l.s.panics.Add(1)
	if !l.request.taken {
		c := l.request.c
		c.mu.Lock()
		c.closeLocked()
		c.mu.Unlock()
	}
}

// quickTarget tells whether a request is worth offering.
func (s *Server) quickTarget(b []byte) bool {
	for _, t := range s.cfg.QuickTargets {
		if len(b) >= len(t) && string(b[:len(t)]) == t {
			return true
		}
	}
	return false
}

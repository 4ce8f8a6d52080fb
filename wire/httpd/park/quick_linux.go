package park

import (
	"fmt"
	"runtime/debug"
)

// Park is Server.Park for a quick request. p is the caller's memory, extra complete header lines for the answer.
func (q *QuickRequest) Park(p *Parked, gone Gone, extra string) {
	c, s := q.c, q.c.s
	*p = Parked{link: c, gone: gone, extra: extra, late: s.draining.Load()}
	q.taken = true
	s.requests.Add(1)
	s.parks.Add(1)
	s.parked.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh, c.running = false, false
	c.deadline.Store(0)
	if c.broken != nil || s.dropped(p) {
		c.closeLocked()
		s.callGone([]*Parked{p})
		return
	}
	c.parked = p
}

// quickBuffer is how much of a request a loop reads for Quick, in bytes: a poll with cookies and a proxy's lines fits
// several times; what is longer goes the usual way.
const quickBuffer = 4 << 10

// quickly reads what came on a resting connection, which is marked as running, and offers it to Quick. It reports
// whether that took it; otherwise what was read is in c.req, for the goroutine that has to go on.
func (l *loop) quickly(c *eventConn) bool {
	n, _ := read(c.fd, l.buf)
	if n > 0 {
		l.s.bytesIn.Add(int64(n))
		if l.offer(c, l.buf[:n]) {
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
	if ref != nil || size != len(b) {
		return false
	}
	h, ref := parseHead(b)
	if ref != nil || h.length != 0 || h.close || !h.plain {
		return false
	}
	l.request = QuickRequest{Target: h.target, Host: h.host, Authorization: h.authorization, Address: c.ip, c: c}
	defer func() {
		if x := recover(); x != nil {
			s.cfg.Log.Error("BUG: quick handler panicked", "panic", fmt.Sprint(x), "target", string(h.target), "stack", string(debug.Stack()))
			s.panics.Add(1)
			if taken = true; !l.request.taken {
				c.mu.Lock()
				c.closeLocked()
				c.mu.Unlock()
			}
		}
	}()
	return l.quick.Take(&l.request)
}

// quickTarget tells whether a request is worth offering.
func (s *Server) quickTarget(b []byte) bool {
	const get = "GET "
	if len(b) < len(get) || string(b[:len(get)]) != get {
		return false
	}
	for _, t := range s.cfg.QuickTargets {
		if b := b[len(get):]; len(b) >= len(t) && string(b[:len(t)]) == t {
			return true
		}
	}
	return false
}

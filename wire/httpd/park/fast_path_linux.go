package park

import (
	"fmt"
	"runtime/debug"
)

// Park is Server.Park for a quick request. p is the caller's memory, extra complete header lines for the answer.
func (q *FastRequest) Park(p *Parked, gone Gone, extra []byte) {
	q.parkAs(p, Parked{conn: q.c, gone: gone, headerLines: extra})
}

// ParkBriefly is Park for a request whose answer comes in a moment, whatever its client does meanwhile: it is carried out also
// for one that has left, and a client that only sends no more gets its answer. It does not count as waiting.
func (q *FastRequest) ParkBriefly(p *Parked, extra []byte) {
	q.parkAs(p, Parked{conn: q.c, headerLines: extra, brief: true})
}

func (q *FastRequest) parkAs(p *Parked, as Parked) {
	c, s := q.c, q.c.l.s
	*p = as
	p.afterDrain = s.draining.Load()
	p.remembered = q.remembered
	q.taken = true
	c.l.handled++
	if p.brief {
		s.active.Add(1)
	} else {
		c.l.parks++
		s.parked.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fresh, c.running = false, false
	c.deadline.Store(0)
	if p.brief {
		if c.parked = p; c.failure != nil {
			c.closeLocked()
		}
		return
	}
	if c.failure != nil || s.dropsParked(p) {
		c.closeLocked()
		s.notifyGone([]*Parked{p})
		return
	}
	c.parked = p
}

// Remember keeps the request in m, but for the number that stands in Target between two places. Call it before Park, and
// only for one without a body.
func (q *FastRequest) Remember(m *Memo, from, to int) {
	if len(q.head) > maxMemoBytes {
		return
	}
	from, to = from+len(q.Method)+1, to+len(q.Method)+1
	m.template = append(append(make([]byte, 0, len(q.head)-(to-from)), q.head[:from]...), q.head[to:]...)
	m.numberAt = from
	m.setNumber(q.head[from:to])
	q.c.memo = m
	q.remembered = true
}

// fastPathBuffer is how much of a request a loop reads for FastPath, in bytes: a poll or a message of a page, with cookies and a
// proxy's lines, fits; what is longer goes the usual way.
const fastPathBuffer = 4 << 10

// readFast reads what came on a resting connection, which is marked as running, and offers it to FastPath. It reports
// whether that took it; otherwise what was read is in c.req, for the goroutine that has to go on.
func (l *loop) readFast(c *eventConn) bool {
	n, _ := read(c.fd, l.buf)
	if n > 0 {
		l.bytesIn += int64(n)
		if n < len(l.buf) && (l.tryRepeated(c, l.buf[:n]) || l.tryFastPath(c, l.buf[:n])) {
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

// tryFastPath reports whether FastPath took the request, or the connection is at its end.
func (l *loop) tryFastPath(c *eventConn, b []byte) (taken bool) {
	s := l.s
	if !s.isFastPathTarget(b) || s.closesAfterAnswer(c) {
		return false
	}
	size, _, ref := endOfHead(b, 0)
	if ref != nil || size == 0 {
		return false
	}
	h, ref := parseHead(b[:size])
	if ref != nil || h.length != int64(len(b)-size) || h.close || !h.fastPath {
		return false
	}
	if h.length > 0 && (h.length > int64(s.cfg.MaxBody) || s.active.Load() >= int64(s.cfg.MaxActive)) { // to be refused the usual way
		return false
	}
	l.request = FastRequest{Method: h.method, Target: h.target, Host: h.host, Authorization: h.authorization, ContentType: h.contentType, UserAgent: h.userAgent,
		Body: b[size:], Address: c.ip, c: c, head: b[:size]}
	defer l.recoverPanic()
	taken = true // if it panics
	return l.fastPath.Handle(&l.request)
}

// tryRepeated reports whether the request was the one remembered, and FastPath took it. The head was found good when it was
// remembered, and a number in its target makes it no worse: FastPath sees to it that it is one.
func (l *loop) tryRepeated(c *eventConn, b []byte) (taken bool) {
	if c.memo == nil || l.s.closesAfterAnswer(c) {
		return false
	}
	number := c.memo.matchNumber(b)
	if number == nil {
		return false
	}
	c.memo.setNumber(number)
	l.request = FastRequest{Address: c.ip, c: c, remembered: true}
	defer l.recoverPanic()
	taken = true
	return l.fastPath.HandleRepeated(&l.request, c.memo, number)
}

// recoverPanic makes a panic cost one connection.
func (l *loop) recoverPanic() {
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

// isFastPathTarget tells whether a request is worth offering.
func (s *Server) isFastPathTarget(b []byte) bool {
	for _, t := range s.cfg.FastPathTargets {
		if len(b) >= len(t) && string(b[:len(t)]) == t {
			return true
		}
	}
	return false
}

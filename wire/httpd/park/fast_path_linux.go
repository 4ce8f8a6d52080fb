package park

import (
	"fmt"
	"runtime/debug"
)

// Park is Server.Park for a request of the fast path. p is memory of the caller, extra are complete header lines
// for the answer.
func (q *FastRequest) Park(p *Parked, gone Gone, extra []byte) {
	q.parkAs(p, Parked{conn: q.c, gone: gone, headerLines: extra})
}

// ParkStream is Park for a request whose answer is an event stream, if it has status 200.
func (q *FastRequest) ParkStream(p *Parked, gone Gone, extra []byte) {
	q.parkAs(p, Parked{conn: q.c, gone: gone, headerLines: extra, eventStream: true})
}

// ParkBriefly is Park for a request whose answer comes soon, and which is carried out even if its client has
// left. A client that only shuts down its sending side gets its answer. The request counts as active, not as
// parked.
func (q *FastRequest) ParkBriefly(p *Parked, extra []byte) {
	q.parkAs(p, Parked{conn: q.c, headerLines: extra, brief: true})
}

func (q *FastRequest) parkAs(p *Parked, as Parked) {
	c, s := q.c, q.c.l.s
	*p = as
	if p.private = s.isPrivate(q.Target); q.remembered {
		p.private = s.isPrivate(c.memo.path())
	}
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
	c.setRepeats(q.head == nil) // as in tryRepeated
	if c.failure != nil || s.dropsParked(p) {
		c.closeLocked()
		s.notifyGone([]*Parked{p})
		return
	}
	c.parked = p
}

// Remember stores the request in m, without the number between two positions in Target. Call it before Park, and
// only for a request without a body.
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

// fastPathBuffer is the longest request that a loop reads for FastPath: a poll or a message with the cookies of a
// browser and the headers of a proxy fits. Longer requests go to the Handler.
const fastPathBuffer = 4 << 10

// readFast reads from a resting connection, which is marked as running, and offers the request to FastPath. It
// reports whether FastPath took it. Otherwise the bytes are in c.req, for the goroutine that must continue.
func (l *loop) readFast(c *eventConn) bool {
	n, _ := c.read(l.buf)
	last := c.secure != nil && c.secure.ended
	if n > 0 {
		l.bytesIn += int64(n)
		if n < len(l.buf) && !last {
			if l.tryRepeated(c, l.buf[:n]) {
				return true
			}
			if c.repeats {
				c.mu.Lock()
				c.setRepeats(false)
				c.mu.Unlock()
			}
			if l.tryFastPath(c, l.buf[:n]) {
				return true
			}
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

// tryFastPath reports whether FastPath took the request, or the connection was closed after a panic.
func (l *loop) tryFastPath(c *eventConn, b []byte) (taken bool) {
	s := l.s
	if !s.isFastPathTarget(b) || s.closesAfterAnswer(c) {
		return false
	}
	h, ok := wholeRequest(b)
	if !ok || h.close {
		return false
	}
	// the ordinary path refuses it
	if h.length > 0 && (h.length > int64(s.cfg.MaxBody) || s.active.Load() >= int64(s.cfg.MaxActive)) {
		return false
	}
	l.request = h.fastRequest(b[h.size:])
	l.request.Address, l.request.c, l.request.head = c.ip(), c, b[:h.size]
	defer l.recoverPanic()
	taken = true // in case of a panic
	return l.fastPath.Handle(&l.request)
}

// tryRepeated reports whether the request equals the remembered one and FastPath took it. The head passed the
// check when it was remembered. A number in its target does not make it worse, and FastPath checks that it is
// one.
func (l *loop) tryRepeated(c *eventConn, b []byte) (taken bool) {
	if c.memo == nil || l.s.closesAfterAnswer(c) {
		return false
	}
	number := c.memo.matchNumber(b)
	if number == nil {
		return false
	}
	c.memo.setNumber(number)
	l.request = FastRequest{Address: c.ip(), c: c, remembered: true}
	defer l.recoverPanic()
	taken = true
	return l.fastPath.HandleRepeated(&l.request, c.memo, number)
}

// recoverPanic limits the damage of a panic to one connection.
func (l *loop) recoverPanic() {
	x := recover()
	if x == nil {
		return
	}
	l.s.cfg.Log.Error("BUG: fast path panicked", "panic", fmt.Sprint(x), "target", string(l.request.Target), "stack",
		string(debug.Stack()))
	l.s.panics.Add(1)
	if !l.request.taken {
		c := l.request.c
		c.mu.Lock()
		c.closeLocked()
		c.mu.Unlock()
	}
}

// isFastPathTarget reports whether a request begins like one for the fast path.
func (s *Server) isFastPathTarget(b []byte) bool {
	for _, t := range s.cfg.FastPathTargets {
		if len(b) >= len(t) && string(b[:len(t)]) == t {
			return true
		}
	}
	return false
}

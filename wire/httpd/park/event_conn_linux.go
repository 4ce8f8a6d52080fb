package park

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// eventConn is one TCP connection watched by a loop. At most one goroutine serves it at a time (running). While
// the connection rests, idle or parked, there is none, and the holder of mu acts for it.
//
// The order of the fields follows their use: parking and answering touch two cache lines.
type eventConn struct {
	mu       sync.Mutex
	parked   *Parked
	memo     *Memo // the last request that FastPath asked to remember; used by the loop while it reads
	l        *loop
	deadline atomic.Int64 // by the server's clock, 0 for none; enforced by the sweep
	fd       int32        // -1 when closed; changed under mu, by the running goroutine if there is one
	gen      uint32

	running         bool // a goroutine serves the connection
	waiting         bool // that goroutine waits for the socket
	sending         bool // it waits until the socket takes more output
	readable        bool // there may be something to read: set by events, cleared before each read
	writable        bool
	peerClosed      bool // the client has shut down its sending side, or all of the connection
	watchesWritable bool // the epoll also reports EPOLLOUT: from the first time it was needed
	repeats         bool // it is in the loop's epoll for connections that repeat a poll
	fresh           bool // no request yet
	admitted        bool
	ending          bool // no request follows; the connection closes when the pending output is written
	lingering       bool // input is discarded until the client has read the last answer
	port            uint16

	failure error         // why the running goroutine must stop serving the connection
	unsent  *unsentAnswer // the end of an answer that the socket did not take yet
	req     *request      // used by the running goroutine; at rest, the bytes read beyond the last request
	wake    chan struct{} // for waiting; allocated on first use
	secure  *secureConn   // nil without TLS
	address [16]byte
}

// epoll returns the epoll that watches the connection. mu is held.
func (c *eventConn) epoll() int {
	if c.repeats {
		return c.l.polls
	}
	return c.l.epoll
}

// setRepeats moves the connection between the epolls of its loop, after the goroutine of the loop has read a request.
// What arrives meanwhile is reported by the new epoll. mu is held.
func (c *eventConn) setRepeats(on bool) {
	if c.repeats == on || c.fd < 0 {
		return
	}
	unix.EpollCtl(c.epoll(), unix.EPOLL_CTL_DEL, int(c.fd), nil)
	c.repeats = on
	if err := c.watch(unix.EPOLL_CTL_ADD); err != nil {
		c.l.s.cfg.Log.Error("cannot watch connection", "err", err)
		c.failure = err
	}
}

// watch adds the connection to its epoll, or changes the events that are reported. mu is held.
func (c *eventConn) watch(op int) error {
	ev := unix.EpollEvent{Events: watchedEvents, Fd: c.fd, Pad: int32(c.gen)}
	if c.watchesWritable {
		ev.Events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(c.epoll(), op, int(c.fd), &ev)
}

func (c *eventConn) ip() netip.Addr { return netip.AddrFrom16(c.address).Unmap() }

// unsentAnswer is the rest of a parked answer that must still be written.
type unsentAnswer struct {
	b     []byte
	size  int64 // its share of the server's pending count, and of its caller's
	owner Caller
	close bool // the connection ends after it
}

// handleEvents records the events that epoll reported and starts or wakes a goroutine to act on them. It returns
// the parked request whose client has left, if any.
func (c *eventConn) handleEvents(ev uint32) *Parked {
	c.mu.Lock()
	fast, gone := c.recordEvents(ev)
	c.mu.Unlock()
	if fast && !c.l.readFast(c) {
		c.l.s.runWorker(c)
	}
	return gone
}

// recordEvents is handleEvents under mu. If fast is true, the connection is marked as running and the loop must read
// its request.
func (c *eventConn) recordEvents(ev uint32) (fast bool, gone *Parked) {
	if c.fd < 0 {
		return false, nil
	}
	if ev&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.readable = true
	}
	if ev&(unix.EPOLLOUT|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.writable = true
	}
	if ev&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.peerClosed = true
	}
	switch {
	case c.running:
		c.wakeWorker()
	case c.parked != nil:
		if c.secure != nil && c.readable && !c.peerClosed {
			c.secure.readAhead(c.l.buf)
		}
		if c.peerClosed && !c.parked.brief {
			p := c.parked
			c.closeLocked()
			return false, p
		}
	case c.unsent != nil:
		if c.writable {
			c.start()
		}
	case c.readable:
		if c.handOff() { // the process is ending; the successor reads the request
			return false, nil
		}
		if c.secure != nil && !c.secure.ready {
			c.running = true
			go c.run() // in a new goroutine: handshakes need much stack, and would occupy the pooled ones
			return false, nil
		}
		if c.l.fastPath != nil && c.req == nil && !c.peerClosed && !c.ending && c.failure == nil {
			c.running, c.readable = true, false
			return true, nil
		}
		c.start()
	}
	return false, nil
}

// start makes a goroutine serve the connection. mu is held.
func (c *eventConn) start() {
	c.running = true
	c.l.s.runWorker(c)
}

// wakeWorker wakes the serving goroutine if it waits for the socket. mu is held.
func (c *eventConn) wakeWorker() {
	if c.waiting {
		c.waiting = false
		c.wake <- struct{}{} // never blocks: a wait takes at most one signal
	}
}

// run serves the connection until it can rest or is closed.
func (c *eventConn) run() {
	for c.handshake() && c.flushAnswer() && c.finishLast() && c.readHead() && c.serve() {
	}
}

// rest lets the connection rest and releases mu. The caller has seen under mu that there is nothing to do.
func (c *eventConn) rest() {
	c.running = false
	c.mu.Unlock()
}

// flushAnswer writes the rest of a parked answer. It reports whether to continue.
func (c *eventConn) flushAnswer() bool {
	for c.unsent != nil {
		c.mu.Lock()
		c.writable = false
		c.mu.Unlock()
		n, err := write(c.fd, c.unsent.b)
		if c.secure == nil { // otherwise its content is counted
			c.l.s.bytesOut.Add(int64(n))
		}
		c.unsent.b = c.unsent.b[n:]
		if err != nil && err != unix.EAGAIN {
			return c.close()
		}
		c.mu.Lock()
		switch {
		case len(c.unsent.b) == 0:
			c.l.s.releaseUnsent(c.unsent.owner, c.unsent.size)
			c.ending = c.ending || c.unsent.close
			c.unsent = nil
			c.deadline.Store(0)
		case err == unix.EAGAIN && !c.writable:
			c.rest()
			return false
		}
		c.mu.Unlock()
	}
	return true
}

// readHead reads until the head of a request is complete. It reports false when the connection rests or is
// closed.
func (c *eventConn) readHead() bool {
	s := c.l.s
	if c.req == nil {
		c.req = takeRequest(c)
	}
	r := c.req
	for {
		if s.handoffTarget() != nil {
			c.mu.Lock()
			handedOff := c.handOff()
			c.mu.Unlock()
			if handedOff {
				return false
			}
		}
		if r.buffered() > 0 {
			if r.startedAt == 0 {
				r.startedAt = s.now()
			}
			ok, ref := r.headComplete(&s.cfg)
			if ref != nil {
				return c.refuse(ref)
			}
			if ok {
				return true
			}
		}
		c.mu.Lock()
		if !c.readable && !c.peerClosed {
			c.restForInput()
			return false
		}
		c.readable = false
		c.mu.Unlock()
		b := r.space(s.cfg.MaxHeader)
		n, err := c.read(b)
		switch {
		case n > 0:
			r.extend(n)
			s.bytesIn.Add(int64(n))
			if n == len(b) {
				c.mu.Lock()
				c.readable = true
				c.mu.Unlock()
			}
		case err != unix.EAGAIN: // the end of input: nothing to answer, or half a request
			return c.close()
		case c.peerGone():
			return c.close()
		}
	}
}

// restForInput sets the deadline for more input and lets the connection rest. mu is held, and is released.
func (c *eventConn) restForInput() {
	s, r := c.l.s, c.req
	begun := r.buffered() > 0 || c.secure != nil && c.secure.records.incomplete()
	switch {
	case begun:
		if r.startedAt == 0 {
			r.startedAt = s.now()
		}
		c.deadline.Store(r.startedAt + s.allowedMillis(s.cfg.ReadTimeout, 0))
	// Records without content must not make an idle connection last longer.
	case !c.fresh && (c.secure == nil || c.deadline.Load() == 0 || r.startedAt != 0):
		c.deadline.Store(s.now() + s.allowedMillis(s.cfg.IdleTimeout, 0))
	}
	if !begun {
		r.release()
		c.req = nil
	}
	c.rest()
}

// read returns the bytes that have arrived, without waiting: 0 and nil at the end of the input, EAGAIN if there is
// nothing. If it returns less than p holds, there is no more until the next event, except the end.
func (c *eventConn) read(p []byte) (int, error) {
	if c.secure == nil {
		return read(c.fd, p)
	}
	n, err := c.secure.read(p)
	if c.secure.ended {
		c.mu.Lock()
		c.peerClosed = true // so the next read finds the end
		c.mu.Unlock()
	}
	return n, err
}

func (c *eventConn) peerGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peerClosed && !c.readable
}

// serve passes the complete request to fasthttp. It reports false when the connection rests or is closed.
func (c *eventConn) serve() bool {
	s, r := c.l.s, c.req
	c.deadline.Store(0)
	c.fresh = false
	var conn net.Conn = r
	if c.secure != nil {
		conn = &secureRequest{r, c.secure.conn}
	}
	if ref := s.serveRequest(conn, r); ref != nil {
		return c.refuse(ref)
	}
	keep := r.keepOpen
	if r.parked != nil {
		keep = !r.parked.closeAfter
	}
	unread := r.unread()
	c.mu.Lock()
	if p := c.parked; p != nil {
		if r.next(); r.buffered() == 0 {
			r.release()
			c.req = nil
		}
		if c.secure != nil && c.readable && !c.peerClosed && c.failure == nil {
			b := takeBufferFor(firstReadAhead) // the loop ignored the event while the request was served
			c.secure.readAhead(b.b[:cap(b.b)])
			b.release()
		}
		if c.peerClosed || c.failure != nil || s.dropsParked(p) {
			c.closeLocked()
			c.mu.Unlock()
			s.notifyGone([]*Parked{p})
			return false
		}
		c.rest()
		return false
	}
	if c.failure != nil {
		if !c.handOffPartialBody() {
			c.closeLocked()
		}
		c.mu.Unlock()
		return false
	}
	if c.unsent != nil {
		c.unsent.close = !keep
	} else if !keep {
		c.ending = true
		if unread || r.buffered() > r.ready {
			c.readable = true
		}
	}
	c.mu.Unlock()
	r.next()
	return true
}

// refuse answers in place of the handler and ends the connection.
func (c *eventConn) refuse(ref *refusal) bool {
	c.l.s.refused[ref.reason].Add(1)
	c.writeRefusal(ref)
	c.mu.Lock()
	c.ending, c.readable = true, true
	c.mu.Unlock()
	return true
}

// writeRefusal writes a refusal. It is small: if the socket does not take it, waiting would not help.
func (c *eventConn) writeRefusal(ref *refusal) {
	b := c.l.s.appendRefusal(nil, ref)
	if c.secure != nil {
		sealed, err := c.secure.seal(b)
		if err != nil {
			return
		}
		defer sealed.release()
		b = sealed.b
	}
	n, _ := write(c.fd, b)
	c.l.s.bytesOut.Add(int64(n))
}

// finishLast closes a connection whose last answer is written. If the client has sent more, it first gets time to
// read that answer: closing with unread input resets the connection, and the client may lose the answer.
func (c *eventConn) finishLast() bool {
	if !c.ending {
		return true
	}
	s := c.l.s
	c.mu.Lock()
	if !c.readable {
		c.closeLocked()
		c.mu.Unlock()
		return false
	}
	c.mu.Unlock()
	if c.req != nil {
		c.req.release()
		c.req = nil
	}
	if !c.lingering {
		c.lingering = true
		if c.secure != nil {
			c.secure.sendCloseNotify()
		}
		unix.Shutdown(int(c.fd), unix.SHUT_WR)
		c.deadline.Store(s.now() + s.allowedMillis(s.cfg.LingerTimeout, 0))
	}
	b := takeBuffer()
	defer b.release()
	if cap(b.b) < firstReadAhead {
		b.b = make([]byte, 0, firstReadAhead)
	}
	for total := 0; ; {
		c.mu.Lock()
		c.readable = false
		c.mu.Unlock()
		n, err := read(c.fd, b.b[:cap(b.b)])
		if total += n; n == 0 && err != unix.EAGAIN || total > maxLinger {
			return c.close()
		}
		if err == unix.EAGAIN {
			c.mu.Lock()
			if !c.readable {
				c.rest()
				return false
			}
			c.mu.Unlock()
		}
	}
}

// close closes the connection for the running goroutine. It always returns false.
func (c *eventConn) close() bool {
	c.mu.Lock()
	c.closeLocked()
	c.mu.Unlock()
	return false
}

// closeLocked closes the socket. mu is held, and no goroutine runs except possibly the caller's.
func (c *eventConn) closeLocked() {
	if c.fd < 0 {
		return
	}
	if c.secure != nil {
		if !c.peerClosed && !c.lingering && c.unsent == nil {
			c.secure.sendCloseNotify()
		}
		c.secure.release()
	}
	c.l.conns.remove(int(c.fd)) // before the kernel can reuse the number
	unix.Close(int(c.fd))
	c.fd = -1
	if c.parked != nil && c.parked.brief { // notifyGone counts the others
		c.l.s.countEnded(c.parked)
	}
	c.parked = nil
	c.deadline.Store(0)
	if c.unsent != nil {
		c.l.s.releaseUnsent(c.unsent.owner, c.unsent.size)
		c.unsent = nil
	}
	if c.req != nil {
		c.req.release()
		c.req = nil
	}
	c.l.s.releaseConn(c.ip(), c.admitted)
}

// expire enforces a deadline that has passed.
func (c *eventConn) expire(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.deadline.Load(); c.fd < 0 || d == 0 || d > now {
		return
	}
	switch {
	case c.running:
		if c.waiting {
			c.failure = refuseSlow
			c.wakeWorker()
		}
	case c.unsent != nil:
		c.l.s.writeTimeouts.Add(1)
		c.closeLocked()
	case c.req != nil && !c.ending: // an incomplete head
		c.l.s.refused[reasonSlow].Add(1)
		c.writeRefusal(refuseSlow)
		c.closeLocked()
	case !c.ending && hasInput(c.fd): // the input came in time, but this process was late
		c.readable = true
		c.start()
	default:
		c.closeLocked()
	}
}

func (c *eventConn) park(p *Parked) {
	c.mu.Lock()
	c.parked = p
	c.mu.Unlock()
}

func (c *eventConn) abandon(p *Parked) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked != p {
		return false
	}
	c.parked = nil
	c.l.s.parked.Add(-1)
	return true
}

// answer writes as much as the socket takes at once, under mu: a write that cannot block is short.
func (c *eventConn) answer(p *Parked, status int, parts [][]byte) bool {
	s := c.l.s
	last := p.closeAfter || s.closesAfterAnswer(c)
	b := takeBufferFor(maxHeadBytes + sizeOf(parts))
	b.b = s.compose(b.b, p, last, status, parts)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked != p {
		b.release()
		return false
	}
	c.parked = nil
	s.countEnded(p)
	c.writable = false
	if c.secure != nil {
		size := len(b.b)
		sealed, err := c.secure.seal(b.b)
		b.release()
		if b = sealed; err != nil {
			b.release()
			c.fail(err)
			return false
		}
		s.bytesOut.Add(int64(size))
	}
	n, err := write(c.fd, b.b)
	if c.secure == nil {
		s.bytesOut.Add(int64(n))
	}
	if left := len(b.b) - n; left > 0 {
		if err != nil && err != unix.EAGAIN {
			b.release()
			c.fail(err)
			return false
		}
		caller, ok := s.reserveUnsent(p, int64(left))
		if !ok {
			c.fail(errConnDropped)
			return false
		}
		c.unsent = &unsentAnswer{b: b.takeRest(n), size: int64(left), owner: caller, close: last}
		c.deadline.Store(s.now() + s.allowedMillis(s.cfg.WriteTimeout, int64(left)))
		c.watchWritable()
		s.answers.Add(1)
		return true
	}
	b.release()
	s.answers.Add(1)
	switch {
	case c.running: // the handler has not returned; serve continues from there
	case last:
		if c.readable || c.req != nil {
			c.ending, c.readable = true, true
			c.start()
		} else {
			c.closeLocked()
		}
	case c.readable || c.req != nil:
		c.start()
	default:
		c.deadline.Store(s.coarseNow.Load() + s.allowedMillis(s.cfg.IdleTimeout, 0))
	}
	return true
}

// fail ends a connection to which an answer could not be written. mu is held.
func (c *eventConn) fail(err error) {
	if c.running {
		c.failure = err
		c.wakeWorker()
		return
	}
	c.closeLocked()
}

func (c *eventConn) remoteAddr() net.Addr { return tcpAddr(c.ip(), c.port) }

func (c *eventConn) localAddr() net.Addr {
	sa, err := unix.Getsockname(int(c.fd))
	if err != nil {
		return &net.TCPAddr{}
	}
	ip, port := addressOf(sa)
	return tcpAddr(ip, port)
}

// closeIdleEvented closes evented connections that wait for a request, in a shutdown that cannot hand them off. A
// connection whose request has arrived but was not read yet gets its answer: closing it would reset the
// connection.
func (s *Server) closeIdleEvented() {
	if s.handoffTarget().open() {
		return
	}
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		inGrace := c.fresh && s.now() < s.graceUntil.Load()
		if c.fd >= 0 && !c.running && c.parked == nil && c.unsent == nil && c.req == nil && !c.ending &&
			!c.readable && !inGrace && !hasInput(c.fd) {
			c.closeLocked()
		}
		c.mu.Unlock()
	})
}

// hasInput reports whether a socket has bytes to read.
func hasInput(fd int32) bool {
	n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && n > 0
}

// dropParkedEvented closes all connections with parked requests and notifies their owners.
func (s *Server) dropParkedEvented() {
	var gone []*Parked
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		if p := c.parked; p != nil && !p.brief && !c.running {
			c.closeLocked()
			gone = append(gone, p)
		}
		c.mu.Unlock()
	})
	s.notifyGone(gone)
}

// abortEvented ends every connection, in any state.
func (s *Server) abortEvented() {
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		if c.fd >= 0 && c.running {
			c.failure = errConnDropped
			unix.Shutdown(int(c.fd), unix.SHUT_RDWR)
			c.wakeWorker()
		} else {
			c.closeLocked()
		}
		c.mu.Unlock()
	})
}

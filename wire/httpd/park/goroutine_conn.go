package park

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// goroutineConn is a connection with a goroutine of its own: for systems and listeners without epoll. While a request
// is parked, the goroutine reads ahead to notice when the client leaves.
type goroutineConn struct {
	s        *Server
	conn     net.Conn
	tls      *tls.Conn // conn with TLS
	ip       netip.Addr
	admitted bool
	req      *request // used by the serving goroutine only

	mu            sync.Mutex
	parked        *Parked
	writing       chan struct{} // closed when the answer being written is sent
	reading       bool          // the goroutine reads for the next request
	idle          bool          // it has no byte of that request yet, and no answer is due
	readAhead     bool          // it holds bytes of the next request while this one waits for its answer
	sending       bool          // an answer is being written
	interrupted   bool          // the read is interrupted because the answer was sent
	closed        bool
	closeWhenIdle bool // set by Shutdown
}

func (s *Server) acceptBlocking(ln net.Listener) error {
	var pause time.Duration
	for {
		conn, err := ln.Accept()
		if err != nil {
			if !s.acceptPause(err, &pause) {
				return err
			}
			continue
		}
		pause = 0
		s.serveBlocking(conn)
	}
}

// serveBlocking begins to serve an accepted connection, or refuses it.
func (s *Server) serveBlocking(conn net.Conn) {
	s.accepted.Add(1)
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: s.cfg.KeepAlive, Interval: s.cfg.KeepAlive / 4,
			Count: 4})
	}
	c := &goroutineConn{s: s, conn: conn, idle: true}
	if a, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		c.ip = a.Addr()
	}
	ref := s.admitConn(c.ip)
	c.admitted = ref == nil
	if s.open.Load() > int64(s.cfg.MaxConns+maxRefusedOpen) {
		s.refused[ref.reason].Add(1)
		s.releaseConn(c.ip, c.admitted)
		conn.Close()
		return
	}
	s.mu.Lock()
	s.blocking[c] = struct{}{}
	s.mu.Unlock()
	go c.run(ref)
}

// run serves the connection from beginning to end.
func (c *goroutineConn) run(ref *refusal) {
	defer c.close()
	s := c.s
	c.conn.SetDeadline(time.Now().Add(s.cfg.ReadTimeout))
	if s.cfg.TLS != nil {
		t := tls.Server(c.conn, s.tlsConfig())
		if ref == nil {
			if err := t.Handshake(); err != nil {
				return
			}
		}
		c.mu.Lock()
		socket := c.conn
		c.tls, c.conn = t, t
		http2 := ref == nil && choseHTTP2(t)
		c.idle = c.idle && !http2 // a shutdown is announced to it
		c.mu.Unlock()
		if http2 {
			socket.SetDeadline(time.Time{})
			(&http2Conn{s: s, conn: t, socket: socket}).serve()
			return
		}
	}
	if ref != nil {
		s.refused[ref.reason].Add(1)
		if c.tls == nil { // with TLS, a refused client would cost a handshake
			c.conn.Write(s.appendRefusal(nil, ref))
			c.linger()
		}
		return
	}
	c.req = takeRequest(c)
	defer func() { c.req.release() }()
	for fresh := true; c.readHead(fresh) && c.serve(); fresh = false {
	}
}

// readHead reads until the head of a request is complete and the previous answer is sent. It reports false when
// the connection is finished.
func (c *goroutineConn) readHead(fresh bool) bool {
	s, r := c.s, c.req
	for {
		parked := c.isParked()
		if r.buffered() > 0 && !parked {
			if !c.awaitAnswer() {
				return false
			}
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
		wait, isHead := s.cfg.IdleTimeout, r.startedAt != 0
		if fresh {
			wait = s.cfg.ReadTimeout
		}
		if isHead {
			wait = time.Duration(r.startedAt+s.allowedMillis(s.cfg.ReadTimeout, 0)-s.now()) * time.Millisecond
		}
		b := r.space(s.cfg.MaxHeader)
		// the buffer is full behind a parked request: a client that leaves is noticed at the answer only
		if b == nil {
			if !c.awaitAnswer() {
				return false
			}
			continue
		}
		c.mu.Lock()
		if c.closed || c.closeWhenIdle && !isHead && c.parked == nil && c.writing == nil {
			c.mu.Unlock()
			return false
		}
		if parked && c.parked == nil && r.buffered() > 0 { // answered by now: process the bytes behind it
			c.mu.Unlock()
			continue
		}
		c.setReadDeadline(wait, !isHead)
		c.mu.Unlock()
		n, err := c.conn.Read(b)
		r.extend(n)
		s.bytesIn.Add(int64(n))
		c.mu.Lock()
		closed, woken := c.closed, c.interrupted
		c.reading, c.idle, c.readAhead, c.interrupted = false, false, false, false
		c.mu.Unlock()
		if n == 0 && err != nil {
			if !closed && woken && errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			if !closed && errors.Is(err, os.ErrDeadlineExceeded) && isHead {
				return c.refuse(refuseSlow)
			}
			return false
		}
	}
}

func (c *goroutineConn) isParked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parked != nil
}

// setReadDeadline prepares a read. There is no deadline while a request is parked or its answer is being written;
// the writer sets one afterwards. mu is held.
func (c *goroutineConn) setReadDeadline(wait time.Duration, idle bool) {
	c.reading = true
	if c.parked != nil || c.writing != nil {
		c.readAhead = c.req.buffered() > 0
		c.conn.SetReadDeadline(time.Time{})
		return
	}
	c.idle = idle
	c.conn.SetReadDeadline(time.Now().Add(wait))
}

// awaitAnswer waits until no answer is due or being written. It reports whether the connection is still usable.
func (c *goroutineConn) awaitAnswer() bool {
	for {
		c.mu.Lock()
		p, w, closed := c.parked, c.writing, c.closed
		if p != nil && w == nil {
			w = make(chan struct{})
			c.writing = w
		}
		c.mu.Unlock()
		if w == nil || closed {
			return !closed
		}
		<-w
	}
}

// serve passes the complete request to fasthttp. It reports false when the connection is finished.
func (c *goroutineConn) serve() bool {
	s, r := c.s, c.req
	var conn net.Conn = r
	if c.tls != nil {
		conn = &secureRequest{r, c.tls}
	}
	if ref := s.serveRequest(conn, r); ref != nil {
		return c.refuse(ref)
	}
	keep := r.keepOpen
	if r.parked != nil {
		keep = true // until the answer, which closes the connection if necessary
	}
	unread := r.unread() || r.buffered() > 0
	r.next()
	if !keep && unread {
		c.linger()
	}
	c.mu.Lock()
	p := c.parked
	c.mu.Unlock()
	if p != nil && s.dropsParked(p) {
		c.dropParked()
	}
	return keep
}

func (c *goroutineConn) refuse(ref *refusal) bool {
	c.s.refused[ref.reason].Add(1)
	c.conn.SetWriteDeadline(time.Now().Add(c.s.cfg.WriteTimeout))
	n, _ := c.conn.Write(c.s.appendRefusal(nil, ref)) // the connection ends in any case
	c.s.bytesOut.Add(int64(n))
	c.linger()
	return false
}

// linger gives the client time to read the last answer: closing with unread input would reset the connection.
func (c *goroutineConn) linger() {
	if w, ok := c.conn.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	}
	c.conn.SetReadDeadline(time.Now().Add(c.s.cfg.LingerTimeout))
	io.CopyN(io.Discard, c.conn, maxLinger)
}

// close ends the connection for its own goroutine, and notifies the owner of a request that is still parked.
func (c *goroutineConn) close() {
	c.mu.Lock()
	p, w := c.parked, c.writing
	c.parked, c.closed = nil, true
	if p != nil {
		c.writing = nil
	}
	c.mu.Unlock()
	if p == nil && w != nil {
		<-w // the last answer is sent
	}
	c.conn.Close()
	c.s.mu.Lock()
	delete(c.s.blocking, c)
	c.s.mu.Unlock()
	if p != nil {
		c.s.notifyGone([]*Parked{p})
	}
	c.s.releaseConn(c.ip, c.admitted)
}

// recv waits for bytes of the request's body.
func (c *goroutineConn) recv(p []byte) (int, error) {
	s, r := c.s, c.req
	wait := s.bodyDeadline(r) - s.now()
	c.conn.SetReadDeadline(time.Now().Add(time.Duration(wait) * time.Millisecond))
	n, err := c.conn.Read(p)
	r.bodyReceived += int64(n)
	s.bytesIn.Add(int64(n))
	if n > 0 {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = refuseSlow
	}
	return 0, err
}

// send waits until the client took all of p. It writes pieces small enough to notice progress.
func (c *goroutineConn) send(p []byte) (int, error) {
	return c.write(p)
}

func (c *goroutineConn) write(p []byte) (int, error) {
	const piece = 64 << 10
	s, done, start := c.s, 0, c.s.now()
	c.markSending(true)
	defer c.markSending(false)
	for done < len(p) {
		wait := s.sendDeadline(start, int64(done)) - s.now()
		c.conn.SetWriteDeadline(time.Now().Add(time.Duration(wait) * time.Millisecond))
		n, err := c.conn.Write(p[done:min(len(p), done+piece)])
		done += n
		s.bytesOut.Add(int64(n))
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.writeTimeouts.Add(1)
			}
			return done, err
		}
	}
	return done, nil
}

func (c *goroutineConn) markSending(sending bool) {
	c.mu.Lock()
	c.sending = sending
	c.mu.Unlock()
}

func (c *goroutineConn) park(p *Parked) {
	c.mu.Lock()
	c.parked = p
	c.mu.Unlock()
}

func (c *goroutineConn) abandon(p *Parked) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked != p {
		return false
	}
	c.parked = nil
	c.s.parked.Add(-1)
	c.answerDone()
	return true
}

// answerDone lets awaitAnswer continue. mu is held.
func (c *goroutineConn) answerDone() {
	if c.writing != nil {
		close(c.writing)
		c.writing = nil
	}
}

// answer starts a goroutine that writes, because writing may block here.
func (c *goroutineConn) answer(p *Parked, status int, parts [][]byte) bool {
	s := c.s
	last := p.closeAfter || s.closesAfterAnswer(c)
	b := s.compose(nil, p, last, status, parts)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked != p {
		return false
	}
	c.parked = nil
	s.parked.Add(-1)
	caller, ok := s.reserveUnsent(p, int64(len(b)))
	if !ok {
		c.answerDone()
		c.conn.SetDeadline(time.Unix(1, 0)) // not Close: the connection's goroutine closes it
		return false
	}
	if c.writing == nil {
		c.writing = make(chan struct{})
	}
	s.answers.Add(1)
	go func() {
		_, err := c.write(b)
		s.releaseUnsent(caller, int64(len(b)))
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case err != nil || last || c.closeWhenIdle:
			c.closed = true
			c.conn.SetReadDeadline(time.Unix(1, 0))
		case c.readAhead:
			c.interrupted = true
			c.conn.SetReadDeadline(time.Unix(1, 0))
		case c.reading:
			c.idle = true
			c.conn.SetReadDeadline(time.Now().Add(s.cfg.IdleTimeout))
		}
		c.answerDone()
	}()
	return true
}

func (c *goroutineConn) prefetch() uint32 { return 0 }

func (c *goroutineConn) remoteAddr() net.Addr { return c.conn.RemoteAddr() }
func (c *goroutineConn) localAddr() net.Addr  { return c.conn.LocalAddr() }

func (s *Server) eachBlocking(visit func(*goroutineConn)) {
	s.mu.Lock()
	all := make([]*goroutineConn, 0, len(s.blocking))
	for c := range s.blocking {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		visit(c)
	}
}

func (c *goroutineConn) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closeWhenIdle = true
	if c.idle && c.parked == nil && c.writing == nil {
		c.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

func (c *goroutineConn) dropParked() {
	c.mu.Lock()
	p := c.parked
	if p != nil {
		c.parked, c.closed = nil, true
		c.conn.SetDeadline(time.Unix(1, 0))
		c.answerDone()
	}
	c.mu.Unlock()
	if p != nil {
		c.s.notifyGone([]*Parked{p})
	}
}

// abort closes the socket under any reader or writer. The connection's goroutine cleans up.
func (c *goroutineConn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if t, ok := c.conn.(*tls.Conn); ok {
		t.NetConn().Close() // without the TLS close message, which might block
	} else {
		c.conn.Close()
	}
	c.answerDone()
}

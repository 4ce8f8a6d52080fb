package park

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Handoff is a socket through which an ending server sends its connections to its successor. Each connection is
// sent as its descriptor and the bytes that were read but not served. So a client keeps its connection across an
// upgrade, and no request arrives at a closing connection: nothing else can prevent that. StartSuccessor creates both
// ends. Its methods are safe for concurrent use.
type Handoff struct {
	mu sync.Mutex // one sender at a time
	fd int        // -1 when closed
}

// The state of a connection that is handed off: the first byte of its packet.
const (
	handoffFresh     = 'f' // no request yet
	handoffIdle      = 'u' // between requests, possibly with some bytes of the next
	handoffLingering = 'l' // its last answer is sent; further input is discarded
	// the packet holds a request that will be parked; connections in other states are served first
	handoffParked = 'w'
)

// Limits of a handoff.
const (
	// handoffTimeout is how long sending one connection may take. The successor receives in a goroutine that does
	// nothing else.
	handoffTimeout = 2 * time.Second
)

// newHandoff creates both ends: the sender's, and a descriptor for the successor.
func newHandoff() (*Handoff, int, error) {
	// Packets, because each descriptor must stay with its bytes.
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("create handoff socket: %w", err)
	}
	wait := unix.NsecToTimeval(int64(handoffTimeout))
	err = errors.Join(unix.SetsockoptTimeval(ends[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait),
		unix.SetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 2*maxHandoffBytes))
	if err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, 0, fmt.Errorf("create handoff socket: %w", err)
	}
	return &Handoff{fd: ends[0]}, ends[1], nil
}

// InheritHandoff returns the end of the handoff that StartSuccessor passed to this process, nil if there is none.
// A second call returns nil.
func InheritHandoff() *Handoff {
	fd, err := strconv.Atoi(os.Getenv(handoffEnv))
	os.Unsetenv(handoffEnv)
	if err != nil || fd < firstInheritedFD {
		return nil
	}
	unix.CloseOnExec(fd)
	return &Handoff{fd: fd}
}

// Close ends the handoff: the receiver at the other end then has all connections.
func (p *Handoff) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}

// open reports whether connections can still be sent.
func (p *Handoff) open() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fd >= 0
}

// send sends a connection and reports whether it was sent. The caller keeps its own descriptor.
func (p *Handoff) send(fd int32, state byte, received []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 || len(received) > maxHandoffBytes {
		return false
	}
	packet := append([]byte{state}, received...)
	rights := unix.UnixRights(int(fd))
	for end := time.Now().Add(handoffTimeout); ; {
		err := unix.Sendmsg(p.fd, packet, rights, nil, unix.MSG_NOSIGNAL)
		switch {
		case err == nil:
			return true
		// more descriptors are in transit than a process may have open
		case err == unix.ETOOMANYREFS && time.Now().Before(end):
			time.Sleep(time.Millisecond)
		case err != unix.EINTR:
			unix.Close(p.fd)
			p.fd = -1
			return false
		}
	}
}

// receive calls add with every connection, until the sender closes its end.
func (p *Handoff) receive(add func(acceptedConn)) {
	b, control := make([]byte, 1+maxHandoffBytes), make([]byte, unix.CmsgSpace(4))
	for {
		n, m, _, _, err := unix.Recvmsg(p.fd, b, control, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		messages, err := unix.ParseSocketControlMessage(control[:m])
		if err != nil || len(messages) == 0 {
			continue // this process has no room for another descriptor
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(fds) == 0 {
			continue
		}
		a := acceptedConn{fd: fds[0], state: b[0]}
		if n > 1 {
			a.received = append([]byte(nil), b[1:n]...)
		}
		if a.from, err = unix.Getpeername(a.fd); err != nil {
			unix.Close(a.fd) // its client has left
			continue
		}
		add(a)
	}
}

// handoffTarget returns where connections at rest are sent from now on, nil if they stay. Those with TLS stay: the
// state of crypto/tls cannot be sent.
func (s *Server) handoffTarget() *Handoff {
	if !s.draining.Load() || s.cfg.TLS != nil {
		return nil
	}
	return s.handoff.Load()
}

// handOff sends the connection to the successor and reports whether it was sent; then it is closed here. mu is
// held, and no goroutine serves the connection except possibly the caller's.
func (c *eventConn) handOff() bool {
	p := c.l.s.handoffTarget()
	if p == nil || c.fd < 0 || c.parked != nil || c.unsent != nil || c.ending && !c.lingering {
		return false
	}
	state, received := byte(handoffIdle), []byte(nil)
	switch {
	case c.lingering:
		state = handoffLingering
	case c.fresh:
		state = handoffFresh
	}
	if c.req != nil && !c.lingering {
		received = c.req.buf[c.req.offset:]
	}
	return c.handOffAs(p, state, received)
}

// handOffAs sends the connection with the bytes read from it, if the successor takes it. mu is held.
func (c *eventConn) handOffAs(p *Handoff, state byte, received []byte) bool {
	if !p.send(c.fd, state, received) {
		return false
	}
	// The socket stays open in the successor, so epoll would still report its events here.
	unix.EpollCtl(c.epoll(), unix.EPOLL_CTL_DEL, int(c.fd), nil)
	c.l.s.handedOff.Add(1)
	c.closeLocked()
	return true
}

// handOffPartialBody is handOff for the goroutine of a request whose body is incomplete.
func (c *eventConn) handOffPartialBody() bool {
	p := c.l.s.handoffTarget()
	return p != nil && c.failure == errHandedOff && c.handOffAs(p, handoffIdle, c.req.received)
}

// handOffParked sends the connections with parked requests whose bytes are known: the successor parks them again.
// Their clients need not ask again, all at the same time. Those that ask in the meantime are still served here.
func (s *Server) handOffParked() {
	p := s.handoff.Load() // before handoffTarget returns it
	if s.cfg.TLS != nil || !p.open() {
		return
	}
	var b []byte
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fd < 0 || c.running || c.parked == nil || !c.parked.remembered || c.parked.brief || c.req != nil ||
			c.unsent != nil || c.peerClosed || c.ending || c.failure != nil {
			return
		}
		var known bool
		// Its owner may still answer. That answer is lost, but its events stay in the queue.
		if b, known = c.memo.appendRequest(b[:0]); known && c.handOffAs(p, handoffParked, b) {
			s.parked.Add(-1)
		}
	})
}

// handOffIdle sends every connection at rest, and those that wait for more of a body.
func (s *Server) handOffIdle() {
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		switch {
		case !c.running:
			c.handOff()
		case c.waiting && !c.sending && c.failure == nil && c.req != nil && c.req.received != nil &&
			s.handoffTarget().open():
			c.failure = errHandedOff
			c.wakeWorker()
		}
		c.mu.Unlock()
	})
}

// onlyUnsentAnswers reports whether all open connections only wait for their clients to read an answer.
func (s *Server) onlyUnsentAnswers() bool {
	result := true
	s.eachBlocking(func(c *goroutineConn) {
		c.mu.Lock()
		result = result && c.sending
		c.mu.Unlock()
	})
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		if c.fd >= 0 && !(c.running && c.waiting && c.sending) && !(c.unsent != nil && !c.running) {
			result = false
		}
		c.mu.Unlock()
	})
	return result
}

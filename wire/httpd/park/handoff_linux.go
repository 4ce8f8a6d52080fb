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

// Handoff is a socket through which a server that ends gives its connections to its successor: each as its descriptor
// and the bytes that were read of a request but not yet served. So a client keeps its connection across an upgrade, and
// no request can meet the closing of the one it was sent on, which nothing else can rule out. StartSuccessor makes both ends.
type Handoff struct {
	mu sync.Mutex // one giver at a time
	fd int        // -1 when closed
}

// What a connection that is passed is about, the first byte of its packet.
const (
	handoffFresh     = 'f' // no request yet
	handoffIdle      = 'u' // between requests, perhaps with some of the next
	handoffLingering = 'l' // its last answer is out; what still comes is thrown away
	handoffParked    = 'w' // its request, which came with it, is one that waits for long; those of others come first
)

// Limits of a passage.
const (
	// handoffTimeout is how long one connection may wait for the successor to take it. It takes them as they come, in a
	// goroutine that does nothing else.
	handoffTimeout = 2 * time.Second
)

// newHandoff makes both ends: the giver's, and a descriptor for the successor.
func newHandoff() (*Handoff, int, error) {
	// Packets, because each descriptor must stay with its bytes.
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("make a passage: %w", err)
	}
	wait := unix.NsecToTimeval(int64(handoffTimeout))
	err = errors.Join(unix.SetsockoptTimeval(ends[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait), unix.SetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 2*maxHandoffBytes))
	if err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, 0, fmt.Errorf("make a passage: %w", err)
	}
	return &Handoff{fd: ends[0]}, ends[1], nil
}

// InheritHandoff returns the end of the passage that StartSuccessor gave this process, nil if there is none. It takes it, as
// InheritListeners does.
func InheritHandoff() *Handoff {
	fd, err := strconv.Atoi(os.Getenv(handoffEnv))
	os.Unsetenv(handoffEnv)
	if err != nil || fd < firstInheritedFD {
		return nil
	}
	unix.CloseOnExec(fd)
	return &Handoff{fd: fd}
}

// Close ends the passage: who takes from its other end then has all.
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

// open reports whether connections can still be given.
func (p *Handoff) open() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fd >= 0
}

// send passes a connection and reports whether it went. The caller still has its own descriptor.
func (p *Handoff) send(fd int32, about byte, read []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 || len(read) > maxHandoffBytes {
		return false
	}
	packet := append([]byte{about}, read...)
	rights := unix.UnixRights(int(fd))
	for end := time.Now().Add(handoffTimeout); ; {
		err := unix.Sendmsg(p.fd, packet, rights, nil, unix.MSG_NOSIGNAL)
		switch {
		case err == nil:
			return true
		case err == unix.ETOOMANYREFS && time.Now().Before(end): // more are on their way than a process may have open
			time.Sleep(time.Millisecond)
		case err != unix.EINTR:
			unix.Close(p.fd)
			p.fd = -1
			return false
		}
	}
}

// receive calls keep with every connection that comes, until all have.
func (p *Handoff) receive(keep func(acceptedConn)) {
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
		keep(a)
	}
}

// handoffTarget is where connections at rest go from now on, nil if they stay.
func (s *Server) handoffTarget() *Handoff {
	if !s.draining.Load() {
		return nil
	}
	return s.handoff.Load()
}

// handOff gives the connection to the successor and reports whether it went; then it is closed here. mu is held, and nobody
// serves the connection but perhaps the caller.
func (c *eventConn) handOff() bool {
	p := c.l.s.handoffTarget()
	if p == nil || c.fd < 0 || c.parked != nil || c.unsent != nil || c.ending && !c.lingering {
		return false
	}
	about, read := byte(handoffIdle), []byte(nil)
	switch {
	case c.lingering:
		about = handoffLingering
	case c.fresh:
		about = handoffFresh
	}
	if c.req != nil && !c.lingering {
		read = c.req.buf[c.req.offset:]
	}
	return c.handOffAs(p, about, read)
}

// handOffAs passes the connection with what was read on it, if the successor takes it. mu is held.
func (c *eventConn) handOffAs(p *Handoff, about byte, read []byte) bool {
	if !p.send(c.fd, about, read) {
		return false
	}
	// The socket lives on, so the epoll would go on telling of it.
	unix.EpollCtl(c.l.epoll, unix.EPOLL_CTL_DEL, int(c.fd), nil)
	c.l.s.handedOff.Add(1)
	c.closeLocked()
	return true
}

// handOffPartialBody is pass for the goroutine of a request whose body did not come to its end.
func (c *eventConn) handOffPartialBody() bool {
	p := c.l.s.handoffTarget()
	return p != nil && c.failure == errHandedOff && c.handOffAs(p, handoffIdle, c.req.received)
}

// handOffParked passes the connections whose requests are parked and known to the byte: the successor parks them anew. Their
// clients need not be told to ask again, all of them at once, and those who ask meanwhile are still served.
func (s *Server) handOffParked() {
	p := s.handoff.Load()
	if !p.open() {
		return
	}
	var b []byte
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fd < 0 || c.running || c.parked == nil || !c.parked.remembered || c.parked.brief || c.req != nil || c.unsent != nil || c.peerClosed || c.ending || c.failure != nil {
			return
		}
		var known bool
		// Its owner may still answer; nobody hears that, and what was told stays in its queue.
		if b, known = c.memo.appendRequest(b[:0]); known && c.handOffAs(p, handoffParked, b) {
			s.parked.Add(-1)
		}
	})
}

// handOffIdle passes every connection at rest, and has those passed that wait for more of a body.
func (s *Server) handOffIdle() {
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		switch {
		case !c.running:
			c.handOff()
		case c.waiting && !c.sending && c.failure == nil && c.req.received != nil && s.handoffTarget().open():
			c.failure = errHandedOff
			c.wakeWorker()
		}
		c.mu.Unlock()
	})
}

// onlyUnsentAnswers reports whether all that is left open are connections that only wait for their clients to take an answer.
func (s *Server) onlyUnsentAnswers() bool {
	only := true
	s.eachBlocking(func(c *goroutineConn) {
		c.mu.Lock()
		only = only && c.sending
		c.mu.Unlock()
	})
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		if c.fd >= 0 && !(c.running && c.waiting && c.sending) && !(c.unsent != nil && !c.running) {
			only = false
		}
		c.mu.Unlock()
	})
	return only
}

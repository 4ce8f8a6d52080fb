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

// Passage is a socket through which a server that ends gives its connections to its successor: each as its descriptor
// and the bytes that were read of a request but not yet served. So a client keeps its connection across an upgrade, and
// no request can meet the closing of the one it was sent on, which nothing else can rule out. Handover makes both ends.
type Passage struct {
	mu sync.Mutex // one giver at a time
	fd int        // -1 when closed
}

// What a connection that is passed is about, the first byte of its packet.
const (
	passFresh  = 'f' // no request yet
	passUsed   = 'u' // between requests, perhaps with some of the next
	passLinger = 'l' // its last answer is out; what still comes is thrown away
	passWaits  = 'w' // its request, which came with it, is one that waits for long; those of others come first
)

// Limits of a passage.
const (
	// passPatience is how long one connection may wait for the successor to take it. It takes them as they come, in a
	// goroutine that does nothing else.
	passPatience = 2 * time.Second
)

// newPassage makes both ends: the giver's, and a descriptor for the successor.
func newPassage() (*Passage, int, error) {
	// Packets, because each descriptor must stay with its bytes.
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("make a passage: %w", err)
	}
	wait := unix.NsecToTimeval(int64(passPatience))
	err = errors.Join(unix.SetsockoptTimeval(ends[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait), unix.SetsockoptInt(ends[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 2*passBytes))
	if err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, 0, fmt.Errorf("make a passage: %w", err)
	}
	return &Passage{fd: ends[0]}, ends[1], nil
}

// InheritPassage returns the end of the passage that Handover gave this process, nil if there is none. It takes it, as
// Inherit does.
func InheritPassage() *Passage {
	fd, err := strconv.Atoi(os.Getenv(heirPassage))
	os.Unsetenv(heirPassage)
	if err != nil || fd < firstFile {
		return nil
	}
	unix.CloseOnExec(fd)
	return &Passage{fd: fd}
}

// Close ends the passage: who takes from its other end then has all.
func (p *Passage) Close() {
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
func (p *Passage) open() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fd >= 0
}

// give passes a connection and reports whether it went. The caller still has its own descriptor.
func (p *Passage) give(fd int32, about byte, read []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd < 0 || len(read) > passBytes {
		return false
	}
	packet := append([]byte{about}, read...)
	rights := unix.UnixRights(int(fd))
	for end := time.Now().Add(passPatience); ; {
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

// take calls keep with every connection that comes, until all have.
func (p *Passage) take(keep func(arrival)) {
	b, control := make([]byte, 1+passBytes), make([]byte, unix.CmsgSpace(4))
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
		a := arrival{fd: fds[0], about: b[0]}
		if n > 1 {
			a.read = append([]byte(nil), b[1:n]...)
		}
		if a.from, err = unix.Getpeername(a.fd); err != nil {
			unix.Close(a.fd) // its client has left
			continue
		}
		keep(a)
	}
}

// passing is where connections at rest go from now on, nil if they stay.
func (s *Server) passing() *Passage {
	if !s.draining.Load() {
		return nil
	}
	return s.passage.Load()
}

// pass gives the connection to the successor and reports whether it went; then it is closed here. mu is held, and nobody
// serves the connection but perhaps the caller.
func (c *eventConn) pass() bool {
	p := c.l.s.passing()
	if p == nil || c.fd < 0 || c.parked != nil || c.out != nil || c.ending && !c.lingering {
		return false
	}
	about, read := byte(passUsed), []byte(nil)
	switch {
	case c.lingering:
		about = passLinger
	case c.fresh:
		about = passFresh
	}
	if c.req != nil && !c.lingering {
		read = c.req.buf[c.req.at:]
	}
	return c.give(p, about, read)
}

// give passes the connection with what was read on it, if the successor takes it. mu is held.
func (c *eventConn) give(p *Passage, about byte, read []byte) bool {
	if !p.give(c.fd, about, read) {
		return false
	}
	// The socket lives on, so the epoll would go on telling of it.
	unix.EpollCtl(c.l.epoll, unix.EPOLL_CTL_DEL, int(c.fd), nil)
	c.l.s.passed.Add(1)
	c.closeLocked()
	return true
}

// passPart is pass for the goroutine of a request whose body did not come to its end.
func (c *eventConn) passPart() bool {
	p := c.l.s.passing()
	return p != nil && c.broken == errPassed && c.give(p, passUsed, c.req.whole)
}

// passWaiting passes the connections whose requests are parked and known to the byte: the successor parks them anew. Their
// clients need not be told to ask again, all of them at once, and those who ask meanwhile are still served.
func (s *Server) passWaiting() {
	p := s.passage.Load()
	if !p.open() {
		return
	}
	var b []byte
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fd < 0 || c.running || c.parked == nil || !c.parked.known || c.parked.held || c.req != nil || c.out != nil || c.hup || c.ending || c.broken != nil {
			return
		}
		var known bool
		// Its owner may still answer; nobody hears that, and what was told stays in its queue.
		if b, known = c.memo.request(b[:0]); known && c.give(p, passWaits, b) {
			s.parked.Add(-1)
		}
	})
}

// passIdle passes every connection at rest, and has those passed that wait for more of a body.
func (s *Server) passIdle() {
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		switch {
		case !c.running:
			c.pass()
		case c.waiting && !c.sending && c.broken == nil && c.req.whole != nil && s.passing().open():
			c.broken = errPassed
			c.stir()
		}
		c.mu.Unlock()
	})
}

// owes reports whether all that is left open are connections that only wait for their clients to take an answer.
func (s *Server) owes() bool {
	only := true
	s.eachBlocking(func(c *blockConn) {
		c.mu.Lock()
		only = only && c.sending
		c.mu.Unlock()
	})
	s.eachEvented(func(c *eventConn) {
		c.mu.Lock()
		if c.fd >= 0 && !(c.running && c.waiting && c.sending) && !(c.out != nil && !c.running) {
			only = false
		}
		c.mu.Unlock()
	})
	return only
}

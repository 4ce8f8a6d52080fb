package swarm

import (
	"crypto/tls"
	"io"
	"iter"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// secureConn is the TLS layer of a Conn. crypto/tls reads and writes through it and never waits: the handshake runs in
// a coroutine that yields when the socket has nothing, and later reads return a temporary error.
type secureConn struct {
	c       *Conn
	tls     *tls.Conn
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool // nil after the handshake
	out     []byte
	err     error
	drained bool
}

func newSecureConn(c *Conn) *secureConn {
	s := &secureConn{c: c}
	s.tls = tls.Client(s, c.TLS)
	s.next, s.stop = iter.Pull(func(yield func(struct{}) bool) {
		s.yield = yield
		s.err = s.tls.Handshake()
		s.yield = nil
	})
	return s
}

// handshake continues the handshake and reports whether it is complete.
func (s *secureConn) handshake() (done bool, err error) {
	_, more := s.next()
	return !more, s.err
}

// seal returns the records of b. They are valid until the next call.
func (s *secureConn) seal(b []byte) []byte {
	s.out = s.c.Loop.sealed[:0]
	s.tls.Write(b)
	s.c.Loop.sealed, b = s.out, s.out
	s.out = nil
	return b
}

// read decrypts the bytes that have arrived. It returns EAGAIN if nothing has arrived.
func (s *secureConn) read(b []byte) (int, unix.Errno) {
	s.drained = false
	n, err := s.tls.Read(b)
	switch {
	case n > 0 || err == io.EOF:
		return n, 0
	case err == errWouldBlock:
		return 0, unix.EAGAIN
	}
	return 0, unix.EPROTO
}

// Read is called by crypto/tls.
func (s *secureConn) Read(p []byte) (int, error) {
	for {
		if s.drained {
			return 0, errWouldBlock
		}
		n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(s.c.fd-1), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch {
		case e == unix.EINTR:
		case e == 0 && n == 0:
			return 0, io.EOF
		case e == 0:
			s.drained = s.yield == nil && int(n) < len(p)
			return int(n), nil
		case e != unix.EAGAIN:
			return 0, e
		case s.yield == nil:
			return 0, errWouldBlock
		case !s.yield(struct{}{}):
			return 0, net.ErrClosed
		}
	}
}

// Write is called by crypto/tls. Records of the handshake are sent at once, others by seal.
func (s *secureConn) Write(p []byte) (int, error) {
	if s.yield == nil {
		s.out = append(s.out, p...)
		return len(p), nil
	}
	n, err := unix.Write(s.c.fd-1, p)
	return max(n, 0), err
}

var errWouldBlock net.Error = wouldBlockError{}

type wouldBlockError struct{}

func (wouldBlockError) Error() string   { return "no input yet" }
func (wouldBlockError) Timeout() bool   { return true }
func (wouldBlockError) Temporary() bool { return true }

// The rest of net.Conn, which crypto/tls does not need.
func (s *secureConn) Close() error                     { return nil }
func (s *secureConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *secureConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *secureConn) SetDeadline(time.Time) error      { return nil }
func (s *secureConn) SetReadDeadline(time.Time) error  { return nil }
func (s *secureConn) SetWriteDeadline(time.Time) error { return nil }

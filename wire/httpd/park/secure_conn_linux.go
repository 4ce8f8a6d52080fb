package park

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// secureConn is the TLS layer of a connection in an epoll. crypto/tls reads from it and writes to it, as from a
// net.Conn. Reads return the bytes of the socket, or an error that crypto/tls does not store. Writes
// collect the records for the caller. Only the handshake waits, in a goroutine.
//
// It is used by the running goroutine of the connection, or by the holder of its mu while the connection rests.
type secureConn struct {
	c       *eventConn
	conn    *tls.Conn // nil before the first byte
	out     *buffer   // records to be sent
	until   int64     // when the handshake must be complete, by the server's clock
	ready   bool      // the handshake is complete
	direct  net.Conn  // with HTTP/2: the socket outside the epoll, whose reads and writes wait
	drained bool      // the socket had less than the last read asked for
	ended   bool      // the client has sent its last byte, or the connection failed
	records recordCounter
}

// errWouldBlock is returned by reads instead of waiting. It is temporary, so crypto/tls reads again when it is asked
// to.
var errWouldBlock net.Error = wouldBlockError{}

type wouldBlockError struct{}

func (wouldBlockError) Error() string   { return "no input yet" }
func (wouldBlockError) Timeout() bool   { return true }
func (wouldBlockError) Temporary() bool { return true }

// recordCounter follows the records of the input. It knows whether the last one is complete.
type recordCounter struct {
	head [recordHead]byte
	got  int // bytes of the head
	left int // bytes of the record behind its head that are missing
}

const recordHead = 5 // type, version, length

// count counts the next bytes of the input.
func (r *recordCounter) count(b []byte) {
	for len(b) > 0 {
		if r.got < recordHead {
			n := copy(r.head[r.got:], b)
			if r.got, b = r.got+n, b[n:]; r.got == recordHead {
				r.left = int(r.head[3])<<8 | int(r.head[4])
			}
		}
		n := min(r.left, len(b))
		r.left, b = r.left-n, b[n:]
		if r.got == recordHead && r.left == 0 {
			r.got = 0
		}
	}
}

// incomplete reports whether a part of a record has arrived.
func (r *recordCounter) incomplete() bool { return r.got > 0 }

// handshake completes the handshake, and waits for the client as long as ReadTimeout allows since the connection was
// accepted. It reports whether the connection is usable.
func (c *eventConn) handshake() bool {
	t, s := c.secure, c.l.s
	if t == nil || t.ready {
		return true
	}
	if s.handshakes.Add(1) > int64(s.cfg.MaxHandshakes) {
		s.handshakes.Add(-1)
		s.refused[reasonHandshakes].Add(1)
		return c.close()
	}
	defer s.handshakes.Add(-1)
	t.until, t.conn = c.deadline.Load(), tls.Server(t, s.tlsConfig())
	s.handshakeSlots <- struct{}{}
	err := t.conn.Handshake()
	<-s.handshakeSlots
	if flushed := t.sendAll(); err != nil || flushed != nil { // an alert tells the client why
		return c.close()
	}
	releaseBuffers(t.conn)
	if choseHTTP2(t.conn) {
		return c.serveHTTP2()
	}
	c.mu.Lock()
	t.ready, c.readable = true, true // a request may have arrived with the end of the handshake
	c.deadline.Store(s.now() + s.allowedMillis(s.cfg.ReadTimeout, 0))
	c.mu.Unlock()
	return true
}

// serveHTTP2 takes the connection out of the epoll and serves it in a goroutine until it ends. It returns false.
func (c *eventConn) serveHTTP2() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	unix.EpollCtl(c.epoll(), unix.EPOLL_CTL_DEL, int(c.fd), nil)
	c.l.conns.remove(int(c.fd))
	socket := os.NewFile(uintptr(c.fd), "http2")
	c.fd = -1
	c.deadline.Store(0)
	conn, err := net.FileConn(socket) // its file is a copy
	socket.Close()
	if err != nil {
		c.l.s.releaseConn(c.ip(), c.admitted)
		return false
	}
	c.secure.direct = conn
	h, ip, admitted := &http2Conn{s: c.l.s, conn: c.secure.conn, socket: conn}, c.ip(), c.admitted
	go func() { // the handshake of this goroutine has ended
		h.serve()
		h.s.releaseConn(ip, admitted)
	}()
	return false
}

// withoutSlot gives the slot to other handshakes while this one waits for the client.
func (t *secureConn) withoutSlot(wait func() error) error {
	slots := t.c.l.s.handshakeSlots
	<-slots
	defer func() { slots <- struct{}{} }()
	return wait()
}

// sendAll sends the collected records and waits until the socket takes them. Only the handshake uses it.
func (t *secureConn) sendAll() error {
	c := t.c
	for t.out != nil {
		c.mu.Lock()
		c.writable = false
		c.mu.Unlock()
		if err := t.flush(); err != nil {
			return err
		}
		if t.out == nil {
			break
		}
		c.mu.Lock()
		c.watchWritable()
		c.mu.Unlock()
		if err := c.block(&c.writable, t.until); err != nil {
			return err
		}
	}
	return nil
}

// flush sends as much of the collected records as the socket takes at once.
func (t *secureConn) flush() error {
	if t.out == nil {
		return nil
	}
	n, err := write(t.c.fd, t.out.b)
	if n == len(t.out.b) {
		t.out.release()
		t.out = nil
		return nil
	}
	t.out.b = t.out.b[:copy(t.out.b, t.out.b[n:])]
	if err == unix.EAGAIN {
		err = nil
	}
	return err
}

// Read is called by crypto/tls.
func (t *secureConn) Read(p []byte) (int, error) {
	if t.direct != nil {
		return t.direct.Read(p)
	}
	for {
		if t.drained {
			return 0, errWouldBlock
		}
		if !t.ready {
			if t.out != nil {
				if err := t.withoutSlot(t.sendAll); err != nil {
					return 0, err
				}
			}
			t.c.mu.Lock()
			t.c.readable = false
			t.c.mu.Unlock()
		}
		n, err := read(t.c.fd, p)
		switch {
		case n > 0:
			t.records.count(p[:n])
			t.drained = t.ready && n < len(p)
			return n, nil
		case err == nil:
			return 0, io.EOF
		case err != unix.EAGAIN:
			return 0, err
		case t.ready:
			t.drained = true
			continue
		}
		wait := func() error { return t.c.block(&t.c.readable, t.until) }
		if err := t.withoutSlot(wait); err != nil {
			return 0, err
		}
	}
}

// Write is called by crypto/tls. It collects the record for the caller.
func (t *secureConn) Write(p []byte) (int, error) {
	if t.direct != nil {
		return t.direct.Write(p)
	}
	if t.out == nil {
		t.out = takeBufferFor(len(p))
	}
	t.out.b = append(t.out.b, p...)
	return len(p), nil
}

// read decrypts arrived bytes into p: all of it, or as much as p holds. Like read of a socket, it returns 0 and nil
// at the end of the input, and EAGAIN if there is nothing.
func (t *secureConn) read(p []byte) (n int, err error) {
	if t.ended {
		return 0, nil
	}
	t.drained = false
	for n < len(p) {
		m, err := t.conn.Read(p[n:])
		if n += m; err == errWouldBlock {
			break
		} else if err != nil {
			t.ended = true
			break
		}
	}
	if t.flush() != nil { // answers of crypto/tls to the bytes it has read
		t.ended = true
	}
	if n == 0 && !t.ended {
		return 0, unix.EAGAIN
	}
	return n, nil
}

// recordBytes is the largest size that encryption adds to a record, about.
const recordBytes = 64

// seal returns the records that hold p, in a pooled buffer, after those that are not sent yet.
func (t *secureConn) seal(p []byte) (*buffer, error) {
	if t.out == nil {
		t.out = takeBufferFor(len(p) + recordBytes*(1+len(p)/firstReadAhead))
	}
	_, err := t.conn.Write(p)
	b := t.out
	t.out = nil
	return b, err
}

// sendCloseNotify sends the alert close_notify, if the socket takes it at once.
func (t *secureConn) sendCloseNotify() {
	if t.ready && t.conn.CloseWrite() == nil {
		t.flush()
	}
}

// release gives back the buffer.
func (t *secureConn) release() {
	if t.out != nil {
		t.out.release()
		t.out = nil
	}
}

// readAhead reads while a request is parked, because only the records tell whether the client has ended the
// connection. It reads once, into buf; the rest waits in the socket. mu is held.
func (t *secureConn) readAhead(buf []byte) {
	c := t.c
	if c.req != nil || t.ended {
		return
	}
	c.readable = false
	if n, _ := t.read(buf); n > 0 {
		c.req = takeRequest(c)
		c.req.copyIn(buf[:n])
		c.readable = n == len(buf)
	}
	c.peerClosed = c.peerClosed || t.ended
}

// The rest of net.Conn. Deadlines are those of the connection, except with HTTP/2.

func (t *secureConn) Close() error {
	if t.direct != nil {
		return t.direct.Close()
	}
	return nil
}

func (t *secureConn) LocalAddr() net.Addr {
	if t.direct != nil {
		return t.direct.LocalAddr()
	}
	return t.c.localAddr()
}

func (t *secureConn) RemoteAddr() net.Addr { return t.c.remoteAddr() }

func (t *secureConn) SetDeadline(at time.Time) error {
	return errors.Join(t.SetReadDeadline(at), t.SetWriteDeadline(at))
}

func (t *secureConn) SetReadDeadline(at time.Time) error {
	if t.direct != nil {
		return t.direct.SetReadDeadline(at)
	}
	return nil
}

func (t *secureConn) SetWriteDeadline(at time.Time) error {
	if t.direct != nil {
		return t.direct.SetWriteDeadline(at)
	}
	return nil
}

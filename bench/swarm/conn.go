package swarm

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errors of a request without an answer.
var (
	ErrTimeout = errors.New("no answer in time")
	ErrClosed  = errors.New("connection closed by the server")
	ErrAnswer  = errors.New("not an HTTP/1.1 answer")
	ErrTooLong = errors.New("the answer is longer than a client accepts")
)

const (
	// maxAnswer bounds one answer in memory, in bytes: a register of a very large organization has some 10 MB.
	maxAnswer = 64 << 20
	// maxBuffered bounds the incomplete answers of all connections of a loop, in bytes. A server that sends endless
	// answers on every connection then fails some requests, and the generator keeps its memory.
	maxBuffered = 512 << 20
	// maxHead bounds the status line and header fields of an answer, in bytes, as common servers and proxies do.
	maxHead = 64 << 10
)

// An Answer is one response. Body is valid only during Handler.Answer.
type Answer struct {
	Status int
	Body   []byte // empty if the request was sent with Discard
	Head   []byte
	Wire   int  // bytes of head and body on the wire
	Gzip   bool // Body is compressed
	Err    error
	First  time.Duration // time of the first byte
	At     time.Duration // time of the last byte
}

// A Handler receives the answer to a request. It may Send again at once.
type Handler interface {
	Answer(c *Conn, a *Answer)
}

// A Conn is one keep-alive connection with at most one request under way. It connects when there is something to
// send, so the same Conn can be used after the server was killed and restarted. A zero value with Loop and Remote set
// is ready.
type Conn struct {
	Loop   *Loop
	Remote netip.AddrPort
	Local  netip.Addr  // source address; zero lets the kernel choose
	TLS    *tls.Config // nil: plain HTTP. If the first of its protocols is h2, requests use HTTP/2

	secure    *secureConn
	h2        *http2Conn // nil: HTTP/1.1
	fd        int        // file descriptor + 1, so that zero means closed
	gen       int32
	connected bool
	closing   bool // the server sent Connection: close
	discard   bool
	chunked   bool
	toEnd     bool // the body ends when the server closes the connection
	gzip      bool
	handler   Handler
	deadline  time.Duration
	first     time.Duration
	out       []byte // part of the request that is not written yet
	in        []byte // first part of an incomplete answer
	status    int
	head      int // bytes of the head, once it is complete
	need      int // bytes of the whole answer, once the head is complete
	got       int
	chunkAt   int // bytes of the answer up to the next chunk that is not complete
	counted   int // bytes of this connection in Loop.buffered
}

// Waiting reports whether a request is under way.
func (c *Conn) Waiting() bool { return c.handler != nil }

// Send writes a request; h receives the answer or the error. The bytes are not kept. A zero timeout means no limit.
func (c *Conn) Send(req []byte, h Handler, timeout time.Duration, discard bool) {
	if c.handler != nil {
		panic("BUG: two requests at once on one connection")
	}
	l := c.Loop
	c.handler, c.discard, c.deadline, c.first, c.head, c.need, c.got = h, discard, 0, 0, 0, 0, 0
	c.status = 0
	if timeout > 0 {
		c.deadline = l.Now() + timeout
	}
	l.BytesOut += int64(len(req))
	if c.fd == 0 {
		c.out = c.out[:0]
		if err := c.dial(req); err != nil {
			// Reported from a timer, so that a caller that sends again at once does not recurse.
			l.At(l.Now(), func() { c.fail(err) })
		}
		return
	}
	if !c.connected {
		c.out = append(c.out, req...)
		return
	}
	c.write(req)
}

func (c *Conn) write(b []byte) {
	if c.h2 != nil {
		b = c.h2.request(b)
	}
	if c.secure != nil {
		b = c.secure.seal(b)
	}
	c.writeBytes(b)
}

// writeBytes writes bytes as they are, and keeps those that the socket does not take.
func (c *Conn) writeBytes(b []byte) {
	if len(c.out) > 0 {
		c.out = append(c.out, b...)
		return
	}
	n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.fd-1), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	switch {
	case e == unix.EAGAIN || e == unix.EINTR:
		n = 0
	case e != 0:
		err := fmt.Errorf("write: %w", e)
		gen := c.gen
		c.Loop.At(c.Loop.Now(), func() {
			if c.gen == gen {
				c.fail(err)
			}
		})
		return
	}
	if int(n) < len(b) {
		c.out = append(c.out, b[n:]...)
	}
}

// dial connects and writes the request if the connection is established at once. On the same machine it is, which
// saves a second epoll event for each of 19,000 connections that return at the same time.
func (c *Conn) dial(req []byte) error {
	l := c.Loop
	family, to := socketAddress(c.Remote)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if c.Local.IsValid() {
		// The kernel then chooses the port when both ends are known: 28,000 ports for each source address.
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: c.Local.As4()}); err != nil {
			unix.Close(fd)
			return fmt.Errorf("bind %s: %w", c.Local, err)
		}
	}
	err = unix.Connect(fd, to)
	if err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return fmt.Errorf("connect: %w", err)
	}
	var n uintptr
	e := unix.EAGAIN
	if c.TLS == nil {
		n, _, e = unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&req[0])), uintptr(len(req)))
	}
	if e != 0 && e != unix.EAGAIN && e != unix.EINTR {
		unix.Close(fd)
		return fmt.Errorf("connect: %w", e)
	}
	c.connected = e == 0
	if e != 0 {
		n = 0
	}
	c.out = append(c.out, req[n:]...)
	l.gen++
	c.gen = l.gen
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd),
		Pad: c.gen}
	if err := unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		unix.Close(fd)
		return fmt.Errorf("epoll: %w", err)
	}
	for len(l.conns) <= fd {
		l.conns = append(l.conns, nil)
	}
	l.conns[fd] = c
	c.fd, c.closing = fd+1, false
	if c.TLS != nil {
		c.secure = newSecureConn(c)
	}
	c.in = c.in[:0]
	l.Dials++
	l.Open++
	return nil
}

// socketAddress returns the address family and the address of a server for the kernel.
func socketAddress(a netip.AddrPort) (family int, to unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// drop closes the socket and forgets the request under way.
func (c *Conn) drop() {
	if c.fd == 0 {
		return
	}
	c.Loop.conns[c.fd-1] = nil
	unix.Close(c.fd - 1)
	c.Loop.Open--
	c.Loop.Closed++
	c.fd, c.connected = 0, false
	if c.secure != nil {
		c.secure.stop()
		c.secure, c.h2 = nil, nil
	}
	c.in, c.out = nil, nil
	c.count()
}

// count updates the bytes of this connection in the loop's sum of incomplete answers.
func (c *Conn) count() {
	c.Loop.buffered += cap(c.in) - c.counted
	c.counted = cap(c.in)
}

// Hangup closes the connection from this side. A request under way gets no answer.
func (c *Conn) Hangup() {
	c.handler = nil
	c.drop()
}

func (c *Conn) fail(err error) {
	h := c.handler
	c.handler = nil
	c.drop()
	if h != nil {
		h.Answer(c, &Answer{Err: err, At: c.Loop.Now()})
	}
}

// handleEvents handles an epoll event. Events are edge triggered: it reads until a read returns less than the buffer.
func (c *Conn) handleEvents(ev uint32) {
	if !c.connected && ev&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if e, err := unix.GetsockoptInt(c.fd-1, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || e != 0 {
			c.fail(fmt.Errorf("connect: %w", unix.Errno(e)))
			return
		}
		c.connected = c.secure == nil
	}
	if c.secure != nil && !c.connected {
		done, err := c.secure.handshake()
		if err != nil {
			c.fail(fmt.Errorf("handshake: %w", err))
			return
		}
		if !done {
			return
		}
		c.connected = true
		if len(c.TLS.NextProtos) > 0 && c.TLS.NextProtos[0] == "h2" {
			if c.secure.tls.ConnectionState().NegotiatedProtocol != "h2" {
				c.fail(ErrNoHTTP2)
				return
			}
			c.h2 = newHTTP2Conn(c)
		}
		b := c.out
		c.out = nil
		c.write(b)
	} else if len(c.out) > 0 && ev&unix.EPOLLOUT != 0 {
		b := c.out
		c.out = nil
		c.writeBytes(b)
	}
	if ev&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLERR|unix.EPOLLHUP) == 0 {
		return
	}
	gen := c.gen
	for {
		b := c.Loop.scratch
		n, e := c.read(b)
		if e == unix.EAGAIN {
			return
		}
		if e == unix.EINTR {
			continue
		}
		if e != 0 || n == 0 {
			if e == 0 && c.toEnd && c.handler != nil && c.need > 0 {
				c.closing = true
				c.finish(c.in[:c.head], c.in[c.head:], len(c.in))
			} else {
				c.fail(ErrClosed)
			}
			return
		}
		c.Loop.BytesIn += int64(n)
		c.receive(b[:n])
		// A handler may have closed or reopened the connection: the remaining bytes then belong to another socket.
		if c.fd == 0 || c.gen != gen {
			return
		}
		if n < len(b) && c.secure == nil && ev&(unix.EPOLLRDHUP|unix.EPOLLHUP) == 0 {
			return
		}
	}
}

func (c *Conn) read(b []byte) (int, unix.Errno) {
	if c.secure != nil {
		return c.secure.read(b)
	}
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(c.fd-1), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), e
}

// receive processes the bytes of one read. A complete answer, the usual case, is parsed without copying it.
func (c *Conn) receive(b []byte) {
	if c.h2 != nil {
		c.h2.receive(b)
		return
	}
	if c.handler == nil {
		// Bytes without a request: a server may send an answer to an idle connection before it closes it.
		c.drop()
		return
	}
	if c.first == 0 {
		c.first = c.Loop.Now()
	}
	if len(c.in) > 0 {
		c.in = append(c.in, b...)
		b = c.in
	} else if c.need > 0 && c.discard {
		c.got += len(b)
		if c.got >= c.need {
			c.finish(nil, nil, c.need)
		}
		return
	}
	for c.need == 0 {
		p, ok, bad := parseHead(b)
		if bad {
			c.fail(ErrAnswer)
			return
		}
		if p.length > maxAnswer {
			c.fail(ErrTooLong)
			return
		}
		if !ok {
			c.buffer(b)
			return
		}
		if p.status < 200 { // 100 Continue and similar answers precede the real one
			b = b[p.head:]
			continue
		}
		c.status, c.head, c.closing, c.chunked, c.gzip = p.status, p.head, p.close, p.chunked, p.gzip
		c.need, c.toEnd, c.chunkAt = p.head+p.length, p.toEnd, p.head
	}
	if c.chunked {
		at, whole, bad := skipChunks(b, c.chunkAt)
		c.chunkAt = at
		if bad {
			c.fail(ErrAnswer)
		} else if whole {
			c.finish(b[:c.head], dechunk(b[c.head:at]), len(b))
		} else {
			c.buffer(b)
		}
		return
	}
	if c.toEnd {
		c.buffer(b)
		return
	}
	if len(b) >= c.need {
		c.finish(b[:c.head], b[c.head:c.need], c.need)
		return
	}
	if c.discard {
		c.got, c.in = len(b), c.in[:0]
		return
	}
	c.buffer(b)
}

func (c *Conn) buffer(b []byte) {
	if len(b) == 0 {
		c.in = c.in[:0]
		return
	}
	if len(c.in) == 0 || &c.in[0] != &b[0] {
		if c.need > len(b) && cap(c.in) < c.need && c.Loop.buffered+c.need <= maxBuffered {
			c.in = make([]byte, 0, c.need)
		}
		c.in = append(c.in[:0], b...)
	}
	c.count()
	if len(b) > maxAnswer || c.Loop.buffered > maxBuffered {
		c.fail(ErrTooLong)
	}
}

func (c *Conn) finish(head, body []byte, wire int) {
	a := Answer{Status: c.status, Head: head, Body: body, Wire: wire, Gzip: c.gzip, First: c.first, At: c.Loop.Now()}
	if c.discard {
		a.Body = nil
	}
	h := c.handler
	// Release the buffer of an incomplete answer, or 19,000 of them would stay; the body keeps it alive.
	c.handler, c.in = nil, nil
	c.count()
	if c.closing {
		c.drop()
	}
	h.Answer(c, &a)
}

type head struct {
	status, head, length int
	chunked, close, gzip bool
	toEnd                bool // without a length, the body ends with the connection
}

var headEnd = []byte("\r\n\r\n")

// parseHead reads the status line and the header fields that delimit an answer.
func parseHead(b []byte) (h head, ok, bad bool) {
	if len(b) >= 8 && string(b[:7]) != "HTTP/1." {
		return h, false, true
	}
	end := bytes.Index(b, headEnd)
	if end < 0 {
		return h, false, len(b) > maxHead
	}
	if end < 12 || end > maxHead {
		return h, false, true
	}
	for _, d := range b[9:12] {
		if d < '0' || d > '9' {
			return h, false, true
		}
		h.status = h.status*10 + int(d-'0')
	}
	h.toEnd = h.status >= 200 && h.status != 204 && h.status != 304
	h.head = end + 4
	h.close = b[7] == '0'
	line := b[:end]
	for {
		i := bytes.IndexByte(line, '\n')
		if i < 0 {
			break
		}
		if line = line[i+1:]; len(line) == 0 {
			break
		}
		// Compare the first letter before the whole name.
		switch line[0] | 0x20 {
		case 'c':
			if v, is := field(line, "content-length"); is {
				h.length, h.toEnd = 0, false
				for _, d := range v {
					if d < '0' || d > '9' {
						return h, false, true
					}
					h.length = min(h.length*10+int(d-'0'), maxAnswer+1) // the caller rejects more than maxAnswer
				}
			} else if v, is := field(line, "connection"); is {
				h.close = bytes.EqualFold(v, []byte("close"))
			} else if v, is := field(line, "content-encoding"); is {
				h.gzip = bytes.EqualFold(v, []byte("gzip"))
			}
		case 't':
			if v, is := field(line, "transfer-encoding"); is {
				h.chunked = bytes.EqualFold(v, []byte("chunked"))
			}
		}
	}
	if h.chunked {
		h.toEnd, h.length = false, 0
	}
	return h, true, false
}

// RetryAfter returns the time after which the server accepts a request again: the seconds of the header field
// Retry-After. ok is false if the answer has none. The result is at most maxRetryAfter.
func (a *Answer) RetryAfter() (wait time.Duration, ok bool) {
	line := a.Head
	for {
		i := bytes.IndexByte(line, '\n')
		if i < 0 {
			return 0, false
		}
		line = line[i+1:]
		if v, is := field(line, "retry-after"); is {
			s, err := strconv.ParseFloat(string(v), 64)
			if err != nil || !(s >= 0) {
				return 0, false
			}
			return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second)), true
		}
	}
}

// maxRetryAfter bounds the wait that a server can ask of a client. Servers of the protocol count requests over at most
// an hour.
const maxRetryAfter = time.Hour

func field(line []byte, name string) ([]byte, bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return nil, false
	}
	v := line[len(name)+1:]
	if i := bytes.IndexByte(v, '\r'); i >= 0 {
		v = v[:i]
	}
	return bytes.TrimSpace(v), true
}

// skipChunks returns the end of the last complete chunk at or after at, and whether it is the last chunk of the body.
func skipChunks(b []byte, at int) (next int, whole, bad bool) {
	for {
		n, line, ok, bad := chunkSize(b[at:])
		if bad || !ok {
			return at, false, bad
		}
		if n > maxAnswer {
			return at, false, true
		}
		if n == 0 {
			// Trailers end with an empty line; the measured servers send none.
			return at, bytes.HasPrefix(b[at+line:], []byte("\r\n")), false
		}
		if len(b) < at+line+n+2 {
			return at, false, false
		}
		at += line + n + 2
	}
}

// chunkSize reads the line before a chunk: the number of bytes of the chunk, and of the line itself. ok is false if the
// line is not complete.
func chunkSize(b []byte) (n, line int, ok, bad bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return 0, 0, false, len(b) > 1<<10
	}
	digits := 0
	for _, d := range b[:i] {
		switch {
		case d >= '0' && d <= '9':
			n = n<<4 | int(d-'0')
		case d|0x20 >= 'a' && d|0x20 <= 'f':
			n = n<<4 | int(d|0x20-'a'+10)
		default:
			return n, i + 1, digits > 0, digits == 0
		}
		if digits++; digits > 8 {
			return 0, 0, false, true
		}
	}
	return n, i + 1, digits > 0, digits == 0
}

// dechunk joins complete chunks.
func dechunk(b []byte) (body []byte) {
	for len(b) > 0 {
		n, line, _, _ := chunkSize(b)
		body = append(body, b[line:line+n]...)
		b = b[line+n+2:]
	}
	return body
}

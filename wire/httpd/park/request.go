package park

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// request is the net.Conn that fasthttp gets: it holds one request and then ends. It also keeps bytes read beyond
// that request, for the next one. It is attached to a real connection only while it has such bytes.
type request struct {
	conn connection
	// organization is that of the Host header; see Config.Organization.
	organization string
	buf          []byte // unused bytes are buf[offset:]
	offset       int
	scanned      int   // how much of buf[offset:] was searched for the end of the head
	startedAt    int64 // when its first byte arrived, by the server's clock

	bodyReceived int64  // body bytes received after waiting
	sent         int64  // bytes of the answer
	answerBytes  int64  // memory reserved for the answer
	caller       Caller // the caller for which these bytes count
	blockedSince int64  // when the client's socket first took less than all bytes at once

	head      head
	limit     int64 // bytes its body may have
	stream    bool  // its handler reads the body
	multipart bool
	ready     int   // bytes of buf[offset:] that fasthttp may read
	left      int64 // body bytes missing, if the length is known
	chunks    chunkReader
	fault     error  // why the body ended early
	start     int    // where the request begins in buf
	received  []byte // all bytes read of it, once its body must be waited for; see recordForHandoff

	keepOpen bool // fasthttp asked for another request: the connection stays open
	discard  bool // later output of fasthttp is not for the client
	parked   *Parked
}

// secureRequest is a request that came through TLS, in the form that RequestCtx.IsTLS expects.
type secureRequest struct {
	*request
	conn *tls.Conn
}

func (r *secureRequest) Handshake() error                     { return nil }
func (r *secureRequest) ConnectionState() tls.ConnectionState { return r.conn.ConnectionState() }

func requestOf(ctx *fasthttp.RequestCtx) *request {
	if r := findRequest(ctx); r != nil {
		return r
	}
	panic("BUG: request of another server")
}

// findRequest returns nil if the request did not come through a connection of this package.
func findRequest(ctx *fasthttp.RequestCtx) *request {
	switch c := ctx.Conn().(type) {
	case *request:
		return c
	case *secureRequest:
		return c.request
	}
	return nil
}

var requests = sync.Pool{New: func() any { return &request{buf: make([]byte, 0, firstReadAhead)} }}

func takeRequest(l connection) *request {
	r := requests.Get().(*request)
	r.conn = l
	return r
}

func (r *request) release() {
	poisonBuffer(r.buf)
	if cap(r.buf) > maxReadAhead {
		return
	}
	*r = request{buf: r.buf[:0]}
	requests.Put(r)
}

func (r *request) buffered() int { return len(r.buf) - r.offset }

// space returns room to read more into, or nil if the buffer holds limit unused bytes.
func (r *request) space(limit int) []byte {
	if r.offset > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.offset:])]
		r.offset = 0
	}
	if len(r.buf) >= limit {
		return nil
	}
	if len(r.buf) == cap(r.buf) {
		grown := make([]byte, len(r.buf), max(2*cap(r.buf), firstReadAhead))
		copy(grown, r.buf)
		r.buf = grown
	}
	return r.buf[len(r.buf):min(cap(r.buf), limit)]
}

// copyIn appends b to the buffer.
func (r *request) copyIn(b []byte) { r.buf = append(r.buf, b...) }

func (r *request) extend(n int) { r.buf = r.buf[:len(r.buf)+n] }

// headComplete reports whether the head is complete, and checks it.
func (r *request) headComplete(cfg *Config) (bool, *refusal) {
	b := r.buf[r.offset:]
	size, next, ref := endOfHead(b, r.scanned)
	r.scanned = next
	if ref != nil {
		return false, ref
	}
	if size == 0 {
		if len(b) >= cfg.MaxHeader {
			return false, refuseHeaderSize
		}
		return false, nil
	}
	if size > cfg.MaxHeader {
		return false, refuseHeaderSize
	}
	if r.head, ref = parseHead(b[:size]); ref != nil {
		return false, ref
	}
	r.limit = int64(cfg.MaxBody)
	if cfg.BodyLimit != nil {
		r.limit = int64(cfg.BodyLimit(r.head.method, r.head.target))
	}
	if cfg.Organization != nil {
		r.organization = cfg.Organization(r.head.host)
	}
	r.multipart = bytes.HasPrefix(bytes.ToLower(r.head.contentType), []byte("multipart/"))
	r.stream = cfg.StreamsBody != nil && r.head.length != 0 && cfg.StreamsBody(r.head.method, r.head.target)
	// they point into buf, which moves
	r.head.method, r.head.target, r.head.host, r.head.authorization, r.head.contentType, r.head.userAgent = nil, nil,
		nil, nil, nil, nil
	if r.head.length > r.limit {
		return false, refuseBodySize
	}
	r.ready, r.start = size, r.offset
	rest := b[size:]
	if r.head.length >= 0 {
		n := min(r.head.length, int64(len(rest)))
		r.ready += int(n)
		r.left = r.head.length - n
	} else {
		r.readChunks(rest)
	}
	return true, nil
}

// readChunks passes on the newly read bytes that belong to a chunked body.
func (r *request) readChunks(b []byte) {
	n, ref := r.chunks.consume(b, r.limit)
	r.ready += n
	if ref != nil {
		r.fault = ref
	}
}

// unread reports whether a part of the request's body was not read.
func (r *request) unread() bool {
	return r.ready > 0 || r.left > 0 || r.fault != nil || r.head.length < 0 && r.chunks.state != chunkDone
}

// next drops the request and keeps the bytes read beyond it.
func (r *request) next() {
	r.poisonUsed()
	*r = request{conn: r.conn, buf: r.buf, offset: r.offset}
}

// Read returns the bytes of the request, head first, and io.EOF after them.
func (r *request) Read(p []byte) (int, error) {
	for {
		switch {
		case r.ready > 0:
			n := copy(p, r.buf[r.offset:r.offset+r.ready])
			r.offset += n
			r.ready -= n
			return n, nil
		case r.fault != nil:
			return 0, r.fault
		case r.left > 0:
			r.recordForHandoff(nil)
			n, err := r.conn.recv(p[:min(r.left, int64(len(p)))])
			r.recordForHandoff(p[:n])
			r.left -= int64(n)
			r.fault = unexpectedEOF(err)
			return n, r.fault
		case r.head.length < 0 && r.chunks.state != chunkDone:
			r.recordForHandoff(nil)
			b := r.space(firstReadAhead)
			n, err := r.conn.recv(b)
			r.recordForHandoff(b[:n])
			r.extend(n)
			r.fault = unexpectedEOF(err)
			r.readChunks(b[:n])
		default:
			r.keepOpen = true
			return 0, io.EOF
		}
	}
}

// recordForHandoff records the bytes of a request whose body must be waited for. So the connection can be handed
// off to a successor without waiting for a slow client. A streamed body, or a longer one, is not recorded: a
// shutdown waits for it.
func (r *request) recordForHandoff(b []byte) {
	if r.start < 0 {
		return
	}
	if r.received == nil {
		r.received = append(r.received, r.buf[r.start:]...)
	}
	if r.received = append(r.received, b...); r.stream || len(r.received) > maxHandoffBytes {
		r.received, r.start = nil, -1
	}
}

// unexpectedEOF converts io.EOF, because inside a body the end of input is an error.
func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *request) Write(p []byte) (int, error) {
	if r.discard {
		return len(p), nil
	}
	return r.conn.send(p)
}

func (r *request) LocalAddr() net.Addr  { return r.conn.localAddr() }
func (r *request) RemoteAddr() net.Addr { return r.conn.remoteAddr() }

// Close and the deadlines do nothing: the real connection has deadlines of its own.
func (r *request) Close() error                     { return nil }
func (r *request) SetDeadline(time.Time) error      { return nil }
func (r *request) SetReadDeadline(time.Time) error  { return nil }
func (r *request) SetWriteDeadline(time.Time) error { return nil }

// errConnDropped ends a request whose connection was aborted by a shutdown.
var errConnDropped = errors.New("connection dropped")

// errHandedOff ends a request whose connection is handed off to the successor, which reads the request again.
var errHandedOff = errors.New("connection handed off")

// maxHandoffBytes is the largest part of a request that is sent with its connection: a full head, and the bytes
// read after it.
const maxHandoffBytes = 128 << 10

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

// request is the connection fasthttp is given: it holds one request and then ends. It also keeps what was read
// beyond that request, for the next. It is attached to a real connection only while there is something to keep.
type request struct {
	link link
	buf  []byte // what was read and not yet used is buf[at:]
	at   int
	scan int   // how much of buf[at:] was searched for the end of the head
	born int64 // when its first byte came, by the server's clock

	moved  int64 // body bytes that had to be waited for
	sent   int64 // bytes of the answer
	heldUp int64 // when the client first did not take them at once

	head   head
	limit  int64 // bytes its body may have
	stream bool  // its handler reads the body
	parts  bool  // the body is multipart
	ready  int   // bytes of buf[at:] fasthttp may read
	left   int64 // body bytes still to come from the link, when the length is known
	chunks chunks
	fault  error  // why the body ended early
	first  int    // where in buf the request begins
	whole  []byte // all that was read of it, once its body has to be waited for; see remember

	again  bool // fasthttp asked for another request: the connection is kept
	mute   bool // what fasthttp writes from now on is not for the client
	parked *Parked
}

// secureRequest is a request that came through TLS, as RequestCtx.IsTLS wants to see it.
type secureRequest struct {
	*request
	state tls.ConnectionState
}

func (r *secureRequest) Handshake() error                     { return nil }
func (r *secureRequest) ConnectionState() tls.ConnectionState { return r.state }

func requestOf(ctx *fasthttp.RequestCtx) *request {
	switch c := ctx.Conn().(type) {
	case *request:
		return c
	case *secureRequest:
		return c.request
	}
	panic("BUG: request of another server")
}

var requests = sync.Pool{New: func() any { return &request{buf: make([]byte, 0, firstReadAhead)} }}

func takeRequest(l link) *request {
	r := requests.Get().(*request)
	r.link = l
	return r
}

func (r *request) release() {
	spoil(r.buf)
	if cap(r.buf) > maxReadAhead {
		return
	}
	*r = request{buf: r.buf[:0]}
	requests.Put(r)
}

func (r *request) buffered() int { return len(r.buf) - r.at }

// space returns room to read more into, nil if the buffer holds limit unused bytes.
func (r *request) space(limit int) []byte {
	if r.at > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.at:])]
		r.at = 0
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

// copyIn puts b behind what is there.
func (r *request) copyIn(b []byte) { r.buf = append(r.buf, b...) }

func (r *request) grew(n int) { r.buf = r.buf[:len(r.buf)+n] }

// arrived tells whether a whole head is there, and judges it.
func (r *request) arrived(cfg *Config) (bool, *refusal) {
	b := r.buf[r.at:]
	size, next, ref := endOfHead(b, r.scan)
	r.scan = next
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
	r.parts = bytes.HasPrefix(bytes.ToLower(r.head.kind), []byte("multipart/"))
	r.stream = cfg.Streams != nil && r.head.length != 0 && cfg.Streams(r.head.method, r.head.target)
	r.head.method, r.head.target, r.head.host, r.head.authorization, r.head.kind, r.head.agent = nil, nil, nil, nil, nil, nil // they point into buf, which moves
	if r.head.length > r.limit {
		return false, refuseBodySize
	}
	r.ready, r.first = size, r.at
	rest := b[size:]
	if r.head.length >= 0 {
		n := min(r.head.length, int64(len(rest)))
		r.ready += int(n)
		r.left = r.head.length - n
	} else {
		r.takeChunks(rest)
	}
	return true, nil
}

// takeChunks lets through what of the newly read bytes belongs to a chunked body.
func (r *request) takeChunks(b []byte) {
	n, ref := r.chunks.take(b, r.limit)
	r.ready += n
	if ref != nil {
		r.fault = ref
	}
}

// unread tells whether the request's body was not read to its end.
func (r *request) unread() bool {
	return r.ready > 0 || r.left > 0 || r.fault != nil || r.head.length < 0 && r.chunks.state != chunkDone
}

// next forgets the request and keeps what was read beyond it.
func (r *request) next() {
	r.spoilUsed()
	*r = request{link: r.link, buf: r.buf, at: r.at}
}

// Read gives fasthttp the request's bytes, head first, and EOF behind them.
func (r *request) Read(p []byte) (int, error) {
	for {
		switch {
		case r.ready > 0:
			n := copy(p, r.buf[r.at:r.at+r.ready])
			r.at += n
			r.ready -= n
			return n, nil
		case r.fault != nil:
			return 0, r.fault
		case r.left > 0:
			r.remember(nil)
			n, err := r.link.recv(p[:min(r.left, int64(len(p)))])
			r.remember(p[:n])
			r.left -= int64(n)
			r.fault = cut(err)
			return n, r.fault
		case r.head.length < 0 && r.chunks.state != chunkDone:
			r.remember(nil)
			b := r.space(firstReadAhead)
			n, err := r.link.recv(b)
			r.remember(b[:n])
			r.grew(n)
			r.fault = cut(err)
			r.takeChunks(b[:n])
		default:
			r.again = true
			return 0, io.EOF
		}
	}
}

// remember keeps what comes of a request whose body has to be waited for, so that its connection can be passed to a
// successor: nobody waits for a client that is slow. A body that a handler reads, or a longer one, is waited for.
func (r *request) remember(b []byte) {
	if r.first < 0 {
		return
	}
	if r.whole == nil {
		r.whole = append(r.whole, r.buf[r.first:]...)
	}
	if r.whole = append(r.whole, b...); r.stream || len(r.whole) > passBytes {
		r.whole, r.first = nil, -1
	}
}

// cut renames the end of the stream: inside a body it is an error.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *request) Write(p []byte) (int, error) {
	if r.mute {
		return len(p), nil
	}
	return r.link.send(p)
}

func (r *request) LocalAddr() net.Addr  { return r.link.local() }
func (r *request) RemoteAddr() net.Addr { return r.link.remote() }

// Close and the deadlines are fasthttp's wishes; the connection below has its own.
func (r *request) Close() error                     { return nil }
func (r *request) SetDeadline(time.Time) error      { return nil }
func (r *request) SetReadDeadline(time.Time) error  { return nil }
func (r *request) SetWriteDeadline(time.Time) error { return nil }

// errDropped ends a request whose connection was cut off from outside (shutdown).
var errDropped = errors.New("connection dropped")

// errPassed ends a request whose connection goes to the successor, which reads it anew.
var errPassed = errors.New("connection passed")

// passBytes is how much of a request may go with its connection: what a head may have, and what was read behind it.
const passBytes = 128 << 10

package park

import (
	"bytes"
	"net"
	"strconv"
	"sync"

	"github.com/valyala/fasthttp"
)

// Parked is one request taken out of its handler. Its owner may hold it for any time: after its end it never affects a
// later request of the connection.
type Parked struct {
	conn        connection
	gone        Gone
	headerLines []byte // header lines that the handler set; shared and read-only
	closeAfter  bool   // the answer ends the connection: the client requested that, or the server drains
	headOnly    bool   // a HEAD request: the answer has no body
	brief       bool   // made by ParkBriefly: answered soon, even if its client shuts down its sending side
	afterDrain  bool   // parked while the server drained, so OnDrain does not cover it
	remembered  bool   // the connection's memo holds this request
	private     bool   // Config.PrivateHeader is part of the answer
	eventStream bool   // the answer with status 200 is an event stream, not JSON
	keepAlive   bool   // an HTTP/1.0 client must be told that the connection stays open
}

// Park takes the request out of its handler. Call it at most once for a request, in the handler's goroutine, and
// return immediately afterwards: later changes of ctx's response are not sent. Header lines set on ctx's response
// before Park are sent with the answer, except Content-Length, Connection, and Content-Type: the answer is JSON unless
// the type is that of an event stream.
//
// gone is called at most once, from any goroutine, when the client leaves (or the server drains) before Answer.
// It is never called after Answer returned true. It must be short and must not wait for other parked requests. It
// may be called before Park has returned, so everything it uses must be ready before Park.
func (s *Server) Park(ctx *fasthttp.RequestCtx, gone func()) *Parked {
	return s.ParkFor(ctx, Caller{}, gone)
}

// ParkFor is Park for a request whose caller is known; see HasCaller.
func (s *Server) ParkFor(ctx *fasthttp.RequestCtx, caller Caller, gone func()) *Parked {
	r := requestOf(ctx)
	if r.parked != nil {
		panic("BUG: request parked twice")
	}
	close := ctx.Request.Header.ConnectionClose() || ctx.Response.Header.ConnectionClose()
	p := &Parked{
		conn:        r.conn,
		gone:        &goneFunc{caller, gone},
		headerLines: s.extraLines(&ctx.Response.Header),
		closeAfter:  close,
		headOnly:    ctx.IsHead(),
		private:     s.isPrivate(ctx.Path()),
		afterDrain:  s.draining.Load(),
		keepAlive:   !close && !ctx.Request.Header.IsHTTP11(),
		eventStream: string(ctx.Response.Header.ContentType()) == eventStreamType,
	}
	r.parked = p
	r.discard = true
	s.parks.Add(1)
	s.parked.Add(1)
	r.conn.park(p)
	return p
}

// isPrivate reports whether answers to requests for a path get Config.PrivateHeader.
func (s *Server) isPrivate(path []byte) bool {
	prefix := s.cfg.PrivatePrefix
	return prefix != "" && len(path) >= len(prefix) && string(path[:len(prefix)]) == prefix
}

// Answer sends a response with the joined parts as its JSON body. It never blocks and does not keep the parts. It
// reports false, and sends nothing, if the request was answered before or its client is gone. It may be called
// before the handler that parked the request has returned.
func (p *Parked) Answer(status int, parts ...[]byte) bool {
	return p.conn.answer(p, status, parts)
}

// countEnded updates the counters for a parked request that was answered or whose connection is closed.
func (s *Server) countEnded(p *Parked) {
	if p.brief {
		s.active.Add(-1)
	} else {
		s.parked.Add(-1)
	}
}

// dropsParked reports whether a drain drops p as soon as its handler has returned.
func (s *Server) dropsParked(p *Parked) bool {
	return s.draining.Load() && (p.afterDrain && !s.cfg.AnswersLatePolls || s.cfg.OnDrain == nil)
}

// connection is a connection as requests and their answers see it: eventConn or goroutineConn.
type connection interface {
	// recv and send wait until bytes moved, within the time allowed for the request. Only the serving goroutine
	// calls them.
	recv(p []byte) (int, error)
	send(p []byte) (int, error)

	park(p *Parked)
	answer(p *Parked, status int, parts [][]byte) bool
	abandon(p *Parked) bool // forgets p without calling gone; false if p was answered or is gone
	prefetch() uint32       // see Parked.Prefetch
	remoteAddr() net.Addr
	localAddr() net.Addr
}

// extraLines renders the header lines that a handler set. Nearly all handlers set the same lines, so the last
// result is shared.
func (s *Server) extraLines(h *fasthttp.ResponseHeader) []byte {
	b := takeBuffer()
	defer b.release()
	for k, v := range h.All() {
		switch string(k) {
		case "Content-Type", "Content-Length", "Connection", "Server", "Date", "Transfer-Encoding":
			continue
		}
		b.b = append(b.b, k...)
		b.b = append(b.b, ": "...)
		b.b = append(b.b, v...)
		b.b = append(b.b, "\r\n"...)
	}
	if len(b.b) == 0 {
		return nil
	}
	if last := s.lastExtra.Load(); last != nil && bytes.Equal(*last, b.b) {
		return *last
	}
	lines := bytes.Clone(b.b)
	s.lastExtra.Store(&lines)
	return lines
}

func sizeOf(parts [][]byte) (n int) {
	for _, part := range parts {
		n += len(part)
	}
	return n
}

// maxHeadBytes is the size of an answer's head, about: a longer one makes its buffer grow.
const maxHeadBytes = 1 << 10

// compose appends the whole answer to b, with the header lines that fasthttp writes for an ordinary answer, in
// the same order. last says that the connection ends with it.
func (s *Server) compose(b []byte, p *Parked, last bool, status int, parts [][]byte) []byte {
	size := sizeOf(parts)
	always := s.cfg.PollHeader
	switch {
	case p.private:
		always = s.cfg.PrivateHeader
	case p.brief:
		always = s.cfg.AnswerHeader
	}
	b = s.appendHead(b, status, size, p.contentType(status), always)
	b = append(b, p.headerLines...)
	if status == fasthttp.StatusServiceUnavailable {
		b = append(b, "Retry-After: "+BusyRetryAfter+"\r\n"...)
	}
	switch {
	case last:
		b = append(b, "Connection: close\r\n"...)
	case p.keepAlive:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	b = append(b, "\r\n"...)
	if p.headOnly {
		return b
	}
	for _, part := range parts {
		b = append(b, part...)
	}
	return b
}

// The types of answers.
const (
	jsonType        = "application/json"
	eventStreamType = "text/event-stream"
)

// contentType returns the type of an answer.
func (p *Parked) contentType(status int) string {
	if p.eventStream && status == fasthttp.StatusOK {
		return eventStreamType
	}
	return jsonType
}

func (s *Server) appendHead(b []byte, status, size int, contentType string, always []byte) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, fasthttp.StatusMessage(status)...)
	if s.cfg.Name != "" {
		b = append(b, "\r\nServer: "...)
		b = append(b, s.cfg.Name...)
	}
	b = append(b, "\r\nDate: "...)
	b = append(b, *s.date.Load()...)
	b = append(b, "\r\nContent-Type: "...)
	b = append(b, contentType...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(size), 10)
	b = append(b, "\r\n"...)
	return append(b, always...)
}

// BusyRetryAfter is the number of seconds after which a client may repeat a request that was answered 503.
const BusyRetryAfter = "1"

// refusal is an answer of the connection layer itself, without a handler. The connection closes after it.
type refusal struct {
	status int
	reason reason
	msg    string
	code   string // empty: the answer has no code
}

func (r *refusal) Error() string { return r.msg }

var (
	refuseMalformed   = &refusal{400, reasonMalformed, "Malformed HTTP request", "BAD_REQUEST"}
	refuseVersion     = &refusal{505, reasonVersion, "HTTP version not supported", "BAD_REQUEST"}
	refuseHeaderSize  = &refusal{431, reasonHeaderSize, "Request header fields too large", "BAD_REQUEST"}
	refuseBodySize    = &refusal{413, reasonBodySize, "Request body too large", "BAD_REQUEST"}
	refuseEncoding    = &refusal{415, reasonEncoding, "Encoded request bodies are not supported", "BAD_REQUEST"}
	refuseCoding      = &refusal{501, reasonTransferCoding, "Unsupported transfer encoding", "BAD_REQUEST"}
	refuseExpect      = &refusal{417, reasonExpectation, "Expectation failed", "BAD_REQUEST"}
	refuseSlow        = &refusal{408, reasonSlow, "Request timeout", "BAD_REQUEST"}
	refuseConns       = &refusal{503, reasonConns, "Too many connections", ""}
	refuseConnsPerIP  = &refusal{429, reasonConnsPerIP, "Too many connections from your address", "RATE_LIMIT_HIT"}
	refuseActive      = &refusal{503, reasonActive, "Server is busy", ""}
	refuseBodies      = &refusal{503, reasonBodies, "Server is busy", ""}
	refuseStreams     = &refusal{503, reasonStreams, "Server is busy", ""}
	refuseSlowClients = &refusal{503, reasonSlowClients, "Server is busy", ""}
)

func (s *Server) appendRefusal(b []byte, r *refusal) []byte {
	body := `{"result":"error","msg":"` + r.msg + `"`
	if r.code != "" {
		body += `,"code":"` + r.code + `"`
	}
	if r == refuseConnsPerIP {
		body += `,"retry-after":1`
	}
	body += "}\n"
	b = s.appendHead(b, r.status, len(body), jsonType, s.cfg.AnswerHeader)
	if r.status == 503 || r.status == 429 {
		b = append(b, "Retry-After: "+BusyRetryAfter+"\r\n"...)
	}
	b = append(b, "Connection: close\r\n\r\n"...)
	return append(b, body...)
}

// buffer is a pooled byte slice.
type buffer struct{ b []byte }

// Small and large buffers are pooled apart: a small answer must not occupy a large one.
var buffers, largeBuffers = sync.Pool{New: func() any { return new(buffer) }}, sync.Pool{New: func() any {
	return new(buffer)
}}

// maxLargeBuffer is the largest buffer that is pooled, in bytes: the largest answer to a poll fits.
const maxLargeBuffer = 1<<20 + 256<<10

func takeBuffer() *buffer { return buffers.Get().(*buffer) }

// takeBufferFor returns an empty buffer with room for size bytes. It does not leave growing to append, which would make
// small buffers large ones.
func takeBufferFor(size int) *buffer {
	pool, most := &buffers, maxReadAhead
	if size > most {
		pool, most = &largeBuffers, maxLargeBuffer
	}
	b := pool.Get().(*buffer)
	if cap(b.b) < size {
		b.b = make([]byte, 0, max(size, min(2*size, most)))
	}
	return b
}

func (b *buffer) release() {
	poisonBuffer(b.b)
	size := cap(b.b)
	b.b = b.b[:0]
	switch {
	case size <= maxReadAhead:
		buffers.Put(b)
	case size <= maxLargeBuffer:
		largeBuffers.Put(b)
	}
}

// takeRest returns the bytes from n on, for longer use. It releases the buffer if that saves memory.
func (b *buffer) takeRest(n int) []byte {
	rest := b.b[n:]
	if 2*len(rest) >= cap(b.b) {
		return rest
	}
	rest = bytes.Clone(rest)
	b.release()
	return rest
}

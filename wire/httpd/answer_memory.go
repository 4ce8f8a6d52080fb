package httpd

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/httpd/park"
)

// largeAnswerBytes is the size from which an answer is refused if answers take too much memory. Smaller ones are always
// sent: they are limited by the number of requests. So are answers to requests that changed something, because a client
// that gets an error would repeat the request.
const largeAnswerBytes = 64 << 10

// answerRetrySeconds is the time in seconds after which a client should repeat a request whose answer was refused. By
// then some clients have received their answers.
const answerRetrySeconds = 2.0

// answerMemoryCode is the code of errAnswersFull.
const answerMemoryCode = "ANSWER_MEMORY_FULL"

// errAnswersFull refuses a large answer because all answers together, or those of the caller, take too much memory.
func errAnswersFull() error {
	return realm.Refuse(realm.Busy, "ANSWER_MEMORY_FULL",
		"Too many large answers are being sent; try again later.").With("retry-after", answerRetrySeconds)
}

// callerOf returns the caller for which the memory of answers counts: the account that is charged, or without login the
// client network.
func (s *Server) callerOf(ctx *fasthttp.RequestCtx, c *wire.Call) park.Caller {
	if c.Account != nil {
		return callerOfAccount(c.Account)
	}
	return park.Caller{Account: s.remote(ctx), Organization: organizationName(c.Realm)}
}

// organizationName returns the name of an organization in the shares of budgets; "": there is none.
func organizationName(id realm.ID) string {
	if id == 0 {
		return ""
	}
	return strconv.Itoa(int(id))
}

// organizationOfHost returns organizationName of the organization of a Host header.
func (s *Server) organizationOfHost(host []byte) string {
	if s.options.Realms == nil {
		return "" // in tests of single handlers
	}
	id, _ := s.options.Realms.ByHost(strings.ToLower(string(host)))
	return organizationName(id)
}

// callerOfAccount returns the caller of the requests of an account, and of all accounts that count as one with it.
func callerOfAccount(a *wire.Account) park.Caller {
	key := limitKey(a)
	organization, _, _ := strings.Cut(key, "/")
	return park.Caller{Organization: organization, Account: key}
}

// reserveMemory counts n more bytes of an answer that is being built. It refuses if answers take too much memory.
func (s *Server) reserveMemory(ctx *fasthttp.RequestCtx, c *wire.Call, n int) error {
	if !s.park.TryReserveAnswer(ctx, s.callerOf(ctx, c), n) {
		return errAnswersFull()
	}
	return nil
}

// writeSuccess answers with the success of an endpoint, in the form that its size and its parts need.
func (s *Server) writeSuccess(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, a any) {
	if p := wire.SuccessFragments(a, c.Ignored()); p != nil {
		s.writeParts(ctx, p)
		return
	}
	if ctx.Request.Header.IsHTTP11() { // older clients do not know bodies in chunks
		if b := wire.SuccessStream(a, c.Ignored()); b != nil {
			s.writeStream(ctx, b)
			return
		}
	}
	body := wire.Success(a, c.Ignored())
	if len(body) >= largeAnswerBytes && e.Method == fasthttp.MethodGet {
		if err := s.reserveMemory(ctx, c, len(body)); err != nil {
			s.writeFailure(ctx, e, err)
			return
		}
	} else {
		s.park.ReserveAnswer(ctx, len(body))
	}
	s.writeJSON(ctx, 200, body)
}

// writeStream answers with a body that is encoded part by part. For a client that accepts gzip it is compressed at
// once, because a compressor takes more memory than the compressed body; otherwise it is encoded as fast as the client
// reads.
func (s *Server) writeStream(ctx *fasthttp.RequestCtx, b *wire.AnswerStream) {
	setCommonHeaders(ctx)
	ctx.SetContentType("application/json")
	body := &streamedBody{server: s, ctx: ctx, stream: b}
	if !acceptsGzip(ctx) {
		ctx.SetBodyStream(body, -1)
		return
	}
	ctx.Response.Header.Set("Content-Encoding", "gzip")
	out := partsBodies.Get().(*partsBody)
	compressed := &partsWriter{body: out, reserve: func(n int) { s.park.ReserveAnswer(ctx, n) }}
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(compressed)
	// writing to memory does not fail
	body.WriteTo(w)
	w.Close()
	ctx.SetBodyStream(out, compressed.size)
}

var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return w
}}

// partsWriter collects the bytes that are written to it in parts of equal size, so that nothing is copied when it
// grows.
type partsWriter struct {
	body    *partsBody
	size    int
	reserve func(n int) // counts the memory of a new part
}

// partBytes is the size of a part.
const partBytes = 32 << 10

func (p *partsWriter) Write(b []byte) (int, error) {
	n := len(b)
	p.size += n
	for len(b) > 0 {
		last := len(p.body.parts) - 1
		if last < 0 || len(p.body.parts[last]) == cap(p.body.parts[last]) {
			p.reserve(partBytes)
			p.body.parts = append(p.body.parts, make([]byte, 0, partBytes))
			last++
		}
		part := p.body.parts[last]
		k := min(len(b), cap(part)-len(part))
		p.body.parts[last], b = append(part, b[:k]...), b[k:]
	}
	return n, nil
}

// streamedBody is a response body that is encoded while it is written. WriteTo combines its parts into writes of
// writeBufferBytes; a write waits until the client has read enough. It stops at the first error: then the connection
// is closed, and the client sees that the body is not complete.
type streamedBody struct {
	server *Server
	ctx    *fasthttp.RequestCtx
	stream *wire.AnswerStream
}

// Read always fails: fasthttp calls WriteTo instead.
func (*streamedBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// SupportsBodyWriteTo makes fasthttp call WriteTo for a body of unknown length.
func (*streamedBody) SupportsBodyWriteTo() bool { return true }

// maxPooledStreamBuffer is the largest buffer, in bytes, that is kept for the next answer. A message can take a
// megabyte.
const maxPooledStreamBuffer = 2 * writeBufferBytes

var streamBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, writeBufferBytes+writeBufferBytes/2)
	return &b
}}

// WriteTo encodes the body and writes it to w.
func (x *streamedBody) WriteTo(w io.Writer) (written int64, err error) {
	buffer := streamBuffers.Get().(*[]byte)
	defer func() {
		if cap(*buffer) <= maxPooledStreamBuffer {
			streamBuffers.Put(buffer)
		}
	}()
	b := (*buffer)[:0]
	for more, sent := true, 0; more; {
		var n int
		b, n, more = x.stream.Append(b)
		sent += n
		if len(b) < writeBufferBytes && more {
			continue
		}
		n, err = w.Write(b)
		written += int64(n)
		if err != nil {
			break
		}
		x.server.park.ReleaseAnswer(x.ctx, sent)
		b, sent = b[:0], 0
	}
	*buffer = b
	return written, err
}

// partSize is the memory of one element of a list of parts.
const partSize = int(unsafe.Sizeof([]byte(nil)))

// reserveParts counts the memory of an answer in parts. Parts that other answers contain too are not counted.
func (s *Server) reserveParts(ctx *fasthttp.RequestCtx, p wire.Fragments) {
	n := 0
	for _, x := range p {
		if n += partSize; !x.Shared && x.Run == nil {
			n += len(x.JSON)
		}
	}
	s.park.ReserveAnswer(ctx, n)
}

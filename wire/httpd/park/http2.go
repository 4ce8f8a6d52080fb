package park

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// HTTP/2 is for browsers: they open at most six connections of HTTP/1.1 to a server, and each tab has a poll. A client
// chooses it during the TLS handshake (ALPN). golang.org/x/net/http2 parses frames and enforces the limits of the
// protocol. Each stream is one request: it is written as a request of HTTP/1.1, so the check of heads, the limits and
// fasthttp are the same for both. A stream has a goroutine, also while its request is parked, so the number of
// connections is limited; clients beyond it get HTTP/1.1.

// The types of golang.org/x/net/http2 are marked as deprecated in favour of net/http, which has no way to serve a
// connection that is already open and not its own.
//
//lint:file-ignore SA1019 see above

// protocolHTTP2 is the name of HTTP/2 in a TLS handshake (RFC 9113, section 3.1).
const protocolHTTP2 = "h2"

// Limits of a connection with HTTP/2.
const (
	// maxStreams is the number of requests of one connection at a time: ten tabs of a browser that load pictures. A
	// client that opens and resets streams faster than handlers end has its connection closed.
	maxStreams = 100
	// maxUploadWindow is the number of body bytes that one connection may send before a handler reads them: a large
	// upload over a link of 100 ms needs no more for 2.5 MB/s.
	maxUploadWindow = 256 << 10
	maxFrame        = 16 << 10 // bytes of a frame: the least that the protocol allows
	maxHeaderTable  = 4 << 10  // bytes of the table of known headers, the protocol's default
	// A client that sends nothing gets a PING after pingInterval, and its connection is closed after pingTimeout.
	pingInterval = time.Minute
	pingTimeout  = 15 * time.Second
)

// http2Server serves the connections that chose HTTP/2.
type http2Server struct {
	frames *http2.Server
	base   *http.Server // for limits, and to announce a shutdown to all connections
	plain  *tls.Config  // the configuration of connections beyond MaxHTTP2: without HTTP/2
	open   atomic.Int64
	full   atomic.Int64 // handshakes that got plain because of MaxHTTP2

	mu    sync.Mutex
	conns map[*http2Conn]struct{}
}

// newHTTP2 prepares HTTP/2 if the configuration allows it, and adds it to the protocols of TLS.
func (s *Server) newHTTP2() *http2Server {
	h := &http2Server{conns: map[*http2Conn]struct{}{}}
	if s.cfg.TLS == nil {
		return h
	}
	h.plain = s.cfg.TLS
	if s.cfg.MaxHTTP2 <= 0 {
		return h
	}
	s.cfg.TLS = s.cfg.TLS.Clone()
	s.cfg.TLS.NextProtos = append([]string{protocolHTTP2}, s.cfg.TLS.NextProtos...)
	h.frames = &http2.Server{
		MaxConcurrentStreams:         maxStreams,
		MaxReadFrameSize:             maxFrame,
		MaxDecoderHeaderTableSize:    maxHeaderTable,
		MaxEncoderHeaderTableSize:    maxHeaderTable,
		MaxUploadBufferPerConnection: maxUploadWindow,
		MaxUploadBufferPerStream:     maxUploadWindow,
		IdleTimeout:                  s.cfg.IdleTimeout,
		ReadIdleTimeout:              pingInterval,
		PingTimeout:                  pingTimeout,
		WriteByteTimeout:             maxSendPause * s.cfg.WriteTimeout,
	}
	h.base = &http.Server{MaxHeaderBytes: s.cfg.MaxHeader, ErrorLog: log.New(io.Discard, "", 0)}
	if err := http2.ConfigureServer(h.base, h.frames); err != nil {
		panic("BUG: " + err.Error()) // only for cipher suites, which are the defaults
	}
	return h
}

// tlsConfig returns the configuration of a handshake that begins now.
func (s *Server) tlsConfig() *tls.Config {
	if s.http2.open.Load() >= int64(s.cfg.MaxHTTP2) {
		if s.cfg.MaxHTTP2 > 0 {
			s.http2.full.Add(1)
		}
		return s.http2.plain
	}
	return s.cfg.TLS
}

// choseHTTP2 reports whether the client of a completed handshake chose HTTP/2.
func choseHTTP2(c *tls.Conn) bool { return c.ConnectionState().NegotiatedProtocol == protocolHTTP2 }

// http2Conn is a connection with HTTP/2. It counts as one connection.
type http2Conn struct {
	s      *Server
	conn   *tls.Conn
	socket net.Conn // conn without TLS

	mu      sync.Mutex
	streams map[*streamConn]struct{} // those with a parked request
}

// serve serves the connection until it ends. conn has a completed handshake, and its reads and writes wait.
func (h *http2Conn) serve() {
	s := h.s
	defer h.socket.Close()
	defer s.http2.open.Add(-1)
	if s.http2.open.Add(1) > int64(s.cfg.MaxHTTP2) || s.draining.Load() {
		return // more handshakes ended at a time than there was room for; the client connects again
	}
	h.streams = map[*streamConn]struct{}{}
	s.http2.mu.Lock()
	s.http2.conns[h] = struct{}{}
	s.http2.mu.Unlock()
	s.http2.frames.ServeConn(h.conn, &http2.ServeConnOpts{BaseConfig: s.http2.base, Handler: h})
	s.http2.mu.Lock()
	delete(s.http2.conns, h)
	s.http2.mu.Unlock()
}

// ServeHTTP serves one stream.
func (h *http2Conn) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s := h.s
	st := &streamConn{h: h, w: w, q: q, control: http.NewResponseController(w), answered: make(chan composedAnswer, 1)}
	r := takeRequest(st)
	defer r.release()
	st.req, r.startedAt, st.out.headOnly = r, s.now(), q.Method == http.MethodHead
	head, ref := appendRequestHead(nil, q)
	if ref == nil {
		r.copyIn(head)
		s.bytesIn.Add(int64(len(head)))
		var complete bool
		if complete, ref = r.headComplete(&s.cfg); ref == nil && !complete {
			ref = refuseMalformed
		}
	}
	if ref == nil {
		ref = s.serveRequest(&secureRequest{r, h.conn}, r)
	}
	if ref != nil {
		s.refused[ref.reason].Add(1)
		st.send(s.appendRefusal(nil, ref))
		return
	}
	if p := r.parked; p != nil {
		st.waitForAnswer(p)
	}
	if !st.out.complete() {
		panic(http.ErrAbortHandler) // the client must not take a part of an answer for all of it
	}
}

// appendRequestHead appends a request's head as HTTP/1.1 has it. golang.org/x/net/http2 has checked that names and
// values have no line breaks; headComplete checks the rest.
func appendRequestHead(b []byte, q *http.Request) ([]byte, *refusal) {
	if q.Method == http.MethodConnect {
		return nil, refuseMalformed
	}
	b = append(b, q.Method...)
	b = append(b, ' ')
	b = append(b, q.RequestURI...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, q.Host...)
	b = append(b, "\r\n"...)
	for name, values := range q.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection":
			continue
		}
		for _, v := range values {
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, v...)
			b = append(b, "\r\n"...)
		}
	}
	switch {
	case q.ContentLength > 0 || q.ContentLength == 0 && q.Method != http.MethodGet && q.Method != http.MethodHead:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, q.ContentLength, 10)
		b = append(b, "\r\n"...)
	case q.ContentLength < 0:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	return append(b, "\r\n"...), nil
}

// streamConn is a stream as requests and their answers see it.
type streamConn struct {
	h        *http2Conn
	w        http.ResponseWriter
	q        *http.Request
	control  *http.ResponseController
	out      responseReader
	chunks   []byte // of a body without a length: bytes of its chunks that recv has not returned
	ended    bool   // and the last chunk is among them
	blocked  int64  // when the answer began to wait for the client, by the server's clock
	sent     int64
	answered chan composedAnswer // the answer to the parked request; closed if a shutdown drops it
	req      *request

	parked *Parked // h.mu
}

// recv waits for bytes of the request's body.
func (st *streamConn) recv(p []byte) (int, error) {
	s := st.h.s
	if len(st.chunks) > 0 {
		n := copy(p, st.chunks)
		st.chunks = st.chunks[n:]
		return n, nil
	}
	st.control.SetReadDeadline(s.began.Add(time.Duration(s.bodyDeadline(st.req)) * time.Millisecond))
	if st.q.ContentLength >= 0 {
		n, err := st.q.Body.Read(p)
		st.received(n)
		return n, bodyError(n, err)
	}
	if st.ended {
		return 0, io.EOF
	}
	piece := make([]byte, firstReadAhead)
	n, err := st.q.Body.Read(piece)
	st.received(n)
	if n > 0 {
		st.chunks = strconv.AppendInt(nil, int64(n), 16)
		st.chunks = append(st.chunks, "\r\n"...)
		st.chunks = append(st.chunks, piece[:n]...)
		st.chunks = append(st.chunks, "\r\n"...)
	}
	if err == io.EOF {
		st.chunks, st.ended = append(st.chunks, "0\r\n\r\n"...), true
	} else if err = bodyError(n, err); err != nil {
		return 0, err
	}
	n = copy(p, st.chunks)
	st.chunks = st.chunks[n:]
	return n, nil
}

// received counts bytes of the body.
func (st *streamConn) received(n int) {
	st.req.bodyReceived += int64(n)
	st.h.s.bytesIn.Add(int64(n))
}

// bodyError returns the error of a read that returned n bytes.
func bodyError(n int, err error) error {
	switch {
	case n > 0 || err == nil:
		return nil
	case isTimeout(err):
		return refuseSlow
	}
	return err
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// send writes bytes of the answer as HTTP/1.1 has it, and waits until the client took all of them.
func (st *streamConn) send(p []byte) (int, error) {
	s := st.h.s
	if st.blocked == 0 {
		st.blocked = s.now()
	}
	until := s.sendDeadline(st.blocked, st.sent)
	st.control.SetWriteDeadline(s.began.Add(time.Duration(until) * time.Millisecond))
	err := st.out.write(st.w, p)
	st.sent += int64(len(p))
	s.bytesOut.Add(int64(len(p)))
	if err != nil {
		if isTimeout(err) {
			s.writeTimeouts.Add(1)
		}
		return 0, err
	}
	return len(p), nil
}

// composedAnswer is the answer to a parked request. Its bytes count for owner until they are sent.
type composedAnswer struct {
	b     []byte
	owner Caller
}

// waitForAnswer waits until the parked request is answered or its client leaves.
func (st *streamConn) waitForAnswer(p *Parked) {
	s := st.h.s
	if s.dropsParked(p) && st.forget(p) {
		s.notifyGone([]*Parked{p})
		return
	}
	select {
	case a := <-st.answered:
		st.deliver(a)
	case <-st.q.Context().Done():
		if st.forget(p) {
			s.notifyGone([]*Parked{p})
			return
		}
		st.deliver(<-st.answered)
	}
}

// deliver writes the answer to a parked request, if there is one.
func (st *streamConn) deliver(a composedAnswer) {
	if a.b != nil {
		st.send(a.b)
		st.h.s.releaseUnsent(a.owner, int64(len(a.b)))
	}
}

// forget ends a parked request without an answer. It reports false if it has ended before.
func (st *streamConn) forget(p *Parked) bool {
	h := st.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if st.parked != p {
		return false
	}
	st.parked = nil
	delete(h.streams, st)
	return true
}

func (st *streamConn) park(p *Parked) {
	st.h.mu.Lock()
	defer st.h.mu.Unlock()
	st.parked = p
	st.h.streams[st] = struct{}{}
}

func (st *streamConn) abandon(p *Parked) bool {
	if !st.forget(p) {
		return false
	}
	st.h.s.parked.Add(-1)
	return true
}

// answer gives the answer to the goroutine of the stream.
func (st *streamConn) answer(p *Parked, status int, parts [][]byte) bool {
	s := st.h.s
	b := s.compose(nil, p, false, status, parts)
	st.h.mu.Lock()
	defer st.h.mu.Unlock()
	if st.parked != p {
		return false
	}
	st.parked = nil
	delete(st.h.streams, st)
	s.parked.Add(-1)
	owner, ok := s.reserveUnsent(p, int64(len(b)))
	if !ok {
		close(st.answered)
		return false
	}
	s.answers.Add(1)
	st.answered <- composedAnswer{b, owner} // it has room for the only answer
	return true
}

func (st *streamConn) prefetch() uint32     { return 0 }
func (st *streamConn) remoteAddr() net.Addr { return st.h.socket.RemoteAddr() }
func (st *streamConn) localAddr() net.Addr  { return st.h.socket.LocalAddr() }

// dropParked ends the parked requests of a connection and notifies their owners.
func (h *http2Conn) dropParked() {
	var gone []*Parked
	h.mu.Lock()
	for st := range h.streams {
		gone = append(gone, st.parked)
		st.parked = nil
		close(st.answered)
	}
	clear(h.streams)
	h.mu.Unlock()
	h.s.notifyGone(gone)
}

// eachHTTP2 calls visit for the open connections with HTTP/2.
func (s *Server) eachHTTP2(visit func(*http2Conn)) {
	s.http2.mu.Lock()
	all := make([]*http2Conn, 0, len(s.http2.conns))
	for h := range s.http2.conns {
		all = append(all, h)
	}
	s.http2.mu.Unlock()
	for _, h := range all {
		visit(h)
	}
}

// announceShutdown tells all clients with HTTP/2 to use another connection for later requests (GOAWAY). Connections
// end with their last request.
func (s *Server) announceShutdown() {
	if s.http2.base != nil {
		s.http2.base.Shutdown(context.Background()) // it has no listeners, so it only calls the functions of http2
	}
}

// responseReader reads an answer as HTTP/1.1 has it and writes it to a stream. Only this package and fasthttp write
// such answers, so it does not check them.
type responseReader struct {
	head     []byte // until it is complete
	begun    bool   // the head is written
	headOnly bool   // there is no body
	chunks   bool   // the body is in chunks
	inside   int64  // bytes of the body, or of the chunk, that are missing
	line     []byte // of a chunk's head
	last     bool   // the last chunk was read
}

// complete reports whether all of the answer was written.
func (o *responseReader) complete() bool {
	return o.begun && (o.headOnly || o.chunks && o.last || !o.chunks && o.inside <= 0)
}

func (o *responseReader) write(w http.ResponseWriter, p []byte) error {
	if !o.begun {
		searched := max(0, len(o.head)-3)
		o.head = append(o.head, p...)
		end := bytes.Index(o.head[searched:], []byte("\r\n\r\n"))
		if end < 0 {
			return nil
		}
		end += searched + 4
		p = o.head[end:]
		o.writeHead(w, o.head[:end])
		o.head, o.begun = nil, true
	}
	if !o.chunks {
		o.inside -= int64(len(p))
		_, err := w.Write(p)
		return err
	}
	return o.writeChunks(w, p)
}

// writeHead sets status and headers. Headers about the connection do not exist in HTTP/2.
func (o *responseReader) writeHead(w http.ResponseWriter, head []byte) {
	status := http.StatusInternalServerError
	for i, line := range bytes.Split(bytes.TrimRight(head, "\r\n"), []byte("\r\n")) {
		if i == 0 {
			if f := bytes.Fields(line); len(f) > 1 {
				status, _ = strconv.Atoi(string(f[1]))
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch http.CanonicalHeaderKey(string(name)) {
		case "Connection", "Keep-Alive":
			continue
		case "Transfer-Encoding":
			o.chunks = true
			continue
		case "Content-Length":
			o.inside, _ = strconv.ParseInt(string(value), 10, 64)
		}
		w.Header().Add(string(name), string(value))
	}
	o.headOnly = o.headOnly || status == http.StatusNotModified || status == http.StatusNoContent
	w.WriteHeader(status)
}

func (o *responseReader) writeChunks(w http.ResponseWriter, p []byte) error {
	for len(p) > 0 && !o.last {
		if o.inside > 0 {
			n := min(o.inside, int64(len(p)))
			if _, err := w.Write(p[:n]); err != nil {
				return err
			}
			o.inside, p = o.inside-n, p[n:]
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			o.line = append(o.line, p...)
			return nil
		}
		o.line = bytes.TrimSpace(append(o.line, p[:end]...))
		p = p[end+1:]
		if len(o.line) == 0 { // the end of a chunk
			continue
		}
		size, err := strconv.ParseInt(string(o.line), 16, 64)
		if err != nil {
			return err
		}
		o.inside, o.line, o.last = size, o.line[:0], size == 0
	}
	return nil
}

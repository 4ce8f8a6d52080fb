// Package park is the connection layer of the HTTP server. fasthttp parses requests and writes ordinary answers; this
// package owns the connections around it, so that a request can be *parked*: its handler returns, the answer comes
// later from any goroutine, and meanwhile the connection holds no goroutine, no stack and no buffers, only a few
// hundred bytes. Idle keep-alive connections rest in the same way. A parked client that leaves is noticed.
//
// What it promises:
//
//   - Answers leave a connection in the order of its requests; what a client pipelines behind a parked request waits.
//   - Parked.Answer never blocks. It writes once without waiting; what the socket does not take at once follows in the
//     background, within WriteTimeout and MaxPending, or the connection is dropped. An Answer that returned true may
//     still be lost with the connection, so keep what it said until the client acknowledges it.
//   - Either Answer returns true, or gone is called, or Answer returned false: never two of them.
//   - A client that shuts down its sending side while parked counts as gone, as TCP cannot tell it from one that left.
//   - A request reaches fasthttp only after its head passed a gate stricter than fasthttp or net/http (head.go), and
//     fasthttp is shown exactly one request at a time, framed by the gate. So nobody behind or before this server can
//     read the same bytes as different requests. Refusals are JSON in the protocol's error form, and close.
//   - Bodies are read before the handler runs, and multipart bodies are left unparsed for the handler. Only where
//     Config.Streams says so the handler reads the body itself, as it comes, from RequestBodyStream: such a request
//     holds its buffers but never its body. One it leaves unread ends the connection. Handlers must not hijack, and
//     nothing of a RequestCtx, its Conn included, outlives its handler.
//
// On Linux, TCP connections live in an edge-triggered epoll. TLS, other listeners and other systems use one blocked
// goroutine a connection; the API is the same.
package park

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// Config says how a server behaves. Zero values take the default named with each field.
type Config struct {
	Handler fasthttp.RequestHandler // runs one request; a panic in it costs one 500
	Name    string                  // the Server header; empty sends none
	Log     *slog.Logger            // slog.Default()
	TLS     *tls.Config             // when set, every connection speaks TLS

	// ParkedHeader is spliced into every parked answer and every refusal: complete lines, each ended by CRLF. Put
	// here what the handler's own answers carry always (CORS, caching). What a handler has set on its response before
	// Park is kept and sent too, so a line belongs in one place or the other.
	AnswerHeader []byte
	// WaitedHeader takes its place in the answers to requests that were parked, not held; nil: the same.
	PollHeader []byte

	// OnDrain is called once when Shutdown begins, after the listeners closed. The owner of parked requests should
	// answer them now, also those that only now reach it; what is parked later is dropped and its gone function
	// called. Without OnDrain all are dropped.
	OnDrain func()
	// Late says that the owner also answers, at once, what is parked after OnDrain; otherwise that is dropped.
	AnswersLatePolls bool

	// BodyLimit may allow a request more (or less) body than MaxBody, by method and target (path and query as sent).
	BodyLimit func(method, target []byte) int

	// Streams tells which requests' handlers read the body themselves. Such a handler must not ask for PostBody, nor park.
	StreamsBody func(method, target []byte) bool

	// NewQuick makes what is offered requests that begin with one of QuickTargets (method, path and query as sent) before
	// the Handler is. Only connections in an epoll have it.
	NewFastPath     func() FastPath
	FastPathTargets []string

	MaxBody   int // bytes of one request's body; 1 MiB: forms are small, uploads ask for more through BodyLimit
	MaxHeader int // bytes of request line and headers; 16 KiB: a long narrow in a URL, with cookies, fits twice

	ReadTimeout   time.Duration // from a request's first byte to the end of its head, and base time for the body; 15 s
	WriteTimeout  time.Duration // base time for a client to take an answer; 30 s
	IdleTimeout   time.Duration // a keep-alive connection without a request; 2 min, above the usual proxies' 60-75 s
	LingerTimeout time.Duration // after a refusal, so that the client reads it before a reset can destroy it; 2 s
	KeepAlive     time.Duration // TCP probes find clients that vanished without a word, parked ones too; 60 s
	Sweep         time.Duration // how coarse the above are kept: one pass over all connections a tick; 500 ms
	MinRate       int           // bytes/s a slow body or reader must keep up beyond the base time; 8 KiB/s: a poor 2G link

	MaxConns      int // open connections; default is the process's file limit less 1/16 (at least 64) for other files
	MaxConnsPerIP int // open connections of one IPv4 address or IPv6 /64; 0 is no limit: offices and proxies share one
	MaxActive     int // requests being handled at once, each ~20 kB of stack and buffers; 8,192
	MaxSlow       int // requests held up by a slow body or reader at once, same cost, and 64 kB while a file or a large answer is sent (without epoll: as active); 1,024
	MaxBodies     int // bytes of request bodies in memory at once: announced lengths are allocated unseen; 512 MiB
	MaxStreams    int // requests whose handlers read the body as it comes, at once: about 150 kB of buffers and a file each; 64
	MaxPending    int // bytes of parked answers that sockets did not take at once, over all connections; 64 MiB
}

func (c *Config) defaults() {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	dur := func(p *time.Duration, v time.Duration) {
		if *p <= 0 {
			*p = v
		}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.PollHeader == nil {
		c.PollHeader = c.AnswerHeader
	}
	def(&c.MaxBody, 1<<20)
	def(&c.MaxHeader, 16<<10)
	dur(&c.ReadTimeout, 15*time.Second)
	dur(&c.WriteTimeout, 30*time.Second)
	dur(&c.IdleTimeout, 2*time.Minute)
	dur(&c.LingerTimeout, 2*time.Second)
	dur(&c.KeepAlive, time.Minute)
	dur(&c.Sweep, 500*time.Millisecond)
	def(&c.MinRate, 8<<10)
	limit := openFileLimit()
	def(&c.MaxConns, limit-max(64, limit/16))
	def(&c.MaxActive, 8192)
	def(&c.MaxSlow, 1024)
	def(&c.MaxBodies, 512<<20)
	def(&c.MaxStreams, 64)
	def(&c.MaxPending, 64<<20)
}

// Limits that are no one's business to set.
const (
	maxLinger      = 256 << 10            // bytes read and thrown away behind a refusal
	maxRefusedOpen = 64                   // connections above MaxConns kept open just long enough to be told 503
	maxReadAhead   = 64 << 10             // bytes a pooled buffer may have grown to and still be kept
	drainInterval  = 2 * time.Millisecond // between two looks of a shutdown at what is open
	firstReadAhead = 2 << 10              // bytes a request's buffer starts with: most requests fit whole
)

// Server serves listeners. Make one with New.
type Server struct {
	cfg       Config
	buffering *fasthttp.Server
	streaming *fasthttp.Server // for requests whose handlers read the body
	began     time.Time
	date      atomic.Pointer[string] // of this second, as HTTP writes it
	coarseNow atomic.Int64           // now a tenth of a second ago at most, or more on a machine that is late
	lastExtra atomic.Pointer[[]byte] // the header lines handlers set before Park last time; most set the same

	mu               sync.Mutex
	listeners        map[io.Closer]struct{}
	blocking         map[*goroutineConn]struct{}
	perIP            map[netip.Addr]int
	closeAfterAnswer atomic.Bool
	handoff          atomic.Pointer[Handoff] // where a shutdown puts connections at rest
	accepting        atomic.Int64            // calls of Serve
	graceUntil       atomic.Int64            // by the server's clock: until then a shutdown leaves new connections their first request
	draining         atomic.Bool
	stop             chan struct{} // closed when the background work may end
	stopped          sync.Once

	evented
	counters
}

// New returns a server that listens to nothing yet. Shutdown frees what it holds.
func New(cfg Config) *Server {
	cfg.defaults()
	if cfg.Handler == nil {
		panic("BUG: park.New without a Handler")
	}
	if cfg.TLS != nil {
		cfg.TLS = cfg.TLS.Clone()
		if cfg.TLS.NextProtos == nil {
			cfg.TLS.NextProtos = []string{"http/1.1"}
		}
	}
	s := &Server{
		cfg:       cfg,
		began:     time.Now(),
		listeners: map[io.Closer]struct{}{},
		blocking:  map[*goroutineConn]struct{}{},
		perIP:     map[netip.Addr]int{},
		stop:      make(chan struct{}),
	}
	s.buffering, s.streaming = s.newParser(false), s.newParser(true)
	s.setDate(s.began)
	s.coarseNow.Store(s.now())
	go s.sweep()
	return s
}

func (s *Server) newParser(streams bool) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.handleError,
		Name:                         s.cfg.Name,
		NoDefaultServerHeader:        s.cfg.Name == "",
		ReadBufferSize:               s.cfg.MaxHeader + 1,
		MaxRequestBodySize:           math.MaxInt, // the gate limits bodies
		Concurrency:                  math.MaxInt32,
		DisablePreParseMultipartForm: true,
		StreamRequestBody:            streams,
		ReduceMemoryUsage:            true,
		Logger:                       discardLog{},
	}
}

// Config is the configuration in force.
func (s *Server) Config() Config { return s.cfg }

// WithDefaults is the configuration that a server would have in force.
func (c Config) WithDefaults() Config {
	c.defaults()
	return c
}

// discardLog keeps fasthttp's own lines out of the log: what they tell of clients is counted in Stats.
type discardLog struct{}

func (discardLog) Printf(string, ...any) {}

// Serve accepts connections until the listener fails or Shutdown closes it; the latter returns nil. It may be called
// for several listeners at once, and closes them.
func (s *Server) Serve(ln net.Listener) error {
	defer s.trackListener(ln)()
	// Counted, so that a shutdown does not take a connection just accepted for none.
	s.accepting.Add(1)
	defer s.accepting.Add(-1)
	var err error
	if tcp, ok := ln.(*net.TCPListener); ok && s.cfg.TLS == nil && canEvent {
		err = s.acceptEvented(tcp)
	} else {
		err = s.acceptBlocking(ln)
	}
	if s.draining.Load() {
		return nil
	}
	return fmt.Errorf("accept connections: %w", err)
}

// trackListener has Shutdown close ln. The function it returns closes ln before that.
func (s *Server) trackListener(ln io.Closer) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners[ln] = struct{}{}
	if s.draining.Load() {
		ln.Close()
	}
	return func() {
		ln.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, ln)
	}
}

// acceptPause waits out an error that passes (too many files, an aborted connection), longer each time.
// It reports false when the error is final or the server drains.
func (s *Server) acceptPause(err error, pause *time.Duration) bool {
	if s.draining.Load() || errors.Is(err, net.ErrClosed) || !isTemporary(err) {
		return false
	}
	if *pause == 0 {
		s.cfg.Log.Error("cannot accept connections; trying on", "err", err)
	}
	*pause = min(max(2**pause, 5*time.Millisecond), time.Second)
	select {
	case <-time.After(*pause):
		return true
	case <-s.stop:
		return false
	}
}

// firstRequestGrace is how long a shutdown after Retire waits for the first request of a connection that is new.
const firstRequestGrace = 500 * time.Millisecond

// PrepareShutdown prepares a Shutdown that clients do not notice. With a passage, Shutdown gives connections at rest to the
// successor, with what was read of their next requests. Those that cannot be given (TLS, no epoll, no passage) are
// asked to end: from now on every answer on them ends its connection, while new ones are still taken, and after a pause
// the only idle ones left are such as nobody uses, so that Shutdown, which must close them, hardly ever meets a request
// that is on its way. pause says that there may be such connections.
func (s *Server) PrepareShutdown(p *Handoff) (pause bool) {
	s.handoff.Store(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil || s.cfg.TLS != nil || !canEvent || len(s.blocking) > 0 {
		s.closeAfterAnswer.Store(true)
	}
	return s.closeAfterAnswer.Load()
}

// closesAfterAnswer reports whether an answer ends its connection.
func (s *Server) closesAfterAnswer(l connection) bool {
	if !s.closeAfterAnswer.Load() && !s.draining.Load() {
		return false
	}
	_, evented := any(l).(*eventConn) // which is no link where there is no epoll
	return !evented || !s.handoff.Load().open()
}

// Shutdown closes the listeners, tells the owner to answer what is parked (OnDrain), closes idle connections, and
// waits for requests and answers in flight. When ctx ends first the rest is cut off and ctx's error returned.
// Either way every gone function that was still due has been called or is on its way. After Retire with a passage it
// does not wait for clients that are slow to take their answers: nobody else is needed for those, and Finish waits.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.cfg.AnswersLatePolls { // the owner's next process is one that is asked anew
		s.handOffParked()
	}
	s.mu.Lock()
	if s.closeAfterAnswer.Load() {
		s.graceUntil.CompareAndSwap(0, s.now()+int64(firstRequestGrace/time.Millisecond))
	}
	first := !s.draining.Swap(true)
	for ln := range s.listeners {
		ln.Close()
	}
	s.mu.Unlock()
	if first {
		if s.cfg.OnDrain != nil {
			s.cfg.OnDrain()
		} else {
			s.dropParked()
		}
	}
	if p := s.handoff.Load(); p != nil {
		defer p.Close()
	}
	if err := s.wait(ctx, func() bool { return s.handoffTarget() != nil && s.onlyUnsentAnswers() }); err != nil || s.open.Load() == 0 {
		return s.endShutdown(err)
	}
	return nil
}

// FinishAnswers waits, after Shutdown, for clients that still take their answers. When ctx ends first they are cut off.
func (s *Server) FinishAnswers(ctx context.Context) error {
	return s.endShutdown(s.wait(ctx, func() bool { return false }))
}

// receive waits until nothing is open any more, or enough says that it need not.
func (s *Server) wait(ctx context.Context, enough func() bool) error {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for {
		s.handOffIdle()
		s.closeIdle()
		if s.accepting.Load() == 0 && (s.open.Load() == 0 || enough()) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endShutdown cuts off what a wait that failed has left, and stops the background work.
func (s *Server) endShutdown(err error) error {
	if err != nil {
		s.dropParked()
		s.abortAll()
		for end := time.Now().Add(time.Second); s.open.Load() > 0 && time.Now().Before(end); {
			time.Sleep(drainInterval) // handlers that are still running keep theirs; the process is about to end
		}
	}
	s.stopped.Do(func() {
		close(s.stop)
		if s.open.Load() == 0 {
			s.closeEvented()
		}
	})
	return err
}

// closeIdle, dropParked and cutAll do to all connections what their names say.
func (s *Server) closeIdle()  { s.closeIdleEvented(); s.eachBlocking((*goroutineConn).closeIdle) }
func (s *Server) dropParked() { s.dropParkedEvented(); s.eachBlocking((*goroutineConn).dropParked) }
func (s *Server) abortAll()   { s.abortEvented(); s.eachBlocking((*goroutineConn).abort) }

// notifyGone tells the owners, in a goroutine of its own: their code is not ours, and we may hold things up.
func (s *Server) notifyGone(ps []*Parked) {
	if len(ps) == 0 {
		return
	}
	s.clientsGone.Add(int64(len(ps)))
	s.parked.Add(-int64(len(ps)))
	go func() {
		for _, p := range ps {
			if p.gone != nil {
				p.gone.Gone()
			}
		}
	}()
}

// now is the server's own coarse clock: milliseconds since it began, never 0.
func (s *Server) now() int64 { return int64(time.Since(s.began)/time.Millisecond) + 1 }

// allowedMillis is the time in milliseconds a client has to move n bytes when base is given for the first of them.
func (s *Server) allowedMillis(base time.Duration, n int64) int64 {
	return int64(base/time.Millisecond) + n*1000/int64(s.cfg.MinRate)
}

// bodyDeadline is when, on the clock of now, more of a request's body must have come. On the whole a body comes at MinRate at
// least; but whoever sent much at once does not gain hours of silence by that, in which he holds a place and what he writes to.
func (s *Server) bodyDeadline(r *request) int64 {
	return min(r.startedAt+s.allowedMillis(s.cfg.ReadTimeout, r.bodyReceived), s.now()+s.allowedMillis(maxBodyPause*s.cfg.ReadTimeout, 0))
}

// maxBodyPause is how long a body may pause, in ReadTimeouts.
const maxBodyPause = 2

// dateInterval is by how much the date that answers carry may be late. A server that nobody asks does little else than look.
const dateInterval = 250 * time.Millisecond

// sweep keeps the deadlines of all evented connections, and the date.
func (s *Server) sweep() {
	tick := time.NewTicker(s.cfg.Sweep)
	defer tick.Stop()
	dates := time.NewTicker(dateInterval)
	defer dates.Stop()
	for {
		select {
		case t := <-dates.C:
			s.setDate(t)
			s.coarseNow.Store(s.now())
		case <-tick.C:
			s.sweepEvented(s.now())
		case <-s.stop:
			return
		}
	}
}

func (s *Server) setDate(t time.Time) {
	d := string(fasthttp.AppendHTTPDate(nil, t))
	if old := s.date.Load(); old == nil || *old != d {
		s.date.Store(&d)
	}
}

// admitConn counts a new connection in, or says why not.
func (s *Server) admitConn(ip netip.Addr) *refusal {
	if n := s.open.Add(1); n > int64(s.cfg.MaxConns) {
		return refuseConns
	}
	if s.cfg.MaxConnsPerIP <= 0 || !ip.IsValid() {
		return nil
	}
	ip = ClientNetwork(ip)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perIP[ip] >= s.cfg.MaxConnsPerIP {
		return refuseConnsPerIP
	}
	s.perIP[ip]++
	return nil
}

// releaseConn undoes admit; admitted says whether it let the connection in.
func (s *Server) releaseConn(ip netip.Addr, admitted bool) {
	s.open.Add(-1)
	if !admitted || s.cfg.MaxConnsPerIP <= 0 || !ip.IsValid() {
		return
	}
	ip = ClientNetwork(ip)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perIP[ip]--; s.perIP[ip] <= 0 {
		delete(s.perIP, ip)
	}
}

// ClientNetwork is whom callers from an address are counted as: one IPv4 address, or the /64 that one IPv6 customer has at least.
func ClientNetwork(ip netip.Addr) netip.Addr {
	ip = ip.Unmap()
	if ip.Is4() {
		return ip
	}
	p, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip
	}
	return p.Addr()
}

// serveRequest lets fasthttp handle the request that is there, unless the server has its hands full.
func (s *Server) serveRequest(conn net.Conn, r *request) *refusal {
	active, bodies, streams, long := int64(1), r.head.length, int64(0), int64(0)
	if r.stream || bodies < 0 || bodies > maxHandoffBytes {
		long = 1
	}
	s.longRequests.Add(long)
	if bodies < 0 {
		bodies = r.limit // chunked: as much as it may become
	}
	if r.multipart {
		bodies *= 2 // its parts are copies
	}
	if r.stream {
		bodies, streams = 0, 1
	}
	defer func() {
		s.active.Add(-active)
		s.bodies.Add(-bodies)
		s.streams.Add(-streams)
		s.longRequests.Add(-long)
	}()
	if s.streams.Add(streams) > int64(s.cfg.MaxStreams) && r.stream {
		return refuseStreams
	}
	if s.active.Add(active) > int64(s.cfg.MaxActive) {
		return refuseActive
	}
	if s.bodies.Add(bodies) > int64(s.cfg.MaxBodies) && bodies > 0 {
		return refuseBodies
	}
	if r.stream {
		s.streaming.ServeConn(conn)
		return nil
	}
	s.buffering.ServeConn(conn) // its error is the connection's end, which request tells better
	return nil
}

// finishStreamedBody sees to it that nothing of a body its handler left unread is taken for the next request.
func (s *Server) finishStreamedBody(ctx *fasthttp.RequestCtx, r *request) {
	var fault *refusal
	if errors.As(r.fault, &fault) { // what the client did wrong in the middle of it; the handler only saw it end
		s.refused[fault.reason].Add(1)
		r.conn.send(s.appendRefusal(nil, fault))
		r.discard = true
	}
	body := ctx.RequestBodyStream()
	if body == nil {
		return
	}
	if !r.unread() { // allIn of it is in fasthttp's buffer, so this does not wait
		if _, err := io.Copy(io.Discard, body); err == nil {
			return
		}
	}
	ctx.SetConnectionClose()
}

// handle is what fasthttp calls: the request is complete, nothing more is read for it, unless its handler reads the body.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	r := requestOf(ctx)
	s.requests.Add(1)
	if r.head.close || s.closesAfterAnswer(r.conn) {
		ctx.Request.Header.SetConnectionClose()
		ctx.SetConnectionClose()
	}
	defer poisonRequest(ctx)
	defer func() {
		if x := recover(); x != nil {
			s.cfg.Log.Error("BUG: handler panicked", "panic", fmt.Sprint(x), "method", string(ctx.Method()),
				"path", string(ctx.Path()), "stack", string(debug.Stack()))
			s.panics.Add(1)
			if r.parked != nil && !r.conn.abandon(r.parked) {
				return // it has its answer, or nobody waits for one
			}
			r.parked, r.discard = nil, false
			ctx.Response.Reset()
			ctx.Response.Header.SetContentType("application/json")
			ctx.SetStatusCode(fasthttp.StatusInternalServerError)
			ctx.SetBodyString(`{"result":"error","msg":"Internal server error"}` + "\n")
			ctx.SetConnectionClose()
		}
	}()
	s.cfg.Handler(ctx)
	if r.stream {
		s.finishStreamedBody(ctx, r)
	}
}

// handleError answers what went wrong before the handler: the gate's refusals of a body, slow senders, broken ends.
func (s *Server) handleError(ctx *fasthttp.RequestCtx, err error) {
	r := requestOf(ctx)
	if r.fault == errHandedOff {
		r.discard = true
		return
	}
	ref := refuseMalformed
	var fault *refusal
	if errors.As(r.fault, &fault) {
		ref = fault
	}
	s.refused[ref.reason].Add(1)
	r.conn.send(s.appendRefusal(nil, ref)) // an error here is found again when the connection is closed
	r.discard = true                       // what fasthttp would say
}

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
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/admission"
)

// Config configures New. A zero value takes the default that its comment names.
type Config struct {
	// Handler runs one request. A panic in it is answered with 500.
	Handler fasthttp.RequestHandler
	// Name is the Server header; empty sends none.
	Name string
	// Log defaults to slog.Default().
	Log *slog.Logger
	// TLS, when set, makes every connection speak TLS.
	TLS *tls.Config

	// AnswerHeader is part of every answer to a request parked briefly and of every refusal: complete lines, each
	// ended by CRLF. Put here the lines that the handler's own answers always have (CORS, caching). Lines that a
	// handler sets on its response before Park are sent, too, so a line belongs in one of the two places.
	AnswerHeader []byte
	// PollHeader replaces AnswerHeader in the answers to parked requests; nil means AnswerHeader.
	PollHeader []byte
	// PrivateHeader replaces both in the answers to parked requests whose path begins with PrivatePrefix; an empty
	// prefix means no path.
	PrivatePrefix string
	PrivateHeader []byte

	// OnDrain is called once when Shutdown begins, after the listeners were closed. The owner of parked requests
	// must answer them now, including those that have not reached it yet. Requests parked later are dropped and their
	// gone function is called. Without OnDrain all parked requests are dropped.
	OnDrain func()
	// AnswersLatePolls says that the owner also answers requests that are parked after OnDrain, without delay.
	// Otherwise they are dropped.
	AnswersLatePolls bool

	// BodyLimit returns the largest body of a request by its method and target (path and query as sent). nil means
	// MaxBody.
	BodyLimit func(method, target []byte) int

	// StreamsBody reports whether the handler of a request reads the body itself. Such a handler must neither call
	// PostBody nor park.
	StreamsBody func(method, target []byte) bool

	// NewFastPath makes a FastPath for each loop. It is offered requests that begin with one of FastPathTargets
	// (method, path and query as sent) before the Handler. Only connections in an epoll have a fast path.
	NewFastPath     func() FastPath
	FastPathTargets []string

	// MaxBody is the size of one request's body in bytes. Default 1 MiB: forms are small, and uploads get more
	// through BodyLimit.
	MaxBody int
	// MaxHeader is the size of request line and headers in bytes. Default 16 KiB: a long narrow in the URL with
	// cookies fits twice.
	MaxHeader int

	// ReadTimeout is the time from the first byte of a request to the end of its head, and the base time for the
	// body. Default 15 s.
	ReadTimeout time.Duration
	// WriteTimeout is the base time for a client to take an answer. Default 30 s.
	WriteTimeout time.Duration
	// IdleTimeout is the time for a keep-alive connection without a request. Default 2 min, longer than the 60-75 s
	// of the usual proxies.
	IdleTimeout time.Duration
	// LingerTimeout is the time after a refusal for the client to read it: closing earlier may reset the connection
	// and destroy the answer. Default 2 s.
	LingerTimeout time.Duration
	// KeepAlive is the interval of TCP probes, which find clients that vanished silently, parked ones included.
	// Default 60 s.
	KeepAlive time.Duration
	// Sweep is the resolution of these times: one pass over all connections per interval. Default 500 ms.
	Sweep time.Duration
	// MinRate is the speed, in bytes per second, that a slow body or reader must keep up after the base time. Default
	// 8 KiB/s: a poor 2G link.
	MinRate int

	// MaxConns is the number of open connections. Default is the process's file limit less 1/16 (at least 64) for
	// other files.
	MaxConns int
	// MaxConnsPerIP is the number of open connections of one IPv4 address or IPv6 /64. 0 is no limit, because offices
	// and proxies share one address.
	MaxConnsPerIP int
	// Unlimited reports the addresses to which MaxConnsPerIP does not apply, such as proxies; nil: none.
	Unlimited func(netip.Addr) bool
	// Organization returns the organization of a Host header, which may have any bytes; nil: there is only one. Several
	// reports whether there are several: then each of them has half of MaxActive, MaxSlow, MaxBodies and MaxStreams.
	Organization func(host []byte) string
	Several      func() bool
	// MaxActive is the number of requests handled at a time, each about 20 kB of stack and buffers. Default 8,192.
	MaxActive int
	// MaxSlow is the number of requests that wait for a slow body or reader at a time; without epoll they count as
	// active. Each needs the memory of an active one, and 64 kB more while a file or a large answer is sent. Default
	// 1,024.
	MaxSlow int
	// MaxHandshakes is the number of TLS handshakes at a time, each about 30 kB of stack and state. Those beyond it are
	// closed. Default 4,096: as many as connect at once when a server restarts, from networks of 100 ms.
	MaxHandshakes int
	// MaxHTTP2 is the number of connections with HTTP/2, which needs TLS; later ones use HTTP/1.1. Each takes about 60
	// kB, and each of its requests 20 kB until it is answered. 0: there is no HTTP/2.
	MaxHTTP2 int
	// MaxBodies is the size of all request bodies in memory, in bytes: announced lengths are allocated before they
	// arrive. Default 512 MiB.
	MaxBodies int
	// MaxStreams is the number of requests with streamed bodies at a time: about 150 kB of buffers and a file each.
	// Default 64.
	MaxStreams int
	// MaxPending is the size of all parked answers that sockets did not take at once, in bytes. Default 64 MiB.
	MaxPending int
	// MaxPendingPerCaller is the part of it that one caller can have; a single answer always fits. Default an eighth.
	MaxPendingPerCaller int
	// MaxPendingPerOrganization is the part of it that all callers of one organization can have; a single answer always
	// fits. Default half, so that one organization leaves memory for the others.
	MaxPendingPerOrganization int
	// MaxAnswers is the memory, in bytes, of all answers that are being built or sent; see TryReserveAnswer. Default
	// 256 MiB.
	MaxAnswers int
	// MaxAnswersPerCaller is the part of it that large answers of one caller can hold. Default an eighth: so one caller
	// that does not read leaves memory for the others.
	MaxAnswersPerCaller int
	// MaxAnswersPerOrganization is the part of it that large answers to all callers of one organization can hold.
	// Default half, so that one organization leaves memory for the others.
	MaxAnswersPerOrganization int
}

func (c *Config) answerLimits() callerLimits {
	return callerLimits{int64(c.MaxAnswersPerCaller), int64(c.MaxAnswersPerOrganization)}
}

func (c *Config) pendingLimits() callerLimits {
	return callerLimits{int64(c.MaxPendingPerCaller), int64(c.MaxPendingPerOrganization)}
}

func (c *Config) setDefaults() {
	setInt := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	setDuration := func(p *time.Duration, v time.Duration) {
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
	setInt(&c.MaxBody, 1<<20)
	setInt(&c.MaxHeader, 16<<10)
	setDuration(&c.ReadTimeout, 15*time.Second)
	setDuration(&c.WriteTimeout, 30*time.Second)
	setDuration(&c.IdleTimeout, 2*time.Minute)
	setDuration(&c.LingerTimeout, 2*time.Second)
	setDuration(&c.KeepAlive, time.Minute)
	setDuration(&c.Sweep, 500*time.Millisecond)
	setInt(&c.MinRate, 8<<10)
	limit := openFileLimit()
	setInt(&c.MaxConns, limit-max(64, limit/16))
	setInt(&c.MaxActive, 8192)
	setInt(&c.MaxSlow, 1024)
	setInt(&c.MaxHandshakes, 4096)
	setInt(&c.MaxBodies, 512<<20)
	setInt(&c.MaxStreams, 64)
	setInt(&c.MaxPending, 64<<20)
	setInt(&c.MaxPendingPerCaller, c.MaxPending/8)
	setInt(&c.MaxPendingPerOrganization, c.MaxPending/2)
	setInt(&c.MaxAnswers, 256<<20)
	setInt(&c.MaxAnswersPerCaller, c.MaxAnswers/8)
	setInt(&c.MaxAnswersPerOrganization, c.MaxAnswers/2)
}

// Limits that are not configurable.
const (
	maxLinger      = 256 << 10            // bytes discarded after a refusal
	maxRefusedOpen = 64                   // connections above MaxConns that stay open just long enough to get a 503
	maxReadAhead   = 64 << 10             // bytes that a pooled buffer may have grown to
	drainInterval  = 2 * time.Millisecond // interval of the checks during a shutdown
	firstReadAhead = 2 << 10              // initial bytes of a request's buffer: most requests fit
)

// Server serves listeners. Create one with New. Its exported methods are safe for concurrent use.
type Server struct {
	cfg       Config
	buffering *fasthttp.Server
	streaming *fasthttp.Server // for requests with streamed bodies
	began     time.Time
	date      atomic.Pointer[string] // of this second, in HTTP's format
	coarseNow atomic.Int64           // the clock a tenth of a second ago at most, or more on an overloaded machine
	lastExtra atomic.Pointer[[]byte] // the last result of extraLines; most handlers set the same lines

	mu               sync.Mutex
	listeners        map[io.Closer]struct{}
	blocking         map[*goroutineConn]struct{}
	perIP            map[netip.Addr]int
	closeAfterAnswer atomic.Bool
	handoff          atomic.Pointer[Handoff] // where a shutdown sends connections at rest
	accepting        atomic.Int64            // running calls of Serve
	// by the server's clock: until then a shutdown waits for the first request of new connections
	graceUntil atomic.Int64
	draining   atomic.Bool
	stop       chan struct{} // closed when the background work may end
	stopped    sync.Once

	http2 *http2Server

	handshakeSlots chan struct{} // has one value for each handshake that computes

	evented
	counters
	answerMemory answerMemory
	shares       Shares
	unsent       callerBytes
}

// SetSessionTicketKeys sets the keys of TLS session tickets: the first one encrypts new tickets, all decrypt. Without
// TLS it does nothing. It may be called while the server runs; until the first call crypto/tls makes its own keys.
func (s *Server) SetSessionTicketKeys(keys [][32]byte) {
	if s.cfg.TLS != nil {
		s.cfg.TLS.SetSessionTicketKeys(keys)
		s.http2.plain.SetSessionTicketKeys(keys)
	}
}

// New returns a server that does not listen yet. Shutdown frees its resources.
func New(cfg Config) *Server {
	cfg.setDefaults()
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

		handshakeSlots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0))),
	}
	s.http2 = s.newHTTP2()
	s.shares = newShares(&cfg)
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
		MaxRequestBodySize:           math.MaxInt, // headComplete and chunkReader limit bodies
		Concurrency:                  math.MaxInt32,
		DisablePreParseMultipartForm: true,
		StreamRequestBody:            streams,
		ReduceMemoryUsage:            true,
		Logger:                       discardLog{},
	}
}

// Config returns the configuration, defaults included.
func (s *Server) Config() Config { return s.cfg }

// WithDefaults returns c with the defaults that a server would use.
func (c Config) WithDefaults() Config {
	c.setDefaults()
	return c
}

// discardLog drops the log lines of fasthttp: Stats counts the same events.
type discardLog struct{}

func (discardLog) Printf(string, ...any) {}

// Serve accepts connections until the listener fails, or until Shutdown closes it; then it returns nil. It may be
// called for several listeners concurrently, and closes them.
func (s *Server) Serve(ln net.Listener) error {
	defer s.trackListener(ln)()
	// Counted, so that a shutdown does not overlook a connection that was just accepted.
	s.accepting.Add(1)
	defer s.accepting.Add(-1)
	var err error
	if tcp, ok := ln.(*net.TCPListener); ok && canEvent {
		err = s.acceptEvented(tcp)
	} else {
		err = s.acceptBlocking(ln)
	}
	if s.draining.Load() {
		return nil
	}
	return fmt.Errorf("accept connections: %w", err)
}

// trackListener makes Shutdown close ln. The returned function closes ln earlier.
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

// acceptPause waits after a temporary error (too many files, an aborted connection), longer each time. It reports
// false if the error is final or the server drains.
func (s *Server) acceptPause(err error, pause *time.Duration) bool {
	if s.draining.Load() || errors.Is(err, net.ErrClosed) || !isTemporary(err) {
		return false
	}
	if *pause == 0 {
		s.cfg.Log.Error("cannot accept connections, retrying", "err", err)
	}
	*pause = min(max(2**pause, 5*time.Millisecond), time.Second)
	select {
	case <-time.After(*pause):
		return true
	case <-s.stop:
		return false
	}
}

// firstRequestGrace is how long a shutdown after PrepareShutdown waits for the first request of a new connection.
const firstRequestGrace = 500 * time.Millisecond

// PrepareShutdown prepares a Shutdown that clients do not notice. With a handoff, Shutdown sends connections at
// rest to the successor, with the bytes already read of their next requests.
//
// Some connections cannot be handed off: those with TLS, those without epoll, and all without a handoff. From now
// on every answer on them ends the connection, while new connections are still accepted. After a pause, the
// remaining idle ones are unused. So Shutdown, which must close them, rarely closes one while a request is in
// transit. pause reports whether there may be such connections.
func (s *Server) PrepareShutdown(p *Handoff) (pause bool) {
	s.handoff.Store(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil || s.cfg.TLS != nil || !canEvent || len(s.blocking) > 0 {
		s.closeAfterAnswer.Store(true)
	}
	s.announceShutdown()
	return s.closeAfterAnswer.Load()
}

// closesAfterAnswer reports whether an answer ends its connection.
func (s *Server) closesAfterAnswer(l connection) bool {
	if !s.closeAfterAnswer.Load() && !s.draining.Load() {
		return false
	}
	_, evented := any(l).(*eventConn) // never true where there is no epoll
	return !evented || s.cfg.TLS != nil || !s.handoff.Load().open()
}

// Shutdown closes the listeners, lets the owner answer parked requests (OnDrain), closes idle connections,
// and waits for requests and answers in flight. When ctx ends first, the remaining connections are aborted and
// the error of ctx is returned. In both cases every gone function that was due has been called or is being
// called.
//
// After PrepareShutdown with a handoff it does not wait for clients that are slow to read their answers: they
// need no other part of the process. FinishAnswers waits for them.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.cfg.AnswersLatePolls { // the successor asks the owner again
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
		s.announceShutdown()
		if s.cfg.OnDrain != nil {
			s.cfg.OnDrain()
		} else {
			s.dropParked()
		}
	}
	if p := s.handoff.Load(); p != nil {
		defer p.Close()
	}
	if err := s.wait(ctx, func() bool { return s.handoff.Load() != nil && s.onlyUnsentAnswers() }); err != nil ||
		s.open.Load() == 0 {
		return s.endShutdown(err)
	}
	return nil
}

// FinishAnswers waits, after Shutdown, for clients that are still reading their answers. When ctx ends first they
// are aborted.
func (s *Server) FinishAnswers(ctx context.Context) error {
	return s.endShutdown(s.wait(ctx, func() bool { return false }))
}

// wait waits until no connection is open, or until done reports true.
func (s *Server) wait(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for {
		s.handOffIdle()
		s.closeIdle()
		if s.accepting.Load() == 0 && (s.open.Load() == 0 || done()) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endShutdown aborts the connections that a failed wait has left, and stops the background work.
func (s *Server) endShutdown(err error) error {
	if err != nil {
		s.dropParked()
		s.abortAll()
		for end := time.Now().Add(time.Second); s.open.Load() > 0 && time.Now().Before(end); {
			time.Sleep(drainInterval) // handlers that still run keep their connections; the process is about to exit
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

// closeIdle, dropParked and abortAll act on all connections as their names say.
func (s *Server) closeIdle() { s.closeIdleEvented(); s.eachBlocking((*goroutineConn).closeIdle) }
func (s *Server) dropParked() {
	s.dropParkedEvented()
	s.eachBlocking((*goroutineConn).dropParked)
	s.eachHTTP2((*http2Conn).dropParked)
}
func (s *Server) abortAll() {
	s.abortEvented()
	s.eachBlocking((*goroutineConn).abort)
	s.eachHTTP2(func(h *http2Conn) { h.socket.Close() })
}

// notifyGone calls the gone functions in a goroutine of its own: they belong to the owner, and the caller may
// hold locks.
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

// now returns the server's clock: milliseconds since the server began, never 0.
func (s *Server) now() int64 { return int64(time.Since(s.began)/time.Millisecond) + 1 }

// allowedMillis returns the time in milliseconds in which a client must move n bytes, given the base time for the
// first.
func (s *Server) allowedMillis(base time.Duration, n int64) int64 {
	return int64(base/time.Millisecond) + n*1000/int64(s.cfg.MinRate)
}

// bodyDeadline returns the time, on the clock of now, by which more of a request's body must arrive. On average a
// body must keep up MinRate. But a client that sent much at once must not gain hours of silence by that, because
// it occupies a connection and possibly a file.
func (s *Server) bodyDeadline(r *request) int64 {
	return min(r.startedAt+s.allowedMillis(s.cfg.ReadTimeout, r.bodyReceived),
		s.now()+s.allowedMillis(maxBodyPause*s.cfg.ReadTimeout, 0))
}

// maxBodyPause is the longest pause within a body, in ReadTimeouts.
const maxBodyPause = 2

// sendDeadline returns the time, on the clock of now, by which the client must take more of an answer. On average it
// must keep up MinRate since it first paused. But a client that took much at once must not gain hours of silence by
// that: the rest of the answer occupies memory.
func (s *Server) sendDeadline(blockedSince, sent int64) int64 {
	return min(blockedSince+s.allowedMillis(s.cfg.WriteTimeout, sent),
		s.now()+s.allowedMillis(maxSendPause*s.cfg.WriteTimeout, 0))
}

// maxSendPause is the longest pause of a client that receives an answer, in WriteTimeouts.
const maxSendPause = 2

// dateInterval is the largest error of the Date header. Updating it is nearly all that an idle server does.
const dateInterval = 250 * time.Millisecond

// sweep enforces the deadlines of all evented connections, and updates the date and the coarse clock.
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

// countsNetwork reports whether the connections of an address are limited by MaxConnsPerIP.
func (s *Server) countsNetwork(ip netip.Addr) bool {
	return s.cfg.MaxConnsPerIP > 0 && ip.IsValid() && (s.cfg.Unlimited == nil || !s.cfg.Unlimited(ip.Unmap()))
}

// admitConn counts a new connection, or returns why it is refused.
func (s *Server) admitConn(ip netip.Addr) *refusal {
	if n := s.open.Add(1); n > int64(s.cfg.MaxConns) {
		return refuseConns
	}
	if !s.countsNetwork(ip) {
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

// releaseConn undoes admitConn. admitted says whether the connection was admitted.
func (s *Server) releaseConn(ip netip.Addr, admitted bool) {
	s.open.Add(-1)
	if !admitted || !s.countsNetwork(ip) {
		return
	}
	ip = ClientNetwork(ip)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.perIP[ip]--; s.perIP[ip] <= 0 {
		delete(s.perIP, ip)
	}
}

// ClientNetwork returns the network by which clients are counted: an IPv4 address, or the /64 of an IPv6 address,
// which is the least that one customer gets.
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

// BeginWait is called by a handler that begins to wait for another process; it calls end afterwards. In between its
// request does not count as active, because it uses no processor: otherwise, ServeBacklog would wait for it. The caller
// limits such requests.
func (s *Server) BeginWait() (end func()) {
	s.active.Add(-1)
	return func() { s.active.Add(1) }
}

// serveRequest passes the complete request to fasthttp, unless that would exceed a limit.
func (s *Server) serveRequest(conn net.Conn, r *request) *refusal {
	active, bodies, streams, long := int64(1), r.head.length, int64(0), int64(0)
	if r.stream || bodies < 0 || bodies > maxHandoffBytes {
		long = 1
	}
	s.longRequests.Add(long)
	if bodies < 0 {
		bodies = r.limit // chunked: it may become as large as the limit
	}
	if r.multipart {
		bodies *= 2 // its parts are copies
	}
	if r.stream {
		bodies, streams = 0, 1
	}
	if ref := s.takeShares(r.organization, active, bodies, streams); ref != nil {
		s.longRequests.Add(-long)
		return ref
	}
	defer s.giveShares(r.organization, active, bodies, streams)
	defer func() {
		s.active.Add(-active)
		s.bodies.Add(-bodies)
		s.streams.Add(-streams)
		s.longRequests.Add(-long)
		s.releaseAnswer(r, r.answerBytes)
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
	s.buffering.ServeConn(conn) // its error is the end of the connection, which the request reports better
	return nil
}

// Shares are the parts of MaxActive, MaxSlow, MaxBodies and MaxStreams that organizations have; see Config.Several.
type Shares struct{ Requests, Slow, Bodies, Uploads *admission.Shares }

// Shares returns the parts of the budgets that organizations have.
func (s *Server) Shares() Shares { return s.shares }

func newShares(c *Config) Shares {
	part := func(max int) *admission.Shares { return admission.NewShares(int64(max), c.Several) }
	return Shares{part(c.MaxActive), part(c.MaxSlow), part(c.MaxBodies), part(c.MaxStreams)}
}

// takeShares counts a request of an organization, or refuses it.
func (s *Server) takeShares(organization string, active, bodies, streams int64) *refusal {
	if streams > 0 && !s.shares.Uploads.Take(organization, streams) {
		return refuseStreams
	}
	if !s.shares.Requests.Take(organization, active) {
		s.shares.Uploads.Give(organization, streams)
		return refuseActive
	}
	if bodies > 0 && !s.shares.Bodies.Take(organization, bodies) {
		s.shares.Uploads.Give(organization, streams)
		s.shares.Requests.Give(organization, active)
		return refuseBodies
	}
	return nil
}

func (s *Server) giveShares(organization string, active, bodies, streams int64) {
	s.shares.Requests.Give(organization, active)
	s.shares.Bodies.Give(organization, bodies)
	s.shares.Uploads.Give(organization, streams)
}

// finishStreamedBody makes sure that the unread rest of a streamed body is not taken for the next request.
func (s *Server) finishStreamedBody(ctx *fasthttp.RequestCtx, r *request) {
	var fault *refusal
	if errors.As(r.fault, &fault) { // an error of the client within the body; the handler saw only its end
		s.refused[fault.reason].Add(1)
		r.conn.send(s.appendRefusal(nil, fault))
		r.discard = true
	}
	body := ctx.RequestBodyStream()
	if body == nil {
		return
	}
	if !r.unread() { // fasthttp has all of it in its buffer, so this does not wait
		if _, err := io.Copy(io.Discard, body); err == nil {
			return
		}
	}
	ctx.SetConnectionClose()
}

// handle is the handler of fasthttp. The request is complete, except for a streamed body.
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
			s.LogPanic(ctx, x)
			if r.parked != nil && !r.conn.abandon(r.parked) {
				return // it was answered, or its client is gone
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

// LogPanic logs and counts the panic of a handler. A handler that recovers from a panic to write an answer of its own
// calls it from the deferred function, so that the log has the stack.
func (s *Server) LogPanic(ctx *fasthttp.RequestCtx, x any) {
	s.cfg.Log.Error("BUG: handler panicked", "panic", fmt.Sprint(x), "method", string(ctx.Method()),
		"path", string(ctx.Path()), "stack", string(debug.Stack()))
	s.panics.Add(1)
}

// handleError answers errors before the handler: refused bodies, slow senders, and connections that broke.
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
	r.conn.send(s.appendRefusal(nil, ref)) // closing the connection reports the same error
	r.discard = true                       // drop the answer of fasthttp
}

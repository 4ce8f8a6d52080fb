// Package httpd serves the protocol over HTTP: routes, login, decoding, answers, long polls. It holds no state of the
// organizations: it knows who you are; the realm knows what you may.
package httpd

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/httpd/park"
)

// Options of a server.
type Options struct {
	House  wire.House
	Tools  *wire.Tools
	Realms Realms
	Log    *slog.Logger
	Park   park.Config // Handler is set here
	Limits Limits
	// Pictures finds uploaded files and avatars.
	Pictures Pictures
	// Extra routes outside the protocol: files, metrics, pages.
	Extra func(r *router.Router)
}

// Realms finds the organization behind a Host header.
type Realms interface {
	// ByHost is 0 when the host names no organization.
	ByHost(host string) (realm.ID, wire.Site)
}

// Server is the protocol over HTTP.
type Server struct {
	o      Options
	router *router.Router
	park   *park.Server

	users, visitors, logins *limiter // nil: off
	readdress               []*limiter
	gallery                 *gallery
	heavy                   chan struct{}
	heavyWaiting            atomic.Int64
	heavyRefused            atomic.Int64
}

// route is all endpoints of one shape of path.
type route struct {
	shape     string
	endpoints []*wire.Endpoint
	names     [][]string // of each endpoint's path parameters
	headers   [][]string // that each endpoint takes
	allow     string
	methods   []string
	resumable bool
	cors      string // methods a web page may use; "": the usual ones
}

// New returns a server for the protocol's endpoints.
func New(o Options) *Server {
	s := &Server{o: o, router: router.New(), heavy: make(chan struct{}, MaxHeavy), gallery: newGallery()}
	if s.o.Log == nil {
		s.o.Log = slog.Default()
	}
	s.router.HandleMethodNotAllowed, s.router.HandleOPTIONS = false, false
	s.router.RedirectTrailingSlash, s.router.RedirectFixedPath = false, false
	if n := o.Limits.User; n > 0 {
		s.users = newLimiter(n, window)
		s.readdress = []*limiter{newLimiter(addressesHourly, time.Hour), newLimiter(addressesDaily, 24*time.Hour)}
	}
	if n := o.Limits.Visitor; n > 0 {
		s.visitors = newLimiter(n, window)
	}
	if n := o.Limits.Login; n > 0 {
		s.logins = newLimiter(n, loginWindow)
	}
	for _, r := range routes(o.Tools.Dev) {
		for _, prefix := range []string{"/api/v1", "/json"} {
			s.router.ANY(prefix+r.shape, func(ctx *fasthttp.RequestCtx) {
				s.serve(ctx, r)
				if r.resumable {
					set(ctx, wire.TusHeaders)
				}
				if r.cors != "" {
					ctx.Response.Header.Set(corsMethods, r.cors)
				}
			})
		}
	}
	// For whoever watches the process: it takes requests. It asks no realm, so a busy one does not look dead.
	s.router.ANY("/health", func(ctx *fasthttp.RequestCtx) {
		ctx.Response.SkipBody = ctx.IsHead()
		s.write(ctx, fasthttp.StatusOK, []byte(`{"result":"success","msg":""}`+"\n"))
	})
	// What the server takes and answers, for programs that read descriptions; it tells nothing of any organization.
	s.router.GET("/api/openapi.json", func(ctx *fasthttp.RequestCtx) { s.write(ctx, fasthttp.StatusOK, description()) })
	s.router.ANY(emojiPath, s.serveEmoji)
	s.files()
	s.servePages()
	if o.Extra != nil {
		o.Extra(s.router)
	}
	cfg := o.Park
	cfg.Handler, cfg.Streams = s.Handle, streams
	cfg.NewQuick, cfg.QuickTargets = func() park.Quick { return &quick{s: s} }, quickTargets
	cfg.Log = s.o.Log
	cfg.ParkedHeader = []byte(strings.Join(alwaysHeaders(usualMethods), "\r\n") + "\r\n")
	cfg.WaitedHeader = []byte(strings.Join(alwaysHeaders(eventMethods), "\r\n") + "\r\n") // only events are waited for
	s.park = park.New(cfg)
	return s
}

// routes puts the endpoints whose paths have the same shape together. dev: those for development are among them.
func routes(dev bool) (all []*route) {
	shapes := map[string]*route{}
	for _, e := range wire.Endpoints() {
		if e.Dev && !dev {
			continue
		}
		shape, names := shapeOf(e.Path)
		r := shapes[shape]
		if r == nil {
			r = &route{shape: shape}
			shapes[shape] = r
			all = append(all, r)
		}
		r.endpoints, r.names, r.headers = append(r.endpoints, &e), append(r.names, names), append(r.headers, headersOf(&e))
		r.resumable = r.resumable || e.Resumable()
		if !slices.Contains(r.methods, e.Method) {
			r.methods = append(r.methods, e.Method)
			if e.Method == "GET" && !e.Resumable() {
				r.methods = append(r.methods, "HEAD")
			}
		}
	}
	for _, r := range all {
		sort.Strings(r.methods)
		r.allow = strings.Join(r.methods, ", ")
		if r.shape == "/events" {
			r.cors = eventMethods
		}
	}
	return all
}

// headersOf is the names of an endpoint's parameters that are headers.
func headersOf(e *wire.Endpoint) (names []string) {
	for _, p := range e.Form.Describe() {
		if p.Where == "header" {
			names = append(names, p.Name)
		}
	}
	return names
}

// description is made when somebody first asks.
var description = sync.OnceValue(wire.OpenAPI)

// shapeOf is a path with its parameters numbered, so that endpoints that differ only in their names share a route.
func shapeOf(path string) (shape string, names []string) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			name := strings.Trim(p, "{}")
			names = append(names, strings.TrimSuffix(name, ":*"))
			parts[i] = "{p" + string(rune('0'+len(names))) + strings.TrimPrefix(strings.TrimSuffix(p, "}"), "{"+strings.TrimSuffix(name, ":*")) + "}"
		}
	}
	return strings.Join(parts, "/"), names
}

// Serve accepts connections until the listener closes.
func (s *Server) Serve(l net.Listener) error { return s.park.Serve(l) }

// Admit serves connections that were taken before there was a server.
func (s *Server) Admit(r *park.Room) error { return s.park.Admit(r) }

// Retire prepares a Shutdown that is not noticed; pause says that some answers shall end their connections first.
func (s *Server) Retire(p *park.Passage) (pause bool) { return s.park.Retire(p) }

// Finish waits, after a Shutdown, for clients that still take their answers; the house is not needed for that.
func (s *Server) Finish(ctx context.Context) error { return s.park.Finish(ctx) }

// Shutdown stops accepting and waits for what is in flight.
func (s *Server) Shutdown(ctx context.Context) error { return s.park.Shutdown(ctx) }

// Stats are the connection layer's counters.
func (s *Server) Stats() park.Stats { return s.park.Stats() }

// Requests with bodies above heavyBody bytes are handled MaxHeavy at a time, MaxHeavyWaiting others wait with their bodies,
// and more are refused: a list of numbers in JSON takes some fifty times its size while it is decoded. What waits is a
// quarter of the bodies there may be in memory, and seconds of work.
const (
	heavyBody       = 64 << 10
	MaxHeavy        = 4
	MaxHeavyWaiting = 256
)

// Heavy is how many of them are being handled.
func (s *Server) Heavy() int64 { return int64(len(s.heavy)) }

// HeavyWaiting is how many of them wait, and how many were refused so far.
func (s *Server) HeavyWaiting() (waiting, refused int64) {
	return s.heavyWaiting.Load(), s.heavyRefused.Load()
}

// lift waits until one more heavy request may be handled; false: too many wait already.
func (s *Server) lift() bool {
	select {
	case s.heavy <- struct{}{}:
		return true
	default:
	}
	defer s.heavyWaiting.Add(-1)
	if s.heavyWaiting.Add(1) > MaxHeavyWaiting {
		s.heavyRefused.Add(1)
		return false
	}
	s.heavy <- struct{}{}
	return true
}

// Bounds is the connection layer's configuration as it is in force.
func (s *Server) Bounds() park.Config { return s.park.Config() }

// The methods that web pages may use, and those of events (protocol).
const (
	corsMethods  = "Access-Control-Allow-Methods"
	usualMethods = "GET, POST, DELETE, PUT, PATCH, HEAD"
	eventMethods = "OPTIONS, GET, DELETE"
)

// alwaysHeaders are on every answer: no caching, and any web page may call.
func alwaysHeaders(methods string) []string {
	return []string{
		"Cache-Control: max-age=0, no-cache, no-store, must-revalidate, private",
		"Vary: Accept-Language", "Content-Language: en",
		"Access-Control-Allow-Origin: *", "Access-Control-Allow-Headers: Authorization", corsMethods + ": " + methods,
	}
}

// Handle is every request's way in.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Request.URI().PathOriginal())
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	h, _ := s.router.Lookup(string(ctx.Method()), path, ctx)
	if h == nil {
		s.fail(ctx, 404, "Not found")
		return
	}
	h(ctx)
}

func (s *Server) fail(ctx *fasthttp.RequestCtx, status int, msg string) {
	s.write(ctx, status, []byte(`{"result":"error","msg":"`+msg+`","code":"BAD_REQUEST"}`+"\n"))
}

// compressFrom is the smallest body worth compressing, in bytes: below it a packet is a packet.
const compressFrom = 1400

func (s *Server) write(ctx *fasthttp.RequestCtx, status int, body []byte) {
	always(ctx)
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	if len(body) >= compressFrom && ctx.Request.Header.HasAcceptEncoding("gzip") {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
		ctx.Response.SetBodyRaw(fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestSpeed))
		return
	}
	ctx.Response.SetBodyRaw(body)
}

// writePieces answers with a large body whose pieces are shared with other answers.
func (s *Server) writePieces(ctx *fasthttp.RequestCtx, p wire.Pieces) {
	always(ctx)
	ctx.SetContentType("application/json")
	body := gatherings.Get().(*gathered)
	if p.Len() >= compressFrom && ctx.Request.Header.HasAcceptEncoding("gzip") {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
		body.parts = packers.gzipped(p, body.parts)
	} else {
		p.Each(func(piece []byte) { body.parts = append(body.parts, piece) })
	}
	size := 0
	for _, b := range body.parts {
		size += len(b)
	}
	ctx.SetBodyStream(body, size)
}

func always(ctx *fasthttp.RequestCtx) { set(ctx, headers) }

func set(ctx *fasthttp.RequestCtx, headers [][2]string) {
	for _, h := range headers {
		ctx.Response.Header.Set(h[0], h[1])
	}
}

var headers = func() (out [][2]string) {
	for _, h := range alwaysHeaders(usualMethods) {
		k, v, _ := strings.Cut(h, ": ")
		out = append(out, [2]string{k, v})
	}
	return out
}()

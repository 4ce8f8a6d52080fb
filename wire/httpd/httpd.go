package httpd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/wire"
	"parley/wire/httpd/park"
	"parley/wire/mcp"
	"parley/wire/pictures"
	"parley/wire/signon"
	"parley/wire/web"
	"parley/wire/webapp"
)

// Options configures New.
type Options struct {
	Server wire.Server
	Tools  *wire.Tools
	Realms Realms
	Log    *slog.Logger
	Park   park.Config // New sets its Handler
	Limits Limits
	Now    func() time.Time // nil: the system's clock
	// Files opens uploaded files and pictures.
	Files StoredFiles
	// Several reports whether the server has several organizations, which share budgets; nil: it has one. See
	// admission.Shares.
	Several func() bool
	// WebApp is the official web app, which is the start page of every organization; nil: the server has its own.
	WebApp *webapp.Release
	// DiskState returns "", or why a server with too little space on the disk stores less than usual; nil: unknown.
	DiskState func() string
	// FilesState returns "", or why uploaded files cannot be stored and read now; nil: they are on this machine.
	FilesState func() string
	// ClusterState returns "", or why this node of a cluster cannot serve its clients; nil: there is no other node.
	ClusterState func() string
	// DamagedTexts returns how many message texts could not be read; nil: unknown.
	DamagedTexts func() int64
	// ServerStatus returns the state for the page about the server; nil: there is no such page.
	ServerStatus func() web.ServerStatus
	// SignOn are the login providers; nil: there are none.
	SignOn *signon.Providers
	// Pictures fetches pictures of other sites; nil, or off: clients load them there.
	Pictures *pictures.Proxy
	// OAuthRegistration allows apps to register as OAuth clients; see package oauth.
	OAuthRegistration bool
	// Cluster gives access to the other nodes; nil: this server is the only one.
	Cluster Cluster
	// Sleeping loads organizations that are not in memory before their requests are handled; nil: all are in memory.
	Sleeping Sleeping
	// ForwardAll is set on cores: one that does not own an organization forwards all changes to it. While
	// Cluster.HostsQueues returns true it answers polls, and reads that have waited for the facts of the owner.
	ForwardAll bool
	// Extra adds routes outside the protocol: files, metrics, pages.
	Extra func(r *router.Router)
}

// Sleeping loads organizations that are not in memory. Requests on a loop do not wait for it: they find no account, and
// take the ordinary path.
type Sleeping interface {
	// Wake returns when an organization is in memory, or does not exist. The error is a refusal.
	Wake(realm.ID) error
	// WakeByKey does the same for the organization that has an API key with a hash. It reports false if none that was
	// not in memory has it.
	WakeByKey(hash [32]byte) bool
}

// Realms finds the organization of a Host header.
type Realms interface {
	// ByHost returns 0 when the host belongs to no organization.
	ByHost(host string) (realm.ID, wire.Site)
	// IsForeign reports whether pages must not be shown to browsers that use a Host header: the server does not have
	// that name.
	IsForeign(host string) bool
}

// Server serves the protocol over HTTP. Create one with New. Its methods are safe for concurrent use.
type Server struct {
	options Options
	router  *router.Router
	park    *park.Server

	users, visitors, logins *limiter // nil: no limit
	accountLogins           *limiter // failed logins of an account from all client networks; nil: no limit
	scimRequests            *limiter // of one token of SCIM
	drawings                *limiter // of identicons; nil: no limit
	addressChanges          []*limiter
	emailForms              *limiter   // forms that send emails, of a client network; nil: no limit
	formEmails              []*limiter // emails that such forms send to one address
	passwordForms           *limiter   // forms with a new password, of a client network; nil: no limit
	mcp                     *mcp.Server
	loginTokens             loginTokens
	usedFlows               usedFlows
	providerCalls           chan struct{} // has an element for each page that waits for a provider
	providerShares          *admission.Shares
	confirmedPasswords      confirmedPasswords
	webAppLanguage          func(accept string) string // chooses a language of Options.WebApp
	now                     func() time.Time
	hsts                    bool // every answer tells browsers to use TLS for the next half year
	identicons              *identiconCache
	builders                *answerBuilders
	largeBodies             chan struct{}
	largeBodiesWaiting      atomic.Int64
	largeBodiesRefused      atomic.Int64
	largeBodyShares         *admission.Shares // of MaxLargeBodiesWaiting
	forwarding              forwarding
	catchingUp              atomic.Int64 // requests that wait for the newest facts of the owner
	refusedCatchingUp       atomic.Int64 // beyond MaxCatchingUp
	pause                   pause        // used in a cluster only
	pausing                 sync.Mutex   // held during a pause
	draining                context.Context
	drain                   context.CancelFunc
	owner                   *fasthttp.HostClient // for files; nil without other nodes
	endpoints               map[string]*endpointCounts
}

// route holds all endpoints whose paths have the same shape.
type route struct {
	shape       string
	endpoints   []*wire.Endpoint
	pathNames   [][]string // names of each endpoint's path parameters
	headerNames [][]string // request headers that each endpoint reads
	resumable   bool
	head        bool   // HEAD is an endpoint of its own
	web         bool   // below /json, for browser sessions
	corsMethods string // methods for web pages of other origins; "": the default
}

// New returns a server for the endpoints of the protocol. It listens to nothing until Serve.
func New(o Options) *Server {
	s := &Server{options: o, router: router.New(), largeBodies: make(chan struct{}, MaxLargeBodies),
		endpoints: newEndpointCounts(), identicons: newIdenticonCache(o.Several), builders: newAnswerBuilders(),
		largeBodyShares: admission.NewShares(MaxLargeBodiesWaiting, o.Several)}
	s.draining, s.drain = context.WithCancel(context.Background())
	if s.now = o.Now; s.now == nil {
		s.now = time.Now
	}
	s.providerCalls = make(chan struct{}, MaxProviderCalls)
	s.providerShares = admission.NewShares(MaxProviderCalls, o.Several)
	s.loginTokens = loginTokens{make: o.Tools.Token, list: map[string]loginToken{}}
	if s.options.Log == nil {
		s.options.Log = slog.Default()
	}
	if o.Cluster != nil {
		s.owner = newOwnerClient(o.Cluster.DialOwner)
	}
	s.router.HandleMethodNotAllowed, s.router.HandleOPTIONS = false, false
	s.router.RedirectTrailingSlash, s.router.RedirectFixedPath = false, false
	if n := o.Limits.User; n > 0 {
		s.users = newLimiter(n, requestWindow)
		s.addressChanges = []*limiter{newLimiter(AddressChangesPerHour, time.Hour),
			newLimiter(AddressChangesPerDay, 24*time.Hour)}
		s.formEmails = []*limiter{newLimiter(AddressChangesPerHour, time.Hour),
			newLimiter(AddressChangesPerDay, 24*time.Hour)}
	}
	if n := o.Limits.Visitor; n > 0 {
		s.visitors = newLimiter(n, requestWindow)
		s.drawings = newLimiter(MaxDrawingsPerMinute, requestWindow)
		s.emailForms = newLimiter(EmailFormsPerHour, time.Hour)
		s.passwordForms = newLimiter(PasswordFormsPerHour, time.Hour)
	}
	if n := o.Limits.Login; n > 0 {
		s.logins = newLimiter(n, loginWindow)
		s.accountLogins = newLimiter(accountLoginFactor*n, loginWindow)
	}
	for _, forSessions := range []bool{false, true} {
		prefix := apiPrefix
		if forSessions {
			prefix = webPrefix
		}
		for _, r := range routes(o.Tools.Dev, forSessions) {
			serve := func(ctx *fasthttp.RequestCtx) {
				s.serveRoute(ctx, r)
				if r.resumable {
					setHeaders(ctx, wire.TusHeaders)
				}
				if r.corsMethods != "" {
					ctx.Response.Header.Set(allowMethodsHeader, r.corsMethods)
				}
			}
			s.router.ANY(prefix+r.shape, serve)
			if r.shape == compatibilityPath && !forSessions {
				s.router.ANY(compatibilityPath, serve)
			}
		}
	}
	s.router.ANY(healthPath, s.serveHealth)
	// The OpenAPI description is the same for every organization.
	s.router.ANY("/api/openapi.json", s.readOnly(func(ctx *fasthttp.RequestCtx) {
		if s.writeConstant(ctx, description()) {
			ctx.Response.Header.Set("Cache-Control", "no-cache")
		}
	}))
	s.router.ANY(wire.EmojiTablePath, s.readOnly(s.serveEmojiNames))
	s.addMCPRoute()
	s.addSCIMRoute()
	s.addFileRoutes()
	s.addPageRoutes()
	s.addWebAppRoutes()
	if o.Extra != nil {
		o.Extra(s.router)
	}
	cfg := o.Park
	cfg.Handler, cfg.StreamsBody = s.Handle, streamsBody
	if limit := o.Park.BodyLimit; limit != nil {
		cfg.BodyLimit = func(method, target []byte) int { return limit(method, []byte(requestPath(string(target)))) }
		s.options.Park.BodyLimit = cfg.BodyLimit
	}
	cfg.NewFastPath, cfg.FastPathTargets = func() park.FastPath { return &fastPath{server: s} }, fastPathTargets
	cfg.Log = s.options.Log
	cfg.AnswerHeader = []byte(strings.Join(commonHeaderLines(corsMethods), "\r\n") + "\r\n")
	// only event polls are parked for long
	cfg.PollHeader = []byte(strings.Join(commonHeaderLines(eventMethods), "\r\n") + "\r\n")
	cfg.PrivatePrefix = webPrefix + "/"
	cfg.PrivateHeader = []byte(strings.Join(commonHeaderLines("")[:headersWithoutCORS], "\r\n") + "\r\n")
	if s.hsts = cfg.TLS != nil; s.hsts {
		cfg.AnswerHeader = append(cfg.AnswerHeader, hstsHeader+": "+hstsValue+"\r\n"...)
		cfg.PollHeader = append(cfg.PollHeader, hstsHeader+": "+hstsValue+"\r\n"...)
		cfg.PrivateHeader = append(cfg.PrivateHeader, hstsHeader+": "+hstsValue+"\r\n"...)
	}
	cfg.Organization, cfg.Several = s.organizationOfHost, o.Several
	s.park = park.New(cfg)
	return s
}

// serveHealth answers health checks. It asks no realm, so a busy realm does not make the process look dead. A server
// with a full disk, without its files or with damaged texts is degraded. The status stays 200: reads and polls succeed,
// so load balancers must continue to send them. A node that cannot follow its cluster answers 503: it refuses all
// requests, which other nodes may serve.
//
// Programs that balance load also ask with OPTIONS, and decide by the status. So OPTIONS gets the status of GET.
func (s *Server) serveHealth(ctx *fasthttp.RequestCtx) {
	switch {
	case ctx.IsOptions():
		ctx.Response.Header.Set("Allow", strings.Join(fileMethods, ", "))
	case !ctx.IsGet() && !ctx.IsHead():
		s.writeMethodNotAllowed(ctx, fileMethods)
		return
	}
	ctx.Response.SkipBody = ctx.IsHead()
	if s.options.ClusterState != nil {
		if why := s.options.ClusterState(); why != "" {
			ctx.Response.Header.Set("Retry-After", park.BusyRetryAfter)
			const body = `{"result":"error","msg":"This node cannot serve.","health":"unavailable","cluster":%q%s}`
			s.writeJSON(ctx, fasthttp.StatusServiceUnavailable, fmt.Appendf(nil, body+"\n", why, s.diskDetail()))
			return
		}
	}
	details := s.diskDetail()
	if s.options.FilesState != nil {
		if files := s.options.FilesState(); files != "" {
			details += fmt.Sprintf(`,"files":%q`, files)
		}
	}
	if s.options.DamagedTexts != nil {
		if n := s.options.DamagedTexts(); n > 0 {
			details += fmt.Sprintf(`,"damaged_texts":%d`, n)
		}
	}
	if details != "" {
		details = `,"health":"degraded"` + details
	}
	s.writeJSON(ctx, fasthttp.StatusOK, []byte(`{"result":"success","msg":""`+details+"}\n"))
}

// diskDetail returns the field of a health check about the disk, after a comma; "" if the disk has space. A full disk
// is often the reason why a node cannot follow its cluster.
func (s *Server) diskDetail() string {
	if s.options.DiskState == nil {
		return ""
	}
	disk := s.options.DiskState()
	if disk == "" {
		return ""
	}
	return fmt.Sprintf(`,"disk":%q`, disk)
}

const healthPath = "/health"

// compatibilityPath is the path of the endpoint that old clients ask without a prefix, too (protocol).
const compatibilityPath = "/compatibility"

// The prefixes of the protocol's paths. Below webPrefix, browser sessions are accepted.
const (
	apiPrefix = "/api/v1"
	webPrefix = "/json"
)

// takesSessions reports whether a browser session is accepted instead of an API key: below the web app's prefix, and
// for resumable uploads, which the web app sends to the API's prefix (protocol).
func (r *route) takesSessions() bool { return r.web || r.resumable }

// endpointsOf returns the endpoints that are served below one of the prefixes.
func endpointsOf(web bool) []wire.Endpoint {
	all := wire.Endpoints()
	if !web {
		return all
	}
	for _, own := range wire.WebEndpoints() {
		all = slices.DeleteFunc(all, func(e wire.Endpoint) bool { return e.Method == own.Method && e.Path == own.Path })
		all = append(all, own)
	}
	return all
}

// routes groups the endpoints by the shape of their paths, for one of the prefixes. With dev it includes the endpoints
// for development.
func routes(dev, web bool) (all []*route) {
	shapes := map[string]*route{}
	for _, e := range endpointsOf(web) {
		if e.Dev && !dev {
			continue
		}
		shape, names := shapeOf(e.Path)
		r := shapes[shape]
		if r == nil {
			r = &route{shape: shape, web: web}
			shapes[shape] = r
			all = append(all, r)
		}
		r.endpoints, r.pathNames, r.headerNames = append(r.endpoints, &e), append(r.pathNames, names),
			append(r.headerNames, headersOf(&e))
		r.resumable = r.resumable || e.Resumable()
		r.head = r.head || e.Method == "HEAD"
	}
	for _, r := range all {
		if r.shape == "/events" {
			r.corsMethods = eventMethods
		}
	}
	return all
}

// headersOf returns the names of the request headers that are parameters of an endpoint.
func headersOf(e *wire.Endpoint) (names []string) {
	for _, p := range e.Form.Describe() {
		if p.Where == "header" {
			names = append(names, p.Name)
		}
	}
	return names
}

// description returns the OpenAPI description, which is built on first use.
var description = sync.OnceValue(func() constantAnswer { return newConstantAnswer(wire.OpenAPI()) })

// shapeOf numbers the parameters of a path, so that endpoints whose paths differ only in parameter names share a
// route.
func shapeOf(path string) (shape string, names []string) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			name := strings.Trim(p, "{}")
			names = append(names, strings.TrimSuffix(name, ":*"))
			parts[i] = "{p" + string(rune('0'+len(names))) +
				strings.TrimPrefix(strings.TrimSuffix(p, "}"), "{"+strings.TrimSuffix(name, ":*")) + "}"
		}
	}
	return strings.Join(parts, "/"), names
}

// Serve accepts connections until the listener closes.
func (s *Server) Serve(l net.Listener) error { return s.park.Serve(l) }

// ServeBacklog serves connections that were accepted before the server existed.
func (s *Server) ServeBacklog(r *park.Backlog) error { return s.park.ServeBacklog(r) }

// PrepareShutdown prepares a Shutdown that clients do not notice: see park.Server.PrepareShutdown. pause reports
// that some connections end with their next answer, so the caller should wait before Shutdown.
func (s *Server) PrepareShutdown(p *park.Handoff) (pause bool) { return s.park.PrepareShutdown(p) }

// FinishAnswers waits, after Shutdown, for clients that are still reading their answers. The actors may be
// stopped by then.
func (s *Server) FinishAnswers(ctx context.Context) error { return s.park.FinishAnswers(ctx) }

// Shutdown stops accepting connections and waits for requests in flight.
func (s *Server) Shutdown(ctx context.Context) error {
	s.drain()
	return s.park.Shutdown(ctx)
}

// SetSessionTicketKeys sets the keys of TLS session tickets: the first one encrypts new tickets, all decrypt. It may be
// called while the server runs.
func (s *Server) SetSessionTicketKeys(keys [][32]byte) { s.park.SetSessionTicketKeys(keys) }

// Stats returns the counters of the connection layer.
func (s *Server) Stats() park.Stats { return s.park.Stats() }

// Shares returns the shares of the budgets of connections.
func (s *Server) Shares() park.Shares { return s.park.Shares() }

// AnswerBytes returns the memory of all answers that are being built or sent.
func (s *Server) AnswerBytes() int { return s.park.AnswerBytes() }

// Limits of requests with bodies above largeBodyBytes. MaxLargeBodies are handled at a time,
// MaxLargeBodiesWaiting more wait with their bodies, and the rest are refused. The reason: a JSON list of numbers
// takes about fifty times its size while it is decoded. The waiting ones hold a quarter of the bytes that bodies
// may have in memory, and are seconds of work.
const (
	largeBodyBytes        = 64 << 10
	MaxLargeBodies        = 4
	MaxLargeBodiesWaiting = 256
)

// LargeBodies returns the number of requests with large bodies being handled.
func (s *Server) LargeBodies() int64 { return int64(len(s.largeBodies)) }

// LargeBodiesWaiting returns the number of requests with large bodies that wait, and the number refused since the
// start.
func (s *Server) LargeBodiesWaiting() (waiting, refused int64) {
	return s.largeBodiesWaiting.Load(), s.largeBodiesRefused.Load()
}

// acquireLargeBody waits for one of the MaxLargeBodies slots. It reports false if too many requests wait
// already, or the organization has its share of them.
func (s *Server) acquireLargeBody(id realm.ID) bool {
	select {
	case s.largeBodies <- struct{}{}:
		return true
	default:
	}
	organization := organizationName(id)
	if !s.largeBodyShares.Take(organization, 1) {
		s.largeBodiesRefused.Add(1)
		return false
	}
	defer s.largeBodyShares.Give(organization, 1)
	defer s.largeBodiesWaiting.Add(-1)
	if s.largeBodiesWaiting.Add(1) > MaxLargeBodiesWaiting {
		s.largeBodiesRefused.Add(1)
		return false
	}
	s.largeBodies <- struct{}{}
	return true
}

// Bounds returns the configuration of the connection layer, defaults included.
func (s *Server) Bounds() park.Config { return s.park.Config() }

// Methods for web pages of other origins, and those of the events endpoint (protocol).
const (
	allowOriginHeader  = "Access-Control-Allow-Origin"
	allowHeadersHeader = "Access-Control-Allow-Headers"
	allowMethodsHeader = "Access-Control-Allow-Methods"
	corsMethods        = "GET, POST, DELETE, PUT, PATCH, HEAD"
	eventMethods       = "OPTIONS, GET, DELETE"
)

// The header that tells browsers to use TLS from now on, for half a year. It is sent only by a server that speaks TLS
// itself. Other subdomains are left to their owners.
const (
	hstsHeader = "Strict-Transport-Security"
	hstsValue  = "max-age=15768000"
)

// commonHeaderLines returns the header lines of every answer: no caching, and web pages of any origin may call. The
// first headersWithoutCORS lines are those of answers to requests with cookies, which only pages of this host may send.
func commonHeaderLines(methods string) []string {
	return []string{
		"Cache-Control: max-age=0, no-cache, no-store, must-revalidate, private",
		"Vary: Accept-Language", "Content-Language: en",
		allowOriginHeader + ": *", allowHeadersHeader + ": Authorization", allowMethodsHeader + ": " + methods,
	}
}

const headersWithoutCORS = 3

// publicPaths are the beginnings of paths that pages of every origin may call. Nothing below them looks at cookies,
// except resumable uploads.
var publicPaths = []string{"/api/", "/static/", "/user_avatars/", "/health"}

// forbidOtherOrigins removes the permission for pages of other origins from an answer that may depend on a cookie.
// Resumable uploads accept both keys and cookies: pages of other origins may use them with keys.
func forbidOtherOrigins(ctx *fasthttp.RequestCtx, path string) {
	public := slices.ContainsFunc(publicPaths, func(p string) bool { return strings.HasPrefix(path, p) })
	if public && !(strings.HasPrefix(path, resumablePath) && len(ctx.Request.Header.Peek("Cookie")) > 0) {
		return
	}
	for _, name := range []string{allowOriginHeader, allowHeadersHeader, allowMethodsHeader, exposeHeadersHeader} {
		ctx.Response.Header.Del(name)
	}
}

const (
	resumablePath       = apiPrefix + "/tus"
	exposeHeadersHeader = "Access-Control-Expose-Headers"
)

// Handle routes one request. Doubled slashes and a slash at the end of the path do not matter.
func (s *Server) Handle(ctx *fasthttp.RequestCtx) {
	path := requestPath(string(ctx.Request.URI().PathOriginal()))
	h, _ := s.router.Lookup(string(ctx.Method()), path, ctx)
	switch {
	case string(ctx.Request.Header.RequestURI()) == "*":
		h = serveAnyPath
	case h == nil: // the router does not look for methods that it does not know, such as PROPFIND
		h, _ = s.router.Lookup(router.MethodWild, path, ctx)
	}
	if s.options.ForwardAll && path != healthPath {
		s.pause.enter()
		if isPoll(ctx) { // it may wait at the owner for long
			s.pause.leave(1)
		} else {
			defer s.pause.leave(1)
		}
	}
	switch {
	case h == nil:
		s.writeNotFound(ctx)
	case path == healthPath || s.prepare(ctx):
		h(ctx)
	}
	s.finishHeaders(ctx, path)
}

// finishHeaders sets the headers that depend on the path and the server, not on the endpoint.
func (s *Server) finishHeaders(ctx *fasthttp.RequestCtx, path string) {
	forbidOtherOrigins(ctx, path)
	if choosesEncoding(ctx) || strings.HasPrefix(path, webapp.StaticPath) {
		addVary(ctx, fasthttp.HeaderAcceptEncoding)
	}
	if s.hsts {
		ctx.Response.Header.Set(hstsHeader, hstsValue)
	}
}

// serveAnyPath answers OPTIONS for the whole server, with every method that some path has (RFC 9110, 9.3.7).
func serveAnyPath(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Allow", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
	setCommonHeaders(ctx)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

func (s *Server) writeError(ctx *fasthttp.RequestCtx, status int, msg string) {
	s.writeJSON(ctx, status, []byte(`{"result":"error","msg":"`+msg+`","code":"BAD_REQUEST"}`+"\n"))
}

// minCompressBytes is the smallest body worth compressing: a smaller one fits one packet anyway.
const minCompressBytes = 1400

func (s *Server) writeJSON(ctx *fasthttp.RequestCtx, status int, body []byte) {
	setCommonHeaders(ctx)
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	if len(body) >= minCompressBytes && acceptsGzip(ctx) {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
		ctx.Response.SetBodyRaw(fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestSpeed))
		return
	}
	ctx.Response.SetBodyRaw(body)
}

// writeParts answers with a large body whose pieces are shared with other answers.
func (s *Server) writeParts(ctx *fasthttp.RequestCtx, p wire.Fragments) {
	setCommonHeaders(ctx)
	ctx.SetContentType("application/json")
	s.reserveParts(ctx, p)
	body := partsBodies.Get().(*partsBody)
	if p.Len() >= minCompressBytes && acceptsGzip(ctx) {
		ctx.Response.Header.Set("Content-Encoding", "gzip")
		body.parts = sharedPieces.gzipped(p, body.parts)
	} else {
		p.Each(func(piece []byte) { body.parts = append(body.parts, piece) })
	}
	size := 0
	for _, b := range body.parts {
		size += len(b)
	}
	ctx.SetBodyStream(body, size)
}

func setCommonHeaders(ctx *fasthttp.RequestCtx) { setHeaders(ctx, commonHeaders) }

func setHeaders(ctx *fasthttp.RequestCtx, headers [][2]string) {
	for _, h := range headers {
		ctx.Response.Header.Set(h[0], h[1])
	}
}

var commonHeaders = func() (out [][2]string) {
	for _, h := range commonHeaderLines(corsMethods) {
		k, v, _ := strings.Cut(h, ": ")
		out = append(out, [2]string{k, v})
	}
	return out
}()

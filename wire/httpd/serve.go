package httpd

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"parley/wire"
	"parley/wire/form"
)

// serveRoute handles one request of a route. The order of the steps is part of the protocol: parameters,
// endpoint, authentication, rate limit, body.
func (s *Server) serveRoute(ctx *fasthttp.RequestCtx, r *route) {
	if ctx.IsOptions() {
		allowed := r.allowed(ctx)
		if len(allowed) == 0 {
			s.writeNotFound(ctx)
			return
		}
		ctx.Response.Header.Set("Allow", strings.Join(allowed, ", "))
		if !r.resumable {
			setCommonHeaders(ctx)
			ctx.SetStatusCode(204)
			return
		}
	}
	params := &form.Values{}
	if err := readParams(ctx, params); err != nil {
		status, body := wire.Failure(err)
		s.writeJSON(ctx, status, body)
		return
	}
	e := r.pick(ctx, r.method(ctx, params), params)
	if e == nil {
		s.writeNoEndpoint(ctx, r)
		return
	}
	c := s.call(ctx, params)
	if !e.Open {
		if err := s.authenticateFollowing(ctx, c, e, r); err != nil {
			s.writeUnauthenticated(ctx, e, err)
			return
		}
	}
	if e.RateLimited() {
		if err := s.limitCall(ctx, c); err != nil {
			s.writeFailure(ctx, e, err)
			return
		}
	}
	if s.hasOtherOwner(c) {
		if !s.runsHere(c, e) {
			if !s.waitToRead(ctx, c, e) {
				s.forward(ctx, c, e)
				return
			}
			if c = s.callAgain(ctx, c, e, r); c == nil {
				return
			}
		}
		c.OpenQueue = s.openQueue(ctx, c)
	}
	if s.prepareForwarded(ctx, c, e) {
		return
	}
	if err := attachBody(ctx, c, e); err != nil {
		s.writeFailure(ctx, e, err)
		return
	}
	if !ctx.Request.IsBodyStream() && len(ctx.PostBody()) > largeBodyBytes {
		if !s.acquireLargeBody(c.Realm) {
			s.writeError(ctx, fasthttp.StatusServiceUnavailable, "Server is busy")
			return
		}
		defer func() { <-s.largeBodies }()
	}
	s.runEndpoint(ctx, c, e)
}

// method returns the method of a request. Beside the request line, the protocol allows a form field "method" and,
// for resumable uploads, a header.
func (r *route) method(ctx *fasthttp.RequestCtx, params *form.Values) string {
	method := string(ctx.Method())
	if method == "POST" {
		if m, ok := params.Get("method"); ok && m != "" {
			method = strings.ToUpper(m)
			params.Consume("method")
		}
	}
	if m := ctx.Request.Header.Peek("X-HTTP-Method-Override"); r.resumable && method == "POST" && len(m) > 0 {
		method = string(m)
	}
	ctx.Response.SkipBody = ctx.IsHead() // a client that has sent POST reads a body, whatever the field says
	if method == "HEAD" && !r.head {
		return "GET"
	}
	return method
}

// writeNoEndpoint answers 404 if no endpoint of the route fits the path, else 405.
func (s *Server) writeNoEndpoint(ctx *fasthttp.RequestCtx, r *route) {
	allowed := r.allowed(ctx)
	if len(allowed) == 0 {
		s.writeNotFound(ctx)
		return
	}
	s.writeMethodNotAllowed(ctx, allowed)
}

// writeMethodNotAllowed answers 405 with the methods of the path.
func (s *Server) writeMethodNotAllowed(ctx *fasthttp.RequestCtx, methods []string) {
	ctx.Response.Header.Set("Allow", strings.Join(methods, ", "))
	s.writeJSON(ctx, 405,
		[]byte(`{"result":"error","msg":"Method Not Allowed","code":"BAD_REQUEST","allowed_methods":["`+
			strings.Join(methods, `","`)+`"]}`+"\n"))
}

// call returns the call of a request, without account and body.
func (s *Server) call(ctx *fasthttp.RequestCtx, params *form.Values) *wire.Call {
	c := &wire.Call{Server: s.options.Server, Tools: s.options.Tools, Params: params, Agent: string(ctx.UserAgent()),
		AuthVersion: s.options.Server.AuthVersion(), Address: s.remote(ctx)}
	c.Realm, c.Site = s.options.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	c.Caller.Client, c.Caller.Address = clientName(params, c.Agent), c.Address
	c.CountPasswordAttempt = func(account string) error { return s.countLogin(account, s.remote(ctx)) }
	c.ForgetPasswordAttempts = func(account string) { s.forgetLogins(account, s.remote(ctx)) }
	if c.Site.HasDirectory() && s.options.SignOn != nil {
		c.AskDirectories = func(name, password string) (*wire.DirectoryPerson, error) {
			return s.askDirectories(c, name, password)
		}
	}
	c.CountAddressChange = s.countAddressChange
	c.ConfirmPassword = func() { s.confirmedPasswords.add(c, s.now()) }
	c.PasswordConfirmed = func() bool { return s.confirmedPasswords.has(c, s.now()) }
	return c
}

// writeUnauthenticated answers a request whose credentials are missing or wrong, or that needs some. A browser is
// redirected to the login page.
func (s *Server) writeUnauthenticated(ctx *fasthttp.RequestCtx, e *wire.Endpoint, err error) {
	if status, _ := e.Failure(err); status == 401 {
		if fromBrowser(ctx) {
			redirectToLogin(ctx)
			return
		}
		scheme := "Basic"
		if strings.HasPrefix(string(ctx.Path()), "/json/") {
			scheme = "Session"
		}
		ctx.Response.Header.Set("WWW-Authenticate", scheme+` realm="zulip"`)
	}
	s.writeFailure(ctx, e, err)
}

// attachBody gives c access to the body and its files. Of a streamed body it reads the parameters before the
// first file.
func attachBody(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) (err error) {
	c.Header = func(name string) string { return string(ctx.Request.Header.Peek(name)) }
	c.Body = func() []byte { return bytes.Clone(ctx.PostBody()) }
	c.Files = func() ([]wire.File, error) { return multipartFiles(ctx) }
	if e.Resumable() {
		c.Piece = tusPiece(ctx)
	} else if ctx.Request.IsBodyStream() {
		c.Body = func() []byte { return nil }
		c.Files, err = streamedFiles(ctx, c.Params)
	}
	return err
}

// runEndpoint runs the endpoint and writes its answer, unless the request was parked.
func (s *Server) runEndpoint(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) {
	parked, began := false, time.Now()
	defer func() {
		if !parked {
			s.countEndpoint(e.Name(), ctx.Response.StatusCode(), began)
		}
	}()
	c.Park = func(gone func()) wire.Reply {
		parked = true
		return s.parkFor(ctx, c, gone)
	}
	build := answerBuild{server: s, ctx: ctx, call: c}
	defer build.end()
	c.ReserveMemory, c.WaitForBuildSlot = build.reserveMemory, build.waitForSlot
	a, err := s.run(ctx, c, e)
	if err == nil && c.Session != nil && e.Method != "GET" {
		s.setWritesCookie(ctx, c)
	}
	if c.NewSecret != "" {
		s.setSessionCookies(ctx, c, c.NewSecret)
	}
	if err == nil && c.Opened != nil {
		b, logIn := headersOfBrowser(ctx, c.Site), *c
		s.findSession(&logIn, &b) // which ends
		s.logIn(ctx, &logIn, *c.Opened)
	}
	if _, waits := a.(wire.Parked); waits || parked {
		parked = true
		return
	}
	if s.answerOwnershipError(ctx, c, e, err) {
		return
	}
	if r := (wire.Redirect{}); errors.As(err, &r) {
		setCommonHeaders(ctx)
		ctx.Response.Header.Set("Location", r.URL)
		ctx.SetStatusCode(302)
		return
	}
	if err != nil && c.Account == nil && !e.Open {
		s.writeUnauthenticated(ctx, e, err)
		return
	}
	if err != nil {
		s.writeFailure(ctx, e, err)
		return
	}
	switch x := a.(type) {
	case wire.RawAnswer:
		s.writeRaw(ctx, x)
	default:
		s.writeSuccess(ctx, c, e, x)
	}
}

// writeFailure answers with the failure of an endpoint, and logs it if it is a server error.
func (s *Server) writeFailure(ctx *fasthttp.RequestCtx, e *wire.Endpoint, err error) {
	setRetryAfter(ctx, err)
	status, body := e.Failure(err)
	if status == 500 {
		s.options.Log.Error("request failed", "method", e.Method, "path", string(ctx.Path()), "err", err)
	}
	s.writeJSON(ctx, status, body)
}

// limitKey returns the key of an account in the limiters: that of the account that is charged, for a bot its owner.
func limitKey(a *wire.Account) string {
	return strconv.Itoa(int(a.Realm)) + "/" + a.Charged.String()
}

// limitCall counts a request against its rate limit: that of the account, or without login that of the client
// network.
func (s *Server) limitCall(ctx *fasthttp.RequestCtx, c *wire.Call) error {
	if forwardedOf(ctx) != nil {
		return nil // the node of the client has counted it
	}
	if c.Account != nil {
		return limitRequest(ctx, s.users, limitKey(c.Account))
	}
	return limitRequest(ctx, s.visitors, s.remote(ctx))
}

// limitUnauthenticated counts a request without valid credentials against the client's network. It returns the
// refusal: either why, or the one of the rate limit.
//
// A request with a valid key is served even if the limit is reached. One program with a wrong key must not lock
// out everyone behind its address, and a key of 32 characters cannot be guessed. Passwords are easier to guess,
// so they are counted for address and account before they are checked.
func (s *Server) limitUnauthenticated(ctx *fasthttp.RequestCtx, refusal error) error {
	if err := limitRequest(ctx, s.visitors, s.remote(ctx)); err != nil {
		return err
	}
	return refusal
}

// pick returns the endpoint of a method whose path parameters fit, or nil: a parameter named "..._id" must be
// digits. It adds path parameters and header parameters to params.
func (r *route) pick(ctx *fasthttp.RequestCtx, method string, params *form.Values) *wire.Endpoint {
	for i, e := range r.endpoints {
		if e.Method != method || !r.fits(ctx, i) {
			continue
		}
		for j, n := range r.pathNames[i] {
			v, _ := ctx.UserValue("p" + string(rune('1'+j))).(string)
			params.Add(form.Path, n, unescape(v))
		}
		for _, n := range r.headerNames[i] {
			if v := ctx.Request.Header.Peek(n); v != nil {
				params.Add(form.Header, n, string(v))
			}
		}
		return e
	}
	return nil
}

// allowed returns the methods of the endpoints that fit the path of a request, sorted; none if the path does not exist.
func (r *route) allowed(ctx *fasthttp.RequestCtx) (methods []string) {
	for i, e := range r.endpoints {
		if !r.fits(ctx, i) {
			continue
		}
		methods = append(methods, e.Method)
		if e.Method == "GET" && !e.Resumable() {
			methods = append(methods, "HEAD")
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}

func (r *route) fits(ctx *fasthttp.RequestCtx, i int) bool {
	for j, n := range r.pathNames[i] {
		if !strings.HasSuffix(n, "_id") {
			continue
		}
		v, _ := ctx.UserValue("p" + string(rune('1'+j))).(string)
		if v == "" || strings.Trim(v, "0123456789") != "" {
			return false
		}
	}
	return true
}

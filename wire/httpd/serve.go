package httpd

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/wire"
	"parley/wire/form"
)

// serve carries a request from its parameters to its answer.
func (s *Server) serve(ctx *fasthttp.RequestCtx, r *route) {
	if ctx.IsOptions() {
		ctx.Response.Header.Set("Allow", r.allow)
		if !r.resumable {
			always(ctx)
			ctx.SetStatusCode(204)
			return
		}
	}
	params := &form.Values{}
	if err := readParams(ctx, params); err != nil {
		status, body := wire.Failure(err)
		s.write(ctx, status, body)
		return
	}
	e := r.pick(ctx, r.method(ctx, params), params)
	if e == nil {
		s.astray(ctx, r)
		return
	}
	c := s.call(ctx, params)
	if !e.Open {
		if err := s.authenticate(ctx, c, e); err != nil {
			s.refuseStranger(ctx, e, s.countStranger(ctx, err))
			return
		}
	}
	if e.Counted() {
		if err := s.count(ctx, c); err != nil {
			s.refuse(ctx, e, err)
			return
		}
	}
	if err := bringBody(ctx, c, e); err != nil {
		s.refuse(ctx, e, err)
		return
	}
	if !ctx.Request.IsBodyStream() && len(ctx.PostBody()) > heavyBody {
		if !s.lift() {
			s.fail(ctx, fasthttp.StatusServiceUnavailable, "Server is busy")
			return
		}
		defer func() { <-s.heavy }()
	}
	s.run(ctx, c, e)
}

// method is what a request asks for, in whichever of the protocol's ways it says so.
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
	if method == "HEAD" {
		ctx.Response.SkipBody = true
		if !r.resumable {
			return "GET"
		}
	}
	return method
}

// astray answers who asks for what the route does not have.
func (s *Server) astray(ctx *fasthttp.RequestCtx, r *route) {
	if !r.pickable(ctx) {
		s.fail(ctx, 404, "Not found")
		return
	}
	s.otherMethod(ctx, r.methods)
}

// otherMethod answers that a path takes these methods only.
func (s *Server) otherMethod(ctx *fasthttp.RequestCtx, methods []string) {
	ctx.Response.Header.Set("Allow", strings.Join(methods, ", "))
	s.write(ctx, 405, []byte(`{"result":"error","msg":"Method Not Allowed","allowed_methods":["`+strings.Join(methods, `","`)+`"]}`+"\n"))
}

// call is a request as endpoints see it, but for who makes it and what it brings.
func (s *Server) call(ctx *fasthttp.RequestCtx, params *form.Values) *wire.Call {
	c := &wire.Call{House: s.o.House, Tools: s.o.Tools, Params: params, Agent: string(ctx.UserAgent())}
	c.Realm, c.Site = s.o.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	c.Caller.Client = clientName(params, c.Agent)
	c.Guess, c.Guessed, c.Readdress = s.logins.guess, s.logins.forgive, s.readdressed
	return c
}

// refuseStranger answers who did not prove who he is; who came with a browser is told what the organization is used with.
func (s *Server) refuseStranger(ctx *fasthttp.RequestCtx, e *wire.Endpoint, err error) {
	if status, _ := e.Failure(err); status == 401 {
		if byBrowser(ctx) {
			sendToLogin(ctx)
			return
		}
		scheme := "Basic"
		if strings.HasPrefix(string(ctx.Path()), "/json/") {
			scheme = "Session"
		}
		ctx.Response.Header.Set("WWW-Authenticate", scheme+` realm="zulip"`)
	}
	s.refuse(ctx, e, err)
}

// bringBody gives a call its body, and what files are in it.
func bringBody(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) (err error) {
	c.Body = func() []byte { return bytes.Clone(ctx.PostBody()) }
	c.Files = func() ([]wire.File, error) { return uploaded(ctx) }
	if e.Resumable() {
		c.Piece = pieceOf(ctx)
	} else if ctx.Request.IsBodyStream() {
		c.Body = func() []byte { return nil }
		c.Files, err = streamed(ctx, c.Params)
	}
	return err
}

// run has the endpoint carry out a call, and writes its answer unless the call waits for one.
func (s *Server) run(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint) {
	parked := false
	c.Park = func(gone func()) wire.Reply {
		parked = true
		return s.park.Park(ctx, gone)
	}
	a, err := e.Run(c)
	if _, waits := a.(wire.Parked); waits || parked {
		return
	}
	if r := (wire.Redirect{}); errors.As(err, &r) {
		always(ctx)
		ctx.Response.Header.Set("Location", r.URL)
		ctx.SetStatusCode(302)
		return
	}
	if err != nil {
		s.refuse(ctx, e, err)
		return
	}
	switch x := a.(type) {
	case wire.Bare:
		s.writeBare(ctx, x)
	case wire.Answer:
		if p := wire.SuccessPieces(x, c.Ignored()); p != nil {
			s.writePieces(ctx, p)
		} else {
			s.write(ctx, 200, wire.Success(x, c.Ignored()))
		}
	}
}

// refuse answers with what an endpoint failed of.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, e *wire.Endpoint, err error) {
	retryAfter(ctx, err)
	status, body := e.Failure(err)
	if status == 500 {
		s.o.Log.Error("request failed", "method", e.Method, "path", string(ctx.Path()), "error", err)
	}
	s.write(ctx, status, body)
}

// callerKey names an account to the limiter.
func callerKey(a *wire.Account) string {
	return strconv.Itoa(int(a.Realm)) + "/" + a.User.String()
}

// count holds a caller to the rate limit: the account, or the address of somebody without one.
func (s *Server) count(ctx *fasthttp.RequestCtx, c *wire.Call) error {
	if c.Account != nil {
		return limit(ctx, s.users, callerKey(c.Account))
	}
	return limit(ctx, s.visitors, s.remote(ctx))
}

// countStranger counts a request of somebody who did not prove who he is against his address, and says what he is refused
// for: why he is not let in, or that he tried too often. Who has the right key is let in all the same: one program with a
// wrong key must not lock out everybody behind its address, and nobody comes upon a key of 32 characters by trying.
// Passwords are easier to guess: those are counted, for address and account, before they are looked at.
func (s *Server) countStranger(ctx *fasthttp.RequestCtx, why error) error {
	if err := limit(ctx, s.visitors, s.remote(ctx)); err != nil {
		return err
	}
	return why
}

// pick is the endpoint of a method whose path parameters fit: ids are digits.
func (r *route) pick(ctx *fasthttp.RequestCtx, method string, params *form.Values) *wire.Endpoint {
	for i, e := range r.endpoints {
		if e.Method != method || !r.fits(ctx, i) {
			continue
		}
		for j, n := range r.names[i] {
			v, _ := ctx.UserValue("p" + string(rune('1'+j))).(string)
			params.Add(form.Path, n, unescape(v))
		}
		for _, n := range r.headers[i] {
			if v := ctx.Request.Header.Peek(n); v != nil {
				params.Add(form.Header, n, string(v))
			}
		}
		return e
	}
	return nil
}

func (r *route) pickable(ctx *fasthttp.RequestCtx) bool {
	for i := range r.endpoints {
		if r.fits(ctx, i) {
			return true
		}
	}
	return false
}

func (r *route) fits(ctx *fasthttp.RequestCtx, i int) bool {
	for j, n := range r.names[i] {
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

package httpd

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/scim"
)

// ScimPerMinute limits the requests of one token of SCIM: a provider that sends 10,000 people one by one is done within
// ten minutes, and an organization has time for its users meanwhile.
const ScimPerMinute = 1200

var scimMethods = slices.Sorted(slices.Values(append([]string{"HEAD", "OPTIONS"}, scim.Methods...)))

func (s *Server) addSCIMRoute() {
	s.scimRequests = newLimiter(ScimPerMinute, requestWindow)
	s.router.ANY(scim.Path, s.serveSCIM)
	s.router.ANY(scim.Path+"/{path:*}", s.serveSCIM)
}

// scimWriter writes an answer of package scim.
type scimWriter struct {
	ctx    *fasthttp.RequestCtx
	header http.Header
}

func (w *scimWriter) Header() http.Header { return w.header }

func (w *scimWriter) WriteHeader(status int) {
	setCommonHeaders(w.ctx)
	for name, values := range w.header {
		for _, value := range values {
			w.ctx.Response.Header.Set(name, value)
		}
	}
	w.ctx.SetStatusCode(status)
}

func (w *scimWriter) Write(b []byte) (int, error) { return w.ctx.Write(b) }

// serveSCIM serves one request. The order: method, organization, credentials, rate limit, owner, body.
func (s *Server) serveSCIM(ctx *fasthttp.RequestCtx) {
	switch {
	case !slices.Contains(scimMethods, string(ctx.Method())):
		s.writeMethodNotAllowed(ctx, scimMethods)
		return
	case ctx.IsOptions():
		ctx.Response.Header.Set("Allow", strings.Join(scimMethods, ", "))
		setCommonHeaders(ctx)
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return
	}
	ctx.Response.SkipBody = ctx.IsHead()
	w := &scimWriter{ctx, http.Header{}}
	c := s.call(ctx, &form.Values{})
	if c.Realm == 0 || s.options.Realms.IsForeign(strings.ToLower(string(ctx.Host()))) {
		scim.WriteError(w, fasthttp.StatusNotFound, "", "There is no organization at this address.")
		return
	}
	token, err := s.authenticateSCIM(ctx, c)
	if err == nil {
		err = s.scimRequests.countAttempt(strconv.Itoa(int(c.Realm)) + "/" + strconv.FormatInt(token.ID, 10))
	}
	if err != nil {
		status, _ := wire.Failure(err)
		if status == fasthttp.StatusUnauthorized {
			ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
		}
		setRetryAfter(ctx, err)
		scim.WriteError(w, status, "", err.Error())
		return
	}
	e := &wire.Endpoint{Method: string(ctx.Method()), Path: scim.Path}
	if s.hasOtherOwner(c) {
		s.forward(ctx, c, e)
		return
	}
	if s.prepareForwarded(ctx, c, e) {
		return
	}
	if ctx.Request.IsBodyStream() || len(ctx.PostBody()) > scim.MaxBody {
		scim.WriteError(w, fasthttp.StatusRequestEntityTooLarge, "", "The request is too large.")
		ctx.SetConnectionClose()
		return
	}
	var r http.Request
	if err := fasthttpadaptor.ConvertRequest(ctx, &r, true); err != nil {
		scim.WriteError(w, fasthttp.StatusBadRequest, "invalidSyntax", "The request is not valid.")
		return
	}
	if ctx.IsHead() {
		r.Method = http.MethodGet
	}
	c.Caller = realm.Caller{System: true, Client: scim.Client + strconv.FormatInt(token.ID, 10), Address: c.Address,
		Operation: "request of SCIM", Request: c.Caller.Request, Edge: c.Caller.Edge}
	scim.Serve(c, token.ScimToken, &r, w)
	if !ctx.IsGet() && !ctx.IsHead() {
		s.options.Log.Info("SCIM", "realm", c.Realm, "token", token.ID, "method", r.Method, "path", string(ctx.Path()),
			"status", ctx.Response.StatusCode())
	}
}

// authenticateSCIM returns the token of a request.
func (s *Server) authenticateSCIM(ctx *fasthttp.RequestCtx, c *wire.Call) (t realm.NumberedScimToken, err error) {
	scheme, key, _ := bytes.Cut(ctx.Request.Header.Peek("Authorization"), []byte(" "))
	if c.Site.Deactivated {
		return t, errDeactivated()
	}
	refusal := unauthorized("A valid token of SCIM is needed.")
	if !bytes.EqualFold(scheme, []byte("bearer")) || len(key) == 0 || len(key) > 200 {
		return t, s.limitUnauthenticated(ctx, refusal)
	}
	hash := s.options.Tools.HashKey(string(bytes.TrimSpace(key)))
	asServer := *c
	asServer.Caller = realm.Caller{System: true, Operation: "find a token of SCIM"}
	found := false
	if t, err = wire.Read(&asServer, func(v realm.View) (t realm.NumberedScimToken, err error) {
		t, found = v.FindScimToken(hash)
		return t, nil
	}); err == nil && !found {
		err = s.limitUnauthenticated(ctx, refusal)
	}
	return t, err
}

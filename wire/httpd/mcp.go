package httpd

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/mcp"
	"parley/wire/oauth"
)

// mcpPath is the address of the Model Context Protocol; see package mcp.
const mcpPath = "/mcp"

const (
	mcpSessionHeader = "Mcp-Session-Id"
	mcpVersionHeader = "Mcp-Protocol-Version"
	eventStreamType  = "text/event-stream"
)

var mcpMethods = []string{"DELETE", "GET", "HEAD", "OPTIONS", "POST"}

func (s *Server) addMCPRoute() {
	s.mcp = mcp.New(mcp.Options{Token: s.options.Tools.Token, Now: s.now, Several: s.options.Several,
		Run: func(c *wire.Call, e *wire.Endpoint) (any, error) { return e.Run(c) }})
	s.router.ANY(mcpPath, s.serveMCP)
}

// MCPSessions returns the number of sessions of agents, and how many were refused.
func (s *Server) MCPSessions() (now, refused int64) { return s.mcp.Sessions() }

// serveMCP serves one request. The order: address and origin, credentials, rate limit, owner, session, body.
func (s *Server) serveMCP(ctx *fasthttp.RequestCtx) {
	switch {
	case !slices.Contains(mcpMethods, string(ctx.Method())):
		s.writeMethodNotAllowed(ctx, mcpMethods)
		return
	case ctx.IsOptions():
		ctx.Response.Header.Set("Allow", strings.Join(mcpMethods, ", "))
		setCommonHeaders(ctx)
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return
	}
	c := s.call(ctx, &form.Values{})
	if c.Realm == 0 || s.options.Realms.IsForeign(strings.ToLower(string(ctx.Host()))) {
		s.writeError(ctx, fasthttp.StatusNotFound, "There is no organization at this address")
		return
	}
	if !fromSameOrigin(ctx, c.Site) {
		s.writeError(ctx, fasthttp.StatusForbidden, "Requests from other web sites are not accepted")
		return
	}
	if v := ctx.Request.Header.Peek(mcpVersionHeader); len(v) > 0 && !slices.Contains(mcp.Versions, string(v)) {
		s.writeError(ctx, fasthttp.StatusBadRequest, "Unsupported protocol version")
		return
	}
	e := &wire.Endpoint{Method: string(ctx.Method()), Path: mcpPath}
	if err := s.authenticateAgent(ctx, c); err != nil {
		if status, _ := wire.Failure(err); status == fasthttp.StatusUnauthorized {
			ctx.Response.Header.Set("WWW-Authenticate", `Bearer realm="`+c.Site.Name+`", resource_metadata="`+
				c.Site.URL+oauth.ResourceMetadataPath+mcpPath+`"`)
		}
		s.writeFailure(ctx, e, err)
		return
	}
	if err := s.limitCall(ctx, c); err != nil {
		s.writeFailure(ctx, e, err)
		return
	}
	if s.hasOtherOwner(c) { // sessions are at the owner
		s.forward(ctx, c, e)
		return
	}
	if s.prepareForwarded(ctx, c, e) {
		return
	}
	build := answerBuild{server: s, ctx: ctx, call: c}
	defer build.end()
	c.ReserveMemory, c.WaitForBuildSlot = build.reserveMemory, build.waitForSlot
	session := string(ctx.Request.Header.Peek(mcpSessionHeader))
	switch e.Method {
	case "GET":
		s.streamMCP(ctx, c, e, session)
	case "HEAD":
		setCommonHeaders(ctx)
		ctx.Response.Header.SetContentType(eventStreamType)
	case "DELETE":
		if !s.mcp.End(c, session) {
			s.writeError(ctx, fasthttp.StatusNotFound, "Session not found")
			return
		}
		setCommonHeaders(ctx)
		ctx.SetStatusCode(fasthttp.StatusNoContent)
	default:
		s.postMCP(ctx, c, session)
	}
}

func (s *Server) postMCP(ctx *fasthttp.RequestCtx, c *wire.Call, session string) {
	if ctx.Request.IsBodyStream() || len(ctx.PostBody()) > mcp.MaxBody {
		s.writeError(ctx, fasthttp.StatusRequestEntityTooLarge, "The request is too large")
		ctx.SetConnectionClose()
		return
	}
	a := s.mcp.Post(c, bytes.Clone(ctx.PostBody()), session)
	if a.Session != "" {
		ctx.Response.Header.Set(mcpSessionHeader, a.Session)
	}
	if a.Body == nil {
		setCommonHeaders(ctx)
		ctx.SetStatusCode(a.Status)
		return
	}
	s.writeJSON(ctx, a.Status, a.Body)
}

// streamMCP parks a GET until there are events of the session. A client that accepts no stream gets 406, and one
// without a session 405: streams belong to sessions.
func (s *Server) streamMCP(ctx *fasthttp.RequestCtx, c *wire.Call, e *wire.Endpoint, session string) {
	switch {
	case !strings.Contains(string(ctx.Request.Header.Peek("Accept")), eventStreamType):
		s.writeError(ctx, fasthttp.StatusNotAcceptable, "The client must accept "+eventStreamType)
		return
	case session == "":
		s.writeMethodNotAllowed(ctx, mcpMethods)
		return
	}
	ctx.Response.Header.SetContentType(eventStreamType)
	acked := string(ctx.Request.Header.Peek("Last-Event-ID"))
	err := s.mcp.Stream(c, session, acked, func(gone func()) wire.Reply { return s.parkFor(ctx, c, gone) })
	switch {
	case errors.Is(err, mcp.ErrNoStream):
		s.writeError(ctx, fasthttp.StatusNotFound, "Session not found")
	case err != nil:
		s.writeFailure(ctx, e, err)
	}
}

// fromSameOrigin reports whether a request was not sent by a page of another web site. Programs send no Origin.
func fromSameOrigin(ctx *fasthttp.RequestCtx, site wire.Site) bool {
	origin := string(ctx.Request.Header.Peek("Origin"))
	if origin == "" {
		return true
	}
	o, err := url.Parse(origin)
	own, err2 := url.Parse(site.URL)
	return err == nil && err2 == nil && o.Scheme == own.Scheme && strings.EqualFold(o.Host, own.Host)
}

// authenticateAgent identifies the caller by an API key as a bearer token, or by HTTP Basic.
func (s *Server) authenticateAgent(ctx *fasthttp.RequestCtx, c *wire.Call) error {
	header := ctx.Request.Header.Peek("Authorization")
	scheme, key, _ := bytes.Cut(header, []byte(" "))
	if !bytes.EqualFold(scheme, []byte("bearer")) {
		if len(header) == 0 {
			return s.limitUnauthenticated(ctx, realm.ErrNotLoggedIn())
		}
		if err := s.checkCredentials(c, header, false, s.findAccount); err != nil {
			return s.limitUnauthenticated(ctx, err)
		}
	} else if key = bytes.TrimSpace(key); !wellFormedKey(key) {
		return s.limitUnauthenticated(ctx, unauthorized("Malformed API key"))
	} else if err := s.checkKey(c, string(key), "", false, s.findAccount); err != nil {
		return s.limitUnauthenticated(ctx, err)
	}
	if !c.KeyScope().HasAddress(c.Address) {
		return realm.ErrKeyScope("This API key is not allowed to be used from this network.")
	}
	return nil
}

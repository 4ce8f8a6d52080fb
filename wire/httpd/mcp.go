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
	"parley/wire/httpd/park"
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

// parkedStream is a waiting stream of an agent: one allocation for connection, session of the protocol and queue.
type parkedStream struct {
	parked park.Parked
	reply  mcp.StreamReply // of the poll
	poll   wire.PollRequest
	server wire.Server
	// charged is the account that is charged, whose name is made when it is needed: for an answer that the client does
	// not read at once.
	charged realm.UserID
}

// Caller returns the caller for which unsent answers count.
func (p *parkedStream) Caller() park.Caller {
	return callerOfAccount(&wire.Account{Realm: p.poll.Realm, Charged: p.charged})
}

// Gone cancels the poll, because the client has left.
func (p *parkedStream) Gone() { p.server.CancelPoll(p.poll) }

// handleStream parks a GET of an agent whose session has an event queue. Its checks are those of serveMCP and of
// mcp.Server.Stream; requests that must be refused take the ordinary path.
func (f *fastPath) handleStream(q *park.FastRequest) bool {
	s := f.server
	version := s.options.Server.AuthVersion() // before any lookup, as in handlePoll
	host := strings.ToLower(string(q.Host))
	f.values.Reset()
	c := wire.Call{Server: s.options.Server, Tools: s.options.Tools, Params: &f.values}
	c.Realm, c.Site = s.options.Realms.ByHost(host)
	switch {
	case c.Realm == 0, s.options.Realms.IsForeign(host), len(q.Origin) > 0, len(q.AgentSession) == 0,
		len(q.Authorization) == 0, !bytes.Contains(q.Accept, []byte(eventStreamType)),
		len(q.AgentVersion) > 0 && !slices.Contains(mcp.Versions, string(q.AgentVersion)):
		return false
	case s.checkAgent(&c, q.Authorization, c.Server.AccountByKeyHash) != nil, !f.mayPoll(q, &c),
		s.hasOtherOwner(&c):
		return false
	}
	w := &parkedStream{server: c.Server, charged: c.Account.Charged}
	var ok bool
	if w.poll, ok = s.mcp.PrepareStream(&c, q.AgentSession, string(q.LastEventID), &w.reply); !ok {
		return false
	}
	w.poll.AuthVersion, w.reply.Reply = version, &w.parked
	lines, ok := f.countRequest(limitKey(c.Account), nil)
	if !ok {
		return false
	}
	q.ParkStream(&w.parked, w, lines)
	if f.polls = append(f.polls, &w.poll); len(f.polls) >= maxBatchedPolls {
		f.Flush()
	}
	return true
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
	if err := s.checkAgent(c, ctx.Request.Header.Peek("Authorization"), s.findAccount); err != nil {
		return s.limitUnauthenticated(ctx, err)
	}
	if !c.KeyScope().HasAddress(c.Address) {
		return realm.ErrKeyScope("This API key is not allowed to be used from this network.")
	}
	return nil
}

// checkAgent identifies the caller of a request with an Authorization header.
func (s *Server) checkAgent(
	c *wire.Call, header []byte, find func(hash [32]byte) (*wire.Account, bool),
) error {
	scheme, key, _ := bytes.Cut(header, []byte(" "))
	if !bytes.EqualFold(scheme, []byte("bearer")) {
		if len(header) == 0 {
			return realm.ErrNotLoggedIn()
		}
		return s.checkCredentials(c, header, false, find)
	}
	if key = bytes.TrimSpace(key); !wellFormedKey(key) {
		return unauthorized("Malformed API key")
	}
	return s.checkKey(c, string(key), "", false, find)
}

package httpd

import (
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// serverPages are the page about the server, and the same status as JSON.
var serverPages = []pageRoute{
	{path: web.ServerPath, handle: (*Server).serverPage, needsLogin: true},
	{path: web.ServerJSONPath, handle: (*Server).serverStatusJSON},
}

// scriptPolicy is pagePolicy for a page with a script of this server, which requests the status from this server.
var scriptPolicy = strings.Replace(pagePolicy, "default-src 'none';",
	"default-src 'none'; script-src 'self'; connect-src 'self';", 1)

var errServerLogin = realm.Refuse(realm.Unauthenticated, "UNAUTHORIZED",
	"Not logged in: API authentication or user session required")

// checkServerPage refuses callers that may not see the state of the server. It is about all organizations. So only
// owners of the root organization see it, which the operator has created; any visitor may own another one.
func (s *Server) checkServerPage(p *pageRequest) error {
	const text = "Only owners of the server's main organization can see this page."
	if s.options.ServerStatus == nil || s.options.Tools.Organizations == nil {
		return errNoPage
	}
	if p.call.Session == nil {
		return errServerLogin
	}
	if root, _ := s.options.Tools.Organizations.Find(""); root == 0 || root != p.call.Realm {
		return realm.Refuse(realm.Forbidden, "PERMISSION_DENIED", text)
	}
	_, err := wire.Read(p.call, func(v realm.View) (struct{}, error) {
		if _, err := v.RequireOwner(); err != nil {
			return struct{}{}, realm.Refuse(realm.Forbidden, "PERMISSION_DENIED", text)
		}
		return struct{}{}, nil
	})
	return err
}

// serverPage shows the state of the server.
func (s *Server) serverPage(p *pageRequest) (web.View, error) {
	if err := s.checkServerPage(p); err != nil {
		return web.Failure("Server", s.errorText(err)), err
	}
	p.policy = scriptPolicy
	return web.ServerPageOf(s.options.ServerStatus()), nil
}

// serverStatusJSON answers the page's script with the state of the server.
func (s *Server) serverStatusJSON(p *pageRequest) (web.View, error) {
	p.answered = true
	setPageHeaders(p.ctx)
	p.ctx.Response.SkipBody = p.ctx.IsHead()
	if err := s.checkServerPage(p); err != nil {
		status, body := wire.Failure(err)
		s.writeJSON(p.ctx, status, body)
		return web.View{}, nil
	}
	state := s.options.ServerStatus()
	s.writeJSON(p.ctx, fasthttp.StatusOK, state.JSON())
	return web.View{}, nil
}

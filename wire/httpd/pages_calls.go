package httpd

import (
	"strings"

	"parley/wire"
	"parley/wire/web"
)

// callPages is the page of a call.
var callPages = []pageRoute{{path: wire.CallPath + "{token}", handle: (*Server).callPage, needsLogin: true}}

// callPage is the page on which a user joins a call. It says nothing about the call: the script of the page asks, and
// gets what the user is allowed to see at that moment.
func (s *Server) callPage(p *pageRequest) (web.View, error) {
	calls := s.options.Tools.Calls
	if calls == nil {
		return pageNotFound()
	}
	p.policy = callPolicy(calls.Address())
	return web.CallPage(p.token()), nil
}

// callPolicy returns the policy of a page whose script connects to a LiveKit server. Its library asks the server with
// HTTP why a connection failed.
func callPolicy(address string) string {
	address = strings.TrimSuffix(address, "/")
	more := "script-src 'self'; media-src 'self' blob:; connect-src 'self' " + address + " http" +
		strings.TrimPrefix(address, "ws") + ";"
	return strings.Replace(pagePolicy, "default-src 'none';", "default-src 'none'; "+more, 1)
}

package httpd

import (
	"bytes"

	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
)

// maxBatchedCommands is the number of messages and reports collected before they are sent: while the
// organization decides on them, the loop reads the next ones.
const maxBatchedCommands = 16

// parkedSend is a message being sent: one allocation for connection and organization.
type parkedSend struct {
	park.Parked
	wire.FastSend
	server *Server
}

// Done answers the sender.
func (x *parkedSend) Done(v any, err error) {
	status, body := x.Response(v, err)
	x.server.answerCommand(&x.Parked, messagesPath, status, body, err)
}

// parkedPresence is a presence report being handled: one allocation, as in parkedSend.
type parkedPresence struct {
	park.Parked
	wire.FastPresenceReport
}

// handleCommand handles a message or a presence report whose parameters are a form in the body.
func (f *fastPath) handleCommand(q *park.FastRequest) bool {
	c, ok := f.commandCall(q)
	if !ok {
		return false
	}
	if f.server.options.Cluster != nil && c.Session != nil && bytes.HasSuffix(q.Target, []byte(messagesPath)) {
		return false // the ordinary path adds the cookie to the answer; see setWritesCookie
	}
	c.Caller.Client = f.clientName(q.UserAgent, c.Session != nil)
	var parked *park.Parked
	var command wire.CommandWithCallback
	if bytes.HasSuffix(q.Target, []byte("/presence")) {
		x := &parkedPresence{}
		parked, command, ok = &x.Parked, x, x.Prepare(&c, func(status int, body []byte, err error) {
			f.server.answerCommand(&x.Parked, presencePath, status, body, err)
		})
	} else {
		x := &parkedSend{server: f.server}
		parked, command, ok = &x.Parked, x, x.Prepare(&c)
	}
	if !ok {
		return false
	}
	extra, ok := f.countRequest(limitKey(c.Account), nil)
	if !ok {
		return false
	}
	q.ParkBriefly(parked, extra)
	if f.commands = append(f.commands, wire.AsyncCommand{Realm: c.Realm, Caller: c.Caller,
		CommandWithCallback: command}); len(f.commands) >= maxBatchedCommands {
		f.Flush()
	}
	return true
}

// commandCall returns the call of a request whose parameters are a form in the body, to an organization that this node
// owns. It reports false if the ordinary path must handle the request.
func (f *fastPath) commandCall(q *park.FastRequest) (c wire.Call, ok bool) {
	if !isPlainForm(q) {
		return c, false
	}
	c, ok = f.call(q, form.Body, q.Body)
	if !ok || c.KeyScope() != nil || f.server.hasOtherOwner(&c) { // the endpoint checks scopes
		return c, false
	}
	_, overridden := c.Params.Get("method") // it names another endpoint
	return c, !overridden
}

// isPlainForm reports whether the body of a request is an url-encoded form in UTF-8, the usual one.
func isPlainForm(q *park.FastRequest) bool {
	kind := q.ContentType
	if len(kind) > 0 && !bytes.HasPrefix(kind, []byte("application/x-www-form-urlencoded")) {
		return false
	}
	decode, err := formDecoder(kind)
	return decode == nil && err == nil
}

const (
	messagesPath = "/messages"
	presencePath = "/users/me/presence"
)

func (s *Server) answerCommand(p *park.Parked, path string, status int, body []byte, err error) {
	if status == 500 {
		s.options.Log.Error("request failed", "method", "POST", "path", path, "err", err)
	}
	p.Answer(status, body)
}

// clientName returns the client name of the request, of a browser session if there is one. The names of the last
// User-Agent are cached.
func (f *fastPath) clientName(agent []byte, session bool) string {
	if _, own := f.values.Get("client"); own {
		return clientName(&f.values, string(agent))
	}
	if f.clients[0] == "" || f.agent != string(agent) {
		f.agent = string(agent)
		f.clients = [2]string{clientName(&f.values, f.agent), wire.WebClientName(f.agent)}
	}
	if session {
		return f.clients[1]
	}
	return f.clients[0]
}

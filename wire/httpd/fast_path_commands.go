package httpd

import (
	"bytes"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
)

// maxBatchedCommands is the number of messages and reports collected before they are passed on: while the
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

// parkedPresence is a presence report being handled: one allocation, likewise.
type parkedPresence struct {
	park.Parked
	wire.FastPresenceReport
}

// handleCommand handles a message or a presence report whose parameters are a form in the body.
func (f *fastPath) handleCommand(q *park.FastRequest) bool {
	c, ok := f.call(q)
	if !ok {
		return false
	}
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
	extra, ok := f.countRequest(f.limitKey(c.Account), nil)
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

const (
	messagesPath = "/messages"
	presencePath = "/users/me/presence"
)

func (s *Server) answerCommand(p *park.Parked, path string, status int, body []byte, err error) {
	if status == 500 {
		s.options.Log.Error("request failed", "method", "POST", "path", path, "error", err)
	}
	p.Answer(status, body)
}

// call returns the call of a request with its form. It reports false if the request is out of the ordinary or
// must be refused.
func (f *fastPath) call(q *park.FastRequest) (c wire.Call, ok bool) {
	kind := q.ContentType
	if len(q.Body) == 0 || len(kind) > 0 && !bytes.HasPrefix(kind, []byte("application/x-www-form-urlencoded")) ||
		tooManyParams(q.Body) {
		return c, false
	}
	a, site, ok := f.authenticate(q)
	if !ok {
		return c, false
	}
	f.values.Reset()
	f.args.ParseBytes(q.Body)
	for name, value := range f.args.All() {
		n := internParam(name)
		if n == "method" { // the form field overrides the method of the request
			return c, false
		}
		f.values.Add(form.Body, n, string(value))
	}
	c = wire.Call{Server: f.server.options.Server, Tools: f.server.options.Tools, Realm: a.Realm, Site: site,
		Account: a, Params: &f.values}
	c.Caller = realm.Caller{User: a.User, Client: f.clientName(q.UserAgent)}
	return c, true
}

// internParam returns a parameter name without allocating, for the names that clients send with messages and
// reports.
func internParam(b []byte) string {
	switch string(b) {
	case "type":
		return "type"
	case "to":
		return "to"
	case "topic":
		return "topic"
	case "subject":
		return "subject"
	case "content":
		return "content"
	case "queue_id":
		return "queue_id"
	case "local_id":
		return "local_id"
	case "read_by_sender":
		return "read_by_sender"
	case "status":
		return "status"
	case "ping_only":
		return "ping_only"
	case "new_user_input":
		return "new_user_input"
	case "last_update_id":
		return "last_update_id"
	}
	return string(b)
}

// clientName returns the client name of the request. The name of the last User-Agent is cached.
func (f *fastPath) clientName(agent []byte) string {
	if _, own := f.values.Get("client"); own {
		return clientName(&f.values, string(agent))
	}
	if f.client == "" || f.agent != string(agent) {
		f.agent = string(agent)
		f.client = clientName(&f.values, f.agent)
	}
	return f.client
}

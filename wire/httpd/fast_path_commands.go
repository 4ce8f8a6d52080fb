package httpd

import (
	"bytes"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
)

// maxBatchedCommands is how many sends and reports are put off before they are handed on though more are at hand: while the organization
// decides on them the loop reads the next.
const maxBatchedCommands = 16

// parkedSend is one message on its way: one piece of memory for connection and organization.
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

// parkedPresence is likewise a report of presence.
type parkedPresence struct {
	park.Parked
	wire.FastPresenceReport
}

// handleCommand takes a message or a report whose parameters stand in a form in the body.
func (k *fastPath) handleCommand(q *park.FastRequest) bool {
	c, ok := k.call(q)
	if !ok {
		return false
	}
	var parked *park.Parked
	var command wire.CommandWithCallback
	if bytes.HasSuffix(q.Target, []byte("/presence")) {
		x := &parkedPresence{}
		parked, command, ok = &x.Parked, x, x.Prepare(&c, func(status int, body []byte, err error) {
			k.server.answerCommand(&x.Parked, presencePath, status, body, err)
		})
	} else {
		x := &parkedSend{server: k.server}
		parked, command, ok = &x.Parked, x, x.Prepare(&c)
	}
	if !ok {
		return false
	}
	extra, ok := k.countRequest(k.limitKey(c.Account), nil)
	if !ok {
		return false
	}
	q.ParkBriefly(parked, extra)
	if k.commands = append(k.commands, wire.AsyncCommand{Realm: c.Realm, Caller: c.Caller, CommandWithCallback: command}); len(k.commands) >= maxBatchedCommands {
		k.Flush()
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

// call is a request with its form, if who sends it may.
func (k *fastPath) call(q *park.FastRequest) (c wire.Call, ok bool) {
	kind := q.ContentType
	if len(q.Body) == 0 || len(kind) > 0 && !bytes.HasPrefix(kind, []byte("application/x-www-form-urlencoded")) || tooManyParams(q.Body) {
		return c, false
	}
	a, site, ok := k.authenticate(q)
	if !ok {
		return c, false
	}
	k.values.Reset()
	k.args.ParseBytes(q.Body)
	for name, value := range k.args.All() {
		n := internParam(name)
		if n == "method" { // it is another request than it looks
			return c, false
		}
		k.values.Add(form.Body, n, string(value))
	}
	c = wire.Call{Server: k.server.options.Server, Tools: k.server.options.Tools, Realm: a.Realm, Site: site, Account: a, Params: &k.values}
	c.Caller = realm.Caller{User: a.User, Client: k.clientName(q.UserAgent)}
	return c, true
}

// internParam is a name without memory of its own, where it is one that clients send with messages and reports.
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

// clientName is clientName, for as long as the same program calls without finding out anew.
func (k *fastPath) clientName(agent []byte) string {
	if _, own := k.values.Get("client"); own {
		return clientName(&k.values, string(agent))
	}
	if k.client == "" || k.agent != string(agent) {
		k.agent = string(agent)
		k.client = clientName(&k.values, k.agent)
	}
	return k.client
}

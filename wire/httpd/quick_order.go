package httpd

import (
	"bytes"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
)

// maxOrders is how many sends and reports are put off before they are handed on though more are at hand: while the organization
// decides on them the loop reads the next.
const maxOrders = 16

// quickSend is one message on its way: one piece of memory for connection and organization.
type quickSend struct {
	park.Parked
	wire.Sending
	s *Server
}

// Done answers the sender.
func (x *quickSend) Done(v any, err error) {
	status, body := x.Outcome(v, err)
	x.s.answerHeld(&x.Parked, sendPath, status, body, err)
}

// quickReport is likewise a report of presence.
type quickReport struct {
	park.Parked
	wire.Reporting
}

// order takes a message or a report whose parameters stand in a form in the body.
func (k *quick) order(q *park.QuickRequest) bool {
	c, ok := k.call(q)
	if !ok {
		return false
	}
	var parked *park.Parked
	var command wire.Command
	if bytes.HasSuffix(q.Target, []byte("/presence")) {
		x := &quickReport{}
		parked, command, ok = &x.Parked, x, x.Prepare(&c, func(status int, body []byte, err error) {
			k.s.answerHeld(&x.Parked, reportPath, status, body, err)
		})
	} else {
		x := &quickSend{s: k.s}
		parked, command, ok = &x.Parked, x, x.Prepare(&c)
	}
	if !ok {
		return false
	}
	extra, ok := k.spend(k.budget(c.Account), nil)
	if !ok {
		return false
	}
	q.Hold(parked, extra)
	if k.orders = append(k.orders, wire.Order{Realm: c.Realm, Caller: c.Caller, Command: command}); len(k.orders) >= maxOrders {
		k.Flush()
	}
	return true
}

const (
	sendPath   = "/messages"
	reportPath = "/users/me/presence"
)

func (s *Server) answerHeld(p *park.Parked, path string, status int, body []byte, err error) {
	if status == 500 {
		s.o.Log.Error("request failed", "method", "POST", "path", path, "error", err)
	}
	p.Answer(status, body)
}

// call is a request with its form, if who sends it may.
func (k *quick) call(q *park.QuickRequest) (c wire.Call, ok bool) {
	kind := q.ContentType
	if len(q.Body) == 0 || len(kind) > 0 && !bytes.HasPrefix(kind, []byte("application/x-www-form-urlencoded")) || tooMany(q.Body) {
		return c, false
	}
	a, site, ok := k.caller(q)
	if !ok {
		return c, false
	}
	k.values.Reset()
	k.args.ParseBytes(q.Body)
	for name, value := range k.args.All() {
		n := parameterName(name)
		if n == "method" { // it is another request than it looks
			return c, false
		}
		k.values.Add(form.Body, n, string(value))
	}
	c = wire.Call{House: k.s.o.House, Tools: k.s.o.Tools, Realm: a.Realm, Site: site, Account: a, Params: &k.values}
	c.Caller = realm.Caller{User: a.User, Client: k.clientName(q.UserAgent)}
	return c, true
}

// parameterName is a name without memory of its own, where it is one that clients send with messages and reports.
func parameterName(b []byte) string {
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
func (k *quick) clientName(agent []byte) string {
	if _, own := k.values.Get("client"); own {
		return clientName(&k.values, string(agent))
	}
	if k.client == "" || k.agent != string(agent) {
		k.agent = string(agent)
		k.client = clientName(&k.values, k.agent)
	}
	return k.client
}

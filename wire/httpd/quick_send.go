package httpd

import (
	"bytes"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
)

// maxSends is how many sends are put off before they are handed on though more are at hand: while the organization
// decides on them the loop reads the next.
const maxSends = 16

// quickSend is one message on its way: one piece of memory for connection and organization.
type quickSend struct {
	park.Parked
	wire.Sending
	s *Server
}

// Done answers the sender.
func (x *quickSend) Done(v any, err error) {
	status, body := x.Outcome(v, err)
	if status == 500 {
		x.s.o.Log.Error("request failed", "method", "POST", "path", "/messages", "error", err)
	}
	x.Parked.Answer(status, body)
}

// send takes a message whose parameters stand in a form in the body.
func (k *quick) send(q *park.QuickRequest) bool {
	kind := q.ContentType
	if len(q.Body) == 0 || len(kind) > 0 && !bytes.HasPrefix(kind, []byte("application/x-www-form-urlencoded")) || tooMany(q.Body) {
		return false
	}
	a, site, ok := k.caller(q)
	if !ok {
		return false
	}
	k.values.Reset()
	k.args.ParseBytes(q.Body)
	for name, value := range k.args.All() {
		n := parameterName(name)
		if n == "method" { // it is another request than it looks
			return false
		}
		k.values.Add(form.Body, n, string(value))
	}
	c := wire.Call{House: k.s.o.House, Tools: k.s.o.Tools, Realm: a.Realm, Site: site, Account: a, Params: &k.values}
	c.Caller = realm.Caller{User: a.User, Client: k.clientName(q.UserAgent)}
	x := &quickSend{s: k.s}
	if !x.Prepare(&c) {
		return false
	}
	extra, ok := k.spend(k.budget(a), nil)
	if !ok {
		return false
	}
	q.Hold(&x.Parked, extra)
	if k.sends = append(k.sends, wire.Order{Realm: a.Realm, Caller: c.Caller, Command: x}); len(k.sends) >= maxSends {
		k.Flush()
	}
	return true
}

// parameterName is a name without memory of its own, where it is one that clients send with messages.
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

package wire

import (
	"strconv"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

// Reporting is a report of presence that nobody waits for: POST /users/me/presence that asks for nobody else's, for the
// loop that reads requests. A large organization's clients send it more often than anything else but polls.
type Reporting struct {
	house   House
	realm   realm.ID
	caller  realm.Caller
	active  bool
	last    int64
	ignored []string
	reply   func(status int, body []byte, err error)
}

// reportsQuickly names what it does like the endpoint.
const reportsQuickly = "POST /users/me/presence"

var reportingForm = form.Of[postPresenceForm]()

// Prepare reads a report; reply is told its answer, once. It reports false, and has done nothing, where anything is out of
// the ordinary: then the endpoint is to be asked, which knows all rules.
func (r *Reporting) Prepare(c *Call, reply func(status int, body []byte, err error)) bool {
	if c.Account == nil || c.Account.Bot != realm.Human {
		return false
	}
	var f postPresenceForm
	if err := reportingForm.Decode(c.Params, &f); err != nil || !f.PingOnly || f.Status != "active" && f.Status != "idle" {
		return false
	}
	c.Caller.Doing = reportsQuickly
	*r = Reporting{house: c.House, realm: c.Realm, caller: c.Caller, active: f.Status == "active", last: f.since(), ignored: reportingForm.Ignored(c.Params), reply: reply}
	return true
}

// Decide asks the organization what to do with it.
func (r *Reporting) Decide(t *realm.Turn) (any, error) {
	gate, err := t.MayReport()
	return gate, err
}

// Done passes it on to who keeps presence.
func (r *Reporting) Done(v any, err error) {
	if err != nil {
		r.answer(err)
	} else if gate := v.(realm.PresenceGate); gate.Disabled || gate.Hidden {
		r.answer(nil)
	} else {
		r.house.NotePresence(r.realm, r.caller.User, r.active, r.noted)
	}
}

func (r *Reporting) noted(row presence.Row, tell bool) {
	if !tell {
		r.answer(nil)
		return
	}
	r.house.Order([]Order{{Realm: r.realm, Caller: r.caller, Command: &telling{tellOnline(row), r}}})
}

func (r *Reporting) answer(err error) {
	if err != nil {
		status, body := Failure(err)
		r.reply(status, body, err)
		return
	}
	if len(r.ignored) > 0 {
		r.reply(200, Success(pinged(r.last), r.ignored), nil)
		return
	}
	b := append(make([]byte, 0, 80), `{"msg":"","presence_last_update_id":`...)
	b = strconv.AppendInt(b, r.last, 10)
	r.reply(200, append(b, `,"result":"success"}`+"\n"...), nil)
}

// telling lets the others hear before the report is answered.
type telling struct {
	realm.TellPresence
	of *Reporting
}

func (x *telling) Decide(t *realm.Turn) (any, error) {
	done, err := x.TellPresence.Decide(t)
	return done, err
}

func (x *telling) Done(_ any, err error) { x.of.answer(err) }

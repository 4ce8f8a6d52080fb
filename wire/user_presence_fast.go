package wire

import (
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

// FastPresenceReport is POST /users/me/presence with ping_only, for the loop that reads requests and must not wait.
// Except for polls, it is the most frequent request in large organizations.
type FastPresenceReport struct {
	server  Server
	realm   realm.ID
	caller  realm.Caller
	active  bool
	last    int64
	ignored []string
	reply   func(status int, body []byte, err error)
}

// fastReportName is the endpoint's name, so that metrics count both together.
const fastReportName = "POST /users/me/presence"

var reportingForm = form.Of[postPresenceForm]()

// Prepare decodes a report. reply receives the answer, exactly once. Prepare returns false and does nothing if the
// request is unusual; then the endpoint handles it, which implements all rules.
func (r *FastPresenceReport) Prepare(c *Call, reply func(status int, body []byte, err error)) bool {
	if c.Account == nil || c.Account.Bot != realm.Human {
		return false
	}
	var f postPresenceForm
	if err := reportingForm.Decode(c.Params, &f); err != nil || !f.PingOnly || f.Status != "active" &&
		f.Status != "idle" {
		return false
	}
	c.Caller.Operation = fastReportName
	*r = FastPresenceReport{server: c.Server, realm: c.Realm, caller: c.Caller, active: f.Status == "active",
		last: f.since(), ignored: reportingForm.Ignored(c.Params), reply: reply}
	return true
}

// Decide reads in a turn whether presence is enabled for the organization and the user.
func (r *FastPresenceReport) Decide(t *realm.Turn) (any, error) {
	policy, err := t.PresencePolicy()
	return policy, err
}

// Done passes the report to the presence store.
func (r *FastPresenceReport) Done(v any, err error) {
	if err != nil {
		r.answer(err)
	} else if policy := v.(realm.PresencePolicy); policy.Disabled || policy.Hidden {
		r.answer(nil)
	} else {
		r.server.ReportPresenceAsync(r.realm, r.caller.User, r.active, r.onPresenceStored)
	}
}

// onPresenceStored answers, after it has announced the presence to other users if that is due.
func (r *FastPresenceReport) onPresenceStored(row presence.Row, announce bool) {
	if !announce {
		r.answer(nil)
		return
	}
	r.server.RunAsync([]AsyncCommand{{Realm: r.realm, Caller: r.caller,
		CommandWithCallback: &presenceAnnouncement{announcePresence(row), r}}})
}

func (r *FastPresenceReport) answer(err error) {
	if err != nil {
		status, body := Failure(err)
		r.reply(status, body, err)
		return
	}
	r.reply(200, Success(pingAnswer(r.last), r.ignored), nil)
}

// presenceAnnouncement sends the presence event to other users before the report is answered.
type presenceAnnouncement struct {
	realm.AnnouncePresence
	report *FastPresenceReport
}

func (x *presenceAnnouncement) Decide(t *realm.Turn) (any, error) {
	done, err := x.AnnouncePresence.Decide(t)
	return done, err
}

func (x *presenceAnnouncement) Done(_ any, err error) { x.report.answer(err) }

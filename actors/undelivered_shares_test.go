package actors

import (
	"testing"

	"parley/actors/admission"
)

// Of several organizations, one whose events are delivered late is refused commands from half of MaxUndelivered on. The
// others are served, and so is the only organization of a server, up to the whole limit.
func TestUndeliveredOfOneOrganization(t *testing.T) {
	late, other := &realmHandle{}, &realmHandle{}
	srv := &Server{byName: map[string]*realmHandle{"late": late, "other": other}}
	srv.delivery.Metrics = &srv.Metrics.Metrics
	late.sessions.Prepare(&srv.delivery, 1)
	late.sessions.CountUndelivered(admission.Half(MaxUndelivered))
	if srv.isDeliveredLate(late) {
		t.Error("an organization has less than half")
	}
	late.sessions.CountUndelivered(1)
	if !srv.isDeliveredLate(late) || srv.isDeliveredLate(other) {
		t.Error("more than half: the organization goes on, or the other one is refused")
	}
	delete(srv.byName, "other")
	if srv.isDeliveredLate(late) {
		t.Error("the only organization is refused at half")
	}
	late.sessions.CountUndelivered(MaxUndelivered / 2)
	if !srv.isDeliveredLate(late) {
		t.Error("the only organization has more than all")
	}
	late.sessions.CountUndelivered(-MaxUndelivered - 1)
	if late.sessions.Undelivered.Load() != 0 || srv.Metrics.Undelivered.Load() != 0 {
		t.Error("what was delivered still counts")
	}
}

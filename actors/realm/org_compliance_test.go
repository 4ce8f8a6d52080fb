package realm_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// complianceScene has three owners and one user of each other role.
type complianceScene struct {
	*Scene
	olive, oscar, otto realm.UserID
}

func newComplianceScene(t *testing.T) *complianceScene {
	s := &complianceScene{Scene: New(t)}
	s.olive, s.oscar = s.Join("Olive", realm.Owner), s.Join("Oscar", realm.Owner)
	s.otto = s.Join("Otto", realm.Owner)
	return s
}

func (s *complianceScene) state(id int64) string {
	list, _ := s.ViewAs(System).ComplianceRequests()
	for _, q := range list {
		if q.ID == id {
			return q.State(s.Now)
		}
	}
	return "forgotten"
}

func jsonExport() realm.AskComplianceExport {
	return realm.AskComplianceExport{Criteria: realm.ComplianceCriteria{Format: "jsonl", Search: "fraud"}}
}

func exportWith(search string) realm.AskComplianceExport {
	x := jsonExport()
	x.Criteria.Search = search
	return x
}

func approve(id int64) realm.AnswerComplianceRequest {
	return realm.AnswerComplianceRequest{ID: id, Approve: true}
}

func refuse(id int64) realm.AnswerComplianceRequest { return realm.AnswerComplianceRequest{ID: id} }

// A request that is sent twice is one request, and the owners are told once. Another owner and other criteria make
// other requests, and so does a request after the first one was refused.
func TestComplianceRequestIsSentTwice(t *testing.T) {
	s := newComplianceScene(t)
	Do(s.Scene, s.olive, realm.DemandTwoOwners{On: true})
	s.OpenQueue(s.oscar)
	first := Do(s.Scene, s.olive, jsonExport())
	told := len(ListEventsOf[*realm.MessageArrived](s.Scene, s.oscar))
	again := Do(s.Scene, s.olive, jsonExport())
	more := len(ListEventsOf[*realm.MessageArrived](s.Scene, s.oscar))
	if again.ID != first.ID || told != 1 || more != 0 {
		t.Errorf("the requests are %d and %d, the other owner is told %d and %d times", first.ID, again.ID, told, more)
	}
	other := exportWith("theft")
	ids := map[int64]bool{first.ID: true}
	for _, q := range []realm.ComplianceRequest{Do(s.Scene, s.olive, other), Do(s.Scene, s.oscar, jsonExport()),
		Do(s.Scene, System, jsonExport()), Do(s.Scene, s.olive, realm.DemandTwoOwners{On: false})} {
		if ids[q.ID] {
			t.Errorf("%+v is an earlier request", q)
		}
		ids[q.ID] = true
	}
	Do(s.Scene, s.oscar, refuse(first.ID))
	if q := Do(s.Scene, s.olive, jsonExport()); ids[q.ID] {
		t.Errorf("%+v is a refused request", q)
	}
}

// Where two owners must agree, an export takes a request of one and the approval of another. It is used once.
func TestComplianceExportNeedsTwoOwners(t *testing.T) {
	s := newComplianceScene(t)
	note := realm.NoteComplianceExport{Criteria: "format csv"}
	expectRefused(s.Scene, s.olive, jsonExport(), "does not demand")
	Do(s.Scene, System, note)
	Do(s.Scene, s.olive, realm.DemandTwoOwners{On: true})
	expectRefused(s.Scene, System, note, "Two owners must agree")
	note.Force = true
	Do(s.Scene, System, note)

	s.OpenQueue(s.oscar)
	q := Do(s.Scene, s.olive, jsonExport())
	told := ListEventsOf[*realm.MessageArrived](s.Scene, s.oscar)
	if len(told) != 1 || strings.Contains(s.Text(told[0].Message.Ref).Text, "fraud") {
		t.Errorf("the other owner is told %v", told)
	}
	use := realm.NoteComplianceExport{Request: q.ID}
	expectRefused(s.Scene, System, use, "is pending")
	expectRefused(s.Scene, s.olive, approve(q.ID), "Another owner must approve")
	expectRefused(s.Scene, System, approve(q.ID), "Must be an organization owner")
	Do(s.Scene, s.oscar, approve(q.ID))
	expectRefused(s.Scene, s.otto, refuse(q.ID), "Invalid request ID")
	expectRefused(s.Scene, s.oscar, use, "Insufficient permission")
	if c := Do(s.Scene, System, use); c.Search != "fraud" || c.Format != "jsonl" {
		t.Errorf("the criteria of the request: %+v", c)
	}
	expectRefused(s.Scene, System, use, "is used")

	own := Do(s.Scene, System, jsonExport()) // the operator is no owner: two must approve
	Do(s.Scene, s.olive, approve(own.ID))
	if got := s.state(own.ID); got != "pending" {
		t.Errorf("a request of the operator that one owner approved is %s", got)
	}
	expectRefused(s.Scene, s.olive, approve(own.ID), "Another owner must approve")
	Do(s.Scene, s.otto, approve(own.ID))
	Do(s.Scene, System, realm.NoteComplianceExport{Request: own.ID})

	entries, _, _ := s.ViewAs(s.otto).AuditLog(realm.AuditFilter{Kind: "export", After: -1, Limit: 50})
	kinds := ""
	for _, e := range entries {
		kinds += strings.TrimPrefix(e.Kind, "export.") + " "
		if strings.Contains(e.New, "fraud") {
			t.Errorf("the audit log has the searched text: %+v", e)
		}
	}
	if kinds != "compliance policy compliance request approve compliance request approve approve compliance " {
		t.Errorf("the audit log has %q", kinds)
	}
	if entries[2].New != "without the owners: format csv" {
		t.Errorf("the forced export: %+v", entries[2])
	}
}

// A request ends when an owner refuses it, also the one who asked, after a week, and when its owners are none any more.
func TestComplianceRequestEnds(t *testing.T) {
	s := newComplianceScene(t)
	Do(s.Scene, s.olive, realm.DemandTwoOwners{On: true})
	for _, who := range []realm.UserID{s.olive, s.oscar} {
		q := Do(s.Scene, s.olive, jsonExport())
		Do(s.Scene, who, refuse(q.ID))
		expectRefused(s.Scene, s.otto, approve(q.ID), "Invalid request ID")
		expectRefused(s.Scene, System, realm.NoteComplianceExport{Request: q.ID}, "is refused")
	}
	late, approved := Do(s.Scene, s.olive, jsonExport()), Do(s.Scene, s.olive, exportWith("theft"))
	s.Advance(7*24*3600 - 1)
	Do(s.Scene, s.oscar, approve(approved.ID))
	s.Advance(1)
	expectRefused(s.Scene, s.oscar, approve(late.ID), "Invalid request ID")
	if got := s.state(late.ID) + " " + s.state(approved.ID); got != "expired approved" {
		t.Errorf("after a week: %s", got)
	}
	Do(s.Scene, s.otto, realm.EditUser{User: s.oscar, Role: roleOf(realm.Member)})
	expectRefused(s.Scene, System, realm.NoteComplianceExport{Request: approved.ID}, "no owners any more")
	Do(s.Scene, s.otto, realm.EditUser{User: s.oscar, Role: roleOf(realm.Owner)})
	s.Advance(7 * 24 * 3600)
	expectRefused(s.Scene, System, realm.NoteComplianceExport{Request: approved.ID}, "is expired")
	first := Do(s.Scene, s.olive, jsonExport())
	for i := range realm.MaxComplianceRequests {
		if _, err := Try(s.Scene, s.olive, exportWith(fmt.Sprint(i))); err != nil {
			break
		}
	}
	expectRefused(s.Scene, s.olive, exportWith("theft"), "too many requests")
	if list, _ := s.ViewAs(s.olive).ComplianceRequests(); len(list) != realm.MaxComplianceRequests {
		t.Errorf("%d requests are kept", len(list))
	}
	if s.state(first.ID) != "pending" || s.state(late.ID) != "forgotten" {
		t.Errorf("an open request was forgotten, or an old one was not: %s, %s", s.state(first.ID), s.state(late.ID))
	}
}

func roleOf(r realm.Role) *realm.Role { return &r }

// One owner switches the demand on. To switch it off needs two. No other role does or sees any of this.
func TestDemandForTwoOwners(t *testing.T) {
	s := newComplianceScene(t)
	Do(s.Scene, s.olive, realm.DemandTwoOwners{On: true})
	q := Do(s.Scene, s.oscar, realm.DemandTwoOwners{})
	if !s.Realm.TwoOwnersExport() || q.ID == 0 {
		t.Fatal("one owner switched the demand off")
	}
	asked := Do(s.Scene, s.olive, jsonExport())
	for _, role := range []realm.Role{realm.Administrator, realm.Moderator, realm.Member, realm.Guest} {
		u := s.Join("Role"+string(rune('A'+int(role)/100)), role)
		const owners = "Must be an organization owner"
		expectRefused(s.Scene, u, realm.DemandTwoOwners{On: true}, owners)
		expectRefused(s.Scene, u, realm.DemandTwoOwners{}, owners)
		expectRefused(s.Scene, u, jsonExport(), owners)
		expectRefused(s.Scene, u, approve(asked.ID), owners)
		expectRefused(s.Scene, u, refuse(asked.ID), owners)
		expectRefused(s.Scene, u, realm.NoteComplianceExport{Request: asked.ID, Force: true}, "Insufficient permission")
		if _, err := s.ViewAs(u).ComplianceRequests(); err == nil {
			t.Errorf("role %d sees the requests", role)
		}
	}
	Do(s.Scene, s.otto, approve(q.ID))
	if s.Realm.TwoOwnersExport() {
		t.Error("two owners did not switch the demand off")
	}
	for _, c := range []realm.ComplianceCriteria{{Format: "pdf"}, {Format: "csv", From: 9, To: 9},
		{Format: "csv", From: -1}, {Format: "csv", Persons: []realm.UserID{7_000_000}},
		{Format: "csv", Channels: []realm.ChannelID{7_000_000}}, {Format: "csv", Search: strings.Repeat("x", 201)},
		{Format: "csv", Persons: make([]realm.UserID, realm.MaxCompliancePlaces+1)},
	} {
		Do(s.Scene, s.olive, realm.DemandTwoOwners{On: true})
		if _, err := Try(s.Scene, s.olive, realm.AskComplianceExport{Criteria: c}); err == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
	alone := New(t)
	expectRefused(alone, alone.Join("Olive", realm.Owner), realm.DemandTwoOwners{On: true}, "at least 2 owners")
}

package realm_test

import (
	"fmt"
	"slices"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

const oneDay = 86400

// listedFullMembers returns the users that registrations list in the group of full members.
func listedFullMembers(s *Scene) []realm.UserID {
	return s.ViewAs(System).DirectMembers(s.Realm.FindGroupByName("role:fullmembers"))
}

// setWaitingPeriod sets the organization's waiting period.
func setWaitingPeriod(s *Scene, by realm.UserID, days int64) {
	s.T.Helper()
	Do(s, by, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "waiting_period_threshold", Value: days}}})
}

// runDueOnce runs one turn of the work that is due, and reports whether there was any.
func runDueOnce(s *Scene) bool {
	d := s.Realm.Due(s.Now)
	if d != nil {
		RunTurn(s, System, d)
	}
	return d != nil
}

// fullMemberEvents returns the events about full members that a user has received.
func fullMemberEvents(s *Scene, u realm.UserID) (out []string) {
	for _, e := range ListEventsOf[*realm.GroupMembersChanged](s, u) {
		if s.Realm.FindGroup(e.Group).Name == "role:fullmembers" {
			out = append(out, fmt.Sprint(e.Joined, e.Users))
		}
	}
	return out
}

func TestFullMembersAfterWaitingPeriod(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	setWaitingPeriod(s, olive, 3)
	if got := fullMemberEvents(s, ann); len(got) != 1 || got[0] != fmt.Sprint(false, []realm.UserID{ann}) {
		t.Errorf("after the waiting period was set Ann received %q", got)
	}
	s.Advance(oneDay)
	bo, gus, cy := s.Join("Bo"), s.Join("Gus", realm.Guest), s.Join("Cy")
	Do(s, olive, realm.DeactivateUser{User: cy})
	s.Advance(2*oneDay - 1)
	if runDueOnce(s) {
		t.Error("a turn is due although no waiting period is over")
	}
	s.Advance(1)
	if got := listedFullMembers(s); len(got) != 0 {
		t.Errorf("before the event registrations list %v", got)
	}
	runDueOnce(s)
	for _, u := range []realm.UserID{olive, ann, bo, gus} {
		if got := fullMemberEvents(s, u); len(got) != 1 || got[0] != fmt.Sprint(true, []realm.UserID{ann}) {
			t.Errorf("user %d received %q", u, got)
		}
	}
	if runDueOnce(s) {
		t.Error("a turn is due although all work is done")
	}
	s.Advance(oneDay)
	runDueOnce(s)
	if got := fullMemberEvents(s, gus); len(got) != 1 || got[0] != fmt.Sprint(true, []realm.UserID{bo}) {
		t.Errorf("a day later Gus received %q", got)
	}
	Do(s, olive, realm.ReactivateUser{User: cy})
	if got := fullMemberEvents(s, gus); len(got) != 1 || got[0] != fmt.Sprint(true, []realm.UserID{cy}) {
		t.Errorf("after Cy was reactivated Gus received %q", got)
	}
	member := realm.Member
	Do(s, olive, realm.EditUser{User: gus, Role: &member})
	if got := fullMemberEvents(s, ann); len(got) != 1 || got[0] != fmt.Sprint(true, []realm.UserID{gus}) {
		t.Errorf("after Gus became a member Ann received %q", got)
	}
	setWaitingPeriod(s, olive, 9)
	if got := fullMemberEvents(s, ann); len(got) != 1 || got[0] != fmt.Sprint(false, []realm.UserID{ann, bo, gus, cy}) {
		t.Errorf("after the longer waiting period was set Ann received %q", got)
	}
	s.Advance(9 * oneDay)
	setWaitingPeriod(s, olive, 0)
	if got := fullMemberEvents(s, ann); len(got) != 1 || got[0] != fmt.Sprint(true, []realm.UserID{ann, bo, gus, cy}) ||
		!slices.Equal(listedFullMembers(s), []realm.UserID{ann, bo, gus, cy}) {
		t.Errorf("without a waiting period Ann received %q", got)
	}
}

func TestFullMembersPerTurn(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	setWaitingPeriod(s, olive, 1)
	for range 3 {
		for range 500 {
			n := s.Realm.Org().NextUser
			Do(s, System, realm.CreateUser{Name: fmt.Sprint("New ", n), Email: fmt.Sprintf("new%d@example.com", n)})
		}
		s.Advance(1)
	}
	s.Advance(oneDay)
	var steps []int
	for runDueOnce(s) {
		for _, e := range ListEventsOf[*realm.GroupMembersChanged](s, olive) {
			steps = append(steps, len(e.Users))
		}
	}
	if fmt.Sprint(steps) != "[1000 500]" || len(listedFullMembers(s)) != 1500 {
		t.Errorf("events in steps of %v; %d users are listed", steps, len(listedFullMembers(s)))
	}
}

func TestPrivateChannelVisibilityOfFullMembers(t *testing.T) {
	for _, named := range []string{"role:fullmembers", "seniors", "among others"} {
		s := New(t)
		olive, ann, gus := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Gus", realm.Guest)
		full := s.Realm.FindGroupByName("role:fullmembers").ID
		v := realm.GroupValue{Group: full}
		switch named {
		case "seniors":
			v = realm.GroupValue{Group: Do(s, olive, realm.CreateGroup{Name: named, Subgroups: []realm.GroupID{full}})}
		case "among others":
			v = realm.GroupValue{Members: []realm.UserID{olive, gus}, Subgroups: []realm.GroupID{full}}
		}
		setWaitingPeriod(s, olive, 3)
		Do(s, olive, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "den"}},
			New: realm.NewChannel{Private: true}})
		den := s.Realm.FindChannelByName("den")
		Do(s, olive, realm.EditChannel{Channel: den.ID,
			Groups: []realm.GroupChange{{Name: "can_subscribe_group", New: v}}})
		sees := func(want bool) {
			t.Helper()
			if got := s.ViewAs(ann).MaySeeChannel(s.Realm.FindChannelByName("den")); got != want {
				t.Errorf("%s: Ann can see the channel: %t", named, got)
			}
		}
		s.ExpectNoEvents(ann)
		sees(false)
		s.Advance(3 * oneDay)
		sees(false)
		runDueOnce(s)
		s.ExpectEvents(ann, "user_group", "stream", "subscription")
		s.ExpectEvents(gus, "user_group")
		sees(true)
		setWaitingPeriod(s, olive, 4)
		s.ExpectEvents(ann, "realm", "user_group", "stream")
		s.ExpectEvents(gus, "realm", "user_group")
		sees(false)
		setWaitingPeriod(s, olive, 2)
		s.ExpectEvents(ann, "realm", "user_group", "stream", "subscription")
		sees(true)
	}
}

func TestWaitingPeriodStartsAtFirstLogin(t *testing.T) {
	s := New(t)
	olive := s.Join("Olive", realm.Owner)
	Do(s, System, realm.Grant{User: olive, CreateUsers: true})
	setWaitingPeriod(s, olive, 3)
	ann := Do(s, olive, realm.CreateUser{Email: "ann@example.org", Name: "Ann"})
	s.Advance(3 * oneDay)
	runDueOnce(s)
	if got := fullMemberEvents(s, olive); len(got) != 1 || got[0] != fmt.Sprint(true, []realm.UserID{ann}) {
		t.Errorf("Olive received %q", got)
	}
	Do(s, System, realm.LogIn{User: ann})
	if got := fullMemberEvents(s, olive); len(got) != 1 || got[0] != fmt.Sprint(false, []realm.UserID{ann}) ||
		len(listedFullMembers(s)) != 0 {
		t.Errorf("after Ann's first login Olive received %q", got)
	}
}

package realm_test

import (
	"fmt"
	"slices"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestGroupManagement(t *testing.T) {
	s := New(t)
	olive, ann, bo, gus := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", realm.Guest)
	ops := Do(s, ann, realm.CreateGroup{Name: "ops", Members: []realm.UserID{ann}})
	s.ExpectEvents(gus, "user_group")
	ExpectRefusal(s, gus, realm.CreateGroup{Name: "x"}, "Not allowed for guest users")
	ExpectRefusal(s, bo, realm.CreateGroup{Name: "OPS"}, "User group 'OPS' already exists.")
	ExpectRefusal(s, bo, realm.CreateGroup{Name: "role:x"}, "User group name cannot start with 'role:'.")
	ExpectRefusal(s, bo, realm.ChangeMembers{Group: ops, Add: []realm.UserID{bo}}, "Insufficient permission")
	ExpectRefusal(s, bo, realm.EditGroup{Group: ops}, "Insufficient permission")
	ExpectRefusal(s, ann, realm.EditGroup{Group: ops}, "No new data supplied")
	ExpectRefusal(s, ann, realm.ChangeMembers{Group: ops},
		`Nothing to do. Specify at least one of "add", "delete", "add_subgroups" or "delete_subgroups".`)
	Do(s, ann, realm.ChangeMembers{Group: ops, Add: []realm.UserID{bo}})
	s.ExpectEvents(gus, "user_group")
	ExpectRefusal(s, ann, realm.ChangeMembers{Group: ops, Add: []realm.UserID{bo}},
		"User 10 is already a member of this group")
	Do(s, bo, realm.ChangeMembers{Group: ops, Remove: []realm.UserID{bo}}) // any member may leave
	ExpectRefusal(s, olive, realm.ChangeMembers{Group: 2, Add: []realm.UserID{ann}}, "Insufficient permission")
}

func TestGroupsCannotContainThemselves(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	a := Do(s, ann, realm.CreateGroup{Name: "a"})
	b := Do(s, ann, realm.CreateGroup{Name: "b", Subgroups: []realm.GroupID{a}})
	ExpectRefusal(s, ann, realm.ChangeMembers{Group: a, AddSubgroups: []realm.GroupID{b}},
		"User group 9 is already a subgroup of one of the passed subgroups.")
	ExpectRefusal(s, ann, realm.DeactivateGroup{Group: a}, "CANNOT_DEACTIVATE_GROUP_IN_USE")
	Do(s, ann, realm.ChangeMembers{Group: b, RemoveGroups: []realm.GroupID{a}})
	Do(s, ann, realm.DeactivateGroup{Group: a})
	ExpectRefusal(s, ann, realm.DeactivateGroup{Group: a}, "User group is deactivated.")
	Do(s, ann, realm.EditGroup{Group: a, Reactivate: true})
	s.ExpectEvents(ann, "user_group", "user_group")
}

// Events about permission settings omit deactivated users, as registrations do.
func TestGroupSettingEventsOmitDeactivated(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	g := Do(s, ann, realm.CreateGroup{Name: "ops"})
	Do(s, olive, realm.DeactivateUser{User: bo})
	Do(s, ann, realm.EditGroup{Group: g, Settings: []realm.GroupChange{
		{Name: "can_leave_group", New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
	if e := ListEventsOf[*realm.GroupChanged](s, ann); len(e) != 1 ||
		len(e[0].Settings["can_leave_group"].Members) != 1 {
		t.Fatalf("Ann received %+v", e)
	}
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{
		{Name: "can_create_groups", New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
	if e := ListEventsOf[*realm.OrganizationChanged](s, ann); len(e) != 1 ||
		!slices.Equal(e[0].Group.Members, []realm.UserID{ann}) {
		t.Fatalf("for the organization setting Ann received %+v", e)
	}
}

// Groups and permission settings of the organization omit deactivated users. Users that can see a deactivated account
// get only the deactivation, which implies the rest. Guests that cannot see it get an event for each group and
// permission. After reactivation the user belongs to the groups again, and all users get the events.
func TestGroupsOmitDeactivatedUsers(t *testing.T) {
	s := New(t)
	olive, ann, bo, gus := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", realm.Guest)
	ops := Do(s, ann, realm.CreateGroup{Name: "ops", Members: []realm.UserID{ann, bo}})
	Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "team"}},
		Principals: []realm.Principal{{ID: ann}, {ID: gus}}, AllOrNothing: true})
	Do(s, ann, realm.EditChannel{Channel: s.Realm.FindChannelByName("team").ID,
		Groups: []realm.GroupChange{{Name: "can_subscribe_group",
			New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{
		{Name: "can_create_groups", New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{
		{Name: "can_access_all_users_group", New: realm.GroupValue{Group: s.Realm.SystemGroup("role:members")}}}})
	s.OpenQueue(gus) // a guest's queue must be opened again when the organization limits what guests see
	check := func(user realm.UserID, joined, told bool, members ...realm.UserID) {
		t.Helper()
		if got := s.ViewAs(olive).DirectMembers(s.Realm.FindGroup(ops)); !slices.Equal(got, members) {
			t.Errorf("members: %v, want %v", got, members)
		}
		groups := ListEventsOf[*realm.GroupMembersChanged](s, user)
		org := ListEventsOf[*realm.OrganizationChanged](s, user)
		channels := ListEventsOf[*realm.ChannelChanged](s, user)
		if !told {
			if len(groups)+len(org)+len(channels) > 0 {
				t.Errorf("user %d received %+v, %+v, %+v, want none", user, groups, org, channels)
			}
			return
		}
		if len(groups) != 3 || groups[2].Group != ops { // the first two are members and full members
			t.Errorf("for members user %d received %+v", user, groups)
		}
		for _, e := range groups {
			if e.Joined != joined || !slices.Equal(e.Users, []realm.UserID{bo}) {
				t.Errorf("for members user %d received %+v", user, e)
			}
		}
		if len(org) != 1 || org[0].Setting != "can_create_groups" || !slices.Equal(org[0].Group.Members, members) {
			t.Errorf("for the organization setting user %d received %+v", user, org)
		}
		if len(channels) != 1 || channels[0].Property != "can_subscribe_group" ||
			!slices.Equal(channels[0].Group.Members, members) {
			t.Errorf("for the channel setting user %d received %+v", user, channels)
		}
	}
	Do(s, olive, realm.DeactivateUser{User: bo})
	check(ann, false, false, ann)
	check(gus, false, true, ann)
	ExpectRefusal(s, ann, realm.ChangeMembers{Group: ops, Remove: []realm.UserID{bo}},
		"There is no member '10' in this user group")
	Do(s, olive, realm.ReactivateUser{User: bo})
	check(ann, true, true, ann, bo)
	check(gus, true, true, ann, bo)
}

// No other event tells administrators whether a reactivated account consents to exports. New accounts have no event.
func TestConsentEventsForNewAccounts(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	told := func(want ...realm.ExportConsentEvent) {
		t.Helper()
		var got []realm.ExportConsentEvent
		for _, e := range ListEventsOf[*realm.ExportConsentEvent](s, olive) {
			got = append(got, *e)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Olive received %+v, want %+v", got, want)
		}
		if e := ListEventsOf[*realm.ExportConsentEvent](s, ann); len(e) != 0 {
			t.Errorf("Ann received %+v, want none", e)
		}
	}
	bo := Do(s, System, realm.CreateUser{Name: "Bo", Email: "bo@example.com"})
	told()
	Do(s, bo, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "allow_private_data_export", Value: true}}})
	told(realm.ExportConsentEvent{User: bo, Consented: true})
	Do(s, olive, realm.DeactivateUser{User: bo})
	told()
	Do(s, olive, realm.ReactivateUser{User: bo})
	told(realm.ExportConsentEvent{User: bo, Consented: true})
	robot := Do(s, ann, realm.CreateBot{Name: "Robot", ShortName: "robot", Email: "robot-bot@example.com",
		Type: realm.GenericBot})
	told()
	Do(s, ann, realm.DeactivateUser{User: robot.ID, Bot: true})
	Do(s, olive, realm.ReactivateUser{User: robot.ID})
	told()
}

// Only administrators may change which users belong to the workplace. So the group for it must be a system group, or
// one that only administrators manage.
func TestWorkplaceUsersGroupNeedsAdminManagers(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	set := func(v realm.GroupValue) realm.ChangeOrganization {
		return realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "workplace_users_group", New: v}}}
	}
	anns := Do(s, ann, realm.CreateGroup{Name: "anns"})
	ours := Do(s, olive, realm.CreateGroup{Name: "ours"})
	const refusal = "'workplace_users_group' setting cannot be set to 'anns' group."
	ExpectRefusal(s, olive, set(realm.GroupValue{Group: anns}), refusal)
	ExpectRefusal(s, olive, set(realm.GroupValue{Members: []realm.UserID{ann}, Subgroups: []realm.GroupID{ours, anns}}),
		refusal)
	for _, v := range []realm.GroupValue{{Group: ours}, {Group: s.Realm.SystemGroup("role:everyone")},
		{Members: []realm.UserID{ann}, Subgroups: []realm.GroupID{ours}}} {
		Do(s, olive, set(v))
		s.ExpectEvents(ann, "realm")
	}
	Do(s, ann, realm.EditGroup{Group: anns, Settings: []realm.GroupChange{
		{Name: "can_manage_group", New: realm.GroupValue{Group: s.Realm.SystemGroup("role:administrators")}}}})
	Do(s, olive, set(realm.GroupValue{Group: anns}))
	s.ExpectEvents(ann, "realm")
}

// A user that another user adds to a group or removes from it gets a direct message of the notification bot.
func TestMembersChangedMessages(t *testing.T) {
	s := New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robot", ann)
	ops := Do(s, ann, realm.CreateGroup{Name: "ops"})
	reads := func(u realm.UserID, want ...string) {
		t.Helper()
		var got []string
		for _, e := range ListEventsOf[*realm.MessageArrived](s, u) {
			got = append(got, e.Message.Body.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("user %d received %q, want %q", u, got, want)
		}
	}
	by := "@_**Ann|" + ann.String() + "** "
	Do(s, ann, realm.ChangeMembers{Group: ops, Add: []realm.UserID{bo, ann, bot, bo}})
	reads(bo, by+"added you to the group @_*ops*.")
	reads(ann)
	reads(bot)
	Do(s, ann, realm.ChangeMembers{Group: ops, Remove: []realm.UserID{ann, bot, bo}})
	reads(bo, by+"removed you from the group @_*ops*.")
	reads(ann)
	reads(bot)
	many := []realm.UserID{bo}
	for len(many) <= realm.MaxNewSubscriptionMessages {
		n := s.Realm.Org().NextUser
		many = append(many, Do(s, System, realm.CreateUser{Name: fmt.Sprint("New ", n),
			Email: fmt.Sprintf("new%d@example.com", n)}))
	}
	Do(s, ann, realm.ChangeMembers{Group: ops, Add: many})
	reads(bo)
}

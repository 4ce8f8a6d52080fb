package realm_test

import (
	"slices"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestGroupsAreManagedByTheirCreators(t *testing.T) {
	s := New(t)
	olive, ann, bo, gus := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", realm.Guest)
	ops := Do(s, ann, realm.CreateGroup{Name: "ops", Members: []realm.UserID{ann}})
	s.Hears(gus, "user_group")
	Refused(s, gus, realm.CreateGroup{Name: "x"}, "Not allowed for guest users")
	Refused(s, bo, realm.CreateGroup{Name: "OPS"}, "User group 'OPS' already exists.")
	Refused(s, bo, realm.CreateGroup{Name: "role:x"}, "User group name cannot start with 'role:'.")
	Refused(s, bo, realm.ChangeMembers{Group: ops, Add: []realm.UserID{bo}}, "Insufficient permission")
	Refused(s, bo, realm.EditGroup{Group: ops}, "Insufficient permission")
	Refused(s, ann, realm.EditGroup{Group: ops}, "No new data supplied")
	Refused(s, ann, realm.ChangeMembers{Group: ops}, `Nothing to do. Specify at least one of "add", "delete", "add_subgroups" or "delete_subgroups".`)
	Do(s, ann, realm.ChangeMembers{Group: ops, Add: []realm.UserID{bo}})
	s.Hears(gus, "user_group")
	Refused(s, ann, realm.ChangeMembers{Group: ops, Add: []realm.UserID{bo}}, "User 10 is already a member of this group")
	Do(s, bo, realm.ChangeMembers{Group: ops, Remove: []realm.UserID{bo}}) // anyone may leave
	Refused(s, olive, realm.ChangeMembers{Group: 2, Add: []realm.UserID{ann}}, "Insufficient permission")
}

func TestGroupsCannotContainThemselves(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	a := Do(s, ann, realm.CreateGroup{Name: "a"})
	b := Do(s, ann, realm.CreateGroup{Name: "b", Subgroups: []realm.GroupID{a}})
	Refused(s, ann, realm.ChangeMembers{Group: a, AddSubgroups: []realm.GroupID{b}}, "User group 9 is already a subgroup of one of the passed subgroups.")
	Refused(s, ann, realm.DeactivateGroup{Group: a}, "CANNOT_DEACTIVATE_GROUP_IN_USE")
	Do(s, ann, realm.ChangeMembers{Group: b, RemoveGroups: []realm.GroupID{a}})
	Do(s, ann, realm.DeactivateGroup{Group: a})
	Refused(s, ann, realm.DeactivateGroup{Group: a}, "User group is deactivated.")
	Do(s, ann, realm.EditGroup{Group: a, Reactivate: true})
	s.Hears(ann, "user_group", "user_group")
}

// A permission setting is told as it is shown: without who is gone.
func TestGroupSettingsAreToldWithoutClosedAccounts(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	g := Do(s, ann, realm.CreateGroup{Name: "ops"})
	Do(s, olive, realm.DeactivateUser{User: bo})
	Do(s, ann, realm.EditGroup{Group: g, Settings: []realm.GroupChange{{Name: "can_leave_group", New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
	if e := HeardOf[*realm.GroupChanged](s, ann); len(e) != 1 || len(e[0].Settings["can_leave_group"].Members) != 1 {
		t.Fatalf("told %+v", e)
	}
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_create_groups", New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
	if e := HeardOf[*realm.OrganizationChanged](s, ann); len(e) != 1 || !slices.Equal(e[0].Group.Members, []realm.UserID{ann}) {
		t.Fatalf("of the organization Ann heard %+v", e)
	}
}

// TestGroupsShowNobodyDeactivated: groups and the organization's permissions read without people who are deactivated, and
// everybody hears so; who comes back belongs to them again.
func TestGroupsShowNobodyDeactivated(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	ops := Do(s, ann, realm.CreateGroup{Name: "ops", Members: []realm.UserID{ann, bo}})
	Do(s, olive, realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_create_groups", New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
	check := func(joined bool, members ...realm.UserID) {
		t.Helper()
		if got := s.View(olive).DirectMembers(s.Realm.FindGroup(ops)); !slices.Equal(got, members) {
			t.Errorf("members: %v, want %v", got, members)
		}
		told := HeardOf[*realm.GroupMembersChanged](s, ann)
		if !slices.ContainsFunc(told, func(e *realm.GroupMembersChanged) bool {
			return e.Group == ops && e.Joined == joined && slices.Equal(e.Users, []realm.UserID{bo})
		}) {
			t.Errorf("of members Ann heard %+v", told)
		}
		if e := HeardOf[*realm.OrganizationChanged](s, ann); len(e) != 1 || e[0].Setting != "can_create_groups" || !slices.Equal(e[0].Group.Members, members) {
			t.Errorf("of the organization Ann heard %+v", e)
		}
	}
	Do(s, olive, realm.DeactivateUser{User: bo})
	check(false, ann)
	Refused(s, ann, realm.ChangeMembers{Group: ops, Remove: []realm.UserID{bo}}, "There is no member '10' in this user group")
	Do(s, olive, realm.ReactivateUser{User: bo})
	check(true, ann, bo)
}

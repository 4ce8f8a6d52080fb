package realm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// provided updates a user as a provider describes the person "1".
func provided(s *Scene, u realm.UserID, change func(*realm.Person)) realm.ProviderUpdate {
	p := realm.Person{Identity: identity("1"), Active: true}
	change(&p)
	return Do(s, System, realm.UpdateFromProvider{User: u, Person: p})
}

func roleIs(r realm.Role) func(*realm.Person) { return func(p *realm.Person) { p.Role = r } }

// The rules of a provider give a role, and the end of a rule takes it away again. Owners that the provider has not
// made keep their role.
func TestRolesOfProviders(t *testing.T) {
	s := New(t)
	ann, olive := s.Join("Ann"), s.Join("Olive", realm.Owner)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	for _, x := range []struct{ given, want realm.Role }{
		{0, realm.Member}, {realm.Administrator, realm.Administrator}, {0, realm.Member}, {0, realm.Member},
		{realm.Moderator, realm.Moderator}, {realm.Guest, realm.Guest}, {0, realm.Guest},
		{realm.Administrator, realm.Administrator}, {realm.Owner, realm.Owner}, {realm.Member, realm.Member},
	} {
		provided(s, ann, roleIs(x.given))
		if got := s.ViewAs(System).Find(ann).Role; got != x.want {
			t.Errorf("with the role %d by the rules, the user has %d, want %d", x.given, got, x.want)
		}
	}
	admin := realm.Administrator
	Do(s, olive, realm.EditUser{User: ann, Role: &admin}) // by hand
	provided(s, ann, roleIs(0))
	if got := s.ViewAs(System).Find(ann).Role; got != realm.Administrator {
		t.Errorf("the provider takes a role away that an owner has given: %d", got)
	}
	Do(s, System, realm.LinkIdentity{User: olive, Identity: identity("2")})
	for _, role := range []realm.Role{0, realm.Member, realm.Administrator} {
		provided(s, olive, func(p *realm.Person) { p.Identity, p.Role = identity("2"), role })
		if got := s.ViewAs(System).Find(olive).Role; got != realm.Owner {
			t.Errorf("the provider lowers an owner that it has not made to %d", got)
		}
	}
}

// A provider cannot take the only owner away, even one that it has made.
func TestProviderKeepsTheLastOwner(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	provided(s, ann, roleIs(realm.Owner))
	member := realm.Member
	s.ViewAs(System).EachUser(func(u *realm.User) {
		if u.ID != ann && u.Role == realm.Owner && !u.System {
			Do(s, System, realm.EditUser{User: u.ID, Role: &member})
		}
	})
	provided(s, ann, roleIs(0))
	provided(s, ann, func(p *realm.Person) { p.Active = false })
	if u := s.ViewAs(System).Find(ann); u.Role != realm.Owner || !u.Active {
		t.Errorf("the only owner is now %d, active %t", u.Role, u.Active)
	}
}

// Groups of the rules get the user, and lose them again unless another user has added them.
func TestGroupsOfProviders(t *testing.T) {
	s := New(t)
	ann, olive := s.Join("Ann"), s.Join("Olive", realm.Owner)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	group := func(name string, members ...realm.UserID) realm.GroupID {
		return Do(s, olive, realm.CreateGroup{Name: name, Members: members})
	}
	byHand, byRule := group("by hand", ann), group("by rule", olive)
	in := func(g realm.GroupID) bool { return slices.Contains(s.Realm.FindGroup(g).Members, ann) }
	out := provided(s, ann, func(p *realm.Person) {
		p.Groups = []string{"by hand", "by rule", "by rule", "role:owners", "none"}
	})
	if !in(byHand) || !in(byRule) || !out.Changed || len(out.Problems) != 2 {
		t.Errorf("after the rules: %t %t %+v", in(byHand), in(byRule), out)
	}
	if again := provided(s, ann, func(p *realm.Person) { p.Groups = []string{"by hand", "by rule"} }); again.Changed {
		t.Error("the same groups again are a change")
	}
	provided(s, ann, func(*realm.Person) {})
	if !in(byHand) || in(byRule) {
		t.Errorf("after the end of the rules: %t %t", in(byHand), in(byRule))
	}
}

// Users that disconnect a login lose what its rules gave them: otherwise they would keep it for ever.
func TestUnlinkTakesRightsAway(t *testing.T) {
	s := New(t)
	ann, olive := s.Join("Ann"), s.Join("Olive", realm.Owner)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("2")})
	g := Do(s, olive, realm.CreateGroup{Name: "by rule", Members: []realm.UserID{olive}})
	provided(s, ann, func(p *realm.Person) { p.Role, p.Groups = realm.Administrator, []string{"by rule"} })
	Do(s, ann, realm.UnlinkIdentity{User: ann, Identity: identity("1")})
	if u := s.ViewAs(System).Find(ann); u.Role != realm.Member || slices.Contains(s.Realm.FindGroup(g).Members, ann) {
		t.Errorf("without the login the user has the role %d, groups %v", u.Role, s.Realm.FindGroup(g).Members)
	}
}

// A directory sets names and profile values; values that the organization does not accept are left out.
func TestProfilesOfProviders(t *testing.T) {
	s := New(t)
	ann, olive := s.Join("Ann"), s.Join("Olive", realm.Owner)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	field := Do(s, olive, realm.SaveProfileField{New: true, Type: realm.ShortText, Name: ptr("Phone")})
	out := provided(s, ann, func(p *realm.Person) {
		p.Name, p.Fields = "Ann Lee", map[string]string{"Phone": "+49 30", "Other": "x"}
	})
	if u := s.ViewAs(System).Find(ann); u.Name != "Ann Lee" || u.Profile[field] != "+49 30" || len(out.Problems) != 1 {
		t.Errorf("the account: %q %v, problems %q", u.Name, u.Profile, out.Problems)
	}
	out = provided(s, ann, func(p *realm.Person) {
		p.Name, p.Fields = strings.Repeat("x", 200), map[string]string{"Phone": strings.Repeat("1", 51)}
	})
	if u := s.ViewAs(System).Find(ann); u.Name != "Ann Lee" || u.Profile[field] != "+49 30" || len(out.Problems) != 2 {
		t.Errorf("after values that are too long: %q %v, problems %q", u.Name, u.Profile, out.Problems)
	}
	provided(s, ann, func(p *realm.Person) { p.Fields = map[string]string{"Phone": ""} })
	if u := s.ViewAs(System).Find(ann); u.Profile[field] != "" {
		t.Errorf("a value that the directory has no more: %v", u.Profile)
	}
}

// A provider deactivates accounts and reactivates those that it has deactivated, but none that an administrator has.
func TestActivityByProviders(t *testing.T) {
	s := New(t)
	ann, olive := s.Join("Ann"), s.Join("Olive", realm.Owner)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	active := func(a bool) bool {
		provided(s, ann, func(p *realm.Person) { p.Active = a })
		return s.ViewAs(System).Find(ann).Active
	}
	for _, a := range []bool{true, false, false, true} {
		if active(a) != a {
			t.Errorf("the account is not active: %t, as the provider says", a)
		}
	}
	Do(s, olive, realm.DeactivateUser{User: ann})
	if active(true) {
		t.Error("the provider reactivates an account that an owner has deactivated")
	}
	for _, x := range []struct {
		as   realm.UserID
		who  realm.UserID
		name realm.IdentityName
	}{{olive, ann, identity("1")}, {ann, ann, identity("1")}, {System, olive, identity("1")},
		{System, ann, identity("2")}, {System, 999, identity("1")}} {
		if _, err := Try(s, x.as, realm.UpdateFromProvider{User: x.who,
			Person: realm.Person{Identity: x.name, Active: true, Role: realm.Owner}}); err == nil {
			t.Errorf("%d may update %d as %v", x.as, x.who, x.name)
		}
	}
	if n := len(s.ViewAs(System).PeopleOf(issuer, 0, 10)); n != 1 {
		t.Errorf("the provider has %d people", n)
	}
	if n := len(s.ViewAs(olive).PeopleOf(issuer, 0, 10)); n != 0 {
		t.Errorf("an owner sees %d identities of others", n)
	}
}

// The audit log has the identities, the second factors and what providers do to accounts.
func TestAuditOfLogins(t *testing.T) {
	s := New(t)
	ann, olive := s.Join("Ann"), s.Join("Olive", realm.Owner)
	Do(s, System, realm.LinkIdentity{User: ann, Identity: identity("1")})
	Do(s, System, realm.SetFactor{User: ann, Factor: realm.Factor{Secret: "x", Recovery: [][32]byte{{1}}}})
	Do(s, System, realm.UseFactor{User: ann, Recovery: [32]byte{1}})
	Do(s, System, realm.UseFactor{User: ann, Step: 7})
	Do(s, olive, realm.RemoveFactor{User: ann})
	provided(s, ann, func(p *realm.Person) { p.Active = false })
	provided(s, ann, func(p *realm.Person) { p.Active = true })
	Do(s, System, realm.UnlinkIdentity{User: ann, Identity: identity("1")})
	page, _, err := s.ViewAs(olive).AuditLog(realm.AuditFilter{User: ann, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page {
		if e.Kind != "user.create" {
			got = append(got, e.Kind)
		}
	}
	slices.Reverse(got)
	want := []string{"identity.link", "factor.add", "factor.recovery", "factor.remove", "user.deactivate",
		"identity.suspend", "user.reactivate", "identity.suspend", "identity.unlink"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
}

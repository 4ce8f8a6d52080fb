package realm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// scimPerson returns the command that makes an account with a user name.
func scimPerson(name string) realm.SaveScimUser {
	return realm.SaveScimUser{UserName: &name, Name: ptr("New " + name), Email: ptr(name + "@example.org")}
}

// refusedBy fails unless a command of the server is refused with an error, before it has recorded a fact.
func refusedBy[A any](s *Scene, c realm.Command[A], want error) {
	s.T.Helper()
	before := s.Realm.Seq()
	if _, err := Try(s, System, c); err != want || s.Realm.Seq() != before {
		s.T.Errorf("%+v: %v, want %v", c, err, want)
	}
}

// Accounts of SCIM are made, changed, deactivated at once, deleted, and come back under the same id.
func TestScimAccounts(t *testing.T) {
	s := New(t)
	id := Do(s, System, scimPerson("dana"))
	see := func() realm.ScimAccount {
		t.Helper()
		x, err := s.ViewAs(System).ScimAccount(id)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	if x := see(); x.UserName != "dana" || x.Name != "New dana" || x.Email != "dana@example.org" || !x.Active ||
		x.Role != realm.Member {
		t.Errorf("the account: %+v", x)
	}
	Do(s, System, realm.SaveScimUser{User: id, Name: ptr("Dana Ruiz"), Given: ptr("Dana"), ExternalID: ptr("e1"),
		Role: realm.Moderator, Email: ptr("d.ruiz@example.org")})
	if x := see(); x.Name != "Dana Ruiz" || x.Given != "Dana" || x.ExternalID != "e1" || x.Role != realm.Moderator ||
		x.UserName != "dana" || x.Email != "d.ruiz@example.org" {
		t.Errorf("the changed account: %+v", x)
	}
	key := Do(s, System, realm.IssueAPIKey{User: id})
	Do(s, System, realm.OpenBrowserSession{LogIn: realm.LogIn{User: id}})
	queue := s.OpenQueue(id)
	Do(s, System, realm.SaveScimUser{User: id, Active: ptr(false)})
	if u := s.ViewAs(System).Find(id); u.Active || len(s.Realm.StoredBrowserSessions(id)) != 0 {
		t.Errorf("a deactivated account has sessions; key %q, queue %q, %+v", key, queue, u)
	}
	Do(s, System, realm.SaveScimUser{User: id, Active: ptr(true)})
	if !see().Active {
		t.Error("the account is not active again")
	}
	Do(s, System, realm.RemoveScimUser{User: id})
	if _, err := s.ViewAs(System).ScimAccount(id); err != realm.ErrScimGone || s.ViewAs(System).Find(id).Active {
		t.Errorf("a deleted account: %v", err)
	}
	refusedBy(s, realm.SaveScimUser{User: id, Active: ptr(true)}, realm.ErrScimGone)
	refusedBy(s, realm.RemoveScimUser{User: id}, realm.ErrScimGone)
	again := scimPerson("dana")
	again.Email = ptr("d.ruiz@example.org")
	if back := Do(s, System, again); back != id || !see().Active || see().ExternalID != "" {
		t.Errorf("the account comes back as %d, want %d: %+v", back, id, see())
	}
}

// A client of SCIM makes no owner and changes none; names belong to one account; only the server may send commands.
func TestScimRights(t *testing.T) {
	s := New(t)
	olive, ann := s.Join("Olive", realm.Owner), s.Join("Ann")
	bot := s.JoinBot("Robot", ann)
	owner := scimPerson("boss")
	owner.Role = realm.Owner
	refusedBy(s, owner, realm.ErrScimOwner)
	for _, c := range []realm.SaveScimUser{{Name: ptr("Other Name")}, {Email: ptr("other@example.org")},
		{Active: ptr(false)}, {Role: realm.Member}, {Role: realm.Guest}} {
		c.User = olive
		refusedBy(s, c, realm.ErrScimOwner)
	}
	refusedBy(s, realm.RemoveScimUser{User: olive}, realm.ErrScimOwner)
	refusedBy(s, realm.SaveScimUser{User: ann, Role: realm.Owner}, realm.ErrScimOwner)
	Do(s, System, realm.SaveScimUser{User: olive, ExternalID: ptr("e9"), Active: ptr(true)}) // nothing of the account
	for _, id := range []realm.UserID{bot, 999, 0} {
		refusedBy(s, realm.RemoveScimUser{User: id}, realm.ErrScimGone)
	}
	refusedBy(s, realm.SaveScimUser{User: bot, Name: ptr("Bad")}, realm.ErrScimGone)
	taken := scimPerson("x")
	taken.Email = ptr(s.ViewAs(System).Find(ann).Email)
	refusedBy(s, taken, realm.ErrScimTaken)
	Do(s, System, scimPerson("dana"))
	refusedBy(s, scimPerson("DANA"), realm.ErrScimTaken)
	refusedBy(s, realm.SaveScimUser{User: ann, UserName: ptr("Dana")}, realm.ErrScimTaken)
	refusedBy(s, realm.SaveScimUser{User: ann, Email: ptr("dana@example.org")}, realm.ErrScimTaken)
	for _, who := range []realm.UserID{olive, ann} {
		ExpectRefusal(s, who, scimPerson("eve"), "Insufficient permission")
		ExpectRefusal(s, who, realm.RemoveScimUser{User: ann}, "Insufficient permission")
		ExpectRefusal(s, who, realm.SaveScimGroup{Name: ptr("Eves")}, "Insufficient permission")
		ExpectRefusal(s, who, realm.RemoveScimGroup{Group: 99}, "Insufficient permission")
		ExpectRefusal(s, who, realm.AddScimToken{Name: "x"}, "Insufficient permission")
		ExpectRefusal(s, who, realm.RevokeScimToken{ID: 1}, "Insufficient permission")
		if _, err := s.ViewAs(who).ScimAccount(ann); err == nil || s.ViewAs(who).ScimTokens() != nil {
			t.Error("a user sees what only the server may see")
		}
	}
	long := strings.Repeat("x", 513)
	for _, c := range []realm.SaveScimUser{{User: ann, UserName: ptr("")}, {User: ann, ExternalID: &long},
		{User: ann, Given: &long}, {User: ann, Family: ptr("\xff")}, {User: ann, Formatted: ptr("\x00")},
		{User: ann, Name: ptr("x")}, {User: ann, Email: ptr("no address")}, {UserName: ptr("nobody")}} {
		ExpectRefusal(s, System, c, "BAD_REQUEST")
	}
}

// Groups of SCIM have the members that the client names. Bots, subgroups and deactivated accounts stay as they are.
func TestScimGroups(t *testing.T) {
	s := New(t)
	olive, ann, bo := s.Join("Olive", realm.Owner), s.Join("Ann"), s.Join("Bo")
	bot := s.JoinBot("Robot", ann)
	id := Do(s, System, realm.SaveScimGroup{Name: ptr("Cooks"), ExternalID: ptr("g1"),
		Members: []realm.UserID{bo, ann, ann}})
	members := func(want ...realm.UserID) {
		t.Helper()
		x, err := s.ViewAs(System).ScimUserGroup(id)
		if err != nil || !slices.Equal(x.Members, want) {
			t.Errorf("members %v, want %v: %v", x.Members, want, err)
		}
	}
	members(ann, bo)
	Do(s, olive, realm.ChangeMembers{Group: id, Add: []realm.UserID{bot}})
	Do(s, System, realm.SaveScimGroup{Group: id, Add: []realm.UserID{olive}, Remove: []realm.UserID{bo, bot, 999}})
	members(olive, ann)
	Do(s, System, realm.SaveScimGroup{Group: id, HasMembers: true, Members: []realm.UserID{bo}})
	members(bo)
	if g := s.Realm.FindGroupByName("cooks"); !slices.Contains(g.Members, bot) {
		t.Error("the bot has left the group")
	}
	for _, c := range []realm.SaveScimGroup{{Group: id, Add: []realm.UserID{bot}},
		{Group: id, Add: []realm.UserID{999}}, {Name: ptr("@bad")}, {},
		{Name: ptr("Many"), Members: make([]realm.UserID, realm.MaxScimMembers+1)}} {
		ExpectRefusal(s, System, c, "BAD_REQUEST")
	}
	refusedBy(s, realm.SaveScimGroup{Name: ptr("COOKS")}, realm.ErrScimTaken)
	refusedBy(s, realm.SaveScimGroup{Group: 1, Name: ptr("Rulers")}, realm.ErrScimGone) // a group of the system
	other := Do(s, System, realm.SaveScimGroup{Name: ptr("Guards")})
	refusedBy(s, realm.SaveScimGroup{Group: other, Name: ptr("cooks")}, realm.ErrScimTaken)
	Do(s, System, realm.RemoveScimGroup{Group: id})
	refusedBy(s, realm.RemoveScimGroup{Group: id}, realm.ErrScimGone)
	if back := Do(s, System, realm.SaveScimGroup{Name: ptr("Cooks"), Members: []realm.UserID{ann}}); back != id {
		t.Errorf("the group comes back as %d, want %d", back, id)
	}
	members(ann)
}

// Tokens have rights and an end, there are few of them, and a revoked one works no more.
func TestScimTokens(t *testing.T) {
	s := New(t)
	works := func(secret string) (found bool) {
		RunTurn(s, System, func(t *realm.Turn) (any, error) {
			_, found = t.FindScimToken(t.Hash(secret))
			return nil, nil
		})
		return found
	}
	x := Do(s, System, realm.AddScimToken{Name: " Okta ", Rights: []string{"users", "groups", "users"}, Lifetime: 3600})
	if x.Name != "Okta" || len(x.Rights) != 2 || x.Expires != s.Now+3600 || !works(x.Secret) {
		t.Errorf("the token: %+v", x)
	}
	s.Advance(3600)
	if works(x.Secret) {
		t.Error("the token works after its end")
	}
	y := Do(s, System, realm.AddScimToken{Name: "Entra"})
	if y.ID == x.ID || !works(y.Secret) {
		t.Errorf("the second token: %+v", y)
	}
	Do(s, System, realm.RevokeScimToken{ID: y.ID})
	if works(y.Secret) {
		t.Error("a revoked token works")
	}
	ExpectRefusal(s, System, realm.RevokeScimToken{ID: y.ID}, "There is no such token.")
	for _, c := range []realm.AddScimToken{{}, {Name: "x", Rights: []string{"owners"}}, {Name: "x", Lifetime: 1},
		{Name: strings.Repeat("x", 101)}, {Name: "x", Lifetime: -5}} {
		ExpectRefusal(s, System, c, "BAD_REQUEST")
	}
	for i := range realm.MaxScimTokens - 1 {
		Do(s, System, realm.AddScimToken{Name: fmt.Sprint("t", i)})
	}
	ExpectRefusal(s, System, realm.AddScimToken{Name: "one more"}, "BAD_REQUEST")
}

package realm

import (
	"cmp"
	"slices"
)

// A login provider can decide more than who a user is: its groups and attributes give roles and memberships, a
// directory also names, profile values, and whether the account is active. The row of the identity has the rights that
// the provider gave, so that it takes away only those.

// providersLevel is the rule level from which on providers give roles, memberships and activity.
const providersLevel uint16 = 5

const (
	// MaxGivenGroups limits the groups that a provider gives to one user.
	MaxGivenGroups = 100
	// MaxGivenFields limits the profile values that a provider gives to one user: an organization has at most 100.
	MaxGivenFields = maxProfileFields
)

// Person is an account at a login provider, as the provider describes it at this moment.
type Person struct {
	Identity IdentityName
	Name     string // full name that the account gets; "": it keeps its own
	// Role is the role by the rules of the provider; 0: no rule is about the person.
	Role Role
	// Groups are the names of the groups by the rules of the provider.
	Groups []string
	// Fields are values of custom profile fields, by the name of the field; "" removes a value.
	Fields map[string]string
	// Picture is the name of the file with the picture of the account; "": the account keeps its own.
	Picture string
	// Active says that the account can be used: a directory deactivates those of people that have left, and reactivates
	// accounts that it has deactivated.
	Active bool
}

// UpdateFromProvider asks to give an account what its login provider says about the person. Only the server sends it.
// Values that the organization cannot accept are left out; the answer has the reasons, for the log.
//
// A provider never changes an owner, and never deactivates one, unless it has made the owner itself.
type UpdateFromProvider struct {
	User   UserID
	Person Person
}

// ProviderUpdate is the answer of UpdateFromProvider.
type ProviderUpdate struct {
	Changed  bool
	Problems []string
}

func (c UpdateFromProvider) Decide(t *Turn) (out ProviderUpdate, err error) {
	u := t.Find(c.User)
	i := slices.IndexFunc(t.IdentitiesOf(c.User), func(x Identity) bool { return x.IdentityName == c.Person.Identity })
	switch {
	case !t.System || u == nil || u.System || u.IsBot():
		return out, errPermission()
	case i < 0 || u.Deleted:
		return out, Missing("There is no such login.")
	case t.Level() < providersLevel:
		return out, errLowLevel()
	case t.Org().Deactivated:
		return out, nil
	}
	p := providerUpdate{Turn: t, user: u.ID, person: &c.Person, given: t.IdentitiesOf(u.ID)[i], out: &out}
	before := p.given
	if p.updateActive(); !t.Find(u.ID).Active {
		p.save(before)
		return out, nil
	}
	p.updateRole()
	p.updateGroups()
	p.updateProfile()
	p.save(before)
	return out, nil
}

// takeGivenRights takes away the rights that the rules of a provider have given, before the identity is disconnected.
func (t *Turn) takeGivenRights(u UserID, name IdentityName) {
	for _, x := range t.IdentitiesOf(u) {
		if x.IdentityName == name && (x.Role != 0 || len(x.Groups) > 0) {
			p := providerUpdate{Turn: t, user: u, person: &Person{}, given: x, out: &ProviderUpdate{}}
			p.updateRole()
			p.updateGroups()
		}
	}
}

// providerUpdate is the work of UpdateFromProvider for one account.
type providerUpdate struct {
	*Turn
	user   UserID
	person *Person
	given  Identity // rights that the provider gives from now on
	out    *ProviderUpdate
}

func (p *providerUpdate) problem(text string) { p.out.Problems = append(p.out.Problems, text) }

// record records a fact about the account.
func (p *providerUpdate) record(f Fact) {
	p.out.Changed = true
	p.recordWithVisibility(f)
}

// save records the rights that the provider gives from now on.
func (p *providerUpdate) save(before Identity) {
	x := &p.given
	if x.Role != before.Role || x.Suspended != before.Suspended || !slices.Equal(x.Groups, before.Groups) {
		p.Record(&IdentityChanged{User: p.user, Identity: p.given})
	}
}

// updateActive deactivates or reactivates the account. It reactivates only accounts that the provider
// has deactivated.
func (p *providerUpdate) updateActive() {
	u := p.Find(p.user)
	switch {
	case p.person.Active && p.given.Suspended:
		p.given.Suspended = false
		if u.Active {
			return
		}
		if _, err := (ReactivateUser{User: u.ID}).Decide(p.Turn); err != nil {
			p.problem(err.Error())
			return
		}
		p.out.Changed = true
	case !p.person.Active && u.Active && !p.mayChange(u):
		p.problem("an owner that the provider has not made is not deactivated")
	case !p.person.Active && u.Active:
		p.given.Suspended, p.out.Changed = true, true
		if _, err := (DeactivateUser{User: u.ID}).Decide(p.Turn); err != nil {
			p.problem(err.Error())
		}
	}
}

// mayChange reports whether the provider may take rights away from the account.
func (p *providerUpdate) mayChange(u *User) bool {
	return u.Role != Owner || p.given.Role == Owner && !p.isLastOwner(u)
}

// updateRole gives the role of the rules. If they have none any more, it takes away the one that they gave.
func (p *providerUpdate) updateRole() {
	u, to := p.Find(p.user), p.person.Role
	if to == 0 { // a guest by the rules stays one: the end of a rule must not give rights
		if p.given.Role == 0 || p.given.Role >= Member || u.Role != p.given.Role {
			p.given.Role = 0
			return
		}
		to = Member
	}
	if u.Role != to {
		if !p.mayChange(u) {
			return
		}
		for _, f := range p.planRoleChange(u, to) {
			p.record(f)
		}
	}
	p.given.Role = p.person.Role
}

// updateGroups adds the account to the groups of the rules, and removes it from those that they gave before.
func (p *providerUpdate) updateGroups() {
	var wanted []GroupID
	for _, name := range p.person.Groups[:min(len(p.person.Groups), MaxGivenGroups)] {
		if g := p.FindGroupByName(name); g == nil || g.System || g.Deactivated {
			p.problem("there is no group " + name)
		} else if !slices.Contains(wanted, g.ID) {
			wanted = append(wanted, g.ID)
		}
	}
	var facts []*MembersChanged
	var given []GroupID
	for _, id := range wanted {
		if !containsSorted(p.groups.must(id).Members, p.user) {
			facts = append(facts, &MembersChanged{Group: id, Joined: true, Users: []UserID{p.user}})
			given = append(given, id)
		} else if slices.Contains(p.given.Groups, id) {
			given = append(given, id)
		}
	}
	for _, id := range p.given.Groups {
		if g := p.groups.find(id); !slices.Contains(wanted, id) && g != nil && containsSorted(g.Members, p.user) {
			facts = append(facts, &MembersChanged{Group: id, Users: []UserID{p.user}})
		}
	}
	slices.Sort(given)
	p.given.Groups = given
	if len(facts) == 0 {
		return
	}
	if err := p.checkRegistrationSize(registeredIDBytes * len(facts)); err != nil {
		p.problem(err.Error())
		return
	}
	p.trackChannelVisibility(func() {
		for _, f := range facts {
			p.record(f)
		}
	})
}

// updateProfile sets the name and the profile values.
func (p *providerUpdate) updateProfile() {
	u := p.Find(p.user)
	if name := p.person.Name; name != "" && name != u.Name {
		if err := p.checkName(name, u.ID); err != nil {
			p.problem("name: " + err.Error())
		} else {
			p.record(&UserChanged{ID: u.ID, Name: &name, OldName: u.Name})
		}
	}
	if file := p.person.Picture; file != "" && (u.Avatar != "U" || u.AvatarFile != file) {
		p.record(&AvatarChanged{User: u.ID, Source: "U", File: file, Version: u.AvatarVersion + 1})
	}
	known := 0
	for _, f := range p.ProfileFields() {
		value, has := p.person.Fields[f.Name]
		if !has {
			continue
		}
		known++
		facts, err := p.profileChanges(p.Find(u.ID), []ProfileValue{{Field: f.ID, Value: &value}}, true)
		if err != nil {
			p.problem("profile field " + f.Name + ": " + err.Error())
		}
		for _, x := range facts {
			p.record(x)
		}
	}
	if known < len(p.person.Fields) {
		p.problem("the organization has not all of the profile fields")
	}
}

// IdentityChanged has the rights that a provider gives to a user from now on. It replaces the identity of that name.
type IdentityChanged struct {
	User     UserID
	Identity Identity
}

func (f *IdentityChanged) apply(r *Realm) {
	l := r.small.identities.change(f.User)
	l.List = slices.Clone(l.List)
	for i := range l.List {
		if l.List[i].IdentityName == f.Identity.IdentityName {
			l.List[i] = f.Identity
		}
	}
}

func (*IdentityChanged) notices(*Realm) []Notice { return nil }

// KnownPerson is a user with an identity of a provider.
type KnownPerson struct {
	User     UserID
	Identity Identity
	Active   bool
}

// PeopleOf returns up to limit users with an identity of a provider whose ids are larger than after, ascending. Only
// the server asks for it.
func (v View) PeopleOf(issuer string, after UserID, limit int) (out []KnownPerson) {
	if !v.System {
		return nil
	}
	for u, l := range v.small.identities.all() {
		if u <= after {
			continue
		}
		for _, x := range l.List {
			if x.Issuer == issuer {
				out = append(out, KnownPerson{u, x, v.users.must(u).Active})
			}
		}
	}
	slices.SortFunc(out, func(a, b KnownPerson) int { return cmp.Compare(a.User, b.User) })
	for len(out) > limit && limit > 0 { // all identities of a user are in one answer
		if out[limit-1].User != out[limit].User {
			return out[:limit]
		}
		limit++
	}
	return out
}

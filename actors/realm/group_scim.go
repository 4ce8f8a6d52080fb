package realm

import (
	"slices"
	"unicode/utf8"
)

// ScimGroup is the row with the values of a client of SCIM for a user group.
type ScimGroup struct {
	ExternalID string
	// Gone says that the client has deleted the group: it is deactivated. A new group of its name is this one again.
	Gone bool
}

// MaxScimMembers limits the members that one request adds to a group or removes from it, or that a group has for
// clients of SCIM.
const MaxScimMembers = 10_000

// ScimUserGroup is a user group as clients of SCIM see it.
type ScimUserGroup struct {
	ScimGroup
	ID      GroupID
	Name    string
	Members []UserID // active humans, ascending; only those that are members themselves
	Created int64    // Unix seconds
}

// ScimUserGroup returns a user group for a client of SCIM, or ErrScimGone: groups of the system and deactivated ones
// are not seen. Only the server asks for it.
func (v View) ScimUserGroup(id GroupID) (ScimUserGroup, error) {
	g := v.groups.find(id)
	if !v.System || g == nil || g.System || g.Deactivated {
		return ScimUserGroup{}, ErrScimGone
	}
	out := ScimUserGroup{ID: g.ID, Name: g.Name, Created: g.Created}
	if x := v.small.scimGroups.find(id); x != nil {
		out.ScimGroup = *x
	}
	for _, u := range v.DirectMembers(g) {
		if v.seenByScim(v.Find(u)) {
			out.Members = append(out.Members, u)
		}
	}
	return out, nil
}

// ScimUserGroups returns up to limit groups that clients of SCIM see, with ids larger than after, ordered by id. Only
// the server asks for it.
func (v View) ScimUserGroups(after GroupID, limit int) (out []ScimUserGroup) {
	for id := after + 1; id < v.Org().NextGroup && len(out) < limit; id++ {
		if x, err := v.ScimUserGroup(id); err == nil {
			out = append(out, x)
		}
	}
	return out
}

// ScimGroupsOf returns the groups of accounts, without their members. Only the server asks for it.
func (v View) ScimGroupsOf(users ...UserID) map[UserID][]ScimUserGroup {
	out := map[UserID][]ScimUserGroup{}
	for id := GroupID(1); v.System && id < v.Org().NextGroup; id++ {
		g := v.groups.find(id)
		if g == nil || g.System || g.Deactivated {
			continue
		}
		for _, u := range users {
			if containsSorted(g.Members, u) && v.Find(u).Active {
				out[u] = append(out[u], ScimUserGroup{ID: g.ID, Name: g.Name})
			}
		}
	}
	return out
}

// SaveScimGroup asks to make or change a user group for a client of SCIM, as a whole or not at all. Only the server
// sends it. Fields that are nil do not change. It returns the group's id.
type SaveScimGroup struct {
	Group            GroupID // 0: a new group, or one that is gone
	Name, ExternalID *string
	// Members are all members, if HasMembers is set. Add and Remove change them. Bots and subgroups stay; deactivated
	// accounts are left out.
	HasMembers           bool
	Members, Add, Remove []UserID
}

func (c SaveScimGroup) Decide(t *Turn) (GroupID, error) {
	switch {
	case !t.System:
		return 0, errPermission()
	case t.Level() < scimLevel:
		return 0, errLowLevel()
	case t.Org().Deactivated:
		return 0, BadRequest("The organization is deactivated.")
	case len(c.Members)+len(c.Add)+len(c.Remove) > MaxScimMembers:
		return 0, BadRequest("A request can be about %d members of a group.", MaxScimMembers)
	case c.ExternalID != nil && (len(*c.ExternalID) > maxScimValue || !utf8.ValidString(*c.ExternalID)):
		return 0, BadRequest("A value is empty or too long.")
	}
	for _, list := range [][]UserID{c.Members, c.Add} {
		for _, id := range list {
			if !t.seenByScim(t.Find(id)) {
				return 0, BadRequest("Invalid user ID: %d", id)
			}
		}
	}
	if c.Group == 0 {
		return c.create(t)
	}
	before, err := t.ScimUserGroup(c.Group)
	if err != nil {
		return 0, err
	}
	var renamed *GroupChanged
	if c.Name != nil && *c.Name != before.Name {
		if g := t.FindGroupByName(*c.Name); g != nil && g.ID != c.Group {
			return 0, ErrScimTaken
		}
		name, err := t.checkGroupName(*c.Name, c.Group)
		if err != nil {
			return 0, err
		}
		renamed = &GroupChanged{ID: c.Group, Name: &name, Settings: GroupValues{}}
	}
	return c.Group, c.save(t, renamed, before.Members)
}

// create makes a group. One that a client has deleted comes back instead.
func (c SaveScimGroup) create(t *Turn) (GroupID, error) {
	if c.Name == nil {
		return 0, BadRequest("A new group needs a name.")
	}
	c.HasMembers = true
	if g := t.FindGroupByName(*c.Name); g != nil {
		if x := t.small.scimGroups.find(g.ID); x == nil || !x.Gone || !g.Deactivated {
			return 0, ErrScimTaken
		}
		no := false
		c.Group = g.ID
		return g.ID, c.save(t, &GroupChanged{ID: g.ID, Deactivated: &no, Settings: GroupValues{}, WasDeactivated: true},
			t.DirectMembers(g))
	}
	name, err := t.checkGroupName(*c.Name, 0)
	if err != nil {
		return 0, err
	}
	g := Group{ID: t.Org().NextGroup, Name: name, Created: t.Now, Settings: GroupValues{}}
	if err := t.checkNewGroup(&g); err != nil {
		return 0, err
	}
	if err := t.checkRegistrationSize(registeredIDBytes * len(c.Members)); err != nil {
		return 0, err
	}
	for _, u := range sortUnique(c.Members) {
		if !t.isInactive(u) {
			g.Members = append(g.Members, u)
		}
	}
	t.Record(&GroupCreated{g})
	c.Group = g.ID
	c.saveRow(t)
	return g.ID, nil
}

// save records the changes of a group.
func (c SaveScimGroup) save(t *Turn, changed *GroupChanged, members []UserID) error {
	add, remove := slices.Clone(c.Add), slices.Clone(c.Remove)
	if c.HasMembers {
		wanted := sortUnique(c.Members)
		add = append(add, wanted...)
		for _, u := range members {
			if !containsSorted(wanted, u) && t.seenByScim(t.Find(u)) {
				remove = append(remove, u)
			}
		}
	}
	g := t.groups.must(c.Group)
	isMember := func(u UserID) bool { return containsSorted(g.Members, u) }
	add = slices.DeleteFunc(sortUnique(add), func(u UserID) bool { return isMember(u) || t.isInactive(u) })
	remove = slices.DeleteFunc(sortUnique(remove), func(u UserID) bool {
		return !isMember(u) || t.isInactive(u) || !t.seenByScim(t.Find(u))
	})
	if err := t.checkRegistrationSize(registeredIDBytes * len(add)); err != nil {
		return err
	}
	if changed != nil {
		t.Record(changed)
	}
	t.trackChannelVisibility(func() {
		if len(add) > 0 {
			t.Record(&MembersChanged{Group: c.Group, Joined: true, Users: add})
		}
		if len(remove) > 0 {
			t.Record(&MembersChanged{Group: c.Group, Users: remove})
		}
	})
	c.saveRow(t)
	return nil
}

// saveRow records the values of the client for a group.
func (c SaveScimGroup) saveRow(t *Turn) {
	row := ScimGroup{}
	before := t.small.scimGroups.find(c.Group)
	if before != nil {
		row = *before
	}
	if c.ExternalID != nil {
		row.ExternalID = *c.ExternalID
	}
	row.Gone = false
	if before == nil || *before != row {
		t.Record(&ScimGroupSet{Group: c.Group, Row: row})
	}
}

// RemoveScimGroup asks to delete a user group for a client of SCIM: it is deactivated. A group that permissions use is
// not deleted.
type RemoveScimGroup struct{ Group GroupID }

func (c RemoveScimGroup) Decide(t *Turn) (Done, error) {
	switch {
	case !t.System:
		return Done{}, errPermission()
	case t.Level() < scimLevel:
		return Done{}, errLowLevel()
	}
	g, err := t.ScimUserGroup(c.Group)
	if err != nil {
		return Done{}, err
	}
	if len(t.groupUses(c.Group)) > 0 {
		return Done{}, Refuse(Invalid, "CANNOT_DEACTIVATE_GROUP_IN_USE", "Cannot deactivate user group in use.")
	}
	yes := true
	t.Record(&GroupChanged{ID: c.Group, Deactivated: &yes, Settings: GroupValues{}})
	g.Gone = true
	t.Record(&ScimGroupSet{Group: c.Group, Row: g.ScimGroup})
	return Done{}, nil
}

// ScimGroupSet has the values of a client of SCIM for a user group.
type ScimGroupSet struct {
	Group GroupID
	Row   ScimGroup
}

func (f *ScimGroupSet) apply(r *Realm) {
	x := f.Row
	r.small.scimGroups.put(f.Group, &x)
}

func (*ScimGroupSet) notices(*Realm) []Notice { return nil }

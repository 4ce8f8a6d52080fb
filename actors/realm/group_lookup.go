package realm

import (
	"slices"
)

// Group is the row of a user group. The eight system groups have no list of members: their members follow from roles.
type Group struct {
	ID          GroupID
	Name        string
	Description string
	Created     int64
	Creator     UserID // 0: none
	System      bool
	Deactivated bool
	Members     []UserID  // ascending
	Subgroups   []GroupID // ascending
	Settings    GroupValues
}

// GroupValue is the value of a permission setting: one named group, or an anonymous group of users and groups.
type GroupValue struct {
	Group     GroupID // not 0: the named group, and the other fields are empty
	Members   []UserID
	Subgroups []GroupID
}

// SystemGroups are in the order in which they are created. The order fixes their ids 1 to 8.
var SystemGroups = []struct{ Name, Display, Description string }{
	{"role:nobody", "Nobody", "Nobody"},
	{"role:owners", "Owners", "Owners of this organization"},
	{"role:administrators", "Administrators", "Administrators of this organization, including owners"},
	{"role:moderators", "Moderators", "Moderators of this organization, including administrators"},
	{"role:fullmembers", "Full members", "Members of this organization, not including new accounts and guests"},
	{"role:members", "Members", "Members of this organization, not including guests"},
	{"role:everyone", "Everyone", "Everyone in this organization, including guests"},
	{"role:internet", "Everyone on the internet", "Everyone on the Internet"},
}

// The ids of the system groups.
const (
	groupNobody GroupID = 1 + iota
	groupOwners
	groupAdministrators
	groupModerators
	groupFullMembers
	groupMembers
	groupEveryone
	groupInternet
)

// GroupRules are the permission settings that every group has.
var GroupRules = []GroupSettingRule{
	{Name: "can_add_members_group", Default: "group_creator", NobodyOK: true},
	{Name: "can_join_group", Default: "role:nobody", NobodyOK: true},
	{Name: "can_leave_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "can_manage_group", Default: "group_creator", NobodyOK: true},
	{Name: "can_mention_group", Default: "role:everyone", NobodyOK: true, EveryoneOK: true},
	{Name: "can_remove_members_group", Default: "role:nobody", NobodyOK: true},
}

// createSystemGroups adds the eight system groups to a new organization. Each role's group contains the group of the
// next higher role.
func (r *Realm) createSystemGroups(at int64) {
	for i, s := range SystemGroups {
		g := &Group{ID: GroupID(i + 1), Name: s.Name, Description: s.Description, Created: at, System: true,
			Settings: GroupValues{}}
		if i >= 2 {
			g.Subgroups = []GroupID{GroupID(i)}
		}
		r.groups.put(g.ID, g)
	}
	r.org.change(0).NextGroup = GroupID(len(SystemGroups) + 1)
}

// SystemGroup returns the id of a system group by its internal name.
func (r *Realm) SystemGroup(name string) GroupID {
	for i, s := range SystemGroups {
		if s.Name == name {
			return GroupID(i + 1)
		}
	}
	panic("BUG: no system group " + name)
}

// FindGroup returns a group by id, or nil.
func (r *Realm) FindGroup(id GroupID) *Group { return r.groups.find(id) }

// FindGroupByName returns a group by its internal name, or nil. Upper and lower case are the same. An active group is
// preferred to a deactivated one.
func (r *Realm) FindGroupByName(name string) *Group {
	var found *Group
	for _, g := range r.groups.all() {
		if fold(g.Name) != fold(name) {
			continue
		}
		if found == nil || found.Deactivated && !g.Deactivated ||
			found.Deactivated == g.Deactivated && g.ID < found.ID {
			found = g
		}
	}
	return found
}

// EachGroup calls fn with every group by ascending id.
func (r *Realm) EachGroup(fn func(*Group)) {
	for _, id := range r.groups.keys() {
		fn(r.groups.find(id))
	}
}

// groupOfRole returns the system group of which users with a role are direct members.
func groupOfRole(role Role) GroupID {
	switch role {
	case Owner:
		return groupOwners
	case Administrator:
		return groupAdministrators
	case Moderator:
		return groupModerators
	case Guest:
		return groupEveryone
	}
	return groupMembers
}

// DirectMembers returns the active users that belong to a group directly, ascending. For a system group they follow
// from the roles. A deactivated user stays in the row and belongs to the group again after reactivation.
func (r *Realm) DirectMembers(g *Group) []UserID {
	if !g.System {
		return slices.DeleteFunc(slices.Clone(g.Members), r.isInactive)
	}
	out := []UserID{}
	for _, u := range r.activeUsers() {
		if groupOfRole(u.Role) == g.ID || g.ID == groupFullMembers && r.listedAsFullMember(u) {
			out = append(out, u.ID)
		}
	}
	return out
}

// inSystemGroup reports whether a user belongs to a system group by their role.
func (r *Realm) inSystemGroup(u *User, g GroupID) bool {
	switch g {
	case groupNobody:
		return false
	case groupOwners:
		return u.Role == Owner
	case groupAdministrators:
		return u.Role <= Administrator
	case groupModerators:
		return u.Role <= Moderator
	case groupFullMembers:
		return r.FullMember(u)
	case groupMembers:
		return u.Role <= Member
	}
	return true
}

// maxGroupDepth limits the depth of recursion through subgroups. Groups cannot form cycles, so it only guards against a
// bug.
const maxGroupDepth = 64

// inGroup reports whether a user belongs to a group. depth is the number of groups above it in the recursion.
func (r *Realm) inGroup(u *User, id GroupID, depth int) bool {
	if id >= groupNobody && id <= groupInternet {
		return r.inSystemGroup(u, id)
	}
	g := r.groups.find(id)
	if g == nil || depth > maxGroupDepth {
		return false
	}
	if _, ok := slices.BinarySearch(g.Members, u.ID); ok {
		return true
	}
	for _, s := range g.Subgroups {
		if r.inGroup(u, s, depth+1) {
			return true
		}
	}
	return false
}

// InGroup reports whether a user belongs to a group, directly or through subgroups.
func (v View) InGroup(u *User, id GroupID) bool { return v.inGroup(u, id, 0) }

// allowed decides a permission. Guests have it only if the setting may have the value "everyone".
func (r *Realm) allowed(u *User, v GroupValue, everyoneOK bool) bool {
	if u == nil || u.IsGuest() && !everyoneOK {
		return false
	}
	return r.inGroupValue(u, v)
}

// inGroupValue reports whether a user belongs to the value of a permission setting.
func (r *Realm) inGroupValue(u *User, v GroupValue) bool {
	if v.Group != 0 {
		return r.inGroup(u, v.Group, 0)
	}
	if slices.Contains(v.Members, u.ID) {
		return true
	}
	for _, s := range v.Subgroups {
		if r.inGroup(u, s, 0) {
			return true
		}
	}
	return false
}

// GroupSettingOf returns the value of one of a group's own permission settings, or its default.
func (r *Realm) GroupSettingOf(g *Group, name string) GroupValue {
	if v, ok := g.Settings[name]; ok {
		return v
	}
	rule := findGroupRule(GroupRules, name)
	if rule == nil {
		panic("BUG: no group setting " + name)
	}
	if g.System {
		return GroupValue{Group: groupNobody}
	}
	if rule.Default == "group_creator" {
		if g.Creator == 0 {
			return GroupValue{Group: groupNobody}
		}
		return GroupValue{Members: []UserID{g.Creator}}
	}
	return GroupValue{Group: r.SystemGroup(rule.Default)}
}

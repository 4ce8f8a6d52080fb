package realm

import "slices"

// normalized returns the one form in which values of permission settings are stored and compared. Members and subgroups
// ascend, a single subgroup becomes that group, and an empty value becomes role:nobody.
func (v GroupValue) normalized() GroupValue {
	if v.Group != 0 {
		return GroupValue{Group: v.Group}
	}
	out := GroupValue{Members: slices.Clone(v.Members), Subgroups: slices.Clone(v.Subgroups)}
	slices.Sort(out.Members)
	slices.Sort(out.Subgroups)
	out.Members, out.Subgroups = slices.Compact(out.Members), slices.Compact(out.Subgroups)
	switch {
	case len(out.Members) == 0 && len(out.Subgroups) == 0:
		return GroupValue{Group: groupNobody}
	case len(out.Members) == 0 && len(out.Subgroups) == 1:
		return GroupValue{Group: out.Subgroups[0]}
	}
	return out
}

// With returns a value that also has a user.
func (v GroupValue) With(u UserID) GroupValue {
	if v.Group != 0 {
		v = GroupValue{Subgroups: []GroupID{v.Group}}
	}
	v.Members = append(slices.Clone(v.Members), u)
	v.Subgroups = slices.DeleteFunc(slices.Clone(v.Subgroups), func(g GroupID) bool { return g == groupNobody })
	return v.normalized()
}

// Without returns a value that does not have a user as its own member.
func (v GroupValue) Without(u UserID) GroupValue {
	v.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m UserID) bool { return m == u })
	return v.normalized()
}

// equal reports whether two normalized values are the same.
func (v GroupValue) equal(o GroupValue) bool {
	return v.Group == o.Group && slices.Equal(v.Members, o.Members) && slices.Equal(v.Subgroups, o.Subgroups)
}

// WithoutDeactivated returns a value of a permission setting as clients see it: without deactivated users.
func (r *Realm) WithoutDeactivated(v GroupValue) GroupValue {
	if v.Group != 0 || !slices.ContainsFunc(v.Members, r.isInactive) {
		return v
	}
	v.Members = slices.DeleteFunc(slices.Clone(v.Members), r.isInactive)
	return v
}

// isInactive reports whether there is no active account with that id.
func (r *Realm) isInactive(id UserID) bool {
	u := r.users.find(id)
	return u == nil || !u.Active
}

// checkGroupValue checks a new value of a permission setting against its rule and returns its normalized form. Group -1
// is an id that cannot exist.
func (r *Realm) checkGroupValue(rule *GroupSettingRule, v GroupValue) (GroupValue, error) {
	if v.Group == 0 {
		for _, u := range v.Members {
			if x := r.users.find(u); x == nil || x.System {
				return v, BadRequest("Invalid user ID: %d", u)
			}
		}
		for _, g := range v.Subgroups {
			if x := r.groups.find(g); x == nil || g == groupInternet {
				return v, BadRequest("Invalid user group ID: %d", g)
			} else if x.Deactivated {
				return v, BadRequest("User group is deactivated.")
			} else if rule.AdminManagedOnly && !r.onlyAdminsManage(x) {
				return v, errGroupForbidden(rule, x)
			}
		}
	}
	v = v.normalized()
	if v.Group == 0 {
		if rule.SystemOnly {
			return v, errSystemGroup(rule)
		}
		return v, nil
	}
	g := r.groups.find(v.Group)
	switch {
	case g == nil:
		return v, BadRequest("Invalid user group")
	case g.Deactivated:
		return v, BadRequest("User group is deactivated.")
	case rule.SystemOnly && !g.System:
		return v, errSystemGroup(rule)
	case v.Group == groupInternet, v.Group == groupNobody && !rule.NobodyOK,
		v.Group == groupEveryone && !rule.EveryoneOK,
		g.System && rule.Allowed != nil && !slices.Contains(rule.Allowed, g.Name),
		rule.AdminManagedOnly && !r.onlyAdminsManage(g):
		return v, errGroupForbidden(rule, g)
	}
	return v, nil
}

// onlyAdminsManage reports whether the group's own settings allow only administrators to manage it.
func (r *Realm) onlyAdminsManage(g *Group) bool {
	if g.System {
		return true
	}
	managers := r.GroupSettingOf(g, "can_manage_group")
	return !slices.ContainsFunc(r.activeUsers(), func(u *User) bool {
		return !u.IsAdmin() && r.inGroupValue(u, managers)
	})
}

func errGroupForbidden(rule *GroupSettingRule, g *Group) *Refusal {
	return BadRequest("'%s' setting cannot be set to '%s' group.", rule.Name, g.Name)
}

func errSystemGroup(rule *GroupSettingRule) *Refusal {
	return Refuse(Invalid, "SYSTEM_GROUP_REQUIRED", "'"+rule.Name+"' must be a system user group.").
		With("setting_name", rule.Name)
}

// GroupChange asks to change one permission setting. Old, if given, is the value that the client expects.
type GroupChange struct {
	Name string
	New  GroupValue
	Old  *GroupValue
}

// checkGroupChange is checkGroupValue for a change. It also refuses the change if the present value is not the one the
// client expects.
func (r *Realm) checkGroupChange(rule *GroupSettingRule, now GroupValue, c GroupChange) (GroupValue, error) {
	if c.Old != nil && !c.Old.normalized().equal(now) &&
		!c.Old.normalized().equal(r.WithoutDeactivated(now).normalized()) {
		return now, Refuse(Invalid, "EXPECTATION_MISMATCH", "'old' value does not match the expected value.")
	}
	return r.checkGroupValue(rule, c.New)
}

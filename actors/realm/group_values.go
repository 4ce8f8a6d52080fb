package realm

import "slices"

// tidy brings a permission setting's value into the one form it is kept and compared in: members and subgroups
// ascending, a lone subgroup as that group, nobody at all as the group Nobody.
func (v GroupValue) tidy() GroupValue {
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

func (v GroupValue) equal(o GroupValue) bool {
	return v.Group == o.Group && slices.Equal(v.Members, o.Members) && slices.Equal(v.Subgroups, o.Subgroups)
}

// Shown is a permission setting's value as clients are told of it: without deactivated users.
func (r *Realm) Shown(v GroupValue) GroupValue {
	if v.Group != 0 || !slices.ContainsFunc(v.Members, r.gone) {
		return v
	}
	v.Members = slices.DeleteFunc(slices.Clone(v.Members), r.gone)
	return v
}

// gone reports that there is no active account of that id.
func (r *Realm) gone(id UserID) bool {
	u := r.users.find(id)
	return u == nil || !u.Active
}

// settle checks a new value of a permission setting against its rule and returns the form it is kept in. Group -1
// stands for an id that cannot be.
func (r *Realm) settle(rule *GroupSettingRule, v GroupValue) (GroupValue, error) {
	if v.Group == 0 {
		for _, u := range v.Members {
			if x := r.users.find(u); x == nil || x.System {
				return v, Bad("Invalid user ID: %d", u)
			}
		}
		for _, g := range v.Subgroups {
			if x := r.groups.find(g); x == nil || g == groupInternet {
				return v, Bad("Invalid user group ID: %d", g)
			} else if x.Deactivated {
				return v, Bad("User group is deactivated.")
			} else if rule.Guarded && !r.guarded(x) {
				return v, errGroupForbidden(rule, x)
			}
		}
	}
	v = v.tidy()
	if v.Group == 0 {
		if rule.SystemOnly {
			return v, errSystemGroup(rule)
		}
		return v, nil
	}
	g := r.groups.find(v.Group)
	switch {
	case g == nil:
		return v, Bad("Invalid user group")
	case g.Deactivated:
		return v, Bad("User group is deactivated.")
	case rule.SystemOnly && !g.System:
		return v, errSystemGroup(rule)
	case v.Group == groupInternet, v.Group == groupNobody && !rule.NobodyOK, v.Group == groupEveryone && !rule.EveryoneOK,
		g.System && rule.Allowed != nil && !slices.Contains(rule.Allowed, g.Name), rule.Guarded && !r.guarded(g):
		return v, errGroupForbidden(rule, g)
	}
	return v, nil
}

// guarded reports that nobody but administrators may manage a group by its own settings.
func (r *Realm) guarded(g *Group) bool {
	if g.System {
		return true
	}
	managers := r.GroupSettingOf(g, "can_manage_group")
	return !slices.ContainsFunc(r.activeUsers(), func(u *User) bool { return !u.IsAdmin() && r.inValue(u, managers) })
}

func errGroupForbidden(rule *GroupSettingRule, g *Group) *Refusal {
	return Bad("'%s' setting cannot be set to '%s' group.", rule.Name, g.Name)
}

func errSystemGroup(rule *GroupSettingRule) *Refusal {
	return Refuse(Invalid, "SYSTEM_GROUP_REQUIRED", "'"+rule.Name+"' must be a system user group.").With("setting_name", rule.Name)
}

// GroupChange asks to change one permission setting. Old, when given, is what the client believes the value to be.
type GroupChange struct {
	Name string
	New  GroupValue
	Old  *GroupValue
}

// resettle is settle for a change: the value the client believes to be there must be.
func (r *Realm) resettle(rule *GroupSettingRule, now GroupValue, c GroupChange) (GroupValue, error) {
	if c.Old != nil && !c.Old.tidy().equal(now) && !c.Old.tidy().equal(r.Shown(now).tidy()) {
		return now, Refuse(Invalid, "EXPECTATION_MISMATCH", "'old' value does not match the expected value.")
	}
	return r.settle(rule, c.New)
}

package realm

import "slices"

// Permission settings and groups are shown without deactivated accounts. Their shown value therefore changes when a
// member is deactivated or reactivated.

// ValuesShown says that permission settings and groups that name a user are shown differently now, because the account
// was deactivated or reactivated. It changes no row.
type ValuesShown struct {
	User     UserID
	Channels []ChannelID
	Groups   []GroupID
	Settings []string  // the organization's
	Members  []GroupID // groups the user belongs to
}

// maxValuesPerFact bounds the channels and groups of one fact: each channel may cause a dozen events, and one fact can
// have about two hundred.
const maxValuesPerFact = 15

func (*ValuesShown) apply(*Realm) {}

// recordValuesShown records which settings and groups are shown differently now.
func (t *Turn) recordValuesShown(u UserID) {
	var channels []ChannelID
	t.EachChannel(func(c *Channel) {
		if slices.ContainsFunc(ChannelRules, func(x GroupSettingRule) bool {
			return slices.Contains(t.ChannelSetting(c, x.Name).Members, u)
		}) {
			channels = append(channels, c.ID)
		}
	})
	var groups, members []GroupID
	t.EachGroup(func(g *Group) {
		if slices.Contains(g.Members, u) {
			members = append(members, g.ID)
		}
		if slices.ContainsFunc(GroupRules, func(x GroupSettingRule) bool {
			return slices.Contains(t.GroupSettingOf(g, x.Name).Members, u)
		}) {
			groups = append(groups, g.ID)
		}
	})
	var settings []string
	for _, x := range OrgGroupSettings {
		if slices.Contains(t.OrgGroup(x.Name).Members, u) {
			settings = append(settings, x.Name)
		}
	}
	for list := range slices.Chunk(members, maxValuesPerFact) {
		t.Record(&ValuesShown{User: u, Members: list})
	}
	if len(settings) > 0 {
		t.Record(&ValuesShown{User: u, Settings: settings})
	}
	for list := range slices.Chunk(channels, maxValuesPerFact) {
		t.Record(&ValuesShown{User: u, Channels: list})
	}
	for list := range slices.Chunk(groups, maxValuesPerFact) {
		t.Record(&ValuesShown{User: u, Groups: list})
	}
}

func (f *ValuesShown) notices(r *Realm) (out []Notice) {
	all, u := r.everyoneAudience(), r.users.must(f.User)
	if !u.Active {
		all = r.cannotSeeUserAudience(u) // other clients get the deactivation of the account and remove it themselves
	}
	if len(all) == 0 {
		return nil
	}
	for _, id := range f.Members {
		out = append(out, Notice{To: all, Event: &GroupMembersChanged{
			Group: id, Joined: !r.isInactive(f.User), Users: []UserID{f.User},
			Deactivated: r.groups.must(id).Deactivated,
		}})
	}
	for _, name := range f.Settings {
		v := r.WithoutDeactivated(r.OrgGroup(name))
		out = append(out, Notice{To: all, Event: &OrganizationChanged{Setting: name, Group: &v}})
	}
	for _, id := range f.Channels {
		c := r.channels.must(id)
		to := r.channelAudience(c)
		if !u.Active {
			to = slices.DeleteFunc(slices.Clone(to), func(id UserID) bool { return r.maySeeUser(r.users.must(id), u) })
		}
		for _, x := range ChannelRules {
			if v := r.ChannelSetting(c, x.Name); slices.Contains(v.Members, f.User) && len(to) > 0 {
				out = append(out, Notice{To: to, Event: &ChannelChanged{
					Channel: id, Old: c.Name, Property: x.Name, Group: r.WithoutDeactivated(v), Was: v,
					Archived: c.Archived,
				}})
			}
		}
	}
	for _, id := range f.Groups {
		g := r.groups.must(id)
		e := &GroupChanged{ID: id, Settings: GroupValues{}, WasDeactivated: g.Deactivated}
		for _, x := range GroupRules {
			if v := r.GroupSettingOf(g, x.Name); slices.Contains(v.Members, f.User) {
				e.Settings[x.Name] = r.WithoutDeactivated(v)
			}
		}
		out = append(out, Notice{To: all, Event: e})
	}
	return out
}

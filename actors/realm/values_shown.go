package realm

import "slices"

// Permission settings are shown without accounts that are closed, so what they read changes with those.

// ValuesShown says permission settings that name somebody read otherwise, for his account is closed, or open again. It
// changes nothing by itself.
type ValuesShown struct {
	User     UserID
	Channels []ChannelID
	Groups   []GroupID
}

// valuesAFact bounds the channels and groups of one fact: each channel may be a dozen events, and a fact has places for
// some two hundred.
const valuesAFact = 15

func (*ValuesShown) calm()        {}
func (*ValuesShown) apply(*Realm) {}

// reshow records which settings read otherwise now.
func (t *Turn) reshow(u UserID) {
	var channels []ChannelID
	t.EachChannel(func(c *Channel) {
		if slices.ContainsFunc(ChannelRules, func(x GroupSettingRule) bool { return slices.Contains(t.ChannelSetting(c, x.Name).Members, u) }) {
			channels = append(channels, c.ID)
		}
	})
	var groups []GroupID
	t.EachGroup(func(g *Group) {
		if slices.ContainsFunc(GroupRules, func(x GroupSettingRule) bool { return slices.Contains(t.GroupSettingOf(g, x.Name).Members, u) }) {
			groups = append(groups, g.ID)
		}
	})
	for list := range slices.Chunk(channels, valuesAFact) {
		t.Record(&ValuesShown{User: u, Channels: list})
	}
	for list := range slices.Chunk(groups, valuesAFact) {
		t.Record(&ValuesShown{User: u, Groups: list})
	}
}

func (f *ValuesShown) tell(r *Realm) (out []Notice) {
	for _, id := range f.Channels {
		c := r.chans.must(id)
		to := r.knowers(c)
		for _, x := range ChannelRules {
			if v := r.ChannelSetting(c, x.Name); slices.Contains(v.Members, f.User) && len(to) > 0 {
				out = append(out, Notice{To: to, Event: &ChannelChanged{Channel: id, Old: c.Name, Property: x.Name, Group: r.Shown(v), Archived: c.Archived}})
			}
		}
	}
	for _, id := range f.Groups {
		g := r.groups.must(id)
		e := &GroupChanged{ID: id, Settings: GroupValues{}, WasDeactivated: g.Deactivated}
		for _, x := range GroupRules {
			if v := r.GroupSettingOf(g, x.Name); slices.Contains(v.Members, f.User) {
				e.Settings[x.Name] = r.Shown(v)
			}
		}
		if to := r.everyone(); len(to) > 0 {
			out = append(out, Notice{To: to, Event: e})
		}
	}
	return out
}

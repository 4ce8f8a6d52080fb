package realm

import (
	"slices"
	"strings"
)

// SetDefaultChannel asks that new accounts are, or are no longer, subscribed to a channel.
type SetDefaultChannel struct {
	Channel ChannelID
	Is      bool
}

func (c SetDefaultChannel) Decide(t *Turn) (Done, error) {
	if _, err := t.Admin(); err != nil {
		return Done{}, err
	}
	ch, err := t.VisibleChannel(c.Channel)
	if err != nil {
		return Done{}, err
	}
	if c.Is && ch.Archived {
		return Done{}, errChannelID()
	}
	if c.Is && ch.Private {
		return Done{}, Bad("Private channels cannot be made default.")
	}
	if c.Is != ch.Default {
		t.Record(t.defaultChannels(ch.ID, c.Is))
	}
	return Done{}, nil
}

// DefaultChannelsSet says which channels new accounts are subscribed to. It is the event default_streams too.
type DefaultChannelsSet struct{ Channels []ChannelID }

func (f *DefaultChannelsSet) apply(r *Realm) {
	o := r.org.change(0)
	for _, id := range slices.Concat(o.DefaultChannels, f.Channels) {
		if is := slices.Contains(f.Channels, id); r.chans.must(id).Default != is {
			r.chans.change(id).Default = is
		}
	}
	o.DefaultChannels = f.Channels
}

func (f *DefaultChannelsSet) tell(r *Realm) []Notice { return []Notice{{To: r.members(), Event: f}} }
func (*DefaultChannelsSet) EventType() string        { return "default_streams" }

func (r *Realm) defaultChannelsTold() *DefaultChannelsSet {
	return &DefaultChannelsSet{Channels: slices.Clone(r.Org().DefaultChannels)}
}

// DefaultGroup is the row of a group of channels that new accounts may choose.
type DefaultGroup struct {
	ID                int64
	Name, Description string
	Channels          []ChannelID // ascending
}

// DefaultGroups is every default channel group by name.
func (r *Realm) DefaultGroups() []DefaultGroup {
	out := []DefaultGroup{}
	for _, id := range r.nouns.defaultGroups.keys() {
		g := *r.nouns.defaultGroups.find(id)
		g.Channels = slices.Clone(g.Channels)
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b DefaultGroup) int { return strings.Compare(fold(a.Name), fold(b.Name)) })
	return out
}

// DefaultGroupSet says what a default channel group is now. It tells all of them, as the protocol does.
type DefaultGroupSet struct{ Group DefaultGroup }

func (f *DefaultGroupSet) apply(r *Realm) {
	r.usedID("default_group", f.Group.ID)
	g := f.Group
	r.nouns.defaultGroups.put(g.ID, &g)
}

func (f *DefaultGroupSet) tell(r *Realm) []Notice {
	return []Notice{{To: r.members(), Event: &DefaultGroupsTold{r.DefaultGroups()}}}
}

// DefaultGroupDropped says a default channel group is gone.
type DefaultGroupDropped struct{ ID int64 }

func (f *DefaultGroupDropped) apply(r *Realm) { r.nouns.defaultGroups.remove(f.ID) }
func (f *DefaultGroupDropped) tell(r *Realm) []Notice {
	return []Notice{{To: r.members(), Event: &DefaultGroupsTold{r.DefaultGroups()}}}
}

// DefaultGroupsTold is the event default_stream_groups.
type DefaultGroupsTold struct{ Groups []DefaultGroup }

func (*DefaultGroupsTold) EventType() string { return "default_stream_groups" }

// leaveDefaultGroups records that a channel is in no default channel group any more.
func (t *Turn) leaveDefaultGroups(c ChannelID) {
	for _, id := range t.nouns.defaultGroups.keys() {
		g := *t.nouns.defaultGroups.find(id)
		if slices.Contains(g.Channels, c) {
			g.Channels = slices.DeleteFunc(slices.Clone(g.Channels), func(x ChannelID) bool { return x == c })
			t.Record(&DefaultGroupSet{g})
		}
	}
}

// checkDefaultGroupName refuses names a default channel group may not have; except is the group that has it already.
func (r *Realm) checkDefaultGroupName(name string, except int64) (string, error) {
	name = strings.TrimSpace(name)
	if _, ok := printable(name); name == "" || !ok {
		return "", Bad("Invalid default channel group name '%s'", name)
	}
	if length(name) > MaxChannelName {
		return "", Bad("Default channel group name too long (limit: %d characters)", MaxChannelName)
	}
	for _, g := range r.nouns.defaultGroups.all() {
		if g.ID != except && fold(g.Name) == fold(name) {
			return "", Bad("Default channel group '%s' already exists", name)
		}
	}
	return name, nil
}

// defaultGroup is a default channel group an administrator may change, as a copy.
func (t *Turn) defaultGroup(id int64) (DefaultGroup, error) {
	if _, err := t.Admin(); err != nil {
		return DefaultGroup{}, err
	}
	g := t.nouns.defaultGroups.find(id)
	if g == nil {
		return DefaultGroup{}, Bad("Default channel group with id '%d' does not exist.", id)
	}
	c := *g
	c.Channels = slices.Clone(g.Channels)
	return c, nil
}

// addTo puts channels into a default channel group that none of them may be in yet.
func (t *Turn) addTo(g *DefaultGroup, names []string) error {
	for _, n := range names {
		c := t.FindChannelByName(n)
		switch {
		case c == nil || c.Archived || !t.MaySeeChannel(c):
			return Bad("Invalid channel name '%s'", n)
		case c.Private:
			return Bad("Private channels cannot be made default.")
		case c.Default:
			return Bad("'%s' is a default channel and cannot be added to '%s'", c.Name, g.Name)
		case slices.Contains(g.Channels, c.ID):
			return Bad("Channel '%s' is already present in default channel group '%s'", c.Name, g.Name)
		}
		g.Channels = append(g.Channels, c.ID)
	}
	slices.Sort(g.Channels)
	return nil
}

// CreateDefaultGroup asks for a default channel group.
type CreateDefaultGroup struct {
	Name, Description string
	Channels          []string
}

func (c CreateDefaultGroup) Decide(t *Turn) (Done, error) {
	if _, err := t.Admin(); err != nil {
		return Done{}, err
	}
	g := DefaultGroup{ID: t.nextID("default_group"), Description: c.Description}
	var err error
	if g.Name, err = t.checkDefaultGroupName(c.Name, 0); err != nil {
		return Done{}, err
	}
	if err := t.addTo(&g, c.Channels); err != nil {
		return Done{}, err
	}
	t.Record(&DefaultGroupSet{g})
	return Done{}, nil
}

// EditDefaultGroup asks to rename or describe a default channel group.
type EditDefaultGroup struct {
	ID                int64
	Name, Description *string
}

func (c EditDefaultGroup) Decide(t *Turn) (Done, error) {
	g, err := t.defaultGroup(c.ID)
	if err != nil {
		return Done{}, err
	}
	if c.Name == nil && c.Description == nil {
		return Done{}, Bad(`You must pass "new_description" or "new_group_name".`)
	}
	if c.Name != nil {
		if strings.TrimSpace(*c.Name) == g.Name {
			return Done{}, Bad("This default channel group is already named '%s'", g.Name)
		}
		if g.Name, err = t.checkDefaultGroupName(*c.Name, g.ID); err != nil {
			return Done{}, err
		}
	}
	g.Description = or(c.Description, g.Description)
	t.Record(&DefaultGroupSet{g})
	return Done{}, nil
}

// RegroupDefaults asks to put channels into a default channel group, or to take them out.
type RegroupDefaults struct {
	ID       int64
	Add      bool
	Channels []string
}

func (c RegroupDefaults) Decide(t *Turn) (Done, error) {
	g, err := t.defaultGroup(c.ID)
	if err != nil {
		return Done{}, err
	}
	if c.Add {
		err = t.addTo(&g, c.Channels)
	} else {
		err = t.takeFrom(&g, c.Channels)
	}
	if err != nil {
		return Done{}, err
	}
	t.Record(&DefaultGroupSet{g})
	return Done{}, nil
}

func (t *Turn) takeFrom(g *DefaultGroup, names []string) error {
	for _, n := range names {
		c := t.FindChannelByName(n)
		if c == nil || !t.MaySeeChannel(c) {
			return Bad("Invalid channel name '%s'", n)
		}
		i := slices.Index(g.Channels, c.ID)
		if i < 0 {
			return Bad("Channel '%s' is not present in default channel group '%s'", c.Name, g.Name)
		}
		g.Channels = slices.Delete(g.Channels, i, i+1)
	}
	return nil
}

// DropDefaultGroup asks to forget a default channel group.
type DropDefaultGroup struct{ ID int64 }

func (c DropDefaultGroup) Decide(t *Turn) (Done, error) {
	g, err := t.defaultGroup(c.ID)
	if err != nil {
		return Done{}, err
	}
	t.Record(&DefaultGroupDropped{g.ID})
	return Done{}, nil
}

package realm

import (
	"slices"
	"strings"
)

// SetDefaultChannel asks to add a channel to the default channels, or to remove it. New accounts are subscribed to the
// default channels.
type SetDefaultChannel struct {
	Channel ChannelID
	Is      bool
}

func (c SetDefaultChannel) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	ch, err := t.ReadableChannel(c.Channel)
	if err != nil {
		return Done{}, err
	}
	if c.Is && ch.Archived {
		return Done{}, errInvalidChannel()
	}
	if c.Is && ch.Private {
		return Done{}, BadRequest("Private channels cannot be made default.")
	}
	if c.Is != ch.Default {
		t.Record(t.defaultChannelFact(ch.ID, c.Is))
	}
	return Done{}, nil
}

// DefaultChannelsSet replaces the list of default channels. It is the event default_streams too.
type DefaultChannelsSet struct{ Channels []ChannelID }

func (f *DefaultChannelsSet) apply(r *Realm) {
	o := r.org.change(0)
	for _, id := range slices.Concat(o.DefaultChannels, f.Channels) {
		if is := slices.Contains(f.Channels, id); r.channels.must(id).Default != is {
			r.channels.change(id).Default = is
		}
	}
	o.DefaultChannels = f.Channels
}

func (f *DefaultChannelsSet) notices(r *Realm) []Notice {
	return []Notice{{To: r.membersAudience(), Event: f}}
}
func (*DefaultChannelsSet) EventType() string { return "default_streams" }

// defaultChannelsEvent returns the event with the present default channels.
func (r *Realm) defaultChannelsEvent() *DefaultChannelsSet {
	return &DefaultChannelsSet{Channels: slices.Clone(r.Org().DefaultChannels)}
}

// DefaultGroup is the row of a default channel group: a named set of channels that new accounts may choose.
type DefaultGroup struct {
	ID                int64
	Name, Description string
	Channels          []ChannelID // ascending
}

// DefaultGroups returns the default channel groups by name.
func (r *Realm) DefaultGroups() []DefaultGroup {
	out := []DefaultGroup{}
	for _, id := range r.small.defaultGroups.keys() {
		g := *r.small.defaultGroups.find(id)
		g.Channels = slices.Clone(g.Channels)
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b DefaultGroup) int { return strings.Compare(fold(a.Name), fold(b.Name)) })
	return out
}

// DefaultGroupSet adds or replaces a default channel group. Its event contains all of them (protocol).
type DefaultGroupSet struct{ Group DefaultGroup }

func (f *DefaultGroupSet) apply(r *Realm) {
	r.reserveID("default_group", f.Group.ID)
	g := f.Group
	r.small.defaultGroups.put(g.ID, &g)
}

func (f *DefaultGroupSet) notices(r *Realm) []Notice {
	return []Notice{{To: r.membersAudience(), Event: &DefaultGroupsEvent{r.DefaultGroups()}}}
}

// DefaultGroupDropped removes a default channel group.
type DefaultGroupDropped struct{ ID int64 }

func (f *DefaultGroupDropped) apply(r *Realm) { r.small.defaultGroups.remove(f.ID) }
func (f *DefaultGroupDropped) notices(r *Realm) []Notice {
	return []Notice{{To: r.membersAudience(), Event: &DefaultGroupsEvent{r.DefaultGroups()}}}
}

// DefaultGroupsEvent is the event default_stream_groups.
type DefaultGroupsEvent struct{ Groups []DefaultGroup }

func (*DefaultGroupsEvent) EventType() string { return "default_stream_groups" }

// removeFromAllDefaultGroups records the removal of a channel from every default channel group.
func (t *Turn) removeFromAllDefaultGroups(c ChannelID) {
	for _, id := range t.small.defaultGroups.keys() {
		g := *t.small.defaultGroups.find(id)
		if slices.Contains(g.Channels, c) {
			g.Channels = slices.DeleteFunc(slices.Clone(g.Channels), func(x ChannelID) bool { return x == c })
			t.Record(&DefaultGroupSet{g})
		}
	}
}

// checkDefaultGroupName checks the name of a default channel group and returns it trimmed. except is the group that may
// already have it.
func (r *Realm) checkDefaultGroupName(name string, except int64) (string, error) {
	name = strings.TrimSpace(name)
	if _, ok := findSpoofing(name); name == "" || !ok {
		return "", BadRequest("Invalid default channel group name '%s'", name)
	}
	if runeCount(name) > MaxChannelName {
		return "", BadRequest("Default channel group name too long (limit: %d characters)", MaxChannelName)
	}
	for _, g := range r.small.defaultGroups.all() {
		if g.ID != except && fold(g.Name) == fold(name) {
			return "", BadRequest("Default channel group '%s' already exists", name)
		}
	}
	return name, nil
}

// editableDefaultGroup returns a copy of a default channel group, for administrators only.
func (t *Turn) editableDefaultGroup(id int64) (DefaultGroup, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return DefaultGroup{}, err
	}
	g := t.small.defaultGroups.find(id)
	if g == nil {
		return DefaultGroup{}, BadRequest("Default channel group with id '%d' does not exist.", id)
	}
	c := *g
	c.Channels = slices.Clone(g.Channels)
	return c, nil
}

// addToDefaultGroup adds channels to a default channel group. It refuses channels that are already in it.
func (t *Turn) addToDefaultGroup(g *DefaultGroup, names []string) error {
	for _, n := range names {
		c := t.FindChannelByName(n)
		switch {
		case c == nil || c.Archived || !t.MaySeeChannel(c):
			return BadRequest("Invalid channel name '%s'", n)
		case c.Private:
			return BadRequest("Private channels cannot be made default.")
		case c.Default:
			return BadRequest("'%s' is a default channel and cannot be added to '%s'", c.Name, g.Name)
		case slices.Contains(g.Channels, c.ID):
			return BadRequest("Channel '%s' is already present in default channel group '%s'", c.Name, g.Name)
		}
		g.Channels = append(g.Channels, c.ID)
	}
	slices.Sort(g.Channels)
	return nil
}

// maxDefaultGroups is how many default channel groups an organization can have: every registration contains all.
const maxDefaultGroups = 200

// CreateDefaultGroup asks for a new default channel group.
type CreateDefaultGroup struct {
	Name, Description string
	Channels          []string
}

func (c CreateDefaultGroup) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	if t.small.defaultGroups.size() >= maxDefaultGroups {
		return Done{}, BadRequest("Too many default channel groups (limit: %d)", maxDefaultGroups)
	}
	g := DefaultGroup{ID: t.nextID("default_group"), Description: c.Description}
	var err error
	if g.Name, err = t.checkDefaultGroupName(c.Name, 0); err != nil {
		return Done{}, err
	}
	if err := t.addToDefaultGroup(&g, c.Channels); err != nil {
		return Done{}, err
	}
	t.Record(&DefaultGroupSet{g})
	return Done{}, nil
}

// EditDefaultGroup asks to rename or describe a default channel group. Fields that are nil do not change.
type EditDefaultGroup struct {
	ID                int64
	Name, Description *string
}

func (c EditDefaultGroup) Decide(t *Turn) (Done, error) {
	g, err := t.editableDefaultGroup(c.ID)
	if err != nil {
		return Done{}, err
	}
	if c.Name == nil && c.Description == nil {
		return Done{}, BadRequest(`You must pass "new_description" or "new_group_name".`)
	}
	if c.Name != nil {
		if strings.TrimSpace(*c.Name) == g.Name {
			return Done{}, BadRequest("This default channel group is already named '%s'", g.Name)
		}
		if g.Name, err = t.checkDefaultGroupName(*c.Name, g.ID); err != nil {
			return Done{}, err
		}
	}
	g.Description = valueOr(c.Description, g.Description)
	t.Record(&DefaultGroupSet{g})
	return Done{}, nil
}

// ChangeDefaultGroupChannels asks to add channels to a default channel group, or to remove them.
type ChangeDefaultGroupChannels struct {
	ID       int64
	Add      bool
	Channels []string
}

func (c ChangeDefaultGroupChannels) Decide(t *Turn) (Done, error) {
	g, err := t.editableDefaultGroup(c.ID)
	if err != nil {
		return Done{}, err
	}
	if c.Add {
		err = t.addToDefaultGroup(&g, c.Channels)
	} else {
		err = t.removeFromDefaultGroup(&g, c.Channels)
	}
	if err != nil {
		return Done{}, err
	}
	t.Record(&DefaultGroupSet{g})
	return Done{}, nil
}

// removeFromDefaultGroup removes channels from a default channel group. It refuses channels that are not in it.
func (t *Turn) removeFromDefaultGroup(g *DefaultGroup, names []string) error {
	for _, n := range names {
		c := t.FindChannelByName(n)
		if c == nil || !t.MaySeeChannel(c) {
			return BadRequest("Invalid channel name '%s'", n)
		}
		i := slices.Index(g.Channels, c.ID)
		if i < 0 {
			return BadRequest("Channel '%s' is not present in default channel group '%s'", c.Name, g.Name)
		}
		g.Channels = slices.Delete(g.Channels, i, i+1)
	}
	return nil
}

// RemoveDefaultGroup asks to remove a default channel group.
type RemoveDefaultGroup struct{ ID int64 }

func (c RemoveDefaultGroup) Decide(t *Turn) (Done, error) {
	g, err := t.editableDefaultGroup(c.ID)
	if err != nil {
		return Done{}, err
	}
	t.Record(&DefaultGroupDropped{g.ID})
	return Done{}, nil
}

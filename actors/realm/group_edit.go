package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// maxGroupName is the limit of a group's name in code points (protocol).
const maxGroupName = 100

// groupPrefixes must not begin a group's name, because they have another meaning in mentions.
var groupPrefixes = []string{"@", "role:", "user:", "stream:", "channel:"}

// checkGroupName checks the name of a group and returns it trimmed. except is the group that may already have it.
func (v View) checkGroupName(name string, except GroupID) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", BadRequest("User group name can't be empty!")
	case runeCount(name) > maxGroupName:
		return "", BadRequest("User group name cannot exceed %d characters.", maxGroupName)
	}
	if at, ok := findSpoofing(name); !ok {
		return "", BadRequest("Invalid character in user group name, at position %d.", at)
	}
	for _, prefix := range groupPrefixes {
		if strings.HasPrefix(name, prefix) {
			return "", BadRequest("User group name cannot start with '%s'.", prefix)
		}
	}
	if g := v.FindGroupByName(name); g != nil && g.ID != except {
		return "", BadRequest("User group '%s' already exists.", name)
	}
	return name, nil
}

// ManagedGroup returns a group that the caller is allowed to change. System groups are never allowed.
func (v View) ManagedGroup(id GroupID) (*Group, error) {
	g := v.groups.find(id)
	if g == nil {
		return nil, BadRequest("Invalid user group")
	}
	if g.System || !v.mayManageGroup(v.Me(), g) {
		return nil, errPermission()
	}
	return g, nil
}

// mayManageGroup reports whether u is allowed to change a group. No user may change a system group.
func (r *Realm) mayManageGroup(u *User, g *Group) bool {
	if u == nil || g.System {
		return false
	}
	return r.HasPermission(u, "can_manage_all_groups") || r.allowed(u, r.GroupSettingOf(g, "can_manage_group"), false)
}

// MemberOnly returns the caller, and refuses logged-out visitors, guests and bots.
func (v View) MemberOnly() (*User, error) {
	me := v.Me()
	if me == nil {
		return nil, errNotMember()
	}
	if me.IsGuest() {
		return nil, errGuestsNotAllowed()
	}
	if me.IsBot() {
		return nil, errBotsNotAllowed()
	}
	return me, nil
}

// CreateGroup asks for a user group. It answers the group's id.
type CreateGroup struct {
	Name, Description string
	Members           []UserID
	Subgroups         []GroupID
	Settings          []GroupChange
}

func (c CreateGroup) Decide(t *Turn) (GroupID, error) {
	me, err := t.MemberOnly()
	if err != nil {
		return 0, err
	}
	if !t.HasPermission(me, "can_create_groups") {
		return 0, errPermission()
	}
	name, err := t.checkGroupName(c.Name, 0)
	if err != nil {
		return 0, err
	}
	if runeCount(c.Description) > MaxDescription {
		return 0, BadRequest("description is too long (limit: %d characters)", MaxDescription)
	}
	if err := t.checkMembers(c.Members); err != nil {
		return 0, err
	}
	if err := t.checkSubgroups(c.Subgroups); err != nil {
		return 0, err
	}
	g := Group{ID: t.Org().NextGroup, Name: name, Description: c.Description, Created: t.Now, Creator: me.ID,
		Members: sortUnique(c.Members), Subgroups: sortUnique(c.Subgroups), Settings: GroupValues{}}
	for _, s := range c.Settings {
		v, err := t.checkGroupValue(findGroupRule(GroupRules, s.Name), s.New)
		if err != nil {
			return 0, err
		}
		g.Settings[s.Name] = v
	}
	if err := t.checkNewGroup(&g); err != nil {
		return 0, err
	}
	t.Record(&GroupCreated{g})
	return g.ID, nil
}

// checkMembers refuses users that cannot be added to a group.
func (v View) checkMembers(ids []UserID) error {
	for _, id := range ids {
		u := v.Find(id)
		if u == nil || u.System {
			return BadRequest("Invalid user ID: %d", id)
		}
		if !u.Active {
			return errDeactivated()
		}
	}
	return nil
}

// checkSubgroups refuses groups that cannot be subgroups of a group.
func (v View) checkSubgroups(ids []GroupID) error {
	for _, id := range ids {
		g := v.groups.find(id)
		if g == nil || id == groupInternet || id == groupNobody {
			return BadRequest("Invalid user group ID: %d", id)
		}
		if g.Deactivated {
			return BadRequest("User group is deactivated.")
		}
	}
	return nil
}

// GroupInfo is a group as clients see it.
type GroupInfo struct {
	ID                GroupID
	Name, Description string
	Created           int64
	Creator           UserID
	Members           []UserID
	Subgroups         []GroupID
	System            bool
	Deactivated       bool
	Settings          GroupValues // all of them, with defaults
}

// GroupInfo returns a copy of a group that may leave the realm.
func (r *Realm) GroupInfo(g *Group) GroupInfo { return r.GroupInfoWith(g, r.DirectMembers(g)) }

// GroupInfoWith is GroupInfo with a list of members that the caller has already.
func (r *Realm) GroupInfoWith(g *Group, members []UserID) GroupInfo {
	info := GroupInfo{ID: g.ID, Name: g.Name, Description: g.Description, Created: g.Created, Creator: g.Creator,
		Members:   members,
		Subgroups: slices.Clone(g.Subgroups), System: g.System, Deactivated: g.Deactivated, Settings: GroupValues{}}
	for _, rule := range GroupRules {
		info.Settings[rule.Name] = r.WithoutDeactivated(r.GroupSettingOf(g, rule.Name))
	}
	return info
}

// GroupCreated adds a user group.
type GroupCreated struct{ Group Group }

func (f *GroupCreated) apply(r *Realm) {
	g := f.Group
	g.Settings = cloneMap(g.Settings)
	o := r.org.change(0)
	o.NextGroup = max(o.NextGroup, g.ID+1)
	r.groups.put(g.ID, &g)
}

func (f *GroupCreated) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: &GroupAppeared{Group: r.GroupInfo(r.groups.must(f.Group.ID))}}}
}

// GroupAppeared is the event user_group/add. Back says that the group was reactivated: then only queues that do not get
// deactivated groups receive it.
type GroupAppeared struct {
	Group GroupInfo
	Back  bool
}

func (*GroupAppeared) EventType() string { return "user_group" }

// EditGroup asks to change a group. Fields that are nil do not change.
type EditGroup struct {
	Group             GroupID
	Name, Description *string
	Reactivate        bool
	Settings          []GroupChange
}

func (c EditGroup) Decide(t *Turn) (Done, error) {
	if _, err := t.MemberOnly(); err != nil {
		return Done{}, err
	}
	g, err := t.ManagedGroup(c.Group)
	if err != nil {
		return Done{}, err
	}
	if c.Name == nil && c.Description == nil && len(c.Settings) == 0 && !c.Reactivate {
		return Done{}, BadRequest("No new data supplied")
	}
	if g.Deactivated && !c.Reactivate && c.Name == nil {
		return Done{}, BadRequest("User group is deactivated.")
	}
	f := &GroupChanged{ID: g.ID, Settings: GroupValues{}, WasDeactivated: g.Deactivated}
	changed := false
	if c.Name != nil && *c.Name != g.Name {
		name, err := t.checkGroupName(*c.Name, g.ID)
		if err != nil {
			return Done{}, err
		}
		f.Name, changed = &name, true
	}
	if c.Description != nil && *c.Description != g.Description {
		if runeCount(*c.Description) > MaxDescription {
			return Done{}, BadRequest("description is too long (limit: %d characters)", MaxDescription)
		}
		f.Description, changed = c.Description, true
	}
	for _, s := range c.Settings {
		now := t.GroupSettingOf(g, s.Name)
		v, err := t.checkGroupChange(findGroupRule(GroupRules, s.Name), now, s)
		if err != nil {
			return Done{}, err
		}
		if !v.equal(now) {
			f.Settings[s.Name], changed = v, true
		}
	}
	if err := t.checkRegistrationSize(f.growth(g)); err != nil {
		return Done{}, err
	}
	if c.Reactivate && g.Deactivated {
		no := false
		f.Deactivated, changed = &no, true
	}
	if changed {
		t.Record(f)
	}
	return Done{}, nil
}

// growth returns by how many bytes the change makes a group larger in registrations.
func (f *GroupChanged) growth(g *Group) int {
	n := f.Settings.size()
	if f.Name != nil {
		n += len(*f.Name) - len(g.Name)
	}
	if f.Description != nil {
		n += len(*f.Description) - len(g.Description)
	}
	return n
}

// GroupChanged changes fields of a group. It is the event user_group/update, in one of its two forms.
type GroupChanged struct {
	ID                GroupID
	Name, Description *string
	Deactivated       *bool
	Settings          GroupValues
	WasDeactivated    bool
}

func (f *GroupChanged) apply(r *Realm) {
	g := r.groups.change(f.ID)
	if f.Name != nil {
		g.Name = *f.Name
	}
	if f.Description != nil {
		g.Description = *f.Description
	}
	if f.Deactivated != nil {
		g.Deactivated = *f.Deactivated
	}
	for name, v := range f.Settings {
		if g.Settings == nil {
			g.Settings = GroupValues{}
		}
		g.Settings[name] = v
	}
}

func (f *GroupChanged) notices(r *Realm) []Notice {
	to, e := r.everyoneAudience(), f
	if len(f.Settings) > 0 {
		shown := *f
		shown.Settings = GroupValues{}
		for name, v := range f.Settings {
			shown.Settings[name] = r.WithoutDeactivated(v)
		}
		e = &shown
	}
	out := []Notice{{To: to, Event: e}}
	if f.Deactivated != nil && !*f.Deactivated {
		out = append(out, Notice{To: to, Event: &GroupAppeared{Group: r.GroupInfo(r.groups.must(f.ID)), Back: true}})
	}
	return out
}

func (*GroupChanged) EventType() string { return "user_group" }

// DeactivateGroup asks to deactivate a group.
type DeactivateGroup struct{ Group GroupID }

func (c DeactivateGroup) Decide(t *Turn) (Done, error) {
	if _, err := t.MemberOnly(); err != nil {
		return Done{}, err
	}
	g, err := t.ManagedGroup(c.Group)
	if err != nil {
		return Done{}, err
	}
	if g.Deactivated {
		return Done{}, BadRequest("User group is deactivated.")
	}
	if uses := t.groupUses(g.ID); len(uses) > 0 {
		return Done{}, Refuse(Invalid, "CANNOT_DEACTIVATE_GROUP_IN_USE", "Cannot deactivate user group in use.").
			With("objections", uses)
	}
	yes := true
	t.Record(&GroupChanged{ID: g.ID, Deactivated: &yes, Settings: GroupValues{}})
	return Done{}, nil
}

// groupUses returns where a group is in use, in the protocol's words.
func (r *Realm) groupUses(id GroupID) []any {
	uses := []any{}
	var supergroups []GroupID
	for _, gid := range r.groups.keys() {
		g := r.groups.find(gid)
		if slices.Contains(g.Subgroups, id) && !g.Deactivated {
			supergroups = append(supergroups, gid)
		}
	}
	if len(supergroups) > 0 {
		uses = append(uses, map[string]any{"type": "subgroup", "supergroup_ids": supergroups})
	}
	matches := func(v GroupValue) bool { return v.Group == id || slices.Contains(v.Subgroups, id) }
	for _, cid := range r.channels.keys() {
		c := r.channels.must(cid)
		if settings := settingsUsing(c.Settings, matches); len(settings) > 0 && !c.Archived {
			uses = append(uses, map[string]any{"type": "channel", "channel_id": cid, "settings": settings})
		}
	}
	for _, gid := range r.groups.keys() {
		g := r.groups.find(gid)
		if settings := settingsUsing(g.Settings, matches); len(settings) > 0 && gid != id && !g.Deactivated {
			uses = append(uses, map[string]any{"type": "user_group", "group_id": gid, "settings": settings})
		}
	}
	if settings := settingsUsing(r.Org().GroupSettings, matches); len(settings) > 0 {
		uses = append(uses, map[string]any{"type": "realm", "settings": settings})
	}
	return uses
}

// settingsUsing returns the names of the settings whose values match, sorted.
func settingsUsing(settings GroupValues, uses func(GroupValue) bool) (names []string) {
	for name, v := range settings {
		if uses(v) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ChangeMembers asks to add and remove members and subgroups of a group.
type ChangeMembers struct {
	Group                      GroupID
	Add, Remove                []UserID
	AddSubgroups, RemoveGroups []GroupID
	// the request came to the endpoint for subgroups, which has another error text for an empty request
	OnlySubgroups bool
}

func (c ChangeMembers) Decide(t *Turn) (Done, error) {
	me, err := t.MemberOnly()
	if err != nil {
		return Done{}, err
	}
	g := t.groups.find(c.Group)
	if g == nil {
		return Done{}, BadRequest("Invalid user group")
	}
	if len(c.Add)+len(c.Remove)+len(c.AddSubgroups)+len(c.RemoveGroups) == 0 {
		if c.OnlySubgroups {
			return Done{}, BadRequest(`Nothing to do. Specify at least one of "add" or "delete".`)
		}
		return Done{}, BadRequest(
			`Nothing to do. Specify at least one of "add", "delete", "add_subgroups" or "delete_subgroups".`)
	}
	if g.System || !c.mayChange(t, me, g) {
		return Done{}, errPermission()
	}
	facts, err := c.plan(t, g)
	if err != nil {
		return Done{}, err
	}
	if err := t.checkRegistrationSize(registeredIDBytes * (len(c.Add) + len(c.AddSubgroups))); err != nil {
		return Done{}, err
	}
	t.trackChannelVisibility(func() {
		for _, f := range facts {
			t.Record(f)
		}
	})
	for _, f := range facts {
		t.notifyMembersChanged(g, f.(*MembersChanged))
	}
	return Done{}, nil
}

// notifyMembersChanged sends direct messages to users that the caller added to a group or removed from it. It sends
// none for more than MaxNewSubscriptionMessages users.
func (t *Turn) notifyMembersChanged(g *Group, f *MembersChanged) {
	if len(f.Users) > MaxNewSubscriptionMessages {
		return
	}
	change := "removed you from the group"
	if f.Joined {
		change = "added you to the group"
	}
	for _, id := range f.Users {
		if u := t.users.must(id); u.Active && !u.IsBot() && id != t.User {
			t.NotifyUsers(t.actor()+" "+change+" @_*"+g.Name+"*.", id)
		}
	}
}

// mayChange reports whether the user is allowed to make the changes. Users that manage the group may make all of them.
// Others need the group's permissions to add or remove, or to join or leave if the change is only about themselves.
func (c ChangeMembers) mayChange(t *Turn, me *User, g *Group) bool {
	if t.mayManageGroup(me, g) {
		return true
	}
	may := func(name string) bool {
		return t.allowed(me, t.GroupSettingOf(g, name), findGroupRule(GroupRules, name).EveryoneOK)
	}
	self := func(list []UserID) bool { return len(list) == 1 && list[0] == me.ID }
	if len(c.Add)+len(c.AddSubgroups) > 0 && !may("can_add_members_group") &&
		!(self(c.Add) && len(c.AddSubgroups) == 0 && may("can_join_group")) {
		return false
	}
	if len(c.Remove)+len(c.RemoveGroups) > 0 && !may("can_remove_members_group") &&
		!(self(c.Remove) && len(c.RemoveGroups) == 0 && may("can_leave_group")) {
		return false
	}
	return true
}

// plan checks the changes and returns their facts, one for each kind of change that has any. All checks come before the
// first fact: the request is refused as a whole.
func (c ChangeMembers) plan(t *Turn, g *Group) (out []Fact, err error) {
	if err := t.checkMembers(c.Add); err != nil {
		return nil, err
	}
	for _, u := range c.Add {
		if containsSorted(g.Members, u) {
			return nil, BadRequest("User %d is already a member of this group", u)
		}
	}
	for _, u := range c.Remove { // removals come after additions, so they may be about the same members
		if !containsSorted(g.Members, u) && !slices.Contains(c.Add, u) || t.isInactive(u) {
			return nil, BadRequest("There is no member '%d' in this user group", u)
		}
	}
	if err := t.checkSubgroups(c.AddSubgroups); err != nil {
		return nil, err
	}
	for _, s := range c.AddSubgroups {
		if slices.Contains(g.Subgroups, s) {
			return nil, BadRequest("User group %d is already a subgroup of this group.", s)
		}
		if s == g.ID || t.isSubgroupOf(g.ID, s, 0) {
			return nil, BadRequest("User group %d is already a subgroup of one of the passed subgroups.", g.ID)
		}
	}
	for _, s := range c.RemoveGroups {
		if !slices.Contains(g.Subgroups, s) && !slices.Contains(c.AddSubgroups, s) {
			return nil, BadRequest("User group %d is not a subgroup of this group.", s)
		}
	}
	add := func(f *MembersChanged) {
		if len(f.Users)+len(f.Groups) > 0 {
			out = append(out, f)
		}
	}
	add(&MembersChanged{Group: g.ID, Joined: true, Users: sortUnique(c.Add)})
	add(&MembersChanged{Group: g.ID, Users: sortUnique(c.Remove)})
	add(&MembersChanged{Group: g.ID, Joined: true, Groups: sortUnique(c.AddSubgroups)})
	add(&MembersChanged{Group: g.ID, Groups: sortUnique(c.RemoveGroups)})
	return out, nil
}

// isSubgroupOf reports whether the group below is a subgroup of the group above, at any depth.
func (r *Realm) isSubgroupOf(below, above GroupID, depth int) bool {
	g := r.groups.find(above)
	if g == nil || depth > maxGroupDepth {
		return false
	}
	for _, s := range g.Subgroups {
		if s == below || r.isSubgroupOf(below, s, depth+1) {
			return true
		}
	}
	return false
}

// MembersChanged adds users or subgroups to a group, or removes them.
type MembersChanged struct {
	Group  GroupID
	Joined bool
	Users  []UserID
	Groups []GroupID

	Deactivated bool // as in GroupMembersChanged; set by notices
}

func (f *MembersChanged) apply(r *Realm) {
	g := r.groups.change(f.Group)
	g.Members, g.Subgroups = slices.Clone(g.Members), slices.Clone(g.Subgroups)
	if f.Joined {
		g.Members, g.Subgroups = sortUnique(append(g.Members, f.Users...)), sortUnique(append(g.Subgroups, f.Groups...))
		return
	}
	g.Members = slices.DeleteFunc(g.Members, func(u UserID) bool { return containsSorted(f.Users, u) })
	g.Subgroups = slices.DeleteFunc(g.Subgroups, func(s GroupID) bool { return containsSorted(f.Groups, s) })
}

func (f *MembersChanged) notices(r *Realm) []Notice {
	deactivated := r.groups.must(f.Group).Deactivated
	if len(f.Users) > 0 {
		e := &GroupMembersChanged{f.Group, f.Joined, f.Users, deactivated}
		return []Notice{{To: r.everyoneAudience(), Event: e}}
	}
	e := &MembersChanged{Group: f.Group, Joined: f.Joined, Groups: f.Groups, Deactivated: deactivated}
	return []Notice{{To: r.everyoneAudience(), Event: e}}
}

func (*MembersChanged) EventType() string { return "user_group" }

// AllMembers returns all users in a group, also through subgroups, ascending.
func (r *Realm) AllMembers(g *Group) []UserID {
	var s ids.Set
	r.collectMembers(g, &s, 0)
	return ids.IDs[UserID](s)
}

// collectMembers adds the members of a group and of its subgroups to s.
func (r *Realm) collectMembers(g *Group, s *ids.Set, depth int) {
	s.Union(ids.SetOf(r.DirectMembers(g)...))
	for _, id := range g.Subgroups {
		if sub := r.groups.find(id); sub != nil && depth < maxGroupDepth {
			r.collectMembers(sub, s, depth+1)
		}
	}
}

// AllSubgroups returns all direct and indirect subgroups of a group, ascending.
func (r *Realm) AllSubgroups(g *Group) []GroupID {
	var s ids.Set
	var walk func(*Group, int)
	walk = func(g *Group, depth int) {
		for _, id := range g.Subgroups {
			if sub := r.groups.find(id); sub != nil && depth < maxGroupDepth && s.Add(int64(id)) {
				walk(sub, depth+1)
			}
		}
	}
	walk(g, 0)
	return ids.IDs[GroupID](s)
}

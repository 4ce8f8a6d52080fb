package wire

import (
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/shape"
)

var groupEndpoints = []Endpoint{
	Get("/user_groups", getGroups),
	CommandFromCall("POST", "/user_groups/create", createGroup, func(id realm.GroupID) *createdGroupAnswer {
		return &createdGroupAnswer{id}
	}),
	CommandFromCall("PATCH", "/user_groups/{user_group_id}", editGroup, emptyAnswer),
	CommandFromForm("POST", "/user_groups/{user_group_id}/deactivate", func(f groupIDForm) realm.DeactivateGroup {
		return realm.DeactivateGroup{Group: f.Group}
	}, emptyAnswer),
	Get("/user_groups/{user_group_id}/members", getMembers),
	CommandFromForm("POST", "/user_groups/{user_group_id}/members", changeMembers, emptyAnswer),
	Get("/user_groups/{user_group_id}/members/{user_id}", getIsMember),
	Get("/user_groups/{user_group_id}/subgroups", getSubgroups),
	CommandFromForm("POST", "/user_groups/{user_group_id}/subgroups", changeSubgroups, emptyAnswer),
}

var groupEvents = []EventKind{
	Event(func(e *realm.GroupAppeared, to *Recipient) *groupAddedEvent {
		if e.Back && to.Has(realm.CapDeactivatedGroups) {
			return nil // this client gets an update instead
		}
		return &groupAddedEvent{Group: newGroup(e.Group)}
	}),
	Events(groupChanged).sends(formOf[groupChangedEvent](), formOf[groupRemovedEvent]()),
	EventOneOf(func(e *realm.GroupMembersChanged, to *Recipient) any {
		if e.Deactivated && !to.Has(realm.CapDeactivatedGroups) {
			return nil
		}
		if e.Joined {
			return &groupMembersAddedEvent{groupMembers: groupMembers{e.Group, e.Users}}
		}
		return &groupMembersRemovedEvent{groupMembers: groupMembers{e.Group, e.Users}}
	}).sends(formOf[groupMembersAddedEvent](), formOf[groupMembersRemovedEvent]()),
	EventOneOf(func(e *realm.MembersChanged, to *Recipient) any {
		if e.Deactivated && !to.Has(realm.CapDeactivatedGroups) {
			return nil
		}
		if e.Joined {
			return &subgroupsAddedEvent{subgroups: subgroups{e.Group, e.Groups}}
		}
		return &subgroupsRemovedEvent{subgroups: subgroups{e.Group, e.Groups}}
	}).sends(formOf[subgroupsAddedEvent](), formOf[subgroupsRemovedEvent]()),
}

type groupsAnswer struct {
	Groups []groupJSON `json:"user_groups"`
}

type createdGroupAnswer struct {
	Group realm.GroupID `json:"group_id"`
}

type groupMembersAnswer struct {
	Members []realm.UserID `json:"members"`
}

type isMemberAnswer struct {
	IsMember bool `json:"is_user_group_member"`
}

type subgroupsAnswer struct {
	Subgroups []realm.GroupID `json:"subgroups"`
}

type groupAddedEvent struct {
	_     struct{}  `const:"type=user_group op=add"`
	Group groupJSON `json:"group"`
}

// groupChangedEvent has one changed field.
type groupChangedEvent struct {
	_     struct{}      `const:"type=user_group op=update"`
	Group realm.GroupID `json:"group_id"`
	Data  struct {
		Name        *string `json:"name,omitzero"`
		Description *string `json:"description,omitzero"`
		Deactivated *bool   `json:"deactivated,omitzero"`
		Rules       changedGroupRules
	} `json:"data"`
}

type groupRemovedEvent struct {
	_     struct{}      `const:"type=user_group op=remove"`
	Group realm.GroupID `json:"group_id"`
}

type groupMembers struct {
	Group realm.GroupID  `json:"group_id"`
	Users []realm.UserID `json:"user_ids"`
}

type groupMembersAddedEvent struct {
	_ struct{} `const:"type=user_group op=add_members"`
	groupMembers
}

type groupMembersRemovedEvent struct {
	_ struct{} `const:"type=user_group op=remove_members"`
	groupMembers
}

type subgroups struct {
	Group  realm.GroupID   `json:"group_id"`
	Groups []realm.GroupID `json:"direct_subgroup_ids"`
}

type subgroupsAddedEvent struct {
	_ struct{} `const:"type=user_group op=add_subgroups"`
	subgroups
}

type subgroupsRemovedEvent struct {
	_ struct{} `const:"type=user_group op=remove_subgroups"`
	subgroups
}

type groupJSON struct {
	ID          realm.GroupID   `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Created     int64           `json:"date_created"`
	Creator     realm.UserID    `json:"creator_id" zero:"null"`
	Members     []realm.UserID  `json:"members"`
	Subgroups   []realm.GroupID `json:"direct_subgroup_ids"`
	System      bool            `json:"is_system_group"`
	Deactivated bool            `json:"deactivated"`
	Rules       groupRules
}

// groupRules is the permission settings of a group, all of them.
type groupRules realm.GroupValues

// JSONFields returns a field for each setting.
func (groupRules) JSONFields() []shape.TableField { return ruleTableFields(realm.GroupRules, false) }

// JSONField returns the value of a setting.
func (r groupRules) JSONField(i int) any { return groupValueJSON{r[realm.GroupRules[i].Name]} }

// changedGroupRules is one changed permission setting; nil if another field changed.
type changedGroupRules realm.GroupValues

// JSONFields returns a field for each setting.
func (changedGroupRules) JSONFields() []shape.TableField {
	return ruleTableFields(realm.GroupRules, true)
}

// JSONField returns the value of a setting, Absent for all but the changed one.
func (r changedGroupRules) JSONField(i int) any {
	if v, ok := r[realm.GroupRules[i].Name]; ok {
		return groupValueJSON{v}
	}
	return shape.Absent{}
}

// ruleTableFields returns the fields of a table of permission settings.
func ruleTableFields(rules []realm.GroupSettingRule, optional bool) []shape.TableField {
	return each(rules, func(r realm.GroupSettingRule) shape.TableField {
		return shape.TableField{Name: r.Name, Shape: formOf[groupValueJSON](), Optional: optional}
	})
}

// groupValueJSON is the id of a group, or an unnamed group.
type groupValueJSON struct{ realm.GroupValue }

type unnamedGroup struct {
	Members   []realm.UserID  `json:"direct_members"`
	Subgroups []realm.GroupID `json:"direct_subgroups"`
}

// JSONShape returns the two alternatives.
func (groupValueJSON) JSONShape() *shape.Shape { return formOf[either[realm.GroupID, unnamedGroup]]() }

func (g groupValueJSON) appendTo(b []byte) []byte {
	if g.Group != 0 {
		return appendJSON(b, int64(g.Group))
	}
	return appendJSON(b, unnamedGroup{g.Members, g.Subgroups})
}

func newGroup(g realm.GroupInfo) groupJSON {
	return groupJSON{g.ID, g.Name, g.Description, g.Created, g.Creator, g.Members, g.Subgroups, g.System, g.Deactivated,
		groupRules(g.Settings)}
}

// groupChanged renders a changed group: one event for each field. Clients that do not know deactivated groups get a
// removal instead of a deactivation.
func groupChanged(e *realm.GroupChanged, to *Recipient) []any {
	all := to.Has(realm.CapDeactivatedGroups)
	if e.Deactivated != nil && !all {
		if *e.Deactivated {
			return []any{&groupRemovedEvent{Group: e.ID}}
		}
		return nil // the client gets an "add" event instead
	}
	if e.WasDeactivated && !all {
		return nil
	}
	var events []any
	changed := func() *groupChangedEvent {
		x := &groupChangedEvent{Group: e.ID}
		events = append(events, x)
		return x
	}
	if e.Name != nil {
		changed().Data.Name = e.Name
	}
	if e.Description != nil {
		changed().Data.Description = e.Description
	}
	if e.Deactivated != nil {
		changed().Data.Deactivated = e.Deactivated
	}
	for _, rule := range realm.GroupRules {
		if v, ok := e.Settings[rule.Name]; ok {
			changed().Data.Rules = changedGroupRules{rule.Name: v}
		}
	}
	return events
}

type groupIDForm struct {
	Group realm.GroupID `path:"user_group_id"`
}

type getGroupsForm struct {
	Deactivated bool `form:"include_deactivated_groups"`
}

func getGroups(c *Call, v realm.View, f getGroupsForm) (*groupsAnswer, error) {
	if _, err := v.MemberOnly(); err != nil {
		return nil, err
	}
	out := &groupsAnswer{}
	v.EachGroup(func(g *realm.Group) {
		if !g.Deactivated || f.Deactivated {
			out.Groups = append(out.Groups, newGroup(v.GroupInfo(g)))
		}
	})
	return out, nil
}

type createGroupForm struct {
	Name        string             `form:"name,required"`
	Members     []realm.UserID     `form:"members,required"` // the first that is reported as missing (protocol)
	Description string             `form:"description,required"`
	Subgroups   []realm.GroupID    `form:"subgroups"`
	AddMembers  *form.GroupSetting `form:"can_add_members_group"`
	Join        *form.GroupSetting `form:"can_join_group"`
	Leave       *form.GroupSetting `form:"can_leave_group"`
	Manage      *form.GroupSetting `form:"can_manage_group"`
	Mention     *form.GroupSetting `form:"can_mention_group"`
	Remove      *form.GroupSetting `form:"can_remove_members_group"`
}

func createGroup(c *Call, f createGroupForm) (realm.CreateGroup, error) {
	cmd := realm.CreateGroup{Name: f.Name, Description: f.Description, Members: f.Members, Subgroups: f.Subgroups}
	for i, g := range []*form.GroupSetting{f.AddMembers, f.Join, f.Leave, f.Manage, f.Mention, f.Remove} {
		if g != nil {
			cmd.Settings = append(cmd.Settings, realm.GroupChange{Name: realm.GroupRules[i].Name,
				New: groupValueFromForm(*g)})
		}
	}
	return cmd, nil
}

type editGroupForm struct {
	Group       realm.GroupID            `path:"user_group_id"`
	Name        form.Opt[string]         `form:"name"`
	Description form.Opt[string]         `form:"description"`
	Deactivated *bool                    `form:"deactivated"`
	AddMembers  *form.GroupSettingUpdate `form:"can_add_members_group"`
	Join        *form.GroupSettingUpdate `form:"can_join_group"`
	Leave       *form.GroupSettingUpdate `form:"can_leave_group"`
	Manage      *form.GroupSettingUpdate `form:"can_manage_group"`
	Mention     *form.GroupSettingUpdate `form:"can_mention_group"`
	Remove      *form.GroupSettingUpdate `form:"can_remove_members_group"`
}

func editGroup(c *Call, f editGroupForm) (realm.EditGroup, error) {
	cmd := realm.EditGroup{Group: f.Group, Reactivate: f.Deactivated != nil && !*f.Deactivated}
	if f.Name.Set {
		cmd.Name = &f.Name.Value
	}
	if f.Description.Set {
		cmd.Description = &f.Description.Value
	}
	for i, g := range []*form.GroupSettingUpdate{f.AddMembers, f.Join, f.Leave, f.Manage, f.Mention, f.Remove} {
		if g == nil {
			continue
		}
		change := realm.GroupChange{Name: realm.GroupRules[i].Name, New: groupValueFromForm(g.New)}
		if g.Old != nil {
			old := groupValueFromForm(*g.Old)
			change.Old = &old
		}
		cmd.Settings = append(cmd.Settings, change)
	}
	return cmd, nil
}

type membersForm struct {
	Group  realm.GroupID `path:"user_group_id"`
	Direct bool          `form:"direct_member_only"`
}

// findGroup returns a group for callers that are allowed to see groups: members, not guests.
func findGroup(v realm.View, id realm.GroupID) (*realm.Group, error) {
	if _, err := v.MemberOnly(); err != nil {
		return nil, err
	}
	g := v.FindGroup(id)
	if g == nil {
		return nil, realm.BadRequest("Invalid user group")
	}
	if g.Deactivated {
		return nil, realm.BadRequest("User group is deactivated.")
	}
	return g, nil
}

func getMembers(c *Call, v realm.View, f membersForm) (*groupMembersAnswer, error) {
	g, err := findGroup(v, f.Group)
	if err != nil {
		return nil, err
	}
	if f.Direct {
		return &groupMembersAnswer{v.DirectMembers(g)}, nil
	}
	return &groupMembersAnswer{v.AllMembers(g)}, nil
}

type isMemberForm struct {
	membersForm
	User realm.UserID `path:"user_id"`
}

func getIsMember(c *Call, v realm.View, f isMemberForm) (*isMemberAnswer, error) {
	g, err := findGroup(v, f.Group)
	if err != nil {
		return nil, err
	}
	u := v.Find(f.User)
	if u == nil || !v.MaySeeUser(u) {
		return nil, realm.BadRequest("No such user")
	}
	if f.Direct {
		return &isMemberAnswer{slices.Contains(v.DirectMembers(g), u.ID)}, nil
	}
	return &isMemberAnswer{u.Active && v.InGroup(u, g.ID)}, nil
}

type subgroupsForm struct {
	Group  realm.GroupID `path:"user_group_id"`
	Direct bool          `form:"direct_subgroup_only"`
}

func getSubgroups(c *Call, v realm.View, f subgroupsForm) (*subgroupsAnswer, error) {
	g, err := findGroup(v, f.Group)
	if err != nil {
		return nil, err
	}
	if f.Direct {
		return &subgroupsAnswer{slices.Clone(g.Subgroups)}, nil
	}
	return &subgroupsAnswer{v.AllSubgroups(g)}, nil
}

type changeMembersForm struct {
	Group           realm.GroupID   `path:"user_group_id"`
	Add             []realm.UserID  `form:"add"`
	Delete          []realm.UserID  `form:"delete"`
	AddSubgroups    []realm.GroupID `form:"add_subgroups"`
	DeleteSubgroups []realm.GroupID `form:"delete_subgroups"`
}

func changeMembers(f changeMembersForm) realm.ChangeMembers {
	return realm.ChangeMembers{Group: f.Group, Add: f.Add, Remove: f.Delete, AddSubgroups: f.AddSubgroups,
		RemoveGroups: f.DeleteSubgroups}
}

type changeSubgroupsForm struct {
	Group  realm.GroupID   `path:"user_group_id"`
	Add    []realm.GroupID `form:"add"`
	Delete []realm.GroupID `form:"delete"`
}

func changeSubgroups(f changeSubgroupsForm) realm.ChangeMembers {
	return realm.ChangeMembers{Group: f.Group, AddSubgroups: f.Add, RemoveGroups: f.Delete, OnlySubgroups: true}
}

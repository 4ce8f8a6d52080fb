package wire

import (
	"slices"

	"parley/actors/realm"
	"parley/wire/form"
)

var groupEndpoints = []Endpoint{
	Get("/user_groups", getGroups).Returns("{user_groups: [Group]}"),
	CommandFromCall("POST", "/user_groups/create", createGroup, func(id realm.GroupID) Answer {
		return Answer{"group_id": id}
	}).Returns("{group_id: int}"),
	CommandFromCall("PATCH", "/user_groups/{user_group_id}", editGroup, emptyAnswer),
	CommandFromForm("POST", "/user_groups/{user_group_id}/deactivate", func(f groupIDForm) realm.DeactivateGroup {
		return realm.DeactivateGroup{Group: f.Group}
	}, emptyAnswer),
	Get("/user_groups/{user_group_id}/members", getMembers).Returns("{members: [int]}"),
	CommandFromForm("POST", "/user_groups/{user_group_id}/members", changeMembers, emptyAnswer),
	Get("/user_groups/{user_group_id}/members/{user_id}", getIsMember).Returns("{is_user_group_member: bool}"),
	Get("/user_groups/{user_group_id}/subgroups", getSubgroups).Returns("{subgroups: [int]}"),
	CommandFromForm("POST", "/user_groups/{user_group_id}/subgroups", changeSubgroups, emptyAnswer),
}

var groupEvents = []EventKind{
	EventOneOf(func(e *realm.GroupAppeared, to *Recipient) any {
		if e.Back && to.Has(realm.CapDeactivatedGroups) {
			return nil // this client gets an update instead
		}
		return obj{"type": "user_group", "op": "add", "group": groupObject(e.Group)}
	}),
	Events(groupChanged),
	EventOneOf(func(e *realm.GroupMembersChanged, to *Recipient) any {
		if e.Deactivated && !to.Has(realm.CapDeactivatedGroups) {
			return nil
		}
		op := "remove_members"
		if e.Joined {
			op = "add_members"
		}
		return obj{"type": "user_group", "op": op, "group_id": e.Group, "user_ids": e.Users}
	}),
	EventOneOf(func(e *realm.MembersChanged, to *Recipient) any {
		if e.Deactivated && !to.Has(realm.CapDeactivatedGroups) {
			return nil
		}
		op := "remove_subgroups"
		if e.Joined {
			op = "add_subgroups"
		}
		return obj{"type": "user_group", "op": op, "group_id": e.Group, "direct_subgroup_ids": e.Groups}
	}),
}

// groupObject returns a user group as JSON.
func groupObject(g realm.GroupInfo) obj {
	o := obj{
		"id":                  g.ID,
		"name":                g.Name,
		"description":         g.Description,
		"date_created":        g.Created,
		"creator_id":          nil,
		"members":             nonNil(g.Members),
		"direct_subgroup_ids": nonNil(g.Subgroups),
		"is_system_group":     g.System,
		"deactivated":         g.Deactivated,
	}
	if g.Creator != 0 {
		o["creator_id"] = g.Creator
	}
	for name, v := range g.Settings {
		o[name] = groupValue(v)
	}
	return o
}

// groupChanged renders a changed group: one event for each field. Clients that do not know deactivated groups get a
// removal instead of a deactivation.
func groupChanged(e *realm.GroupChanged, to *Recipient) []any {
	all := to.Has(realm.CapDeactivatedGroups)
	if e.Deactivated != nil && !all {
		if *e.Deactivated {
			return []any{obj{"type": "user_group", "op": "remove", "group_id": e.ID}}
		}
		return nil // the client gets an "add" event instead
	}
	if e.WasDeactivated && !all {
		return nil
	}
	var events []any
	changed := func(field string, value any) {
		events = append(events, obj{"type": "user_group", "op": "update", "group_id": e.ID, "data": obj{field: value}})
	}
	if e.Name != nil {
		changed("name", *e.Name)
	}
	if e.Description != nil {
		changed("description", *e.Description)
	}
	if e.Deactivated != nil {
		changed("deactivated", *e.Deactivated)
	}
	for _, rule := range realm.GroupRules {
		if v, ok := e.Settings[rule.Name]; ok {
			changed(rule.Name, groupValue(v))
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

func getGroups(c *Call, v realm.View, f getGroupsForm) (Answer, error) {
	if _, err := v.MemberOnly(); err != nil {
		return nil, err
	}
	list := []any{}
	v.EachGroup(func(g *realm.Group) {
		if !g.Deactivated || f.Deactivated {
			list = append(list, groupObject(v.GroupInfo(g)))
		}
	})
	return Answer{"user_groups": list}, nil
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

func getMembers(c *Call, v realm.View, f membersForm) (Answer, error) {
	g, err := findGroup(v, f.Group)
	if err != nil {
		return nil, err
	}
	if f.Direct {
		return Answer{"members": nonNil(v.DirectMembers(g))}, nil
	}
	return Answer{"members": v.AllMembers(g)}, nil
}

type isMemberForm struct {
	membersForm
	User realm.UserID `path:"user_id"`
}

func getIsMember(c *Call, v realm.View, f isMemberForm) (Answer, error) {
	g, err := findGroup(v, f.Group)
	if err != nil {
		return nil, err
	}
	u := v.Find(f.User)
	if u == nil || !v.MaySeeUser(u) {
		return nil, realm.BadRequest("No such user")
	}
	if f.Direct {
		return Answer{"is_user_group_member": slices.Contains(v.DirectMembers(g), u.ID)}, nil
	}
	return Answer{"is_user_group_member": u.Active && v.InGroup(u, g.ID)}, nil
}

type subgroupsForm struct {
	Group  realm.GroupID `path:"user_group_id"`
	Direct bool          `form:"direct_subgroup_only"`
}

func getSubgroups(c *Call, v realm.View, f subgroupsForm) (Answer, error) {
	g, err := findGroup(v, f.Group)
	if err != nil {
		return nil, err
	}
	if f.Direct {
		return Answer{"subgroups": nonNil(slices.Clone(g.Subgroups))}, nil
	}
	return Answer{"subgroups": v.AllSubgroups(g)}, nil
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

package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var defaultChannelEndpoints = []Endpoint{
	CommandFromForm("POST", "/default_streams", func(f defaultChannelForm) realm.SetDefaultChannel {
		return realm.SetDefaultChannel{Channel: f.Channel, Is: true}
	}, emptyAnswer),
	CommandFromForm("DELETE", "/default_streams", func(f defaultChannelForm) realm.SetDefaultChannel {
		return realm.SetDefaultChannel{Channel: f.Channel}
	}, emptyAnswer),
	CommandFromForm("POST", "/default_stream_groups/create", func(f createDefaultGroupForm) realm.CreateDefaultGroup {
		return realm.CreateDefaultGroup{Name: f.Name, Description: f.Description, Channels: f.Channels}
	}, emptyAnswer),
	CommandFromForm("PATCH", "/default_stream_groups/{group_id}", func(f editDefaultGroupForm) realm.EditDefaultGroup {
		return realm.EditDefaultGroup{ID: f.Group, Name: pointerIfSet(f.Name), Description: pointerIfSet(f.Description)}
	}, emptyAnswer),
	CommandFromCall("PATCH", "/default_stream_groups/{group_id}/streams", changeDefaultGroupChannels, emptyAnswer),
	CommandFromForm("DELETE", "/default_stream_groups/{group_id}",
		func(f deleteDefaultGroupForm) realm.RemoveDefaultGroup {
			return realm.RemoveDefaultGroup{ID: f.Group}
		}, emptyAnswer),
}

var defaultChannelEvents = []EventKind{
	EventOneOf(func(e *realm.DefaultChannelsSet, _ *Recipient) any {
		return obj{"type": "default_streams", "default_streams": nonNil(e.Channels)}
	}),
	EventOneOf(func(e *realm.DefaultGroupsEvent, _ *Recipient) any {
		return obj{"type": "default_stream_groups", "default_stream_groups": defaultGroupObjects(e.Groups)}
	}),
}

func defaultGroupObjects(groups []realm.DefaultGroup) []any {
	list := []any{}
	for _, g := range groups {
		list = append(list, obj{"id": g.ID, "name": g.Name, "description": g.Description,
			"streams": nonNil(g.Channels)})
	}
	return list
}

type defaultChannelForm struct {
	Channel realm.ChannelID `form:"stream_id,required"`
}

type createDefaultGroupForm struct {
	Name        string   `form:"group_name,required"`
	Description string   `form:"description,required"`
	Channels    []string `form:"stream_names,required"`
}

type editDefaultGroupForm struct {
	Group       int64            `path:"group_id"`
	Name        form.Opt[string] `form:"new_group_name"`
	Description form.Opt[string] `form:"new_description"`
}

type changeDefaultGroupChannelsForm struct {
	Group    int64    `path:"group_id"`
	Op       string   `form:"op,required"`
	Channels []string `form:"stream_names,required"`
}

func changeDefaultGroupChannels(c *Call, f changeDefaultGroupChannelsForm) (realm.ChangeDefaultGroupChannels, error) {
	if f.Op != "add" && f.Op != "remove" {
		return realm.ChangeDefaultGroupChannels{},
			realm.BadRequest(`Invalid value for "op". Specify one of "add" or "remove".`)
	}
	return realm.ChangeDefaultGroupChannels{ID: f.Group, Add: f.Op == "add", Channels: f.Channels}, nil
}

type deleteDefaultGroupForm struct {
	Group int64 `path:"group_id"`
}

package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var defaultChannelEndpoints = []Endpoint{
	Do("POST", "/default_streams", func(f defaultChannelForm) realm.SetDefaultChannel {
		return realm.SetDefaultChannel{Channel: f.Channel, Is: true}
	}, silent),
	Do("DELETE", "/default_streams", func(f defaultChannelForm) realm.SetDefaultChannel {
		return realm.SetDefaultChannel{Channel: f.Channel}
	}, silent),
	Do("POST", "/default_stream_groups/create", func(f createDefaultGroupForm) realm.CreateDefaultGroup {
		return realm.CreateDefaultGroup{Name: f.Name, Description: f.Description, Channels: f.Channels}
	}, silent),
	Do("PATCH", "/default_stream_groups/{group_id}", func(f editDefaultGroupForm) realm.EditDefaultGroup {
		return realm.EditDefaultGroup{ID: f.Group, Name: given(f.Name), Description: given(f.Description)}
	}, silent),
	Act("PATCH", "/default_stream_groups/{group_id}/streams", regroupDefaults, silent),
	Do("DELETE", "/default_stream_groups/{group_id}", func(f dropDefaultGroupForm) realm.DropDefaultGroup {
		return realm.DropDefaultGroup{ID: f.Group}
	}, silent),
}

var defaultChannelEvents = []EventKind{
	Event(func(e *realm.DefaultChannelsSet, _ *To) any {
		return obj{"type": "default_streams", "default_streams": nonNil(e.Channels)}
	}),
	Event(func(e *realm.DefaultGroupsTold, _ *To) any {
		return obj{"type": "default_stream_groups", "default_stream_groups": defaultGroupObjects(e.Groups)}
	}),
}

func defaultGroupObjects(groups []realm.DefaultGroup) []any {
	list := []any{}
	for _, g := range groups {
		list = append(list, obj{"id": g.ID, "name": g.Name, "description": g.Description, "streams": nonNil(g.Channels)})
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

type regroupDefaultsForm struct {
	Group    int64    `path:"group_id"`
	Op       string   `form:"op,required"`
	Channels []string `form:"stream_names,required"`
}

func regroupDefaults(c *Call, f regroupDefaultsForm) (realm.RegroupDefaults, error) {
	if f.Op != "add" && f.Op != "remove" {
		return realm.RegroupDefaults{}, realm.Bad(`Invalid value for "op". Specify one of "add" or "remove".`)
	}
	return realm.RegroupDefaults{ID: f.Group, Add: f.Op == "add", Channels: f.Channels}, nil
}

type dropDefaultGroupForm struct {
	Group int64 `path:"group_id"`
}

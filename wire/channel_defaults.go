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
	Event(func(e *realm.DefaultChannelsSet, _ *Recipient) *defaultChannelsEvent {
		return &defaultChannelsEvent{Channels: e.Channels}
	}),
	Event(func(e *realm.DefaultGroupsEvent, _ *Recipient) *defaultChannelGroupsEvent {
		return &defaultChannelGroupsEvent{Groups: each(e.Groups, newDefaultChannelGroup)}
	}),
}

type defaultChannelsEvent struct {
	_        struct{}          `const:"type=default_streams"`
	Channels []realm.ChannelID `json:"default_streams"`
}

type defaultChannelGroupsEvent struct {
	_      struct{}                  `const:"type=default_stream_groups"`
	Groups []defaultChannelGroupJSON `json:"default_stream_groups"`
}

type defaultChannelGroupJSON struct {
	ID          int64             `json:"id"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Channels    []realm.ChannelID `json:"streams"`
}

func newDefaultChannelGroup(g realm.DefaultGroup) defaultChannelGroupJSON {
	return defaultChannelGroupJSON{g.ID, g.Name, g.Description, g.Channels}
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

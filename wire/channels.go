package wire

import (
	"parley/actors/realm"
)

var channelEndpoints = []Endpoint{}

var channelEvents = []EventKind{
	Event(channelAppeared),
	Event(channelVanished),
	Events(channelStirred),
}

// groupValue is a permission setting on the wire: a group's id, or its members.
func groupValue(g realm.GroupValue) any {
	if g.Group != 0 {
		return g.Group
	}
	return obj{"direct_members": nonNil(g.Members), "direct_subgroups": nonNil(g.Subgroups)}
}

func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// postPolicy is the old number that stands for a channel's posting group.
func postPolicy(g realm.GroupValue) int {
	switch g.Group {
	case 3:
		return 2
	case 5:
		return 3
	case 4:
		return 4
	}
	return 1
}

// channelObject is a channel as clients know it.
func channelObject(c realm.ChannelInfo) obj {
	post := postPolicy(c.Groups["can_send_message_group"])
	o := obj{
		"stream_id": c.ID, "name": c.Name, "description": c.Description, "rendered_description": c.DescriptionHTML, "date_created": c.Created,
		"creator_id": nil, "invite_only": c.Private, "is_web_public": c.WebPublic, "history_public_to_subscribers": c.History,
		"is_archived": c.Archived, "is_announcement_only": post == 2, "stream_post_policy": post, "message_retention_days": nil,
		"first_message_id": nil, "folder_id": nil, "topics_policy": c.TopicsPolicy, "is_recently_active": c.RecentlyActive,
		"stream_weekly_traffic": nil, "subscriber_count": c.Subscribers,
	}
	if c.Creator != 0 {
		o["creator_id"] = c.Creator
	}
	if c.Retention != nil {
		o["message_retention_days"] = *c.Retention
	}
	if c.FirstMessage != 0 {
		o["first_message_id"] = c.FirstMessage
	}
	if c.Folder != 0 {
		o["folder_id"] = c.Folder
	}
	if c.WeeklyTraffic >= 0 {
		o["stream_weekly_traffic"] = c.WeeklyTraffic
	}
	for name, g := range c.Groups {
		o[name] = groupValue(g)
	}
	return o
}

func channelAppeared(e *realm.ChannelAppeared, to *To) any {
	list := []any{}
	for _, c := range e.Channels {
		list = append(list, channelObject(c))
	}
	return obj{"type": "stream", "op": "create", "streams": list}
}

func channelVanished(e *realm.ChannelVanished, to *To) any {
	if e.Archived && to.Has(realm.CapArchivedChannels) {
		return nil
	}
	list := []any{}
	for _, c := range e.Channels {
		list = append(list, obj{"stream_id": c})
	}
	return obj{"type": "stream", "op": "delete", "streams": list, "stream_ids": e.Channels}
}

func channelStirred(e *realm.ChannelStirred, to *To) []any {
	var out []any
	if e.FirstChanged {
		var first any
		if e.First != 0 {
			first = e.First
		}
		out = append(out, obj{"type": "stream", "op": "update", "property": "first_message_id", "value": first, "stream_id": e.Channel, "name": e.Name})
	}
	if e.Active {
		out = append(out, obj{"type": "stream", "op": "update", "property": "is_recently_active", "value": true, "stream_id": e.Channel, "name": e.Name})
	}
	return out
}

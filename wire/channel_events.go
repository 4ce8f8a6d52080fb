package wire

import (
	"slices"

	"parley/actors/realm"
)

func channelAppeared(e *realm.ChannelAppeared, to *Recipient) any {
	list := []any{}
	for _, c := range e.Channels {
		if !c.Archived || to.Has(realm.CapArchivedChannels) {
			list = append(list, channelObject(c))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return obj{"type": "stream", "op": "create", "streams": list}
}

func channelVanished(e *realm.ChannelVanished, to *Recipient) any {
	if e.Archived && to.Has(realm.CapArchivedChannels) {
		return nil
	}
	visible := withoutHiddenArchived(e.Channels, e.Shut, to)
	if len(visible) == 0 {
		return nil
	}
	return channelsDeleted(visible...)
}

// withoutHiddenArchived returns channels without the archived ones, if this kind of client gets no events of archived
// channels.
func withoutHiddenArchived(channels, archived []realm.ChannelID, to *Recipient) []realm.ChannelID {
	if len(archived) == 0 || to.Has(realm.CapArchivedChannels) {
		return channels
	}
	return slices.DeleteFunc(slices.Clone(channels), func(c realm.ChannelID) bool {
		return slices.Contains(archived, c)
	})
}

// channelsDeleted returns the event that removes channels from a client's list.
func channelsDeleted(ids ...realm.ChannelID) obj {
	list := []any{}
	for _, c := range ids {
		list = append(list, obj{"stream_id": c})
	}
	return obj{"type": "stream", "op": "delete", "streams": list, "stream_ids": ids}
}

// channelUpdate returns the event of one changed channel property.
func channelUpdate(id realm.ChannelID, name, property string, value any) obj {
	return obj{"type": "stream", "op": "update", "stream_id": id, "name": name, "property": property, "value": value}
}

func channelChanged(e *realm.ChannelChanged, to *Recipient) []any {
	if e.Archived && !to.Has(realm.CapArchivedChannels) {
		return nil
	}
	update := func(property string, value any) obj { return channelUpdate(e.Channel, e.Old, property, value) }
	switch e.Property {
	case "name", "topics_policy":
		return []any{update(e.Property, e.Text)}
	case "description":
		o := update(e.Property, e.Text)
		o["rendered_description"] = e.HTML
		return []any{o}
	case "message_retention_days", "folder_id":
		return []any{update(e.Property, e.Number)}
	case "can_send_message_group":
		out := []any{update(e.Property, groupValue(e.Group))}
		// most groups have the same older number
		if post := legacyPostPolicy(e.Group); post != legacyPostPolicy(e.Was) {
			out = append(out, update("stream_post_policy", post), update("is_announcement_only", post == 2))
		}
		return out
	}
	return []any{update(e.Property, groupValue(e.Group))}
}

func channelPrivacySet(e *realm.ChannelPrivacySet, to *Recipient) any {
	if e.Archived && !to.Has(realm.CapArchivedChannels) {
		return nil
	}
	o := channelUpdate(e.Channel, e.Name, "invite_only", e.Private)
	o["history_public_to_subscribers"], o["is_web_public"] = e.History, e.WebPublic
	return o
}

func channelArchived(e *realm.ChannelArchived, to *Recipient) any {
	if to.Has(realm.CapArchivedChannels) {
		return channelUpdate(e.Channel, e.Name, "is_archived", true)
	}
	return channelsDeleted(e.Channel)
}

func channelUnarchived(e *realm.ChannelUnarchived, to *Recipient) any {
	if to.Has(realm.CapArchivedChannels) {
		return channelUpdate(e.Channel, e.Name, "is_archived", false)
	}
	return obj{"type": "stream", "op": "create", "streams": []any{channelObject(*e.Info)}}
}

func channelBecameInactive(e *realm.ChannelQuieted, _ *Recipient) any {
	return channelUpdate(e.Channel, e.Name, "is_recently_active", false)
}

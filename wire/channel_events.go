package wire

import (
	"slices"

	"parley/actors/realm"
)

var channelEvents = []EventKind{
	Event(channelAppeared),
	Event(channelVanished),
	Events(channelActivityChanged).sends(activityForm,
		withValues(formOf[channelUpdate[*realm.MessageID]](), "property", "first_message_id")),
	Events(channelChanged).sends(
		withValues(formOf[channelUpdate[string]](), "property", "name"),
		withValues(formOf[channelUpdate[topicsPolicy]](), "property", "topics_policy"),
		formOf[channelDescriptionEvent](),
		withValues(formOf[channelUpdate[*int64]](), "property", "message_retention_days"),
		withValues(formOf[channelUpdate[*int64]](), "property", "folder_id"),
		withValues(formOf[channelUpdate[int]](), "property", "stream_post_policy"),
		withValues(formOf[channelUpdate[bool]](), "property", "is_announcement_only"),
		withValues(formOf[channelUpdate[groupValueJSON]](), "property", ruleNames(realm.ChannelRules)...)),
	Event(channelPrivacySet),
	EventOneOf(channelArchived).sends(archivedForm, formOf[channelsDeletedEvent]()),
	EventOneOf(channelUnarchived).sends(archivedForm, formOf[channelsAddedEvent]()),
	EventOneOf(channelBecameInactive).sends(activityForm),
	EventOneOf(func(e *realm.AnnouncementsStopped, _ *Recipient) any {
		return &organizationUpdate{Property: e.Setting, Value: -1}
	}),
}

var (
	activityForm = withValues(formOf[channelUpdate[bool]](), "property", "is_recently_active")
	archivedForm = withValues(formOf[channelUpdate[bool]](), "property", "is_archived")
)

type channelsAddedEvent struct {
	_        struct{}      `const:"type=stream op=create"`
	Channels []channelJSON `json:"streams"`
}

type channelsDeletedEvent struct {
	_        struct{}          `const:"type=stream op=delete"`
	Channels []channelIDAnswer `json:"streams"`
	IDs      []realm.ChannelID `json:"stream_ids"`
}

// channelUpdated is a channel of which one property has changed.
type channelUpdated struct {
	_       struct{}        `const:"type=stream op=update"`
	Channel realm.ChannelID `json:"stream_id"`
	Name    string          `json:"name"` // before the change
}

type channelUpdate[V any] struct {
	channelUpdated
	Property string `json:"property"`
	Value    V      `json:"value"`
}

type channelDescriptionEvent struct {
	_ struct{} `const:"property=description"`
	channelUpdated
	Value string `json:"value"`
	HTML  string `json:"rendered_description"`
}

type channelPrivacyEvent struct {
	_ struct{} `const:"property=invite_only"`
	channelUpdated
	Value     bool `json:"value"`
	History   bool `json:"history_public_to_subscribers"`
	WebPublic bool `json:"is_web_public"`
}

func channelAppeared(e *realm.ChannelAppeared, to *Recipient) *channelsAddedEvent {
	out := &channelsAddedEvent{}
	for _, c := range e.Channels {
		if !c.Archived || to.Has(realm.CapArchivedChannels) {
			out.Channels = append(out.Channels, newChannel(c))
		}
	}
	if out.Channels == nil {
		return nil
	}
	return out
}

func channelVanished(e *realm.ChannelVanished, to *Recipient) *channelsDeletedEvent {
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
func channelsDeleted(ids ...realm.ChannelID) *channelsDeletedEvent {
	return &channelsDeletedEvent{IDs: ids, Channels: each(ids, func(c realm.ChannelID) channelIDAnswer {
		return channelIDAnswer{c}
	})}
}

// newChannelUpdate returns the event of one changed channel property.
func newChannelUpdate[V any](id realm.ChannelID, name, property string, value V) *channelUpdate[V] {
	return &channelUpdate[V]{channelUpdated{Channel: id, Name: name}, property, value}
}

func channelActivityChanged(e *realm.ChannelActivityChanged, _ *Recipient) (updates []any) {
	if e.FirstChanged {
		var first *realm.MessageID
		if e.First != 0 {
			first = &e.First
		}
		updates = append(updates, newChannelUpdate(e.Channel, e.Name, "first_message_id", first))
	}
	if e.Active {
		updates = append(updates, newChannelUpdate(e.Channel, e.Name, "is_recently_active", true))
	}
	return updates
}

func channelChanged(e *realm.ChannelChanged, to *Recipient) []any {
	if e.Archived && !to.Has(realm.CapArchivedChannels) {
		return nil
	}
	switch e.Property {
	case "name", "topics_policy":
		return []any{newChannelUpdate(e.Channel, e.Old, e.Property, e.Text)}
	case "description":
		return []any{&channelDescriptionEvent{channelUpdated: channelUpdated{Channel: e.Channel, Name: e.Old},
			Value: e.Text, HTML: e.HTML}}
	case "message_retention_days", "folder_id":
		return []any{newChannelUpdate(e.Channel, e.Old, e.Property, e.Number)}
	}
	out := []any{newChannelUpdate(e.Channel, e.Old, e.Property, groupValueJSON{e.Group})}
	if e.Property != "can_send_message_group" {
		return out
	}
	post := legacyPostPolicy(e.Group)
	if post == legacyPostPolicy(e.Was) {
		return out // most groups have the same older number
	}
	return append(out, newChannelUpdate(e.Channel, e.Old, "stream_post_policy", post),
		newChannelUpdate(e.Channel, e.Old, "is_announcement_only", post == announcementPolicy))
}

func channelPrivacySet(e *realm.ChannelPrivacySet, to *Recipient) *channelPrivacyEvent {
	if e.Archived && !to.Has(realm.CapArchivedChannels) {
		return nil
	}
	return &channelPrivacyEvent{channelUpdated: channelUpdated{Channel: e.Channel, Name: e.Name}, Value: e.Private,
		History: e.History, WebPublic: e.WebPublic}
}

func channelArchived(e *realm.ChannelArchived, to *Recipient) any {
	if to.Has(realm.CapArchivedChannels) {
		return newChannelUpdate(e.Channel, e.Name, "is_archived", true)
	}
	return channelsDeleted(e.Channel)
}

func channelUnarchived(e *realm.ChannelUnarchived, to *Recipient) any {
	if to.Has(realm.CapArchivedChannels) {
		return newChannelUpdate(e.Channel, e.Name, "is_archived", false)
	}
	return &channelsAddedEvent{Channels: []channelJSON{newChannel(*e.Info)}}
}

func channelBecameInactive(e *realm.ChannelQuieted, _ *Recipient) any {
	return newChannelUpdate(e.Channel, e.Name, "is_recently_active", false)
}

package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// channelVisibilitySettings are the permission settings that let users see a private channel.
var channelVisibilitySettings = []string{"can_add_subscribers_group", "can_administer_channel_group",
	"can_subscribe_group"}

// channelVisibilityNotices returns the events after a change of a channel. before is the set of connected users that
// could see it before the change. Users that can see it now but could not before get the channel. Users that could and
// still can get the event change, if it is not nil. Users that cannot see it any more get its deletion.
func (r *Realm) channelVisibilityNotices(c *Channel, before ids.Set, change Event) []Notice {
	after := ids.SetOf(r.channelAudience(c)...)
	var out []Notice
	if gained := ids.IDs[UserID](ids.Difference(after, before)); len(gained) > 0 {
		out = append(out, r.channelsAppearedNotices(gained, []ChannelID{c.ID})...)
	}
	if stayed := ids.IDs[UserID](ids.Intersection(after, before)); change != nil && len(stayed) > 0 {
		out = append(out, Notice{To: stayed, Event: change})
	}
	if lost := r.usersAudience(ids.IDs[UserID](ids.Difference(before, after))...); len(lost) > 0 {
		vanished := &ChannelVanished{Channels: []ChannelID{c.ID}, Shut: r.archivedAmong([]ChannelID{c.ID})}
		out = append(out, Notice{To: lost, Event: vanished})
	}
	return out
}

// channelsAppearedNotices returns the events for users that can see channels they could not see before: the channels,
// then the subscribers. Channels with the same subscribers share one event.
func (r *Realm) channelsAppearedNotices(to []UserID, channels []ChannelID) []Notice {
	appeared := r.channelsAppeared(channels...)
	for i := range appeared.Channels { // clients add up the subscribers of the next events
		appeared.Channels[i].Subscribers = 0
	}
	out := []Notice{{To: to, Event: appeared}}
	for _, id := range channels {
		peers := r.Subscribers(id)
		if len(peers) == 0 {
			continue
		}
		same := slices.IndexFunc(out[1:], func(n Notice) bool {
			return slices.Equal(n.Event.(*PeersChanged).Users, peers)
		})
		if same < 0 {
			same = len(out) - 1
			out = append(out, Notice{To: to, Event: &PeersChanged{Joined: true, Users: peers}})
		}
		change := out[1+same].Event.(*PeersChanged)
		change.Channels = append(change.Channels, id)
	}
	for _, n := range out[1:] {
		change := n.Event.(*PeersChanged)
		change.Archived = r.archivedAmong(change.Channels)
	}
	return out
}

// trackChannelVisibility runs a change of group memberships. It then records which private channels the change showed
// to users or hid from them. Only channels with a custom group, or with full members, in these settings can be
// affected.
func (t *Turn) trackChannelVisibility(change func()) {
	before := map[ChannelID]ids.Set{}
	var affected []ChannelID
	t.EachChannel(func(c *Channel) {
		variable := func(setting string) bool { return t.ChannelSetting(c, setting).hasVariableMembers() }
		if c.Private && slices.ContainsFunc(channelVisibilitySettings, variable) {
			affected = append(affected, c.ID)
			before[c.ID] = t.channelAudienceSet(c).Clone()
		}
	})
	change()
	for _, id := range affected {
		after := t.channelAudienceSet(t.channels.must(id))
		if !ids.Difference(after, before[id]).Empty() || !ids.Difference(before[id], after).Empty() {
			t.Record(&ChannelVisibilityChanged{id, before[id]})
		}
	}
}

// hasVariableMembers reports whether the users of a value can change while their roles and the value stay the same.
// This holds for custom groups, and for full members because time passes.
func (v GroupValue) hasVariableMembers() bool {
	isVariable := func(g GroupID) bool { return g > groupInternet || g == groupFullMembers }
	return isVariable(v.Group) || slices.ContainsFunc(v.Subgroups, isVariable)
}

// ChannelVisibilityChanged sends the events after a change of groups showed a private channel to users or hid it from
// them. It changes no state.
type ChannelVisibilityChanged struct {
	Channel ChannelID
	Before  ids.Set // connected users that could see the channel before
}

func (*ChannelVisibilityChanged) apply(*Realm) {}
func (f *ChannelVisibilityChanged) notices(r *Realm) []Notice {
	return r.channelVisibilityNotices(r.channels.must(f.Channel), f.Before, nil)
}

// ChannelsShown sends a user the channels that their new role lets them see. It changes no state.
type ChannelsShown struct {
	Viewer   UserID
	Channels []ChannelID
}

func (*ChannelsShown) apply(*Realm) {}
func (f *ChannelsShown) notices(r *Realm) []Notice {
	if to := r.usersAudience(f.Viewer); len(to) > 0 {
		return r.channelsAppearedNotices(to, f.Channels)
	}
	return nil
}

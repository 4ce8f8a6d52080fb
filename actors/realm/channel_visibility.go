package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// channelVisibilitySettings let people know a private channel.
var channelVisibilitySettings = []string{"can_add_subscribers_group", "can_administer_channel_group", "can_subscribe_group"}

// channelVisibilityNotices tells the ones who knew a channel of its change, if there is one, and the others that it came into
// sight or went out of it.
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
		out = append(out, Notice{To: lost, Event: &ChannelVanished{Channels: []ChannelID{c.ID}, Shut: r.archivedAmong([]ChannelID{c.ID})}})
	}
	return out
}

// channelsAppearedNotices tells people of channels they did not know, and of who is in them.
func (r *Realm) channelsAppearedNotices(to []UserID, ids []ChannelID) []Notice {
	e := r.channelsAppeared(ids...)
	for i := range e.Channels { // clients count the peers they are told of next
		e.Channels[i].Subscribers = 0
	}
	out := []Notice{{To: to, Event: e}}
	for _, id := range ids {
		peers := r.Subscribers(id)
		if len(peers) == 0 {
			continue
		}
		same := slices.IndexFunc(out[1:], func(n Notice) bool { return slices.Equal(n.Event.(*PeersChanged).Users, peers) })
		if same < 0 {
			same = len(out) - 1
			out = append(out, Notice{To: to, Event: &PeersChanged{Joined: true, Users: peers}})
		}
		p := out[1+same].Event.(*PeersChanged)
		p.Channels = append(p.Channels, id)
	}
	for _, n := range out[1:] {
		p := n.Event.(*PeersChanged)
		p.Archived = r.archivedAmong(p.Channels)
	}
	return out
}

// trackChannelVisibility runs a change of group memberships, and then tells people of the private channels that it showed to them or
// hid from them. Only channels that name a group of the organization's own, or full members, can be among those.
func (t *Turn) trackChannelVisibility(change func()) {
	before := map[ChannelID]ids.Set{}
	var idList []ChannelID
	t.EachChannel(func(c *Channel) {
		if c.Private && slices.ContainsFunc(channelVisibilitySettings, func(s string) bool { return t.ChannelSetting(c, s).hasVariableMembers() }) {
			idList = append(idList, c.ID)
			before[c.ID] = t.channelAudienceSet(c).Clone()
		}
	})
	change()
	for _, id := range idList {
		if after := t.channelAudienceSet(t.channels.must(id)); !ids.Difference(after, before[id]).Empty() || !ids.Difference(before[id], after).Empty() {
			t.Record(&ChannelVisibilityChanged{id, before[id]})
		}
	}
}

// hasVariableMembers reports whether the people a value means may change although neither their roles nor the value do: it names
// groups that the organization made, or full members, who become that by time.
func (v GroupValue) hasVariableMembers() bool {
	shifts := func(g GroupID) bool { return g > groupInternet || g == groupFullMembers }
	return shifts(v.Group) || slices.ContainsFunc(v.Subgroups, shifts)
}

// ChannelVisibilityChanged says a change of groups showed a private channel to people, or hid it from them. It changes nothing by
// itself.
type ChannelVisibilityChanged struct {
	Channel ChannelID
	Before  ids.Set // listening users that knew the channel before
}

func (*ChannelVisibilityChanged) keepsMarkdownConfig() {}
func (*ChannelVisibilityChanged) apply(*Realm)         {}
func (f *ChannelVisibilityChanged) tell(r *Realm) []Notice {
	return r.channelVisibilityNotices(r.channels.must(f.Channel), f.Before, nil)
}

// ChannelsShown says what somebody's new role lets him see. It changes nothing by itself.
type ChannelsShown struct {
	Viewer   UserID
	Channels []ChannelID
}

func (*ChannelsShown) keepsMarkdownConfig() {}
func (*ChannelsShown) apply(*Realm)         {}
func (f *ChannelsShown) tell(r *Realm) []Notice {
	if to := r.usersAudience(f.Viewer); len(to) > 0 {
		return r.channelsAppearedNotices(to, f.Channels)
	}
	return nil
}

package wire

import (
	"encoding/json"
	"strconv"

	"parley/actors/realm"
	"parley/wire/form"
)

// Lists of channels are put together from bytes: what everybody is told of a channel is encoded once for all, and only
// the personal part each time. A registration in an organization of a thousand channels would otherwise hold the realm
// for longer than a turn may.

// channelFace is a channel's object without its braces.
func channelFace(c realm.ChannelInfo) []byte {
	b := encode(channelObject(c))
	return b[1 : len(b)-1]
}

// splice makes an object of members that are encoded already.
func splice(parts ...[]byte) json.RawMessage {
	n := len(parts) + 1
	for _, p := range parts {
		n += len(p)
	}
	out := append(make([]byte, 0, n), '{')
	for _, p := range parts {
		if len(p) > 0 && len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, p...)
	}
	return append(out, '}')
}

func idList(key string, ids []realm.UserID) []byte {
	b := append(make([]byte, 0, len(key)+6+7*len(ids)), '"')
	b = append(append(b, key...), `":[`...)
	for i, u := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(u), 10)
	}
	return append(b, ']')
}

// rosterJSON is what a client wants to know of a channel's subscribers, as roster puts it into an object.
func rosterJSON(v realm.View, c *realm.Channel, wanted form.IncludeSubscribers, recent func(realm.UserID) bool) []byte {
	switch {
	case wanted == form.NoSubscribers:
		return nil
	case !v.MaySeeSubscribers(c):
		return []byte(`"subscribers":[]`)
	case wanted == form.PartialSubscribers && v.SubscriberCount(c.ID) >= realm.FullRoster:
		return idList("partial_subscribers", recentOf(v.Subscribers(c.ID), recent))
	}
	return v.MembersFace(c, membersFace)
}

func membersFace(ids []realm.UserID) []byte { return idList("subscribers", ids) }

// warmChannels encodes, some at a time, the channels and the lists of their subscribers that a registration will show
// and nobody has been shown lately.
func warmChannels(c *Call, members bool) error {
	list := membersFace
	if !members {
		list = nil
	}
	for next := realm.ChannelID(0); next >= 0; {
		var err error
		if next, err = Look(c, func(v realm.View) (realm.ChannelID, error) { return v.WarmChannelFaces(next, channelFace, list), nil }); err != nil {
			return err
		}
	}
	return nil
}

func recentOf(members []realm.UserID, recent func(realm.UserID) bool) []realm.UserID {
	out := []realm.UserID{}
	for _, u := range members {
		if recent(u) {
			out = append(out, u)
		}
	}
	return out
}

// subscriptionJSON is a channel with the caller's settings for it, if he is or was subscribed, as subscriptionObject
// makes it.
func subscriptionJSON(v realm.View, c *realm.Channel, to Client, recent func(realm.UserID) bool) json.RawMessage {
	var own []byte
	if v.SubscriptionOf(v.User, c.ID) != nil || v.Me() == nil {
		own = personalJSON(v.PersonalInfo(v.User, c.ID), to)
	}
	return splice(v.ChannelFace(c, channelFace), own, rosterJSON(v, c, to.Subscribers, recent))
}

// personalJSON is what personal puts into an object.
func personalJSON(s realm.SubscriptionInfo, to Client) []byte {
	b := make([]byte, 0, 256)
	b = strconv.AppendQuote(append(b, `"color":`...), s.Color) // colours are hexadecimal: plain ASCII
	b = strconv.AppendBool(append(b, `,"is_muted":`...), s.Muted)
	b = strconv.AppendBool(append(b, `,"in_home_view":`...), !s.Muted)
	b = strconv.AppendBool(append(b, `,"pin_to_top":`...), s.Pinned)
	for _, x := range notifications(s) {
		b = append(append(append(b, `,"`...), x.name...), `":`...)
		switch {
		case x.own != nil:
			b = strconv.AppendBool(b, *x.own)
		case to.Has(realm.CapNotificationSettingsNull):
			b = append(b, "null"...)
		default:
			b = strconv.AppendBool(b, x.inherited)
		}
	}
	return b
}

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

// channelFieldsJSON is a channel's object without its braces.
func channelFieldsJSON(c realm.ChannelInfo) []byte {
	b := encode(channelObject(c))
	return b[1 : len(b)-1]
}

// objectFromFields makes an object of members that are encoded already.
func objectFromFields(parts ...[]byte) json.RawMessage {
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

func userIDsField(key string, ids []realm.UserID) []byte {
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

// subscriberListJSON is what a client wants to know of a channel's subscribers, as subscriberListKey puts it into an object.
func subscriberListJSON(v realm.View, c *realm.Channel, wanted form.IncludeSubscribers, recent func(realm.UserID) bool) []byte {
	switch {
	case wanted == form.NoSubscribers:
		return nil
	case !v.MaySeeSubscribers(c):
		return []byte(`"subscribers":[]`)
	case wanted == form.PartialSubscribers && v.SubscriberCount(c.ID) >= realm.FullSubscriberListLimit:
		return userIDsField("partial_subscribers", onlyRecent(v.Subscribers(c.ID), recent))
	}
	return v.SubscribersJSON(c, subscribersJSON)
}

func subscribersJSON(ids []realm.UserID) []byte { return userIDsField("subscribers", ids) }

// encodeChannelsAhead encodes, some at a time, the channels and the lists of their subscribers that a registration will show
// and nobody has been shown lately.
func encodeChannelsAhead(c *Call, members bool) error {
	list := subscribersJSON
	if !members {
		list = nil
	}
	for next := realm.ChannelID(0); next >= 0; {
		var err error
		if next, err = Read(c, func(v realm.View) (realm.ChannelID, error) {
			return v.WarmChannelJSON(next, channelFieldsJSON, list), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func onlyRecent(members []realm.UserID, recent func(realm.UserID) bool) []realm.UserID {
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
		own = personalSettingsJSON(v.PersonalSubscription(v.User, c.ID), to)
	}
	return objectFromFields(v.ChannelJSON(c, channelFieldsJSON), own, subscriberListJSON(v, c, to.Subscribers, recent))
}

// personalSettingsJSON is what addPersonalSettings puts into an object.
func personalSettingsJSON(s realm.SubscriptionInfo, to Client) []byte {
	b := make([]byte, 0, 256)
	b = strconv.AppendQuote(append(b, `"color":`...), s.Color) // colours are hexadecimal: plain ASCII
	b = strconv.AppendBool(append(b, `,"is_muted":`...), s.Muted)
	b = strconv.AppendBool(append(b, `,"in_home_view":`...), !s.Muted)
	b = strconv.AppendBool(append(b, `,"pin_to_top":`...), s.Pinned)
	for _, x := range channelNotifications(s) {
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

package wire

import (
	"strconv"

	"parley/actors/realm"
	"parley/wire/form"
)

// Lists of channels are joined from encoded bytes. The fields of a channel that are the same for all users are encoded
// once and cached; only the personal fields are encoded for each user. Without the cache, a registration in an
// organization of a thousand channels would take longer than a turn is allowed to.

// channelFieldsJSON returns the JSON object of a channel without its braces.
func channelFieldsJSON(c realm.ChannelInfo) []byte { return encodedFieldsOf(newChannel(c)) }

// userIDsField returns the JSON field `"key":[1,2,3]`.
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

// subscriberListJSON returns the field with the subscribers of a channel that the client asked for: none, all, or
// only recently active ones. Callers that are not allowed to see the subscribers get an empty list.
func subscriberListJSON(
	v realm.View, c *realm.Channel, wanted form.IncludeSubscribers, recent func(realm.UserID) bool,
) []byte {
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

// subscribersJSON returns the field "subscribers".
func subscribersJSON(ids []realm.UserID) []byte { return userIDsField("subscribers", ids) }

// encodeChannelsAhead encodes the channels that a registration needs and that are not in the cache. It encodes some
// channels per view, so that other requests run in between. With members, it also encodes the lists of subscribers.
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

// onlyRecent returns the members for which recent reports true. The result is never nil.
func onlyRecent(members []realm.UserID, recent func(realm.UserID) bool) []realm.UserID {
	out := []realm.UserID{}
	for _, u := range members {
		if recent(u) {
			out = append(out, u)
		}
	}
	return out
}

// addSubscription adds a subscriptionJSON to a list, made of cached bytes. It includes the caller's
// personal settings if the caller is or was subscribed, or is a logged-out visitor.
func addSubscription(l *objectList, v realm.View, c *realm.Channel, to Client, recent func(realm.UserID) bool) {
	var own []byte
	if v.SubscriptionOf(v.User, c.ID) != nil || v.Me() == nil {
		own = personalSettingsJSON(v.PersonalSubscription(v.User, c.ID), to)
	}
	l.add(sharedFragment(v.ChannelJSON(c, channelFieldsJSON)), ownFragment(own),
		Fragment{JSON: subscriberListJSON(v, c, to.Subscribers, recent), Shared: to.Subscribers == form.AllSubscribers})
}

// personalSettingsJSON returns the fields of newPersonalSettings, encoded.
func personalSettingsJSON(s realm.SubscriptionInfo, to Client) []byte {
	p, b := newPersonalSettings(s, to), make([]byte, 0, 256)
	b = strconv.AppendQuote(append(b, `"color":`...), p.Color) // a color is hexadecimal, so it needs no JSON escapes
	b = strconv.AppendBool(append(b, `,"is_muted":`...), p.Muted)
	b = strconv.AppendBool(append(b, `,"in_home_view":`...), p.Home)
	b = strconv.AppendBool(append(b, `,"pin_to_top":`...), p.Pinned)
	b = appendPointer(append(b, `,"desktop_notifications":`...), p.Desktop, strconv.AppendBool)
	b = appendPointer(append(b, `,"audible_notifications":`...), p.Audible, strconv.AppendBool)
	b = appendPointer(append(b, `,"push_notifications":`...), p.Push, strconv.AppendBool)
	b = appendPointer(append(b, `,"email_notifications":`...), p.Email, strconv.AppendBool)
	return appendPointer(append(b, `,"wildcard_mentions_notify":`...), p.Wildcard, strconv.AppendBool)
}

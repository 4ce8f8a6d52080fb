package wire

import (
	"strconv"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/wire/form"
)

var subscriptionEndpoints = []Endpoint{
	Custom("GET", "/users/me/subscriptions", getSubscriptions).Returns("{subscriptions: [Subscription]}"),
	Custom("POST", "/users/me/subscriptions", subscribeInTurns).
		Returns("{subscribed: {*: [str]}, already_subscribed: {*: [str]}, unauthorized?: [str], " +
			"new_subscription_messages_sent?: bool}"),
	Custom("DELETE", "/users/me/subscriptions", unsubscribeInTurns).Returns("{removed: [str], not_removed: [str]}"),
	CommandFromForm("PATCH", "/users/me/subscriptions", resubscribe, resubscribeAnswer).
		Returns("{subscribed: {*: [str]}, already_subscribed: {*: [str]}, removed: [str], not_removed: [str], " +
			"new_subscription_messages_sent?: bool}"),
	Custom("POST", "/users/me/subscriptions/properties", setProperties),
	CommandFromForm("PATCH", "/users/me/subscriptions/{stream_id}", setProperty, func(int64) Answer {
		return Answer{}
	}),
}

var subscriptionEvents = []EventKind{
	EventOneOf(func(e *realm.SubscriptionAdded, to *Recipient) any {
		if e.Back && to.Has(realm.CapArchivedChannels) {
			return nil
		}
		return subscriptionsAdded([]realm.SubscriptionInfo{e.For(to.User)}, to)
	}).Personal(),
	EventOneOf(func(e *realm.SubscriptionsAdded, to *Recipient) any {
		return subscriptionsAdded(e.For(to.User), to)
	}).Personal(),
	EventOneOf(func(e *realm.SubscriptionRemoved, to *Recipient) any {
		return subscriptionsRemoved([]realm.SubscriptionRemoved{*e}, to)
	}),
	EventOneOf(func(e *realm.SubscriptionsRemoved, to *Recipient) any { return subscriptionsRemoved(e.Each, to) }),
	EventOneOf(func(e *realm.PeersChanged, to *Recipient) any {
		op := "peer_remove"
		if e.Joined {
			op = "peer_add"
		}
		channels := withoutHiddenArchived(e.Channels, e.Archived, to)
		if len(channels) == 0 {
			return nil
		}
		return obj{"type": "subscription", "op": op, "stream_ids": channels, "user_ids": e.Users}
	}),
	Events(subscriptionSet),
	Events(func(e *realm.SubscriptionsSet, to *Recipient) (out []any) {
		for i := range e.Each {
			out = append(out, subscriptionSet(&e.Each[i], to)...)
		}
		return out
	}),
	LazyEvent(func(e *realm.MessagesReadAfterLeaving, to *Recipient) any { // can be a megabyte of numbers
		return obj{"type": "update_message_flags", "op": "add", "operation": "add", "flag": "read", "all": false,
			"messages": ids.IDs[realm.MessageID](e.Messages)}
	}),
}

// presenceReader is the part of a Server that reports which users were online recently.
type presenceReader interface {
	ActiveSince(realm.ID, int64) func(realm.UserID) bool
}

// recentUsers returns the predicate of partial subscriber lists: bots, users with an event queue, and users that were
// online in the last presence.PartialSubscriberDays days.
func recentUsers(v realm.View, server presenceReader) func(realm.UserID) bool {
	seen := server.ActiveSince(v.ID(), v.Now-presence.PartialSubscriberDays*86400)
	return func(u realm.UserID) bool { return v.HasQueue(u) || v.Find(u).IsBot() || seen(u) }
}

// partialSubscribers returns the partial list of a channel's members in an event. connected is the members with an
// event queue; all of them are in the list.
func partialSubscribers(members, connected ids.Set, to *Recipient) []realm.UserID {
	out := []realm.UserID{}
	next := ids.IDs[realm.UserID](connected)
	for _, u := range ids.IDs[realm.UserID](members) {
		if len(next) > 0 && next[0] == u {
			out, next = append(out, u), next[1:]
		} else if to.SeenRecently != nil && to.SeenRecently(u) {
			out = append(out, u)
		}
	}
	return out
}

// subscriptionObject returns a channel with one user's settings for it, as in events.
func subscriptionObject(s realm.SubscriptionInfo, to *Recipient) obj {
	o := channelObject(s.ChannelInfo)
	addPersonalSettings(o, s, to.Client)
	switch {
	case to.Subscribers == form.PartialSubscribers && s.Members.Len() >= realm.FullSubscriberListLimit:
		o["partial_subscribers"] = to.subscriberList(s.ID, true, func() []realm.UserID {
			return partialSubscribers(s.Members, s.Here, to)
		})
	case to.Subscribers == form.NoSubscribers:
	case s.Members.Len() >= realm.FullSubscriberListLimit:
		o["subscribers"] = to.subscriberList(s.ID, false, func() []realm.UserID {
			return ids.IDs[realm.UserID](s.Members)
		})
	default:
		o["subscribers"] = ids.IDs[realm.UserID](s.Members)
	}
	return o
}

// channelNotification is one notification setting of a channel: the user's own value, or the inherited one.
type channelNotification struct {
	name      string
	own       *bool
	inherited bool
}

func channelNotifications(s realm.SubscriptionInfo) [5]channelNotification {
	return [5]channelNotification{{"desktop_notifications", s.Desktop, s.Inherited.Desktop},
		{"audible_notifications", s.Audible, s.Inherited.Audible},
		{"push_notifications", s.Push, s.Inherited.Push}, {"email_notifications", s.Email, s.Inherited.Email},
		{"wildcard_mentions_notify", s.Wildcard, s.Inherited.Wildcard}}
}

// addPersonalSettings adds a user's own settings of a channel to an object.
func addPersonalSettings(o obj, s realm.SubscriptionInfo, to Client) {
	o["color"], o["is_muted"], o["in_home_view"], o["pin_to_top"] = s.Color, s.Muted, !s.Muted, s.Pinned
	for _, x := range channelNotifications(s) {
		switch {
		case x.own != nil:
			o[x.name] = *x.own
		case to.Has(realm.CapNotificationSettingsNull):
			o[x.name] = nil
		default:
			o[x.name] = x.inherited
		}
	}
}

func subscriptionsAdded(subscriptions []realm.SubscriptionInfo, to *Recipient) any {
	list := []any{}
	for _, s := range subscriptions {
		if !s.Archived || to.Has(realm.CapArchivedChannels) {
			list = append(list, subscriptionObject(s, to))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return obj{"type": "subscription", "op": "add", "subscriptions": list}
}

func subscriptionsRemoved(removed []realm.SubscriptionRemoved, to *Recipient) any {
	list := []any{}
	for _, s := range removed {
		if !s.Archived || to.Has(realm.CapArchivedChannels) {
			list = append(list, obj{"stream_id": s.Channel, "name": s.Name})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return obj{"type": "subscription", "op": "remove", "subscriptions": list}
}

func subscriptionSet(e *realm.SubscriptionSet, to *Recipient) []any {
	if e.Archived && !to.Has(realm.CapArchivedChannels) {
		return nil
	}
	update := func(property string, value any) any {
		return obj{"type": "subscription", "op": "update", "stream_id": e.Channel, "property": property, "value": value}
	}
	switch e.Property {
	case "color":
		return []any{update("color", e.Color)}
	case "is_muted":
		return []any{update("in_home_view", !e.Value), update("is_muted", e.Value)}
	}
	return []any{update(e.Property, e.Value)}
}

type getSubscriptionsForm struct {
	Subscribers form.IncludeSubscribers `form:"include_subscribers"`
}

func getSubscriptions(c *Call, f getSubscriptionsForm) (Answer, error) {
	return Read(c, func(v realm.View) (Answer, error) {
		var found []*realm.Channel
		for _, id := range v.SubscribedChannels(v.User) {
			if ch := v.FindChannel(id); !ch.Archived {
				found = append(found, ch)
			}
		}
		sortByName(found)
		list, recent := newObjectList(len(found), 3), recentUsers(v, c.Server)
		for _, ch := range found {
			addSubscription(list, v, ch,
				Client{Subscribers: f.Subscribers, Caps: realm.CapNotificationSettingsNull}, recent)
		}
		return Answer{"subscriptions": list.end()}, nil
	})
}

type channelToJoinForm struct {
	Name        string `form:"name,required,strip"`
	Description string `form:"description,maxlen=1024"`
	Color       string `form:"color"`
}

type subscribeForm struct {
	Subscriptions []channelToJoinForm `form:"subscriptions,required"`
	Principals    form.Principals     `form:"principals"`
	Fatal         bool                `form:"authorization_errors_fatal,default=true"`
	newChannelForm
}

// channelsToJoin converts the channels to join. where is the parameter's name, for the error about an invalid color.
func channelsToJoin(list []channelToJoinForm, where string) (out []realm.ChannelToJoin, err error) {
	for i, s := range list {
		color, ok := realm.NormalizeColor(s.Color)
		if s.Color != "" && !ok {
			return nil, realm.BadRequest("Invalid %s[%d]: Value error, %s.color is not a valid hex color code", where,
				i, where)
		}
		out = append(out, realm.ChannelToJoin{Name: s.Name, Color: color, Description: s.Description})
	}
	return out, nil
}

// subscribeInTurns subscribes users to channels, in as many turns as that needs.
func subscribeInTurns(c *Call, f subscribeForm) (Answer, error) {
	cmd, err := subscribeCommand(c, f)
	if err != nil {
		return nil, err
	}
	cmd.MaxPerTurn = realm.MaxSubscriptionsPerTurn
	joined, err := Execute(c, cmd)
	if err != nil {
		return nil, err
	}
	if _, err := waitForJob(c, joined.Job); err != nil {
		return nil, err
	}
	joined.AddJoiners()
	return subscribeAnswer(joined), nil
}

func subscribeCommand(c *Call, f subscribeForm) (realm.Subscribe, error) {
	n, err := f.channel()
	if err != nil {
		return realm.Subscribe{}, err
	}
	list, err := channelsToJoin(f.Subscriptions, "subscriptions")
	return realm.Subscribe{Channels: list, Principals: principals(f.Principals), New: n, AllOrNothing: f.Fatal,
		Announce: f.Announce, Notify: f.Notify}, err
}

func principals(p form.Principals) []realm.Principal {
	var out []realm.Principal
	for _, id := range p.IDs {
		if id <= 0 {
			id = -1 // an id that no user has; 0 would select the email address
		}
		out = append(out, realm.Principal{ID: realm.UserID(id)})
	}
	for _, e := range p.Emails {
		out = append(out, realm.Principal{Email: e})
	}
	return out
}

func subscribeAnswer(j realm.SubscribeResult) Answer {
	a := Answer{"subscribed": namesByUser(j.Subscribed), "already_subscribed": namesByUser(j.Already)}
	if !j.AllOrNothing {
		a["unauthorized"] = j.Unauthorized
	}
	if j.NotifyAsked {
		a["new_subscription_messages_sent"] = j.Notified
	}
	return a
}

func namesByUser(m map[realm.UserID][]string) obj {
	o := obj{}
	for u, names := range m {
		o[u.String()] = names
	}
	return o
}

type unsubscribeForm struct {
	Names      []string        `form:"subscriptions,required"`
	Principals form.Principals `form:"principals"`
}

// unsubscribeInTurns unsubscribes users from channels, in as many turns as that needs.
func unsubscribeInTurns(c *Call, f unsubscribeForm) (Answer, error) {
	left, err := Execute(c, realm.Unsubscribe{Names: f.Names, Principals: principals(f.Principals),
		MaxPerTurn: realm.MaxSubscriptionsPerTurn})
	if err != nil {
		return nil, err
	}
	if _, err := waitForJob(c, left.Job); err != nil {
		return nil, err
	}
	return unsubscribeAnswer(left), nil
}

func unsubscribeAnswer(l realm.UnsubscribeResult) Answer {
	return Answer{"removed": l.Removed, "not_removed": l.NotRemoved}
}

type resubscribeForm struct {
	Delete []string            `form:"delete"`
	Add    []channelToJoinForm `form:"add"`
}

func (f *resubscribeForm) Check() *form.Error {
	for i, s := range f.Add {
		if _, ok := realm.NormalizeColor(s.Color); s.Color != "" && !ok {
			return form.Bad("Invalid add[" + strconv.Itoa(i) +
				"]: Value error, add.color is not a valid hex color code")
		}
	}
	return nil
}

func resubscribe(f resubscribeForm) realm.Resubscribe {
	list, _ := channelsToJoin(f.Add, "add") // Check has validated the colors
	return realm.Resubscribe{Add: list, Delete: f.Delete}
}

func resubscribeAnswer(r realm.ResubscribeResult) Answer {
	return Answer{"subscribed": namesByUser(r.Subscribed), "already_subscribed": namesByUser(r.Already),
		"removed": r.Removed, "not_removed": r.NotRemoved}
}

type propertyForm struct {
	Channel  realm.ChannelID `form:"stream_id,required"`
	Property string          `form:"property,required"`
	Value    form.Value      `form:"value,required"`
}

type setPropertiesForm struct {
	Data []propertyForm `form:"subscription_data,required"`
}

// setProperties changes subscription settings, in as many turns as that needs.
func setProperties(c *Call, f setPropertiesForm) (Answer, error) {
	cmd := realm.SetSubscriptionProperties{MaxPerTurn: realm.MaxPropertiesPerTurn}
	for _, p := range f.Data {
		cmd.Changes = append(cmd.Changes, propertyChange(p.Channel, p.Property, p.Value))
	}
	job, err := Execute(c, cmd)
	if err != nil {
		return nil, err
	}
	if _, err := waitForJob(c, job); err != nil {
		return nil, err
	}
	return Answer{}, nil
}

func propertyChange(id realm.ChannelID, property string, v form.Value) realm.PropertyChange {
	c := realm.PropertyChange{Channel: id, Property: property}
	if b, err := v.Bool(); err == nil {
		c.Bool = &b
	} else if s, err := v.Text(); err == nil {
		c.Text = &s
	}
	return c
}

// setPropertyForm accepts the value as JSON or as plain text, because clients send colors both ways.
type setPropertyForm struct {
	Channel  realm.ChannelID `path:"stream_id"`
	Property string          `form:"property,required"`
	Value    string          `form:"value,required"`
}

func setProperty(f setPropertyForm) realm.SetSubscriptionProperties {
	c := realm.PropertyChange{Channel: f.Channel, Property: f.Property, Text: &f.Value}
	if v, ok := form.JSON(f.Value); ok {
		c = propertyChange(f.Channel, f.Property, v)
	}
	return realm.SetSubscriptionProperties{Changes: []realm.PropertyChange{c}}
}

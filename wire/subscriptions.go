package wire

import (
	"encoding/json"
	"strconv"

	"parley/actors/realm"
	"parley/wire/form"
)

var subscriptionEndpoints = []Endpoint{
	Custom("GET", "/users/me/subscriptions", getSubscriptions).Says("{subscriptions: [Subscription]}"),
	Custom("POST", "/users/me/subscriptions", subscribeAll).Says("{subscribed: {*: [str]}, already_subscribed: {*: [str]}, unauthorized?: [str], new_subscription_messages_sent?: bool}"),
	Custom("DELETE", "/users/me/subscriptions", unsubscribeAll).Says("{removed: [str], not_removed: [str]}"),
	Do("PATCH", "/users/me/subscriptions", resubscribe, resubscribed).Says("{subscribed: {*: [str]}, already_subscribed: {*: [str]}, removed: [str], not_removed: [str], new_subscription_messages_sent?: bool}"),
	Custom("POST", "/users/me/subscriptions/properties", setProperties),
	Do("PATCH", "/users/me/subscriptions/{stream_id}", setProperty, func(int64) Answer { return Answer{} }),
}

var subscriptionEvents = []EventKind{
	Event(func(e *realm.SubscriptionAdded, to *To) any {
		if e.Back && to.Has(realm.CapArchivedChannels) {
			return nil
		}
		return subscriptionsAdded([]realm.SubscriptionInfo{e.For(to.User)}, to)
	}).Personal(),
	Event(func(e *realm.SubscriptionsAdded, to *To) any { return subscriptionsAdded(e.For(to.User), to) }).Personal(),
	Event(func(e *realm.SubscriptionRemoved, to *To) any {
		return subscriptionsRemoved([]realm.SubscriptionRemoved{*e}, to)
	}),
	Event(func(e *realm.SubscriptionsRemoved, to *To) any { return subscriptionsRemoved(e.Each, to) }),
	Event(func(e *realm.PeersChanged, to *To) any {
		op := "peer_remove"
		if e.Joined {
			op = "peer_add"
		}
		channels := toldOf(e.Channels, e.Archived, to)
		if len(channels) == 0 {
			return nil
		}
		return obj{"type": "subscription", "op": op, "stream_ids": channels, "user_ids": e.Users}
	}),
	Events(subscriptionSet),
	Events(func(e *realm.SubscriptionsSet, to *To) (out []any) {
		for i := range e.Each {
			out = append(out, subscriptionSet(&e.Each[i], to)...)
		}
		return out
	}),
	Lazily(func(e *realm.ReadBehind, to *To) any { // a megabyte of numbers, maybe
		return obj{"type": "update_message_flags", "op": "add", "operation": "add", "flag": "read", "all": false, "messages": realm.IDs[realm.MessageID](e.Messages)}
	}),
}

// PartialDays is how long ago a user in a partial list was here at last (protocol).
const PartialDays = 14

// sightings is the part of a house that tells who was here lately.
type sightings interface {
	SeenSince(realm.ID, int64) func(realm.UserID) bool
}

// recently is who belongs into partial lists: bots, people who are here, and people who were here in the last PartialDays.
func recently(v realm.View, h sightings) func(realm.UserID) bool {
	seen := h.SeenSince(v.ID(), v.Now-PartialDays*86400)
	return func(u realm.UserID) bool { return v.Listening(u) || v.Find(u).IsBot() || seen(u) }
}

// partialOf is the partial list of the members of a channel that an event tells of; all of here belong to it.
func partialOf(members, here realm.Set, to *To) []realm.UserID {
	out := []realm.UserID{}
	rest := realm.IDs[realm.UserID](here)
	for _, u := range realm.IDs[realm.UserID](members) {
		if len(rest) > 0 && rest[0] == u {
			out, rest = append(out, u), rest[1:]
		} else if to.Seen != nil && to.Seen(u) {
			out = append(out, u)
		}
	}
	return out
}

// subscriptionObject is a channel with one user's settings for it, as an event tells it.
func subscriptionObject(s realm.SubscriptionInfo, to *To) obj {
	o := channelObject(s.ChannelInfo)
	personal(o, s, to.Client)
	switch {
	case to.Subscribers == form.PartialSubscribers && s.Members.Len() >= realm.FullRoster:
		o["partial_subscribers"] = to.roster(s.ID, true, func() []realm.UserID { return partialOf(s.Members, s.Here, to) })
	case to.Subscribers == form.NoSubscribers:
	case s.Members.Len() >= realm.FullRoster:
		o["subscribers"] = to.roster(s.ID, false, func() []realm.UserID { return realm.IDs[realm.UserID](s.Members) })
	default:
		o["subscribers"] = realm.IDs[realm.UserID](s.Members)
	}
	return o
}

// notification is one notification setting of a channel: the user's own, or what it inherits.
type notification struct {
	name      string
	own       *bool
	inherited bool
}

func notifications(s realm.SubscriptionInfo) [5]notification {
	return [5]notification{{"desktop_notifications", s.Desktop, s.Inherited.Desktop}, {"audible_notifications", s.Audible, s.Inherited.Audible},
		{"push_notifications", s.Push, s.Inherited.Push}, {"email_notifications", s.Email, s.Inherited.Email}, {"wildcard_mentions_notify", s.Wildcard, s.Inherited.Wildcard}}
}

// personal puts a user's own settings of a channel into an object.
func personal(o obj, s realm.SubscriptionInfo, to Client) {
	o["color"], o["is_muted"], o["in_home_view"], o["pin_to_top"] = s.Color, s.Muted, !s.Muted, s.Pinned
	for _, x := range notifications(s) {
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

func subscriptionsAdded(subscriptions []realm.SubscriptionInfo, to *To) any {
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

func subscriptionsRemoved(removed []realm.SubscriptionRemoved, to *To) any {
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

func subscriptionSet(e *realm.SubscriptionSet, to *To) []any {
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
	return Look(c, func(v realm.View) (Answer, error) {
		var found []*realm.Channel
		for _, id := range v.ChannelsOf(v.User) {
			if ch := v.FindChannel(id); !ch.Archived {
				found = append(found, ch)
			}
		}
		byName(found)
		list, recent := []json.RawMessage{}, recently(v, c.House)
		for _, ch := range found {
			list = append(list, subscriptionJSON(v, ch, Client{Subscribers: f.Subscribers, Caps: realm.CapNotificationSettingsNull}, recent))
		}
		return Answer{"subscriptions": list}, nil
	})
}

type joiningForm struct {
	Name        string `form:"name,required,strip"`
	Description string `form:"description,maxlen=1024"`
	Color       string `form:"color"`
}

type subscribeForm struct {
	Subscriptions []joiningForm   `form:"subscriptions,required"`
	Principals    form.Principals `form:"principals"`
	Fatal         bool            `form:"authorization_errors_fatal,default=true"`
	newChannelForm
}

// joinings are the channels to join; where is the parameter's name, for what is wrong with a colour.
func joinings(list []joiningForm, where string) (out []realm.Joining, err error) {
	for i, s := range list {
		color, ok := realm.Color(s.Color)
		if s.Color != "" && !ok {
			return nil, realm.Bad("Invalid %s[%d]: Value error, %s.color is not a valid hex color code", where, i, where)
		}
		out = append(out, realm.Joining{Name: s.Name, Color: color, Description: s.Description})
	}
	return out, nil
}

// subscribeAll subscribes as many people as are asked for, in as many turns as it takes.
func subscribeAll(c *Call, f subscribeForm) (Answer, error) {
	cmd, err := subscribe(c, f)
	if err != nil {
		return nil, err
	}
	cmd.AtOnce = realm.MaxJoinedAtOnce
	a, err := Play(c, cmd)
	if err != nil {
		return nil, err
	}
	finished(c, a.Work)
	a.Name()
	return joined(a), nil
}

func subscribe(c *Call, f subscribeForm) (realm.Subscribe, error) {
	n, err := f.channel()
	if err != nil {
		return realm.Subscribe{}, err
	}
	list, err := joinings(f.Subscriptions, "subscriptions")
	return realm.Subscribe{Channels: list, Principals: principals(f.Principals), New: n, Fatal: f.Fatal, Announce: f.Announce, Notify: f.Notify}, err
}

func principals(p form.Principals) []realm.Principal {
	var out []realm.Principal
	for _, id := range p.IDs {
		if id <= 0 {
			id = -1 // nobody's; 0 would mean the address
		}
		out = append(out, realm.Principal{ID: realm.UserID(id)})
	}
	for _, e := range p.Emails {
		out = append(out, realm.Principal{Email: e})
	}
	return out
}

func joined(j realm.Joined) Answer {
	a := Answer{"subscribed": namesByUser(j.Subscribed), "already_subscribed": namesByUser(j.Already)}
	if !j.Fatal {
		a["unauthorized"] = j.Unauthorized
	}
	if j.Asked {
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

// unsubscribeAll unsubscribes as many people as are asked for, in as many turns as it takes.
func unsubscribeAll(c *Call, f unsubscribeForm) (Answer, error) {
	l, err := Play(c, realm.Unsubscribe{Names: f.Names, Principals: principals(f.Principals), AtOnce: realm.MaxJoinedAtOnce})
	if err != nil {
		return nil, err
	}
	finished(c, l.Work)
	return left(l), nil
}

func left(l realm.Left) Answer { return Answer{"removed": l.Removed, "not_removed": l.NotRemoved} }

type resubscribeForm struct {
	Delete []string      `form:"delete"`
	Add    []joiningForm `form:"add"`
}

func (f *resubscribeForm) Check() *form.Error {
	for i, s := range f.Add {
		if _, ok := realm.Color(s.Color); s.Color != "" && !ok {
			return form.Bad("Invalid add[" + strconv.Itoa(i) + "]: Value error, add.color is not a valid hex color code")
		}
	}
	return nil
}

func resubscribe(f resubscribeForm) realm.Resubscribe {
	list, _ := joinings(f.Add, "add") // Check has looked at the colours
	return realm.Resubscribe{Add: list, Delete: f.Delete}
}

func resubscribed(r realm.Resubscribed) Answer {
	return Answer{"subscribed": namesByUser(r.Subscribed), "already_subscribed": namesByUser(r.Already), "removed": r.Removed, "not_removed": r.NotRemoved}
}

type propertyForm struct {
	Channel  realm.ChannelID `form:"stream_id,required"`
	Property string          `form:"property,required"`
	Value    form.Value      `form:"value,required"`
}

type setPropertiesForm struct {
	Data []propertyForm `form:"subscription_data,required"`
}

// setProperties sets as many as are asked for, in as many turns as it takes.
func setProperties(c *Call, f setPropertiesForm) (Answer, error) {
	cmd := realm.SetProperties{AtOnce: realm.MaxSetAtOnce}
	for _, p := range f.Data {
		cmd.Changes = append(cmd.Changes, propertyChange(p.Channel, p.Property, p.Value))
	}
	work, err := Play(c, cmd)
	if err != nil {
		return nil, err
	}
	finished(c, work)
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

// The value is JSON, or a text as it is: colours come both ways.
type setPropertyForm struct {
	Channel  realm.ChannelID `path:"stream_id"`
	Property string          `form:"property,required"`
	Value    string          `form:"value,required"`
}

func setProperty(f setPropertyForm) realm.SetProperties {
	c := realm.PropertyChange{Channel: f.Channel, Property: f.Property, Text: &f.Value}
	if v, ok := form.JSON(f.Value); ok {
		c = propertyChange(f.Channel, f.Property, v)
	}
	return realm.SetProperties{Changes: []realm.PropertyChange{c}}
}

package wire

import (
	"strconv"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/wire/form"
)

var subscriptionEndpoints = []Endpoint{
	Custom("GET", "/users/me/subscriptions", getSubscriptions),
	Custom("POST", "/users/me/subscriptions", subscribeInTurns),
	Custom("DELETE", "/users/me/subscriptions", unsubscribeInTurns),
	CommandFromForm("PATCH", "/users/me/subscriptions", resubscribe, newResubscribeAnswer),
	Custom("POST", "/users/me/subscriptions/properties", setProperties),
	CommandFromForm("PATCH", "/users/me/subscriptions/{stream_id}", setProperty, func(int64) noFields {
		return noFields{}
	}),
}

var subscriptionEvents = []EventKind{
	Event(func(e *realm.SubscriptionAdded, to *Recipient) *subscriptionsAddedEvent {
		if e.Back && to.Has(realm.CapArchivedChannels) {
			return nil
		}
		return subscriptionsAdded([]realm.SubscriptionInfo{e.For(to.User)}, to)
	}).Personal(),
	Event(func(e *realm.SubscriptionsAdded, to *Recipient) *subscriptionsAddedEvent {
		return subscriptionsAdded(e.For(to.User), to)
	}).Personal(),
	Event(func(e *realm.SubscriptionRemoved, to *Recipient) *subscriptionsRemovedEvent {
		return subscriptionsRemoved([]realm.SubscriptionRemoved{*e}, to)
	}),
	Event(func(e *realm.SubscriptionsRemoved, to *Recipient) *subscriptionsRemovedEvent {
		return subscriptionsRemoved(e.Each, to)
	}),
	EventOneOf(peersChanged).sends(formOf[peersAddedEvent](), formOf[peersRemovedEvent]()),
	Events(subscriptionSet).sends(
		withValues(formOf[subscriptionUpdate[string]](), "property", "color"),
		withValues(formOf[subscriptionUpdate[bool]](), "property", "in_home_view", "is_muted", "pin_to_top"),
		withValues(formOf[subscriptionUpdate[*bool]](), "property", "desktop_notifications", "audible_notifications",
			"push_notifications", "email_notifications", "wildcard_mentions_notify")),
	Events(func(e *realm.SubscriptionsSet, to *Recipient) (out []any) {
		for i := range e.Each {
			out = append(out, subscriptionSet(&e.Each[i], to)...)
		}
		return out
	}),
	LazyEvent(func(e *realm.MessagesReadAfterLeaving, to *Recipient) any { // can be a megabyte of numbers
		return &flagAddedEvent{flagEvent: flagEvent{Flag: "read", Messages: ids.IDs[int64](e.Messages)}}
	}).sends(formOf[flagAddedEvent]()),
}

type subscriptionsAnswer struct {
	Subscriptions encoded[[]subscriptionJSON] `json:"subscriptions"`
}

// namesByUser is names of channels by user id.
type namesByUser map[string][]string

func newNamesByUser(names map[realm.UserID][]string) namesByUser {
	out := make(namesByUser, len(names))
	for u, list := range names {
		out[u.String()] = list
	}
	return out
}

type subscribedFields struct {
	Subscribed namesByUser `json:"subscribed"`
	Already    namesByUser `json:"already_subscribed"`
}

type unsubscribedFields struct {
	Removed    []string `json:"removed"`
	NotRemoved []string `json:"not_removed"`
}

type subscribeAnswer struct {
	subscribedFields
	Unauthorized *[]string `json:"unauthorized,omitzero"`
	Notified     *bool     `json:"new_subscription_messages_sent,omitzero"`
}

type resubscribeAnswer struct {
	subscribedFields
	unsubscribedFields
}

type subscriptionsAddedEvent struct {
	_             struct{}           `const:"type=subscription op=add"`
	Subscriptions []subscriptionJSON `json:"subscriptions"`
}

type subscriptionsRemovedEvent struct {
	_             struct{}      `const:"type=subscription op=remove"`
	Subscriptions []leftChannel `json:"subscriptions"`
}

type leftChannel struct {
	Channel realm.ChannelID `json:"stream_id"`
	Name    string          `json:"name"`
}

type subscriptionUpdate[V any] struct {
	_        struct{}        `const:"type=subscription op=update"`
	Channel  realm.ChannelID `json:"stream_id"`
	Property string          `json:"property"`
	Value    V               `json:"value"`
}

type peers struct {
	Channels []realm.ChannelID `json:"stream_ids"`
	Users    []realm.UserID    `json:"user_ids"`
}

type peersAddedEvent struct {
	_ struct{} `const:"type=subscription op=peer_add"`
	peers
}

type peersRemovedEvent struct {
	_ struct{} `const:"type=subscription op=peer_remove"`
	peers
}

// subscriptionJSON is a channel with one user's settings for it.
type subscriptionJSON struct {
	channelJSON
	personalSettings
	subscriberLists
}

// otherChannelJSON is a channel that the user was never subscribed to.
type otherChannelJSON struct {
	channelJSON
	subscriberLists
}

// personalSettings is a user's own settings of a channel.
type personalSettings struct {
	Color    string `json:"color"`
	Muted    bool   `json:"is_muted"`
	Home     bool   `json:"in_home_view"` // the opposite, for older clients
	Pinned   bool   `json:"pin_to_top"`
	Desktop  *bool  `json:"desktop_notifications"`
	Audible  *bool  `json:"audible_notifications"`
	Push     *bool  `json:"push_notifications"`
	Email    *bool  `json:"email_notifications"`
	Wildcard *bool  `json:"wildcard_mentions_notify"`
}

// subscriberLists is the list that the client asked for, at most one.
type subscriberLists struct {
	All     []realm.UserID `json:"subscribers,omitzero"`
	Partial []realm.UserID `json:"partial_subscribers,omitzero"`
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

// newSubscription returns a channel with one user's settings for it, as in events.
func newSubscription(s realm.SubscriptionInfo, to *Recipient) subscriptionJSON {
	out := subscriptionJSON{channelJSON: newChannel(s.ChannelInfo), personalSettings: newPersonalSettings(s, to.Client)}
	switch {
	case to.Subscribers == form.PartialSubscribers && s.Members.Len() >= realm.FullSubscriberListLimit:
		out.Partial = to.subscriberList(s.ID, true, func() []realm.UserID {
			return partialSubscribers(s.Members, s.Here, to)
		})
	case to.Subscribers == form.NoSubscribers:
	case s.Members.Len() >= realm.FullSubscriberListLimit:
		out.All = to.subscriberList(s.ID, false, func() []realm.UserID {
			return ids.IDs[realm.UserID](s.Members)
		})
	default:
		out.All = nonNil(ids.IDs[realm.UserID](s.Members))
	}
	return out
}

// newPersonalSettings returns a user's settings of a channel. Clients without the capability get the inherited value of
// a notification setting that the user has not set.
func newPersonalSettings(s realm.SubscriptionInfo, to Client) personalSettings {
	setting := func(own *bool, inherited bool) *bool {
		if own == nil && !to.Has(realm.CapNotificationSettingsNull) {
			return ptr(inherited)
		}
		return own
	}
	return personalSettings{s.Color, s.Muted, !s.Muted, s.Pinned, setting(s.Desktop, s.Inherited.Desktop),
		setting(s.Audible, s.Inherited.Audible), setting(s.Push, s.Inherited.Push),
		setting(s.Email, s.Inherited.Email), setting(s.Wildcard, s.Inherited.Wildcard)}
}

func subscriptionsAdded(subscriptions []realm.SubscriptionInfo, to *Recipient) *subscriptionsAddedEvent {
	out := &subscriptionsAddedEvent{}
	for _, s := range subscriptions {
		if !s.Archived || to.Has(realm.CapArchivedChannels) {
			out.Subscriptions = append(out.Subscriptions, newSubscription(s, to))
		}
	}
	if out.Subscriptions == nil {
		return nil
	}
	return out
}

func subscriptionsRemoved(removed []realm.SubscriptionRemoved, to *Recipient) *subscriptionsRemovedEvent {
	out := &subscriptionsRemovedEvent{}
	for _, s := range removed {
		if !s.Archived || to.Has(realm.CapArchivedChannels) {
			out.Subscriptions = append(out.Subscriptions, leftChannel{s.Channel, s.Name})
		}
	}
	if out.Subscriptions == nil {
		return nil
	}
	return out
}

func peersChanged(e *realm.PeersChanged, to *Recipient) any {
	common := peers{withoutHiddenArchived(e.Channels, e.Archived, to), e.Users}
	switch {
	case len(common.Channels) == 0:
		return nil
	case e.Joined:
		return &peersAddedEvent{peers: common}
	}
	return &peersRemovedEvent{peers: common}
}

func subscriptionSet(e *realm.SubscriptionSet, to *Recipient) []any {
	if e.Archived && !to.Has(realm.CapArchivedChannels) {
		return nil
	}
	update := func(property string, value bool) any {
		return &subscriptionUpdate[bool]{Channel: e.Channel, Property: property, Value: value}
	}
	switch e.Property {
	case "color":
		return []any{&subscriptionUpdate[string]{Channel: e.Channel, Property: e.Property, Value: e.Color}}
	case "is_muted":
		return []any{update("in_home_view", !e.Value), update("is_muted", e.Value)}
	}
	return []any{update(e.Property, e.Value)}
}

type getSubscriptionsForm struct {
	Subscribers form.IncludeSubscribers `form:"include_subscribers"`
}

func getSubscriptions(c *Call, f getSubscriptionsForm) (*subscriptionsAnswer, error) {
	return Read(c, func(v realm.View) (*subscriptionsAnswer, error) {
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
		return &subscriptionsAnswer{inFragments[[]subscriptionJSON](list.end()...)}, nil
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
func subscribeInTurns(c *Call, f subscribeForm) (*subscribeAnswer, error) {
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
	return newSubscribeAnswer(joined), nil
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

func newSubscribedFields(j realm.SubscribeResult) subscribedFields {
	return subscribedFields{newNamesByUser(j.Subscribed), newNamesByUser(j.Already)}
}

func newSubscribeAnswer(j realm.SubscribeResult) *subscribeAnswer {
	a := &subscribeAnswer{subscribedFields: newSubscribedFields(j)}
	if !j.AllOrNothing {
		a.Unauthorized = &j.Unauthorized
	}
	if j.NotifyAsked {
		a.Notified = &j.Notified
	}
	return a
}

type unsubscribeForm struct {
	Names      []string        `form:"subscriptions,required"`
	Principals form.Principals `form:"principals"`
}

// unsubscribeInTurns unsubscribes users from channels, in as many turns as that needs.
func unsubscribeInTurns(c *Call, f unsubscribeForm) (*unsubscribedFields, error) {
	left, err := Execute(c, realm.Unsubscribe{Names: f.Names, Principals: principals(f.Principals),
		MaxPerTurn: realm.MaxSubscriptionsPerTurn})
	if err != nil {
		return nil, err
	}
	if _, err := waitForJob(c, left.Job); err != nil {
		return nil, err
	}
	return &unsubscribedFields{left.Removed, left.NotRemoved}, nil
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

func newResubscribeAnswer(r realm.ResubscribeResult) *resubscribeAnswer {
	return &resubscribeAnswer{newSubscribedFields(r.SubscribeResult), unsubscribedFields{r.Removed, r.NotRemoved}}
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
func setProperties(c *Call, f setPropertiesForm) (a noFields, err error) {
	cmd := realm.SetSubscriptionProperties{MaxPerTurn: realm.MaxPropertiesPerTurn}
	for _, p := range f.Data {
		cmd.Changes = append(cmd.Changes, propertyChange(p.Channel, p.Property, p.Value))
	}
	job, err := Execute(c, cmd)
	if err == nil {
		_, err = waitForJob(c, job)
	}
	return a, err
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

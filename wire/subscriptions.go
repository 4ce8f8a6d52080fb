package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var subscriptionEndpoints = []Endpoint{
	Get("/users/me/subscriptions", getSubscriptions),
	Act("POST", "/users/me/subscriptions", subscribe, joined),
	Do("DELETE", "/users/me/subscriptions", unsubscribe, func(l realm.Left) Answer { return Answer{"removed": l.Removed, "not_removed": l.NotRemoved} }),
}

var subscriptionEvents = []EventKind{
	Event(subscriptionAdded),
	Event(func(e *realm.SubscriptionRemoved, to *To) any {
		return obj{"type": "subscription", "op": "remove", "subscriptions": []any{obj{"stream_id": e.Channel, "name": e.Name}}}
	}),
	Event(func(e *realm.PeersChanged, to *To) any {
		op := "peer_remove"
		if e.Joined {
			op = "peer_add"
		}
		return obj{"type": "subscription", "op": op, "stream_ids": e.Channels, "user_ids": e.Users}
	}),
}

// subscriptionObject is a channel with one user's settings for it.
func subscriptionObject(s realm.SubscriptionInfo, to Client) obj {
	o := channelObject(s.ChannelInfo)
	o["color"], o["is_muted"], o["in_home_view"], o["pin_to_top"] = s.Color, s.Muted, !s.Muted, s.Pinned
	own := func(name string, value *bool, inherited bool) {
		switch {
		case value != nil:
			o[name] = *value
		case to.Has(realm.CapNotificationSettingsNull):
			o[name] = nil
		default:
			o[name] = inherited
		}
	}
	own("desktop_notifications", s.Desktop, s.Inherited.Desktop)
	own("audible_notifications", s.Audible, s.Inherited.Audible)
	own("push_notifications", s.Push, s.Inherited.Push)
	own("email_notifications", s.Email, s.Inherited.Email)
	own("wildcard_mentions_notify", s.Wildcard, s.Inherited.Wildcard)
	if to.Subscribers != form.NoSubscribers {
		o["subscribers"] = nonNil(s.Members)
	}
	return o
}

func subscriptionAdded(e *realm.SubscriptionAdded, to *To) any {
	list := []any{}
	for _, s := range e.List {
		list = append(list, subscriptionObject(s, to.Client))
	}
	return obj{"type": "subscription", "op": "add", "subscriptions": list}
}

type getSubscriptionsForm struct {
	Subscribers form.IncludeSubscribers `form:"include_subscribers"`
}

func getSubscriptions(c *Call, v realm.View, f getSubscriptionsForm) (Answer, error) {
	list := []any{}
	v.EachChannel(func(ch *realm.Channel) {
		if s := v.SubscriptionOf(v.User, ch.ID); s != nil && s.Active && !ch.Archived {
			list = append(list, subscriptionObject(v.SubscriptionInfo(v.User, ch, v.MaySeeSubscribers(ch)), Client{Subscribers: f.Subscribers, Caps: realm.CapNotificationSettingsNull}))
		}
	})
	return Answer{"subscriptions": list}, nil
}

type subscribeForm struct {
	Subscriptions []struct {
		Name        string `form:"name,required,strip"`
		Description string `form:"description"`
		Color       string `form:"color"`
	} `form:"subscriptions,required"`
	Principals form.Principals `form:"principals"`
	Announce   bool            `form:"announce"`
	Private    bool            `form:"invite_only"`
	WebPublic  bool            `form:"is_web_public"`
	Default    bool            `form:"is_default_stream"`
	History    *bool           `form:"history_public_to_subscribers"`
	Fatal      bool            `form:"authorization_errors_fatal,default=true"`
	Notify     bool            `form:"send_new_subscription_messages,default=true"`
}

func subscribe(c *Call, f subscribeForm) (realm.Subscribe, error) {
	cmd := realm.Subscribe{Fatal: f.Fatal, Announce: f.Announce, Notify: f.Notify, Principals: principals(f.Principals),
		New: realm.NewChannel{Private: f.Private, WebPublic: f.WebPublic, History: f.History, Default: f.Default}}
	for _, s := range f.Subscriptions {
		cmd.Channels = append(cmd.Channels, realm.Joining{Name: s.Name, Color: s.Color, Description: s.Description})
	}
	return cmd, nil
}

func principals(p form.Principals) []realm.Principal {
	var out []realm.Principal
	for _, id := range p.IDs {
		out = append(out, realm.Principal{ID: realm.UserID(id)})
	}
	for _, e := range p.Emails {
		out = append(out, realm.Principal{Email: e})
	}
	return out
}

func joined(j realm.Joined) Answer {
	a := Answer{"subscribed": namesByUser(j.Subscribed), "already_subscribed": namesByUser(j.Already)}
	if len(j.Unauthorized) > 0 {
		a["unauthorized"] = j.Unauthorized
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

func unsubscribe(f unsubscribeForm) realm.Unsubscribe {
	return realm.Unsubscribe{Names: f.Names, Principals: principals(f.Principals)}
}

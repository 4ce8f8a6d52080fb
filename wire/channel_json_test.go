package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"parley/actors/realm"
	"parley/actors/realm/realmtest"
	"parley/wire/form"
)

// TestChannelJSONFollowsChanges checks that JSON joined from cached bytes equals JSON made from objects, after every
// kind of change.
func TestChannelJSONFollowsChanges(t *testing.T) {
	s := realmtest.New(t)
	ann, bo := s.Join("Ann", realm.Owner), s.Join("Bo")
	realmtest.Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "tea \"& more\"", Description: "<b>"}},
		Principals: []realm.Principal{{ID: ann}}})
	c := s.Realm.FindChannelByName("tea \"& more\"")
	compare := func(after string) {
		t.Helper()
		for _, u := range []realm.UserID{ann, bo} {
			v := s.ViewAs(u)
			for _, to := range []Client{{Subscribers: form.AllSubscribers}, {Caps: realm.CapNotificationSettingsNull},
				{Subscribers: form.PartialSubscribers}} {
				channel, lists := newChannel(v.ChannelInfo(c)), subscriberLists{}
				if to.Subscribers != form.NoSubscribers {
					lists.All = v.Subscribers(c.ID)
					if !v.MaySeeSubscribers(c) {
						lists.All = []realm.UserID{}
					}
				}
				want := any(otherChannelJSON{channel, lists})
				if v.SubscriptionOf(u, c.ID) != nil {
					want = subscriptionJSON{channel, newPersonalSettings(v.PersonalSubscription(u, c.ID), to), lists}
				}
				var a, b map[string]any
				if err := json.Unmarshal(encodeSubscription(v, c, to, func(realm.UserID) bool {
					return true
				}), &a); err != nil {
					t.Fatalf("after %s: %v", after, err)
				}
				if err := json.Unmarshal(encode(want), &b); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(a, b) {
					t.Errorf("after %s, user %d gets\n%v\nwant\n%v", after, u, a, b)
				}
			}
		}
	}
	compare("creation")
	yes, name := true, "coffee"
	for _, x := range []struct {
		after string
		do    func()
	}{
		{"joining", func() { realmtest.Do(s, bo, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: c.Name}}}) }},
		{"a message", func() {
			realmtest.Do(s, ann, realm.SendMessage{ToChannel: true, Channel: c.ID, Topic: "t",
				Body: realm.Body{Text: "x", HTML: "x"}})
		}},
		{"muting", func() {
			realmtest.Do(s, bo, realm.SetSubscriptionProperties{Changes: []realm.PropertyChange{{Channel: c.ID,
				Property: "is_muted", Bool: &yes}, {Channel: c.ID, Property: "push_notifications", Bool: &yes}}})
		}},
		{"renaming", func() { realmtest.Do(s, ann, realm.EditChannel{Channel: c.ID, Name: &name}) }},
		{"a group setting", func() {
			realmtest.Do(s, ann, realm.EditChannel{Channel: c.ID,
				Groups: []realm.GroupChange{{Name: "can_send_message_group",
					New: realm.GroupValue{Members: []realm.UserID{ann, bo}}}}})
		}},
		{"a week", func() { s.Advance(8 * 86400) }},
		{"privacy", func() { realmtest.Do(s, ann, realm.EditChannel{Channel: c.ID, Private: &yes}) }},
		{"leaving", func() { realmtest.Do(s, bo, realm.Unsubscribe{Names: []string{name}}) }},
		{"half a year", func() { s.Advance(200 * 86400) }},
		{"deactivation", func() { realmtest.Do(s, ann, realm.DeactivateUser{User: bo}) }},
		{"archiving", func() { realmtest.Do(s, ann, realm.ArchiveChannel{Channel: c.ID}) }},
		{"unarchiving", func() { realmtest.Do(s, ann, realm.EditChannel{Channel: c.ID, Unarchive: true}) }},
	} {
		x.do()
		compare(x.after)
	}
}

// fakePresence holds the time when users were last online.
type fakePresence struct{ last map[realm.UserID]int64 }

func (h fakePresence) ActiveSince(_ realm.ID, oldest int64) func(realm.UserID) bool {
	return func(u realm.UserID) bool { return h.last[u] >= oldest }
}

func TestPartialSubscribers(t *testing.T) {
	s := realmtest.New(t)
	ann := s.Join("Ann")
	bot := realmtest.Do(s, realmtest.System, realm.CreateUser{Name: "Robo", Email: "robo@example.com",
		Bot: realm.GenericBot, BotOwner: ann})
	all := []realm.Principal{{ID: ann}, {ID: bot}}
	var here, gone realm.UserID
	for i := range realm.FullSubscriberListLimit - 2 {
		gone, here = here, realmtest.Do(s, realmtest.System,
			realm.CreateUser{Name: fmt.Sprintf("User %d", i), Email: fmt.Sprintf("u%d@example.com", i)})
		all = append(all, realm.Principal{ID: here})
	}
	realmtest.Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "small"}},
		Principals: all[:len(all)-1]})
	realmtest.Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "large"}}, Principals: all})
	v := s.ViewAs(ann)
	recent := recentUsers(v, fakePresence{map[realm.UserID]int64{here: s.Now - 13*86400, gone: s.Now - 15*86400}})
	show := func(name string) (o struct {
		Subscribers *[]realm.UserID `json:"subscribers"`
		Partial     *[]realm.UserID `json:"partial_subscribers"`
	}) {
		if err := json.Unmarshal(encodeSubscription(v, v.FindChannelByName(name),
			Client{Subscribers: form.PartialSubscribers}, recent), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := show("small"); o.Partial != nil || o.Subscribers == nil ||
		len(*o.Subscribers) != realm.FullSubscriberListLimit-1 {
		t.Errorf("below %d subscribers the list must be full: %+v", realm.FullSubscriberListLimit, o)
	}
	if o := show("large"); o.Subscribers != nil || o.Partial == nil ||
		!reflect.DeepEqual(*o.Partial, []realm.UserID{ann, bot, here}) {
		t.Errorf("the partial list must have bots and the users that were online in the last 14 days: %v", o.Partial)
	}
}

func encodeSubscription(v realm.View, c *realm.Channel, to Client, recent func(realm.UserID) bool) []byte {
	list := newObjectList(1, 3)
	addSubscription(list, v, c, to, recent)
	b := list.end().Bytes()
	return b[1 : len(b)-1] // without the brackets of the list
}

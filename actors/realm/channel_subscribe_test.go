package realm_test

import (
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/actors/realm/realmtest"
)

func channelsToJoin(names ...string) (out []ChannelToJoin) {
	for _, n := range names {
		out = append(out, ChannelToJoin{Name: n})
	}
	return out
}

func principals(ids ...UserID) (out []Principal) {
	for _, id := range ids {
		out = append(out, Principal{ID: id})
	}
	return out
}

func TestSubscribe(t *testing.T) {
	s := newTestScene(t)
	a := do(s, s.cy, Subscribe{Channels: channelsToJoin("PUBLIC ", "new"), AllOrNothing: true})
	if got := a.Subscribed[s.cy]; !slices.Equal(got, []string{"public", "new"}) {
		t.Errorf("subscribed to %v", got)
	}
	s.ExpectEvents(s.cy, "stream", "subscription") // one event for both channels
	s.ExpectEvents(s.bo, "stream", "subscription") // likewise
	s.ExpectEvents(s.guest, "subscription")        // guests get events only about channels they are in
	both := []ChannelID{s.public, s.Realm.FindChannelByName("new").ID}
	if e := realmtest.ListEventsOf[*PeersChanged](s.Scene, s.bo)[0]; !e.Joined ||
		!slices.Equal(e.Users, []UserID{s.cy}) || !slices.Equal(e.Channels, both) {
		t.Errorf("Bo got %+v", e)
	}
	if e := realmtest.ListEventsOf[*PeersChanged](s.Scene, s.guest)[0]; !e.Joined ||
		!slices.Equal(e.Users, []UserID{s.cy}) || !slices.Equal(e.Channels, []ChannelID{s.public}) {
		t.Errorf("the guest got %+v", e)
	}
	own := realmtest.ListEventsOf[*SubscriptionsAdded](s.Scene, s.cy)[0].For(s.cy)
	if x := own[0]; len(own) != 2 || x.Subscription.Channel != s.public ||
		!slices.Equal(ids.IDs[UserID](x.Members), []UserID{s.ann, s.bo, s.cy, s.guest}) {
		t.Errorf("Cy got %+v", x)
	}
	do(s, s.mod, Subscribe{Channels: channelsToJoin("public")})
	a = do(s, s.cy, Subscribe{Channels: channelsToJoin("public")})
	if !slices.Equal(a.Already[s.cy], []string{"public"}) || len(a.Subscribed) != 0 {
		t.Errorf("joining again: answer %+v", a)
	}
	s.ExpectNoEvents(s.allUsers()...)

	refused(s, s.guest, Subscribe{Channels: channelsToJoin("new")}, "Not allowed for guest users")
	refused(s, s.cy, Subscribe{
		Channels: channelsToJoin("new", "private"), AllOrNothing: true,
	}, "Unable to access channel (private).")
	refused(s, s.admin, Subscribe{
		Channels: channelsToJoin("private"), AllOrNothing: true,
	}, "Unable to access channel (private).")
	a = do(s, s.cy, Subscribe{Channels: channelsToJoin("private", "new")})
	if !slices.Equal(a.Unauthorized, []string{"private"}) || !slices.Equal(a.Already[s.cy], []string{"new"}) {
		t.Errorf("without AllOrNothing: answer %+v", a)
	}
	refused(s, s.cy, Subscribe{Channels: channelsToJoin("")}, "Channel name can't be empty.")
	refused(s, s.cy, Subscribe{Channels: channelsToJoin("x"), Principals: principals(999)}, "No such user")
	realmtest.RunTurn(s.Scene, realmtest.System, asCommand(func(t *Turn) {
		t.Record(&UserChanged{ID: s.bo, Active: ptr(false)})
	}))
	refused(s, s.cy, Subscribe{Channels: channelsToJoin("x"), Principals: principals(s.bo)}, "User is deactivated")
	if n := s.Realm.SubscriberCount(s.public); n != 4 { // ann, guest, cy, mod
		t.Errorf("%d subscribers, want only active ones", n)
	}
}

func TestSubscribeOthers(t *testing.T) {
	s := newTestScene(t)
	do(s, s.ann, Subscribe{
		Channels: channelsToJoin("private"), Principals: principals(s.cy, s.guest), Notify: true,
		AllOrNothing: true,
	})
	// A user who could not see the channel first gets the channel, then the subscription, then the bot's message.
	s.ExpectEvents(s.cy, "stream", "subscription", "message")
	s.ExpectEvents(s.guest, "stream", "subscription", "message")
	s.ExpectEvents(s.bo, "subscription")
	s.ExpectEvents(s.admin, "subscription")
	s.ExpectNoEvents(s.mod, s.bot)
	if m := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.cy)[0].Message; m.Channel != 0 ||
		m.Body.Text != "@**Ann|"+s.ann.String()+"** subscribed you to the channel #**private**." {
		t.Errorf("Cy got %+v", m)
	}
	do(s, s.ann, Subscribe{Channels: channelsToJoin("one", "two"), Principals: principals(s.ann, s.cy), Notify: true})
	if got := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.cy); len(got) != 0 {
		t.Error("a first subscriber of a new channel got a message")
	}
	a := do(s, s.ann, Subscribe{
		Channels: channelsToJoin("one", "two"), Principals: principals(s.mod, s.bot), Notify: true,
	})
	if !a.Notified {
		t.Error("the answer says that no messages were sent")
	}
	if got := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.mod); len(got) != 1 ||
		!strings.Contains(got[0].Message.Body.Text, "* #**one**\n* #**two**") {
		t.Errorf("Mo got %+v", got)
	}
	if got := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.bot); len(got) != 0 {
		t.Error("a bot got a message")
	}
	// A caller who does not list themselves is not subscribed to the new channel.
	do(s, s.ann, Subscribe{Channels: channelsToJoin("for bo"), Principals: principals(s.bo)})
	if c := s.Realm.FindChannelByName("for bo"); s.Realm.Subscribed(s.ann, c.ID) || !s.Realm.Subscribed(s.bo, c.ID) ||
		c.Creator != s.ann {
		t.Error("the new channel has the wrong subscribers or creator")
	}
	do(s, s.owner, ChangeOrganization{Groups: []GroupChange{{
		Name: "can_add_subscribers_group", New: s.group("role:moderators"),
	}}})
	refused(s, s.cy, Subscribe{
		Channels: channelsToJoin("public"), Principals: principals(s.bot),
	}, "Insufficient permission")
	do(s, s.ann, Subscribe{Channels: channelsToJoin("public"), Principals: principals(s.bot)}) // ann administers it
	do(s, s.mod, Subscribe{Channels: channelsToJoin("public"), Principals: principals(s.cy)})
	refused(s, s.owner, Subscribe{
		Channels: channelsToJoin("protected"), Principals: principals(s.cy), AllOrNothing: true,
	}, "Unable to access channel (protected).")
}

func TestCreateChannelPermissions(t *testing.T) {
	s := newTestScene(t)
	create := func(n NewChannel) Subscribe { return Subscribe{Channels: channelsToJoin("x"), New: n} }
	refused(s, s.ann, create(NewChannel{Default: true}), "Insufficient permission")
	refused(s, s.admin, create(NewChannel{Default: true, Private: true}), "A default channel cannot be private.")
	refused(s, s.admin, create(NewChannel{Retention: ptr(int64(3))}), "Must be an organization owner")
	refused(s, s.ann, create(NewChannel{WebPublic: true}), "Insufficient permission")
	refused(s, s.ann, create(NewChannel{History: ptr(false)}), "Invalid parameters")
	refused(s, s.ann, create(NewChannel{Folder: 3}), "Invalid channel folder ID")
	refused(s, s.ann, create(NewChannel{Groups: []GroupChange{{
		Name: "can_delete_own_message_group", New: s.group("role:everyone"),
	}}}), "Insufficient permission")
	refused(s, s.ann, create(NewChannel{Private: true, Groups: []GroupChange{{
		Name: "can_create_topic_group", New: s.group("role:members"),
	}}}), "Everyone must be allowed to create topics in a private channel with protected history.")
	do(s, s.owner, ChangeOrganization{Groups: []GroupChange{
		{Name: "can_create_public_channel_group", New: s.group("role:moderators")},
		{Name: "can_create_private_channel_group", New: s.group("role:administrators")},
	}})
	refused(s, s.ann, create(NewChannel{}), "Insufficient permission")
	refused(s, s.mod, create(NewChannel{Private: true}), "Insufficient permission")
	do(s, s.mod, create(NewChannel{Groups: []GroupChange{{
		Name: "can_send_message_group", New: s.group("role:moderators"),
	}}}))
	x := s.Realm.FindChannelByName("x")
	if s.Realm.ChannelSetting(x, "can_send_message_group").Group != s.group("role:moderators").Group {
		t.Error("the new channel does not have the requested posting group")
	}
	refused(s, s.guest, CreateChannel{
		New: NewChannel{Name: "y"}, Subscribers: principals(s.guest),
	}, "Not allowed for guest users")
	refused(s, s.mod, CreateChannel{
		New: NewChannel{Name: "X"}, Subscribers: principals(s.mod),
	}, "Channel 'X' already exists")
	id := do(s, s.mod, CreateChannel{
		New: NewChannel{Name: "y", Description: "about"}, Subscribers: principals(s.bo),
	}).ID
	if !s.Realm.Subscribed(s.bo, id) || s.Realm.FindChannel(id).DescriptionHTML != "<p>about</p>" {
		t.Error("the new channel does not have the requested subscriber and description")
	}
}

func TestUnsubscribe(t *testing.T) {
	s := newTestScene(t)
	before := s.post(s.ann, s.public, "t", "one")
	s.leave(s.bo, s.public)
	s.ExpectEvents(s.bo, "subscription", "update_message_flags")
	s.ExpectEvents(s.cy, "subscription")
	s.ExpectEvents(s.guest, "subscription")
	if e := realmtest.ListEventsOf[*MessagesReadAfterLeaving](s.Scene, s.bo)[0]; !slices.Equal(
		ids.IDs[MessageID](e.Messages), []MessageID{before},
	) {
		t.Errorf("marked as read after leaving: %v", ids.IDs[MessageID](e.Messages))
	}
	after := s.post(s.ann, s.public, "t", "two")
	s.ExpectNoEvents(s.bo)
	if f := s.ViewAs(s.bo).FlagsOf(after); f&FlagHistorical == 0 {
		t.Error("a user received a message sent after leaving")
	}
	s.leave(s.guest, s.public) // a guest can no longer see the channel
	s.ExpectEvents(s.guest, "subscription", "stream", "update_message_flags")
	refused(s, s.guest, Unsubscribe{Names: []string{"public"}}, "Channel(s) (public) do not exist")
	s.leave(s.bo, s.private)
	s.ExpectEvents(s.bo, "subscription", "stream")
	s.ExpectNoEvents(s.cy, s.mod)
	refused(s, s.bo, Unsubscribe{Names: []string{"private", "nowhere"}}, "Channel(s) (private, nowhere) do not exist")
	if a := do(s, s.cy, Unsubscribe{Names: []string{"public"}}); !slices.Equal(a.NotRemoved, []string{"public"}) ||
		len(a.Removed) != 0 {
		t.Errorf("leaving a channel without being subscribed: answer %+v", a)
	}

	refused(s, s.cy, Unsubscribe{Names: []string{"public"}, Principals: principals(s.ann)}, "Insufficient permission")
	do(s, s.ann, Subscribe{Channels: channelsToJoin("public"), Principals: principals(s.bot, s.bo)})
	do(s, s.ann, Unsubscribe{Names: []string{"public"}, Principals: principals(s.bot)}) // ann's own bot
	if a := do(s, s.admin, Unsubscribe{Names: []string{"public"}, Principals: principals(s.bo, s.bot,
		s.bo)}); !slices.Equal(
		a.Removed,
		[]string{"public"},
	) ||
		!slices.Equal(a.NotRemoved, []string{"public"}) {
		t.Errorf("one of two users left the channel, answer %+v", a)
	}
	if a := do(s, s.admin, Unsubscribe{}); len(a.Removed)+len(a.NotRemoved) != 0 || a.Removed == nil ||
		a.NotRemoved == nil {
		t.Errorf("leaving no channel: answer %+v", a)
	}
	do(s, s.admin, Unsubscribe{Names: []string{"protected"}, Principals: principals(s.bo)}) // the admin may not read it
	s.ExpectEvents(s.bo, "subscription", "stream")
	do(s, s.ann, EditChannel{Channel: s.public, Groups: []GroupChange{{
		Name: "can_remove_subscribers_group", New: GroupValue{Members: []UserID{s.cy}},
	}}})
	do(s, s.cy, Unsubscribe{Names: []string{"public"}, Principals: principals(s.ann)})
	s.ExpectEvents(s.ann, "subscription", "update_message_flags")
}

// Clients count the messages of a channel as read when they leave it. The server does the same for a user who returns
// at once.
func TestRejoinedUserHasReadOldMessages(t *testing.T) {
	s := newTestScene(t)
	before := s.post(s.ann, s.public, "t", "one")
	s.leave(s.bo, s.public)
	if e := realmtest.ListEventsOf[*MessagesReadAfterLeaving](s.Scene, s.bo)[0]; !slices.Equal(
		ids.IDs[MessageID](e.Messages), []MessageID{before},
	) {
		t.Errorf("marked as read after leaving: %v", ids.IDs[MessageID](e.Messages))
	}
	s.post(s.ann, s.public, "t", "missed")
	s.join(s.bo, s.public)
	after := s.post(s.ann, s.public, "t", "two")
	if v := s.ViewAs(s.bo); v.FlagsOf(before)&FlagRead == 0 || v.FlagsOf(after)&FlagRead != 0 {
		t.Errorf("flags of the message before leaving: %v, after rejoining: %v", v.FlagsOf(before), v.FlagsOf(after))
	}
}

func TestRejoinKeepsSubscriptionSettings(t *testing.T) {
	s := newTestScene(t)
	do(s, s.bo, SetSubscriptionProperties{Changes: []PropertyChange{{
		Channel: s.public, Property: "color", Text: ptr("#123456"),
	}}})
	old := s.post(s.ann, s.public, "t", "received")
	s.leave(s.bo, s.public)
	missed := s.post(s.ann, s.public, "t", "missed")
	s.join(s.bo, s.public)
	if c := s.Realm.SubscriptionOf(s.bo, s.public).Color; c != "#123456" {
		t.Errorf("the color is %s", c)
	}
	v := s.ViewAs(s.bo)
	if v.FlagsOf(old)&FlagHistorical != 0 || v.FlagsOf(missed)&FlagHistorical == 0 {
		t.Error("rejoining changed the rows of old messages")
	}
}

func TestSubscriptionColors(t *testing.T) {
	s := newTestScene(t)
	var names []string
	for i := range len(Palette) + 1 {
		names = append(names, "c"+string(rune('a'+i)))
	}
	do(s, s.cy, Subscribe{Channels: channelsToJoin(names...)})
	for i, n := range names[:len(Palette)] {
		if got := s.Realm.SubscriptionOf(s.cy, s.Realm.FindChannelByName(n).ID).Color; got != Palette[i] {
			t.Errorf("channel %d is %s, want %s", i, got, Palette[i])
		}
	}
	last := s.Realm.FindChannelByName(names[len(Palette)]).ID
	want := Palette[last.Recipient()%int64(len(Palette))]
	if got := s.Realm.SubscriptionOf(s.cy, last).Color; got != want {
		t.Errorf("all colors are in use: channel %d is %s, want %s", last, got, want)
	}
	do(s, s.mod, Subscribe{Channels: []ChannelToJoin{{Name: "ca", Color: "#abcdef"}}})
	if got := s.Realm.SubscriptionOf(s.mod, s.Realm.FindChannelByName("ca").ID).Color; got != "#abcdef" {
		t.Errorf("asked for #abcdef, got %s", got)
	}
}

func TestResubscribe(t *testing.T) {
	s := newTestScene(t)
	refused(s, s.bo, Resubscribe{}, `Nothing to do. Specify at least one of "add" or "delete".`)
	a := do(s, s.bo, Resubscribe{Add: channelsToJoin("fresh"), Delete: []string{"public"}})
	if !slices.Equal(a.Removed, []string{"public"}) || !slices.Equal(a.Subscribed[s.bo], []string{"fresh"}) {
		t.Errorf("answered %+v", a)
	}
	// Subscribed already, then removed.
	do(s, s.bo, Resubscribe{Add: channelsToJoin("private"), Delete: []string{"private"}})
	if s.Realm.Subscribed(s.bo, s.private) {
		t.Error("Bo is still subscribed")
	}
	refused(s, s.bo, Resubscribe{
		Add: channelsToJoin("another"), Delete: []string{"nowhere"},
	}, "Channel(s) (nowhere) do not exist")
	refused(s, s.bo, Resubscribe{
		Add: channelsToJoin("private"), Delete: []string{"fresh"},
	}, "Unable to access channel (private).")
}

func TestSubscriptionProperties(t *testing.T) {
	s := newTestScene(t)
	set := func(c ChannelID, property string, b *bool, text *string) SetSubscriptionProperties {
		return SetSubscriptionProperties{Changes: []PropertyChange{{c, property, b, text}}}
	}
	do(s, s.bo, set(s.public, "in_home_view", ptr(false), nil))
	s.onlyReceive("subscription", s.bo)
	if !s.Realm.SubscriptionOf(s.bo, s.public).Muted {
		t.Error("in_home_view false is not muted")
	}
	for _, p := range []string{
		"is_muted", "pin_to_top", "desktop_notifications", "audible_notifications", "push_notifications",
		"email_notifications", "wildcard_mentions_notify",
	} {
		do(s, s.bo, set(s.public, p, ptr(true), nil))
		s.onlyReceive("subscription", s.bo)
		refused(s, s.bo, set(s.public, p, nil, ptr("true")), p+" is not a boolean")
	}
	x := s.Realm.SubscriptionOf(s.bo, s.public)
	if !x.Muted || !x.Pinned || !*x.Desktop || !*x.Audible || !*x.Push || !*x.Email || !*x.Wildcard {
		t.Errorf("set to %+v", *x)
	}
	do(s, s.bo, set(s.public, "color", nil, ptr("#fff")))
	refused(s, s.bo, set(s.public, "color", nil, ptr("red")), "color is not a valid hex color code")
	refused(s, s.bo, set(s.public, "color", ptr(true), nil), "color is not a string")
	refused(s, s.bo, set(s.public, "smell", ptr(true), nil), "Unknown subscription property: smell")
	refused(s, s.cy, set(s.public, "pin_to_top", ptr(true), nil), "Not subscribed to channel ID "+s.public.String())
	refused(s, s.cy, set(s.private, "pin_to_top", ptr(true), nil), "Invalid channel ID")
	refused(s, s.bo, SetSubscriptionProperties{Changes: []PropertyChange{
		{s.public, "pin_to_top", ptr(false), nil}, {s.public, "x", nil, nil},
	}}, "Unknown subscription property: x")
}

// The changes of one request are sent in order, in few events.
func TestManySubscriptionProperties(t *testing.T) {
	s := newTestScene(t)
	var c SetSubscriptionProperties
	var want []SubscriptionSet
	for i := range 50 {
		ch, color := []ChannelID{s.public, s.private, s.protected}[i%3], "#12345"+string(rune('0'+i%10))
		c.Changes = append(c.Changes,
			PropertyChange{ch, "color", nil, &color},
			PropertyChange{ch, "is_muted", ptr(i%2 == 0), nil},
			PropertyChange{ch, "push_notifications", ptr(i%2 == 1), nil},
		)
		want = append(want,
			SubscriptionSet{User: s.bo, Channel: ch, Property: "color", Color: color},
			SubscriptionSet{User: s.bo, Channel: ch, Property: "is_muted", Value: i%2 == 0},
			SubscriptionSet{User: s.bo, Channel: ch, Property: "push_notifications", Value: i%2 == 1},
		)
	}
	bad := append(slices.Clone(c.Changes), PropertyChange{s.public, "color", nil, ptr("red")})
	refused(s, s.bo, SetSubscriptionProperties{Changes: bad}, "color is not a valid hex color code")
	do(s, s.bo, c)
	s.onlyReceive("subscription subscription subscription", s.bo)
	var got []SubscriptionSet
	for _, e := range realmtest.ListEventsOf[*SubscriptionsSet](s.Scene, s.bo) {
		got = append(got, e.Each...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("Bo got %v, want %v", got, want)
	}
	for i, ch := range []ChannelID{48: s.public, 49: s.private, 47: s.protected} {
		if ch == 0 {
			continue
		}
		x := s.Realm.SubscriptionOf(s.bo, ch)
		if x.Color != want[3*i].Color || x.Muted != want[3*i+1].Value || *x.Push != want[3*i+2].Value {
			t.Errorf("channel %d is %+v", ch, *x)
		}
	}
}

// A palette color that the user replaced is the next one to be assigned.
func TestColorsAreReused(t *testing.T) {
	s := newTestScene(t)
	do(s, s.cy, Subscribe{Channels: channelsToJoin("ca", "cb", "cc")})
	at := func(name string) *Subscription {
		return s.Realm.SubscriptionOf(s.cy, s.Realm.FindChannelByName(name).ID)
	}
	for _, color := range []string{"#123456", Palette[2]} { // the second color is also used by another channel
		do(s, s.cy, SetSubscriptionProperties{Changes: []PropertyChange{
			{at("ca").Channel, "color", nil, &color}, {at("cb").Channel, "color", nil, &color},
		}})
	}
	do(s, s.cy, Subscribe{Channels: channelsToJoin("cd", "ce", "cf")})
	for i, name := range []string{"cd", "ce", "cf"} {
		if got, want := at(name).Color, Palette[[]int{0, 1, 3}[i]]; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestChannelTopics(t *testing.T) {
	s := newTestScene(t)
	s.post(s.ann, s.protected, "Old", "x")
	s.join(s.cy, s.protected)
	last := s.post(s.ann, s.protected, "old", "x")
	s.post(s.ann, s.protected, "new", "x")
	names := func(u UserID, c ChannelID) (out []string) {
		for _, x := range s.ViewAs(u).Topics(s.Realm.FindChannel(c)) {
			out = append(out, x.Name)
		}
		slices.Sort(out)
		return out
	}
	if got := names(s.bo, s.protected); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("Bo sees topics %v", got)
	}
	realmtest.Do(s.Scene, s.ann, Unsubscribe{Names: []string{"protected"}, Principals: principals(s.cy)})
	s.post(s.ann, s.protected, "later", "x")
	s.join(s.cy, s.protected)
	if got := names(s.cy, s.protected); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("Cy sees topics %v, want only those with received messages", got)
	}
	topics := s.ViewAs(s.cy).Topics(s.Realm.FindChannel(s.protected))
	if !slices.Contains(topics, TopicInfo{Name: "old", Last: last}) {
		t.Errorf("topics %v, the last message of old should be %d", topics, last)
	}
}

func TestChannelEmailAddress(t *testing.T) {
	s := newTestScene(t)
	a := do(s, s.ann, MailToken{Channel: s.public})
	if b := do(s, s.ann, MailToken{Channel: s.public, Sender: EmailGateway}); a != b || len(a.Token) != 32 {
		t.Errorf("two requests: %+v, %+v", a, b)
	}
	if b := do(s, s.ann, MailToken{Channel: s.public, Sender: s.bot}); a == b {
		t.Error("another sender got the same token")
	}
	if b := do(s, s.bo, MailToken{Channel: s.public}); a == b {
		t.Error("another user got the same token")
	}
	if got := a.Address("%s@mail.example.com"); got != "public."+a.Token+".show-sender@mail.example.com" {
		t.Errorf("the address is %s", got)
	}
	if got := (ChannelMail{Slug: "", Token: "t"}).Address("%s@x"); got != "t.show-sender@x" || a.Address("") != "" {
		t.Errorf("without a slug the address is %s", got)
	}
	refused(s, s.cy, MailToken{Channel: s.private}, "Invalid channel ID")
	refused(s, s.admin, MailToken{Channel: s.private}, "Invalid channel ID") // sees it, but may not post
	refused(s, s.ann, MailToken{Channel: s.public, Sender: s.bo}, "Invalid user ID: "+s.bo.String())
	if x := s.Realm.FindMailAddress(strings.ToUpper(a.Token)); x == nil ||
		*x != (MailAddress{s.public, s.ann, EmailGateway}) {
		t.Errorf("the token belongs to %+v", x)
	}
	do(s, s.ann, ArchiveChannel{s.public})
	if s.Realm.FindMailAddress(a.Token) != nil {
		t.Error("an archived channel still accepts email")
	}
}

func TestNewUserHistory(t *testing.T) {
	s := newTestScene(t)
	do(s, s.admin, SetDefaultChannel{s.public, true})
	var ids []MessageID
	for range 25 {
		ids = append(ids, s.post(s.ann, s.public, "t", "x"))
	}
	s.post(s.ann, s.private, "t", "not for newcomers")
	u := s.Join("Newcomer")
	v := s.ViewAs(u)
	for i, id := range ids {
		want := FlagHistorical
		if i < 5 {
			want |= FlagRead
		}
		if f := v.FlagsOf(id); f != want {
			t.Errorf("message %d of 25 has flags %b, want %b", i+1, f, want)
		}
	}
	if id := s.post(s.ann, s.public, "t", "x"); v.FlagsOf(id) != 0 {
		t.Errorf("a message after joining has flags %b", v.FlagsOf(id))
	}
}

// The changes of one request to several channels are sent together.
func TestManyChannelsInOneRequest(t *testing.T) {
	s := newTestScene(t)
	s.Realm.SetLimits(Limits{ChannelsPerDay: 1000})
	var names []string
	for i := range 100 {
		names = append(names, "c"+strings.Repeat("x", i%50)+string(rune('a'+i/50)))
	}
	do(s, s.ann, Subscribe{Channels: channelsToJoin(names...)})
	do(s, s.ann, Subscribe{Channels: channelsToJoin(names...), Principals: principals(s.cy, s.mod)})
	for _, u := range []UserID{s.cy, s.mod} {
		n := 0
		for _, e := range realmtest.ListEventsOf[*SubscriptionsAdded](s.Scene, u) {
			n += len(e.For(u))
		}
		if n != 100 || len(s.ListEvents(u)) > 3 {
			t.Errorf("user %d got %d subscriptions in %d events", u, n, len(s.ListEvents(u)))
		}
	}
	peers := realmtest.ListEventsOf[*PeersChanged](s.Scene, s.bo)
	if len(peers) > 3 || !slices.Equal(peers[0].Users, []UserID{s.mod, s.cy}) || len(s.ListEvents(s.bo)) != len(peers) {
		t.Errorf("Bo got %d events", len(s.ListEvents(s.bo)))
	}
	s.ExpectNoEvents(s.guest)
	do(s, s.cy, Unsubscribe{Names: names})
	gone := 0
	for _, e := range realmtest.ListEventsOf[*SubscriptionsRemoved](s.Scene, s.cy) {
		gone += len(e.Each)
	}
	if gone != 100 || len(s.ListEvents(s.bo)) != 1 {
		t.Errorf("Cy got %d removals, Bo %d events", gone, len(s.ListEvents(s.bo)))
	}
	for s.Realm.Due(s.Now) != nil {
		s.runDue()
	}

	// A guest added to several channels gets them in one event, and loses them in one event.
	do(s, s.ann, Subscribe{Channels: channelsToJoin(names[:3]...), Principals: principals(s.guest)})
	s.ExpectEvents(s.guest, "stream", "subscription")
	do(s, s.guest, Unsubscribe{Names: names[:3]})
	s.ExpectEvents(s.guest, "subscription", "stream")
}

// Other users get one event for channels that all members can see, and another one for the rest.
func TestPeerEventsOfSeveralChannels(t *testing.T) {
	s := newTestScene(t)
	do(s, s.ann, Subscribe{Channels: channelsToJoin("new")})
	at := func(name string) ChannelID { return s.Realm.FindChannelByName(name).ID }
	open, shut := []ChannelID{s.public, at("new")}, []ChannelID{at("private")}
	told := func(u UserID, joined bool, want ...[]ChannelID) {
		t.Helper()
		var got [][]ChannelID
		for _, e := range realmtest.ListEventsOf[*PeersChanged](s.Scene, u) {
			if e.Joined != joined || !slices.Equal(e.Users, []UserID{s.cy}) {
				t.Errorf("user %d got %+v", u, e)
			}
			got = append(got, e.Channels)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("user %d got channels %v, want %v", u, got, want)
		}
	}
	do(s, s.ann, Subscribe{Channels: channelsToJoin("private", "new", "public"), Principals: principals(s.cy)})
	told(s.ann, true, open, shut) // is in all of them
	told(s.bo, true, open, shut)
	told(s.mod, true, open)
	told(s.guest, true, []ChannelID{s.public}) // the guest's only channel
	told(s.cy, true)                           // gets its own events instead
	do(s, s.cy, Unsubscribe{Names: []string{"public", "private", "new"}})
	told(s.ann, false, open, shut)
	told(s.mod, false, open)
	told(s.guest, false, []ChannelID{s.public})
	told(s.cy, false)
}

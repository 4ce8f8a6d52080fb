package realm_test

import (
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

func joining(names ...string) (out []Joining) {
	for _, n := range names {
		out = append(out, Joining{Name: n})
	}
	return out
}

func people(ids ...UserID) (out []Principal) {
	for _, id := range ids {
		out = append(out, Principal{ID: id})
	}
	return out
}

func TestSubscribe(t *testing.T) {
	s := newStage(t)
	a := do(s, s.cy, Subscribe{Channels: joining("PUBLIC ", "new"), Fatal: true})
	if got := a.Subscribed[s.cy]; !slices.Equal(got, []string{"public", "new"}) {
		t.Errorf("subscribed to %v", got)
	}
	s.Hears(s.cy, "stream", "subscription") // one event for both
	s.Hears(s.bo, "stream", "subscription") // likewise
	s.Hears(s.guest, "subscription")        // a guest only of channels he is in
	if e := realmtest.HeardOf[*PeersChanged](s.Scene, s.bo)[0]; !e.Joined || !slices.Equal(e.Users, []UserID{s.cy}) || !slices.Equal(e.Channels, []ChannelID{s.public, s.Realm.FindChannelByName("new").ID}) {
		t.Errorf("bo heard %+v", e)
	}
	if e := realmtest.HeardOf[*PeersChanged](s.Scene, s.guest)[0]; !e.Joined || !slices.Equal(e.Users, []UserID{s.cy}) || !slices.Equal(e.Channels, []ChannelID{s.public}) {
		t.Errorf("the guest heard %+v", e)
	}
	own := realmtest.HeardOf[*SubscriptionsAdded](s.Scene, s.cy)[0].For(s.cy)
	if x := own[0]; len(own) != 2 || x.Subscription.Channel != s.public || !slices.Equal(IDs[UserID](x.Members), []UserID{s.ann, s.bo, s.cy, s.guest}) {
		t.Errorf("cy is told %+v", x)
	}
	do(s, s.mod, Subscribe{Channels: joining("public")})
	a = do(s, s.cy, Subscribe{Channels: joining("public")})
	if !slices.Equal(a.Already[s.cy], []string{"public"}) || len(a.Subscribed) != 0 {
		t.Errorf("joining again answers %+v", a)
	}
	s.HearsNothing(s.everyone()...)

	refused(s, s.guest, Subscribe{Channels: joining("new")}, "Not allowed for guest users")
	refused(s, s.cy, Subscribe{Channels: joining("new", "private"), Fatal: true}, "Unable to access channel (private).")
	refused(s, s.admin, Subscribe{Channels: joining("private"), Fatal: true}, "Unable to access channel (private).")
	if a := do(s, s.cy, Subscribe{Channels: joining("private", "new")}); !slices.Equal(a.Unauthorized, []string{"private"}) || !slices.Equal(a.Already[s.cy], []string{"new"}) {
		t.Errorf("not fatal answers %+v", a)
	}
	refused(s, s.cy, Subscribe{Channels: joining("")}, "Channel name can't be empty.")
	refused(s, s.cy, Subscribe{Channels: joining("x"), Principals: people(999)}, "No such user")
	realmtest.Turn(s.Scene, realmtest.System, done(func(t *Turn) { t.Record(&UserChanged{ID: s.bo, Active: ptr(false)}) }))
	refused(s, s.cy, Subscribe{Channels: joining("x"), Principals: people(s.bo)}, "User is deactivated")
	if n := s.Realm.SubscriberCount(s.public); n != 4 { // ann, guest, cy, mod
		t.Errorf("%d subscribers are counted, want the active ones", n)
	}
}

func TestSubscribeOthers(t *testing.T) {
	s := newStage(t)
	do(s, s.ann, Subscribe{Channels: joining("private"), Principals: people(s.cy, s.guest), Notify: true, Fatal: true})
	// Who could not see the channel hears of it first, then that he is in it, then the bot's message.
	s.Hears(s.cy, "stream", "subscription", "message")
	s.Hears(s.guest, "stream", "subscription", "message")
	s.Hears(s.bo, "subscription")
	s.Hears(s.admin, "subscription")
	s.HearsNothing(s.mod, s.bot)
	if m := realmtest.HeardOf[*MessageArrived](s.Scene, s.cy)[0].Message; m.Channel != 0 || m.Body.Text != "@_**Ann|"+s.ann.String()+"** subscribed you to the channel #**private**." {
		t.Errorf("cy reads %+v", m)
	}
	do(s, s.ann, Subscribe{Channels: joining("one", "two"), Principals: people(s.ann, s.cy), Notify: true})
	if got := realmtest.HeardOf[*MessageArrived](s.Scene, s.cy); len(got) != 0 {
		t.Error("who is put into a channel at its creation is not told by message")
	}
	if a := do(s, s.ann, Subscribe{Channels: joining("one", "two"), Principals: people(s.mod, s.bot), Notify: true}); !a.Notified {
		t.Error("messages were sent")
	}
	if got := realmtest.HeardOf[*MessageArrived](s.Scene, s.mod); len(got) != 1 || !strings.Contains(got[0].Message.Body.Text, "* #**one**\n* #**two**") {
		t.Errorf("mo heard %+v", got)
	}
	if got := realmtest.HeardOf[*MessageArrived](s.Scene, s.bot); len(got) != 0 {
		t.Error("bots are not told by message")
	}
	// Without the actor among the principals he is not in the channel he creates.
	do(s, s.ann, Subscribe{Channels: joining("for bo"), Principals: people(s.bo)})
	if c := s.Realm.FindChannelByName("for bo"); s.Realm.Subscribed(s.ann, c.ID) || !s.Realm.Subscribed(s.bo, c.ID) || c.Creator != s.ann {
		t.Error("the wrong people are in the new channel")
	}
	do(s, s.owner, ChangeOrganization{Groups: []GroupChange{{Name: "can_add_subscribers_group", New: s.group("role:moderators")}}})
	refused(s, s.cy, Subscribe{Channels: joining("public"), Principals: people(s.bot)}, "Insufficient permission")
	do(s, s.ann, Subscribe{Channels: joining("public"), Principals: people(s.bot)}) // she administers it
	do(s, s.mod, Subscribe{Channels: joining("public"), Principals: people(s.cy)})
	refused(s, s.owner, Subscribe{Channels: joining("protected"), Principals: people(s.cy), Fatal: true}, "Unable to access channel (protected).")
}

func TestCreateChannelRights(t *testing.T) {
	s := newStage(t)
	create := func(n NewChannel) Subscribe { return Subscribe{Channels: joining("x"), New: n} }
	refused(s, s.ann, create(NewChannel{Default: true}), "You do not have permission to change default channels.")
	refused(s, s.admin, create(NewChannel{Default: true, Private: true}), "A default channel cannot be private.")
	refused(s, s.admin, create(NewChannel{Retention: ptr(int64(3))}), "Must be an organization owner")
	refused(s, s.ann, create(NewChannel{WebPublic: true}), "Web-public channels are not enabled.")
	refused(s, s.ann, create(NewChannel{History: ptr(false)}), "Invalid parameters")
	refused(s, s.ann, create(NewChannel{Folder: 3}), "Invalid channel folder ID")
	refused(s, s.ann, create(NewChannel{Groups: []GroupChange{{Name: "can_delete_own_message_group", New: s.group("role:everyone")}}}), "Insufficient permission")
	refused(s, s.ann, create(NewChannel{Private: true, Groups: []GroupChange{{Name: "can_create_topic_group", New: s.group("role:members")}}}), "Everyone must be allowed to create topics in a private channel with protected history.")
	do(s, s.owner, ChangeOrganization{Groups: []GroupChange{{Name: "can_create_public_channel_group", New: s.group("role:moderators")}, {Name: "can_create_private_channel_group", New: s.group("role:administrators")}}})
	refused(s, s.ann, create(NewChannel{}), "Insufficient permission")
	refused(s, s.mod, create(NewChannel{Private: true}), "Insufficient permission")
	do(s, s.mod, create(NewChannel{Groups: []GroupChange{{Name: "can_send_message_group", New: s.group("role:moderators")}}}))
	if c := s.Realm.FindChannelByName("x"); s.Realm.ChannelSetting(c, "can_send_message_group").Group != s.group("role:moderators").Group {
		t.Error("the new channel has another posting group than it was created with")
	}
	refused(s, s.guest, CreateChannel{New: NewChannel{Name: "y"}, Subscribers: people(s.guest)}, "Not allowed for guest users")
	refused(s, s.mod, CreateChannel{New: NewChannel{Name: "X"}, Subscribers: people(s.mod)}, "Channel 'X' already exists")
	id := do(s, s.mod, CreateChannel{New: NewChannel{Name: "y", Description: "about"}, Subscribers: people(s.bo)}).ID
	if !s.Realm.Subscribed(s.bo, id) || s.Realm.FindChannel(id).DescriptionHTML != "<p>about</p>" {
		t.Error("the new channel is not what was asked for")
	}
}

func TestUnsubscribe(t *testing.T) {
	s := newStage(t)
	before := s.post(s.ann, s.public, "t", "one")
	s.leave(s.bo, s.public)
	s.Hears(s.bo, "subscription")
	s.Hears(s.cy, "subscription")
	s.Hears(s.guest, "subscription")
	after := s.post(s.ann, s.public, "t", "two")
	s.HearsNothing(s.bo)
	if f := s.View(s.bo).FlagsOf(after); f&FlagHistorical == 0 {
		t.Error("who left received a message sent later")
	}
	s.comeRound()
	s.Hears(s.bo, "update_message_flags")
	if e := realmtest.HeardOf[*ReadBehind](s.Scene, s.bo)[0]; !slices.Equal(IDs[MessageID](e.Messages), []MessageID{before}) {
		t.Errorf("read behind: %v", IDs[MessageID](e.Messages))
	}
	s.leave(s.guest, s.public) // a guest loses sight of the channel
	s.Hears(s.guest, "subscription", "stream")
	refused(s, s.guest, Unsubscribe{Names: []string{"public"}}, "Channel(s) (public) do not exist")
	s.leave(s.bo, s.private)
	s.Hears(s.bo, "subscription", "stream")
	s.HearsNothing(s.cy, s.mod)
	refused(s, s.bo, Unsubscribe{Names: []string{"private", "nowhere"}}, "Channel(s) (private, nowhere) do not exist")
	if a := do(s, s.cy, Unsubscribe{Names: []string{"public"}}); !slices.Equal(a.NotRemoved, []string{"public"}) || len(a.Removed) != 0 {
		t.Errorf("leaving where one is not answers %+v", a)
	}

	refused(s, s.cy, Unsubscribe{Names: []string{"public"}, Principals: people(s.ann)}, "Insufficient permission")
	do(s, s.ann, Subscribe{Channels: joining("public"), Principals: people(s.bot, s.bo)})
	do(s, s.ann, Unsubscribe{Names: []string{"public"}, Principals: people(s.bot)}) // her own bot
	do(s, s.admin, Unsubscribe{Names: []string{"public"}, Principals: people(s.bo)})
	do(s, s.admin, Unsubscribe{Names: []string{"protected"}, Principals: people(s.bo)}) // without reading it
	s.Hears(s.bo, "subscription", "stream")
	do(s, s.ann, EditChannel{Channel: s.public, Groups: []GroupChange{{Name: "can_remove_subscribers_group", New: GroupValue{Members: []UserID{s.cy}}}}})
	do(s, s.cy, Unsubscribe{Names: []string{"public"}, Principals: people(s.ann)})
	s.Hears(s.ann, "subscription")
}

// Clients count what is in a channel as read when they leave it, and so does the server for who is back at once.
func TestWhoComesBackAtOnceHasReadWhatWasThere(t *testing.T) {
	s := newStage(t)
	before := s.post(s.ann, s.public, "t", "one")
	s.leave(s.bo, s.public)
	s.post(s.ann, s.public, "t", "missed")
	s.join(s.bo, s.public)
	after := s.post(s.ann, s.public, "t", "two")
	s.comeRound()
	if e := realmtest.HeardOf[*ReadBehind](s.Scene, s.bo)[0]; !slices.Equal(IDs[MessageID](e.Messages), []MessageID{before}) {
		t.Errorf("read behind: %v", IDs[MessageID](e.Messages))
	}
	if v := s.View(s.bo); v.FlagsOf(before)&FlagRead == 0 || v.FlagsOf(after)&FlagRead != 0 {
		t.Errorf("flags of the message before: %v, of the one after: %v", v.FlagsOf(before), v.FlagsOf(after))
	}
}

func TestWhoJoinsAgainKeepsWhatHeHad(t *testing.T) {
	s := newStage(t)
	do(s, s.bo, SetProperties{Changes: []PropertyChange{{Channel: s.public, Property: "color", Text: ptr("#123456")}}})
	old := s.post(s.ann, s.public, "t", "received")
	s.leave(s.bo, s.public)
	missed := s.post(s.ann, s.public, "t", "missed")
	s.join(s.bo, s.public)
	if c := s.Realm.SubscriptionOf(s.bo, s.public).Color; c != "#123456" {
		t.Errorf("the colour is %s now", c)
	}
	v := s.View(s.bo)
	if v.FlagsOf(old)&FlagHistorical != 0 || v.FlagsOf(missed)&FlagHistorical == 0 {
		t.Error("joining again took rows away or gave new ones")
	}
}

func TestColorsOfSubscriptions(t *testing.T) {
	s := newStage(t)
	var names []string
	for i := range len(Palette) + 1 {
		names = append(names, "c"+string(rune('a'+i)))
	}
	do(s, s.cy, Subscribe{Channels: joining(names...)})
	for i, n := range names[:len(Palette)] {
		if got := s.Realm.SubscriptionOf(s.cy, s.Realm.FindChannelByName(n).ID).Color; got != Palette[i] {
			t.Errorf("channel %d is %s, want %s", i, got, Palette[i])
		}
	}
	last := s.Realm.FindChannelByName(names[len(Palette)]).ID
	if got, want := s.Realm.SubscriptionOf(s.cy, last).Color, Palette[last.Recipient()%int64(len(Palette))]; got != want {
		t.Errorf("with all colours in use, channel %d is %s, want %s", last, got, want)
	}
	do(s, s.mod, Subscribe{Channels: []Joining{{Name: "ca", Color: "#abcdef"}}})
	if got := s.Realm.SubscriptionOf(s.mod, s.Realm.FindChannelByName("ca").ID).Color; got != "#abcdef" {
		t.Errorf("asked for #abcdef, got %s", got)
	}
}

func TestResubscribe(t *testing.T) {
	s := newStage(t)
	refused(s, s.bo, Resubscribe{}, `Nothing to do. Specify at least one of "add" or "delete".`)
	a := do(s, s.bo, Resubscribe{Add: joining("fresh"), Delete: []string{"public"}})
	if !slices.Equal(a.Removed, []string{"public"}) || !slices.Equal(a.Subscribed[s.bo], []string{"fresh"}) {
		t.Errorf("answered %+v", a)
	}
	do(s, s.bo, Resubscribe{Add: joining("private"), Delete: []string{"private"}}) // nothing to add, then gone
	if s.Realm.Subscribed(s.bo, s.private) {
		t.Error("still in the channel he left")
	}
	refused(s, s.bo, Resubscribe{Add: joining("another"), Delete: []string{"nowhere"}}, "Channel(s) (nowhere) do not exist")
	refused(s, s.bo, Resubscribe{Add: joining("private"), Delete: []string{"fresh"}}, "Unable to access channel (private).")
}

func TestSubscriptionProperties(t *testing.T) {
	s := newStage(t)
	set := func(c ChannelID, property string, b *bool, text *string) SetProperties {
		return SetProperties{Changes: []PropertyChange{{c, property, b, text}}}
	}
	do(s, s.bo, set(s.public, "in_home_view", ptr(false), nil))
	s.onlyHear("subscription", s.bo)
	if !s.Realm.SubscriptionOf(s.bo, s.public).Muted {
		t.Error("in_home_view false is not muted")
	}
	for _, p := range []string{"is_muted", "pin_to_top", "desktop_notifications", "audible_notifications", "push_notifications", "email_notifications", "wildcard_mentions_notify"} {
		do(s, s.bo, set(s.public, p, ptr(true), nil))
		s.onlyHear("subscription", s.bo)
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
	refused(s, s.bo, SetProperties{Changes: []PropertyChange{{s.public, "pin_to_top", ptr(false), nil}, {s.public, "x", nil, nil}}}, "Unknown subscription property: x")
}

// What one request sets is told in order, in few events.
func TestManySubscriptionPropertiesAtOnce(t *testing.T) {
	s := newStage(t)
	var c SetProperties
	var want []SubscriptionSet
	for i := range 50 {
		ch, color := []ChannelID{s.public, s.private, s.protected}[i%3], "#12345"+string(rune('0'+i%10))
		c.Changes = append(c.Changes, PropertyChange{ch, "color", nil, &color}, PropertyChange{ch, "is_muted", ptr(i%2 == 0), nil}, PropertyChange{ch, "push_notifications", ptr(i%2 == 1), nil})
		want = append(want, SubscriptionSet{User: s.bo, Channel: ch, Property: "color", Color: color}, SubscriptionSet{User: s.bo, Channel: ch, Property: "is_muted", Value: i%2 == 0}, SubscriptionSet{User: s.bo, Channel: ch, Property: "push_notifications", Value: i%2 == 1})
	}
	refused(s, s.bo, SetProperties{Changes: append(slices.Clone(c.Changes), PropertyChange{s.public, "color", nil, ptr("red")})}, "color is not a valid hex color code")
	do(s, s.bo, c)
	s.onlyHear("subscription subscription subscription", s.bo)
	var got []SubscriptionSet
	for _, e := range realmtest.HeardOf[*SubscriptionsSet](s.Scene, s.bo) {
		got = append(got, e.Each...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("bo heard %v, want %v", got, want)
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

// A colour that the user took back is the next one to be given.
func TestColorsAreFreeAgain(t *testing.T) {
	s := newStage(t)
	do(s, s.cy, Subscribe{Channels: joining("ca", "cb", "cc")})
	at := func(name string) *Subscription {
		return s.Realm.SubscriptionOf(s.cy, s.Realm.FindChannelByName(name).ID)
	}
	for _, color := range []string{"#123456", Palette[2]} { // the second time one that another channel has, too
		do(s, s.cy, SetProperties{Changes: []PropertyChange{{at("ca").Channel, "color", nil, &color}, {at("cb").Channel, "color", nil, &color}}})
	}
	do(s, s.cy, Subscribe{Channels: joining("cd", "ce", "cf")})
	for i, name := range []string{"cd", "ce", "cf"} {
		if got, want := at(name).Color, Palette[[]int{0, 1, 3}[i]]; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestTopicsOfAChannel(t *testing.T) {
	s := newStage(t)
	s.post(s.ann, s.protected, "Old", "x")
	s.join(s.cy, s.protected)
	last := s.post(s.ann, s.protected, "old", "x")
	s.post(s.ann, s.protected, "new", "x")
	names := func(u UserID, c ChannelID) (out []string) {
		for _, x := range s.View(u).Topics(s.Realm.FindChannel(c)) {
			out = append(out, x.Name)
		}
		slices.Sort(out)
		return out
	}
	if got := names(s.bo, s.protected); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("bo sees %v", got)
	}
	realmtest.Do(s.Scene, s.ann, Unsubscribe{Names: []string{"protected"}, Principals: people(s.cy)})
	s.post(s.ann, s.protected, "later", "x")
	s.join(s.cy, s.protected)
	if got := names(s.cy, s.protected); !slices.Equal(got, []string{"new", "old"}) {
		t.Errorf("cy sees %v: only what he received", got)
	}
	if x := s.View(s.cy).Topics(s.Realm.FindChannel(s.protected)); !slices.Contains(x, TopicInfo{Name: "old", Last: last}) {
		t.Errorf("topics %v, of which the last message of old is not %d", x, last)
	}
}

func TestMailAddressOfAChannel(t *testing.T) {
	s := newStage(t)
	a := do(s, s.ann, MailToken{Channel: s.public})
	if b := do(s, s.ann, MailToken{Channel: s.public, Sender: EmailGateway}); a != b || len(a.Token) != 32 {
		t.Errorf("asked twice: %+v, %+v", a, b)
	}
	if b := do(s, s.ann, MailToken{Channel: s.public, Sender: s.bot}); a == b {
		t.Error("another sender, the same token")
	}
	if b := do(s, s.bo, MailToken{Channel: s.public}); a == b {
		t.Error("another user, the same token")
	}
	if got := a.Address("%s@mail.example.com"); got != "public."+a.Token+".show-sender@mail.example.com" {
		t.Errorf("the address is %s", got)
	}
	if got := (ChannelMail{Slug: "", Token: "t"}).Address("%s@x"); got != "t.show-sender@x" || a.Address("") != "" {
		t.Errorf("without a slug the address is %s", got)
	}
	refused(s, s.cy, MailToken{Channel: s.private}, "Invalid channel ID")
	refused(s, s.admin, MailToken{Channel: s.private}, "Invalid channel ID") // sees it, may not post
	refused(s, s.ann, MailToken{Channel: s.public, Sender: s.bo}, "Invalid user ID: "+s.bo.String())
	if x := s.Realm.FindMailAddress(strings.ToUpper(a.Token)); x == nil || *x != (MailAddress{s.public, s.ann, EmailGateway}) {
		t.Errorf("the token stands for %+v", x)
	}
	do(s, s.ann, ArchiveChannel{s.public})
	if s.Realm.FindMailAddress(a.Token) != nil {
		t.Error("mail still reaches an archived channel")
	}
}

func TestNewAccountsReadWhatWasSaidLately(t *testing.T) {
	s := newStage(t)
	do(s, s.admin, SetDefaultChannel{s.public, true})
	var ids []MessageID
	for range 25 {
		ids = append(ids, s.post(s.ann, s.public, "t", "x"))
	}
	s.post(s.ann, s.private, "t", "not for newcomers")
	u := s.Join("Newcomer")
	v := s.View(u)
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
		t.Errorf("a message after he came has flags %b", v.FlagsOf(id))
	}
}

// What one request does to several channels is told together.
func TestManyChannelsAtOnce(t *testing.T) {
	s := newStage(t)
	var names []string
	for i := range 100 {
		names = append(names, "c"+strings.Repeat("x", i%50)+string(rune('a'+i/50)))
	}
	do(s, s.ann, Subscribe{Channels: joining(names...)})
	do(s, s.ann, Subscribe{Channels: joining(names...), Principals: people(s.cy, s.mod)})
	for _, u := range []UserID{s.cy, s.mod} {
		n := 0
		for _, e := range realmtest.HeardOf[*SubscriptionsAdded](s.Scene, u) {
			n += len(e.For(u))
		}
		if n != 100 || len(s.Heard(u)) > 3 {
			t.Errorf("user %d heard of %d subscriptions in %d events", u, n, len(s.Heard(u)))
		}
	}
	peers := realmtest.HeardOf[*PeersChanged](s.Scene, s.bo)
	if len(peers) > 3 || !slices.Equal(peers[0].Users, []UserID{s.mod, s.cy}) || len(s.Heard(s.bo)) != len(peers) {
		t.Errorf("bo heard %d events", len(s.Heard(s.bo)))
	}
	s.HearsNothing(s.guest)
	do(s, s.cy, Unsubscribe{Names: names})
	gone := 0
	for _, e := range realmtest.HeardOf[*SubscriptionsRemoved](s.Scene, s.cy) {
		gone += len(e.Each)
	}
	if gone != 100 || len(s.Heard(s.bo)) != 1 {
		t.Errorf("cy heard of %d, bo %d events", gone, len(s.Heard(s.bo)))
	}
	for s.Realm.Due(s.Now) != nil {
		s.comeRound()
	}

	// A guest put into several channels sees them come and go at once.
	do(s, s.ann, Subscribe{Channels: joining(names[:3]...), Principals: people(s.guest)})
	s.Hears(s.guest, "stream", "subscription")
	do(s, s.guest, Unsubscribe{Names: names[:3]})
	s.Hears(s.guest, "subscription", "stream")
}

// Others hear of several channels in one event of those that all members know, and in another of the further ones.
func TestPeersOfSeveralChannels(t *testing.T) {
	s := newStage(t)
	do(s, s.ann, Subscribe{Channels: joining("new")})
	at := func(name string) ChannelID { return s.Realm.FindChannelByName(name).ID }
	open, shut := []ChannelID{s.public, at("new")}, []ChannelID{at("private")}
	told := func(u UserID, joined bool, want ...[]ChannelID) {
		t.Helper()
		var got [][]ChannelID
		for _, e := range realmtest.HeardOf[*PeersChanged](s.Scene, u) {
			if e.Joined != joined || !slices.Equal(e.Users, []UserID{s.cy}) {
				t.Errorf("user %d heard %+v", u, e)
			}
			got = append(got, e.Channels)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("user %d heard of %v, want %v", u, got, want)
		}
	}
	do(s, s.ann, Subscribe{Channels: joining("private", "new", "public"), Principals: people(s.cy)})
	told(s.ann, true, open, shut) // is in all of them
	told(s.bo, true, open, shut)
	told(s.mod, true, open)
	told(s.guest, true, []ChannelID{s.public}) // the only one he is in
	told(s.cy, true)                           // hears of himself otherwise
	do(s, s.cy, Unsubscribe{Names: []string{"public", "private", "new"}})
	told(s.ann, false, open, shut)
	told(s.mod, false, open)
	told(s.guest, false, []ChannelID{s.public})
	told(s.cy, false)
}

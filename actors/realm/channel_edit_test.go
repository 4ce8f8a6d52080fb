package realm_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

func ptr[T any](v T) *T { return &v }

// allUsers returns all users of the scene, to check which of them receive no event.
func (s *testScene) allUsers() []UserID {
	return []UserID{s.owner, s.admin, s.mod, s.ann, s.bo, s.cy, s.guest, s.bot}
}

// onlyReceive requires that exactly these users receive an event, and each of them only one of that type.
func (s *testScene) onlyReceive(event string, users ...UserID) {
	s.T.Helper()
	for _, u := range s.allUsers() {
		if slices.Contains(users, u) {
			s.ExpectEvents(u, event)
		} else {
			s.ExpectNoEvents(u)
		}
	}
}

func (s *testScene) group(name string) GroupValue {
	return GroupValue{Group: s.Realm.SystemGroup(name)}
}

func TestRenameChannel(t *testing.T) {
	s := newTestScene(t)
	rename := func(c ChannelID, to string) EditChannel { return EditChannel{Channel: c, Name: &to} }
	do(s, s.ann, rename(s.public, "  Tea  "))
	s.onlyReceive("stream", s.owner, s.admin, s.mod, s.ann, s.bo, s.cy, s.guest, s.bot)
	if e := realmtest.ListEventsOf[*ChannelChanged](s.Scene, s.cy)[0]; e.Old != "public" || e.Text != "Tea" ||
		e.Property != "name" {
		t.Fatalf("received %+v", e)
	}
	do(s, s.ann, rename(s.public, "TEA"))
	refused(s, s.ann, rename(s.public, "TEA"), "Channel already has that name.")
	refused(s, s.ann, rename(s.public, "PRIVATE"), "Channel name is already in use.")
	refused(s, s.ann, rename(s.public, " "), "Channel name can't be empty.")
	refused(s, s.ann, rename(s.public, strings.Repeat("ü", 61)), "Channel name too long (limit: 60 characters).")
	for name, position := range map[string]int{
		"a\x07": 2, "é\na": 2, "ab\u0085c": 3, "a\ufdd0": 2, "\uffff": 1, "😀\U0001fffe": 2,
	} {
		refused(s, s.ann, rename(s.public, name),
			fmt.Sprintf("Invalid character in channel name, at position %d.", position))
	}
	refused(s, s.bo, rename(s.public, "x"), "You do not have permission to administer this channel.")
	refused(s, s.guest, rename(s.public, "x"), "You do not have permission to administer this channel.")
	refused(s, s.cy, rename(s.private, "x"), "Invalid channel ID")
	refused(s, s.ann, rename(99, "x"), "Invalid channel ID")
	do(s, s.admin, rename(s.private, "secret")) // an administrator may do this without content access
	s.onlyReceive("stream", s.owner, s.admin, s.ann, s.bo)
	if s.Realm.FindChannelByName("private") != nil || s.Realm.FindChannelByName("SECRET") == nil {
		t.Error("the old name still finds the channel, or the new name does not")
	}
}

func TestDescribeChannel(t *testing.T) {
	s := newTestScene(t)
	do(s, s.ann, EditChannel{Channel: s.public, Description: ptr("two\nlines")})
	if c := s.Realm.FindChannel(s.public); c.Description != "two lines" || c.DescriptionHTML != "<p>two lines</p>" {
		t.Errorf("described as %q, %q", c.Description, c.DescriptionHTML)
	}
	do(s, s.ann, EditChannel{Channel: s.public, Description: ptr("two lines")})
	s.ExpectNoEvents(s.allUsers()...)
	refused(s, s.ann, EditChannel{Channel: s.public, Description: ptr(strings.Repeat("x", 1025))},
		"description is too long (limit: 1024 characters)")
}

func TestChannelPrivacy(t *testing.T) {
	s := newTestScene(t)
	// From public to private: users that cannot see the channel any more get its deletion.
	do(s, s.ann, EditChannel{Channel: s.public, Private: ptr(true)})
	c := s.Realm.FindChannel(s.public)
	if !c.Private || c.History {
		t.Fatal("a channel made private must have protected history by default")
	}
	for _, u := range []UserID{s.mod, s.cy, s.bot} {
		if got := realmtest.ListEventsOf[*ChannelVanished](s.Scene, u); len(got) != 1 {
			t.Errorf("user %d received %v, want stream/delete", u, s.ListEvents(u))
		}
	}
	for _, u := range []UserID{s.owner, s.admin, s.ann, s.bo, s.guest} {
		if got := realmtest.ListEventsOf[*ChannelPrivacySet](s.Scene, u); len(got) != 1 || !got[0].Private {
			t.Errorf("user %d received %v, want stream/update", u, s.ListEvents(u))
		}
	}
	refused(s, s.admin, EditChannel{Channel: s.public, Private: ptr(false)}, "Channel content access is required.")
	refused(s, s.ann, EditChannel{Channel: s.public, Private: ptr(false), History: ptr(false)}, "Invalid parameters")
	refused(s, s.ann, EditChannel{Channel: s.public, WebPublic: ptr(true)}, "Invalid parameters")
	refused(s, s.ann, EditChannel{Channel: s.public, Private: ptr(false), WebPublic: ptr(true)},
		"Insufficient permission")

	// From private to public: the other users get the channel and its subscribers.
	do(s, s.ann, EditChannel{Channel: s.public, Private: ptr(false)})
	s.ExpectEvents(s.cy, "stream", "subscription")
	if got := realmtest.ListEventsOf[*PeersChanged](s.Scene, s.cy); !got[0].Joined ||
		!slices.Equal(got[0].Users, []UserID{s.ann, s.bo, s.guest}) {
		t.Errorf("Cy received %+v", got[0])
	}
	s.ExpectEvents(s.bo, "stream")

	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "enable_spectator_access", Value: true}}})
	refused(s, s.ann, EditChannel{Channel: s.public, WebPublic: ptr(true)}, "Insufficient permission")
	other := s.Join("Gil", Guest)
	do(s, s.owner, EditChannel{Channel: s.public, WebPublic: ptr(true)})
	if got := realmtest.ListEventsOf[*ChannelAppeared](s.Scene, other); len(got) != 1 {
		t.Errorf("a guest received %v when a channel became web-public, want the channel", s.ListEvents(other))
	}
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{
		{Name: "moderation_request_channel_id", Value: int64(s.private)}}})
	refused(s, s.ann, EditChannel{Channel: s.private, Private: ptr(false)},
		"Moderation request channel must be private.")
}

func TestChannelGroupSettings(t *testing.T) {
	s := newTestScene(t)
	set := func(c ChannelID, name string, v GroupValue, old ...GroupValue) EditChannel {
		g := GroupChange{Name: name, New: v}
		if len(old) > 0 {
			g.Old = &old[0]
		}
		return EditChannel{Channel: c, Groups: []GroupChange{g}}
	}
	one := GroupValue{Members: []UserID{s.bo}}
	do(s, s.ann, set(s.public, "can_send_message_group", one, s.group("role:everyone")))
	refused(s, s.cy, channelMessage(s.public, "t", "hi"), "You do not have permission to post in this channel.")
	refused(s, s.ann, set(s.public, "can_send_message_group", one, s.group("role:everyone")), "EXPECTATION_MISMATCH")
	refused(s, s.ann, set(s.public, "can_send_message_group", s.group("role:internet")),
		"'can_send_message_group' setting cannot be set to 'role:internet' group.")
	refused(s, s.ann, set(s.public, "can_administer_channel_group", s.group("role:everyone")),
		"'can_administer_channel_group' setting cannot be set to 'role:everyone' group.")
	refused(s, s.ann, set(s.public, "can_send_message_group", GroupValue{Group: 999}), "Invalid user group")
	refused(s, s.ann, set(s.public, "can_send_message_group", GroupValue{Members: []UserID{999}}),
		"Invalid user ID: 999")
	refused(s, s.ann, set(s.public, "can_delete_any_message_group", one), "Insufficient permission")
	refused(s, s.admin, set(s.private, "can_subscribe_group", one), "Channel content access is required.")
	refused(s, s.admin, set(s.private, "can_add_subscribers_group", one), "Channel content access is required.")
	refused(s, s.ann, set(s.protected, "can_create_topic_group", one),
		"Everyone must be allowed to create topics in a private channel with protected history.")
	refused(s, s.guest, set(s.public, "can_send_message_group", one),
		"You do not have permission to administer this channel.")

	// A single subgroup becomes that group, and an empty value becomes role:nobody.
	do(s, s.ann, set(s.public, "can_send_message_group",
		GroupValue{Subgroups: []GroupID{s.Realm.SystemGroup("role:members")}}))
	v := s.Realm.ChannelSetting(s.Realm.FindChannel(s.public), "can_send_message_group")
	if !reflect.DeepEqual(v, s.group("role:members")) {
		t.Errorf("stored as %+v", v)
	}
	do(s, s.ann, set(s.public, "can_resolve_topics_group", GroupValue{}))
	s.ExpectNoEvents(s.allUsers()...)

	// The permission to subscribe shows a private channel, and its removal hides the channel.
	do(s, s.ann, set(s.private, "can_subscribe_group", GroupValue{Members: []UserID{s.cy}}))
	s.ExpectEvents(s.cy, "stream", "subscription")
	s.ExpectEvents(s.bo, "stream")
	s.ExpectNoEvents(s.mod, s.guest, s.bot)
	do(s, s.ann, set(s.private, "can_subscribe_group", GroupValue{}))
	if got := realmtest.ListEventsOf[*ChannelVanished](s.Scene, s.cy); len(got) != 1 {
		t.Errorf("Cy received %v", s.ListEvents(s.cy))
	}
	// A guest never has a permission that cannot be given to everyone, even if the value names the guest.
	do(s, s.ann, set(s.private, "can_administer_channel_group", GroupValue{Members: []UserID{s.ann, s.guest}}))
	s.ExpectNoEvents(s.guest)
	refused(s, s.guest, EditChannel{Channel: s.private, Name: ptr("x")}, "Invalid channel ID")

	// Deactivated users are not shown. A client that does not know them still sends a matching old value.
	do(s, s.ann, set(s.public, "can_send_message_group", GroupValue{Members: []UserID{s.bo, s.cy}}))
	realmtest.RunTurn(s.Scene, realmtest.System, asCommand(
		func(t *Turn) { t.Record(&UserChanged{ID: s.cy, Active: ptr(false)}) }))
	info := s.Realm.ChannelInfo(s.Realm.FindChannel(s.public))
	if v := info.Groups["can_send_message_group"]; !slices.Equal(v.Members, []UserID{s.bo}) {
		t.Errorf("shown as %+v", v)
	}
	do(s, s.ann, set(s.public, "can_send_message_group", s.group("role:everyone"), one))
}

func TestOtherChannelProperties(t *testing.T) {
	s := newTestScene(t)
	refused(s, s.admin, EditChannel{Channel: s.public, SetRetention: true, Retention: ptr(int64(30))},
		"Must be an organization owner")
	do(s, s.owner, EditChannel{Channel: s.public, SetRetention: true, Retention: ptr(int64(30))})
	s.ExpectEvents(s.cy, "stream")
	do(s, s.owner, EditChannel{Channel: s.public, SetRetention: true})
	if e := realmtest.ListEventsOf[*ChannelChanged](s.Scene, s.cy)[0]; e.Number != nil {
		t.Errorf("received %+v", e)
	}
	refused(s, s.ann, EditChannel{Channel: s.public, Default: ptr(true)},
		"You do not have permission to change default channels.")
	do(s, s.admin, EditChannel{Channel: s.public, Default: ptr(true)})
	s.ExpectEvents(s.cy, "default_streams")
	s.ExpectNoEvents(s.guest)
	refused(s, s.ann, EditChannel{Channel: s.public, Private: ptr(true)}, "A default channel cannot be private.")
	refused(s, s.admin, EditChannel{Channel: s.private, Default: ptr(true)}, "A default channel cannot be private.")

	refused(s, s.ann, EditChannel{Channel: s.public, SetFolder: true, Folder: 7}, "Invalid channel folder ID")
	folder := do(s, s.admin, CreateFolder{Name: "Fun"})
	do(s, s.ann, EditChannel{Channel: s.public, SetFolder: true, Folder: folder})
	refused(s, s.admin, EditFolder{Folder: folder, Archived: ptr(true)},
		"You need to remove all the channels from this folder to archive it.")

	do(s, s.ann, EditChannel{Channel: s.public, TopicsPolicy: "empty_topic_only"})
	refused(s, s.ann, channelMessage(s.public, "t", "hi"), "Only the general chat topic is allowed in this channel.")
	do(s, s.ann, EditChannel{Channel: s.public, TopicsPolicy: "inherit"})
	do(s, s.ann, channelMessage(s.public, "t", "hi"))
	refused(s, s.ann, EditChannel{Channel: s.public, TopicsPolicy: "empty_topic_only"},
		"To enable this configuration, all messages in this channel must be in the general chat topic.")
	do(s, s.owner, ChangeOrganization{Groups: []GroupChange{
		{Name: "can_set_topics_policy_group", New: s.group("role:moderators")}}})
	refused(s, s.ann, EditChannel{Channel: s.public, TopicsPolicy: "disable_empty_topic"}, "Insufficient permission")
	do(s, s.admin, EditChannel{Channel: s.public, TopicsPolicy: "disable_empty_topic"})
}

func TestArchiveChannel(t *testing.T) {
	s := newTestScene(t)
	do(s, s.admin, EditChannel{Channel: s.public, Default: ptr(true)})
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{
		{Name: "new_stream_announcements_stream_id", Value: int64(s.public)}}})
	id := s.post(s.ann, s.public, "t", "hello")
	refused(s, s.bo, ArchiveChannel{s.public}, "You do not have permission to administer this channel.")
	refused(s, s.cy, ArchiveChannel{s.private}, "Invalid channel ID")
	do(s, s.ann, ArchiveChannel{s.public})
	s.ExpectEvents(s.cy, "default_streams", "stream", "realm")
	s.ExpectEvents(s.guest, "stream", "realm", "update_message_flags")
	if n := s.Realm.OrgInt("new_stream_announcements_stream_id"); n != -1 {
		t.Errorf("announcements are still posted to channel %d", n)
	}
	refused(s, s.ann, ArchiveChannel{s.public}, "Channel is already deactivated")
	refused(s, s.ann, channelMessage(s.public, "t", "hi"), "Not authorized to send to channel 'public'")
	again := Subscribe{Channels: []ChannelToJoin{{Name: "public"}}, AllOrNothing: true}
	if a := do(s, s.ann, again); !slices.Equal(a.Already[s.ann], []string{"public"}) || len(a.Subscribed) != 0 {
		t.Errorf("subscribing again to an archived channel: %+v", a)
	}
	refused(s, s.cy, again, "Unable to access channel (public).")
	again.Principals = principals(s.cy)
	refused(s, s.ann, again, "Unable to access channel (public).")
	if _, err := s.ViewAs(s.bo).ReadableMessage(id); err != nil {
		t.Errorf("messages of an archived channel must be readable: %v", err)
	}

	if f := s.ViewAs(s.bo).FlagsOf(id); f&FlagRead == 0 {
		t.Error("still unread")
	}
	if s.Realm.Due(s.Now) != nil {
		t.Error("a turn is due although all work is done")
	}

	refused(s, s.bo, EditChannel{Channel: s.public, Unarchive: true},
		"You do not have permission to administer this channel.")
	do(s, s.ann, EditChannel{Channel: s.public, Unarchive: true})
	for _, u := range s.allUsers() {
		want := []string{"stream"}
		if s.Realm.Subscribed(u, s.public) { // for clients that had lost the channel
			want = append(want, "subscription")
		}
		s.ExpectEvents(u, want...)
	}
	refused(s, s.ann, EditChannel{Channel: s.public, Unarchive: true}, "Channel is not currently deactivated")
	do(s, s.ann, ArchiveChannel{s.private})
	s.ExpectNoEvents(s.cy, s.mod, s.guest, s.bot)
	s.leave(s.ann, s.private)
	s.leave(s.bo, s.private)
	refused(s, s.admin, EditChannel{Channel: s.private, Unarchive: true}, "Channel is private and have no subscribers")
}

// runDue runs one turn of the work that is due.
func (s *testScene) runDue() {
	s.T.Helper()
	due := s.Realm.Due(s.Now)
	if due == nil {
		s.T.Fatal("no turn is due")
	}
	if _, err := realmtest.RunTurn(s.Scene, realmtest.System, due); err != nil {
		s.T.Fatal(err)
	}
}

func TestWeeklyTraffic(t *testing.T) {
	s := newTestScene(t)
	traffic := func() int64 { return s.ViewAs(s.ann).ChannelInfo(s.Realm.FindChannel(s.public)).WeeklyTraffic }
	for range 25 {
		s.post(s.ann, s.public, "t", "x")
	}
	if n := traffic(); n != -1 {
		t.Errorf("%d messages per week on the first day, want -1 for unknown", n)
	}
	s.Advance(7 * 86400)
	if n := traffic(); n != 25 {
		t.Errorf("%d messages per week after a week, want 25", n)
	}
	s.Advance(7 * 86400)
	if n := traffic(); n != 13 {
		t.Errorf("%d messages per week after two weeks, want 13", n)
	}
	s.Advance(16 * 86400)
	if n := traffic(); n != 0 {
		t.Errorf("%d messages per week after 28 days without messages, want 0", n)
	}
}

func TestGroupChangesShowAndHideChannels(t *testing.T) {
	s := newTestScene(t)
	g := do(s, s.ann, CreateGroup{Name: "readers", Members: []UserID{s.ann}})
	do(s, s.ann, EditChannel{Channel: s.private, Groups: []GroupChange{
		{Name: "can_subscribe_group", New: GroupValue{Group: g}}}})
	s.ExpectNoEvents(s.cy)
	do(s, s.ann, ChangeMembers{Group: g, Add: []UserID{s.cy, s.guest}})
	if got := realmtest.ListEventsOf[*ChannelAppeared](s.Scene, s.cy); len(got) != 1 ||
		got[0].Channels[0].ID != s.private {
		t.Errorf("Cy received %v", s.ListEvents(s.cy))
	}
	if got := realmtest.ListEventsOf[*ChannelAppeared](s.Scene, s.guest); len(got) != 0 {
		t.Error("a guest got a private channel by a permission that guests cannot have")
	}
	do(s, s.ann, ChangeMembers{Group: g, Remove: []UserID{s.cy, s.ann}})
	if got := realmtest.ListEventsOf[*ChannelVanished](s.Scene, s.cy); len(got) != 1 {
		t.Errorf("Cy received %v", s.ListEvents(s.cy))
	}
	if got := realmtest.ListEventsOf[*ChannelVanished](s.Scene, s.ann); len(got) != 0 {
		t.Error("a subscriber cannot see the channel any more")
	}
}

func TestChannelBecomesQuiet(t *testing.T) {
	s := newTestScene(t)
	s.post(s.ann, s.public, "t", "x")
	active := func() bool { return s.ViewAs(s.ann).ChannelInfo(s.Realm.FindChannel(s.public)).RecentlyActive }
	if !active() || s.Realm.Due(s.Now) != nil {
		t.Fatal("a new channel is not recently active")
	}
	s.Advance(181 * 86400)
	s.runDue()
	s.ExpectEvents(s.bo, "stream", "stream", "stream")
	s.ExpectEvents(s.cy, "stream")
	if active() || s.Realm.Due(s.Now) != nil {
		t.Error("still recently active, or its event is still due")
	}
	s.post(s.ann, s.public, "t", "x")
	s.ExpectEvents(s.cy, "stream")
	if !active() {
		t.Error("after a new message the channel is not recently active")
	}
}

// The audience is combined from sets. It must contain exactly the users that MaySeeChannel allows.
func TestChannelAudience(t *testing.T) {
	s := newTestScene(t)
	g := do(s, s.owner, CreateGroup{Name: "crew", Members: []UserID{s.cy, s.guest}})
	check := func(when string) {
		t.Helper()
		for _, c := range []ChannelID{s.public, s.private, s.protected} {
			for _, name := range []string{"a", "b"} { // twice: the second time with the caches filled
				do(s, s.owner, EditChannel{Channel: c, Description: ptr(when + name)})
				for _, u := range s.allUsers() {
					if received := len(s.ListEvents(u)) > 0; received != s.ViewAs(u).MaySeeChannel(
						s.Realm.FindChannel(c)) {
						t.Errorf("%s: user %d, channel %d: received an event: %v", when, u, c, received)
					}
				}
			}
		}
	}
	check("at first")
	for i, v := range []GroupValue{
		{Group: g},
		{Members: []UserID{s.cy, s.guest}},
		{Members: []UserID{s.mod}, Subgroups: []GroupID{g}},
		s.group("role:moderators"),
		s.group("role:fullmembers"),
		s.group("role:members"),
		{},
	} {
		do(s, s.ann, EditChannel{Channel: s.private, Groups: []GroupChange{{Name: "can_subscribe_group", New: v}}})
		check("value " + string(rune('a'+i)))
	}
	do(s, s.owner, EditUser{User: s.admin, Role: ptr(Member)})
	do(s, s.owner, EditUser{User: s.cy, Role: ptr(Guest)})
	check("after new roles")
	s.leave(s.guest, s.public)
	check("after leaving")
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "enable_spectator_access", Value: true}}})
	do(s, s.owner, EditChannel{Channel: s.public, WebPublic: ptr(true)})
}

// TestArchivedChannelGetsNoNotices holds that changes of an archived channel's properties add no message to it.
func TestArchivedChannelGetsNoNotices(t *testing.T) {
	s := newTestScene(t)
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "send_channel_events_messages", Value: true}}})
	do(s, s.owner, ArchiveChannel{Channel: s.public})
	last := s.Realm.LastMessageID()
	name, description := "closed", "over"
	do(s, s.owner, EditChannel{Channel: s.public, Description: &description})
	do(s, s.owner, EditChannel{Channel: s.public, Name: &name})
	if now := s.Realm.LastMessageID(); now != last {
		t.Errorf("%d messages were posted into an archived channel", now-last)
	}
	do(s, s.owner, EditChannel{Channel: s.public, Unarchive: true})
	if s.Realm.LastMessageID() == last {
		t.Error("no notice tells that the channel was unarchived")
	}
}

package realm_test

import (
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

func TestFolders(t *testing.T) {
	s := newTestScene(t)
	refused(s, s.mod, CreateFolder{Name: "Fun"}, "Must be an organization administrator")
	fun := do(s, s.admin, CreateFolder{Name: " Fun ", Description: "about"})
	s.onlyReceive("channel_folder", s.allUsers()...)
	work := do(s, s.owner, CreateFolder{Name: "Work"})
	refused(s, s.admin, CreateFolder{Name: "FUN"}, "Channel folder 'FUN' already exists")
	refused(s, s.admin, CreateFolder{Name: " "}, "Channel folder name can't be empty.")
	refused(s, s.admin, CreateFolder{Name: "a\x00"}, "Invalid character in channel folder name, at position 2.")
	refused(s, s.admin, CreateFolder{Name: strings.Repeat("x", 61)}, "name is too long (limit: 60 characters)")
	refused(s, s.admin, CreateFolder{Name: "x", Description: strings.Repeat("x", 1025)},
		"description is too long (limit: 1024 characters)")

	refused(s, s.mod, OrderFolders{[]int64{work, fun}}, "Must be an organization administrator")
	refused(s, s.admin, OrderFolders{[]int64{work}}, "Invalid order mapping.")
	refused(s, s.admin, OrderFolders{[]int64{work, work}}, "Invalid order mapping.")
	do(s, s.admin, OrderFolders{[]int64{work, fun}})
	s.onlyReceive("channel_folder", s.allUsers()...)
	if l := s.Realm.Folders(true); l[0].ID != work || l[1].ID != fun || l[1].Name != "Fun" ||
		l[1].DescriptionHTML != "<p>about</p>" {
		t.Errorf("all folders: %+v", l)
	}

	refused(s, s.mod, EditFolder{Folder: fun, Name: ptr("x")}, "Must be an organization administrator")
	refused(s, s.admin, EditFolder{Folder: 99, Name: ptr("x")}, "Invalid channel folder ID")
	refused(s, s.admin, EditFolder{Folder: fun, Name: ptr("work")}, "Channel folder 'work' already exists")
	do(s, s.admin, EditFolder{Folder: fun, Name: ptr("FUN"), Description: ptr("")})
	s.onlyReceive("channel_folder", s.allUsers()...)
	do(s, s.admin, EditFolder{Folder: fun, Name: ptr("FUN")})
	s.ExpectNoEvents(s.allUsers()...)
	do(s, s.admin, EditFolder{Folder: fun, Archived: ptr(true)})
	if l := s.Realm.Folders(false); len(l) != 1 || l[0].ID != work {
		t.Errorf("folders that are not archived: %+v", l)
	}
	refused(s, s.ann, EditChannel{Channel: s.public, SetFolder: true, Folder: fun}, "Invalid channel folder ID")
	do(s, s.admin, EditFolder{Folder: work, Name: ptr("fun")})
	refused(s, s.admin, EditFolder{Folder: fun, Archived: ptr(false)}, "Channel folder 'FUN' already exists")
	do(s, s.admin, EditFolder{Folder: work, Name: ptr("Work")})

	do(s, s.ann, EditChannel{Channel: s.public, SetFolder: true, Folder: work})
	visitor := s.Realm.ViewAs(Caller{}, s.Now)
	if l := visitor.VisibleFolders(true); len(l) != 0 {
		t.Errorf("a logged-out visitor sees %+v", l)
	}
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "enable_spectator_access", Value: true}}})
	do(s, s.owner, EditChannel{Channel: s.public, WebPublic: ptr(true)})
	if l := visitor.VisibleFolders(true); len(l) != 1 || l[0].ID != work {
		t.Errorf("a logged-out visitor sees %+v", l)
	}
}

func TestDefaultChannels(t *testing.T) {
	s := newTestScene(t)
	refused(s, s.ann, SetDefaultChannel{s.public, true}, "Must be an organization administrator")
	refused(s, s.admin, SetDefaultChannel{s.private, true}, "Invalid channel ID") // the admin cannot read it
	s.join(s.admin, s.private)
	refused(s, s.admin, SetDefaultChannel{s.private, true}, "Private channels cannot be made default.")
	refused(s, s.admin, SetDefaultChannel{99, true}, "Invalid channel ID")
	do(s, s.admin, SetDefaultChannel{s.public, true})
	s.onlyReceive("default_streams", s.owner, s.admin, s.mod, s.ann, s.bo, s.cy, s.bot)
	do(s, s.admin, SetDefaultChannel{s.public, true})
	s.ExpectNoEvents(s.allUsers()...)
	if u := s.Join("New"); !s.Realm.Subscribed(u, s.public) {
		t.Error("a new account is not subscribed to the default channel")
	}
	do(s, s.admin, SetDefaultChannel{s.public, false})
	if l := realmtest.ListEventsOf[*DefaultChannelsSet](s.Scene, s.cy)[0].Channels; len(l) != 0 ||
		s.Realm.FindChannel(s.public).Default {
		t.Errorf("the default channels are %v", l)
	}
}

func TestDefaultGroups(t *testing.T) {
	s := newTestScene(t)
	do(s, s.ann, Subscribe{Channels: channelsToJoin("a", "b", "always")})
	do(s, s.admin, SetDefaultChannel{s.Realm.FindChannelByName("always").ID, true})
	create := func(name string, channels ...string) CreateDefaultGroup {
		return CreateDefaultGroup{name, "about", channels}
	}
	refused(s, s.ann, create("pack"), "Must be an organization administrator")
	refused(s, s.admin, create(" "), "Invalid default channel group name ''")
	refused(s, s.admin, create("pack", "nowhere"), "Invalid channel name 'nowhere'")
	refused(s, s.admin, create("pack", "always"), "'always' is a default channel and cannot be added to 'pack'")
	do(s, s.admin, create("pack", "b", "a"))
	s.onlyReceive("default_stream_groups", s.owner, s.admin, s.mod, s.ann, s.bo, s.cy, s.bot)
	refused(s, s.admin, create("PACK"), "Default channel group 'PACK' already exists")
	g := s.Realm.DefaultGroups()[0]
	if len(g.Channels) != 2 || g.Channels[0] != s.Realm.FindChannelByName("a").ID {
		t.Errorf("the group has %+v", g)
	}
	refused(s, s.admin, ChangeDefaultGroupChannels{g.ID, true, []string{"a"}},
		"Channel 'a' is already present in default channel group 'pack'")
	do(s, s.admin, ChangeDefaultGroupChannels{g.ID, false, []string{"a"}})
	refused(s, s.admin, ChangeDefaultGroupChannels{g.ID, false, []string{"a"}},
		"Channel 'a' is not present in default channel group 'pack'")
	refused(s, s.admin, ChangeDefaultGroupChannels{99, false, []string{"a"}},
		"Default channel group with id '99' does not exist.")
	refused(s, s.admin, EditDefaultGroup{ID: g.ID}, `You must pass "new_description" or "new_group_name".`)
	refused(s, s.admin, EditDefaultGroup{ID: g.ID, Name: ptr("pack")},
		"This default channel group is already named 'pack'")
	do(s, s.admin, EditDefaultGroup{ID: g.ID, Name: ptr("Pack"), Description: ptr("")})
	do(s, s.ann, ArchiveChannel{s.Realm.FindChannelByName("b").ID})
	if g := s.Realm.DefaultGroups()[0]; g.Name != "Pack" || len(g.Channels) != 0 {
		t.Errorf("the group has %+v", g)
	}
	do(s, s.admin, RemoveDefaultGroup{g.ID})
	refused(s, s.admin, RemoveDefaultGroup{g.ID}, "Default channel group with id '1' does not exist.")
	if len(s.Realm.DefaultGroups()) != 0 {
		t.Error("the group is still there")
	}
}

func TestNoticesAboutChannels(t *testing.T) {
	s := newTestScene(t)
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "send_channel_events_messages", Value: true}}})
	do(s, s.ann, Subscribe{Channels: channelsToJoin("news")})
	news := s.Realm.FindChannelByName("news").ID
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{
		{Name: "new_stream_announcements_stream_id", Value: int64(news)}}})
	read := func() MessageInfo {
		t.Helper()
		got := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.ann)
		if len(got) != 1 {
			t.Fatalf("Ann received %d messages, want 1", len(got))
		}
		return got[0].Message
	}
	me := "@_**Ann|" + s.ann.String() + "**"
	do(s, s.ann, Subscribe{Channels: []ChannelToJoin{{Name: "quiet", Description: "about"}}})
	if m := read(); m.Topic != "channel events" || m.ChannelName != "quiet" ||
		m.Body.Text != "**Public** channel created by "+me+". Description:\n\n``` quote\nabout\n```" ||
		m.Sender.ID != NotificationBot {
		t.Errorf("received %+v %q", m, m.Body.Text)
	}
	id := s.Realm.FindChannelByName("quiet").ID
	for _, x := range []struct {
		edit EditChannel
		want string
	}{
		{EditChannel{Name: ptr("Quiet!")}, me + " renamed this channel from **quiet** to #**Quiet!**."},
		{EditChannel{Private: ptr(true)}, "* **Before:** Public\n* **Now:** Private, protected history"},
		{EditChannel{Groups: []GroupChange{{Name: "can_send_message_group",
			New: GroupValue{Members: []UserID{s.ann}}}}},
			"the permission to post in this channel:\n\n* **Before:** @_*role:everyone*\n* **Now:** " + me},
		{EditChannel{Description: ptr("")}, "*No description.*"},
	} {
		x.edit.Channel = id
		do(s, s.ann, x.edit)
		if m := read(); m.Topic != "channel events" || m.Channel != id || !strings.Contains(m.Body.Text, x.want) {
			t.Errorf("received %q, want %q", m.Body.Text, x.want)
		}
	}
	for _, permission := range []string{"can_administer_channel_group", "can_add_subscribers_group",
		"can_subscribe_group",
		"can_remove_subscribers_group"} { // no message is about these
		do(s, s.ann, EditChannel{Channel: id, Groups: []GroupChange{{Name: permission,
			New: GroupValue{Members: []UserID{s.ann, s.bo}}}}})
		if got := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.ann); len(got) != 0 {
			t.Errorf("changing %s posted %q", permission, got[0].Message.Body.Text)
		}
	}
	do(s, s.ann, ArchiveChannel{id})
	if e := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.ann)[0]; e.FlagsFor(s.ann)&FlagRead == 0 {
		t.Error("the message about archiving is unread")
	}
	do(s, s.bo, Subscribe{Channels: channelsToJoin("one", "two"), Announce: true})
	if m := read(); m.Channel != news || m.Topic != "new channels" ||
		!strings.HasSuffix(m.Body.Text, "* #**one**\n* #**two**") {
		t.Errorf("received %+v %q", m, m.Body.Text)
	}
	do(s, s.bo, Subscribe{Channels: channelsToJoin("secret"), New: NewChannel{Private: true}, Announce: true})
	s.ExpectNoEvents(s.ann)
	do(s, s.bo, Subscribe{Channels: channelsToJoin("empty"), New: NewChannel{TopicsPolicy: "empty_topic_only"}})
	if m := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.bo)[0].Message; m.Topic != "" {
		t.Errorf("the message about the new channel is in topic %q, want the empty one", m.Topic)
	}
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "send_channel_events_messages", Value: false}}})
	do(s, s.bo, Subscribe{Channels: channelsToJoin("silent")})
	if slices.ContainsFunc(s.ListEvents(s.bo), func(e Event) bool { return e.EventType() == "message" }) {
		t.Error("a message about the channel although the organization has turned them off")
	}
}

package realm_test

import (
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// testScene is a scene with users of every role and channels of every kind.
type testScene struct {
	*realmtest.Scene
	owner, admin, mod, ann, bo, cy, guest, bot UserID
	public, private, protected                 ChannelID
}

// newTestScene subscribes ann and bo to every channel and the guest to the public one. The others, cy among them, have
// no subscriptions.
func newTestScene(t testing.TB) *testScene {
	s := &testScene{Scene: realmtest.New(t)}
	s.owner = s.Join("Olive", Owner)
	// Messages about channels and automatic following have their own tests. Here they would add events.
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "send_channel_events_messages", Value: false}}})
	do(s, s.owner, ChangeUserDefaults{Values: []SettingValue{
		{Name: "automatically_follow_topics_policy", Value: int64(4)},
		{Name: "automatically_unmute_topics_in_muted_streams_policy", Value: int64(4)},
		{Name: "automatically_follow_topics_where_mentioned", Value: false}}})
	s.admin, s.mod = s.Join("Ada", Administrator), s.Join("Mo", Moderator)
	s.ann, s.bo, s.cy, s.guest = s.Join("Ann"), s.Join("Bo"), s.Join("Cy"), s.Join("Gus", Guest)
	s.bot = s.JoinBot("Robo", s.ann)
	yes := true
	s.public = s.channel("public", NewChannel{}, s.ann, s.bo, s.guest)
	s.private = s.channel("private", NewChannel{Private: true, History: &yes}, s.ann, s.bo)
	s.protected = s.channel("protected", NewChannel{Private: true}, s.ann, s.bo)
	return s
}

func (s *testScene) channel(name string, n NewChannel, members ...UserID) ChannelID {
	s.T.Helper()
	var people []Principal
	for _, u := range members {
		people = append(people, Principal{ID: u})
	}
	a := do(s, members[0], Subscribe{Channels: []ChannelToJoin{{Name: name}}, New: n, Principals: people,
		AllOrNothing: true})
	return a.Created[0]
}

func (s *testScene) join(u UserID, c ChannelID) {
	s.T.Helper()
	do(s, s.ann, Subscribe{Channels: []ChannelToJoin{{Name: s.Realm.FindChannel(c).Name}},
		Principals: []Principal{{ID: u}}, AllOrNothing: true})
}

func (s *testScene) leave(u UserID, c ChannelID) {
	s.T.Helper()
	do(s, u, Unsubscribe{Names: []string{s.Realm.FindChannel(c).Name}})
}

// do runs a command that must not be refused. refused runs one that must be.
func do[A any](s *testScene, u UserID, c Command[A]) A {
	s.T.Helper()
	return realmtest.Do(s.Scene, u, c)
}
func refused[A any](s *testScene, u UserID, c Command[A], want string) {
	s.T.Helper()
	realmtest.ExpectRefusal(s.Scene, u, c, want)
}

func channelMessage(c ChannelID, topic, text string) SendMessage {
	return SendMessage{ToChannel: true, Channel: c, Topic: topic, Body: Body{Text: text, HTML: "<p>" + text + "</p>"}}
}

func directMessage(text string, to ...UserID) SendMessage {
	m := SendMessage{Body: Body{Text: text, HTML: "<p>" + text + "</p>"}}
	for _, u := range to {
		m.People = append(m.People, Principal{ID: u})
	}
	return m
}

func (s *testScene) post(u UserID, c ChannelID, topic, text string) MessageID {
	s.T.Helper()
	return do(s, u, channelMessage(c, topic, text)).ID
}

func TestMessageAudience(t *testing.T) {
	s := newTestScene(t)
	s.post(s.ann, s.public, "a", "first")
	s.ExpectEvents(s.guest, "message") // the first message of a channel is no other event
	s.post(s.ann, s.public, "a", "hi")
	s.ExpectEvents(s.ann, "message")
	s.ExpectEvents(s.bo, "message")
	s.ExpectEvents(s.guest, "message")
	s.ExpectNoEvents(s.cy, s.owner, s.bot)
	s.post(s.ann, s.private, "a", "first")
	s.post(s.ann, s.private, "a", "hi")
	s.ExpectEvents(s.bo, "message")
	s.ExpectNoEvents(s.cy, s.guest, s.owner)
	do(s, s.ann, directMessage("psst", s.bo))
	s.ExpectEvents(s.bo, "message")
	s.ExpectNoEvents(s.owner, s.cy)
}

func TestSendRefusals(t *testing.T) {
	s := newTestScene(t)
	// Only the owner may know that the channel exists.
	refused(s, s.owner, channelMessage(s.private, "a", "hi"), "Not authorized to send to channel 'private'")
	byName := SendMessage{ToChannel: true, ChannelName: "private", Topic: "a", Body: Body{Text: "hi"}}
	for _, u := range []UserID{s.cy, s.guest} {
		refused(s, u, channelMessage(s.private, "a", "hi"), "Channel with ID '"+s.private.String()+"' does not exist")
		refused(s, u, byName, "Channel 'private' does not exist")
	}
	refused(s, s.ann, channelMessage(99, "a", "hi"), "STREAM_DOES_NOT_EXIST")
	refused(s, s.ann, channelMessage(s.public, "a\x01", "hi"), "Invalid character in topic, at position 2!")
	refused(s, s.ann, directMessage("hi"), "Message must have recipients")
	refused(s, s.ann, directMessage("hi", 999), "Invalid user ID 999")
	do(s, s.cy, channelMessage(s.public, "a", "not subscribed, still allowed"))
	s.leave(s.guest, s.public)
	refused(s, s.guest, channelMessage(s.public, "a", "hi"), "STREAM_DOES_NOT_EXIST")
	do(s, s.bot, channelMessage(s.private, "a", "its owner is in"))
}

func TestMentions(t *testing.T) {
	s := newTestScene(t)
	m := channelMessage(s.public, "a", "@**Bo** @**Cy** @**Robo**")
	m.Content.Users = []UserID{s.cy, s.bot, s.bo}
	id := do(s, s.ann, m).ID
	flags := func(u UserID) Flags { return s.ViewAs(u).FlagsOf(id) }
	if flags(s.bo) != FlagMentioned {
		t.Errorf("a mentioned subscriber has flags %b", flags(s.bo))
	}
	if flags(s.cy) != FlagRead|FlagHistorical {
		t.Errorf("a mentioned user without a subscription has flags %b", flags(s.cy))
	}
	s.ExpectEvents(s.bot, "message")
	if flags(s.bot) != FlagMentioned {
		t.Errorf("a mentioned bot has flags %b", flags(s.bot))
	}
	all := channelMessage(s.public, "a", "@**all**")
	all.Content.ChannelWildcard = true
	id = do(s, s.ann, all).ID
	if flags(s.guest) != FlagChannelWildcard {
		t.Errorf("a subscriber mentioned by a wildcard has flags %b", flags(s.guest))
	}
	do(s, s.cy, Flag{Messages: []MessageID{id}, Op: "add", Flag: "starred"})
	if flags(s.cy) != FlagRead|FlagStarred|FlagHistorical {
		t.Errorf("a user without a subscription that starred a wildcard mention has flags %b", flags(s.cy))
	}
	s.expectNarrow(s.cy, oneTerm("is", "mentioned"))
	for i := range 15 {
		s.join(s.Join("Extra "+string(rune('a'+i))), s.public)
	}
	refused(s, s.ann, all, "STREAM_WILDCARD_MENTION_NOT_ALLOWED")
	do(s, s.admin, all)
	topic := channelMessage(s.public, "a", "@**topic**")
	topic.Content.TopicWildcard = true
	id = do(s, s.bo, topic).ID
	if flags(s.ann) != FlagTopicWildcard || flags(s.bo) != FlagTopicWildcard || flags(s.guest) != 0 {
		t.Errorf("topic wildcard: flags of participants %b %b, of another subscriber %b", flags(s.ann), flags(s.bo),
			flags(s.guest))
	}
	group := channelMessage(s.public, "a", "@*role:members*")
	group.Content.Groups = []GroupID{s.Realm.SystemGroup("role:members")}
	refused(s, s.ann, group, "You are not allowed to mention user group 'role:members'.")
}

func TestReactions(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	wave := AddReaction{Message: id, Name: "wave", NameCode: "1f44b"}
	do(s, s.bo, wave)
	for _, u := range []UserID{s.ann, s.bo, s.guest} {
		s.ExpectEvents(u, "reaction")
	}
	s.ExpectNoEvents(s.cy)
	refused(s, s.bo, wave, "REACTION_ALREADY_EXISTS")
	do(s, s.cy, AddReaction{Message: id, Name: "waving", NameCode: "1f44b"})
	i, _ := s.ViewAs(s.cy).ReadableMessage(id)
	if i.Reactions[1].Name != "wave" {
		t.Errorf("the second reaction with the same code is called %q", i.Reactions[1].Name)
	}
	if f := s.ViewAs(s.cy).FlagsOf(id); f != FlagRead|FlagHistorical {
		t.Errorf("a user that reacted to a message without having received it has flags %b", f)
	}
	do(s, s.ann, AddReaction{Message: id, Name: "zulip"})
	s.ExpectEvents(s.cy, "reaction") // cy has a row of the message now
	for want, c := range map[string]AddReaction{
		"Emoji 'nosuch' does not exist": {Message: id, Name: "nosuch"},
		"Invalid emoji code.":           {Message: id, Name: "x", Code: "zzz", Type: UnicodeEmoji},
		"Invalid emoji name.": {Message: id, Name: "wave", NameCode: "1f44b", Code: "1f642", KnownCode: true,
			Type: UnicodeEmoji},
		"Invalid custom emoji.": {Message: id, Name: "x", Code: "77", Type: RealmEmoji},
		"Invalid emoji type.":   {Message: id, Name: "x", Code: "77", Type: "sticker"},
		"Invalid message(s)":    {Message: 999, Name: "wave", NameCode: "1f44b"},
	} {
		refused(s, s.ann, c, want)
	}
	refused(s, s.ann, RemoveReaction{Message: id, Name: "wave", NameCode: "1f44b"}, "REACTION_DOES_NOT_EXIST")
	refused(s, s.ann, RemoveReaction{Message: id},
		"At least one of the following arguments must be present: emoji_name, emoji_code")
	do(s, s.bo, RemoveReaction{Message: id, Name: "wave", NameCode: "1f44b"})
	s.ExpectEvents(s.cy, "reaction")
	secret := s.post(s.ann, s.protected, "a", "hi")
	refused(s, s.owner, AddReaction{Message: secret, Name: "zulip"}, "Invalid message(s)")
	s.join(s.cy, s.protected)
	refused(s, s.cy, AddReaction{Message: secret, Name: "zulip"}, "Invalid message(s)")
	do(s, s.bo, AddReaction{Message: secret, Name: "zulip"})
	s.ExpectEvents(s.ann, "reaction")
	s.ExpectNoEvents(s.cy, s.owner)
}

func TestSubmessages(t *testing.T) {
	s := newTestScene(t)
	plain := s.post(s.ann, s.public, "a", "hi")
	refused(s, s.bo, AddSubmessage{plain, "widget", "{}"}, "You cannot attach a submessage to this message.")
	do(s, s.ann, AddSubmessage{plain, "other", "7"})
	m := channelMessage(s.public, "a", "/poll Where?")
	m.Widget, m.WidgetData = "poll", `{"widget_type":"poll","extra_data":{"question":"Where?","options":[]}}`
	id := do(s, s.ann, m).ID
	do(s, s.bo, AddSubmessage{id, "widget", `{"type":"vote","key":"1,0","vote":1}`})
	s.ExpectEvents(s.guest, "submessage")
	for content, want := range map[string]string{
		`{"type":"question","question":"x"}`:            "You can't edit a question unless you are the author.",
		`{"type":"dance"}`:                              "Unknown type for poll data: dance",
		`{"type":"new_option","option":"x","idx":1001}`: `poll data["idx"] is too large`,
		`{`:                           "Invalid json for submessage",
		`{"type":"vote","key":"1,0"}`: `Invalid poll data["vote"]`,
	} {
		refused(s, s.bo, AddSubmessage{id, "widget", content}, want)
	}
	refused(s, s.cy, AddSubmessage{999, "widget", "{}"}, "Invalid message(s)")
}

func TestTyping(t *testing.T) {
	s := newTestScene(t)
	do(s, s.ann, SendTyping{People: []Principal{{ID: s.bo}}})
	s.ExpectEvents(s.bo, "typing")
	s.ExpectEvents(s.ann, "typing")
	s.ExpectNoEvents(s.cy)
	do(s, s.ann, SendTyping{ToChannel: true, Channel: s.private, Topic: "a"})
	s.ExpectEvents(s.bo, "typing")
	s.ExpectNoEvents(s.guest, s.cy)
	refused(s, s.cy, SendTyping{ToChannel: true, Channel: s.private, Topic: "a"}, "Invalid channel ID")
	refused(s, s.ann, SendTyping{People: []Principal{{ID: 999}}}, "Invalid user ID 999")
	id := s.post(s.ann, s.private, "a", "hi")
	do(s, s.ann, SendEditTyping{Message: id})
	s.ExpectEvents(s.bo, "typing_edit_message")
	refused(s, s.bo, SendEditTyping{Message: id}, "You don't have permission to edit this message")
	s.Advance(601)
	refused(s, s.ann, SendEditTyping{Message: id}, "The time limit for editing this message has passed")
}

func TestBotOwnerWarnings(t *testing.T) {
	s := newTestScene(t)
	do(s, s.bot, WarnBotOwner{"nowhere"})
	s.ExpectEvents(s.ann, "message")
	do(s, s.bot, WarnBotOwner{"nowhere"})
	s.ExpectNoEvents(s.ann)
	s.Advance(60)
	do(s, s.bot, WarnBotOwner{"nowhere"})
	s.ExpectEvents(s.ann, "message")
	s.Advance(60)
	// another message between two warnings is not a warning
	do(s, s.ann, directMessage("what is my bot doing?", NotificationBot))
	do(s, s.bot, WarnBotOwner{"nowhere"})
	s.ExpectEvents(s.ann, "message")
	do(s, s.bo, WarnBotOwner{"people are not bots"})
	s.ExpectNoEvents(s.ann, s.bo)
}

package realm_test

import (
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

func (s *testScene) editText(id MessageID, text string) EditMessage {
	return EditMessage{Message: id, Mode: MoveOne, Content: &NewContent{
		Body: Body{Text: text, HTML: "<p>" + text + "</p>"}}}
}

func (s *testScene) info(id MessageID) MessageInfo {
	i, _ := s.ViewAs(realmtest.System).ReadableMessage(id)
	return i
}

func moveToTopic(id MessageID, mode, topic string) EditMessage {
	return EditMessage{Message: id, Mode: mode, Topic: &topic}
}

func moveToChannel(id MessageID, mode string, c ChannelID) EditMessage {
	return EditMessage{Message: id, Mode: mode, Channel: c}
}

// setOrgSetting and setOrgGroup change a setting for one test, without a fact.
func (s *testScene) setOrgSetting(name string, value any) {
	s.Realm.Org().Settings[name] = value
	s.T.Cleanup(func() { delete(s.Realm.Org().Settings, name) })
}

func (s *testScene) setOrgGroup(name string, g string) {
	s.Realm.Org().GroupSettings[name] = GroupValue{Group: s.Realm.SystemGroup(g)}
	s.T.Cleanup(func() { delete(s.Realm.Org().GroupSettings, name) })
}

func TestEditText(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	refused(s, s.bo, s.editText(id, "ho"), "You don't have permission to edit this message")
	refused(s, s.owner, s.editText(id, "ho"), "You don't have permission to edit this message")
	refused(s, s.ann, EditMessage{Message: id, Mode: MoveOne}, "Nothing to change")
	refused(s, s.ann, EditMessage{Message: 999, Mode: MoveOne}, "Invalid message(s)")
	later := s.editText(id, "ho")
	later.Mode = MoveLater
	refused(s, s.ann, later, "Invalid propagate_mode without topic edit")
	moved := s.editText(id, "ho")
	moved.Channel = s.private
	refused(s, s.ann, moved, "Cannot change message content while changing channel")
	sum := s.editText(id, "ho")
	sum.Content.WantSum, sum.Content.Old = "aa", &OldContent{Sum: "bb"}
	refused(s, s.ann, sum, "EXPECTATION_MISMATCH")
	dm := do(s, s.ann, directMessage("psst", s.bo)).ID
	refused(s, s.ann, moveToTopic(dm, MoveOne, "x"), "Direct messages cannot have topics.")
	refused(s, s.ann, moveToChannel(dm, MoveOne, s.public), "Direct messages cannot be moved to channels.")
	poll := channelMessage(s.public, "a", "/poll")
	poll.Widget, poll.WidgetData = "poll", "{}"
	refused(s, s.ann, s.editText(do(s, s.ann, poll).ID, "x"), "Widgets cannot be edited.")

	mention := s.editText(id, "@Bo")
	mention.Content.Content.Users = []UserID{s.bo}
	do(s, s.ann, mention)
	for _, u := range []UserID{s.ann, s.bo, s.guest} {
		s.ExpectEvents(u, "update_message")
	}
	s.ExpectNoEvents(s.cy, s.owner)
	e := realmtest.ListEventsOf[*MessageUpdate](s.Scene, s.bo)[0]
	if e.FlagsFor(s.bo) != FlagMentioned || e.FlagsFor(s.guest) != 0 || e.Version != 1 || e.OldVersion != 0 {
		t.Errorf("the event says %+v", e)
	}
	do(s, s.ann, s.editText(id, "nobody"))
	if f := s.ViewAs(s.bo).FlagsOf(id); f != 0 {
		t.Errorf("after the mention was removed the user has flags %b", f)
	}
	if h := s.info(id).History; len(h) != 2 || h[0].Version != 0 || h[1].Version != 1 {
		t.Errorf("history %+v", h)
	}
	stale := s.editText(id, "x")
	stale.Content.Old = &OldContent{Version: 0}
	if _, err := realmtest.Try(s.Scene, s.ann, stale); err != ErrStale {
		t.Errorf("an edit of an older text: %v", err)
	}
	s.Advance(600 + 20)
	do(s, s.ann, s.editText(id, "just in time"))
	s.Advance(1)
	refused(s, s.ann, s.editText(id, "too late"), "The time limit for editing this message has passed")
	s.setOrgSetting("allow_message_editing", false)
	refused(s, s.ann, s.editText(id, "x"), "Your organization has turned off message editing")
}

func TestEditChecksNewMentionsOnly(t *testing.T) {
	s := newTestScene(t)
	for i := range 15 {
		s.join(s.Join("Extra "+string(rune('a'+i))), s.public)
	}
	id := s.post(s.ann, s.public, "a", "hi")
	all := s.editText(id, "@all")
	all.Content.Content.ChannelWildcard = true
	refused(s, s.ann, all, "STREAM_WILDCARD_MENTION_NOT_ALLOWED")
	all.Content.Old = &OldContent{Mentions: &ContentInfo{ChannelWildcard: true}}
	do(s, s.ann, all)
	do(s, s.ann, s.editText(id, "hi")) // without the mention, which the row has now
	refused(s, s.ann, withWildcard(s.editText(id, "@all")), "STREAM_WILDCARD_MENTION_NOT_ALLOWED")
	s.setOrgGroup("can_mention_many_users_group", "role:everyone")
	do(s, s.ann, withWildcard(s.editText(id, "@all")))
	s.setOrgGroup("can_mention_many_users_group", "role:nobody")
	do(s, s.ann, withWildcard(s.editText(id, "still @all")))
}

// A row has the groups that its text mentions. Rows of a lower rule level do not, so an edit asks for the old text. So
// it does after a program of that level has edited a text that had them.
func TestEditKnowsMentionedGroups(t *testing.T) {
	s := newTestScene(t)
	crew := do(s, s.owner, CreateGroup{Name: "crew", Members: []UserID{s.bo}})
	atLevel := func(level uint16, do func()) {
		now := Level
		Level = level
		do()
		Level = now
	}
	mention := func(id MessageID, groups ...GroupID) EditMessage {
		e := s.editText(id, "@*crew*")
		e.Content.Content.Groups = groups
		return e
	}
	allow := func(group string) {
		do(s, s.owner, EditGroup{Group: crew, Settings: []GroupChange{{Name: "can_mention_group",
			New: GroupValue{Group: s.Realm.SystemGroup(group)}}}})
	}
	needsText := func(when string, e EditMessage) {
		t.Helper()
		if _, err := realmtest.Try(s.Scene, s.ann, e); err != ErrStale {
			t.Errorf("%s the edit was answered with %v", when, err)
		}
	}
	plain := s.post(s.ann, s.public, "a", "hi")
	do(s, s.ann, mention(plain, crew))
	allow("role:nobody")
	do(s, s.ann, mention(plain, crew)) // it mentions the group already
	do(s, s.ann, mention(plain))
	refused(s, s.ann, mention(plain, crew), "You are not allowed to mention user group 'crew'.")

	var old MessageID
	atLevel(ImportLevel, func() { old = s.post(s.ann, s.public, "a", "hi") })
	needsText("for a row of a lower level", mention(old))
	read := mention(old)
	read.Content.Old = &OldContent{Mentions: &ContentInfo{}}
	do(s, s.ann, read)
	do(s, s.ann, mention(old))
	allow("role:everyone")
	do(s, s.ann, mention(old, crew))
	atLevel(ImportLevel, func() {
		do(s, s.ann, mention(old, crew))
		needsText("after an edit at a lower level", mention(old, crew))
	})
}

func withWildcard(e EditMessage) EditMessage {
	e.Content.Content.ChannelWildcard = true
	return e
}

func TestMoveTopics(t *testing.T) {
	s := newTestScene(t)
	var ids []MessageID
	for _, topic := range []string{"a", "A", "b", "a"} {
		ids = append(ids, s.post(s.ann, s.public, topic, "hi"))
	}
	topics := func() (out []string) {
		for _, id := range ids {
			out = append(out, s.info(id).Topic)
		}
		return out
	}
	refused(s, s.bo, moveToTopic(ids[0], MoveOne, " a "), "Nothing to change")
	refused(s, s.bo, moveToTopic(ids[0], MoveAll, "✔"), "General chat cannot be marked as resolved")
	refused(s, s.bo, moveToTopic(ids[0], MoveAll, "✔ general chat"), "General chat cannot be marked as resolved")
	refused(s, s.bo, moveToTopic(ids[0], MoveAll, "x\x00"), "Invalid character in topic, at position 2!")
	refused(s, s.cy, moveToTopic(s.post(s.ann, s.private, "a", "hi"), MoveAll, "x"), "Invalid message(s)")
	do(s, s.bo, moveToTopic(ids[1], MoveLater, "c"))
	if got := topics(); !slices.Equal(got, []string{"a", "c", "b", "c"}) {
		t.Fatalf("after change_later: %q", got)
	}
	s.ExpectEvents(s.guest, "update_message")
	e := realmtest.ListEventsOf[*MessageUpdate](s.Scene, s.guest)[0]
	if !slices.Equal(e.IDs, []MessageID{ids[1], ids[3]}) || e.OrigTopic != "A" || e.Topic != "c" ||
		e.NewChannel != s.public || e.Content {
		t.Errorf("the event says %+v", e)
	}
	move := moveToTopic(ids[3], MoveAll, "")
	move.NotifyOld, move.NotifyNew = true, true
	do(s, s.guest, move)
	s.ExpectEvents(s.ann, "update_message", "message", "message")
	if got := topics(); !slices.Equal(got, []string{"a", "", "b", ""}) {
		t.Fatalf("after change_all: %q", got)
	}
	s.setOrgGroup("can_move_messages_between_topics_group", "role:nobody")
	refused(s, s.bo, moveToTopic(ids[0], MoveOne, "x"), "You don't have permission to edit this message")
	s.setOrgGroup("can_move_messages_between_topics_group", "role:everyone")
	s.setOrgSetting("topics_policy", "disable_empty_topic")
	refused(s, s.bo, moveToTopic(ids[0], MoveOne, ""), "Topics are required in this organization.")
}

// Messages that moved together share their history until one of them changes alone.
func TestMovedMessagesKeepTheirHistory(t *testing.T) {
	s := newTestScene(t)
	var ids []MessageID
	for range 4 {
		ids = append(ids, s.post(s.mod, s.public, "a", "hi"))
	}
	do(s, s.mod, moveToTopic(ids[0], MoveAll, "b"))
	s.Restart()
	do(s, s.mod, s.editText(ids[1], "ho"))
	do(s, s.mod, moveToTopic(ids[2], MoveOne, "c"))
	do(s, s.mod, moveToTopic(ids[2], MoveOne, "b"))
	do(s, s.mod, moveToTopic(ids[0], MoveAll, "d"))
	do(s, s.mod, s.editText(ids[3], "hu"))
	for i, want := range []string{"a>b b>d", "a>b text b>d", "a>b b>c c>b b>d", "a>b b>d text"} {
		var past []string
		for _, h := range s.info(ids[i]).History {
			if h.Content {
				past = append(past, "text")
			} else {
				past = append(past, *h.TopicBefore+">"+*h.TopicAfter)
			}
		}
		if got := strings.Join(past, " "); got != want {
			t.Errorf("message %d has the history %q, want %q", i, got, want)
		}
	}
}

func TestMoveTimeLimit(t *testing.T) {
	s := newTestScene(t)
	old := s.post(s.ann, s.public, "a", "old")
	s.Advance(604800 + 21)
	refused(s, s.bo, moveToTopic(old, MoveAll, "x"), "The time limit for editing this message's topic has passed.")
	refused(s, s.bo, moveToChannel(old, MoveAll, s.private),
		"The time limit for editing this message's channel has passed")
	young := s.post(s.ann, s.public, "a", "young")
	_, err := realmtest.Try(s.Scene, s.bo, moveToTopic(young, MoveAll, "x"))
	r, _ := err.(*Refusal)
	if r == nil || r.Code != "MOVE_MESSAGES_TIME_LIMIT_EXCEEDED" ||
		r.Msg != "You only have permission to move the 1/2 most recent messages in this topic." ||
		r.Data["first_message_id_allowed_to_move"] != young {
		t.Errorf("moving a topic that is partly too old: %+v", r)
	}
	do(s, s.bo, moveToTopic(young, MoveAll, "✔ a")) // marking a topic as resolved has no time limit
	do(s, s.mod, moveToTopic(young, MoveAll, "x"))
}

// A move of a whole topic obeys the stricter of the limits that apply to it. It counts only the messages that the
// moving user can see.
func TestMoveTopicOfMixedAges(t *testing.T) {
	s := newTestScene(t)
	first := s.post(s.ann, s.protected, "a", "before cy came")
	s.join(s.cy, s.protected)
	second := s.post(s.ann, s.protected, "a", "old")
	s.Advance(1000)
	third := s.post(s.ann, s.protected, "a", "young")
	partly := func(c EditMessage, u UserID, what string) {
		t.Helper()
		_, err := realmtest.Try(s.Scene, u, c)
		if r, _ := err.(*Refusal); r == nil || r.Code != "MOVE_MESSAGES_TIME_LIMIT_EXCEEDED" ||
			!strings.Contains(r.Msg, " "+what+" ") || r.Data["first_message_id_allowed_to_move"] != third {
			t.Errorf("want %s, got %v", what, err)
		}
	}
	both := func(id MessageID, topic string) EditMessage {
		c := moveToChannel(id, MoveAll, s.public)
		c.Topic = &topic
		return c
	}
	s.setOrgSetting("move_messages_between_streams_limit_seconds", int64(980))
	s.setOrgSetting("move_messages_within_stream_limit_seconds", int64(100000))
	do(s, s.bo, moveToTopic(third, MoveAll, "b")) // the limit for topics is not reached
	do(s, s.bo, moveToChannel(third, MoveAll, s.public))
	do(s, s.bo, moveToChannel(third, MoveAll, s.protected)) // 980 seconds and 20 of grace are 1000
	s.Advance(1)
	partly(moveToChannel(third, MoveAll, s.public), s.bo, "1/3")
	partly(both(third, "c"), s.bo, "1/3")
	refused(s, s.bo, moveToChannel(second, MoveAll, s.public),
		"The time limit for editing this message's channel has passed")
	s.setOrgSetting("move_messages_between_streams_limit_seconds", nil)
	s.setOrgSetting("move_messages_within_stream_limit_seconds", int64(900))
	partly(moveToTopic(third, MoveAll, "c"), s.bo, "1/3")
	partly(both(third, "c"), s.bo, "1/3")
	do(s, s.bo, moveToTopic(third, MoveLater, "c")) // later messages are within the limit
	do(s, s.bo, moveToTopic(third, MoveOne, "b"))
	do(s, s.bo, moveToChannel(third, MoveAll, s.public)) // now there is no limit for a move to another channel
	do(s, s.mod, moveToTopic(first, MoveAll, "d"))       // moderators have no limit
	if got := s.info(first).Topic + s.info(third).Topic; got != "dd" {
		t.Errorf("topics %q", got)
	}
}

func TestMoveBetweenChannels(t *testing.T) {
	s := newTestScene(t)
	open := s.post(s.ann, s.public, "a", "hi")
	refused(s, s.guest, moveToChannel(open, MoveAll, s.private), "You don't have permission to move this message")
	refused(s, s.cy, moveToChannel(open, MoveAll, s.private), "Invalid channel ID")
	refused(s, s.cy, moveToChannel(open, MoveAll, 99), "Invalid channel ID")
	do(s, s.bo, AddReaction{Message: open, Name: "zulip"})
	do(s, s.cy, AddReaction{Message: open, Name: "zulip"})
	do(s, s.bo, moveToChannel(open, MoveAll, s.private))
	s.ExpectEvents(s.ann, "update_message")
	s.ExpectEvents(s.guest, "delete_message")
	s.ExpectEvents(s.cy, "delete_message") // cy had a row of it
	s.ExpectNoEvents(s.mod)                // the protocol has no event for the first message of a channel
	if _, err := s.ViewAs(s.guest).ReadableMessage(open); err == nil {
		t.Error("the guest can read a message that moved to a channel the guest cannot see")
	}
	if f := s.ViewAs(s.ann).FlagsOf(open); f != 0 {
		t.Errorf("the sender of a moved message has flags %b", f)
	}
	// Moved back: a user that lost the row reads the message as history.
	do(s, s.bo, moveToChannel(open, MoveAll, s.public))
	if f := s.ViewAs(s.guest).FlagsOf(open); f != FlagRead|FlagHistorical {
		t.Errorf("a message that moved back has flags %b", f)
	}
}

// The messages about a move say where the messages went. They call it a topic only if it continues as one topic and did
// not join another. The one in the new place comes first, and both are unread for everyone.
func TestMoveNotices(t *testing.T) {
	s := newTestScene(t)
	moves := func(what string, c EditMessage, want ...string) {
		t.Helper()
		do(s, s.bo, c)
		got := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.ann)
		if len(got) != len(want) {
			t.Fatalf("%s: Ann received %d messages, want %d", what, len(got), len(want))
		}
		for i, e := range got {
			if !strings.HasPrefix(e.Message.Body.Text, want[i]) {
				t.Errorf("%s: the message says %q, want %q", what, e.Message.Body.Text, want[i])
			}
			for u, read := range map[UserID]bool{s.ann: false, s.bo: false} {
				if f := s.ViewAs(u).FlagsOf(e.Message.ID); f&FlagRead != 0 != read ||
					e.FlagsFor(u)&FlagRead != 0 != read {
					t.Errorf("%s: user %d has the flags %b, in the event %b", what, u, f, e.FlagsFor(u))
				}
			}
		}
	}
	one, two := s.post(s.ann, s.public, "a", "1"), s.post(s.ann, s.public, "a", "2")
	s.post(s.ann, s.public, "full", "x")
	notify := func(c EditMessage) EditMessage {
		c.NotifyOld, c.NotifyNew = true, true
		return c
	}
	moves("a topic to a new name", notify(moveToTopic(one, MoveAll, "b")), "This topic was moved here",
		"This topic was moved to")
	moves("a topic spelled otherwise", notify(moveToTopic(one, MoveAll, "B")))
	three := s.post(s.ann, s.public, "c", "3")
	s.post(s.ann, s.public, "c", "4")
	moves("one of two", notify(moveToTopic(three, MoveOne, "d")), "1 message was moved here", "1 message was moved to")
	moves("a topic into another", notify(moveToTopic(three, MoveAll, "full")), "2 messages were moved here",
		"This topic was moved to")
	do(s, s.cy, notify(moveToTopic(two, MoveOne, "e"))) // cy is in no channel, so cy gets no row of the message either
	moved := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.ann)[0].Message.ID
	if f := s.ViewAs(s.cy).FlagsOf(moved); f&FlagHistorical == 0 {
		t.Errorf("the message about a move has flags %b for a mover without a subscription", f)
	}
	do(s, s.cy, moveToTopic(two, MoveAll, "full"))
	moves("some of a topic", notify(moveToChannel(three, MoveLater, s.private)), "4 messages were moved here",
		"4 messages were moved to")
}

// A whole topic that is only spelled otherwise stays where it is: no message tells about it, and the policies of users
// and the list of topics have the new spelling. If a part of it is spelled otherwise, messages tell about that part.
func TestTopicSpelledOtherwise(t *testing.T) {
	for _, mode := range []string{MoveAll, MoveLater, MoveOne} {
		t.Run(mode, func(t *testing.T) {
			s := newTestScene(t)
			first := s.post(s.ann, s.public, "Case x", "1")
			s.post(s.ann, s.public, "cASE x", "2")
			for u, policy := range map[UserID]int{s.ann: TopicFollowed, s.bo: TopicMuted, s.guest: TopicUnmuted} {
				do(s, u, SetTopicPolicy{s.public, "Case x", policy})
			}
			last := s.post(s.bo, s.public, "case X", "3")
			c := moveToTopic(first, mode, "case x")
			if mode == MoveOne {
				c = moveToTopic(last, mode, "case x")
			}
			c.NotifyOld, c.NotifyNew = true, true
			do(s, s.bo, c)
			want := []string{"update_message", "user_topic", "muted_topics", "user_topic"}
			spelled, listed := "case x", "case x"
			if mode == MoveOne {
				want = []string{"update_message", "message", "message"}
				spelled, listed = "Case x", "case X"
			}
			s.ExpectEvents(s.bo, want...)
			topics := s.ViewAs(s.ann).Topics(s.Realm.FindChannelByName("public"))
			if len(topics) != 1 || topics[0].Name != listed {
				t.Errorf("topics: %+v", topics)
			}
			for u, policy := range map[UserID]int{s.ann: TopicFollowed, s.bo: TopicMuted, s.guest: TopicUnmuted} {
				if l := s.Realm.TopicPoliciesOf(u); len(l) != 1 || l[0].Topic != spelled || l[0].Policy != policy {
					t.Errorf("user %d has %+v", u, l)
				}
			}
			do(s, s.bo, SetTopicPolicy{s.public, "CASE X", TopicFollowed}) // the topic is still the same one
			if n := len(s.Realm.TopicPoliciesOf(s.bo)); n != 1 {
				t.Errorf("%d policies for one topic", n)
			}
		})
	}
}

// A move that changes only the channel changes no topic. Each message keeps the spelling of its topic, whether or not
// the new channel already has it.
func TestMoveToChannelKeepsSpellings(t *testing.T) {
	s := newTestScene(t)
	s.post(s.ann, s.private, "TEA", "there already")
	spelled := []string{"tea", "Tea", "TEA", "tEa", "tea"}
	var ids []MessageID
	for _, topic := range spelled {
		ids = append(ids, s.post(s.ann, s.public, topic, "hi"))
	}
	do(s, s.admin, Subscribe{Channels: channelsToJoin("public")})
	do(s, s.owner, Subscribe{Channels: channelsToJoin("third"), AllOrNothing: true})
	third := s.Realm.FindChannelByName("third").ID
	for _, to := range []ChannelID{third, s.private} {
		if to == s.private {
			do(s, s.ann, Subscribe{Channels: channelsToJoin("private"), Principals: principals(s.admin)})
		}
		do(s, s.admin, moveToChannel(ids[1], MoveAll, to))
		if e := realmtest.ListEventsOf[*MessageUpdate](s.Scene, s.admin); len(e) != 1 || e[0].TopicChanged ||
			e[0].Links != nil || len(e[0].IDs) != len(ids) {
			t.Errorf("the moving user received %+v", e)
		}
		for i, id := range ids {
			if m := s.info(id); m.Channel != to || m.Topic != spelled[i] ||
				m.History[len(m.History)-1].TopicBefore != nil {
				t.Errorf("message %d is in channel %d, topic %q, want %d, %q: %+v", i, m.Channel, m.Topic, to,
					spelled[i], m.History)
			}
		}
	}
}

func TestMoveToProtectedHistory(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	s.join(s.cy, s.protected)
	do(s, s.bo, moveToChannel(id, MoveAll, s.protected))
	s.ExpectEvents(s.cy, "update_message")
	if _, err := s.ViewAs(s.cy).ReadableMessage(id); err != nil {
		t.Error("a subscriber of the protected channel cannot read a message that moved there")
	}
	if f := s.ViewAs(s.cy).FlagsOf(id); f != FlagRead {
		t.Errorf("a message that moved there has flags %b, want only read", f)
	}
	late := s.Join("Late")
	s.join(late, s.protected)
	if _, err := s.ViewAs(late).ReadableMessage(id); err == nil {
		t.Error("a later subscriber can read protected history")
	}
	// Messages that the moving user cannot see do not move.
	hidden := s.post(s.ann, s.protected, "b", "before")
	s.join(s.owner, s.protected)
	seen := s.post(s.ann, s.protected, "b", "after")
	do(s, s.owner, moveToChannel(seen, MoveAll, s.public))
	if s.info(hidden).Channel != s.protected {
		t.Error("a message that the moving user cannot see has moved")
	}
}

// A user may be allowed to enter a channel with protected history without being subscribed. Such a user can see the
// messages there of which they have a row. They get the move of these messages and the deletion of the others.
func TestMoveToProtectedHistoryForNonsubscribers(t *testing.T) {
	s := newTestScene(t)
	do(s, s.ann, EditChannel{Channel: s.protected, Groups: []GroupChange{
		{Name: "can_subscribe_group", New: s.group("role:members")}}})
	late := s.Join("Late")
	s.OpenQueue(late)
	s.join(s.cy, s.public)
	old := s.post(s.ann, s.public, "a", "old") // cy has a row of it, late has none
	s.join(late, s.public)
	do(s, s.bo, moveToChannel(old, MoveAll, s.protected))
	s.ExpectEvents(s.cy, "update_message_flags", "update_message")
	s.ExpectEvents(late, "delete_message")
	if _, err := s.ViewAs(late).ReadableMessage(old); err == nil {
		t.Error("a user without a row can read protected history")
	}
}

func TestResolve(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	do(s, s.bo, moveToTopic(id, MoveAll, "✔ a"))
	s.ExpectEvents(s.ann, "update_message", "message")
	if i := s.info(id); i.Moved != 0 || i.Topic != "✔ a" || len(i.History) != 1 {
		t.Errorf("marked as resolved: %+v", i)
	}
	s.Advance(30)
	do(s, s.bo, moveToTopic(id, MoveAll, "a"))
	s.ExpectEvents(s.ann, "update_message", "delete_message")
	do(s, s.bo, moveToTopic(id, MoveAll, "✔ a"))
	s.Advance(61)
	do(s, s.bo, moveToTopic(id, MoveAll, "a"))
	s.ExpectEvents(s.ann, "update_message", "message")
	s.setOrgGroup("can_resolve_topics_group", "role:administrators")
	refused(s, s.bo, moveToTopic(id, MoveAll, "✔ a"), "You don't have permission to resolve topics.")
}

func TestPoliciesMoveWithTopics(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	set := func(u UserID, c ChannelID, topic string, policy int) {
		realmtest.RunTurn(s.Scene, realmtest.System, func(t *Turn) (Done, error) {
			t.Record(&TopicPolicySet{User: u, Channel: c, Topic: topic, Policy: policy, At: t.Now})
			return Done{}, nil
		})
	}
	policy := func(u UserID, c ChannelID, topic string) int { return s.Realm.TopicPolicyOf(u, c, topic) }
	set(s.ann, s.public, "a", 3)
	set(s.guest, s.public, "a", 1)
	do(s, s.bo, moveToTopic(id, MoveAll, "b"))
	if policy(s.ann, s.public, "a") != 0 || policy(s.ann, s.public, "b") != 3 {
		t.Error("the policy did not move with the topic")
	}
	set(s.cy, s.public, "d", 1)
	do(s, s.bo, moveToTopic(id, MoveAll, "d"))
	if policy(s.cy, s.public, "d") != 0 || policy(s.ann, s.public, "d") != 3 {
		t.Error("the target topic still has a policy from before the move")
	}
	s.post(s.ann, s.public, "c", "hi")
	set(s.ann, s.public, "c", 2)
	do(s, s.bo, moveToTopic(id, MoveAll, "c"))
	if policy(s.ann, s.public, "c") != 2 || policy(s.guest, s.public, "c") != 0 {
		t.Error("different policies of the two topics were changed by the move")
	}
	do(s, s.bo, moveToChannel(id, MoveAll, s.private))
	if policy(s.guest, s.private, "c") != 0 {
		t.Error("a user that cannot see the target channel has a policy there")
	}
}

func TestDelete(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	second := s.post(s.ann, s.public, "a", "hi")
	refused(s, s.bo, DeleteMessage{id}, "You don't have permission to delete this message")
	refused(s, s.mod, DeleteMessage{id}, "You don't have permission to delete this message")
	do(s, s.ann, s.editText(id, "edited"))
	do(s, s.cy, AddReaction{Message: id, Name: "zulip"})
	do(s, s.ann, DeleteMessage{id})
	for _, u := range []UserID{s.ann, s.bo, s.guest, s.cy} {
		s.ExpectEvents(u, "delete_message", "stream")
	}
	refused(s, s.ann, DeleteMessage{id}, "Invalid message(s)")
	s.Advance(601)
	refused(s, s.ann, DeleteMessage{second}, "The time limit for deleting this message has passed")
	do(s, s.admin, DeleteMessage{second})
	s.ExpectEvents(s.admin, "delete_message", "stream")
	own := s.post(s.bot, s.public, "a", "beep")
	do(s, s.ann, DeleteMessage{own})
	secret := s.post(s.ann, s.private, "a", "hi")
	refused(s, s.admin, DeleteMessage{secret}, "Invalid message(s)")
}

func TestDeleteTopic(t *testing.T) {
	s := newTestScene(t)
	for range 5 {
		s.post(s.ann, s.public, "a", "hi")
	}
	kept := s.post(s.ann, s.public, "b", "hi")
	refused(s, s.ann, DeleteTopic{s.public, "a"}, "Must be an organization administrator")
	refused(s, s.admin, DeleteTopic{s.private, "a"}, "Invalid channel ID")
	if do(s, s.admin, DeleteTopic{s.public, "A"}) != 0 {
		t.Error("a job is left after deleting five messages")
	}
	s.ExpectEvents(s.bo, "delete_message", "stream")
	if s.info(kept).ID != kept {
		t.Error("a message of another topic was deleted")
	}
	if do(s, s.admin, DeleteTopic{s.public, "a"}) != 0 {
		t.Error("a job is left for an unknown topic")
	}
}

// Deleting a whole topic, however long, removes the policies of all users for it. Deleting its last single message does
// not, nor does deleting only the messages that the caller can see.
func TestDeleteTopicClearsPolicies(t *testing.T) {
	s := newTestScene(t)
	s.post(s.ann, s.public, "b", "the channel's first message")
	for _, n := range []int{3, 205} {
		for range n {
			s.post(s.ann, s.public, "a", "hi")
		}
		do(s, s.bo, SetTopicPolicy{s.public, "a", TopicMuted})
		do(s, s.ann, SetTopicPolicy{s.public, "A", TopicFollowed})
		do(s, s.bo, SetTopicPolicy{s.public, "b", TopicMuted})
		job := do(s, s.admin, DeleteTopic{s.public, "A"})
		if job != 0 {
			s.runDueTurns(1)
			if s.Realm.TopicPolicyOf(s.bo, s.public, "a") != TopicMuted {
				t.Error("a policy is gone before all messages are")
			}
			s.runDueTurns(1)
		}
		s.ExpectEvents(s.bo, "delete_message", "muted_topics", "user_topic")
		e := realmtest.ListEventsOf[*TopicPolicySet](s.Scene, s.bo)[0]
		if e.Channel != s.public || e.Topic != "A" || e.Policy != TopicInherits {
			t.Errorf("the event says %+v", e)
		}
		if l := realmtest.ListEventsOf[*MutedTopicsEvent](s.Scene, s.bo)[0].List; len(l) != 1 || l[0].Topic != "b" {
			t.Errorf("muted topics: %v", l)
		}
		for _, u := range []UserID{s.ann, s.bo} {
			if p := s.Realm.TopicPolicyOf(u, s.public, "a"); p != TopicInherits {
				t.Errorf("user %d has still the policy %d", u, p)
			}
		}
		if s.Realm.TopicPolicyOf(s.bo, s.public, "b") != TopicMuted {
			t.Error("the policy of another topic is gone")
		}
		do(s, s.bo, SetTopicPolicy{s.public, "b", TopicInherits})
	}

	do(s, s.bo, SetTopicPolicy{s.public, "c", TopicMuted})
	id := s.post(s.ann, s.public, "c", "hi")
	do(s, s.admin, DeleteMessage{id})
	if s.Realm.TopicPolicyOf(s.bo, s.public, "c") != TopicMuted {
		t.Error("deleting a single message removed a policy")
	}

	do(s, s.bo, SetTopicPolicy{s.protected, "d", TopicMuted})
	hidden := s.post(s.ann, s.protected, "d", "before")
	s.join(s.owner, s.protected)
	s.post(s.ann, s.protected, "d", "after")
	do(s, s.owner, DeleteTopic{s.protected, "d"})
	if s.info(hidden).ID != hidden || s.Realm.TopicPolicyOf(s.bo, s.protected, "d") != TopicMuted {
		t.Error("a topic with messages that the caller cannot see lost a policy")
	}
}

func TestRerender(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "https://example.org")
	do(s, realmtest.System, Rerender{Message: id, Body: Body{Text: "https://example.org", HTML: "<p>better</p>"}})
	s.ExpectEvents(s.bo, "update_message")
	if e := realmtest.ListEventsOf[*MessageUpdate](s.Scene, s.bo)[0]; e.User != 0 || !e.Content || e.Version != 1 {
		t.Errorf("the event says %+v", e)
	}
	if i := s.info(id); i.Edited != 0 || len(i.History) != 0 || i.Ref.Version != 1 {
		t.Errorf("a rendering counts as an edit: %+v", i)
	}
	do(s, realmtest.System, Rerender{Message: id, Body: Body{HTML: "<p>late</p>"}})
	s.ExpectNoEvents(s.bo) // it rendered an older text
	do(s, s.ann, s.editText(id, "edited"))
	if h := s.info(id).History; len(h) != 1 || h[0].Version != 1 {
		t.Errorf("history %+v", h)
	}
}

// Each message of a user waits for previews of its links, in its newest text. They are added once.
func TestLinkPreviewJobs(t *testing.T) {
	s := newTestScene(t)
	const page = "https://example.org"
	linking := func() SendMessage {
		m := channelMessage(s.public, "a", page)
		m.Content = ContentInfo{Link: true, Previews: []string{page}}
		return m
	}
	waiting := func() []OutboxJob { return outboxJobs(s.Scene, OutboxPreview) }
	current := func(e OutboxJob) bool { _, ok := s.ViewAs(realmtest.System).PreviewTarget(&e); return ok }

	id := do(s, s.ann, linking()).ID
	do(s, s.ann, channelMessage(s.public, "a", "no link"))
	do(s, s.bot, SendMessage{People: []Principal{{ID: s.ann}}, Body: Body{Text: page}, Content: linking().Content})
	list := waiting()
	if len(list) != 1 || list[0].Message != id || list[0].User != s.ann || !current(list[0]) {
		t.Fatalf("waiting: %+v", list)
	}
	do(s, realmtest.System, Rerender{Message: id, Body: Body{Text: page, HTML: "<p>thumbnail</p>"}})
	do(s, s.ann, moveToTopic(id, MoveAll, "b"))
	if !current(list[0]) {
		t.Error("a message that was rendered again and moved must still wait")
	}
	edit := s.editText(id, page+" again")
	edit.Content.Content = linking().Content
	do(s, s.ann, edit)
	first, second := waiting()[0], waiting()[1]
	if current(first) || !current(second) {
		t.Errorf("after an edit the first text waits: %v, the second: %v", current(first), current(second))
	}
	shown := Rerender{Message: id, Version: 2, Body: Body{Text: page + " again", HTML: "<p>page</p>"},
		OutboxJob: second.ID}
	do(s, realmtest.System, shown)
	s.ExpectEvents(s.bo, "update_message")
	do(s, realmtest.System, shown)
	s.ExpectNoEvents(s.bo)
	if list := waiting(); len(list) != 1 || list[0].ID != first.ID {
		t.Errorf("waiting after the preview was added: %+v", list)
	}
	do(s, s.ann, edit)
	do(s, s.admin, DeleteMessage{id})
	if list := waiting(); current(list[len(list)-1]) {
		t.Error("a deleted message still waits for its previews")
	}

	finishOutbox(s.Scene)
	do(s, s.ann, ScheduleMessage{Message: linking(), At: s.Now + 10})
	s.Advance(10)
	s.runClock()
	if len(waiting()) != 1 {
		t.Errorf("a message sent later: %+v", waiting())
	}
	for range 60 {
		do(s, s.ann, linking())
	}
	if n := len(waiting()); n != 50 {
		t.Errorf("%d messages of one user wait, want 50", n)
	}
}

// Events about a message are not sent to users that left the channel or were deactivated.
func TestMessageEventsAfterLeaving(t *testing.T) {
	s := newTestScene(t)
	inPublic, inPrivate := s.post(s.ann, s.public, "a", "hi"), s.post(s.ann, s.private, "a", "hi")
	s.leave(s.bo, s.public)
	s.leave(s.bo, s.private)
	do(s, s.ann, s.editText(inPublic, "x"))
	s.ExpectEvents(s.bo, "update_message") // bo has a row and can read the public channel
	do(s, s.ann, s.editText(inPrivate, "x"))
	s.ExpectNoEvents(s.bo)
	do(s, s.ann, DeleteMessage{inPrivate})
	s.ExpectNoEvents(s.bo)
	s.leave(s.guest, s.public)
	do(s, s.ann, s.editText(inPublic, "y"))
	s.ExpectNoEvents(s.guest)
	refused(s, s.guest, AddReaction{Message: inPublic, Name: "zulip"}, "Invalid message(s)")
	refused(s, s.bo, s.editText(inPrivate, "x"), "Invalid message(s)")
	do(s, s.owner, DeactivateUser{User: s.bo})
	refused(s, s.ann, directMessage("hi", s.bo), "'bo@example.com' is no longer using Zulip.")
	refused(s, s.ann, AddDrafts{[]Draft{{Type: "private", To: []int64{int64(s.bo)}, Content: "x"}}},
		"'bo@example.com' is no longer using Zulip.")
	m := channelMessage(s.public, "a", "@**Bo**")
	m.Content.Users = []UserID{s.bo}
	id := do(s, s.ann, m).ID
	if f := s.ViewAs(s.bo).FlagsOf(id); f&FlagMentioned != 0 {
		t.Errorf("a deactivated user is mentioned: flags %b", f)
	}
}

// In a web-public channel, guests that received a message get its changes and deletion without a subscription. That
// includes a move to another web-public channel.
func TestWebPublicMoveEventsForGuests(t *testing.T) {
	s := newTestScene(t)
	do(s, s.owner, ChangeOrganization{Values: []SettingValue{{Name: "enable_spectator_access", Value: true}}})
	do(s, s.owner, EditChannel{Channel: s.public, WebPublic: ptr(true)})
	id := s.post(s.ann, s.public, "a", "hi")
	s.leave(s.guest, s.public)
	do(s, s.ann, moveToTopic(id, MoveAll, "b"))
	s.ExpectEvents(s.guest, "update_message")
	do(s, s.ann, AddReaction{Message: id, Name: "zulip"})
	s.ExpectNoEvents(s.guest) // (protocol)
	do(s, s.ann, DeleteMessage{id})
	s.ExpectEvents(s.guest, "delete_message", "stream")
}

// A star is removed with its message, also for a user that cannot read the message any more and gets no deletion.
func TestDeletionRemovesStars(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.private, "a", "hi")
	do(s, s.bo, Flag{Messages: []MessageID{id}, Op: "add", Flag: "starred"})
	s.leave(s.bo, s.private)
	do(s, s.ann, DeleteMessage{id})
	s.ExpectEvents(s.bo, "update_message_flags")
	if e := realmtest.ListEventsOf[*FlagsEvent](s.Scene, s.bo)[0]; e.Add || e.Flag != FlagStarred ||
		!e.IDs.Has(int64(id)) {
		t.Errorf("received %+v", e)
	}
}

// The same holds for a message that moves from one channel the user cannot read to another: if it comes back, it has no
// star.
func TestMoveRemovesStars(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.private, "a", "hi")
	do(s, s.bo, Flag{Messages: []MessageID{id}, Op: "add", Flag: "starred"})
	s.leave(s.bo, s.private)
	s.leave(s.bo, s.protected)
	do(s, s.ann, moveToChannel(id, MoveAll, s.protected))
	if e := realmtest.ListEventsOf[*FlagsEvent](s.Scene, s.bo); len(e) != 1 || e[0].Add || e[0].Flag != FlagStarred {
		t.Errorf("received %+v", e)
	}
	do(s, s.ann, moveToChannel(id, MoveAll, s.public))
	if f := s.ViewAs(s.bo).FlagsOf(id); f&FlagStarred != 0 {
		t.Errorf("flags %b", f)
	}
}

// Messages of an archived channel cannot be changed.
func TestArchivedChannels(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	do(s, s.owner, ArchiveChannel{Channel: s.public})
	refused(s, s.ann, channelMessage(s.public, "a", "x"), "Not authorized to send to channel 'public'")
	refused(s, s.ann, s.editText(id, "x"), "Invalid message(s)")
	refused(s, s.ann, DeleteMessage{id}, "Invalid message(s)")
	refused(s, s.ann, AddReaction{Message: id, Name: "zulip"}, "Invalid message(s)")
	refused(s, s.ann, SendEditTyping{Message: id}, "Invalid message(s)")
	refused(s, s.ann, moveToChannel(s.post(s.ann, s.private, "a", "hi"), MoveOne, s.public), "Invalid channel ID")
	refused(s, s.ann, AddDrafts{[]Draft{{Type: "stream", To: []int64{int64(s.public)}, Content: "x"}}},
		"Invalid channel ID")
	refused(s, s.ann, SendTyping{ToChannel: true, Channel: s.public, Topic: "a"}, "Invalid channel ID")
}

// TestMoveNoticeNamesChannelOnlyToReadersThatMayKnowIt holds that the notices about moved messages name a channel only
// if every reader of the notice may know that the channel exists.
func TestMoveNoticeNamesChannelOnlyToReadersThatMayKnowIt(t *testing.T) {
	s := newTestScene(t)
	move := func(from, to ChannelID) string {
		m := moveToChannel(s.post(s.ann, from, "plans", "x"), MoveAll, to)
		m.NotifyOld, m.NotifyNew = true, true
		do(s, s.ann, m)
		var texts []string
		for _, e := range realmtest.ListEventsOf[*MessageArrived](s.Scene, s.ann) {
			texts = append(texts, e.Message.Body.Text)
		}
		return strings.Join(texts, "\n")
	}
	for _, x := range []struct {
		from, to ChannelID
		old, new string
	}{
		{s.public, s.private, "moved to another channel by", "moved here from #**public>plans** by"},
		{s.private, s.public, "moved to #**public>plans** by", "moved here from another channel by"},
		{s.private, s.protected, "moved to #**protected>plans** by", "moved here from #**private>plans** by"},
	} {
		if got := move(x.from, x.to); !strings.Contains(got, x.old) || !strings.Contains(got, x.new) {
			t.Errorf("from %d to %d the notices are %q", x.from, x.to, got)
		}
	}
}

// A client may repeat a move: the messages are in the channel already, and nothing happens. The user still needs the
// permission to move messages.
func TestMoveToSameChannel(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "hi")
	for _, mode := range []string{MoveOne, MoveAll} {
		do(s, s.owner, moveToChannel(id, mode, s.public))
		s.ExpectNoEvents(s.ann, s.bo)
	}
	if i := s.info(id); i.Moved != 0 || len(i.History) != 0 {
		t.Errorf("the message has moved: %+v", i)
	}
	do(s, s.owner, ChangeOrganization{Groups: []GroupChange{
		{Name: "can_move_messages_between_channels_group", New: s.group("role:moderators")}}})
	refused(s, s.ann, moveToChannel(id, MoveOne, s.public), "You don't have permission to move this message")
}

// Events have small texts and refer to large ones, so that clients that do not acknowledge them do not make every such
// text stay in memory.
func TestEventsReferToLargeTexts(t *testing.T) {
	s := newTestScene(t)
	for _, x := range []struct {
		html  int
		large bool
	}{{100, false}, {200_000, true}} {
		body := Body{Text: ":o:", HTML: strings.Repeat("o", x.html)}
		send := channelMessage(s.public, "a", ":o:")
		send.Body = body
		id := do(s, s.ann, send).ID
		arrived := realmtest.ListEventsOf[*MessageArrived](s.Scene, s.bo)[0].Message
		if got := arrived.Body == nil; got != x.large || s.Text(arrived.Ref) != body {
			t.Errorf("a text of %d bytes is only referred to: %v", x.html, got)
		}
		edit := s.editText(id, "")
		edit.Content.Body = Body{Text: "edited", HTML: body.HTML}
		do(s, s.ann, edit)
		update := realmtest.ListEventsOf[*MessageUpdate](s.Scene, s.bo)[0]
		stored := s.Text(BodyRef{Message: id, Version: update.Version})
		if got := update.Body == nil; got != x.large || stored != edit.Content.Body {
			t.Errorf("an edit with a text of %d bytes only refers to it: %v", x.html, got)
		}
	}
}

package realm_test

import (
	"slices"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

func TestTopicPolicies(t *testing.T) {
	s := newTestScene(t)
	set := func(c ChannelID, topic string, p int) SetTopicPolicy { return SetTopicPolicy{c, topic, p} }
	do(s, s.bo, set(s.public, "Tea", TopicMuted)) // the topic needs no message
	s.ExpectEvents(s.bo, "muted_topics", "user_topic")
	s.ExpectNoEvents(s.ann, s.owner)
	if l := realmtest.ListEventsOf[*MutedTopicsEvent](s.Scene, s.bo)[0].List; len(l) != 1 ||
		l[0].ChannelName != "public" || l[0].Topic != "Tea" {
		t.Errorf("muted topics: %+v", l)
	}
	do(s, s.bo, set(s.public, "tEA", TopicMuted))
	s.ExpectNoEvents(s.bo)
	do(s, s.bo, set(s.public, "TEA", TopicFollowed))
	if l := s.Realm.TopicPoliciesOf(s.bo); len(l) != 1 || l[0].Topic != "Tea" || l[0].Policy != TopicFollowed {
		t.Errorf("topic policies: %+v", l)
	}
	if got := s.Realm.TopicPolicyUsers(s.public, "tea", TopicFollowed); !slices.Equal(got, []UserID{s.bo}) {
		t.Errorf("followed by %v", got)
	}
	do(s, s.bo, set(s.public, "tea", TopicInherits))
	if l := s.Realm.TopicPoliciesOf(s.bo); len(l) != 0 {
		t.Errorf("topic policies: %+v", l)
	}
	refused(s, s.bo, set(s.public, strings.Repeat("x", 61), 1), "topic is too long (limit: 60 characters)")
	refused(s, s.bo, set(99, "x", 1), "Invalid channel ID")
	refused(s, s.bo, set(99, "x", 0), "Invalid channel ID")
	refused(s, s.cy, set(s.private, "x", 1), "Invalid channel ID")
	refused(s, s.admin, set(s.private, "x", 1), "Invalid channel ID")

	do(s, s.bo, set(s.private, "x", TopicUnmuted))
	s.leave(s.bo, s.private)
	refused(s, s.bo, set(s.private, "x", TopicMuted), "Invalid channel ID")
	do(s, s.bo, set(s.private, "x", TopicInherits)) // may be removed
	s.ExpectEvents(s.bo, "muted_topics", "user_topic")
}

func TestMuteTopicLegacy(t *testing.T) {
	s := newTestScene(t)
	do(s, s.bo, MuteTopic{ChannelName: "public", Topic: "t"})
	s.ExpectEvents(s.bo, "muted_topics", "user_topic")
	do(s, s.bo, MuteTopic{Channel: s.public, Topic: "T"})
	s.ExpectNoEvents(s.bo)
	do(s, s.bo, MuteTopic{Channel: s.public, Topic: "T", Remove: true})
	do(s, s.bo, MuteTopic{Channel: s.public, Topic: "T", Remove: true}) // again
	s.ExpectNoEvents(s.bo)
	refused(s, s.bo, MuteTopic{Channel: 99, Topic: "T", Remove: true}, "Topic is not muted")
	refused(s, s.bo, MuteTopic{Channel: 99, Topic: "T"}, "Invalid channel ID")
	refused(s, s.cy, MuteTopic{ChannelName: "private", Topic: "T"}, "Invalid channel name 'private'")
	refused(s, s.bo, MuteTopic{ChannelName: "nowhere", Topic: "T"}, "Invalid channel name 'nowhere'")
}

// setAutoFollow sets a user's settings for following topics automatically.
func (s *testScene) setAutoFollow(u UserID, follow, unmute int64, mentioned bool) {
	s.T.Helper()
	do(s, u, ChangeSettings{Values: []SettingValue{
		{Name: "automatically_follow_topics_policy", Value: follow},
		{Name: "automatically_unmute_topics_in_muted_streams_policy", Value: unmute},
		{Name: "automatically_follow_topics_where_mentioned", Value: mentioned},
	}})
}

func TestFollowOnSend(t *testing.T) {
	s := newTestScene(t)
	policy := func(u UserID, topic string) int { return s.Realm.TopicPolicyOf(u, s.public, topic) }
	// Follow topics the user starts; in muted channels unmute topics the user writes to.
	s.setAutoFollow(s.bo, 3, 2, false)

	if a := do(s, s.bo, channelMessage(s.public, "begun", "x")); a.Policy != TopicFollowed {
		t.Errorf("the answer has policy %d", a.Policy)
	}
	s.ExpectEvents(s.bo, "muted_topics", "user_topic", "message") // the policy comes first
	s.ExpectEvents(s.ann, "message")
	if a := do(s, s.bo, channelMessage(s.public, "begun", "x")); a.Policy != 0 {
		t.Error("the policy of an already followed topic changed")
	}
	s.post(s.ann, s.public, "hers", "x")
	s.post(s.bo, s.public, "hers", "x")
	if p := policy(s.bo, "hers"); p != 0 {
		t.Errorf("a topic started by someone else has policy %d", p)
	}
	do(s, s.bo, SetSubscriptionProperties{Changes: []PropertyChange{{
		Channel: s.public, Property: "is_muted", Bool: ptr(true),
	}}})
	if a := do(s, s.bo, channelMessage(s.public, "hers", "x")); a.Policy != TopicUnmuted {
		t.Errorf("in a muted channel the topic has policy %d", a.Policy)
	}
	do(s, s.bo, SetTopicPolicy{s.public, "muted", TopicMuted})
	s.post(s.ann, s.public, "muted", "x")
	s.post(s.bo, s.public, "muted", "x")
	if p := policy(s.bo, "muted"); p != TopicUnmuted {
		t.Errorf("after writing to a muted topic the policy is %d", p)
	}

	s.setAutoFollow(s.cy, 1, 4, false) // follow every topic the user participates in
	id := s.post(s.ann, s.public, "to react to", "x")
	do(s, s.cy, AddReaction{Message: id, Name: "wave", NameCode: "1f44b"})
	if p := policy(s.cy, "to react to"); p != TopicFollowed {
		t.Errorf("after a reaction the policy is %d", p)
	}
	do(s, s.bo, AddReaction{Message: id, Name: "wave", NameCode: "1f44b"})
	if p := policy(s.bo, "to react to"); p != 0 {
		t.Errorf("after a reaction of a user who follows only topics they start the policy is %d", p)
	}
	if a := do(s, s.bot, channelMessage(s.public, "by a bot", "x")); a.Policy != 0 {
		t.Error("a bot follows a topic")
	}
}

func TestFollowOnMention(t *testing.T) {
	s := newTestScene(t)
	s.setAutoFollow(s.bo, 4, 4, true)
	s.setAutoFollow(s.guest, 4, 4, true)
	do(s, s.guest, SetTopicPolicy{s.public, "t", TopicMuted})
	m := channelMessage(s.public, "t", "@**Bo** @**Gus** @**Cy**")
	m.Content.Users = []UserID{s.bo, s.guest, s.cy}
	do(s, s.ann, m)
	s.ExpectEvents(s.bo, "muted_topics", "user_topic", "message")
	s.ExpectEvents(s.guest, "message") // the guest has a policy there
	s.ExpectNoEvents(s.cy)
	if p := s.Realm.TopicPolicyOf(s.bo, s.public, "T"); p != TopicFollowed {
		t.Errorf("policy %d", p)
	}
}

// When a whole topic moves, its policies move along.
func TestMoveTopicPolicies(t *testing.T) {
	s := newTestScene(t)
	prefer := func(u UserID, c ChannelID, topic string, p int) {
		if p != 0 {
			do(s, u, SetTopicPolicy{c, topic, p})
		}
	}
	move := func(id MessageID, c ChannelID, topic string) {
		do(s, s.ann, EditMessage{Message: id, Topic: &topic, Channel: c, Mode: "change_all"})
	}
	id := s.post(s.ann, s.public, "from", "x")
	prefer(s.bo, s.public, "from", TopicFollowed)
	prefer(s.guest, s.public, "from", TopicMuted)
	move(id, 0, "empty")
	if s.Realm.TopicPolicyOf(s.bo, s.public, "from") != 0 ||
		s.Realm.TopicPolicyOf(s.bo, s.public, "empty") != TopicFollowed ||
		s.Realm.TopicPolicyOf(s.guest, s.public, "empty") != TopicMuted {
		t.Error("the policies did not move with the topic")
	}
	got := realmtest.ListEventsOf[*TopicPolicySet](s.Scene, s.bo)
	if len(got) != 2 || got[0].Policy != 0 || got[1].Policy != TopicFollowed {
		t.Errorf("Bo got %+v", got)
	}
	for i, x := range []struct{ was, there, want int }{
		{1, 1, 1}, {3, 2, 2}, {2, 0, 2}, {1, 3, 0}, {0, 3, 0}, {0, 2, 2},
	} {
		old, new := "old "+string(rune('a'+i)), "new "+string(rune('a'+i))
		id := s.post(s.ann, s.public, old, "x")
		s.post(s.ann, s.public, new, "x")
		prefer(s.bo, s.public, old, x.was)
		prefer(s.bo, s.public, new, x.there)
		move(id, 0, new)
		if p := s.Realm.TopicPolicyOf(s.bo, s.public, new); p != x.want {
			t.Errorf("policy %d merged into %d became %d, want %d", x.was, x.there, p, x.want)
		}
	}
	move(id, s.private, "empty") // the guest may not see it there
	if s.Realm.TopicPolicyOf(s.guest, s.public, "empty") != 0 ||
		s.Realm.TopicPolicyOf(s.guest, s.private, "empty") != 0 ||
		s.Realm.TopicPolicyOf(s.bo, s.private, "empty") != TopicFollowed {
		t.Error("after the move, policies must exist exactly for users who can see the new channel")
	}
}

package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// When people take part in a topic, their settings may have them follow it, or hear of it in a muted channel.

// The values of automatically_follow_topics_policy and automatically_unmute_topics_in_muted_streams_policy: from
// which degree of taking part on.
const (
	onParticipation = 1
	onSending       = 2
	onInitiation    = 3
)

// participationPolicy is the policy a topic gets for a user who takes part in it, or 0 for no change. at is how he does:
// onParticipation for reactions and votes, onSending for a message, onInitiation for a topic's first message.
func (r *Realm) participationPolicy(me *User, c ChannelID, topic string, at int64) int {
	now := r.TopicPolicyOf(me.ID, c, topic)
	if me.IsBot() || now == TopicFollowed {
		return 0
	}
	if at >= me.IntSetting("automatically_follow_topics_policy") {
		return TopicFollowed
	}
	s := r.SubscriptionOf(me.ID, c)
	if now != TopicUnmuted && s != nil && s.Muted && at >= me.IntSetting("automatically_unmute_topics_in_muted_streams_policy") {
		return TopicUnmuted
	}
	return 0
}

// followOnSend follows or unmutes a topic because the sender's settings say so, and for people who are mentioned
// because theirs do; it runs before the message is recorded, so its events come first. It returns the sender's new
// policy, 0 for no change.
func (t *Turn) followOnSend(me *User, f *MessageSent) int {
	if f.Channel == 0 {
		return 0
	}
	at := int64(onSending)
	if ix := t.index.channels[f.Channel].topics[fold(f.TopicName)]; ix == nil || ix.ids.Empty() {
		at = onInitiation
	}
	policy := t.participationPolicy(me, f.Channel, f.TopicName, at)
	if policy != 0 {
		t.recordTopicPolicy(me.ID, f.Channel, f.TopicName, policy)
	}
	t.followOnMention(f)
	return policy
}

// followOnMention follows a topic for the people its new message mentions by name or group who have no policy there.
func (t *Turn) followOnMention(f *MessageSent) {
	all := slices.Concat(f.Mentioned, f.GroupMentioned)
	slices.Sort(all)
	set := &TopicPoliciesSet{Channel: f.Channel, Topic: f.TopicName, Policy: TopicFollowed, At: t.Now}
	for _, id := range slices.Compact(all) {
		u := t.Find(id)
		if u.Active && !u.IsBot() && u.BoolSetting("automatically_follow_topics_where_mentioned") && t.TopicPolicyOf(id, f.Channel, f.TopicName) == TopicInherits {
			set.Users = append(set.Users, id)
		}
	}
	if len(set.Users) > 0 {
		t.Record(set)
	}
}

// followOnParticipation follows or unmutes a topic because its user reacted or voted there.
func (t *Turn) followOnParticipation(me *User, c ChannelID, topic string) {
	if policy := t.participationPolicy(me, c, topic, onParticipation); policy != 0 {
		t.recordTopicPolicy(me.ID, c, topic, policy)
	}
}

// moveTopicPolicies brings topic policies along when a whole topic has moved: call it after the move, when no message is left
// in the old topic. empty says that the new one had no messages before: a policy of it is left over from others that are
// gone. Who may not see the new channel just loses his policy.
func (t *Turn) moveTopicPolicies(from ChannelID, old string, to ChannelID, topic string, empty bool) {
	if from == to && fold(old) == fold(topic) {
		return
	}
	before, there := t.index.topicPreferences[topicKey{from, fold(old)}], t.index.topicPreferences[topicKey{to, fold(topic)}]
	if before == nil {
		before = &usersByTopicPolicy{}
	}
	if there == nil {
		there = &usersByTopicPolicy{}
	}
	leavers := ids.IDs[UserID](ids.Union(before[:]...))
	target := t.channels.must(to)
	var become [TopicFollowed + 1][]UserID
	for _, u := range ids.IDs[UserID](ids.Union(append(before[:], there[:]...)...)) {
		was, is := before.of(u), there.of(u)
		want := was
		if !empty {
			want = mergedPolicy(was, is)
		}
		if !t.hasContentAccess(t.users.must(u), target) {
			want = is
		}
		if want != is {
			become[want] = append(become[want], u)
		}
	}
	if len(leavers) > 0 {
		t.Record(&TopicPoliciesSet{Users: leavers, Channel: from, Topic: old, At: t.Now})
	}
	for policy, users := range become {
		if len(users) > 0 {
			t.Record(&TopicPoliciesSet{Users: users, Channel: to, Topic: topic, Policy: policy, At: t.Now})
		}
	}
}

// mergedPolicy is what two topics' policies become when the topics become one.
func mergedPolicy(a, b int) int {
	switch {
	case a == b:
		return a
	case a == TopicUnmuted || b == TopicUnmuted:
		return TopicUnmuted
	}
	return TopicInherits
}

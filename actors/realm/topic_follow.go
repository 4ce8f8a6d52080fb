package realm

import (
	"maps"
	"slices"

	"parley/actors/realm/ids"
)

// When users take part in a topic, their settings may make them follow the topic, or unmute it in a muted channel.

// Values of automatically_follow_topics_policy and automatically_unmute_topics_in_muted_streams_policy: the lowest
// degree of participation that triggers the policy.
const (
	onParticipation = 1
	onSending       = 2
	onInitiation    = 3
)

// participationPolicy returns the new topic policy of a user who takes part in a topic, or 0 for no change. at is the
// degree of participation: onParticipation for reactions and votes, onSending for a message, onInitiation for the first
// message.
func (r *Realm) participationPolicy(me *User, c ChannelID, topic string, at int64) int {
	now := r.TopicPolicyOf(me.ID, c, topic)
	if me.IsBot() || now == TopicFollowed || r.topicPolicyCount(me.ID) >= maxAutomaticTopicPolicies {
		return 0
	}
	if at >= me.IntSetting("automatically_follow_topics_policy") {
		return TopicFollowed
	}
	s := r.SubscriptionOf(me.ID, c)
	if now != TopicUnmuted && s != nil && s.Muted &&
		at >= me.IntSetting("automatically_unmute_topics_in_muted_streams_policy") {
		return TopicUnmuted
	}
	return 0
}

// followOnSend records topic policies because of a new message: for the sender, and for mentioned users, according to
// their settings. It runs before the message is recorded, so its events come first. It returns the sender's new policy,
// 0 for no change.
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

// followOnMention follows the topic for users whom the new message mentions by name or group and who have no policy for
// it.
func (t *Turn) followOnMention(f *MessageSent) {
	all := slices.Concat(f.Mentioned, f.GroupMentioned)
	slices.Sort(all)
	set := &TopicPoliciesSet{Channel: f.Channel, Topic: f.TopicName, Policy: TopicFollowed, At: t.Now}
	for _, id := range slices.Compact(all) {
		u := t.Find(id)
		if u.Active && !u.IsBot() && u.BoolSetting("automatically_follow_topics_where_mentioned") &&
			t.TopicPolicyOf(id, f.Channel, f.TopicName) == TopicInherits &&
			t.topicPolicyCount(id) < maxAutomaticTopicPolicies {
			set.Users = append(set.Users, id)
		}
	}
	if len(set.Users) > 0 {
		t.Record(set)
	}
}

// followOnParticipation records a topic policy for a user who reacted or voted.
func (t *Turn) followOnParticipation(me *User, c ChannelID, topic string) {
	if policy := t.participationPolicy(me, c, topic, onParticipation); policy != 0 {
		t.recordTopicPolicy(me.ID, c, topic, policy)
	}
}

// moveTopicPolicies moves topic policies when a whole topic was moved. Call it after the move, when no message is left
// in the old topic. empty says that the new topic had no messages before: policies for it are left over from deleted or
// moved messages, and are replaced. Users who may not see the new channel lose their policy.
func (t *Turn) moveTopicPolicies(from ChannelID, old string, to ChannelID, topic string, empty bool) {
	before := t.index.topicPreferences[topicKey{from, fold(old)}]
	existing := t.index.topicPreferences[topicKey{to, fold(topic)}]
	if before == nil {
		before = &usersByTopicPolicy{}
	}
	if existing == nil {
		existing = &usersByTopicPolicy{}
	}
	moved := ids.IDs[UserID](ids.Union(before[:]...))
	var lost []UserID
	channel := t.channels.must(to)
	var changed [TopicFollowed + 1][]UserID
	for _, u := range ids.IDs[UserID](ids.Union(append(before[:], existing[:]...)...)) {
		oldPolicy, newPolicy := before.of(u), existing.of(u)
		want := oldPolicy
		if !empty {
			want = mergedPolicy(oldPolicy, newPolicy)
		}
		if !t.hasContentAccess(t.users.must(u), channel) {
			want = newPolicy
		}
		if want == newPolicy && oldPolicy != TopicInherits { // no further event has the list of muted topics
			lost = append(lost, u)
		}
		if want != newPolicy {
			changed[want] = append(changed[want], u)
		}
	}
	moved = slices.DeleteFunc(moved, func(u UserID) bool { return containsSorted(lost, u) })
	if len(moved) > 0 {
		t.Record(&TopicPoliciesSet{Users: moved, Channel: from, Topic: old, At: t.Now, Moved: true})
	}
	if len(lost) > 0 {
		t.Record(&TopicPoliciesSet{Users: lost, Channel: from, Topic: old, At: t.Now})
	}
	for policy, users := range changed {
		if len(users) > 0 {
			t.Record(&TopicPoliciesSet{Users: users, Channel: to, Topic: topic, Policy: policy, At: t.Now})
		}
	}
}

// respellTopicPolicies gives the policies for a topic the topic's new spelling: clients show the lists of muted and
// followed topics with it. Users who may not see the channel keep the old one.
func (t *Turn) respellTopicPolicies(c ChannelID, topic string) {
	policies := t.index.topicPreferences[topicKey{c, fold(topic)}]
	if policies == nil {
		return
	}
	before := map[string][]UserID{} // by the spelling of their row
	var respelled [TopicFollowed + 1][]UserID
	for _, u := range ids.IDs[UserID](ids.Union(policies[:]...)) {
		list := t.topicPolicies.find(u).List
		i := slices.IndexFunc(list, func(p TopicPolicy) bool { return p.Channel == c && fold(p.Topic) == fold(topic) })
		if list[i].Topic == topic || !t.hasContentAccess(t.users.must(u), t.channels.must(c)) {
			continue
		}
		before[list[i].Topic] = append(before[list[i].Topic], u)
		respelled[list[i].Policy] = append(respelled[list[i].Policy], u)
	}
	for _, old := range slices.Sorted(maps.Keys(before)) {
		t.Record(&TopicPoliciesSet{Users: before[old], Channel: c, Topic: old, At: t.Now, Moved: true})
	}
	for policy, users := range respelled {
		if len(users) > 0 {
			t.Record(&TopicPoliciesSet{Users: users, Channel: c, Topic: topic, Policy: policy, At: t.Now})
		}
	}
}

// clearTopicPolicies removes the policies of all users for a topic that was deleted, unless messages are left that the
// caller cannot see. A later topic of that name starts without them.
func (t *Turn) clearTopicPolicies(c ChannelID, topic string) {
	policies := t.index.topicPreferences[topicKey{c, fold(topic)}]
	if policies == nil || t.index.channels[c].topics[fold(topic)] != nil {
		return
	}
	users := ids.IDs[UserID](ids.Union(policies[:]...))
	t.Record(&TopicPoliciesSet{Users: users, Channel: c, Topic: topic, At: t.Now})
}

// mergedPolicy returns the policy of a topic that was merged from topics with policies a and b.
func mergedPolicy(a, b int) int {
	switch {
	case a == b:
		return a
	case a == TopicUnmuted || b == TopicUnmuted:
		return TopicUnmuted
	}
	return TopicInherits
}

package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// TopicPolicies is the row of one user's topic policies.
type TopicPolicies struct{ List []TopicPolicy }

// TopicPolicy is one user's visibility policy for a topic.
type TopicPolicy struct {
	Channel ChannelID
	Topic   string // compared without case; spelled as first set
	Policy  int
	Since   int64
}

// TopicInherits is no policy for a topic; the other values are in topic_mutes.go.
const TopicInherits = 0

// TopicPolicyOf returns a user's policy for a topic, TopicInherits if there is none.
func (r *Realm) TopicPolicyOf(u UserID, c ChannelID, topic string) int {
	return r.index.topicPreferences[topicKey{c, fold(topic)}].of(u)
}

// TopicPoliciesOf returns all of a user's topic policies, ordered by channel and then by time set.
func (r *Realm) TopicPoliciesOf(u UserID) []TopicPolicy {
	l := r.topicPolicies.find(u)
	if l == nil {
		return nil
	}
	out := slices.Clone(l.List)
	slices.SortStableFunc(out, func(a, b TopicPolicy) int { return int(a.Channel - b.Channel) })
	return out
}

// TopicPolicyUsers returns the users with that policy for a topic, ascending.
func (r *Realm) TopicPolicyUsers(c ChannelID, topic string, policy int) []UserID {
	return ids.IDs[UserID](r.policyUsers(c, topic, policy))
}

// policyUsers is TopicPolicyUsers as a set. The caller must not change it.
func (r *Realm) policyUsers(c ChannelID, topic string, policy int) ids.Set {
	if x := r.index.topicPreferences[topicKey{c, fold(topic)}]; x != nil {
		return x[policy]
	}
	return ids.Set{}
}

// usersByTopicPolicy is the users with each policy for a topic. The set of TopicInherits is always empty.
type usersByTopicPolicy [TopicFollowed + 1]ids.Set

// of returns a user's policy.
func (x *usersByTopicPolicy) of(u UserID) int {
	if x != nil {
		for policy := TopicFollowed; policy > TopicInherits; policy-- {
			if x[policy].Has(int64(u)) {
				return policy
			}
		}
	}
	return TopicInherits
}

// setTopicPolicies sets the policy of users for a topic. All facts about topic policies use it.
func (r *Realm) setTopicPolicies(users []UserID, c ChannelID, topic string, policy int, at int64) {
	k := topicKey{c, fold(topic)}
	before := r.index.topicPreferences[k]
	for _, u := range users {
		i, l := -1, r.topicPolicies.find(u)
		if before.of(u) != TopicInherits {
			i = slices.IndexFunc(l.List, func(p TopicPolicy) bool {
				return p.Channel == c && (p.Topic == topic || fold(p.Topic) == k.topic)
			})
		}
		switch {
		case policy == TopicInherits && i >= 0 && len(l.List) == 1:
			r.topicPolicies.remove(u)
		case policy == TopicInherits && i >= 0:
			l = r.topicPolicies.change(u)
			l.List = slices.Delete(l.List, i, i+1)
		case i >= 0:
			l = r.topicPolicies.change(u)
			l.List[i].Policy, l.List[i].Since = policy, at
		case policy != TopicInherits:
			l = r.topicPolicies.ensure(u)
			l.List = append(l.List, TopicPolicy{c, topic, policy, at})
		}
	}
	r.index.setTopicPolicy(k, ids.SetOf(users...), policy)
}

// setTopicPolicy updates the index: these users have this policy now.
func (x *indexes) setTopicPolicy(k topicKey, users ids.Set, policy int) {
	p := x.topicPreferences[k]
	if p == nil {
		p = &usersByTopicPolicy{}
		x.topicPreferences[k] = p
	}
	none := true
	for i := range p {
		if i == policy && i != TopicInherits {
			p[i].Union(users)
		} else {
			p[i].Subtract(users)
		}
		none = none && p[i].Empty()
	}
	if none {
		delete(x.topicPreferences, k)
	}
}

// TopicPolicySet says that a user's policy for a topic changed; TopicInherits removes it. It is also the event
// user_topic.
type TopicPolicySet struct {
	User    UserID
	Channel ChannelID
	Topic   string
	Policy  int
	At      int64
}

func (f *TopicPolicySet) apply(r *Realm) {
	r.setTopicPolicies([]UserID{f.User}, f.Channel, f.Topic, f.Policy, f.At)
}

func (f *TopicPolicySet) notices(r *Realm) []Notice {
	return append(r.mutedTopicsNotices(f.User), r.topicPolicyNotices([]UserID{f.User}, f)...)
}

func (*TopicPolicySet) EventType() string { return "user_topic" }

// topicPolicyNotices returns the event about users' own changed policy.
func (r *Realm) topicPolicyNotices(users []UserID, f *TopicPolicySet) []Notice {
	if to := r.usersAudience(users...); len(to) > 0 {
		return []Notice{{To: to, Event: f}}
	}
	return nil
}

// mutedTopicsNotices returns the legacy lists of users' muted topics. They precede the event about the change.
func (r *Realm) mutedTopicsNotices(users ...UserID) (out []Notice) {
	to := r.usersAudience(users...)
	var none []UserID // users without muted topics share one notice: very many may follow a topic that is moved
	for _, u := range to {
		if l := r.topicPolicies.find(u); l == nil ||
			!slices.ContainsFunc(l.List, func(p TopicPolicy) bool { return p.Policy == TopicMuted }) {
			if none == nil {
				none = make([]UserID, 0, len(to))
			}
			none = append(none, u)
			continue
		}
		out = append(out, Notice{To: []UserID{u}, Event: &MutedTopicsEvent{r.MutedTopics(u)}})
	}
	if len(none) > 0 {
		out = append(out, Notice{To: none, Event: &MutedTopicsEvent{[]MutedTopic{}}})
	}
	return out
}

// TopicPoliciesSet says that the policy of many users for one topic changed to the same value.
type TopicPoliciesSet struct {
	Users   []UserID // ascending
	Channel ChannelID
	Topic   string
	Policy  int
	At      int64
	Moved   bool // the policy moves to another topic: the legacy list of muted topics comes with that change (protocol)
}

func (f *TopicPoliciesSet) apply(r *Realm) {
	r.setTopicPolicies(f.Users, f.Channel, f.Topic, f.Policy, f.At)
}

// notices has no new policy for users who cannot read the channel: they must not learn the topic's new name. They get
// the removal of their policy for the old name, because their next registration also shows the removal.
func (f *TopicPoliciesSet) notices(r *Realm) []Notice {
	users := f.Users
	if c := r.channels.must(f.Channel); f.Policy != TopicInherits {
		users = slices.DeleteFunc(slices.Clone(users), func(u UserID) bool {
			return !r.hasContentAccess(r.users.must(u), c)
		})
	}
	out := r.topicPolicyNotices(users,
		&TopicPolicySet{Channel: f.Channel, Topic: f.Topic, Policy: f.Policy, At: f.At})
	if f.Moved {
		return out
	}
	return append(r.mutedTopicsNotices(users...), out...)
}

// MutedTopic is one entry of the legacy list of muted topics.
type MutedTopic struct {
	ChannelName, Topic string
	Since              int64
}

// MutedTopicsEvent is the event muted_topics, for clients older than topic policies.
type MutedTopicsEvent struct{ List []MutedTopic }

func (*MutedTopicsEvent) EventType() string { return "muted_topics" }

// MutedTopics returns a user's muted topics in channels that are not archived and that the user may know of.
func (r *Realm) MutedTopics(u UserID) []MutedTopic {
	out := []MutedTopic{}
	for _, p := range r.TopicPoliciesOf(u) {
		if p.Policy == TopicMuted {
			if c := r.channels.find(p.Channel); c != nil && !c.Archived && r.hasMetadataAccess(r.users.must(u), c) {
				out = append(out, MutedTopic{c.Name, p.Topic, p.Since})
			}
		}
	}
	return out
}

// SetTopicPolicy asks to change the caller's policy for a topic.
type SetTopicPolicy struct {
	Channel ChannelID
	Topic   string
	Policy  int
}

func (c SetTopicPolicy) Decide(t *Turn) (Done, error) {
	if t.Me() == nil {
		return Done{}, errNotMember()
	}
	topic, err := checkPolicyTopic(c.Topic)
	if err != nil {
		return Done{}, err
	}
	// A policy may be removed even after the user lost access to the channel.
	if c.Policy == TopicInherits {
		if t.channels.find(c.Channel) == nil {
			return Done{}, errInvalidChannel()
		}
	} else if _, err := t.ReadableChannel(c.Channel); err != nil {
		return Done{}, err
	}
	if err := t.checkTopicPolicyCount(c.Channel, topic, c.Policy); err != nil {
		return Done{}, err
	}
	t.recordTopicPolicy(t.User, c.Channel, topic, c.Policy)
	return Done{}, nil
}

// checkPolicyTopic returns a topic in its stored form. Unlike in SendMessage, a topic that is too long is an error.
func checkPolicyTopic(topic string) (string, error) {
	if runeCount(topic) > MaxTopic {
		return "", BadRequest("topic is too long (limit: %d characters)", MaxTopic)
	}
	return NormalizeTopic(topic)
}

// Limits of one user's topic policies. Every registration of the user contains all of them. Policies that follow from
// mentions stop earlier, so that others cannot use up the number.
const (
	MaxTopicPolicies          = 10_000
	maxAutomaticTopicPolicies = 9_000
)

// topicPolicyCount returns how many topic policies a user has.
func (r *Realm) topicPolicyCount(u UserID) int {
	if l := r.topicPolicies.find(u); l != nil {
		return len(l.List)
	}
	return 0
}

// checkTopicPolicyCount refuses a further policy of the caller beyond MaxTopicPolicies.
func (t *Turn) checkTopicPolicyCount(c ChannelID, topic string, policy int) error {
	if policy != TopicInherits && t.TopicPolicyOf(t.User, c, topic) == TopicInherits &&
		t.sumCharged(t.User, t.topicPolicyCount) >= MaxTopicPolicies {
		return BadRequest("Too many topics with a setting of their own (limit: %d)", MaxTopicPolicies)
	}
	return nil
}

// recordTopicPolicy records a policy unless the user has it already.
func (t *Turn) recordTopicPolicy(u UserID, c ChannelID, topic string, policy int) {
	if t.TopicPolicyOf(u, c, topic) != policy {
		t.Record(&TopicPolicySet{User: u, Channel: c, Topic: topic, Policy: policy, At: t.Now})
	}
}

// MuteTopic is the legacy command to mute or unmute a topic.
type MuteTopic struct {
	Channel     ChannelID
	ChannelName string // used if Channel is 0
	Topic       string
	Remove      bool
}

func (c MuteTopic) Decide(t *Turn) (Done, error) {
	if t.Me() == nil {
		return Done{}, errNotMember()
	}
	topic, err := checkPolicyTopic(c.Topic)
	if err != nil {
		return Done{}, err
	}
	ch := t.channels.find(c.Channel)
	if c.Channel == 0 {
		if ch = t.FindChannelByName(c.ChannelName); ch == nil {
			return Done{}, errMuteTopic(c.Remove, BadRequest("Invalid channel name '%s'", c.ChannelName))
		}
	}
	if ch == nil {
		return Done{}, errMuteTopic(c.Remove, errInvalidChannel())
	}
	if c.Remove { // whatever the policy is: a client may send the request again
		t.recordTopicPolicy(t.User, ch.ID, topic, TopicInherits)
		return Done{}, nil
	}
	if !t.MayReadChannel(ch) {
		if c.Channel == 0 {
			return Done{}, BadRequest("Invalid channel name '%s'", c.ChannelName)
		}
		return Done{}, errInvalidChannel()
	}
	if err := t.checkTopicPolicyCount(ch.ID, topic, TopicMuted); err != nil {
		return Done{}, err
	}
	t.recordTopicPolicy(t.User, ch.ID, topic, TopicMuted)
	return Done{}, nil
}

// errMuteTopic returns other, except when a mute is removed: then every error about the channel is "Topic is not
// muted".
func errMuteTopic(remove bool, other *Refusal) *Refusal {
	if remove {
		return BadRequest("Topic is not muted")
	}
	return other
}

package realm

import "parley/actors/realm/ids"

// Visibility policies of a user for a topic. The numbers come from the protocol.
const (
	TopicMuted    = 1
	TopicUnmuted  = 2
	TopicFollowed = 3
)

// muteSettings are the channels and topics a user has muted, prepared for many tests.
type muteSettings struct {
	channels ids.Set
	policies map[topicKey]int
}

// topicKey identifies a topic.
type topicKey struct {
	channel ChannelID
	topic   string // folded
}

// muteSettingsOf returns the mute settings of a user.
func (r *Realm) muteSettingsOf(u UserID) muteSettings {
	m := muteSettings{policies: map[topicKey]int{}}
	if l := r.subscriptions.find(u); l != nil {
		for _, s := range l.List {
			if s.Active && s.Muted {
				m.channels.Add(int64(s.Channel))
			}
		}
	}
	if l := r.topicPolicies.find(u); l != nil {
		for _, p := range l.List {
			m.policies[topicKey{p.Channel, fold(p.Topic)}] = p.Policy
		}
	}
	return m
}

// isMuted reports whether a topic is muted: by its own policy, or by its channel unless the topic is unmuted or
// followed.
func (m muteSettings) isMuted(c ChannelID, topic string) bool {
	p := 0
	if len(m.policies) > 0 {
		p = m.policies[topicKey{c, fold(topic)}]
	}
	return p == TopicMuted || m.channels.Has(int64(c)) && p != TopicUnmuted && p != TopicFollowed
}

// messagesWithPolicy returns the messages of the caller's topics with a wanted visibility policy.
func (v View) messagesWithPolicy(wanted func(policy int) bool) ids.Set {
	var sets []ids.Set
	if l := v.topicPolicies.find(v.User); l != nil {
		for _, p := range l.List {
			if ix := v.index.channels[p.Channel]; ix != nil && wanted(p.Policy) {
				if t := ix.topics[fold(p.Topic)]; t != nil {
					sets = append(sets, t.ids)
				}
			}
		}
	}
	return ids.Union(sets...)
}

// messagesInMutedChannels returns the messages in the caller's muted channels, without unmuted and followed topics.
func (v View) messagesInMutedChannels() ids.Set {
	var sets []ids.Set
	if l := v.subscriptions.find(v.User); l != nil {
		for _, s := range l.List {
			if s.Active && s.Muted {
				sets = append(sets, v.index.channels[s.Channel].ids)
			}
		}
	}
	s := ids.Union(sets...)
	s.Subtract(v.messagesWithPolicy(func(p int) bool { return p == TopicUnmuted || p == TopicFollowed }))
	return s
}

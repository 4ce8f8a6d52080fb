package realm

// A user's preferences for a topic; the numbers are the protocol's.
const (
	TopicMuted    = 1
	TopicUnmuted  = 2
	TopicFollowed = 3
)

// mutes is what one user has muted, prepared for many questions.
type mutes struct {
	channels Set
	policy   map[topicKey]int
}

type topicKey struct {
	channel ChannelID
	topic   string // folded
}

func (r *Realm) mutesOf(u UserID) mutes {
	m := mutes{policy: map[topicKey]int{}}
	if l := r.subs.find(u); l != nil {
		for _, s := range l.List {
			if s.Active && s.Muted {
				m.channels.Add(int64(s.Channel))
			}
		}
	}
	if l := r.prefs.find(u); l != nil {
		for _, p := range l.List {
			m.policy[topicKey{p.Channel, fold(p.Topic)}] = p.Policy
		}
	}
	return m
}

// covers reports whether a topic is muted: by itself, or by its channel and not unmuted or followed.
func (m mutes) covers(c ChannelID, topic string) bool {
	p := 0
	if len(m.policy) > 0 {
		p = m.policy[topicKey{c, fold(topic)}]
	}
	return p == TopicMuted || m.channels.Has(int64(c)) && p != TopicUnmuted && p != TopicFollowed
}

// topicsWith is the messages of the caller's topics whose policy is wanted.
func (v View) topicsWith(wanted func(policy int) bool) Set {
	var sets []Set
	if l := v.prefs.find(v.User); l != nil {
		for _, p := range l.List {
			if ix := v.by.channel[p.Channel]; ix != nil && wanted(p.Policy) {
				if t := ix.topics[fold(p.Topic)]; t != nil {
					sets = append(sets, t.ids)
				}
			}
		}
	}
	return Either(sets...)
}

func (v View) inMutedChannels() Set {
	var sets []Set
	if l := v.subs.find(v.User); l != nil {
		for _, s := range l.List {
			if s.Active && s.Muted {
				sets = append(sets, v.by.channel[s.Channel].ids)
			}
		}
	}
	s := Either(sets...)
	s.Subtract(v.topicsWith(func(p int) bool { return p == TopicUnmuted || p == TopicFollowed }))
	return s
}

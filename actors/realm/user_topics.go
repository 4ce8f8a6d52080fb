package realm

// TopicPolicies is the row of one user's topic preferences.
type TopicPolicies struct{ List []TopicPolicy }

// TopicPolicy is how one user wants one topic: 1 muted, 2 unmuted, 3 followed.
type TopicPolicy struct {
	Channel ChannelID
	Topic   string // compared without case; spelled as first set
	Policy  int
	Since   int64
}

// TopicPolicyOf is a user's preference for a topic, 0 for none.
func (r *Realm) TopicPolicyOf(u UserID, c ChannelID, topic string) int {
	if l := r.prefs.find(u); l != nil {
		for _, p := range l.List {
			if p.Channel == c && fold(p.Topic) == fold(topic) {
				return p.Policy
			}
		}
	}
	return 0
}

// TopicPolicySet says a user prefers something else for a topic now; policy 0 forgets it.
type TopicPolicySet struct {
	User    UserID
	Channel ChannelID
	Topic   string
	Policy  int
	At      int64
}

func (f *TopicPolicySet) apply(r *Realm) {
	l := r.prefs.open(f.User)
	for i, p := range l.List {
		if p.Channel == f.Channel && fold(p.Topic) == fold(f.Topic) {
			if f.Policy == 0 {
				l.List = append(l.List[:i], l.List[i+1:]...)
			} else {
				l.List[i].Policy, l.List[i].Since = f.Policy, f.At
			}
			return
		}
	}
	if f.Policy != 0 {
		l.List = append(l.List, TopicPolicy{f.Channel, f.Topic, f.Policy, f.At})
	}
}

func (f *TopicPolicySet) tell(r *Realm) []Notice {
	return []Notice{{To: r.only(f.User), Event: f}}
}

func (*TopicPolicySet) EventType() string { return "user_topic" }

// followBySending follows or unmutes a topic because the sender's settings say so, before the message is told.
func (t *Turn) followBySending(me *User, f *MessageSent) int {
	return 0
}

package realm

// TopicInfo is a topic as it is listed: named as its newest message spells it.
type TopicInfo struct {
	Name string
	Last MessageID // newest message the caller may read
}

// Topics is the topics of a channel with messages the caller may read, in any order: there may be very many to sort.
func (v View) Topics(c *Channel) []TopicInfo {
	var own Set
	limited := !c.History && !c.WebPublic && !v.System // protected history shows what was received only
	if limited {
		own = v.rowsOf(v.User)
	}
	topics := v.by.channel[c.ID].list
	out := make([]TopicInfo, 0, len(topics))
	for _, t := range topics {
		ids := t.ids
		if limited {
			ids = Both(ids, own)
		}
		if last, ok := ids.Max(); ok {
			out = append(out, TopicInfo{v.by.topics[v.message(MessageID(last)).topic].name, MessageID(last)})
		}
	}
	return out
}

// ChannelsOf is the channels a user is subscribed to, ascending, archived ones included.
func (r *Realm) ChannelsOf(u UserID) []ChannelID {
	var out []ChannelID
	if l := r.subs.find(u); l != nil {
		for _, s := range l.List {
			if s.Active {
				out = append(out, s.Channel)
			}
		}
	}
	return out
}

// Listening reports whether a user has a queue.
func (r *Realm) Listening(u UserID) bool { return r.by.listening.Has(int64(u)) }

// TopicName is one spelling of a topic's name.
type TopicName struct {
	ID   TopicID
	Name string
}

// TopicsAfter is up to max topics made after one, in order.
func (r *Realm) TopicsAfter(after TopicID, max int) []TopicName {
	var out []TopicName
	for id := after + 1; id < r.Org().NextTopic && len(out) < max; id++ {
		if t := r.topics.find(id); t != nil {
			out = append(out, TopicName{id, t.Name})
		}
	}
	return out
}

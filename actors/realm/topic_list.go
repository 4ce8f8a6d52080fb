package realm

import "parley/actors/realm/ids"

// TopicInfo is a topic as it is listed: named as its newest message spells it.
type TopicInfo struct {
	Name string
	Last MessageID // newestIDs message the caller may read
}

// Topics is the topics of a channel with messages the caller may read, in any order: there may be very many to sort.
func (v View) Topics(c *Channel) []TopicInfo {
	var own ids.Set
	limited := !c.History && !c.WebPublic && !v.System // protected history shows what was received only
	if limited {
		own = v.rowsOf(v.User)
	}
	topics := v.index.channels[c.ID].topicList
	out := make([]TopicInfo, 0, len(topics))
	for _, t := range topics {
		idSet := t.ids
		if limited {
			idSet = ids.Intersection(idSet, own)
		}
		if last, ok := idSet.Max(); ok {
			out = append(out, TopicInfo{v.index.topicSpellings[v.message(MessageID(last)).topic].name, MessageID(last)})
		}
	}
	return out
}

// SubscribedChannels is the channels a user is subscribed to, ascending, archived ones included.
func (r *Realm) SubscribedChannels(u UserID) []ChannelID {
	var out []ChannelID
	if l := r.subscriptions.find(u); l != nil {
		for _, s := range l.List {
			if s.Active {
				out = append(out, s.Channel)
			}
		}
	}
	return out
}

// HasQueue reports whether a user has a queue.
func (r *Realm) HasQueue(u UserID) bool { return r.index.usersWithQueues.Has(int64(u)) }

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

package realm

import "parley/actors/realm/ids"

// TopicInfo is a topic in a list. Its name is spelled as in its newest message.
type TopicInfo struct {
	Name string
	Last MessageID // newest message the caller may read
}

// Topics returns the topics of a channel that contain messages the caller may read, in any order: there may be too many
// to sort.
func (v View) Topics(c *Channel) []TopicInfo {
	var own ids.Set
	limited := !c.History && !c.WebPublic && !v.System // protected history: only messages the user received
	if limited {
		own = v.rowsOf(v.User)
	}
	topics := v.index.channels[c.ID].topicList
	out := make([]TopicInfo, 0, len(topics))
	for _, t := range topics {
		messages := t.ids
		if limited {
			messages = ids.Intersection(messages, own)
		}
		last, ok := messages.Max()
		if !ok {
			continue
		}
		name := v.index.topicSpellings[v.message(MessageID(last)).topic].name
		if v.scope.HasTopic(c.ID, name) {
			out = append(out, TopicInfo{name, MessageID(last)})
		}
	}
	return out
}

// SubscribedChannels returns the channels a user is subscribed to, ascending, including archived ones.
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

// TopicsAfter returns at most max topics with ids above after, in ascending order.
func (r *Realm) TopicsAfter(after TopicID, max int) []TopicName {
	var out []TopicName
	for id := after + 1; id < r.Org().NextTopic && len(out) < max; id++ {
		if t := r.topics.find(id); t != nil {
			out = append(out, TopicName{id, t.Name})
		}
	}
	return out
}

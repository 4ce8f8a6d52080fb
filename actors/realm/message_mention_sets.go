package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// A message to a group of ten thousand mentions each of them. Which messages mention somebody is kept by user, but for
// messages that mention very many at once: those are kept by crowd, once for all messages that mention the same people, as
// a group does until somebody joins or leaves.

// bulkMention is people that messages mention, all of them together.
type bulkMention struct {
	users    []UserID // sortUnique; shared with the messages' rows
	messages ids.Set
}

// bulkMentionSize is from how many people on a list of mentions is a crowd.
const bulkMentionSize = 500

// bulkMentions is all of them by a sum of their users.
type bulkMentions map[uint64][]*bulkMention

func (x bulkMentions) find(users []UserID) (sum uint64, c *bulkMention) {
	for _, u := range users {
		sum = (sum ^ uint64(u)) * 1099511628211
	}
	for _, c := range x[sum] {
		if slices.Equal(c.users, users) {
			return sum, c
		}
	}
	return sum, nil
}

// indexMentions notes that a message mentions users, and returns them as they are kept.
func (x *indexes) indexMentions(users []UserID, id MessageID) []UserID {
	if len(users) < bulkMentionSize {
		for _, u := range users {
			x.addMessage(openSet(x.mentioned, u), id)
		}
		return users
	}
	sum, c := x.crowds.find(users)
	if c == nil {
		c = &bulkMention{users: users}
		x.crowds[sum] = append(x.crowds[sum], c)
	}
	c.messages.Add(int64(id))
	return c.users
}

// unindexMentions takes it back.
func (x *indexes) unindexMentions(users []UserID, id MessageID) {
	if len(users) < bulkMentionSize {
		for _, u := range users {
			openSet(x.mentioned, u).Remove(int64(id))
		}
		return
	}
	sum, c := x.crowds.find(users)
	if c == nil {
		return // the same people are mentioned in two ways
	}
	if c.messages.Remove(int64(id)); c.messages.Empty() {
		if x.crowds[sum] = slices.DeleteFunc(x.crowds[sum], func(o *bulkMention) bool { return o == c }); len(x.crowds[sum]) == 0 {
			delete(x.crowds, sum)
		}
	}
}

// messagesMentioning is the messages that mention somebody, by name, by group or as one who took part in a topic. It must not be
// changed.
func (x *indexes) messagesMentioning(u UserID) ids.Set {
	sets := []ids.Set{findSet(x.mentioned, u)}
	for _, list := range x.crowds {
		for _, c := range list {
			if containsSorted(c.users, u) {
				sets = append(sets, c.messages)
			}
		}
	}
	if len(sets) == 1 {
		return sets[0]
	}
	return ids.Union(sets...)
}

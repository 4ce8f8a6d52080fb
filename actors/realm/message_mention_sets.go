package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// A message to a group of 10,000 users mentions each of them. The index stores which messages mention a user by user.
// Messages that mention very many users at once are the exception: they are stored by the list of users. Messages share
// this list as long as the group's members do not change.

// bulkMention is a list of users and the messages that mention all of them.
type bulkMention struct {
	users    []UserID // ascending; shared with the messages' rows
	messages ids.Set
}

// bulkMentionSize is the length from which a list of mentioned users is a bulkMention.
const bulkMentionSize = 500

// bulkMentions has the lists by a checksum of their users.
type bulkMentions map[uint64][]*bulkMention

// find returns the bulkMention with exactly these users, or nil, and the checksum of the users.
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

// indexMentions records in the index that a message mentions users, which ascend. It returns the list to store in the
// message's row: an equal list that is already stored, if there is one.
func (x *indexes) indexMentions(users []UserID, id MessageID) []UserID {
	if len(users) < bulkMentionSize {
		for _, u := range users {
			x.addMessage(openSet(x.mentioned, u), id)
		}
		return users
	}
	sum, c := x.bulkMentions.find(users)
	if c == nil {
		c = &bulkMention{users: users}
		x.bulkMentions[sum] = append(x.bulkMentions[sum], c)
	}
	c.messages.Add(int64(id))
	return c.users
}

// unindexMentions undoes indexMentions.
func (x *indexes) unindexMentions(users []UserID, id MessageID) {
	if len(users) < bulkMentionSize {
		for _, u := range users {
			openSet(x.mentioned, u).Remove(int64(id))
		}
		return
	}
	sum, c := x.bulkMentions.find(users)
	if c == nil {
		return // a message may mention the same users in two ways: the first call removed it
	}
	if c.messages.Remove(int64(id)); c.messages.Empty() {
		rest := slices.DeleteFunc(x.bulkMentions[sum], func(other *bulkMention) bool { return other == c })
		if x.bulkMentions[sum] = rest; len(rest) == 0 {
			delete(x.bulkMentions, sum)
		}
	}
}

// messagesMentioning returns the messages that mention a user by name, by a group or as a participant of a topic. The
// set is shared: read only.
func (x *indexes) messagesMentioning(u UserID) ids.Set {
	sets := []ids.Set{findSet(x.mentioned, u)}
	for _, list := range x.bulkMentions {
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

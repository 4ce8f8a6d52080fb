package realm

import "slices"

// A message to a group of ten thousand mentions each of them. Which messages mention somebody is kept by user, but for
// messages that mention very many at once: those are kept by crowd, once for all messages that mention the same people, as
// a group does until somebody joins or leaves.

// crowd is people that messages mention, all of them together.
type crowd struct {
	users    []UserID // ascending; shared with the messages' rows
	messages Set
}

// manyMentioned is from how many people on a list of mentions is a crowd.
const manyMentioned = 500

// crowds is all of them by a sum of their users.
type crowds map[uint64][]*crowd

func (x crowds) find(users []UserID) (sum uint64, c *crowd) {
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

// mention notes that a message mentions users, and returns them as they are kept.
func (x *indexes) mention(users []UserID, id MessageID) []UserID {
	if len(users) < manyMentioned {
		for _, u := range users {
			x.put(setOf(x.mentioned, u), id)
		}
		return users
	}
	sum, c := x.crowds.find(users)
	if c == nil {
		c = &crowd{users: users}
		x.crowds[sum] = append(x.crowds[sum], c)
	}
	c.messages.Add(int64(id))
	return c.users
}

// unmention takes it back.
func (x *indexes) unmention(users []UserID, id MessageID) {
	if len(users) < manyMentioned {
		for _, u := range users {
			setOf(x.mentioned, u).Remove(int64(id))
		}
		return
	}
	sum, c := x.crowds.find(users)
	if c == nil {
		return // the same people are mentioned in two ways
	}
	if c.messages.Remove(int64(id)); c.messages.Empty() {
		if x.crowds[sum] = slices.DeleteFunc(x.crowds[sum], func(o *crowd) bool { return o == c }); len(x.crowds[sum]) == 0 {
			delete(x.crowds, sum)
		}
	}
}

// mentioning is the messages that mention somebody, by name, by group or as one who took part in a topic. It must not be
// changed.
func (x *indexes) mentioning(u UserID) Set {
	sets := []Set{setIn(x.mentioned, u)}
	for _, list := range x.crowds {
		for _, c := range list {
			if contains(c.users, u) {
				sets = append(sets, c.messages)
			}
		}
	}
	if len(sets) == 1 {
		return sets[0]
	}
	return Either(sets...)
}

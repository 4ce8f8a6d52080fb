package realm

import "parley/actors/realm/ids"

// Every event is sent to an audience: the users that the event is for and that have an event queue when the fact is
// applied. A user with a queue is called connected here. A user without a queue needs no event, because the next
// registration returns the new state.
//
// The functions that return audiences follow one scheme, which TestAudienceFunctions checks:
//
//   - The name is <who>Audience.
//   - The function is in the file <chapter>_audience.go. The general functions are in this file.
//   - The result contains connected users only, ascending, each once.
//   - The caller must not change the result: a cache or another notice may share it.
//
// Helpers that return a set or a predicate have other names. The test lists them, with the reason why they are in such
// a file.

// everyoneAudience returns all connected users.
func (r *Realm) everyoneAudience() []UserID { return ids.IDs[UserID](r.index.usersWithQueues) }

// usersAudience returns those of the given users that are connected, in the given order.
func (r *Realm) usersAudience(ids ...UserID) []UserID {
	var out []UserID
	for i, id := range ids {
		if r.index.usersWithQueues.Has(int64(id)) {
			if out == nil {
				out = make([]UserID, 0, len(ids)-i)
			}
			out = append(out, id)
		}
	}
	return out
}

// matchingAudience returns the connected users for which match returns true. It looks at every connected user, so
// channel_audience.go combines sets instead.
func (r *Realm) matchingAudience(match func(u *User) bool) []UserID {
	var out []UserID
	r.index.usersWithQueues.Each(func(id int64) bool {
		if u := r.users.find(UserID(id)); u != nil && match(u) {
			out = append(out, u.ID)
		}
		return true
	})
	return out
}

// membersAudience returns the connected users that are not guests.
func (r *Realm) membersAudience() []UserID {
	return r.matchingAudience(func(u *User) bool { return !u.IsGuest() })
}

// excludeUsers returns a copy of a list of users without some of them. The list itself may be shared and is not
// changed.
func excludeUsers(to []UserID, ids ...UserID) []UserID {
	var out []UserID
	for _, u := range to {
		skip := false
		for _, id := range ids {
			skip = skip || u == id
		}
		if !skip {
			out = append(out, u)
		}
	}
	return out
}

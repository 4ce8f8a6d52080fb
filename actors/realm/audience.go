package realm

import "parley/actors/realm/ids"

// Every event is sent to an audience: the users that are meant and that have an event queue when the fact is applied.
// Such a user is called connected here. A user without a queue needs no event: the next registration returns the new
// state.
//
// One scheme holds for all of them, and TestAudienceFunctions checks it:
//
//   - A function that returns an audience is named <who>Audience. It returns connected users only, ascending, each
//     once.
//   - It is in a file <chapter>_audience.go; the general ones are in this file.
//   - The caller must not change the result: it may be shared with a cache or with another notice.
//   - A helper that returns a set, or a predicate, is named otherwise, and the test has the reason why it is in the
//     file.

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
func (r *Realm) matchingAudience(fn func(u *User) bool) []UserID {
	var out []UserID
	r.index.usersWithQueues.Each(func(id int64) bool {
		if u := r.users.find(UserID(id)); u != nil && fn(u) {
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

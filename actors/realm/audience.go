package realm

import "parley/actors/realm/ids"

// The audiences of events: users that are meant and have a queue at that moment.

// everyoneAudience is every listening user.
func (r *Realm) everyoneAudience() []UserID { return ids.IDs[UserID](r.index.usersWithQueues) }

// usersAudience is the user alone, if listening.
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

// matchingAudience is every listening user for whom fn holds.
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

// membersAudience is every listening user that is not a guest.
func (r *Realm) membersAudience() []UserID {
	return r.matchingAudience(func(u *User) bool { return !u.IsGuest() })
}

// canSeeUserAudience is every listening user who may know this one.
func (r *Realm) canSeeUserAudience(u *User) []UserID {
	if !r.GuestsLimited() {
		return r.everyoneAudience()
	}
	return r.matchingAudience(func(v *User) bool { return r.maySeeUser(v, u) })
}

// cannotSeeUserAudience is every listening user who may not know this one.
func (r *Realm) cannotSeeUserAudience(u *User) []UserID {
	if !r.GuestsLimited() {
		return nil
	}
	return r.matchingAudience(func(v *User) bool { return !r.maySeeUser(v, u) })
}

// excludeUsers leaves some users out of an audience; the audience itself is shared and stays as it is.
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

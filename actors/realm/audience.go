package realm

// The audiences of events: users that are meant and have a queue at that moment.

// everyone is every listening user.
func (r *Realm) everyone() []UserID { return IDs[UserID](r.by.listening) }

// only is the user alone, if listening.
func (r *Realm) only(ids ...UserID) []UserID {
	var out []UserID
	for i, id := range ids {
		if r.by.listening.Has(int64(id)) {
			if out == nil {
				out = make([]UserID, 0, len(ids)-i)
			}
			out = append(out, id)
		}
	}
	return out
}

// where is every listening user for whom fn holds.
func (r *Realm) where(fn func(u *User) bool) []UserID {
	var out []UserID
	r.by.listening.Each(func(id int64) bool {
		if u := r.users.find(UserID(id)); u != nil && fn(u) {
			out = append(out, u.ID)
		}
		return true
	})
	return out
}

// members is every listening user that is not a guest.
func (r *Realm) members() []UserID { return r.where(func(u *User) bool { return !u.IsGuest() }) }

// whoSee is every listening user who may know this one.
func (r *Realm) whoSee(u *User) []UserID {
	if !r.GuestsLimited() {
		return r.everyone()
	}
	return r.where(func(v *User) bool { return r.maySee(v, u) })
}

// strangersTo is every listening user who may not know this one.
func (r *Realm) strangersTo(u *User) []UserID {
	if !r.GuestsLimited() {
		return nil
	}
	return r.where(func(v *User) bool { return !r.maySee(v, u) })
}

// without leaves some users out of an audience; the audience itself is shared and stays as it is.
func without(to []UserID, ids ...UserID) []UserID {
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

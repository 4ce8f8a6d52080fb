package realm

// The audiences of events about users. Only an organization that limits what guests see makes a difference between
// them: otherwise all users can see each other.

// canSeeUserAudience returns the connected users that are allowed to see u.
func (r *Realm) canSeeUserAudience(u *User) []UserID {
	if !r.GuestsLimited() {
		return r.everyoneAudience()
	}
	return r.matchingAudience(func(v *User) bool { return r.maySeeUser(v, u) })
}

// cannotSeeUserAudience returns the connected users that are not allowed to see u: only guests, and only if the
// organization limits what guests see.
func (r *Realm) cannotSeeUserAudience(u *User) []UserID {
	if !r.GuestsLimited() {
		return nil
	}
	return r.matchingAudience(func(v *User) bool { return !r.maySeeUser(v, u) })
}

// botAudience returns the connected users that receive the events of a bot: its owner and the administrators.
func (r *Realm) botAudience(owner UserID) []UserID {
	return r.matchingAudience(func(u *User) bool { return u.IsAdmin() || u.ID == owner })
}

// humanAdminsAudience returns the connected administrators that are not bots.
func (r *Realm) humanAdminsAudience() []UserID {
	return r.matchingAudience(func(u *User) bool { return u.IsAdmin() && !u.IsBot() })
}

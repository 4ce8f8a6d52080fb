package realm

// Grant is a command of the operator: it gives an account the rights that no role includes.
type Grant struct {
	User                      UserID
	CreateUsers, ChangeEmails bool
}

func (c Grant) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	if t.Find(c.User) == nil {
		return Done{}, errNoUser()
	}
	t.Record(&Granted{c.User, c.CreateUsers, c.ChangeEmails})
	return Done{}, nil
}

// Granted sets the special rights of an account. No client is notified.
type Granted struct {
	ID                        UserID
	CreateUsers, ChangeEmails bool
}

func (f *Granted) apply(r *Realm) {
	u := r.users.change(f.ID)
	u.MayCreateUsers, u.MayChangeEmails = f.CreateUsers, f.ChangeEmails
}

func (f *Granted) notices(*Realm) []Notice { return nil }

// outranks reports whether an account has a role or a granted right that another account lacks. A user that is
// outranked by a bot must not get its key or decide what it does: the user would gain the bot's rights.
func (u *User) outranks(other *User) bool {
	return u.Role < other.Role || u.MayCreateUsers && !other.MayCreateUsers ||
		u.MayChangeEmails && !other.MayChangeEmails
}

// checkRank refuses callers that the account outranks.
func (v View) checkRank(u *User) error {
	me := v.Me()
	switch {
	case v.System:
		return nil
	case me == nil:
		return errPermission()
	case u.Role == Owner && me.Role == Administrator:
		return errNotOwner()
	case u.outranks(me):
		return errPermission()
	}
	return nil
}

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

func (f *Granted) tell(*Realm) []Notice { return nil }

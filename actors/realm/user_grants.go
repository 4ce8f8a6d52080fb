package realm

// Grant is the operator's way to give an account the rights that no role carries.
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

// Granted says which special rights an account has now. Nobody hears of it.
type Granted struct {
	ID                        UserID
	CreateUsers, ChangeEmails bool
}

func (f *Granted) apply(r *Realm) {
	u := r.users.change(f.ID)
	u.MayCreateUsers, u.MayChangeEmails = f.CreateUsers, f.ChangeEmails
}

func (f *Granted) tell(*Realm) []Notice { return nil }

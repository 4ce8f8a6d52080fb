package realm

import "slices"

// A second factor proves at a login that the user has a device: an app that shows a new code every 30 seconds (TOTP).
// Recovery codes replace a lost device, each once. The realm knows neither the secret, which the server has sealed, nor
// the recovery codes, but it knows which codes were used.

// MaxRecoveryCodes limits the recovery codes of one user.
const MaxRecoveryCodes = 10

// Factor is the row with the second factor of one user.
type Factor struct {
	Secret   string // sealed: nodes without the server's secret cannot read it; "" for a user with passkeys only
	Since    int64  // Unix seconds
	Step     int64  // number of the 30 seconds whose code was used last; earlier codes are refused
	Recovery [][32]byte
}

// FactorOf returns the second factor of a user, or nil. It must not be modified.
func (r *Realm) FactorOf(u UserID) *Factor { return r.small.factors.find(u) }

// ErrFactor refuses a wrong code of a second factor.
func ErrFactor() error {
	return Refuse(Unauthenticated, "AUTHENTICATION_FAILED", "This code is wrong, or it was used already.")
}

// humanForFactor returns an active user whose second factor the server may change.
func (t *Turn) humanForFactor(id UserID) (*User, error) {
	u := t.Find(id)
	switch {
	case !t.System || u == nil || u.System || u.IsBot():
		return nil, errPermission()
	case !u.Active:
		return nil, errDeactivated()
	}
	return u, nil
}

// SetFactor asks to store the app of a user that has none. The server sends it after it has checked a code of
// the new one, and who asks.
type SetFactor struct {
	User   UserID
	Factor Factor // without Since
}

func (c SetFactor) Decide(t *Turn) (Done, error) {
	if _, err := t.humanForFactor(c.User); err != nil {
		return Done{}, err
	}
	if f := t.FactorOf(c.User); f != nil && f.Secret != "" { // its user has to remove it first, with a code
		return Done{}, BadRequest("This account has a second factor already.")
	}
	if c.Factor.Secret == "" || len(c.Factor.Recovery) > MaxRecoveryCodes {
		return Done{}, ErrFactor()
	}
	f := c.Factor
	f.Since = t.Now
	t.Record(&FactorSet{c.User, f})
	return Done{}, nil
}

// UseFactor records that a user has proved the second factor. The server sends it after it has checked a code, with the
// step of the code; or with the hash of a recovery code. Each works once.
type UseFactor struct {
	User     UserID
	Step     int64
	Recovery [32]byte // or zero
}

func (c UseFactor) Decide(t *Turn) (Done, error) {
	if _, err := t.humanForFactor(c.User); err != nil {
		return Done{}, err
	}
	f := t.FactorOf(c.User)
	recovery := c.Recovery != [32]byte{}
	if f == nil || recovery && !slices.Contains(f.Recovery, c.Recovery) ||
		!recovery && (f.Secret == "" || c.Step <= f.Step) {
		return Done{}, ErrFactor()
	}
	t.Record(&FactorUsed{c.User, c.Step, c.Recovery})
	return Done{}, nil
}

// RemoveFactor asks to end all second factors of a user that has lost them. Administrators remove them for users that
// do not outrank them; the server removes them for the operator, and for the user after a code. The user gets a
// message.
type RemoveFactor struct{ User UserID }

func (c RemoveFactor) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	switch {
	case u == nil || u.System || u.IsBot():
		return Done{}, errNoUser()
	case t.System:
	case t.User == u.ID:
		return Done{}, errPermission() // a session alone must not remove what protects the account
	default:
		if _, err := t.RequireAdmin(); err != nil {
			return Done{}, err
		}
		if err := t.checkRank(u); err != nil {
			return Done{}, err
		}
	}
	if !t.HasFactor(u.ID) {
		return Done{}, Missing("This account has no second factor.")
	}
	t.Record(&FactorRemoved{User: u.ID, By: t.User, At: t.Now})
	if u.Active {
		text := "The second factor of your account was removed. If you did not ask for that, tell an administrator " +
			"at once."
		if !t.System {
			text = t.SilentMention(t.User) + " has removed the second factor of your account. If you did not ask for " +
				"that, tell another administrator at once."
		}
		t.NotifyUsers(text, u.ID)
	}
	return Done{}, nil
}

// FactorSet says that a user has a new second factor.
type FactorSet struct {
	User   UserID
	Factor Factor
}

func (f *FactorSet) apply(r *Realm) {
	x := f.Factor
	r.small.factors.put(f.User, &x)
}

func (*FactorSet) notices(*Realm) []Notice { return nil }

// FactorUsed says that a code of a user's second factor was used.
type FactorUsed struct {
	User     UserID
	Step     int64
	Recovery [32]byte // hash of the recovery code, or zero
}

func (f *FactorUsed) apply(r *Realm) {
	x := r.small.factors.change(f.User)
	x.Step = max(x.Step, f.Step)
	x.Recovery = slices.DeleteFunc(slices.Clone(x.Recovery), func(h [32]byte) bool { return h == f.Recovery })
}

func (*FactorUsed) notices(*Realm) []Notice { return nil }

// FactorRemoved says that a user has no second factor any more. It is the record of the user that has removed it.
type FactorRemoved struct {
	User, By UserID // By is 0 for the server
	At       int64
}

func (f *FactorRemoved) apply(r *Realm)        { r.removeFactors(f.User) }
func (*FactorRemoved) notices(*Realm) []Notice { return nil }

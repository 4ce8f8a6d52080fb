package realm

import (
	"iter"
	"slices"
)

// Account is the part of a user that login needs. It is never changed after it was published: a change makes a new one.
type Account struct {
	Realm    ID
	User     UserID
	Charged  UserID // the account under which every bound counts: see Realm.ChargedUser
	Email    string
	Keys     [][32]byte // hashes of the API keys that are valid
	Password string     // Argon2id in PHC form
	Active   bool
	Bot      BotType
	Role     Role
	KeyInfo  []KeyInfo        // additional API keys, also expired ones
	Sessions []BrowserSession // in browsers
}

// FindSession returns the browser session whose secret has that hash, or nil. It must not be modified.
func (a *Account) FindSession(hash [32]byte) *BrowserSession {
	for i := range a.Sessions {
		if a.Sessions[i].Hash == hash {
			return &a.Sessions[i]
		}
	}
	return nil
}

// AdditionalKey returns the additional API key with a hash, or nil if the account has none.
func (a *Account) AdditionalKey(hash [32]byte) *KeyInfo { return findKey(a.KeyInfo, hash) }

// Hashes returns the hashes of all API keys of the account.
func (a *Account) Hashes() iter.Seq[[32]byte] {
	return func(yield func([32]byte) bool) {
		for _, h := range a.Keys {
			if !yield(h) {
				return
			}
		}
		for _, k := range a.KeyInfo {
			if !yield(k.Hash) {
				return
			}
		}
	}
}

// hasKey reports whether an API key of the account with that hash is valid at a time in Unix seconds.
func (u *User) hasKey(hash [32]byte, now int64) bool {
	k := findKey(u.KeyInfo, hash)
	return k != nil && !k.Expired(now) || slices.Contains(u.Keys, hash)
}

// ErrNotLoggedIn refuses a request without credentials, and one whose browser session has ended.
func ErrNotLoggedIn() error {
	return Refuse(Unauthenticated, "UNAUTHORIZED", "Not logged in: API authentication or user session required")
}

// CheckCredentials refuses callers whose API key was revoked or has expired, whose browser session ended, whose account
// was deactivated, or whose organization was closed after the request had been authenticated. A request can take
// minutes, such as an upload, and must not act with rights that were withdrawn meanwhile. The texts are those of a
// request that begins now.
func (r *Realm) CheckCredentials(c Caller, now int64) error {
	if c.System {
		return nil
	}
	if c.Session != ([32]byte{}) && r.browserSessionOf(c.User, c.Session, now) == nil {
		return ErrNotLoggedIn()
	}
	if c.Key == ([32]byte{}) {
		return nil
	}
	u, msg := r.users.find(c.User), ""
	switch {
	case r.Org().Deactivated:
		msg = "This organization has been deactivated"
	case u == nil || !u.hasKey(c.Key, now):
		msg = "Invalid API key"
	case !u.Active:
		msg = "Account is deactivated"
	default:
		return nil
	}
	return Refuse(Unauthenticated, "UNAUTHORIZED", msg)
}

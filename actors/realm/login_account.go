package realm

import "slices"

// Account is the part of a user that login needs. It is never changed after it was published: a change makes a new one.
type Account struct {
	Realm    ID
	User     UserID
	Email    string
	Keys     [][32]byte // hashes of the API keys that are valid
	Password string     // Argon2id in PHC form
	Active   bool
	Bot      BotType
	Role     Role
}

// CheckCredentials refuses callers whose API key was revoked, whose account was deactivated, or whose organization was
// closed after the request had been authenticated. A request can take minutes, such as an upload, and must not act with
// rights that were withdrawn meanwhile. The texts are those of a request that begins now.
func (r *Realm) CheckCredentials(c Caller) error {
	if c.System || c.Key == ([32]byte{}) {
		return nil
	}
	u, msg := r.users.find(c.User), ""
	switch {
	case r.Org().Deactivated:
		msg = "This organization has been deactivated"
	case u == nil || !slices.Contains(u.Keys, c.Key):
		msg = "Invalid API key"
	case !u.Active:
		msg = "Account is deactivated"
	default:
		return nil
	}
	return Refuse(Unauthenticated, "UNAUTHORIZED", msg)
}

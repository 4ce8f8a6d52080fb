package realm

import (
	"slices"
	"strings"
)

// An external identity is an account of a person at a login provider: an OpenID Connect provider, a SAML server or a
// directory. The issuer and the subject identify it; both never change. Addresses and names of the provider identify
// nobody, because providers give them to other people. A user can have several identities.

const (
	// MaxIdentities limits the identities of one account: more than one person has at all login providers of a company.
	MaxIdentities = 20
	// maxIssuerBytes limits the name of a provider, which is a URL.
	maxIssuerBytes = 512
	// maxSubjectBytes limits a subject: 255 characters in OpenID Connect, 256 in SAML.
	maxSubjectBytes = 256
)

// IdentityName names an account at a login provider.
type IdentityName struct{ Issuer, Subject string }

// valid reports whether a name can be stored: both parts have text of a bounded length.
func (n IdentityName) valid() bool {
	return n.Issuer != "" && n.Subject != "" && len(n.Issuer) <= maxIssuerBytes && len(n.Subject) <= maxSubjectBytes &&
		strings.ToValidUTF8(n.Issuer+n.Subject, "") == n.Issuer+n.Subject
}

// Identity is an identity with which a user can log in.
type Identity struct {
	IdentityName
	Linked int64 // Unix seconds
	// Role and Groups were given to the user by the rules of the provider; 0: no role.
	Role   Role
	Groups []GroupID
	// Suspended says that the provider has deactivated the account.
	Suspended bool
}

// Identities is the row with the identities of one user, oldest first.
type Identities struct{ List []Identity }

// IdentitiesOf returns the identities of a user, oldest first. The list is never modified.
func (r *Realm) IdentitiesOf(u UserID) []Identity {
	if l := r.small.identities.find(u); l != nil {
		return l.List
	}
	return nil
}

// FindByIdentity returns the user with an identity, or nil. Only the server asks for it, in a login.
func (v View) FindByIdentity(n IdentityName) *User {
	u, found := v.small.identityOwners[n]
	if !v.System || !found {
		return nil
	}
	return v.Find(u)
}

func errBadIdentity() *Refusal { return BadRequest("The login provider sent no valid identity.") }

func errIdentityTaken() *Refusal {
	return BadRequest("This login is already connected with another account.")
}

// LinkIdentity asks to let a user log in with an identity. The server sends it after it has checked the identity, and
// the password or the recent login of the user.
type LinkIdentity struct {
	User     UserID
	Identity IdentityName
	Password string // the hash that the password was checked against, or "" for a user with a recent login
}

func (c LinkIdentity) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	owner, taken := t.small.identityOwners[c.Identity]
	switch {
	case !t.System || u == nil || u.System || u.IsBot():
		return Done{}, errPermission()
	case !c.Identity.valid():
		return Done{}, errBadIdentity()
	case taken && owner != u.ID:
		return Done{}, errIdentityTaken()
	case !taken && len(t.IdentitiesOf(u.ID)) >= MaxIdentities:
		return Done{}, BadRequest("The account has too many connected logins.")
	}
	if _, err := (LogIn{User: c.User, Password: c.Password}).Decide(t); err != nil {
		return Done{}, err
	}
	if !taken {
		t.Record(&IdentityLinked{User: u.ID, Identity: Identity{IdentityName: c.Identity, Linked: t.Now}})
	}
	return Done{}, nil
}

// UnlinkIdentity asks to end that a user can log in with an identity. Users unlink their own, the server any.
type UnlinkIdentity struct {
	User     UserID
	Identity IdentityName
}

func (c UnlinkIdentity) Decide(t *Turn) (Done, error) {
	u := t.Find(c.User)
	if u == nil || !t.System && t.User != c.User {
		return Done{}, errPermission()
	}
	list := t.IdentitiesOf(u.ID)
	if !slices.ContainsFunc(list, func(x Identity) bool { return x.IdentityName == c.Identity }) {
		return Done{}, Missing("There is no such login.")
	}
	if !t.System && len(list) == 1 && (u.Password == "" || !t.PasswordLogin()) {
		return Done{}, BadRequest("This is the only way to log in to the account.")
	}
	t.takeGivenRights(u.ID, c.Identity)
	t.Record(&IdentityUnlinked{User: u.ID, Identity: c.Identity})
	return Done{}, nil
}

// SignUpWithIdentity creates the account of a person that has an identity, and links both. The rules are those of a
// sign-up with a confirmed address; with an invitation they are the invitation's. The account has no password.
type SignUpWithIdentity struct {
	Identity IdentityName
	// Email is an address that the provider has verified. An invitation by email has its own address.
	Email, Name string
	Invite      [32]byte // hash of the token of an invitation, or zero
}

func (c SignUpWithIdentity) Decide(t *Turn) (id UserID, err error) {
	_, taken := t.small.identityOwners[c.Identity]
	switch {
	case !t.System:
		return 0, errPermission()
	case !c.Identity.valid():
		return 0, errBadIdentity()
	case taken:
		return 0, errIdentityTaken()
	}
	if c.Invite != ([32]byte{}) {
		id, err = AcceptInvite{Hash: c.Invite, Email: c.Email, Name: c.Name}.Decide(t)
	} else if err = t.checkSignUp(c.Email); err == nil {
		if id, err = (CreateUser{Email: c.Email, Name: c.Name}).Decide(t); err == nil {
			t.sendWelcomeMessages(id, nil)
		}
	}
	if err != nil {
		return 0, err
	}
	t.Record(&IdentityLinked{User: id, Identity: Identity{IdentityName: c.Identity, Linked: t.Now}})
	return id, nil
}

// IdentityLinked says that a user can log in with an identity from now on.
type IdentityLinked struct {
	User     UserID
	Identity Identity
}

func (f *IdentityLinked) apply(r *Realm) {
	l := r.small.identities.ensure(f.User)
	l.List = append(slices.Clone(l.List), f.Identity)
	r.small.identityOwners[f.Identity.IdentityName] = f.User
}

func (*IdentityLinked) notices(*Realm) []Notice { return nil }

// IdentityUnlinked says that a user cannot log in with an identity any more.
type IdentityUnlinked struct {
	User     UserID
	Identity IdentityName
}

func (f *IdentityUnlinked) apply(r *Realm) {
	l := r.small.identities.change(f.User)
	l.List = slices.DeleteFunc(slices.Clone(l.List), func(x Identity) bool { return x.IdentityName == f.Identity })
	delete(r.small.identityOwners, f.Identity)
	if len(l.List) == 0 {
		r.small.identities.remove(f.User)
	}
}

func (*IdentityUnlinked) notices(*Realm) []Notice { return nil }

// eraseIdentities removes all identities of a user.
func (r *Realm) eraseIdentities(u UserID) {
	list := r.IdentitiesOf(u)
	for _, x := range list {
		delete(r.small.identityOwners, x.IdentityName)
	}
	if len(list) > 0 {
		r.small.identities.remove(u)
	}
}

// rebuildIdentityOwners rebuilds the index of identities from the rows.
func (r *Realm) rebuildIdentityOwners() {
	for u, l := range r.small.identities.all() {
		for _, x := range l.List {
			r.small.identityOwners[x.IdentityName] = u
		}
	}
}

// ownersByIdentity returns the index of identities in a form for tests.
func (n *smallTables) ownersByIdentity() map[string]UserID {
	out := map[string]UserID{}
	for name, u := range n.identityOwners {
		out[name.Issuer+" "+name.Subject] = u
	}
	return out
}

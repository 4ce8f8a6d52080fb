package realm

import (
	"slices"
	"strings"
)

// SCIM is the protocol with which a login provider makes and deactivates the accounts of its people, and tells who is
// in which group (RFC 7643, RFC 7644). Its client has a token of the operator. The token can never change an owner.

// scimLevel is the rule level from which on the journal may have facts about SCIM.
const scimLevel uint16 = 5

const (
	// MaxScimTokens limits the tokens of an organization: more than it has login providers.
	MaxScimTokens = 20
	// maxScimTokenName limits the name of a token in code points.
	maxScimTokenName = 100
	// A token has 40 random characters, about 238 bits, after a prefix by which programs that look for secrets know it.
	scimTokenPrefix = "scim_"
	scimTokenLength = 40
	// ScimClient is the beginning of the name of clients in the audit log; the number of the token follows.
	ScimClient = "SCIM token "
)

// The rights of a token. Each token may read.
const (
	ScimUsers  = "users"  // make, change and deactivate accounts
	ScimGroups = "groups" // make, change and remove user groups
)

// ScimRights are the rights that a token can have.
var ScimRights = []string{ScimGroups, ScimUsers}

// ScimToken is the row of one token. Its key is its number.
type ScimToken struct {
	Hash             [32]byte // of the token
	Name             string
	Rights           []string
	Created, Expires int64 // Unix seconds; Expires is 0 for a token without an end
}

// IsValid reports whether the token works at a time.
func (t *ScimToken) IsValid(now int64) bool { return t.Expires == 0 || now < t.Expires }

// NumberedScimToken is a token with its number.
type NumberedScimToken struct {
	ID int64
	ScimToken
}

// ScimTokens returns the tokens by number, also those that have expired. Only the server asks for it.
func (v View) ScimTokens() (out []NumberedScimToken) {
	if !v.System {
		return nil
	}
	for _, id := range v.small.scimTokens.keys() {
		out = append(out, NumberedScimToken{id, *v.small.scimTokens.must(id)})
	}
	return out
}

// HasScimTokens reports whether an identity provider has a token with which it reads and changes the users.
func (v View) HasScimTokens() bool {
	for _, id := range v.small.scimTokens.keys() {
		if v.small.scimTokens.must(id).IsValid(v.Now) {
			return true
		}
	}
	return false
}

// FindScimToken returns the valid token with a hash. Only the server asks for it.
func (v View) FindScimToken(hash [32]byte) (NumberedScimToken, bool) {
	for _, t := range v.ScimTokens() {
		if t.Hash == hash && t.IsValid(v.Now) {
			return t, true
		}
	}
	return NumberedScimToken{}, false
}

// NewScimToken is a token that was made. Its secret is shown once.
type NewScimToken struct {
	NumberedScimToken
	Secret string
}

// AddScimToken asks to make a token. Only the operator may.
type AddScimToken struct {
	Name     string
	Rights   []string
	Lifetime int64 // seconds; 0: the token does not expire
}

func (c AddScimToken) Decide(t *Turn) (NewScimToken, error) {
	x := ScimToken{Name: strings.TrimSpace(c.Name), Created: t.Now,
		Rights: slices.Compact(slices.Sorted(slices.Values(c.Rights)))}
	_, printable := findSpoofing(x.Name)
	switch {
	case !t.System:
		return NewScimToken{}, errPermission()
	case x.Name == "" || runeCount(x.Name) > maxScimTokenName || !printable:
		return NewScimToken{}, BadRequest("The name of a token has 1 to %d characters.", maxScimTokenName)
	case slices.ContainsFunc(x.Rights, func(r string) bool { return !slices.Contains(ScimRights, r) }):
		return NewScimToken{}, BadRequest("The rights of a token are: %s.", strings.Join(ScimRights, ", "))
	case c.Lifetime != 0 && (c.Lifetime < MinKeyLifetime || c.Lifetime > MaxKeyLifetime):
		return NewScimToken{}, BadRequest("The lifetime of a token must be between %d and %d seconds.", MinKeyLifetime,
			MaxKeyLifetime)
	case t.small.scimTokens.size() >= MaxScimTokens:
		return NewScimToken{}, BadRequest("The organization has %d tokens; revoke one of them.", MaxScimTokens)
	}
	if c.Lifetime != 0 {
		x.Expires = t.Now + c.Lifetime
	}
	secret := scimTokenPrefix + t.Token(scimTokenLength)
	x.Hash = t.Hash(secret)
	id := t.nextID("scim_token")
	t.Record(&ScimTokenAdded{ID: id, Token: x})
	return NewScimToken{NumberedScimToken{id, x}, secret}, nil
}

// RevokeScimToken asks to remove a token. Only the operator may.
type RevokeScimToken struct{ ID int64 }

func (c RevokeScimToken) Decide(t *Turn) (Done, error) {
	switch {
	case !t.System:
		return Done{}, errPermission()
	case t.small.scimTokens.find(c.ID) == nil:
		return Done{}, Missing("There is no such token.")
	}
	t.Record(&ScimTokenRevoked{ID: c.ID})
	return Done{}, nil
}

// ScimTokenAdded says that there is a new token.
type ScimTokenAdded struct {
	ID    int64
	Token ScimToken
}

func (f *ScimTokenAdded) apply(r *Realm) {
	x := f.Token
	r.small.scimTokens.put(f.ID, &x)
	r.reserveID("scim_token", f.ID)
}

func (*ScimTokenAdded) notices(*Realm) []Notice { return nil }

// ScimTokenRevoked says that a token works no more.
type ScimTokenRevoked struct{ ID int64 }

func (f *ScimTokenRevoked) apply(r *Realm)        { r.small.scimTokens.remove(f.ID) }
func (*ScimTokenRevoked) notices(*Realm) []Notice { return nil }

package realm

import (
	"slices"
	"strings"
)

// The API key of an account is derived from the server's secret, the account, and its key epoch. So every login gets
// the same key, as clients expect, although only the key's hash is stored. The secret is in a file of its own;
// without it a key cannot be derived. An operator may set further keys.
//
// Beside that key an account can have additional keys, each with a label and possibly an expiry. They are random, only
// their hashes are stored, and each is revoked alone. They are an extension of the protocol. An additional key has all
// rights of the account except one: it makes no API keys of the account, because a program with a key that expires
// could otherwise give itself one that does not.

// maxAPIKeys limits the keys of an account: the derived one and those set by the operator. The oldest are removed.
const maxAPIKeys = 16

// IssueAPIKey returns the API key of an account: the caller's own, or any account's if the server asks. With Only,
// all older keys stop working.
type IssueAPIKey struct {
	User UserID
	Key  string // set by the operator, or "" for the derived key
	Only bool
}

func (c IssueAPIKey) Decide(t *Turn) (string, error) {
	u := t.Find(c.User)
	if u == nil || u.System || !t.System && t.User != c.User {
		return "", errNoUser()
	}
	if t.hasAdditionalKey() {
		return "", errKeyMakesNoKeys()
	}
	if c.Key != "" {
		t.Record(&KeyIssued{ID: u.ID, Hash: t.Hash(c.Key), Only: c.Only, Epoch: u.KeyEpoch})
		return c.Key, nil
	}
	return t.issueKey(u, c.Only), nil
}

// issueKey returns the derived key of an account. With renew it is a new one, and all older keys stop working.
func (t *Turn) issueKey(u *User, renew bool) string {
	epoch := u.KeyEpoch
	if renew {
		epoch++
		// Notifications must not reach holders of the old key.
		t.removePhones(u.ID)
	}
	key := t.env.APIKey(u.ID, epoch)
	if hash := t.Hash(key); renew || !slices.Contains(u.Keys, hash) {
		t.Record(&KeyIssued{ID: u.ID, Hash: hash, Only: renew, Epoch: epoch})
	}
	return key
}

// KeyIssued says that an account has a further API key. With Only, all older keys stop working at once.
type KeyIssued struct {
	ID    UserID
	Hash  [32]byte
	Only  bool
	Epoch int64
}

func (f *KeyIssued) apply(r *Realm) {
	u := r.users.change(f.ID)
	if f.Only {
		u.Keys, u.KeyInfo = nil, nil
	}
	u.KeyEpoch = f.Epoch
	u.Keys = append(slices.Clone(u.Keys), f.Hash)
	if n := len(u.Keys) - maxAPIKeys; n > 0 {
		u.Keys = u.Keys[n:]
	}
}

func (f *KeyIssued) notices(r *Realm) []Notice { return nil }

// Limits of additional API keys.
const (
	MaxAdditionalKeys = 20 // of an account, apart from expired ones
	MaxKeyLabel       = 60 // characters
	MinKeyLifetime    = 60 // seconds
	MaxKeyLifetime    = 10 * 366 * 24 * 3600
	// keyUseGranularity is how exactly the last use of a key is known, in seconds. Each key costs at most one fact in
	// this time.
	keyUseGranularity = 24 * 3600
)

// KeyInfo is an additional API key of an account.
type KeyInfo struct {
	ID      int64 // unique in the organization
	Hash    [32]byte
	Label   string
	Created int64     // Unix seconds
	Expires int64     // Unix seconds; 0: never
	Used    int64     // the day of the last use, as the Unix seconds of its beginning; 0: never used
	Scope   *KeyScope // nil: all rights of the account, except those of credentials
	// Granted is the lifetime in seconds of the key that an app can get in place of this one, which nobody can use; see
	// GrantKey. 0: the key can be used.
	Granted int64
	From    int64 // the granted key that an app has got this one for; 0: none
}

// Expired reports whether the key is not valid any more at a time in Unix seconds.
func (k *KeyInfo) Expired(now int64) bool { return k.Expires != 0 && k.Expires <= now }

// UseRecordDue reports whether a use at a time is on a later day than the last known one.
func (k *KeyInfo) UseRecordDue(now int64) bool { return now-now%keyUseGranularity > k.Used }

func findKey(list []KeyInfo, hash [32]byte) *KeyInfo {
	for i := range list {
		if list[i].Hash == hash {
			return &list[i]
		}
	}
	return nil
}

// hasAdditionalKey reports whether the request was sent with an additional API key.
func (v View) hasAdditionalKey() bool {
	me := v.Me()
	return !v.System && me != nil && findKey(me.KeyInfo, v.Key) != nil
}

func errKeyMakesNoKeys() *Refusal {
	return BadRequest("An additional API key cannot create API keys of its account.")
}

func errNoKey() *Refusal { return BadRequest("API key does not exist") }

// keyHolder returns the account whose additional keys the caller is allowed to list and revoke: the caller's own, a bot
// that the caller manages, and for administrators an account that does not outrank them.
func (v View) keyHolder(id UserID) (*User, error) {
	u := v.Find(id)
	switch me := v.Me(); {
	case u == nil || u.System:
		return nil, errNoUser()
	case v.System || me != nil && me.ID == u.ID:
		return u, nil
	case u.IsBot():
		return v.ManagedBot(id)
	case me == nil || !me.IsAdmin():
		return nil, errPermission()
	}
	return u, v.checkRank(u)
}

// AdditionalKeys returns the additional API keys of an account, oldest first, without their hashes.
func (v View) AdditionalKeys(id UserID) ([]KeyInfo, error) {
	u, err := v.keyHolder(id)
	if err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(slices.Clone(u.KeyInfo), func(k KeyInfo) bool { return k.Granted != 0 })
	for i := range list {
		list[i].Hash = [32]byte{}
		list[i].Scope = list[i].Scope.clone()
	}
	return list, nil
}

// AddKey asks for an additional API key of the caller's account or of a bot that the caller manages.
type AddKey struct {
	User     UserID
	Label    string
	Lifetime int64     // seconds; 0: the key never expires
	Scope    *KeyScope // nil: all rights of the account
}

// NewKey answers AddKey. The server does not know the secret afterwards.
type NewKey struct {
	KeyInfo
	Secret string
}

func (c AddKey) Decide(t *Turn) (NewKey, error) {
	k, secret, err := c.plan(t)
	if err != nil {
		return NewKey{}, err
	}
	if k.Scope != nil {
		t.Record(&ScopedKeyAdded{User: c.User, Key: k})
	} else {
		t.Record(&KeyAdded{User: c.User, Key: k})
	}
	return NewKey{k, secret}, nil
}

// apiKeyLength is the length of an API key in characters (protocol).
const apiKeyLength = 32

// plan checks the request and returns the key with its secret. It records nothing.
func (c AddKey) plan(t *Turn) (k KeyInfo, secret string, err error) {
	u, err := t.keyHolder(c.User)
	if err != nil {
		return k, "", err
	}
	label := strings.TrimSpace(c.Label)
	_, printable := findSpoofing(label)
	live := 0
	for i := range u.KeyInfo {
		if !u.KeyInfo[i].Expired(t.Now) {
			live++
		}
	}
	switch {
	case !t.System && t.User != u.ID && !u.IsBot():
		return k, "", errPermission()
	case t.User == u.ID && t.hasAdditionalKey():
		return k, "", errKeyMakesNoKeys()
	case !u.Active:
		return k, "", errDeactivated()
	case label == "":
		return k, "", BadRequest("An API key needs a label.")
	case runeCount(label) > MaxKeyLabel:
		return k, "", BadRequest("The label is too long (limit: %d characters)", MaxKeyLabel)
	case !printable:
		return k, "", BadRequest("Invalid characters in the label.")
	case c.Lifetime != 0 && (c.Lifetime < MinKeyLifetime || c.Lifetime > MaxKeyLifetime):
		return k, "", BadRequest("The lifetime of an API key must be between %d and %d seconds.", MinKeyLifetime,
			MaxKeyLifetime)
	case live >= MaxAdditionalKeys:
		return k, "", BadRequest("The account has %d additional API keys, which is the limit.", live)
	}
	scope, err := t.checkScope(c.Scope)
	if err != nil {
		return k, "", err
	}
	secret = t.Token(apiKeyLength)
	k = KeyInfo{ID: t.nextID("api_key"), Hash: t.Hash(secret), Label: label, Created: t.Now, Scope: scope}
	if c.Lifetime != 0 {
		k.Expires = t.Now + c.Lifetime
	}
	return k, secret, nil
}

// RevokeKey asks to end an additional API key.
type RevokeKey struct {
	User UserID
	Key  int64
}

func (c RevokeKey) Decide(t *Turn) (Done, error) {
	u, err := t.keyHolder(c.User)
	if err != nil {
		return Done{}, err
	}
	if !slices.ContainsFunc(u.KeyInfo, func(k KeyInfo) bool { return k.ID == c.Key }) {
		return Done{}, errNoKey()
	}
	t.Record(&KeysRevoked{User: u.ID, Keys: []int64{c.Key}})
	t.endQueuesOf(u.ID, []int64{c.Key})
	return Done{}, nil
}

// revokeAdditionalKeys ends all additional API keys of an account.
func (t *Turn) revokeAdditionalKeys(u *User) {
	var list []int64
	for _, k := range u.KeyInfo {
		list = append(list, k.ID)
	}
	if len(list) > 0 {
		t.Record(&KeysRevoked{User: u.ID, Keys: list})
		t.endQueuesOf(u.ID, list)
	}
}

// RecordKeyUse asks to store that an additional API key was used today. Callers do not wait for it: if it is refused, a
// later use is stored.
type RecordKeyUse struct {
	User UserID
	Hash [32]byte
}

func (c RecordKeyUse) Decide(t *Turn) (any, error) {
	if u := t.Find(c.User); u != nil {
		if k := findKey(u.KeyInfo, c.Hash); k != nil && k.UseRecordDue(t.Now) {
			t.Record(&KeyUsed{User: u.ID, Key: k.ID, Day: t.Now - t.Now%keyUseGranularity})
		}
	}
	return nil, nil
}

// Done implements CommandWithCallback.
func (RecordKeyUse) Done(any, error) {}

// KeyAdded says that an account has a further additional API key. The account's expired keys are forgotten.
type KeyAdded struct {
	User UserID
	Key  KeyInfo
}

func (f *KeyAdded) apply(r *Realm) {
	u := r.users.change(f.User)
	u.KeyInfo = slices.DeleteFunc(slices.Clone(u.KeyInfo), func(k KeyInfo) bool { return k.Expired(f.Key.Created) })
	u.KeyInfo = append(u.KeyInfo, f.Key)
	r.reserveID("api_key", f.Key.ID)
}
func (f *KeyAdded) notices(r *Realm) []Notice { return nil }

// KeysRevoked says that additional API keys of an account are not valid any more.
type KeysRevoked struct {
	User UserID
	Keys []int64
}

func (f *KeysRevoked) apply(r *Realm) {
	u := r.users.change(f.User)
	u.KeyInfo = slices.DeleteFunc(
		slices.Clone(u.KeyInfo),
		func(k KeyInfo) bool { return slices.Contains(f.Keys, k.ID) },
	)
}
func (f *KeysRevoked) notices(r *Realm) []Notice { return nil }

// KeyUsed says on which day an additional API key was used last.
type KeyUsed struct {
	User UserID
	Key  int64
	Day  int64
}

func (f *KeyUsed) apply(r *Realm) {
	u := r.users.change(f.User)
	u.KeyInfo = slices.Clone(u.KeyInfo)
	for i := range u.KeyInfo {
		if u.KeyInfo[i].ID == f.Key {
			u.KeyInfo[i].Used = f.Day
		}
	}
}
func (f *KeyUsed) notices(r *Realm) []Notice { return nil }

package realm

import "slices"

// The API key of an account is derived from the server's secret, the account, and its key epoch. So every login gets
// the same key, as clients expect, although only the key's hash is stored. The secret is in a file of its own;
// without it a key cannot be derived. An operator may set further keys.

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
		t.removeAllDevices(u.ID)
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
		u.Keys = nil
	}
	u.KeyEpoch = f.Epoch
	u.Keys = append(slices.Clone(u.Keys), f.Hash)
	if n := len(u.Keys) - maxAPIKeys; n > 0 {
		u.Keys = u.Keys[n:]
	}
}

func (f *KeyIssued) tell(r *Realm) []Notice { return nil }

package realm

import "slices"

// An account's API key follows from the server's secret, the account, and how often its key was taken back. So every
// login gets the same key, as clients expect, although only its hash is kept; without the secret, which lies in a file
// of its own, nobody can make it again. Keys an operator fixed by hand stand beside it.

// maxAPIKeys is how many keys an account has at once: its own one and some fixed by hand; the oldest go.
const maxAPIKeys = 16

// IssueAPIKey gives an account's API key: the caller's own, or anybody's if the system asks. Only takes back all older ones.
type IssueAPIKey struct {
	User UserID
	Key  string // fixed by the operator, or "" for the account's own
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

// issueKey is an account's own key; anew takes the old ones back and makes another.
func (t *Turn) issueKey(u *User, anew bool) string {
	epoch := u.KeyEpoch
	if anew {
		epoch++
	}
	if anew { // whoever had the old key is to hear nothing more
		t.removeAllDevices(u.ID)
	}
	key := t.env.APIKey(u.ID, epoch)
	if hash := t.Hash(key); anew || !slices.Contains(u.Keys, hash) {
		t.Record(&KeyIssued{ID: u.ID, Hash: hash, Only: anew, Epoch: epoch})
	}
	return key
}

// KeyIssued says an account has a further API key; if Only is set, every older one stops working at once.
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

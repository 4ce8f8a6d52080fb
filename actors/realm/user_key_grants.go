package realm

// GrantTime is how long a granted key waits for its app, in seconds. The app asks for it at once.
const GrantTime = 120

// GrantKey asks for a scoped key of the caller's account for an app. The key cannot be used before RedeemKey gives the
// app its secret.
type GrantKey struct {
	App      string // the label of the key
	Lifetime int64  // seconds, from RedeemKey on
	Scope    *KeyScope
}

func (c GrantKey) Decide(t *Turn) (int64, error) {
	if c.Scope == nil || c.Lifetime == 0 {
		panic("BUG: a key for an app has no limits")
	}
	k, _, err := AddKey{User: t.User, Label: c.App, Lifetime: c.Lifetime, Scope: c.Scope}.plan(t)
	if err != nil {
		return 0, err
	}
	k.Granted, k.Expires = c.Lifetime, t.Now+GrantTime
	t.Record(&ScopedKeyAdded{User: t.User, Key: k})
	return k.ID, nil
}

// RedeemKey asks for the secret of a granted key. The server asks for it once the app has proved that the key is for
// it.
type RedeemKey struct {
	User UserID
	Key  int64
}

// RedeemedKey answers RedeemKey.
type RedeemedKey struct {
	NewKey
	// Used says that the key was redeemed before. Its secret may be in wrong hands, so the key is revoked now.
	Used bool
}

func (c RedeemKey) Decide(t *Turn) (RedeemedKey, error) {
	if !t.System {
		return RedeemedKey{}, errPermission()
	}
	u := t.Find(c.User)
	if u == nil || !u.Active || c.Key == 0 {
		return RedeemedKey{}, errNoKey()
	}
	for _, k := range u.KeyInfo {
		switch {
		case k.From == c.Key:
			t.Record(&KeysRevoked{User: u.ID, Keys: []int64{k.ID}})
			t.endQueuesOf(u.ID, []int64{k.ID})
			return RedeemedKey{Used: true}, nil
		case k.ID == c.Key && k.Granted != 0 && !k.Expired(t.Now):
			secret := t.Token(apiKeyLength)
			next := KeyInfo{ID: t.nextID("api_key"), Hash: t.Hash(secret), Label: k.Label, Created: t.Now,
				Expires: t.Now + k.Granted, Scope: k.Scope.clone(), From: k.ID}
			t.Record(&KeysRevoked{User: u.ID, Keys: []int64{k.ID}})
			t.Record(&ScopedKeyAdded{User: u.ID, Key: next})
			return RedeemedKey{NewKey: NewKey{next, secret}}, nil
		}
	}
	return RedeemedKey{}, errNoKey()
}

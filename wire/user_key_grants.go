package wire

import "parley/actors/realm"

// GrantKey makes a limited API key of the session's user for an app, which cannot use it before RedeemKey. It needs the
// password like every key that outlives the session.
func GrantKey(c *Call, g realm.GrantKey, password string) (int64, error) {
	if err := c.checkKeyMaker(password); err != nil {
		return 0, err
	}
	return Execute(c, g)
}

// RedeemKey returns the secret of a granted key, once. The caller has checked that the request is from the app.
func RedeemKey(c *Call, user realm.UserID, key int64) (realm.RedeemedKey, error) {
	return Execute(c.asServer(), realm.RedeemKey{User: user, Key: key})
}

// NeedsPassword reports whether GrantKey needs the password of the session's user.
func NeedsPassword(c *Call) bool { return c.checkKeyMaker("") != nil }

// RevokeOwnKey ends the additional API key that the call was sent with. It returns false for another one.
func RevokeOwnKey(c *Call) (bool, error) {
	k := c.Account.AdditionalKey(c.Caller.Key)
	if k == nil {
		return false, nil
	}
	_, err := Execute(c, realm.RevokeKey{User: c.Account.User, Key: k.ID})
	return err == nil, err
}

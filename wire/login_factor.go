package wire

import (
	"strconv"

	"parley/actors/realm"
)

// FactorPath is the page with a user's second factor.
const FactorPath = "/accounts/factor/"

// factorPurpose is the purpose of sealed secrets of second factors; see Tools.Seal.
func factorPurpose(id realm.ID, u realm.UserID) string {
	return "second factor of " + strconv.Itoa(int(id)) + "/" + u.String()
}

// FactorNeed is the second factor that a login needs besides the password.
type FactorNeed int

const (
	NoFactor  FactorNeed = iota
	AskFactor            // the user has a second factor
	SetFactor            // the user has none, and the organization requires one of the user's role
)

// FactorNeeded returns the factor that the login of a user needs.
func FactorNeeded(c *Call, id realm.UserID) (FactorNeed, error) {
	return Read(c.asServer(), func(v realm.View) (FactorNeed, error) {
		u := v.Find(id)
		switch {
		case u == nil:
			return NoFactor, errAuthFailed()
		case v.HasFactor(id):
			return AskFactor, nil
		case u.Role <= c.Site.Policy.FactorUpTo:
			return SetFactor, nil
		}
		return NoFactor, nil
	})
}

// errFactorNeeded refuses an API key for a password alone.
func errFactorNeeded() error {
	return realm.Refuse(realm.Unauthenticated, "AUTHENTICATION_FAILED",
		"This account needs a second factor. Log in with a browser.")
}

// CheckFactor checks a code of a user's second factor, and uses it up. match returns the step of a code of an app. code
// is of an app if step is true, else a recovery code. Wrong codes count as attempts to log in.
func CheckFactor(c *Call, id realm.UserID, code string, fromApp bool, match func(secret string) (int64, bool)) error {
	key := strconv.Itoa(int(c.Realm)) + "/second factor of " + id.String()
	if err := c.CountPasswordAttempt(key); err != nil {
		return err
	}
	use := realm.UseFactor{User: id}
	if fromApp {
		sealed, err := Read(c.asServer(), func(v realm.View) (string, error) {
			if f := v.FactorOf(id); f != nil && f.Secret != "" {
				return f.Secret, nil
			}
			return "", realm.ErrFactor()
		})
		if err != nil {
			return err
		}
		secret, ok := c.Tools.Unseal(factorPurpose(c.Realm, id), sealed)
		if !ok {
			return realm.BadRequest("The secret of this second factor cannot be read. Use a recovery code, or ask an " +
				"administrator to reset it.")
		}
		if use.Step, ok = match(string(secret)); !ok {
			return realm.ErrFactor()
		}
	} else {
		use.Recovery = c.Tools.HashKey(code)
	}
	if _, err := Execute(c.asServer(), use); err != nil {
		return err
	}
	c.ForgetPasswordAttempts(key)
	return nil
}

// StoreFactor stores a new second factor of a user, after a code of it. step is the code's.
func StoreFactor(c *Call, id realm.UserID, secret string, step int64, recovery []string) error {
	f := realm.Factor{Secret: c.Tools.Seal(factorPurpose(c.Realm, id), []byte(secret)), Step: step}
	for _, code := range recovery {
		f.Recovery = append(f.Recovery, c.Tools.HashKey(code))
	}
	_, err := Execute(c.asServer(), realm.SetFactor{User: id, Factor: f})
	return err
}

// RemoveOwnFactor turns off the codes of an app for a user that has proved a second factor.
func RemoveOwnFactor(c *Call, id realm.UserID) error {
	_, err := Execute(c.asServer(), realm.RemoveFactorApp{User: id})
	return err
}

// ResetFactor ends the second factor of the user with an address, for an administrator.
func ResetFactor(c *Call, email string) (realm.UserID, error) {
	id, err := Read(c, func(v realm.View) (realm.UserID, error) {
		if _, err := v.RequireAdmin(); err != nil {
			return 0, err
		}
		if u := v.FindByShownEmail(email); u != nil {
			return u.ID, nil
		}
		return 0, realm.Missing("There is no account with this address.")
	})
	if err != nil {
		return 0, err
	}
	_, err = Execute(c, realm.RemoveFactor{User: id})
	return id, err
}

// PasswordHash returns the hash of a user's password.
func PasswordHash(c *Call, id realm.UserID) (string, error) {
	return Read(c.asServer(), func(v realm.View) (string, error) {
		if u := v.Find(id); u != nil {
			return u.Password, nil
		}
		return "", errAuthFailed()
	})
}

// FactorNames returns the names that an app shows for the second factor of a user.
func FactorNames(c *Call, id realm.UserID) (org, email string, err error) {
	_, err = Read(c.asServer(), func(v realm.View) (any, error) {
		u := v.Find(id)
		if u == nil {
			return nil, errAuthFailed()
		}
		org, email = v.Org().Name, u.Email
		return nil, nil
	})
	return org, email, err
}

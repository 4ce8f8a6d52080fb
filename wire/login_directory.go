package wire

import (
	"strconv"

	"parley/actors/realm"
)

// DirectoryPerson is a person that a directory has identified by a name and a password.
type DirectoryPerson struct {
	realm.Person
	Provider realm.LoginProvider
	Email    string // "": unknown
	FullName string // for a new account
	Rules    []int  // numbers of the provider's rules that are about the person
}

// CheckNamedLogin returns the account of a user with a password, and the hash that the password was checked against; or
// the person whom a directory of the organization knows by them. The account may be deactivated.
//
// Passwords of accounts count first. So owners can log in while the directory is down, and it never gets their
// passwords.
func CheckNamedLogin(c *Call, name, password string) (a *Account, hash string, p *DirectoryPerson, err error) {
	if c.AskDirectories == nil {
		a, hash, err = accountByPassword(c, name, password)
		return a, hash, nil, err
	}
	if err := c.checkLoginPlace(); err != nil {
		return nil, "", nil, err
	}
	key := strconv.Itoa(int(c.Realm)) + "/" + realm.FoldEmail(name)
	passwords, err := Read(c, func(v realm.View) (bool, error) { return v.PasswordLogin(), nil })
	if err != nil {
		return nil, "", nil, err
	}
	if passwords && realm.ValidEmail(name) {
		var right bool
		if a, hash, right, err = localAccount(c, name, password); err != nil || right {
			return a, hash, nil, err
		}
	} else if err := c.CountPasswordAttempt(key); err != nil {
		return nil, "", nil, err
	}
	p, err = c.AskDirectories(name, password)
	switch {
	case err != nil:
		return nil, "", nil, err
	case p == nil:
		c.noteFailedLogin(a)
		return nil, "", nil, errAuthFailed()
	}
	c.ForgetPasswordAttempts(key)
	return nil, "", p, nil
}

// accountOfDirectory returns the account of a person in a directory, which it makes if the person has none and the
// rules of the organization allow it. An app cannot ask for the password of an account with the same address, so that
// account is connected in a browser.
func accountOfDirectory(c *Call, p *DirectoryPerson) (*Account, error) {
	id, found, _, err := AccountOfPerson(c, p.Person)
	if err != nil {
		return nil, err
	}
	if !found {
		if _, taken := c.Server.AccountByEmail(c.Realm, p.Email); taken {
			return nil, realm.BadRequest("There is an account with your email address. Log in with a browser " +
				"once, to connect this login.")
		}
		id, err = SignUpWithIdentity(c, realm.SignUpWithIdentity{Identity: p.Identity, Email: p.Email,
			Name: p.FullName}, "")
		if err == nil {
			_, err = UpdateFromProvider(c, id, p.Person)
		}
		if err != nil {
			return nil, err
		}
	}
	return Read(c.asServer(), func(v realm.View) (*Account, error) {
		u := v.Find(id)
		if u == nil {
			return nil, errAuthFailed()
		}
		return &Account{Realm: c.Realm, User: u.ID, Email: u.Email, Active: u.Active}, nil
	})
}

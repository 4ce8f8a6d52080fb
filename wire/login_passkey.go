package wire

import "parley/actors/realm"

const (
	// PasskeysPath is the page with a user's passkeys.
	PasskeysPath = "/accounts/passkeys/"
	// PasskeyLoginPath is the page on which users log in with a passkey instead of a password.
	PasskeyLoginPath = "/accounts/login/passkey/"
)

// PasskeyOwner is a user with the passkeys that a login can prove.
type PasskeyOwner struct {
	Name, Email string
	Passkeys    []realm.Passkey
	// HasApp says that the user has an app for codes, Recovery is the number of unused recovery codes.
	HasApp   bool
	Recovery int
	// Password is the hash of the account's password.
	Password string
}

// FindPasskeyOwner returns the passkeys of a user.
func FindPasskeyOwner(c *Call, id realm.UserID) (PasskeyOwner, error) {
	return Read(c.asServer(), func(v realm.View) (o PasskeyOwner, err error) {
		u := v.Find(id)
		if u == nil || u.System || u.IsBot() {
			return o, realm.ErrPasskey()
		}
		o = PasskeyOwner{Name: u.Name, Email: u.Email, Passkeys: v.PasskeysOf(id), Password: u.Password}
		if f := v.FactorOf(id); f != nil {
			o.HasApp, o.Recovery = f.Secret != "", len(f.Recovery)
		}
		return o, nil
	})
}

// FindPasskeyLogin returns the passkeys of a user that may log in without a password. A passkey replaces the password
// of the account. So it opens no account without one: the login provider of such a person decides about each login. The
// user gets the same refusal for each reason.
func FindPasskeyLogin(c *Call, id realm.UserID) (PasskeyOwner, error) {
	passwords, err := Read(c.asServer(), func(v realm.View) (bool, error) { return v.PasswordLogin(), nil })
	if err != nil {
		return PasskeyOwner{}, err
	}
	if !passwords {
		return PasskeyOwner{}, realm.ErrPasswordLogin()
	}
	o, err := FindPasskeyOwner(c, id)
	if err == nil && o.Password == "" {
		err = realm.ErrPasskey()
	}
	return o, err
}

// OffersPasskeys reports whether a login page offers passkeys: a user of the organization has one.
func OffersPasskeys(v realm.View) bool { return v.HasPasskeys() && v.PasswordLogin() }

// AddPasskey stores a new passkey of a user. It returns whether the recovery codes are stored.
func AddPasskey(c *Call, id realm.UserID, p realm.Passkey, recovery []string) (bool, error) {
	cmd := realm.AddPasskey{User: id, Passkey: p}
	for _, code := range recovery {
		cmd.Recovery = append(cmd.Recovery, c.Tools.HashKey(code))
	}
	return Execute(c.asServer(), cmd)
}

// UsePasskey records that a user has proved a passkey, or refuses an answer that was used before.
func UsePasskey(c *Call, cmd realm.UsePasskey) error {
	_, err := Execute(c.asServer(), cmd)
	return err
}

// RenamePasskey changes the name of a passkey of the caller.
func RenamePasskey(c *Call, id []byte, name string) error {
	_, err := Execute(c.asServer(), realm.RenamePasskey{User: c.Caller.User, ID: id, Name: name})
	return err
}

// RemovePasskey removes a passkey of the caller.
func RemovePasskey(c *Call, id []byte) error {
	_, err := Execute(c.asServer(), realm.RemovePasskey{User: c.Caller.User, ID: id})
	return err
}

package wire

import (
	"errors"

	"parley/actors/realm"
)

// RequestSignUp sends the link to sign up to an address, in the language of the page.
func RequestSignUp(c *Call, email, language string) error {
	_, err := Execute(c.asServer(), realm.RequestSignUp{Email: email,
		Compose: func(l realm.EmailedLink, known bool, h realm.Letterhead) realm.Email {
			h.Language = language
			return c.Tools.Emails.SignUp(l, known, h, c.Site)
		}})
	return err
}

// FindSignUp returns the link of a token if an account can be made with it now.
func FindSignUp(c *Call, token string) (realm.EmailedLink, error) {
	l, err := findEmailedLink(c, token, realm.SignUpLink)
	if err == nil {
		_, err = Read(c.asServer(), func(v realm.View) (any, error) { return nil, v.CheckSignUp(l) })
	}
	return l, err
}

// SignUp makes the account of a visitor that opened the link to sign up.
func SignUp(c *Call, l realm.EmailedLink, name, password string) (realm.UserID, error) {
	hash, err := newPasswordHash(c, password)
	if err != nil {
		return 0, err
	}
	return Execute(c.asServer(), realm.SignUp{Link: l, Name: name, Password: hash})
}

// newPasswordHash returns the hash of a new password, or the refusal that pages show for a weak one.
func newPasswordHash(c *Call, password string) (string, error) {
	hash, err := c.Tools.HashPassword(c.Realm, password)
	if errors.Is(err, ErrWeakPassword) {
		err = errWeakPassword()
	}
	return hash, err
}

// passwordReset is realm.RequestPasswordReset without waiting: the time of the answer does not tell visitors whether
// there is an account.
type passwordReset struct{ realm.RequestPasswordReset }

func (x passwordReset) Decide(t *realm.Turn) (any, error) { return x.RequestPasswordReset.Decide(t) }
func (passwordReset) Done(any, error)                     {}

// RequestPasswordReset sends the link to set a new password to an address, if it has an account. It does not wait.
func RequestPasswordReset(c *Call, email string) {
	cmd := realm.RequestPasswordReset{Email: email, Compose: c.Tools.Emails.ResetPassword}
	c.Server.RunAsync([]AsyncCommand{{Realm: c.Realm, Caller: c.asServer().Caller,
		CommandWithCallback: passwordReset{cmd}}})
}

// FindPasswordReset returns the link of a token if a password can be set with it now.
func FindPasswordReset(c *Call, token string) (realm.EmailedLink, error) {
	return findEmailedLink(c, token, realm.ResetLink)
}

// ResetPassword sets the password of a user that opened the link to do so. All sessions and keys of the user end.
func ResetPassword(c *Call, l realm.EmailedLink, password string) error {
	hash, err := newPasswordHash(c, password)
	if err != nil {
		return err
	}
	_, err = Execute(c.asServer(), realm.ResetPassword{Link: l, Hash: hash, Notice: c.Tools.Emails.PasswordChanged})
	return err
}

package realm

import "crypto/sha256"

// credentialState returns a hash that changes with the password and the address of a user.
func credentialState(u *User) [32]byte { return sha256.Sum256([]byte(u.Password + "\n" + u.Email)) }

// RequestPasswordReset asks for an email with the link to set a new password. Nothing is sent to addresses without an
// active account, and the answer is the same.
type RequestPasswordReset struct {
	Email   string
	Compose func(EmailedLink, Letterhead) Email
}

func (c RequestPasswordReset) Decide(t *Turn) (Done, error) {
	u := t.FindByEmail(c.Email)
	switch {
	case !t.System:
		return Done{}, errPermission()
	case u == nil || !u.Active || u.System || u.IsBot() || t.Org().Deactivated || !t.PasswordLogin():
		return Done{}, nil
	case u.Password == "" && len(t.IdentitiesOf(u.ID)) > 0: // the user logs in at a provider
		return Done{}, nil
	}
	link := EmailedLink{Kind: ResetLink, User: u.ID, Email: u.Email, Until: t.Now + PasswordResetValidity,
		State: credentialState(u)}
	t.SendEmails(c.Compose(link, t.LetterheadFor(u)))
	return Done{}, nil
}

// CurrentReset returns the link that would reset the password of a user now and be valid until a time. It refuses times
// in the past, and users that cannot reset a password.
func (v View) CurrentReset(id UserID, until int64) (EmailedLink, error) {
	u := v.Find(id)
	switch {
	case !v.System:
		return EmailedLink{}, errPermission()
	case u == nil || !u.Active || u.System || u.IsBot() || v.Now > until:
		return EmailedLink{}, ErrEmailedLink()
	case v.Org().Deactivated:
		return EmailedLink{}, Missing("This organization has been deactivated.")
	}
	if !v.PasswordLogin() {
		return EmailedLink{}, ErrPasswordLogin()
	}
	return EmailedLink{Kind: ResetLink, User: u.ID, Email: u.Email, Until: until, State: credentialState(u)}, nil
}

// ResetPassword sets the password of a user that opened the link to do so. It ends all browser sessions and revokes the
// API keys: the user may have lost control of the account.
type ResetPassword struct {
	Link EmailedLink
	Hash string // Argon2id in PHC form
	// Notice returns the email to the user about the change; nil: none.
	Notice func(email string, h Letterhead) Email
}

func (c ResetPassword) Decide(t *Turn) (Done, error) {
	now, err := t.CurrentReset(c.Link.User, c.Link.Until)
	if err != nil {
		return Done{}, err
	}
	if now != c.Link {
		return Done{}, ErrEmailedLink()
	}
	if _, err := (SetPassword{User: now.User, Hash: c.Hash}).Decide(t); err != nil {
		return Done{}, err
	}
	if c.Notice != nil {
		t.SendEmails(c.Notice(now.Email, t.LetterheadFor(t.Find(now.User))))
	}
	return Done{}, nil
}

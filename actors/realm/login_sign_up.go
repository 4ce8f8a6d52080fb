package realm

import "strings"

// EmailedLinkKind is the kind of an EmailedLink. The numbers are in stored rows and never change.
type EmailedLinkKind uint8

const (
	SignUpLink       EmailedLinkKind = 1 // confirms the address of a new account
	ResetLink        EmailedLinkKind = 2 // sets a new password
	OrganizationLink EmailedLinkKind = 3 // confirms the address of the owner of a new organization
)

// EmailedLink is the content of a link in an email: an address to confirm, or a change that it permits. The link
// itself is signed and never stored.
type EmailedLink struct {
	Kind  EmailedLinkKind
	Email string // address to which the link was sent
	Until int64
	User  UserID // of ResetLink
	// State is a hash of the user's credentials when the link was made: once they change, the link is not valid any
	// more.
	State [32]byte
	// Subdomain and Org are the address and the name of the new organization.
	Subdomain, Org string
}

// How long links in emails are valid, in seconds.
const (
	SignUpValidity        = secondsPerDay
	PasswordResetValidity = secondsPerDay
)

// ErrEmailedLink refuses a link that is wrong, expired or used.
func ErrEmailedLink() *Refusal { return Missing("This link is not valid, or not any longer.") }

// SignUpOpen reports whether visitors can make an account without an invitation.
func (v View) SignUpOpen() bool { return !v.OrgBool("invite_required") && !v.Org().Deactivated }

// checkSignUp refuses addresses that may not sign up. It does not depend on existing accounts, so it reveals nothing
// about them.
func (v View) checkSignUp(email string) error {
	switch {
	case !v.System:
		return errPermission()
	case v.Org().Deactivated:
		return Missing("This organization has been deactivated.")
	case !v.SignUpOpen():
		return Refuse(Forbidden, "BAD_REQUEST", "You need an invitation to join this organization.")
	case !ValidEmail(email):
		return ErrInvalidEmail()
	}
	return v.checkEmailDomain(email)
}

// RequestSignUp asks for an email with the link to sign up. The owner of an address with an account gets an email that
// says so, because the answer must not reveal which addresses have accounts.
type RequestSignUp struct {
	Email   string
	Compose func(link EmailedLink, known bool, h Letterhead) Email
}

func (c RequestSignUp) Decide(t *Turn) (Done, error) {
	email := strings.TrimSpace(c.Email)
	if err := t.checkSignUp(email); err != nil {
		return Done{}, err
	}
	known := t.FindByEmail(email) != nil
	link := EmailedLink{Kind: SignUpLink, Email: email, Until: t.Now + SignUpValidity}
	t.SendEmails(c.Compose(link, known, t.LetterheadFor(nil)))
	return Done{}, nil
}

// SignUp creates the account of a visitor that opened the link to sign up.
type SignUp struct {
	Link           EmailedLink
	Name, Password string // Password: Argon2id in PHC form
}

// CheckSignUp refuses links that cannot be used: they expired, the account exists, or the rules have changed.
func (v View) CheckSignUp(l EmailedLink) error {
	if err := v.checkSignUp(l.Email); err != nil {
		return err
	}
	if l.Kind != SignUpLink || v.Now > l.Until || v.FindByEmail(l.Email) != nil {
		return ErrEmailedLink()
	}
	return nil
}

func (c SignUp) Decide(t *Turn) (UserID, error) {
	if err := t.CheckSignUp(c.Link); err != nil {
		return 0, err
	}
	id, err := CreateUser{Email: c.Link.Email, Name: c.Name, Password: c.Password}.Decide(t)
	if err != nil {
		return 0, err
	}
	t.sendWelcomeMessages(id, nil)
	return id, nil
}

package wire

import "parley/actors/realm"

// EmailComposer writes the emails that requests cause. Package mail implements it. The realm stores each composed email
// in its outbox until it is sent.
type EmailComposer interface {
	// Invitation invites a person to an organization.
	Invitation(realm.InviteEmail) realm.Email
	// AccountDeactivated tells users that their account was deactivated; comment is the administrator's, or "".
	AccountDeactivated(u *realm.User, h realm.Letterhead, comment string, s Site) realm.Email
	// ConfirmAddress asks the owner of a new address to confirm it.
	ConfirmAddress(realm.EmailChange, realm.Letterhead) realm.Email
	// AddressChanged tells the owner of the old address that it was replaced.
	AddressChanged(realm.EmailChange, realm.Letterhead) realm.Email
	// NewLogin tells a user about a login with a browser or an app.
	NewLogin(login realm.LoginEmail, s Site) realm.Email
	// SignUp sends the link to sign up, or says that the address has an account already (known).
	SignUp(link realm.EmailedLink, known bool, h realm.Letterhead, s Site) realm.Email
	// ResetPassword sends the link to set a new password.
	ResetPassword(realm.EmailedLink, realm.Letterhead) realm.Email
	// PasswordChanged tells a user about a new password.
	PasswordChanged(email string, h realm.Letterhead) realm.Email
	// Accounts lists the organizations in which an address has an account.
	Accounts(email string, sites []Site, language string) realm.Email
	// NewOrganization sends the link that creates an organization.
	NewOrganization(link realm.EmailedLink, language string) realm.Email
}

// EmailLink returns the URL that replaces realm.LinkPlaceholder in an email, or "" if the email has no link. The URL
// contains a secret token, so it is made when the email is sent and never stored.
func EmailLink(email realm.Email, id realm.ID, s Site, t *Tools) string {
	switch {
	case email.Link != 0:
		return s.URL + JoinPath + t.LinkToken(id, email.Link)
	case email.Address != nil:
		return s.URL + ConfirmAddressPath + addressToken(t, id, *email.Address)
	case email.Confirm != nil:
		return s.URL + emailedLinkPath(t, id, *email.Confirm)
	}
	return ""
}

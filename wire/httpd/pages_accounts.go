package httpd

import (
	"errors"
	"strings"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// accountPages are the pages on which visitors sign up, replace a forgotten password and find their accounts.
var accountPages = []pageRoute{
	{path: "/register", handle: (*Server).registerPage, posts: true},
	{path: "/accounts/register", handle: (*Server).registerPage, posts: true},
	{path: wire.SignUpPath + "{token}", handle: (*Server).signUpPage, posts: true},
	{path: "/accounts/password/reset", handle: (*Server).forgottenPasswordPage, posts: true},
	{path: "/accounts/password/reset/done", handle: (*Server).resetSentPage},
	{path: wire.ResetPath + "{user}/{token}", handle: (*Server).newPasswordPage, posts: true},
	{path: "/accounts/password/done", handle: (*Server).passwordDonePage},
	{path: "/accounts/find", handle: (*Server).findAccountsPage, posts: true, anywhere: true},
	{path: "/accounts/go", handle: (*Server).chooseOrganizationPage, posts: true, anywhere: true},
	{path: "/accounts/unsubscribe/{topic}/{token}", handle: (*Server).unsubscribePage, posts: true, oneClick: true},
	{path: "/accounts/accept_terms", handle: redirectHome},
	{path: "/desktop_home", handle: redirectHome},
}

// redirectHome redirects to the start page.
func redirectHome(_ *Server, p *pageRequest) (web.View, error) {
	p.redirect = "/"
	return web.View{}, nil
}

// countEmailForm counts a form that sends an email to an address, for the client's network and the address.
func (s *Server) countEmailForm(p *pageRequest, address string) error {
	if err := s.emailForms.countAttempt(p.call.Address); err != nil {
		return err
	}
	for _, l := range s.formEmails {
		if err := l.countAttempt(realm.FoldEmail(strings.TrimSpace(address))); err != nil {
			return err
		}
	}
	return nil
}

// countPasswordForm counts a form with a new password, which is expensive to hash.
func (s *Server) countPasswordForm(p *pageRequest) error {
	return s.passwordForms.countAttempt(p.call.Address)
}

// sendsEmail reports whether the server can send links.
func (s *Server) sendsEmail() bool { return s.options.Tools.Emails != nil }

// registerPage asks for the address of a new account and sends the link to sign up there.
func (s *Server) registerPage(p *pageRequest) (web.View, error) {
	c := p.visitorCall()
	open, err := s.signUpOpen(p)
	if err != nil {
		return web.View{}, err
	}
	if !open {
		why := realm.Refuse(realm.Forbidden, "BAD_REQUEST", "You need an invitation to join this organization.")
		return web.Failure("Sign up", why.Msg), why
	}
	if !p.posted() {
		return web.Register("", ""), nil
	}
	email := strings.TrimSpace(p.field("email"))
	if err = s.countEmailForm(p, email); err == nil {
		err = wire.RequestSignUp(c, email, p.language.String())
	}
	if err != nil {
		return web.Register(email, s.formErrorText(err)), err
	}
	return linkSentPage()
}

// signUpOpen reports whether visitors can sign up in the organization.
func (s *Server) signUpOpen(p *pageRequest) (bool, error) {
	if !s.sendsEmail() {
		return false, nil
	}
	return wire.Read(p.call, func(v realm.View) (bool, error) { return v.SignUpOpen(), nil })
}

// formErrorText is errorText with a text for users where a rate limit refused a form.
func (s *Server) formErrorText(err error) string {
	var r *realm.Refusal
	if errors.As(err, &r) && r.Kind == realm.TooMany {
		return "There were too many attempts. Please try again later."
	}
	return s.errorText(err)
}

// signUpPage makes the account of a visitor that has confirmed the address, and logs the user in.
func (s *Server) signUpPage(p *pageRequest) (web.View, error) {
	c := p.visitorCall()
	link, err := wire.FindSignUp(c, p.token())
	if err != nil {
		return web.Failure("Sign up", s.errorText(err)), err
	}
	if !p.posted() {
		return web.SignUp(link.Email, "", ""), nil
	}
	name := p.field("full_name")
	if err = s.countPasswordForm(p); err == nil {
		var id realm.UserID
		if id, err = wire.SignUp(c, link, name, p.field("password")); err == nil {
			return s.finishLogin(p, passedLogin{user: id, method: "sign-up", next: "/"})
		}
	}
	return web.SignUp(link.Email, name, s.formErrorText(err)), err
}

// forgottenPasswordPage sends the link to set a new password. The answer is the same for every address (protocol).
func (s *Server) forgottenPasswordPage(p *pageRequest) (web.View, error) {
	if !s.sendsEmail() {
		err := realm.Missing("This server sends no email. Ask its operator for a new password.")
		return web.Failure("Set a new password", err.Msg), err
	}
	if err := wire.CheckPasswordLogin(p.visitorCall()); err != nil {
		return web.Failure("Set a new password", s.errorText(err)), err
	}
	if !p.posted() {
		return web.ForgottenPassword("", ""), nil
	}
	email := strings.TrimSpace(p.field("email"))
	err := s.countEmailForm(p, email)
	if err == nil && !realm.ValidEmail(email) {
		err = realm.ErrInvalidEmail()
	}
	if err != nil {
		return web.ForgottenPassword(email, s.formErrorText(err)), err
	}
	wire.RequestPasswordReset(p.visitorCall(), email)
	p.redirect = "/accounts/password/reset/done/"
	return web.View{}, nil
}

func (s *Server) resetSentPage(*pageRequest) (web.View, error) {
	return web.Message("Check your email", "If this address has an account here, we have sent an email to it. "+
		"To set a new password, follow its link."), nil
}

// newPasswordPage sets a new password for the user of a link.
func (s *Server) newPasswordPage(p *pageRequest) (web.View, error) {
	const title = "Set a new password"
	c := p.visitorCall()
	link, err := wire.FindPasswordReset(c, p.token())
	if user, _ := p.ctx.UserValue("user").(string); err == nil && user != link.User.String() {
		err = realm.ErrEmailedLink()
	}
	if err != nil {
		return web.Failure(title, s.errorText(err)), err
	}
	if !p.posted() {
		return web.NewPassword(""), nil
	}
	password := p.field("new_password1")
	switch err = s.countPasswordForm(p); {
	case err != nil:
	case password != p.field("new_password2"):
		err = realm.BadRequest("The two passwords differ.")
	default:
		err = wire.ResetPassword(c, link, password)
	}
	if err != nil {
		return web.NewPassword(s.formErrorText(err)), err
	}
	p.redirect = "/accounts/password/done/"
	return web.View{}, nil
}

func (s *Server) passwordDonePage(*pageRequest) (web.View, error) {
	return web.MessageLink("Password changed", "Your new password is set. All browsers and apps were logged out.",
		loginPath, "Log in"), nil
}

// unsubscribePage switches off emails like the one with the link. Programs that read mail send its form without a token
// (RFC 8058); its address is secret, so no other site can send it.
func (s *Server) unsubscribePage(p *pageRequest) (web.View, error) {
	const title = "Unsubscribe"
	c := p.visitorCall()
	topic, _ := p.ctx.UserValue("topic").(string)
	u, err := wire.FindUnsubscription(c, topic, p.token())
	if err == nil && p.posted() {
		err = wire.Unsubscribe(c, u)
	}
	if err != nil {
		return web.Failure(title, s.errorText(err)), err
	}
	if p.posted() {
		return web.Message(title, "You will get no more emails of this kind."), nil
	}
	return web.Confirm(title, "Do you want to get no more emails of this kind?", "Unsubscribe"), nil
}

// findAccountsPage sends users the addresses of the organizations in which they have accounts.
func (s *Server) findAccountsPage(p *pageRequest) (web.View, error) {
	if s.options.Tools.Organizations == nil || !s.sendsEmail() {
		return pageNotFound()
	}
	if !p.posted() {
		return web.FindAccounts("", ""), nil
	}
	text := p.field("emails")
	list := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' })
	var err error
	if len(list) == 0 || len(list) > wire.MaxFoundAddresses {
		err = realm.BadRequest("Enter one to ten email addresses.")
	}
	for _, email := range list {
		if !realm.ValidEmail(email) {
			err = realm.ErrInvalidEmail()
		}
	}
	for _, email := range list {
		if err == nil {
			err = s.countEmailForm(p, email)
		}
	}
	if err != nil {
		return web.FindAccounts(text, s.formErrorText(err)), err
	}
	for _, email := range list {
		wire.FindAccounts(p.visitorCall(), email, p.language.String())
	}
	return web.Message("Check your email", "We have sent an email to each of these addresses that has an account."), nil
}

// chooseOrganizationPage redirects to the login page of an organization.
func (s *Server) chooseOrganizationPage(p *pageRequest) (web.View, error) {
	orgs := s.options.Tools.Organizations
	if orgs == nil {
		return pageNotFound()
	}
	_, root := orgs.Find("")
	scheme, host, _ := strings.Cut(root.URL, "://")
	p.policy = formPolicy(root.URL + " " + scheme + "://*." + host)
	if !p.posted() {
		return web.GoTo("", ""), nil
	}
	name := strings.ToLower(strings.TrimSpace(p.field("subdomain")))
	if id, site := orgs.Find(name); id != 0 {
		p.redirect = site.URL + loginPath
		return web.View{}, nil
	}
	err := realm.Missing("There is no organization at this address.")
	return web.GoTo(name, err.Msg), err
}

var errNoPage = realm.Missing("There is no page at this address.")

// pageNotFound is the page for an address that does not exist.
func pageNotFound() (web.View, error) { return web.Failure("Page not found", errNoPage.Msg), errNoPage }

// linkSentPage says that an email with a link was sent to the address in a form.
func linkSentPage() (web.View, error) {
	return web.Message("Check your email", "We have sent an email to this address. To continue, follow its link."), nil
}

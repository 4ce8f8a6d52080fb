package web

import "html/template"

// field is a labelled field of a form.
type field struct {
	Name, Label, Type string
	Complete          string // of the attribute autocomplete
	Value             string
	ReadOnly          bool
}

// formData is the data of a page with a form.
type formData struct {
	Intro  string
	Fields []field
	Button string
}

func formPage(title, failure string, d formData) View {
	return View{Template: "form", Title: title, Error: failure, Data: d}
}

func emailField(value string) field {
	return field{Name: "email", Label: "Email address", Type: "email", Complete: "email", Value: value}
}

func nameField(value string) field {
	return field{Name: "full_name", Label: "Full name", Type: "text", Complete: "name", Value: value}
}

func newPasswordField(name, label string) field {
	return field{Name: name, Label: label, Type: "password", Complete: "new-password"}
}

func confirmedEmail(value string) field {
	f := emailField(value)
	f.ReadOnly = true
	return f
}

// Register is the page on which a visitor enters the address of a new account.
func Register(email, failure string) View {
	return formPage("Sign up", failure, formData{"We will send a link to your address.", []field{emailField(email)},
		"Sign up"})
}

// SignUp is the page on which a visitor with a confirmed address makes an account.
func SignUp(email, name, failure string) View {
	return formPage("Sign up", failure, formData{"", []field{confirmedEmail(email), nameField(name),
		newPasswordField("password", "Password")}, "Sign up"})
}

// ForgottenPassword is the page on which a user asks for a new password.
func ForgottenPassword(email, failure string) View {
	return formPage("Set a new password", failure, formData{"We will send a link to your address.",
		[]field{emailField(email)}, "Send the link"})
}

// NewPassword is the page on which a user sets a new password.
func NewPassword(failure string) View {
	return formPage(
		"Set a new password",
		failure,
		formData{"", []field{newPasswordField("new_password1", "New password"),
			newPasswordField("new_password2", "New password again")}, "Set the password"},
	)
}

// FindAccounts is the page on which users find the organizations of their accounts.
func FindAccounts(emails, failure string) View {
	return formPage("Find your accounts", failure, formData{"We will send you the addresses of your organizations.",
		[]field{{Name: "emails", Label: "Email addresses, separated by commas", Type: "text", Complete: "email",
			Value: emails}}, "Find accounts"})
}

// GoTo is the page on which a user enters the address of an organization.
func GoTo(subdomain, failure string) View {
	return formPage("Go to your organization", failure, formData{"",
		[]field{subdomainField("subdomain", subdomain)}, "Continue"})
}

func subdomainField(name, value string) field {
	return field{Name: name, Label: "Name in the address of the organization", Type: "text", Complete: "off",
		Value: value}
}

// NewOrganization is the page on which a visitor asks to create an organization.
func NewOrganization(email, name, subdomain, failure string) View {
	return formPage("Create an organization", failure, formData{"We will send a link to your address.",
		[]field{emailField(email), {Name: "realm_name", Label: "Name of the organization", Type: "text",
			Complete: "organization", Value: name}, subdomainField("realm_subdomain", subdomain)}, "Continue"})
}

// CreateOrganization is the page on which the owner of a new organization makes an account.
func CreateOrganization(organization, email, name, failure string) View {
	return View{Template: "create", Title: organization, Error: failure, Data: formData{"You will be its owner.",
		[]field{confirmedEmail(email), nameField(name), newPasswordField("password", "Password")},
		"Create the organization"}}
}

// MessageLink is a page with text and a link.
func MessageLink(title, text, to, label string) View {
	return View{Template: "link", Title: title, Data: [3]string{text, to, label}}
}

// ConnectLogin is the page on which a person whom a login provider has identified enters the password of the account
// with their address.
func ConnectLogin(email, failure string) View {
	return formPage("Connect your login", failure, formData{"There is an account with your address. Enter its " +
		"password once to connect it with this login.", []field{confirmedEmail(email),
		{Name: "password", Label: "Password", Type: "password", Complete: "current-password"}}, "Connect"})
}

// LoginFailed is the page of a login that failed for a reason that the login page does not show.
func LoginFailed(reason string) View {
	return View{Template: "link", Title: "Log in", Error: reason, Data: [3]string{"", "/login/",
		"Back to the login page"}}
}

// ChooseName is the page on which a person whom a login provider has identified enters the name of a new account.
func ChooseName(email, name, failure string) View {
	return formPage("Sign up", failure, formData{"", []field{confirmedEmail(email), nameField(name)}, "Sign up"})
}

// Identity is a login at a provider as its user sees it.
type Identity struct {
	Provider        string // name of the provider, or its issuer
	Issuer, Subject string
	Linked          string // date
}

// IdentitiesPage is the data of the page with a user's logins at providers.
type IdentitiesPage struct {
	List        []Identity
	Providers   []Provider // that can be connected; their URL is type/name
	AskPassword bool       // the login was long ago
}

// Identities is the page with a user's logins at providers.
func Identities(d IdentitiesPage) View {
	return View{Template: "identities", Title: "Your connected logins", Data: d}
}

// codeForm is the data of a page that asks for a code.
type codeForm struct {
	Text, Button string
	Passkey      *PasskeyForm // that can be used instead, or nil
}

// FactorCode is the page that asks for a second factor in a login: a code, or a passkey unless it is nil.
func FactorCode(passkey *PasskeyForm, failure string) View {
	return View{Template: "factor_code", Title: "Log in", Error: failure, Script: scriptOf(passkey),
		Data: codeForm{"Enter the code of your authenticator app, or a recovery code.", "Log in", passkey}}
}

// Factor is the page of a user with a second factor.
func Factor() View {
	return View{Template: "factor_code", Title: "Your second factor", Data: codeForm{"Your account has a second " +
		"factor. To turn it off, enter a code of your authenticator app, or a recovery code.", "Turn off", nil}}
}

// NewFactorData is the data of the page with a new second factor.
type NewFactorData struct {
	Secret      string
	Picture     template.URL // of the secret, as a data URL
	AskPassword bool
	InLogin     bool
	Passkey     *PasskeyForm // that the user can add instead in a login, or nil
}

// NewFactor is the page with the secret of a second factor that a user adds.
func NewFactor(d NewFactorData) View {
	return View{Template: "factor_new", Title: "Your second factor", Script: scriptOf(d.Passkey), Data: d}
}

// recoveryCodes is the data of the page with recovery codes.
type recoveryCodes struct {
	Codes []string
	Next  template.URL
	Token string
}

// RecoveryCodes is the page with new recovery codes. next is the address of the next page, token the text for a desktop
// app, if there is one.
func RecoveryCodes(codes []string, next, token string) View {
	return View{Template: "recovery", Title: "Your recovery codes",
		Data: recoveryCodes{codes, template.URL(next), token}}
}

// ResetFactor is the page on which administrators remove the lost second factor of a user.
func ResetFactor(email string, askPassword bool, failure string) View {
	fields := []field{emailField(email)}
	if askPassword {
		fields = append(fields, field{Name: "password", Label: "Your password", Type: "password",
			Complete: "current-password"})
	}
	return formPage("Reset a second factor", failure, formData{"The user logs in with the password alone afterwards, " +
		"and can add another second factor.", fields, "Remove the second factor"})
}

// DesktopLogin is the page with the text that finishes a login in a desktop app.
func DesktopLogin(text string) View {
	return View{Template: "desktop", Title: "Finish your login", Data: text}
}

package web

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

// DesktopLogin is the page with the text that finishes a login in a desktop app.
func DesktopLogin(text string) View {
	return View{Template: "desktop", Title: "Finish your login", Data: text}
}

package web

// Message is a page with text only.
func Message(title, text string) View {
	return View{Template: "message", Title: title, Data: text}
}

// Failure is a page that says why a request failed.
func Failure(title, reason string) View {
	return View{Template: "message", Title: title, Error: reason, Data: ""}
}

// Provider is a login provider on a page.
type Provider struct {
	Name, URL string
	Icon      string // path of the picture on the button; "": none
}

// LoginForm is the data of the page with the login form.
type LoginForm struct {
	URL   string // of the organization, for apps
	Email string // as entered before
	Next  string // path to which the user returns
	Reset bool   // a forgotten password can be replaced
	// Passwords is false if the organization has switched off logins with a password.
	Passwords bool
	// Names says that users can also enter the names that they have in a directory.
	Names    bool
	Register bool // a user can sign up without an invitation
	// Mobile and Desktop are the one-time secrets of the app that has opened the page, or "".
	Mobile, Desktop string
	Demo            []DemoAccount
	Providers       []Provider
	Passkey         string // address of the page for a login with a passkey; "": none
}

// DemoAccount is an account of a demo organization, which needs no password.
type DemoAccount struct {
	Email, Name string
	Role        string // in English
	Picture     string // path
}

// Login is the page with the login form.
func Login(organization string, f LoginForm) View {
	return View{Template: "login", Title: organization, Data: f}
}

// JoinForm is the data of the page of an invitation.
type JoinForm struct {
	Inviter     string // "" if unknown
	Email, Name string
	Multi       bool // the user chooses the address
	Providers   []Provider
}

// Join is the page on which an invited person makes an account.
func Join(organization string, f JoinForm) View {
	return View{Template: "join", Title: organization, Data: f}
}

// Confirm is a page with a question and a button that answers yes.
func Confirm(title, question, button string) View {
	return View{Template: "confirm", Title: title, Data: [2]string{question, button}}
}

// Session is one browser session as its user sees it.
type Session struct {
	ID           int64
	Browser      string // name, or "" if unknown; the same for System
	System       string
	Address      string
	Opened, Used string // dates
	Own          bool   // the page was loaded with it
	Until        string // when a login of the operator ends; "": it is the user's own
	Reason       string // of the operator
}

// Sessions is the page with a user's browser sessions.
func Sessions(list []Session) View {
	return View{Template: "sessions", Title: "Your sessions", Data: list}
}

// HomeData is the data of the start page.
type HomeData struct {
	URL, Name, Email string
	Theme            string // light, dark or auto
	Session          string // names the browser session: its tabs share an event queue
	Visitor          bool   // the page is of a visitor without an account, who reads web-public channels
	Unused           string // names of settings that have no effect, separated by spaces; the client hides them
}

// Home is the start page of a user: the client, and without scripts a page about apps.
func Home(organization string, d HomeData) View {
	return View{Template: "home", Title: organization, Client: true, Data: d}
}

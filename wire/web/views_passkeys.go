package web

// PasskeyScriptPath is the path of the script that asks a device for a passkey. It changes with the content.
var PasskeyScriptPath = "/static/parley/passkey-" + hash(PasskeyScript()) + ".js"

// PasskeyScript returns the script that asks a device for a passkey.
func PasskeyScript() []byte { return mustRead("passkey.js") }

// PasskeyForm is a form that asks a device for a passkey.
type PasskeyForm struct {
	Do       string // function of the browser: create or get
	Options  string // of the function, in JSON
	Question string // the sealed question
	Button   string // in English
	Auto     bool   // the page asks without a click
	// Named and AskPassword say that the form has a field for a name, and for the password.
	Named, AskPassword bool
	// Next, Mobile and Desktop are those of LoginForm.
	Next, Mobile, Desktop string
}

// Passkey is a passkey as its user sees it.
type Passkey struct {
	ID, Name    string
	Added, Used string // dates; Used is "" before the first use
}

// PasskeysPage is the data of the page with a user's passkeys.
type PasskeysPage struct {
	List        []Passkey
	AskPassword bool         // the login was long ago
	Passkey     *PasskeyForm // nil: no passkey can be added
}

// Passkeys is the page with a user's passkeys.
func Passkeys(d PasskeysPage) View {
	return View{Template: "passkeys", Title: "Your passkeys", Script: PasskeyScriptPath, Data: d}
}

// passkeyLogin is the data of the page of PasskeyLogin.
type passkeyLogin struct {
	Passkey *PasskeyForm
	Back    string
}

// PasskeyLogin is the page on which a user logs in with a passkey. back is the address of the login page.
func PasskeyLogin(f *PasskeyForm, back string) View {
	return View{Template: "passkey_login", Title: "Log in", Script: PasskeyScriptPath, Data: passkeyLogin{f, back}}
}

// scriptOf returns the path of the script of a page with a form, "" if the page has none.
func scriptOf(f *PasskeyForm) string {
	if f == nil {
		return ""
	}
	return PasskeyScriptPath
}

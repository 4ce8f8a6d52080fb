package web

// ConsentForm is the data of the page on which a user allows an app a limited API key.
type ConsentForm struct {
	App       string // name that the app has chosen
	Host      string // to which the browser goes back
	User      string
	Rights    []string // of the key; the user can leave some out
	Lifetimes []int64  // seconds
	Password  bool     // the user has to enter it
	Request   string   // sealed
}

// rightTexts are the texts of rights.
var rightTexts = map[string]string{
	"read":   "Read messages, channels and users",
	"send":   "Send messages",
	"react":  "React to messages and vote",
	"edit":   "Edit and delete messages",
	"upload": "Upload files",
	"remind": "Set reminders",
	"mark":   "Mark messages as read or starred",
}

// RightText returns the text of a right, in English.
func (f ConsentForm) RightText(right string) string { return rightTexts[right] }

// lifetimeTexts are the texts of lifetimes in seconds.
var lifetimeTexts = map[int64]string{
	24 * 3600:      "One day",
	7 * 24 * 3600:  "One week",
	30 * 24 * 3600: "30 days",
	90 * 24 * 3600: "90 days",
}

// LifetimeText returns the text of a lifetime, in English.
func (f ConsentForm) LifetimeText(lifetime int64) string { return lifetimeTexts[lifetime] }

// Consent is the page on which a user allows an app a limited API key.
func Consent(f ConsentForm) View {
	return View{Template: "consent", Title: "Allow an app", Data: f}
}

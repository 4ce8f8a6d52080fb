package wire

import (
	"strconv"
	"strings"

	"parley/actors/realm"
)

// webEndpoints are served below /json only. They take the place of endpoints of the API with the same method and path.
var webEndpoints = []Endpoint{
	Custom("POST", "/fetch_api_key", fetchOwnKey),
}

// WebEndpoints returns the endpoints that are served below /json only, for callers with a browser session.
func WebEndpoints() []Endpoint { return webEndpoints }

// SessionsPath is the path of the page with a user's browser sessions.
const SessionsPath = "/accounts/sessions/"

// HelpPath is the path of the page with which an operator begins a login as a user; the secret of the link follows.
const HelpPath = "/accounts/help/"

type ownKeyAnswer struct {
	Key   string `json:"api_key"`
	Email string `json:"email"`
}

type ownKeyForm struct {
	Password string `form:"password"`
}

// fetchOwnKey returns the API key of the caller, after the password (protocol). A user without one needs a recent
// login.
func fetchOwnKey(c *Call, f ownKeyForm) (*ownKeyAnswer, error) {
	if err := c.confirmNow(f.Password); err != nil {
		return nil, err
	}
	key, err := Execute(c, realm.IssueAPIKey{User: c.Account.User})
	return &ownKeyAnswer{key, c.Account.Email}, err
}

// CheckLogin returns the active account of a user with a password, and the hash that the password was checked against.
func CheckLogin(c *Call, email, password string) (*Account, string, error) {
	a, hash, err := accountByPassword(c, email, password)
	if err == nil && !a.Active {
		err = ErrAccountDeactivated()
	}
	return a, hash, err
}

// AppLogin is the account that an app logs in to, with its API key.
type AppLogin struct {
	User       realm.UserID
	Email, Key string
}

// DevelopmentLogIn opens a session without a password, on servers that allow development logins.
func DevelopmentLogIn(c *Call, email string) (o realm.OpenedBrowserSession, err error) {
	a, ok := c.Server.AccountByEmail(c.Realm, email)
	switch {
	case !c.Tools.Dev:
		return o, realm.Missing("Endpoint not available in production.")
	case !ok || a.Bot != realm.Human:
		return o, errAuthFailed()
	case !a.Active:
		return o, ErrAccountDeactivated()
	}
	return OpenSession(c, realm.LogIn{User: a.User})
}

// maxDevelopmentLogins limits the accounts that a login page offers.
const maxDevelopmentLogins = 20

// DevelopmentAccount is an account that needs no password.
type DevelopmentAccount struct {
	Email, Name string
	Role        string // in English, as pages show it
	Picture     string // path
}

// DevelopmentLogins returns the accounts that DevelopmentLogIn accepts, the oldest first.
func DevelopmentLogins(c *Call, v realm.View) (accounts []DevelopmentAccount) {
	if !c.Tools.Dev {
		return nil
	}
	v.EachUser(func(u *realm.User) {
		if u.Active && !u.System && !u.IsBot() && len(accounts) < maxDevelopmentLogins {
			info := v.UserInfo(u.ID)
			if info.Avatar == "G" { // the page loads nothing from other servers
				info.Avatar = ""
			}
			accounts = append(accounts, DevelopmentAccount{u.Email, u.Name, roleTitles[u.Role], ownAvatarURL(info,
				c.Site)})
		}
	})
	return accounts
}

// roleTitles are the names of roles on pages, in English.
var roleTitles = map[realm.Role]string{
	realm.Owner: "Owner", realm.Administrator: "Administrator", realm.Moderator: "Moderator", realm.Member: "Member",
	realm.Guest: "Guest",
}

// OpenSession opens a browser session for a user whose credentials were checked.
func OpenSession(c *Call, login realm.LogIn) (realm.OpenedBrowserSession, error) {
	return openSession(c, login, c.loginEmail())
}

func openSession(
	c *Call, login realm.LogIn, compose func(realm.LoginEmail) realm.Email,
) (realm.OpenedBrowserSession, error) {
	cmd := realm.OpenBrowserSession{LogIn: login, Agent: c.Agent, Address: c.Address, Compose: compose}
	return Execute(c.asServer(), cmd)
}

// loginEmail returns the function that composes the email about a login, or nil if the server sends none.
func (c *Call) loginEmail() func(realm.LoginEmail) realm.Email {
	if c.Tools.Emails == nil {
		return nil
	}
	emails, site := c.Tools.Emails, c.Site
	return func(l realm.LoginEmail) realm.Email { return emails.NewLogin(l, site) }
}

// CSRFToken returns the token that every request of a browser session that changes something must contain. It stays
// the same when the session gets a new secret, so that open pages continue to work.
func CSRFToken(t *Tools, id realm.ID, u realm.UserID, session int64) string {
	return t.Sign("CSRF token of " + strconv.Itoa(int(id)) + "/" + u.String() + "/" +
		strconv.FormatInt(session, 10))[:csrfTokenLength]
}

// csrfTokenLength is the length of a CSRF token in hexadecimal digits.
const csrfTokenLength = 32

// WebClientName returns the client name of a request with a browser session: the name of an app that shows web pages,
// or "website" for every browser (protocol).
func WebClientName(agent string) string {
	if name := ClientName(agent); strings.HasPrefix(name, "Zulip") {
		return name
	}
	return "website"
}

// agentNames has the parts of User-Agent headers from which DeviceName takes the names of programs and systems. The
// order matters: most browsers claim to be others as well.
var agentNames = [2][][2]string{
	{
		{"ZulipElectron", "Zulip"}, {"Edg", "Edge"}, {"OPR/", "Opera"}, {"Vivaldi", "Vivaldi"},
		{"Firefox", "Firefox"}, {"FxiOS", "Firefox"}, {"CriOS", "Chrome"}, {"Chrome", "Chrome"}, {"Safari", "Safari"},
		{"curl", "curl"},
	},
	{
		{"Android", "Android"}, {"iPhone", "iOS"}, {"iPad", "iOS"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"},
		{"Mac OS", "macOS"}, {"Macintosh", "macOS"}, {"Linux", "Linux"},
	},
}

// DeviceName returns the browser and the system of a User-Agent header, such as "Firefox" and "Linux"; "" for those
// that it does not know.
func DeviceName(agent string) (browser, system string) {
	var found [2]string
	for i, names := range agentNames {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				found[i] = n[1]
				break
			}
		}
	}
	return found[0], found[1]
}

// AppText returns the program and the system of a User-Agent header of an app in words.
func AppText(agent string) string {
	browser, system := DeviceName(agent)
	if browser != "" {
		return DeviceText(agent)
	}
	name := ClientName(agent)
	if agent == "" {
		name = "an unknown app"
	}
	if system != "" {
		return name + " on " + system
	}
	return name
}

// UnknownBrowser is the text for a User-Agent header that names no known browser or system.
const UnknownBrowser = "an unknown browser"

// DeviceText returns the browser and the system of a User-Agent header in words.
func DeviceText(agent string) string {
	browser, system := DeviceName(agent)
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	}
	return UnknownBrowser
}

package wire

import (
	"strconv"
	"strings"

	"parley/actors/realm"
)

var loginEndpoints = []Endpoint{
	Custom("GET", "/server_settings", serverSettings).withoutLogin(),
	Custom("POST", "/fetch_api_key", fetchKeyByPassword).withoutLogin(),
	Custom("POST", "/dev_fetch_api_key", devFetchKey).developmentOnly(),
	Custom("GET", "/dev_list_users", devListUsers).developmentOnly(),
	CommandFromCall("POST", "/users/me/api_key/regenerate", regenerateKey, func(key string) apiKeyAnswer {
		return apiKeyAnswer{key}
	}),
}

// serverSettingsAnswer has the fields of the organization if the request's host is that of one.
type serverSettingsAnswer struct {
	Version      string           `json:"zulip_version"`
	MergeBase    string           `json:"zulip_merge_base"`
	Level        int              `json:"zulip_feature_level"`
	Push         bool             `json:"push_notifications_enabled"`
	Incompatible bool             `json:"is_incompatible"`
	EmailLogin   bool             `json:"email_auth_enabled"`
	EmailNames   bool             `json:"require_email_format_usernames"`
	External     []externalMethod `json:"external_authentication_methods"`
	Methods      map[string]bool  `json:"authentication_methods"`
	URL          *string          `json:"realm_url,omitzero"`
	URI          *string          `json:"realm_uri,omitzero"`
	Name         *string          `json:"realm_name,omitzero"`
	Icon         *string          `json:"realm_icon,omitzero"`
	Description  *string          `json:"realm_description,omitzero"`
	WebPublic    *bool            `json:"realm_web_public_access_enabled,omitzero"`
}

// loginAnswer has the API key of an account.
type loginAnswer struct {
	Key   string       `json:"api_key"`
	Email string       `json:"email"`
	User  realm.UserID `json:"user_id"`
}

type apiKeyAnswer struct {
	Key string `json:"api_key"`
}

type devUsersAnswer struct {
	Admins []devUserJSON `json:"direct_admins"`
	Users  []devUserJSON `json:"direct_users"`
}

// devUserJSON is an account that development tools can log in to; URI is the older name of URL.
type devUserJSON struct {
	Email string `json:"email"`
	URL   string `json:"realm_url"`
	URI   string `json:"realm_uri"`
}

func serverSettings(c *Call, _ noParameters) (*serverSettingsAnswer, error) {
	methods := map[string]bool{
		"password":       true,
		"dev":            c.Tools.Dev,
		"email":          true,
		"ldap":           false,
		"remoteuser":     false,
		"github":         false,
		"azuread":        false,
		"gitlab":         false,
		"google":         false,
		"apple":          false,
		"saml":           false,
		"openid connect": false,
	}
	a := &serverSettingsAnswer{Version: Version, MergeBase: Version, Level: FeatureLevel, Push: c.Tools.Push != nil,
		Incompatible: ClientName(c.Agent) == "ZulipInvalid", EmailLogin: true, EmailNames: !c.Site.HasDirectory(),
		Methods: methods, External: externalMethods(c.Site)}
	if c.Realm == 0 && c.Site.Name != "" {
		return nil, realm.BadRequest("Invalid subdomain")
	}
	for _, p := range c.Site.Providers() {
		methods[strings.ToLower(methodNames[p.Type])] = true
	}
	if c.Realm == 0 {
		return a, nil
	}
	return Read(c, func(v realm.View) (*serverSettingsAnswer, error) {
		o, passwords := v.Org(), v.PasswordLogin()
		methods["password"], methods["email"], a.EmailLogin = passwords, passwords, passwords
		a.URL, a.URI, a.Name, a.Icon = ptr(c.Site.URL), ptr(c.Site.URL), ptr(o.Name), ptr(iconURL(o, c.Site))
		a.Description, a.WebPublic = ptr(o.DescriptionHTML), ptr(v.SpectatorsAllowed())
		return a, nil
	})
}

func iconURL(o *realm.Organization, s Site) string {
	return pictureURL(realm.Icon, o.PictureOf(realm.Icon), s)
}

// realmPath is the name of an organization in the paths of its files.
func realmPath(s Site) string {
	if s.Name == "" {
		return "root"
	}
	return s.Name
}

type fetchKeyForm struct {
	Username string `form:"username,required,strip"`
	Password string `form:"password,required"`
}

func errAuthFailed() error {
	return realm.Refuse(realm.Unauthenticated, "AUTHENTICATION_FAILED", "Your username or password is incorrect")
}

func fetchKeyByPassword(c *Call, f fetchKeyForm) (*loginAnswer, error) {
	a, hash, person, err := CheckNamedLogin(c, f.Username, f.Password)
	if err == nil && person != nil {
		a, err = accountOfDirectory(c, person)
	}
	if err != nil {
		return nil, err
	}
	if a.Active { // a deactivated account is refused as such
		need, err := FactorNeeded(c, a.User)
		if err != nil {
			return nil, err
		}
		if need != NoFactor {
			return nil, errFactorNeeded()
		}
	}
	return issueKey(c, a, hash, c.loginEmail())
}

// accountByPassword returns the account of a user with a password, and the hash that the password was checked against.
// The account may be deactivated.
func accountByPassword(c *Call, email, password string) (a *Account, hash string, err error) {
	if err := c.checkLoginPlace(); err != nil {
		return nil, "", err
	}
	a, hash, right, err := localAccount(c, email, password)
	if err != nil {
		return nil, "", err
	}
	if !right {
		c.noteFailedLogin(a)
		return nil, "", errAuthFailed()
	}
	return a, hash, nil
}

// checkLoginPlace refuses logins where there is no organization, or a deactivated one.
func (c *Call) checkLoginPlace() error {
	if c.Realm == 0 {
		return realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
	}
	if c.Site.Deactivated {
		return errRealmDeactivated()
	}
	return nil
}

// noteFailedLogin records a failed login to an account; nil: there is none.
func (c *Call) noteFailedLogin(a *Account) {
	if a != nil {
		c.Server.RunAsync([]AsyncCommand{{Realm: c.Realm, Caller: realm.Caller{System: true,
			Client: c.Caller.Client, Address: c.Address, Operation: "note a failed login"},
			CommandWithCallback: realm.NoteFailedLogin{User: a.User}}})
	}
}

// localAccount returns the account with an address, nil if there is none, and whether the password is right. hash is
// what the password was checked against.
func localAccount(c *Call, email, password string) (a *Account, hash string, right bool, err error) {
	passwords, err := Read(c, func(v realm.View) (bool, error) { return v.PasswordLogin(), nil })
	if err != nil {
		return nil, "", false, err
	}
	if !passwords {
		return nil, "", false, realm.ErrPasswordLogin()
	}
	if !realm.ValidEmail(email) {
		return nil, "", false, realm.ErrInvalidEmail()
	}
	a, ok := c.Server.AccountByEmail(c.Realm, email)
	if !ok {
		a = nil
	}
	// checking "" takes the same time, so that timing does not reveal which accounts exist
	if ok && a.Bot == realm.Human {
		hash = a.Password
	}
	right, err = c.checkPassword(email, password, hash)
	return a, hash, right, err
}

// ErrAccountDeactivated refuses a login to a deactivated account.
func ErrAccountDeactivated() error {
	return realm.Refuse(realm.Unauthenticated, "USER_DEACTIVATED", "Account is deactivated")
}

// checkPassword checks a password against a hash. It refuses after too many attempts for that account. The hash ""
// never matches and takes as long as a real one.
func (c *Call) checkPassword(email, password, hash string) (bool, error) {
	key := strconv.Itoa(int(c.Realm)) + "/" + realm.FoldEmail(email)
	if err := c.CountPasswordAttempt(key); err != nil {
		return false, err
	}
	right, err := c.Tools.CheckPassword(c.Realm, password, hash)
	if right {
		c.ForgetPasswordAttempts(key)
	}
	return right, err
}

// issueKey returns the API key of an account and records the login. password is the hash that the user's password was
// checked against, or "" for a login without password. compose returns the email about the login; nil: none.
func issueKey(
	c *Call, a *Account, password string, compose func(realm.LoginEmail) realm.Email,
) (*loginAnswer, error) {
	if c.Site.Deactivated {
		return nil, errRealmDeactivated()
	}
	if !a.Active {
		return nil, ErrAccountDeactivated()
	}
	key, err := Execute(&Call{Server: c.Server, Realm: a.Realm, Caller: realm.Caller{System: true}},
		realm.LogInApp{LogIn: realm.LogIn{User: a.User, Password: password}, Agent: c.Agent, Address: c.Address,
			Compose: compose})
	if err != nil {
		return nil, err
	}
	return &loginAnswer{key, a.Email, a.User}, nil
}

type devFetchKeyForm struct {
	Username string `form:"username,required,strip"`
}

// devFetchKey returns the API key of an account without a password. It also logs a human in, in the browser that sent
// the request (protocol).
func devFetchKey(c *Call, f devFetchKeyForm) (*loginAnswer, error) {
	if c.Realm == 0 {
		return nil, realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
	}
	if !realm.ValidEmail(f.Username) {
		return nil, realm.ErrInvalidEmail()
	}
	a, ok := c.Server.AccountByEmail(c.Realm, f.Username)
	if !ok {
		return nil, errAuthFailed()
	}
	answer, err := issueKey(c, a, "", nil) // without an email: development tools log in often
	if err == nil && a.Bot == realm.Human {
		var opened realm.OpenedBrowserSession
		opened, err = openSession(c, realm.LogIn{User: a.User}, nil)
		c.Opened = &opened
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func devListUsers(c *Call, _ noParameters) (*devUsersAnswer, error) {
	return Read(c, func(v realm.View) (*devUsersAnswer, error) {
		out := &devUsersAnswer{}
		v.EachUser(func(u *realm.User) {
			switch x := (devUserJSON{u.Email, c.Site.URL, c.Site.URL}); {
			case u.System || !u.Active || u.IsBot():
			case u.IsAdmin():
				out.Admins = append(out.Admins, x)
			default:
				out.Users = append(out.Users, x)
			}
		})
		return out, nil
	})
}

type regenerateKeyForm struct {
	Password string `form:"password,extension=a browser session alone must not make a key that outlives it"`
}

// regenerateKey replaces the key of the caller. With a session it needs the password.
func regenerateKey(c *Call, f regenerateKeyForm) (realm.IssueAPIKey, error) {
	return realm.IssueAPIKey{User: c.Caller.User, Only: true}, c.checkKeyMaker(f.Password)
}

// maxClientName is the maximum length of a client name in characters (protocol).
const maxClientName = 30

// ClientName returns the program name of a User-Agent header: the text before the first slash, digit or bracket,
// without spaces at its ends.
func ClientName(agent string) string {
	if agent == "" {
		return "Unspecified"
	}
	end := strings.IndexAny(agent, "/ (")
	if end < 0 {
		end = len(agent)
	} else if agent[end] == ' ' {
		for end < len(agent) && !strings.ContainsRune("0123456789/(", rune(agent[end])) {
			end++
		}
	}
	name := strings.TrimSpace(agent[:end])
	if name == "" {
		return "Unspecified"
	}
	if r := []rune(name); len(r) > maxClientName {
		name = string(r[:maxClientName])
	}
	return name
}

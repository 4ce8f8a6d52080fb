package wire

import (
	"strconv"
	"strings"

	"parley/actors/realm"
)

var loginEndpoints = []Endpoint{
	Custom("GET", "/server_settings", serverSettings).
		Returns("{zulip_version: str, zulip_merge_base: str, zulip_feature_level: int, " +
			"push_notifications_enabled: bool, is_incompatible: bool, email_auth_enabled: bool, " +
			"require_email_format_usernames: bool, external_authentication_methods: [], " +
			"authentication_methods: {*: bool}, realm_url?: str, realm_uri?: str, realm_name?: str, " +
			"realm_icon?: str, realm_description?: str, realm_web_public_access_enabled?: bool}").withoutLogin(),
	Custom("POST", "/fetch_api_key", fetchKeyByPassword).Returns("{api_key: str, email: str, user_id: int}").
		withoutLogin(),
	Custom("POST", "/dev_fetch_api_key", devFetchKey).
		Returns("{api_key: str, email: str, user_id: int}").developmentOnly(),
	Custom("GET", "/dev_list_users", devListUsers).
		Returns("{direct_admins: [DevUser], direct_users: [DevUser]}").developmentOnly(),
	CommandFromCall("POST", "/users/me/api_key/regenerate", regenerateKey, func(key string) Answer {
		return Answer{"api_key": key}
	}).Returns("{api_key: str}"),
}

func serverSettings(c *Call, _ noParameters) (Answer, error) {
	methods := obj{
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
	a := Answer{
		"zulip_version":                   Version,
		"zulip_merge_base":                Version,
		"zulip_feature_level":             FeatureLevel,
		"push_notifications_enabled":      c.Tools.Push != nil,
		"is_incompatible":                 ClientName(c.Agent) == "ZulipInvalid",
		"email_auth_enabled":              true,
		"require_email_format_usernames":  true,
		"external_authentication_methods": []any{},
		"authentication_methods":          methods,
	}
	if c.Realm == 0 && c.Site.Name != "" {
		return nil, realm.BadRequest("Invalid subdomain")
	}
	if c.Realm == 0 {
		return a, nil
	}
	return Read(c, func(v realm.View) (Answer, error) {
		o, passwords := v.Org(), v.PasswordLogin()
		methods["password"], methods["email"], a["email_auth_enabled"] = passwords, passwords, passwords
		a["realm_url"], a["realm_uri"], a["realm_name"], a["realm_icon"] = c.Site.URL, c.Site.URL, o.Name,
			iconURL(o, c.Site)
		a["realm_description"], a["realm_web_public_access_enabled"] = o.DescriptionHTML, v.SpectatorsAllowed()
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

func fetchKeyByPassword(c *Call, f fetchKeyForm) (Answer, error) {
	a, hash, err := accountByPassword(c, f.Username, f.Password)
	if err != nil {
		return nil, err
	}
	return issueKey(c, a, hash, c.loginEmail())
}

// accountByPassword returns the account of a user with a password, and the hash that the password was checked against.
// The account may be deactivated.
func accountByPassword(c *Call, email, password string) (a *Account, hash string, err error) {
	if c.Realm == 0 {
		return nil, "", realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
	}
	if c.Site.Deactivated {
		return nil, "", errRealmDeactivated()
	}
	passwords, err := Read(c, func(v realm.View) (bool, error) { return v.PasswordLogin(), nil })
	if err != nil {
		return nil, "", err
	}
	if !passwords {
		return nil, "", realm.ErrPasswordLogin()
	}
	if !realm.ValidEmail(email) {
		return nil, "", realm.ErrInvalidEmail()
	}
	a, ok := c.Server.AccountByEmail(c.Realm, email)
	// checking "" takes the same time, so that timing does not reveal which accounts exist
	if ok && a.Bot == realm.Human {
		hash = a.Password
	}
	right, err := c.checkPassword(email, password, hash)
	if err != nil {
		return nil, "", err
	}
	if !right {
		if ok {
			c.Server.RunAsync([]AsyncCommand{{Realm: c.Realm, Caller: realm.Caller{System: true,
				Client: c.Caller.Client, Address: c.Address, Operation: "note a failed login"},
				CommandWithCallback: realm.NoteFailedLogin{User: a.User}}})
		}
		return nil, "", errAuthFailed()
	}
	return a, hash, nil
}

func errAccountDeactivated() error {
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
func issueKey(c *Call, a *Account, password string, compose func(realm.LoginEmail) realm.Email) (Answer, error) {
	if c.Site.Deactivated {
		return nil, errRealmDeactivated()
	}
	if !a.Active {
		return nil, errAccountDeactivated()
	}
	key, err := Execute(&Call{Server: c.Server, Realm: a.Realm, Caller: realm.Caller{System: true}},
		realm.LogInApp{LogIn: realm.LogIn{User: a.User, Password: password}, Agent: c.Agent, Address: c.Address,
			Compose: compose})
	if err != nil {
		return nil, err
	}
	return Answer{"api_key": key, "email": a.Email, "user_id": a.User}, nil
}

type devFetchKeyForm struct {
	Username string `form:"username,required,strip"`
}

// devFetchKey returns the API key of an account without a password. It also logs a human in, in the browser that sent
// the request (protocol).
func devFetchKey(c *Call, f devFetchKeyForm) (Answer, error) {
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

func devListUsers(c *Call, _ noParameters) (Answer, error) {
	return Read(c, func(v realm.View) (Answer, error) {
		admins, users := []any{}, []any{}
		v.EachUser(func(u *realm.User) {
			switch e := (obj{"email": u.Email, "realm_url": c.Site.URL, "realm_uri": c.Site.URL}); {
			case u.System || !u.Active || u.IsBot():
			case u.IsAdmin():
				admins = append(admins, e)
			default:
				users = append(users, e)
			}
		})
		return Answer{"direct_admins": admins, "direct_users": users}, nil
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

package wire

import (
	"strconv"
	"strings"

	"parley/actors/realm"
)

var loginEndpoints = []Endpoint{
	opened(Custom("GET", "/server_settings", serverSettings).Says("{zulip_version: str, zulip_merge_base: str, zulip_feature_level: int, push_notifications_enabled: bool, is_incompatible: bool, email_auth_enabled: bool, require_email_format_usernames: bool, external_authentication_methods: [], authentication_methods: {*: bool}, realm_url?: str, realm_uri?: str, realm_name?: str, realm_icon?: str, realm_description?: str, realm_web_public_access_enabled?: bool}")),
	opened(Custom("POST", "/fetch_api_key", fetchKey).Says("{api_key: str, email: str, user_id: int}")),
	development(Custom("POST", "/dev_fetch_api_key", devFetchKey).Says("{api_key: str, email: str, user_id: int}")),
	development(Custom("GET", "/dev_list_users", devListUsers).Says("{direct_admins: [DevUser], direct_users: [DevUser]}")),
	Act("POST", "/users/me/api_key/regenerate", regenerateKey, func(key string) Answer { return Answer{"api_key": key} }).Says("{api_key: str}"),
}

func opened(e Endpoint) Endpoint      { e.Open = true; return e }
func development(e Endpoint) Endpoint { e.Open, e.Dev = true, true; return e }

func serverSettings(c *Call, _ none) (Answer, error) {
	a := Answer{
		"zulip_version": Version, "zulip_merge_base": Version, "zulip_feature_level": FeatureLevel,
		"push_notifications_enabled": c.Tools.Push != nil, "is_incompatible": ClientName(c.Agent) == "ZulipInvalid",
		"email_auth_enabled": true, "require_email_format_usernames": true,
		"external_authentication_methods": []any{},
		"authentication_methods": obj{"password": true, "dev": c.Tools.Dev, "email": true, "ldap": false, "remoteuser": false, "github": false,
			"azuread": false, "gitlab": false, "google": false, "apple": false, "saml": false, "openid connect": false},
	}
	if c.Realm == 0 && c.Site.Name != "" {
		return nil, realm.Bad("Invalid subdomain")
	}
	if c.Realm == 0 {
		return a, nil
	}
	return Look(c, func(v realm.View) (Answer, error) {
		o := v.Org()
		a["realm_url"], a["realm_uri"], a["realm_name"], a["realm_icon"] = c.Site.URL, c.Site.URL, o.Name, iconURL(o, c.Site)
		a["realm_description"], a["realm_web_public_access_enabled"] = o.DescriptionHTML, v.SpectatorsAllowed()
		return a, nil
	})
}

func iconURL(o *realm.Organization, s Site) string {
	return pictureURL(realm.Icon, o.PictureOf(realm.Icon), s)
}

// realmPath is how an organization appears in the paths of its files.
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

func authFailed() error {
	return realm.Refuse(realm.Unauthenticated, "AUTHENTICATION_FAILED", "Your username or password is incorrect")
}

func fetchKey(c *Call, f fetchKeyForm) (Answer, error) {
	if c.Realm == 0 {
		return nil, realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
	}
	if c.Site.Closed {
		return nil, errRealmClosed()
	}
	if !realm.ValidEmail(f.Username) {
		return nil, errLoginName()
	}
	a, ok := c.House.ByEmail(c.Realm, f.Username)
	hash := "" // the check below costs the same either way, so that timing does not tell who exists
	if ok && a.Bot == realm.Human {
		hash = a.Password
	}
	right, err := c.hasPassword(f.Username, f.Password, hash)
	if err != nil {
		return nil, err
	}
	if !right {
		return nil, authFailed()
	}
	return issueKey(c, a)
}

func errLoginName() error { return realm.Bad("Enter a valid email address.") }

// hasPassword checks the password of somebody whose hash that is, unless he was asked for it too often.
func (c *Call) hasPassword(email, password, hash string) (bool, error) {
	who := strconv.Itoa(int(c.Realm)) + "/" + realm.FoldEmail(email)
	if err := c.Guess(who); err != nil {
		return false, err
	}
	right, err := c.Tools.CheckPassword(password, hash)
	if right {
		c.Guessed(who)
	}
	return right, err
}

// issueKey gives the account its key to log in with.
func issueKey(c *Call, a *Account) (Answer, error) {
	if c.Site.Closed {
		return nil, errRealmClosed()
	}
	if !a.Active {
		return nil, realm.Refuse(realm.Unauthenticated, "USER_DEACTIVATED", "Account is deactivated")
	}
	if _, err := Play(&Call{House: c.House, Realm: a.Realm, Caller: realm.Caller{System: true}}, realm.LogIn{User: a.User}); err != nil {
		return nil, err
	}
	key, err := Play(&Call{House: c.House, Realm: a.Realm, Caller: realm.Caller{System: true}}, realm.NewKey{User: a.User})
	if err != nil {
		return nil, err
	}
	return Answer{"api_key": key, "email": a.Email, "user_id": a.User}, nil
}

type devFetchKeyForm struct {
	Username string `form:"username,required,strip"`
}

func devFetchKey(c *Call, f devFetchKeyForm) (Answer, error) {
	if c.Realm == 0 {
		return nil, realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
	}
	if !realm.ValidEmail(f.Username) {
		return nil, errLoginName()
	}
	a, ok := c.House.ByEmail(c.Realm, f.Username)
	if !ok {
		return nil, authFailed()
	}
	return issueKey(c, a)
}

func devListUsers(c *Call, _ none) (Answer, error) {
	return Look(c, func(v realm.View) (Answer, error) {
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

func regenerateKey(c *Call, _ none) (realm.NewKey, error) {
	return realm.NewKey{User: c.Caller.User, Only: true}, nil
}

// maxClientName is how long a client's name may be, in characters (protocol).
const maxClientName = 30

// ClientName is the program's name in a User-Agent header: what comes before the first slash or space, and what follows
// that is neither digit, slash nor bracket.
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

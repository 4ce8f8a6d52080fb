package wire

import (
	"errors"
	"net/url"

	"parley/actors/realm"
)

// Paths of the pages of login providers; the type and the name of the provider follow (protocol).
const (
	SocialLoginPath  = "/accounts/login/social/"
	SocialSignUpPath = "/accounts/register/social/"
	// CompletePath is the address to which providers redirect; their type follows (protocol).
	CompletePath = "/complete/"
	// IdentitiesPath is the page with a user's identities at login providers.
	IdentitiesPath = "/accounts/identities/"
)

// methodNames are the names of the methods of login providers by their type (protocol).
var methodNames = map[string]string{"oidc": "OpenID Connect", "github": "GitHub", "saml": "SAML",
	realm.DirectoryType: "LDAP"}

// providerPath returns the last part of the address of a provider's pages.
func providerPath(p realm.LoginProvider) string { return p.Type + "/" + url.PathEscape(p.Name) }

// ProviderLoginPath returns the address of the page that begins a login at a provider.
func ProviderLoginPath(p realm.LoginProvider) string { return SocialLoginPath + providerPath(p) + "/" }

// externalMethod is a way to log in at a provider.
type externalMethod struct {
	Name     string  `json:"name"`
	Display  string  `json:"display_name"`
	Icon     *string `json:"display_icon"`
	LogInURL string  `json:"login_url"`
	JoinURL  string  `json:"signup_url"`
}

// externalMethods is the value of external_authentication_methods (protocol).
func externalMethods(s Site) []externalMethod {
	out := []externalMethod{}
	for _, p := range s.ProviderPages() {
		var icon *string
		if p.Icon != "" {
			icon = ptr(s.URL + p.Icon)
		}
		out = append(out, externalMethod{Name: p.Type + ":" + p.Name, Display: p.Display, Icon: icon,
			LogInURL: SocialLoginPath + providerPath(p), JoinURL: SocialSignUpPath + providerPath(p)})
	}
	return out
}

// AccountOfPerson returns the user that a person at a login provider is, after it has given the account what the
// provider says; false if there is none. It refuses a deactivated account. The problems are for the log.
func AccountOfPerson(c *Call, p realm.Person) (id realm.UserID, found bool, problems []string, err error) {
	id, err = Read(c.asServer(), func(v realm.View) (realm.UserID, error) {
		if u := v.FindByIdentity(p.Identity); u != nil {
			return u.ID, nil
		}
		return 0, nil
	})
	if err != nil || id == 0 {
		return 0, false, nil, err
	}
	if problems, err = UpdateFromProvider(c, id, p); err != nil {
		return 0, false, nil, err
	}
	_, err = Read(c.asServer(), func(v realm.View) (any, error) {
		if u := v.Find(id); u == nil || !u.Active {
			return nil, ErrAccountDeactivated()
		}
		return nil, nil
	})
	return id, true, problems, err
}

// UpdateFromProvider gives the account of a person the values of the login provider. While the nodes of a cluster are
// upgraded, it does nothing. The problems are for the log.
func UpdateFromProvider(c *Call, id realm.UserID, p realm.Person) (problems []string, err error) {
	out, err := Execute(c.asServer(), realm.UpdateFromProvider{User: id, Person: p})
	var refused *realm.Refusal
	if errors.As(err, &refused) && refused.Kind == realm.Busy {
		return []string{refused.Error()}, nil
	}
	return out.Problems, err
}

// EndSessionsOfPerson ends all browser sessions of the user with an identity, and returns the user; 0 if there is none.
func EndSessionsOfPerson(c *Call, name realm.IdentityName) (id realm.UserID, err error) {
	id, err = Read(c.asServer(), func(v realm.View) (realm.UserID, error) {
		if u := v.FindByIdentity(name); u != nil {
			return u.ID, nil
		}
		return 0, nil
	})
	if err == nil && id != 0 {
		_, err = Execute(c.asServer(), realm.EndBrowserSessions{User: id})
	}
	return id, err
}

// CheckNewName refuses full names that a new account cannot have.
func CheckNewName(c *Call, name string) error {
	_, err := Read(c.asServer(), func(v realm.View) (any, error) { return nil, v.CheckNewName(name) })
	return err
}

// LinkIdentity lets a user log in with an identity.
func LinkIdentity(c *Call, cmd realm.LinkIdentity) error {
	_, err := Execute(c.asServer(), cmd)
	return err
}

// SignUpWithIdentity makes an account for a person at a login provider. invite is the token of an invitation, or "".
func SignUpWithIdentity(c *Call, cmd realm.SignUpWithIdentity, invite string) (realm.UserID, error) {
	if invite != "" {
		cmd.Invite = c.Tools.HashKey(invite)
	}
	return Execute(c.asServer(), cmd)
}

// KeyForApp returns an API key for an app of a user. password is the hash that the user's password was checked against,
// or "" for a login without password.
func KeyForApp(c *Call, id realm.UserID, password string) (l AppLogin, err error) {
	a, err := Read(c.asServer(), func(v realm.View) (a Account, err error) {
		u := v.Find(id)
		if u == nil {
			return a, errAuthFailed()
		}
		return Account{Realm: c.Realm, User: u.ID, Email: u.Email, Active: u.Active}, nil
	})
	if err != nil {
		return l, err
	}
	answer, err := issueKey(c, &a, password, c.loginEmail())
	if err != nil {
		return l, err
	}
	return AppLogin{User: a.User, Email: a.Email, Key: answer.Key}, nil
}

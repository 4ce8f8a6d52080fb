package wire

import "parley/actors/realm"

// Dangerous acts need more than a browser session, which a user may have left open: a recent login, or the password
// once more. The acts are API keys and the rights of apps, second factors, passkeys and identities, changes of owners,
// exports and their approval, and the end of the organization. The rule is the same for all sessions. Requests with an
// API key are not asked, and logins of the operator to help a user cannot do these acts.

// FreshSeconds is how long after a login or after the password a session may do dangerous acts: the time to read some
// dialogs. The official web app asks for the password once and then sends several requests.
const FreshSeconds = 10 * 60

// askAgain is why the endpoint exists.
const askAgain = "dangerous acts in an old browser session need the password, for which Zulip does not ask"

var confirmEndpoints = []Endpoint{
	Custom("POST", "/users/me/confirmation", func(c *Call, f confirmForm) (a noFields, _ error) {
		if c.Session == nil {
			return a, realm.BadRequest("Only browser sessions are confirmed.")
		}
		return a, c.confirmNow(f.Password)
	}).extension(askAgain),
}

type confirmForm struct {
	Password string `form:"password,required"`
}

// confirmation says how a dangerous act can be confirmed.
type confirmation struct {
	password string // that the request has, or ""
	isAsked  bool   // the form of the act has a field for the password
	// always: a recent login is not enough for users with a password. API keys outlive the session.
	always bool
	// everyTime: the password is also needed in a session that has just sent it (protocol).
	everyTime bool
}

// errHelpSession refuses acts that outlive a login of the operator: keys, passwords and further logins.
func errHelpSession() error {
	return realm.BadRequest("A login to help a user cannot do this.")
}

// errNotFresh refuses a dangerous act until the user has proved that they use the session.
func errNotFresh(byPassword bool) error {
	return realm.Refuse(realm.Forbidden, "CONFIRMATION_REQUIRED", "Log out and log in again, then repeat this.").
		With("by_password", byPassword)
}

// confirm refuses a dangerous act of a session whose user has neither logged in nor entered the password within
// FreshSeconds, and a wrong password. The right one makes the session fresh.
func (c *Call) confirm(x confirmation) error {
	switch {
	case c.Session == nil:
		return nil
	case c.Session.IsHelp():
		return errHelpSession()
	case x.password == "" && !x.everyTime && c.PasswordConfirmed():
		return nil
	}
	hasPassword, err := Read(c, func(v realm.View) (bool, error) {
		return v.PasswordLogin() && c.Account.Password != "", nil
	})
	if err != nil {
		return err
	}
	recent := c.Server.Now().Unix()-c.Session.Opened < FreshSeconds
	switch {
	case recent && (!hasPassword || x.password == "" && !x.always):
		return nil
	case !hasPassword || !x.isAsked:
		return errNotFresh(hasPassword)
	}
	right := false
	if x.password != "" { // a request without one is no attempt
		if right, err = c.checkPassword(c.Account.Email, x.password, c.Account.Password); err != nil {
			return err
		}
	}
	if !right {
		return realm.BadRequest("Password is incorrect.")
	}
	c.ConfirmPassword()
	return nil
}

// CheckPasswordLogin refuses where users have no passwords in the organization.
func CheckPasswordLogin(c *Call) error {
	return checkPermission(c.asServer(), func(v realm.View) error {
		if !v.PasswordLogin() {
			return realm.ErrPasswordLogin()
		}
		return nil
	})
}

// IsFresh reports whether the call's session may change logins without the password.
func (c *Call) IsFresh() bool { return c.confirm(confirmation{}) == nil }

// ConfirmLoginChange refuses to change second factors, passkeys and identities. password is the field of the form,
// which is shown unless IsFresh.
func (c *Call) ConfirmLoginChange(password string) error {
	return c.confirm(confirmation{password: password, isAsked: true})
}

// checkKeyMaker refuses to make an API key of the caller's own account with a session alone.
func (c *Call) checkKeyMaker(password string) error {
	return c.confirm(confirmation{password: password, isAsked: true, always: true})
}

// confirmNow refuses to go on without the password, as the protocol does where the API key is shown.
func (c *Call) confirmNow(password string) error {
	return c.confirm(confirmation{password: password, isAsked: true, always: true, everyTime: true})
}

// confirmAct is confirm for acts without a field for the password. It asks only callers with a role, or a higher one:
// the command refuses the other ones.
func (c *Call) confirmAct(least realm.Role) error {
	return c.confirmIf(func(v realm.View) bool { return v.Find(v.User).Role <= least })
}

// confirmOwnerChange is confirmAct for a change of an account, which has an id or an address, that makes, changes or
// ends an owner. role is the new role; nil: another change.
func (c *Call) confirmOwnerChange(id realm.UserID, email string, role *realm.Role) error {
	return c.confirmIf(func(v realm.View) bool {
		u, err := v.ManagedUser(id, email)
		return err == nil && !u.IsBot() && v.Find(v.User).Role == realm.Owner &&
			(role == nil && u.Role == realm.Owner || role != nil && *role != u.Role &&
				(*role == realm.Owner || u.Role == realm.Owner))
	})
}

// confirmIf is confirm for the calls of which isDangerous reports true.
func (c *Call) confirmIf(isDangerous func(realm.View) bool) error {
	if c.Session == nil {
		return nil
	}
	dangerous, err := Read(c, func(v realm.View) (bool, error) { return isDangerous(v), nil })
	if err != nil || !dangerous {
		return err
	}
	return c.confirm(confirmation{})
}

package httpd

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"strings"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
	"parley/wire/web"
)

// passkeyPages are the pages of passkeys.
var passkeyPages = []pageRoute{
	{path: strings.TrimSuffix(wire.PasskeysPath, "/"), handle: (*Server).passkeysPage, posts: true, needsLogin: true},
	{path: strings.TrimSuffix(wire.PasskeyLoginPath, "/"), handle: (*Server).passkeyLoginPage, posts: true},
}

// withScript returns the policy of a page whose script asks for a passkey.
func withScript(policy string) string {
	return strings.Replace(policy, "default-src 'none';", "default-src 'none'; script-src 'self';", 1)
}

// Fields of forms with a passkey: the sealed question, and the answer of the device.
const (
	passkeyQuestionField = "passkey_question"
	passkeyAnswerField   = "passkey"
)

// passkeyQuestionUse is the use of a sealed question; see Server.seal.
const passkeyQuestionUse = "passkey question"

// passkeySite returns the place of the passkeys of the request's organization. It refuses an address at which browsers
// have none.
func passkeySite(p *pageRequest) (s signon.PasskeySite, err error) {
	if !signon.PasskeysWork(p.call.Site.URL) {
		return s, realm.ErrPasskey()
	}
	name, err := wire.Read(p.call, func(v realm.View) (string, error) { return v.Org().Name, nil })
	return signon.PasskeySite{URL: p.call.Site.URL, Name: name}, err
}

// askPasskey returns the form that asks for a passkey; nil if browsers have none at this address.
func (s *Server) askPasskey(p *pageRequest, use signon.PasskeyUse, id realm.UserID) (*web.PasskeyForm, error) {
	if !signon.PasskeysWork(p.call.Site.URL) {
		return nil, nil
	}
	site, err := passkeySite(p)
	if err != nil {
		return nil, err
	}
	user := signon.PasskeyUser{}
	if id != 0 {
		if user, err = passkeyUser(p, id); err != nil {
			return nil, err
		}
	}
	q, options, err := site.AskPasskey(use, user, s.now())
	if err != nil {
		return nil, err
	}
	question, err := s.seal(p, passkeyQuestionUse, q)
	if err != nil {
		return nil, err
	}
	f := &web.PasskeyForm{Do: "get", Options: string(options), Button: "Use a passkey", Question: question}
	if use == signon.AddPasskey {
		f.Do, f.Button, f.Named = "create", "Add a passkey", true
	}
	p.policy = withScript(cmp.Or(p.policy, pagePolicy))
	return f, nil
}

// passkeyUser returns a user with passkeys as devices know them.
func passkeyUser(p *pageRequest, id realm.UserID) (signon.PasskeyUser, error) {
	o, err := wire.FindPasskeyOwner(p.call, id)
	return signon.PasskeyUser{ID: id, Name: o.Name, Email: o.Email, Passkeys: o.Passkeys}, err
}

// passkeyQuestion returns the question that a form answers, with its use and its user.
func (s *Server) passkeyQuestion(p *pageRequest, use signon.PasskeyUse, id realm.UserID) (
	q signon.PasskeyQuestion, err error,
) {
	if !s.unseal(p, passkeyQuestionUse, p.field(passkeyQuestionField), &q) || q.Use != use || q.User != id {
		return q, realm.ErrPasskey()
	}
	if p.field(passkeyAnswerField) == "" {
		return q, realm.BadRequest("This browser has no passkeys, or its scripts are switched off.")
	}
	return q, nil
}

// addPasskey stores the passkey of a form. It returns recovery codes if they are the user's first ones.
func (s *Server) addPasskey(p *pageRequest, id realm.UserID) ([]string, error) {
	q, err := s.passkeyQuestion(p, signon.AddPasskey, id)
	if err != nil {
		return nil, err
	}
	site, err := passkeySite(p)
	if err != nil {
		return nil, err
	}
	user, err := passkeyUser(p, id)
	if err != nil {
		return nil, err
	}
	key, err := site.NewPasskey(q, user, p.field(passkeyAnswerField))
	if err != nil {
		s.options.Log.Info("passkey refused", "realm", p.call.Realm, "user", int64(id), "err", err)
		return nil, realm.ErrPasskey()
	}
	key.Name = p.field("name")
	codes := signon.NewRecoveryCodes()
	stored, err := wire.AddPasskey(p.call, id, key, codes)
	if err != nil {
		return nil, err
	}
	s.options.Log.Info("passkey added", "realm", p.call.Realm, "user", int64(id))
	if !stored {
		return nil, nil
	}
	for i := range codes {
		codes[i] = signon.ShownRecoveryCode(codes[i])
	}
	return codes, nil
}

// provePasskey checks the passkey of a form, and uses the answer up. id is the user of the question; find returns the
// user of the passkey.
func (s *Server) provePasskey(
	p *pageRequest, use signon.PasskeyUse, id realm.UserID, find func(realm.UserID) (signon.PasskeyUser, error),
) (realm.UserID, error) {
	q, err := s.passkeyQuestion(p, use, id)
	if err != nil {
		return 0, err
	}
	site, err := passkeySite(p)
	if err != nil {
		return 0, err
	}
	used, err := site.ProvePasskey(q, p.field(passkeyAnswerField), find)
	if err != nil {
		s.options.Log.Info("passkey refused", "realm", p.call.Realm, "user", int64(id), "err", err)
		return 0, realm.ErrPasskey()
	}
	return used.User, wire.UsePasskey(p.call, used)
}

// proveOwnPasskey checks the passkey of a form as the second factor of a user.
func (s *Server) proveOwnPasskey(p *pageRequest, id realm.UserID) error {
	_, err := s.provePasskey(p, signon.PasskeyFactor, id, func(id realm.UserID) (signon.PasskeyUser, error) {
		return passkeyUser(p, id)
	})
	return err
}

// passkeyLoginPage logs a user in with a passkey instead of a password.
func (s *Server) passkeyLoginPage(p *pageRequest) (web.View, error) {
	next := p.query("next")
	if p.posted() {
		next = p.field("next")
	}
	next = safeNext(next)
	app, err := appLoginOf(p)
	if err != nil {
		return web.Failure("Log in", s.errorText(err)), err
	}
	if app.mobile != "" {
		p.policy = formPolicy("zulip:")
	}
	failure := error(nil)
	if p.posted() {
		var view web.View
		if view, failure = s.logInByPasskey(p, app, next); failure == nil {
			return view, nil
		}
		p.redirect = ""
	}
	f, err := s.askPasskey(p, signon.PasskeyInstead, 0)
	if err != nil {
		return web.View{}, err
	}
	if f == nil {
		return pageNotFound()
	}
	f.Auto, f.Next, f.Mobile, f.Desktop = failure == nil, next, app.mobile, app.desktop
	view := web.PasskeyLogin(f, loginPath+appQuery(next, app))
	if failure != nil {
		view.Error = s.loginErrorText(failure)
	}
	return view, failure
}

// appQuery returns the query of a page of the login that goes on with it, or "".
func appQuery(next string, app appLogin) string {
	query := url.Values{}
	for name, value := range map[string]string{"next": next, mobileField: app.mobile, desktopField: app.desktop} {
		if value != "" && !(name == "next" && value == "/") {
			query.Set(name, value)
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// logInByPasskey logs in the user of a passkey. The device has asked for a PIN or a fingerprint, so no second factor is
// needed.
func (s *Server) logInByPasskey(p *pageRequest, app appLogin, next string) (web.View, error) {
	var owner wire.PasskeyOwner
	id, err := s.provePasskey(p, signon.PasskeyInstead, 0, func(id realm.UserID) (u signon.PasskeyUser, err error) {
		owner, err = wire.FindPasskeyLogin(p.call, id)
		return signon.PasskeyUser{ID: id, Name: owner.Name, Email: owner.Email, Passkeys: owner.Passkeys}, err
	})
	if err != nil {
		return web.View{}, err
	}
	return s.finishLogin(p, passedLogin{user: id, password: owner.Password, method: "passkey", app: app, next: next,
		proved: true})
}

// passkeysPage is the page on which users add, name and remove their passkeys, after a recent login or with the
// password.
func (s *Server) passkeysPage(p *pageRequest) (web.View, error) {
	c := p.call
	failure := error(nil)
	if p.posted() {
		var view web.View
		if view, failure = s.changePasskeys(p); failure == nil {
			return view, nil
		}
	}
	o, err := wire.FindPasskeyOwner(c, c.Caller.User)
	if err != nil {
		return web.View{}, err
	}
	page := web.PasskeysPage{AskPassword: !c.IsFresh()}
	for _, k := range o.Passkeys {
		x := web.Passkey{ID: base64.RawURLEncoding.EncodeToString(k.ID), Name: k.Name, Added: dateText(k.Added)}
		if k.Used > 0 {
			x.Used = dateText(k.Used)
		}
		page.List = append(page.List, x)
	}
	if len(o.Passkeys) < realm.MaxPasskeys {
		if page.Passkey, err = s.askPasskey(p, signon.AddPasskey, c.Caller.User); err != nil {
			return web.View{}, err
		}
	}
	if page.Passkey != nil {
		page.Passkey.AskPassword = page.AskPassword
	}
	view := web.Passkeys(page)
	if failure != nil {
		view.Error = s.loginErrorText(failure)
	}
	return view, failure
}

// changePasskeys obeys a form of the page with the passkeys.
func (s *Server) changePasskeys(p *pageRequest) (web.View, error) {
	c := p.call
	if err := c.ConfirmLoginChange(p.field("password")); err != nil {
		return web.View{}, err
	}
	id, err := base64.RawURLEncoding.DecodeString(p.field("id"))
	if err != nil {
		return web.View{}, realm.Missing("There is no such passkey.")
	}
	p.redirect = wire.PasskeysPath
	switch p.field("do") {
	case "rename":
		err = wire.RenamePasskey(c, id, p.field("name"))
	case "remove":
		if err = wire.RemovePasskey(c, id); err == nil {
			s.options.Log.Info("passkey removed", "realm", c.Realm, "user", int64(c.Caller.User))
		}
	default:
		var codes []string
		if codes, err = s.addPasskey(p, c.Caller.User); err == nil && codes != nil {
			p.redirect = ""
			return web.RecoveryCodes(codes, wire.PasskeysPath, ""), nil
		}
	}
	if err != nil {
		p.redirect = ""
	}
	return web.View{}, err
}

// addFirstPasskey is addPasskey in the login of a user that has no second factor, but needs one.
func (s *Server) addFirstPasskey(p *pageRequest, id realm.UserID) ([]string, error) {
	need, err := wire.FactorNeeded(p.call, id)
	if err == nil && need != wire.SetFactor {
		err = realm.BadRequest("This account has a second factor already.")
	}
	if err != nil {
		return nil, err
	}
	return s.addPasskey(p, id)
}

package httpd

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"html/template"
	"strings"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
	"parley/wire/web"
)

// factorPages are the pages of second factors.
var factorPages = []pageRoute{
	{path: factorLoginPath, handle: (*Server).factorLoginPage, posts: true},
	{path: strings.TrimSuffix(wire.FactorPath, "/"), handle: (*Server).factorPage, posts: true, needsLogin: true},
	{path: factorResetPath, handle: (*Server).factorResetPage, posts: true, needsLogin: true},
}

const (
	// factorLoginPath is the page that asks for a code in a login.
	factorLoginPath = "/accounts/login/factor"
	// factorResetPath is the page on which administrators remove the lost second factor of a user.
	factorResetPath = wire.FactorPath + "reset"
)

// waitingLogin is a login whose second factor is not proved yet, in factorCookie.
type waitingLogin struct {
	User            realm.UserID
	Password        string // digest of the hash that the password was checked against
	Method, Next    string
	Mobile, Desktop string
	Secret          string // of a second factor that the user has to add, or ""
}

// passwordDigest identifies the hash of a password without containing it.
func passwordDigest(hash string) string {
	sum := sha256.Sum256([]byte("login with " + hash))
	return hex.EncodeToString(sum[:16])
}

// askFactor continues a login whose user needs a second factor: it stores the login and redirects to the page for the
// code.
func (s *Server) askFactor(p *pageRequest, l passedLogin, need wire.FactorNeed) (web.View, error) {
	w := waitingLogin{User: l.user, Password: passwordDigest(l.password), Method: l.method, Next: l.next,
		Mobile: l.app.mobile, Desktop: l.app.desktop}
	if l.password == "" {
		w.Password = ""
	}
	if need == wire.SetFactor {
		w.Secret = signon.NewFactor()
	}
	p.redirect = factorLoginPath + "/"
	return web.View{}, s.setSealed(p, factorCookie, w)
}

// login returns the login that waits, if its account still has the password that was checked.
func (w *waitingLogin) login(p *pageRequest) (passedLogin, error) {
	l := passedLogin{user: w.User, method: w.Method, next: w.Next, app: appLogin{w.Mobile, w.Desktop}, proved: true}
	if w.Password == "" {
		return l, nil
	}
	hash, err := wire.PasswordHash(p.call, w.User)
	if err == nil && passwordDigest(hash) != w.Password {
		err = realm.BadRequest("Your password was changed meanwhile. Please log in again.")
	}
	l.password = hash
	return l, err
}

// factorLoginPage asks for a code of the second factor in a login, or for the first code of a new one.
func (s *Server) factorLoginPage(p *pageRequest) (web.View, error) {
	var w waitingLogin
	if !s.readSealed(p, factorCookie, &w) {
		p.redirect = loginPath
		return web.View{}, nil
	}
	if w.Mobile != "" {
		p.policy = formPolicy("zulip:")
	}
	var err error
	if p.posted() {
		var view web.View
		if view, err = s.proveFactor(p, &w); err == nil {
			s.removeSealed(p, factorCookie)
			return view, nil
		}
		p.redirect = ""
		s.options.Log.Info("second factor refused", "realm", p.call.Realm, "user", int64(w.User), "err", err)
	}
	failure := ""
	if err != nil {
		failure = s.loginErrorText(err)
	}
	view, pageErr := s.factorLoginView(p, &w, failure)
	if pageErr != nil {
		return web.View{}, pageErr
	}
	return view, err
}

// factorLoginView is the page that asks for a second factor in a login, or for a new one.
func (s *Server) factorLoginView(p *pageRequest, w *waitingLogin, failure string) (web.View, error) {
	if w.Secret != "" {
		view, err := s.newFactorView(p, w.User, w.Secret, newInLogin)
		view.Error = failure
		return view, err
	}
	o, err := wire.FindPasskeyOwner(p.call, w.User)
	if err != nil {
		return web.View{}, err
	}
	var ask *web.PasskeyForm
	if len(o.Passkeys) > 0 {
		if ask, err = s.askPasskey(p, signon.PasskeyFactor, w.User); err != nil {
			return web.View{}, err
		}
	}
	if ask != nil {
		ask.Auto = failure == "" && !o.HasApp
	}
	return web.FactorCode(ask, failure), nil
}

// proveFactor checks the code or the passkey of a form and finishes the login. A user that has added the factor gets
// the recovery codes first.
func (s *Server) proveFactor(p *pageRequest, w *waitingLogin) (web.View, error) {
	l, err := w.login(p)
	if err != nil {
		return web.View{}, err
	}
	passkey := p.field(passkeyQuestionField) != ""
	if w.Secret == "" {
		if passkey {
			err = s.proveOwnPasskey(p, w.User)
		} else {
			err = s.checkCode(p, w.User)
		}
		if err != nil {
			return web.View{}, err
		}
		return s.finishLogin(p, l)
	}
	var codes []string
	if passkey {
		codes, err = s.addFirstPasskey(p, w.User)
	} else {
		codes, err = s.addFactor(p, w.User, w.Secret)
	}
	if err != nil {
		return web.View{}, err
	}
	view, err := s.finishLogin(p, l)
	if err != nil {
		return view, err
	}
	next := p.redirect
	p.redirect = ""
	token, _ := view.Data.(string) // of a desktop app
	return web.RecoveryCodes(codes, next, token), nil
}

// checkCode checks the code of a form against the second factor of a user, and uses it up.
func (s *Server) checkCode(p *pageRequest, id realm.UserID) error {
	code, fromApp := signon.CleanCode(p.field("code"))
	return wire.CheckFactor(p.call, id, code, fromApp, func(secret string) (int64, bool) {
		return signon.MatchCode(secret, code, s.now())
	})
}

// addFactor stores a new second factor if the code of a form belongs to it, and returns its recovery codes.
func (s *Server) addFactor(p *pageRequest, id realm.UserID, secret string) ([]string, error) {
	code, _ := signon.CleanCode(p.field("code"))
	step, ok := signon.MatchCode(secret, code, s.now())
	if !ok {
		return nil, realm.ErrFactor()
	}
	codes := signon.NewRecoveryCodes()
	if err := wire.StoreFactor(p.call, id, secret, step, codes); err != nil {
		return nil, err
	}
	s.options.Log.Info("second factor added", "realm", p.call.Realm, "user", int64(id))
	for i := range codes {
		codes[i] = signon.ShownRecoveryCode(codes[i])
	}
	return codes, nil
}

// factorPolicy is pagePolicy for a page with the picture of a secret, which is inside the page.
var factorPolicy = strings.Replace(pagePolicy, "img-src 'self'", "img-src 'self' data:", 1)

// The places of newFactorView: in a login, and for a user with a recent login or with an old one.
const (
	newInLogin = iota
	newAfterLogin
	newWithPassword
)

// newFactorView is the page with the secret of a new second factor. In a login it offers a passkey instead.
func (s *Server) newFactorView(p *pageRequest, id realm.UserID, secret string, place int) (web.View, error) {
	org, email, err := wire.FactorNames(p.call, id)
	if err != nil {
		return web.View{}, err
	}
	picture, err := signon.FactorPicture(org, email, secret)
	if err != nil {
		return web.View{}, err
	}
	p.policy = factorPolicy
	d := web.NewFactorData{Secret: signon.ShownRecoveryCode(secret), AskPassword: place == newWithPassword,
		InLogin: place == newInLogin,
		Picture: template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(picture))}
	if place == newInLogin {
		d.Passkey, err = s.askPasskey(p, signon.AddPasskey, id)
	}
	return web.NewFactor(d), err
}

// factorPage is the page on which users add and remove their second factor.
func (s *Server) factorPage(p *pageRequest) (web.View, error) {
	c := p.call
	owner, err := wire.FindPasskeyOwner(c, c.Caller.User)
	if err != nil {
		return web.View{}, err
	}
	has := owner.HasApp
	if p.posted() {
		var view web.View
		if has {
			view, err = s.changeFactor(p)
		} else {
			view, err = s.addOwnFactor(p)
		}
		if err == nil {
			return view, nil
		}
	}
	failure := ""
	if err != nil {
		failure = s.loginErrorText(err)
	}
	var view web.View
	if has {
		view = web.Factor()
	} else {
		secret := signon.NewFactor()
		var kept ownFactor
		if s.readSealed(p, newFactorCookie, &kept) && kept.User == c.Caller.User {
			secret = kept.Secret
		} else if sealErr := s.setSealed(p, newFactorCookie, ownFactor{c.Caller.User, secret}); sealErr != nil {
			return web.View{}, sealErr
		}
		var pageErr error
		place := newAfterLogin
		if !c.IsFresh() {
			place = newWithPassword
		}
		if view, pageErr = s.newFactorView(p, c.Caller.User, secret, place); pageErr != nil {
			return view, pageErr
		}
	}
	view.Error = failure
	return view, err
}

// ownFactor is the secret of a second factor that a user is about to add.
type ownFactor struct {
	User   realm.UserID
	Secret string
}

// addOwnFactor adds the second factor of a page, after a recent login or with the password.
func (s *Server) addOwnFactor(p *pageRequest) (web.View, error) {
	c := p.call
	if err := c.ConfirmLoginChange(p.field("password")); err != nil {
		return web.View{}, err
	}
	var x ownFactor
	if !s.readSealed(p, newFactorCookie, &x) || x.User != c.Caller.User {
		return web.View{}, realm.BadRequest("This page was open too long. Please try again.")
	}
	codes, err := s.addFactor(p, c.Caller.User, x.Secret)
	if err != nil {
		return web.View{}, err
	}
	s.removeSealed(p, newFactorCookie)
	return web.RecoveryCodes(codes, wire.FactorPath, ""), nil
}

// changeFactor removes the second factor of the caller, after a code of it.
func (s *Server) changeFactor(p *pageRequest) (web.View, error) {
	c := p.call
	if err := s.checkCode(p, c.Caller.User); err != nil {
		return web.View{}, err
	}
	if err := wire.RemoveOwnFactor(c, c.Caller.User); err != nil {
		return web.View{}, err
	}
	s.options.Log.Info("second factor removed", "realm", c.Realm, "user", int64(c.Caller.User))
	p.redirect = wire.FactorPath
	return web.View{}, nil
}

// factorResetPage removes the second factor of another user, for administrators.
func (s *Server) factorResetPage(p *pageRequest) (web.View, error) {
	c := p.call
	fresh := c.IsFresh()
	if !p.posted() {
		return web.ResetFactor("", !fresh, ""), nil
	}
	email := strings.TrimSpace(p.field("email"))
	err := c.ConfirmLoginChange(p.field("password"))
	var id realm.UserID
	if err == nil {
		id, err = wire.ResetFactor(c, email)
	}
	if err != nil {
		return web.ResetFactor(email, !fresh, s.loginErrorText(err)), err
	}
	s.options.Log.Info("second factor reset", "realm", c.Realm, "user", int64(id), "by", int64(c.Caller.User))
	return web.Message("Reset a second factor", "The second factor was removed. The user got a message."), nil
}

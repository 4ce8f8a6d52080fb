package httpd

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
	"parley/wire/web"
)

// loginPages are the pages around a login.
var loginPages = []pageRoute{
	{path: "/", handle: (*Server).homePage},
	{path: "/login", handle: (*Server).loginPage, posts: true},
	{path: "/accounts/login", handle: (*Server).loginPage, posts: true},
	{path: "/accounts/login/local", handle: (*Server).developmentLoginPage, posts: true},
	{path: loginTokenPath + "{token}", handle: (*Server).loginTokenPage},
	{path: "/accounts/logout", handle: (*Server).logoutPage, posts: true},
	{path: "/accounts/deactivated", handle: (*Server).deactivatedPage, anywhere: true},
	{path: "/accounts/sessions", handle: (*Server).sessionsPage, posts: true, needsLogin: true},
}

// loginPath is the page to which browsers without a login are redirected (protocol).
const loginPath = "/login/"

// loginPage shows the login form and logs the user in (protocol).
func (s *Server) loginPage(p *pageRequest) (web.View, error) {
	c := p.call
	next := p.query("next")
	if p.posted() {
		next = p.field("next")
	}
	next = safeNext(next)
	app, err := appLoginOf(p)
	if err != nil {
		return web.Failure("Log in", s.errorText(err)), err
	}
	if c.Session != nil && !p.posted() && !app.requested() && !p.ctx.QueryArgs().Has("preview") {
		p.redirect = next
		return web.View{}, nil
	}
	f := web.LoginForm{URL: c.Site.URL, Next: next, Reset: s.sendsEmail(), Mobile: app.mobile, Desktop: app.desktop,
		Providers: providerButtons(c.Site, wire.ProviderLoginPath, next, app, "")}
	if app.mobile != "" {
		p.policy = formPolicy("zulip:")
	}
	failure := ""
	if p.posted() {
		f.Email = p.field("username")
		view, err := s.logInBrowser(p, app, f.Email, next)
		if err == nil {
			return view, nil
		}
		failure = s.loginErrorText(err) // the answer is the form, with status 200 (protocol)
	}
	name, err := wire.Read(c, func(v realm.View) (string, error) {
		f.Register = s.sendsEmail() && v.SignUpOpen()
		for _, a := range wire.DevelopmentLogins(c, v) {
			f.Demo = append(f.Demo, web.DemoAccount(a))
		}
		passwords := v.PasswordLogin()
		f.Names = c.Site.HasDirectory()
		f.Passwords = passwords || f.Names
		f.Reset = f.Reset && passwords
		if wire.OffersPasskeys(v) && signon.PasskeysWork(c.Site.URL) {
			f.Passkey = wire.PasskeyLoginPath + appQuery(next, app)
		}
		return v.Org().Name, nil
	})
	view := web.Login(name, f)
	view.Error = failure
	return view, err
}

// logInBrowser checks the password of the login form. It logs in the browser, or the app that opened it.
func (s *Server) logInBrowser(p *pageRequest, app appLogin, email, next string) (web.View, error) {
	a, hash, person, err := wire.CheckNamedLogin(p.visitorCall(), email, p.field("password"))
	switch {
	case err != nil:
		return web.View{}, err
	case person != nil:
		return s.logInByDirectory(p, app, person, next)
	case !a.Active:
		return web.View{}, wire.ErrAccountDeactivated()
	}
	return s.finishLogin(p, passedLogin{user: a.User, password: hash, method: "password", app: app, next: next})
}

// passedLogin is a login whose user is known.
type passedLogin struct {
	user     realm.UserID
	password string // the hash that the password was checked against, or "" for a login without password
	method   string // for the log
	app      appLogin
	next     string // path to which the browser returns
	proved   bool   // the user needs no second factor, or has proved it
}

// finishLogin logs in the browser, or the app that opened it, after the second factor.
func (s *Server) finishLogin(p *pageRequest, l passedLogin) (view web.View, err error) {
	if !l.proved {
		need, err := wire.FactorNeeded(p.call, l.user)
		if err != nil {
			return web.View{}, err
		}
		if need != wire.NoFactor {
			return s.askFactor(p, l, need)
		}
	}
	if l.app.requested() {
		view, err = l.app.finish(s, p, l)
	} else {
		var opened realm.OpenedBrowserSession
		opened, err = wire.OpenSession(p.call, realm.LogIn{User: l.user, Password: l.password})
		if err == nil {
			s.logIn(p.ctx, p.call, opened)
			p.redirect = l.next
		}
	}
	if err == nil {
		s.options.Log.Info("login", "realm", p.call.Realm, "user", int64(l.user), "method", l.method)
	}
	return view, err
}

// developmentLoginPage logs in without a password, on a demo server.
func (s *Server) developmentLoginPage(p *pageRequest) (web.View, error) {
	p.redirect = loginPath
	if !p.posted() {
		return web.View{}, nil
	}
	opened, err := wire.DevelopmentLogIn(p.call, p.field("direct_email"))
	if err == nil {
		s.logIn(p.ctx, p.call, opened)
		p.redirect = safeNext(p.field("next"))
	}
	return web.View{}, err
}

// loginErrorText returns the text of a refused login for the page.
func (s *Server) loginErrorText(err error) string {
	var r *realm.Refusal
	if errors.As(err, &r) && r.Kind == realm.TooMany {
		return "There were too many attempts to log in. Please try again later."
	}
	return s.errorText(err)
}

// logoutPage ends the session (protocol). A GET changes nothing: any site can cause one.
func (s *Server) logoutPage(p *pageRequest) (web.View, error) {
	p.redirect = loginPath
	switch {
	case !p.posted():
		p.redirect = "/"
	case p.call.Session != nil:
		if err := s.endSession(p.call); err != nil {
			return web.View{}, err
		}
		removeSessionCookies(p.ctx, p.call.Site)
	}
	return web.View{}, nil
}

// deactivatedPage tells users that their organization was deactivated (protocol).
func (s *Server) deactivatedPage(p *pageRequest) (web.View, error) {
	if p.call.Realm != 0 && !p.call.Site.Deactivated {
		p.redirect = loginPath
		return web.View{}, nil
	}
	return web.Message("Log in", "This organization has been deactivated."), nil
}

// homePage is the start page: the official web app, or without one the client of this server.
func (s *Server) homePage(p *pageRequest) (web.View, error) {
	if s.options.WebApp != nil {
		return s.webAppPage(p, "")
	}
	if p.call.Session == nil {
		return s.visitorPage(p)
	}
	return s.clientPage(p)
}

// visitorPage is the page of the client for visitors without an account. Where they can read nothing, they are sent to
// the login page.
func (s *Server) visitorPage(p *pageRequest) (web.View, error) {
	view, err := wire.Read(p.call, func(v realm.View) (view web.View, err error) {
		if wire.HasSpectators(v) {
			view = web.Home(v.Org().Name, web.HomeData{URL: p.call.Site.URL, Theme: "auto", Visitor: true})
		}
		return view, nil
	})
	if err == nil && view.Template != "" {
		p.policy = clientPolicy
		return view, nil
	}
	p.redirect = loginAddress(p.ctx)
	return web.View{}, err
}

// clientPage is the page of this server's own client.
func (s *Server) clientPage(p *pageRequest) (web.View, error) {
	view, err := wire.Read(p.call, func(v realm.View) (web.View, error) {
		me := v.Me()
		return web.Home(v.Org().Name, web.HomeData{URL: p.call.Site.URL, Name: me.Name, Email: me.Email,
			Theme:   themes[me.IntSetting("color_scheme")],
			Unused:  realm.SettingsWithoutEffect(),
			Session: fmt.Sprintf("%d-%d-%d", p.call.Realm, me.ID, p.call.Session.ID)}), nil
	})
	if err == nil {
		p.policy = clientPolicy
	}
	return view, err
}

// themes are the names of color schemes in the client's page.
var themes = map[int64]string{1: "auto", 2: "dark", 3: "light"}

// sessionsPage lists a user's browser sessions, and ends one or all others.
func (s *Server) sessionsPage(p *pageRequest) (web.View, error) {
	c := p.call
	if p.posted() {
		cmd := realm.EndBrowserSessions{User: c.Caller.User, KeepOwn: true}
		if which := p.field("session"); which != "others" {
			id, err := strconv.ParseInt(which, 10, 64)
			if err != nil || id <= 0 {
				return web.View{}, realm.BadRequest("There is no such session.")
			}
			cmd.ID = id
		}
		if _, err := wire.Execute(c, cmd); err != nil {
			return web.View{}, err
		}
		if cmd.ID == c.Session.ID {
			removeSessionCookies(p.ctx, c.Site)
		}
		p.redirect = wire.SessionsPath
		return web.View{}, nil
	}
	list, err := wire.Read(c, func(v realm.View) (list []web.Session, err error) {
		for _, x := range v.BrowserSessions(v.User) {
			browser, system := wire.DeviceName(x.Agent)
			session := web.Session{ID: x.ID, Browser: browser, System: system, Address: x.Address,
				Opened: dateText(x.Opened), Used: dateText(x.Used), Own: x.ID == c.Session.ID, Reason: x.Reason}
			if x.IsHelp() {
				session.Until = time.Unix(x.Until, 0).UTC().Format("2006-01-02 15:04 MST")
			}
			list = append(list, session)
		}
		return list, nil
	})
	return web.Sessions(list), err
}

func dateText(at int64) string { return time.Unix(at, 0).UTC().Format(time.DateOnly) }

package httpd

import (
	"errors"
	"strconv"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// loginPages are the pages around a login.
var loginPages = []pageRoute{
	{path: "/", handle: (*Server).homePage, needsLogin: true},
	{path: "/login", handle: (*Server).loginPage, posts: true},
	{path: "/accounts/login", handle: (*Server).loginPage, posts: true},
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
	if c.Session != nil && !p.posted() && !p.ctx.QueryArgs().Has("preview") {
		p.redirect = next
		return web.View{}, nil
	}
	f := web.LoginForm{URL: c.Site.URL, Next: next}
	failure := ""
	if p.posted() {
		f.Email = p.field("username")
		opened, err := wire.LogIn(c, f.Email, p.field("password"))
		if err == nil {
			s.logIn(p.ctx, c, opened)
			p.redirect = next
			return web.View{}, nil
		}
		failure = s.loginErrorText(err) // the answer is the form, with status 200 (protocol)
	}
	name, err := organizationName(c)
	view := web.Login(name, f)
	view.Error = failure
	return view, err
}

// loginErrorText returns the text of a refused login for the page.
func (s *Server) loginErrorText(err error) string {
	var r *realm.Refusal
	if errors.As(err, &r) && r.Kind == realm.TooMany {
		return "There were too many attempts to log in. Please try again later."
	}
	return s.errorText(err)
}

func organizationName(c *wire.Call) (string, error) {
	return wire.Read(c, func(v realm.View) (string, error) { return v.Org().Name, nil })
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
		endOfSession(p.ctx, p.call.Site)
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

// homePage is the start page of a user.
func (s *Server) homePage(p *pageRequest) (web.View, error) {
	return wire.Read(p.call, func(v realm.View) (web.View, error) {
		me := v.Me()
		return web.Home(v.Org().Name, web.HomeData{URL: p.call.Site.URL, Name: me.Name, Email: me.Email}), nil
	})
}

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
			endOfSession(p.ctx, c.Site)
		}
		p.redirect = wire.SessionsPath
		return web.View{}, nil
	}
	list, err := wire.Read(c, func(v realm.View) (list []web.Session, err error) {
		for _, x := range v.BrowserSessions(v.User) {
			list = append(list, web.Session{ID: x.ID, Device: wire.DeviceText(x.Agent), Address: x.Address,
				Opened: dateText(x.Opened), Used: dateText(x.Used), Own: x.ID == c.Session.ID})
		}
		return list, nil
	})
	return web.Sessions(list), err
}

func dateText(at int64) string { return time.Unix(at, 0).UTC().Format(time.DateOnly) }

package httpd

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
	"parley/wire/web"
)

// signOnPages are the pages of logins at providers. A provider is at {type}/{name}.
var signOnPages = []pageRoute{
	{path: wire.SocialLoginPath + "{type}/{name}", handle: (*Server).beginSignOnPage},
	{path: wire.SocialSignUpPath + "{type}/{name}", handle: (*Server).beginSignOnPage},
	{path: signon.IconPath + "{type}/{name}/{version}", handle: (*Server).providerIconPage},
	{path: wire.CompletePath + "{type}", handle: (*Server).completeSignOnPage},
	{path: finishPath, handle: (*Server).finishSignOnPage, posts: true},
	{path: strings.TrimSuffix(wire.IdentitiesPath, "/"), handle: (*Server).identitiesPage, posts: true,
		needsLogin: true},
}

const (
	// finishPath is the page on which a person whom a provider has identified enters a password or a name.
	finishPath = "/accounts/login/finish"
	// MaxProviderCalls limits the pages that wait for a provider, each up to signon.MaxStep. Others are refused: a
	// provider that is slow must not hold all connections.
	MaxProviderCalls = 64
	// MaxUsedFlows limits the logins that are remembered as used, about 100 bytes each. Beyond it, any of them is
	// forgotten; the provider still accepts its code only once.
	MaxUsedFlows = 10_000
)

// signOnFlow is the state of a login at a provider, in flowCookie.
type signOnFlow struct {
	signon.Flow
	Type, Name      string // of the provider
	Next            string
	Mobile, Desktop string
	Invite          string       // token of the invitation that the person follows, or ""
	User            realm.UserID // the account to connect, or 0 for a login
	Session         int64        // with User: the browser session that has asked for it
}

// identified is a person whom a provider has identified, in identityCookie.
type identified struct {
	signon.Identity
	Type, Name      string // of the provider
	Next            string
	Mobile, Desktop string
	Invite          string
}

// usedFlows are the logins whose answers have been used. They exist in memory only. It is safe for concurrent use.
type usedFlows struct {
	mu   sync.Mutex
	list map[string]time.Time
}

// use records that a login is used, or returns false if it was used before.
func (u *usedFlows) use(state string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, used := u.list[state]; used {
		return false
	}
	for other, at := range u.list {
		if now.Sub(at) > sealedTime || len(u.list) >= MaxUsedFlows {
			delete(u.list, other)
		}
	}
	if u.list == nil {
		u.list = map[string]time.Time{}
	}
	u.list[state] = now
	return true
}

// UsedFlows returns the number of logins that are remembered as used, expired ones included.
func (s *Server) UsedFlows() int64 {
	s.usedFlows.mu.Lock()
	defer s.usedFlows.mu.Unlock()
	return int64(len(s.usedFlows.list))
}

// ProviderCalls returns the number of pages that wait for a provider.
func (s *Server) ProviderCalls() int64 { return int64(len(s.providerCalls)) }

// callProvider runs a step of a login with a deadline. An organization whose provider is slow leaves half of the places
// to the others.
func (s *Server) callProvider(id realm.ID, step func(context.Context) error) error {
	busy := realm.Refuse(realm.Busy, "SERVER_OVERLOADED", "The login provider is slow. Please try again later.")
	if !s.providerShares.Take(organizationName(id), 1) {
		return busy
	}
	defer s.providerShares.Give(organizationName(id), 1)
	select {
	case s.providerCalls <- struct{}{}:
		defer func() { <-s.providerCalls }()
	default:
		return busy
	}
	ctx, cancel := context.WithTimeout(context.Background(), signon.MaxStep)
	defer cancel()
	return step(ctx)
}

// providerButtons returns the links to the providers of an organization. path returns the address of a provider's page.
func providerButtons(
	site wire.Site, path func(realm.LoginProvider) string, next string, app appLogin, invite string,
) (out []web.Provider) {
	query := url.Values{}
	for name, value := range map[string]string{"next": next, mobileField: app.mobile, desktopField: app.desktop,
		inviteField: invite} {
		if value != "" && !(name == "next" && value == "/") {
			query.Set(name, value)
		}
	}
	for _, p := range site.ProviderPages() {
		address := path(p)
		if len(query) > 0 {
			address += "?" + query.Encode()
		}
		out = append(out, web.Provider{Name: p.Display, URL: address, Icon: p.Icon})
	}
	return out
}

const inviteField = "invite"

// signOnTitle is the title of the pages about a login at a provider.
const signOnTitle = "Log in"

// signOnFailure is the page of a login at a provider that has failed. The log has the reason.
func (s *Server) signOnFailure(p *pageRequest, provider string, err error) (web.View, error) {
	var failed *signon.Error
	cause := err
	if errors.As(err, &failed) {
		err, cause = realm.BadRequest("%s", failed.Reason), failed.Err
	}
	s.options.Log.Info("login failed", "realm", p.call.Realm, "method", provider, "err", cause)
	return web.LoginFailed(s.errorText(err)), err
}

// provider returns the provider with pages of the path parameters, or nil.
func (s *Server) provider(p *pageRequest) *signon.Entry {
	typ, _ := p.ctx.UserValue("type").(string)
	name, _ := p.ctx.UserValue("name").(string)
	return s.providerPage(p, typ, name)
}

// providerPage returns a provider that has pages, or nil.
func (s *Server) providerPage(p *pageRequest, typ, name string) *signon.Entry {
	if e := s.options.SignOn.Find(p.call.Site.Name, typ, name); e != nil && e.Directory == nil {
		return e
	}
	return nil
}

// beginSignOnPage redirects the browser to a login provider.
func (s *Server) beginSignOnPage(p *pageRequest) (web.View, error) {
	e := s.provider(p)
	if e == nil {
		return pageNotFound()
	}
	app, err := appLoginOf(p)
	if err != nil {
		return web.Failure(signOnTitle, s.errorText(err)), err
	}
	f := signOnFlow{Flow: signon.NewFlow(p.call.Site.URL + wire.CompletePath + e.Type + "/"), Type: e.Type,
		Name: e.Name, Next: safeNext(p.query("next")), Mobile: app.mobile, Desktop: app.desktop,
		Invite: p.query(inviteField)}
	if len(f.Invite) > maxLinkToken {
		f.Invite = ""
	}
	return s.beginSignOn(p, e, f)
}

// providerIconPage is the picture on the button of a provider. Its address changes with the picture.
func (s *Server) providerIconPage(p *pageRequest) (web.View, error) {
	e := s.provider(p)
	if e == nil {
		return pageNotFound()
	}
	picture, typ := e.Icon()
	if picture == nil {
		return pageNotFound()
	}
	setCommonHeaders(p.ctx)
	p.ctx.Response.Header.Set("Cache-Control", "public, max-age=31536000, immutable")
	p.ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	p.ctx.Response.Header.Set("Content-Security-Policy", pagePolicy)
	p.ctx.SetContentType(typ)
	p.ctx.Response.SkipBody = p.ctx.IsHead()
	p.ctx.SetBody(picture)
	p.answered = true
	return web.View{}, nil
}

// maxLinkToken limits the token of an invitation in bytes.
const maxLinkToken = 200

// beginSignOn stores the state of a login and redirects the browser to the provider.
func (s *Server) beginSignOn(p *pageRequest, e *signon.Entry, f signOnFlow) (web.View, error) {
	err := s.callProvider(p.call.Realm, func(ctx context.Context) (err error) {
		p.redirect, err = e.Begin(ctx, f.Flow)
		return err
	})
	if err == nil {
		err = s.setSealed(p, flowCookie, f)
	}
	if err != nil {
		p.redirect = ""
		return s.signOnFailure(p, e.Type+":"+e.Name, err)
	}
	return web.View{}, nil
}

// completeSignOnPage is the page to which providers redirect. It uses each login once.
func (s *Server) completeSignOnPage(p *pageRequest) (web.View, error) {
	var f signOnFlow
	typ, _ := p.ctx.UserValue("type").(string)
	known := s.readSealed(p, flowCookie, &f)
	if known {
		s.removeSealed(p, flowCookie)
	}
	e := s.providerPage(p, f.Type, f.Name)
	if !known || e == nil || f.Type != typ || !s.usedFlows.use(f.State, s.now()) {
		return s.signOnFailure(p, typ, errOtherBrowser())
	}
	answer := url.Values{}
	for name, value := range p.ctx.QueryArgs().All() {
		answer.Add(string(name), string(value))
	}
	var who signon.Identity
	err := s.callProvider(p.call.Realm, func(ctx context.Context) (err error) {
		who, err = e.Finish(ctx, f.Flow, answer)
		return err
	})
	if err == nil {
		var view web.View
		if view, err = s.acceptIdentity(p, e, f, who); err == nil {
			return view, nil
		}
	}
	p.redirect = ""
	return s.signOnFailure(p, e.Type+":"+e.Name, err)
}

// acceptIdentity continues with a person whom a provider has identified: it connects the identity with the account of
// the session, logs in the account of the identity, or asks for the rest that an account needs.
func (s *Server) acceptIdentity(p *pageRequest, e *signon.Entry, f signOnFlow, who signon.Identity) (web.View, error) {
	name := realm.IdentityName{Issuer: who.Issuer, Subject: who.Subject}
	if f.User != 0 {
		return s.linkOwnIdentity(p, e, f, name)
	}
	id, found, problems, err := wire.AccountOfPerson(p.call, e.Person(who, true))
	if err != nil {
		return web.View{}, err
	}
	s.logProblems(p.call, id, e, problems)
	x := identified{Identity: who, Type: f.Type, Name: f.Name, Next: f.Next, Mobile: f.Mobile, Desktop: f.Desktop,
		Invite: f.Invite}
	if found {
		return s.finishLogin(p, x.login(id, ""))
	}
	if x.Invite != "" {
		invited, err := wire.FindInvite(p.visitorCall(), x.Invite)
		if err != nil {
			return web.View{}, err
		}
		if invited.Email != "" { // the link was sent to the address
			x.Email, x.Verified = invited.Email, true
		}
	}
	if !x.Verified {
		return web.View{}, realm.BadRequest("The login provider has not confirmed your email address. Log in with " +
			"your password, then connect this login in your account.")
	}
	fullName := signUpName(who)
	if s.hasAccount(p, x.Email) || wire.CheckNewName(p.call, fullName) != nil { // a form asks for the rest
		p.redirect = finishPath + "/"
		return web.View{}, s.setSealed(p, identityCookie, x)
	}
	return s.signUpIdentified(p, e, x, fullName)
}

// logProblems writes the values of a person at a provider that the organization does not accept.
func (s *Server) logProblems(c *wire.Call, id realm.UserID, e *signon.Entry, problems []string) {
	for _, text := range problems {
		s.options.Log.Warn("a value of a login provider is left out", "realm", c.Realm, "user", int64(id),
			"method", e.Type+":"+e.Name, "err", text)
	}
}

// login returns the login of a person whose account is known. A provider with pages decides about a second factor; a
// directory has checked a password only.
func (x *identified) login(id realm.UserID, password string) passedLogin {
	return passedLogin{user: id, password: password, method: x.Type + ":" + x.Name, app: appLogin{x.Mobile, x.Desktop},
		next: x.Next, proved: x.Type != signon.LDAP}
}

// linkOwnIdentity connects an identity with the account of the session that has asked for it.
func (s *Server) linkOwnIdentity(
	p *pageRequest, e *signon.Entry, f signOnFlow, name realm.IdentityName,
) (web.View, error) {
	c := p.call
	if c.Session == nil || c.Session.ID != f.Session || c.Caller.User != f.User {
		return web.View{}, realm.BadRequest("You have logged out meanwhile. Please log in and try again.")
	}
	if err := wire.LinkIdentity(c, realm.LinkIdentity{User: f.User, Identity: name}); err != nil {
		return web.View{}, err
	}
	s.options.Log.Info("login connected", "realm", c.Realm, "user", int64(f.User), "method", e.Type+":"+e.Name)
	p.redirect = wire.IdentitiesPath
	return web.View{}, nil
}

// hasAccount reports whether a person has an account with an address.
func (s *Server) hasAccount(p *pageRequest, email string) bool {
	a, found := s.options.Server.AccountByEmail(p.call.Realm, email)
	return found && a.Bot == realm.Human
}

// signUpName returns the name of a new account: that of the provider, or the beginning of the address.
func signUpName(who signon.Identity) string {
	if name := strings.Join(strings.Fields(who.Name), " "); name != "" {
		return name
	}
	user, _, _ := strings.Cut(who.Email, "@")
	return user
}

// signUpIdentified makes the account of a person and logs them in.
func (s *Server) signUpIdentified(
	p *pageRequest, e *signon.Entry, x identified, name string,
) (web.View, error) {
	id, err := wire.SignUpWithIdentity(p.call, realm.SignUpWithIdentity{
		Identity: realm.IdentityName{Issuer: x.Issuer, Subject: x.Subject}, Email: x.Email, Name: name}, x.Invite)
	if err != nil {
		return web.View{}, err
	}
	s.options.Log.Info("account made by a login", "realm", p.call.Realm, "user", int64(id), "method", x.Type+":"+x.Name)
	if err := s.updatePerson(p, e, id, x.Identity); err != nil {
		return web.View{}, err
	}
	return s.finishLogin(p, x.login(id, ""))
}

// finishSignOnPage asks a person whom a provider has identified for the password of the account with their address, or
// for another name for their new account.
func (s *Server) finishSignOnPage(p *pageRequest) (web.View, error) {
	var x identified
	known := s.readSealed(p, identityCookie, &x)
	e := s.options.SignOn.Find(p.call.Site.Name, x.Type, x.Name)
	if !known || e == nil {
		p.redirect = loginPath
		return web.View{}, nil
	}
	if x.Mobile != "" {
		p.policy = formPolicy("zulip:")
	}
	known = s.hasAccount(p, x.Email)
	page := func(failure string) web.View {
		if known {
			return web.ConnectLogin(x.Email, failure)
		}
		return web.ChooseName(x.Email, p.field("full_name"), failure)
	}
	if !p.posted() {
		return page(""), nil
	}
	var view web.View
	var err error
	if known {
		view, err = s.linkByPassword(p, e, x)
	} else {
		view, err = s.signUpIdentified(p, e, x, p.field("full_name"))
	}
	if err != nil {
		return page(s.loginErrorText(err)), err
	}
	s.removeSealed(p, identityCookie)
	return view, nil
}

// linkByPassword connects an identity with the account of its address, after the password, and logs in.
func (s *Server) linkByPassword(p *pageRequest, e *signon.Entry, x identified) (web.View, error) {
	a, hash, err := wire.CheckLogin(p.visitorCall(), x.Email, p.field("password"))
	if err != nil {
		return web.View{}, err
	}
	if err := wire.LinkIdentity(p.call, realm.LinkIdentity{User: a.User, Password: hash,
		Identity: realm.IdentityName{Issuer: x.Issuer, Subject: x.Subject}}); err != nil {
		return web.View{}, err
	}
	s.options.Log.Info("login connected", "realm", p.call.Realm, "user", int64(a.User), "method", x.Type+":"+x.Name)
	if err := s.updatePerson(p, e, a.User, x.Identity); err != nil {
		return web.View{}, err
	}
	return s.finishLogin(p, x.login(a.User, hash))
}

// updatePerson gives an account what its provider says about the person.
func (s *Server) updatePerson(p *pageRequest, e *signon.Entry, id realm.UserID, who signon.Identity) error {
	problems, err := wire.UpdateFromProvider(p.call, id, e.Person(who, true))
	s.logProblems(p.call, id, e, problems)
	return err
}

// identitiesPage lists the identities with which a user can log in. It connects and disconnects them, after a recent
// login or with the password.
func (s *Server) identitiesPage(p *pageRequest) (web.View, error) {
	c := p.call
	failure, err := "", error(nil)
	if p.posted() {
		err = c.ConfirmLoginChange(p.field("password"))
		if connect := p.field("connect"); err == nil && connect != "" {
			typ, name, _ := strings.Cut(connect, "/")
			e := s.providerPage(p, typ, name)
			if e == nil {
				return pageNotFound()
			}
			p.policy = formPolicy("https: http:")
			return s.beginSignOn(p, e, signOnFlow{
				Flow: signon.NewFlow(c.Site.URL + wire.CompletePath + e.Type + "/"), Type: e.Type, Name: e.Name,
				User: c.Caller.User, Session: c.Session.ID})
		}
		if err == nil {
			_, err = wire.Execute(c, realm.UnlinkIdentity{User: c.Caller.User,
				Identity: realm.IdentityName{Issuer: p.field("issuer"), Subject: p.field("subject")}})
		}
		if err == nil {
			s.options.Log.Info("login disconnected", "realm", c.Realm, "user", int64(c.Caller.User))
			p.redirect = wire.IdentitiesPath
			return web.View{}, nil
		}
		failure = s.loginErrorText(err)
	}
	page := web.IdentitiesPage{AskPassword: !c.IsFresh()}
	list, readErr := wire.Read(c, func(v realm.View) ([]realm.Identity, error) {
		return slices.Clone(v.IdentitiesOf(v.User)), nil
	})
	if readErr != nil {
		return web.View{}, readErr
	}
	for _, x := range list {
		page.List = append(page.List, web.Identity{Provider: s.displayOf(c.Site, x.Issuer), Issuer: x.Issuer,
			Subject: x.Subject, Linked: dateText(x.Linked)})
	}
	for _, l := range c.Site.ProviderPages() {
		page.Providers = append(page.Providers, web.Provider{Name: l.Display, URL: l.Type + "/" + l.Name})
	}
	// The form may redirect to the page of a provider, whose address is not known here.
	p.policy = formPolicy("https: http:")
	view := web.Identities(page)
	view.Error = failure
	return view, err
}

// displayOf returns the name of the provider with an issuer, or the issuer if there is none any more.
func (s *Server) displayOf(site wire.Site, issuer string) string {
	for _, e := range s.options.SignOn.Of(site.Name) {
		if e.Issuer == issuer {
			return e.Display
		}
	}
	return issuer
}

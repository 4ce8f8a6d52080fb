package httpd

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
	"parley/wire/web"
)

// samlPages are the pages that SAML servers use besides those of all providers. Their forms come from other sites:
// messages of a provider are signed, and belong to a request of this server.
var samlPages = []pageRoute{
	{path: strings.TrimSuffix(signon.SAMLAnswerPath, "/"), handle: (*Server).samlAnswerPage, posts: true, signed: true},
	{path: signon.SAMLPath + "{name}" + signon.SAMLMetadataEnd, handle: (*Server).samlMetadataPage},
	{path: signon.SAMLPath + "{name}" + signon.SAMLLogoutEnd, handle: (*Server).samlLogoutPage, posts: true,
		signed: true},
}

// samlTime is how long an answer that was checked can be used, in seconds: the browser is redirected at once.
const samlTime = 60

// samlAnswer is a person whom a SAML server has identified, on the way through the browser.
type samlAnswer struct {
	State, Name string
	Who         signon.Identity
	Until       int64
}

// samlPurpose is the purpose of sealed answers; see Tools.Seal.
func samlPurpose(id realm.ID) string { return "answer of a SAML server of " + strconv.Itoa(int(id)) }

// samlAnswerPage gets the answer of a SAML server in a form. Browsers send the cookie of the login only with a page of
// this server, so the form is checked first, then the browser is redirected with the person in a sealed address. That
// address is of use only in the browser that has started the login.
func (s *Server) samlAnswerPage(p *pageRequest) (web.View, error) {
	if !p.posted() {
		return s.samlAnswered(p)
	}
	message, state := p.field("SAMLResponse"), p.field("RelayState")
	e := s.options.SignOn.FindSAML(p.call.Site.Name, message)
	if e == nil || len(state) > maxLinkToken {
		return s.signOnFailure(p, signon.SAML, realm.BadRequest("The answer is from another login provider. "+
			"Please try again."))
	}
	var who signon.Identity
	err := s.callProvider(p.call.Realm, func(ctx context.Context) (err error) {
		who, err = e.Finish(ctx, signon.Flow{State: state, Redirect: p.call.Site.URL + signon.SAMLAnswerPath},
			url.Values{"SAMLResponse": {message}})
		return err
	})
	var text []byte
	if err == nil {
		text, err = json.Marshal(samlAnswer{state, e.Name, who, s.now().Unix() + samlTime})
	}
	if err != nil {
		return s.signOnFailure(p, e.Type+":"+e.Name, err)
	}
	p.redirect = signon.SAMLAnswerPath + "?" + url.Values{"answer": {s.options.Tools.Seal(samlPurpose(p.call.Realm),
		text)}}.Encode()
	return web.View{}, nil
}

// samlAnswered finishes the login of a person whom a SAML server has identified.
func (s *Server) samlAnswered(p *pageRequest) (web.View, error) {
	var f signOnFlow
	var a samlAnswer
	known := s.readSealed(p, flowCookie, &f)
	text, ok := s.options.Tools.Unseal(samlPurpose(p.call.Realm), p.query("answer"))
	ok = ok && json.Unmarshal(text, &a) == nil && s.now().Unix() < a.Until
	e := s.providerPage(p, signon.SAML, f.Name)
	if !known || !ok || e == nil || f.Type != signon.SAML || a.State != f.State || a.Name != f.Name ||
		!s.usedFlows.use(f.State, s.now()) {
		return s.signOnFailure(p, signon.SAML, errOtherBrowser())
	}
	s.removeSealed(p, flowCookie)
	view, err := s.acceptIdentity(p, e, f, a.Who)
	if err != nil {
		p.redirect = ""
		return s.signOnFailure(p, e.Type+":"+e.Name, err)
	}
	return view, nil
}

// errOtherBrowser refuses an answer to a login of another browser, or one that came too late.
func errOtherBrowser() error {
	return realm.BadRequest("This login was not started in this browser, or it took too long. Please try again.")
}

// samlServer returns the SAML server of the path parameters, or nil.
func (s *Server) samlServer(p *pageRequest) (*signon.Entry, *signon.SAMLServer) {
	name, _ := p.ctx.UserValue("name").(string)
	e := s.providerPage(p, signon.SAML, name)
	if e == nil {
		return nil, nil
	}
	return e, e.SAML(p.call.Site.URL)
}

// samlMetadataPage is the metadata of this server for a SAML server.
func (s *Server) samlMetadataPage(p *pageRequest) (web.View, error) {
	_, server := s.samlServer(p)
	if server == nil {
		return pageNotFound()
	}
	text, err := server.MetadataXML()
	if err != nil {
		return web.View{}, err
	}
	setCommonHeaders(p.ctx)
	p.ctx.SetContentType("application/samlmetadata+xml")
	p.ctx.Response.SkipBody = p.ctx.IsHead()
	p.ctx.SetBody(text)
	p.answered = true
	return web.View{}, nil
}

// samlLogoutPage ends all browser sessions of a person, at the request of their SAML server.
func (s *Server) samlLogoutPage(p *pageRequest) (web.View, error) {
	e, server := s.samlServer(p)
	if server == nil {
		return pageNotFound()
	}
	var form url.Values
	if p.posted() {
		form = url.Values{"SAMLRequest": {p.field("SAMLRequest")}, "RelayState": {p.field("RelayState")}}
	}
	var subject, back string
	err := s.callProvider(p.call.Realm, func(context.Context) (err error) {
		subject, back, err = server.LogOut(string(p.ctx.URI().QueryString()), form)
		return err
	})
	var id realm.UserID
	if err == nil {
		id, err = wire.EndSessionsOfPerson(p.call, realm.IdentityName{Issuer: e.Issuer, Subject: subject})
	}
	if err != nil {
		return s.signOnFailure(p, e.Type+":"+e.Name, err)
	}
	if id != 0 {
		s.options.Log.Info("logged out by the login provider", "realm", p.call.Realm, "user", int64(id),
			"method", e.Type+":"+e.Name)
	}
	if c := p.call; c.Session != nil && c.Caller.User == id {
		removeSessionCookies(p.ctx, c.Site)
	}
	p.redirect = back
	return web.Message("Log in", "You are logged out."), nil
}

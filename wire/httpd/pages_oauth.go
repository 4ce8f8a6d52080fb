package httpd

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/oauth"
	"parley/wire/web"
)

// oauthPages are the addresses at which apps ask users for a limited API key; see package oauth. Programs send the
// forms that are marked as signed: a sealed code, a key, or a client's own data is in them, and no cookie counts.
var oauthPages = []pageRoute{
	{path: oauth.ServerMetadataPath, handle: (*Server).oauthServerMetadata},
	{path: oauth.ResourceMetadataPath, handle: (*Server).oauthResourceMetadata},
	{path: oauth.ResourceMetadataPath + mcpPath, handle: (*Server).oauthResourceMetadata},
	{path: oauth.AuthorizePath, handle: (*Server).oauthAuthorizePage, posts: true},
	{path: oauth.TokenPath, handle: (*Server).oauthToken, posts: true, signed: true},
	{path: oauth.RegisterPath, handle: (*Server).oauthRegister, posts: true, signed: true},
	{path: oauth.RevokePath, handle: (*Server).oauthRevoke, posts: true, signed: true},
}

// grantCookie has the request of an app while its user logs in.
const grantCookie sealedCookie = "parley_grant"

// sealOAuth returns a text that unsealOAuth reads at any time; the value has its own, if it ends.
func (s *Server) sealOAuth(p *pageRequest, of string, value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("BUG: encode an OAuth " + of + ": " + err.Error())
	}
	return s.options.Tools.Seal(sealPurpose(p, "OAuth "+of), text)
}

// unsealOAuth returns false for a text that sealOAuth has not made for this organization and use.
func (s *Server) unsealOAuth(p *pageRequest, of, sealed string, value any) bool {
	if sealed == "" || len(sealed) > oauth.MaxClientID {
		return false
	}
	text, ok := s.options.Tools.Unseal(sealPurpose(p, "OAuth "+of), sealed)
	return ok && json.Unmarshal(text, value) == nil
}

// oauthClient returns the client with an id, or nil.
func (s *Server) oauthClient(p *pageRequest, id string) *oauth.Client {
	c := &oauth.Client{}
	if !s.unsealOAuth(p, "client", id, c) {
		return nil
	}
	return c
}

// writeOAuth writes an answer to a program. Keys and codes must not be in caches.
func (s *Server) writeOAuth(p *pageRequest, status int, v any) (web.View, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return web.View{}, err
	}
	s.writeJSON(p.ctx, status, body)
	p.ctx.Response.Header.Set("Cache-Control", "no-store")
	p.answered = true
	return web.View{}, nil
}

func (s *Server) refuseOAuth(p *pageRequest, e *oauth.Error) (web.View, error) {
	return s.writeOAuth(p, e.Status, e)
}

// writeMetadata writes a public document, which pages of other sites can read, too.
func (s *Server) writeMetadata(p *pageRequest, v any) (web.View, error) {
	p.ctx.Response.Header.Set("Access-Control-Allow-Origin", "*")
	return s.writeOAuth(p, fasthttp.StatusOK, v)
}

func (s *Server) oauthServerMetadata(p *pageRequest) (web.View, error) {
	return s.writeMetadata(p, oauth.NewServerMetadata(p.call.Site.URL, s.options.OAuthRegistration))
}

func (s *Server) oauthResourceMetadata(p *pageRequest) (web.View, error) {
	name, err := wire.Read(p.call, func(v realm.View) (string, error) { return v.Org().Name, nil })
	if err != nil {
		return web.View{}, err
	}
	return s.writeMetadata(p, oauth.NewResourceMetadata(p.call.Site.URL, mcpPath, name))
}

// oauthRegister makes a client for an app. The server stores nothing: the id has all of it.
func (s *Server) oauthRegister(p *pageRequest) (web.View, error) {
	switch {
	case !s.options.OAuthRegistration:
		return s.refuseOAuth(p, &oauth.Error{Status: fasthttp.StatusForbidden, Code: "access_denied",
			Description: "Apps cannot register at this server. Its operator can allow it with oauth-registration."})
	case !p.posted():
		return s.refuseOAuth(p, errOAuthMethod)
	}
	c, refusal := oauth.Register(p.ctx.PostBody(), s.now().Unix())
	if refusal != nil {
		return s.refuseOAuth(p, refusal)
	}
	id := s.sealOAuth(p, "client", c)
	if len(id) > oauth.MaxClientID {
		return s.refuseOAuth(p, &oauth.Error{Status: fasthttp.StatusBadRequest, Code: "invalid_client_metadata",
			Description: "The name and the redirect_uris are too long."})
	}
	return s.writeOAuth(p, fasthttp.StatusCreated, oauth.NewRegistered(id, c))
}

var errOAuthMethod = &oauth.Error{Status: fasthttp.StatusMethodNotAllowed, Code: "invalid_request",
	Description: "The method must be POST."}

// oauthAuthorizePage asks the user whether an app gets a key, with which rights and for how long.
func (s *Server) oauthAuthorizePage(p *pageRequest) (web.View, error) {
	if p.posted() {
		return s.oauthAnswer(p)
	}
	var r oauth.Request
	if q := p.ctx.QueryArgs(); q.Len() > 0 {
		values, err := url.ParseQuery(string(q.QueryString()))
		if err != nil || len(values) > maxOAuthParams {
			return oauthFailure(realm.BadRequest("The request of the app is not valid."))
		}
		var redirect bool
		var refusal *oauth.Error
		r, redirect, refusal = oauth.Authorize(values, s.oauthClient(p, values.Get("client_id")),
			p.call.Site.URL+mcpPath)
		switch {
		case refusal != nil && redirect:
			p.redirect = r.Refused(p.call.Site.URL, refusal)
			return web.View{}, nil
		case refusal != nil:
			return oauthFailure(realm.BadRequest("This app is not known here, or it asked to be sent to an address " +
				"that it has not registered. Nothing was allowed."))
		}
	} else if !s.readSealed(p, grantCookie, &r) {
		return oauthFailure(realm.BadRequest("The request of the app is too old. Please start again in the app."))
	}
	if p.call.Session == nil {
		p.redirect = loginPath + "?next=" + url.QueryEscape(oauth.AuthorizePath)
		if err := s.setSealed(p, grantCookie, r); err != nil {
			p.redirect = ""
			return oauthFailure(realm.BadRequest("The request of the app is not valid."))
		}
		return web.View{}, nil
	}
	s.removeSealed(p, grantCookie)
	return s.oauthConsent(p, r, "")
}

// maxOAuthParams is how many parameters a request of an app has. The standards have ten.
const maxOAuthParams = 30

func oauthFailure(err *realm.Refusal) (web.View, error) {
	return web.Failure("Allow an app", err.Msg), err
}

// oauthConsent is the page with the question. Its form has the request, sealed: the page can be open for some minutes.
func (s *Server) oauthConsent(p *pageRequest, r oauth.Request, failure string) (web.View, error) {
	p.policy = formPolicy(r.Origin())
	name, err := wire.Read(p.call, func(v realm.View) (string, error) { return v.Me().Name, nil })
	if err != nil {
		return web.View{}, err
	}
	request, err := s.seal(p, consentUse, consentRequest{r, p.call.Session.ID})
	view := web.Consent(web.ConsentForm{App: r.Name, Host: r.Host(), User: name, Rights: r.Rights,
		Lifetimes: oauth.Lifetimes, Password: wire.NeedsPassword(p.call), Request: request})
	view.Error = failure
	return view, err
}

// consentUse is the use of a sealed consentRequest; see Server.seal.
const consentUse = "OAuth request"

// consentRequest is a request that is shown in one session.
type consentRequest struct {
	Request oauth.Request `json:"r"`
	Session int64         `json:"s"`
}

// oauthAnswer sends the browser back to the app, with a code if the user allows the key.
func (s *Server) oauthAnswer(p *pageRequest) (web.View, error) {
	var c consentRequest
	if p.call.Session == nil || !s.unseal(p, consentUse, p.field("request"), &c) || c.Session != p.call.Session.ID {
		return oauthFailure(realm.BadRequest("The request of the app is too old. Please start again in the app."))
	}
	r, site := c.Request, p.call.Site.URL
	if p.field("answer") != "allow" {
		p.redirect = r.Refused(site, &oauth.Error{Code: "access_denied", Description: "The user refused."})
		return web.View{}, nil
	}
	scope := &realm.KeyScope{}
	for _, right := range p.ctx.PostArgs().PeekMulti("right") {
		if slices.Contains(r.Rights, string(right)) {
			scope.Rights = append(scope.Rights, string(right))
		}
	}
	lifetime, err := strconv.ParseInt(p.field("lifetime"), 10, 64)
	switch {
	case err != nil || !slices.Contains(oauth.Lifetimes, lifetime):
		err = realm.BadRequest("Choose how long the app can use the key.")
	case len(scope.Rights) == 0:
		err = realm.BadRequest("Choose at least one right.")
	}
	if err != nil {
		return s.oauthConsent(p, r, s.errorText(err))
	}
	key, err := wire.GrantKey(p.call, realm.GrantKey{App: r.Name, Lifetime: lifetime, Scope: scope},
		p.field("password"))
	if err != nil {
		return s.oauthConsent(p, r, s.errorText(err))
	}
	code := oauth.NewCode(r, p.call.Account.User, key, s.now().Unix())
	p.redirect = r.Answer(site, "code", s.sealOAuth(p, "code", code))
	s.options.Log.Info("app allowed", "realm", p.call.Realm, "user", int64(p.call.Account.User), "key", key)
	return web.View{}, nil
}

// oauthToken gives an app the key of a code.
func (s *Server) oauthToken(p *pageRequest) (web.View, error) {
	if !p.posted() {
		return s.refuseOAuth(p, errOAuthMethod)
	}
	form, err := url.ParseQuery(string(p.ctx.PostBody()))
	if err != nil {
		form = nil
	}
	var code *oauth.Code
	c := oauth.Code{}
	if s.unsealOAuth(p, "code", form.Get("code"), &c) {
		code = &c
	}
	if refusal := oauth.CheckToken(form, code, s.oauthClient(p, form.Get("client_id")), p.call.Site.URL+mcpPath,
		s.now().Unix()); refusal != nil {
		return s.refuseOAuth(p, refusal)
	}
	k, err := wire.RedeemKey(p.call, code.User, code.Key)
	var refusal *realm.Refusal
	switch {
	case errors.As(err, &refusal) && refusal.Kind == realm.Invalid:
		return s.refuseOAuth(p, oauth.ErrNoKey())
	case err != nil:
		return web.View{}, err
	case k.Used:
		s.options.Log.Warn("code of an app used twice", "realm", p.call.Realm, "user", int64(code.User))
		return s.refuseOAuth(p, oauth.ErrUsed())
	}
	return s.writeOAuth(p, fasthttp.StatusOK, oauth.Token{Key: k.Secret, Type: "Bearer",
		Lifetime: k.Expires - s.now().Unix(), Scope: strings.Join(k.Scope.Rights, " ")})
}

// oauthRevoke ends the key of an app. A key that is not valid is no error (RFC 7009).
func (s *Server) oauthRevoke(p *pageRequest) (web.View, error) {
	key := p.field("token")
	switch {
	case !p.posted():
		return s.refuseOAuth(p, errOAuthMethod)
	case key == "":
		return s.refuseOAuth(p, &oauth.Error{Status: fasthttp.StatusBadRequest, Code: "invalid_request",
			Description: "The request needs token."})
	case wellFormedKey(key):
		c := p.visitorCall()
		if err := s.checkKey(c, key, "", false, s.findAccount); err != nil {
			return s.writeOAuth(p, fasthttp.StatusOK, struct{}{})
		}
		if _, err := wire.RevokeOwnKey(c); err != nil {
			return web.View{}, err
		}
	}
	return s.writeOAuth(p, fasthttp.StatusOK, struct{}{})
}

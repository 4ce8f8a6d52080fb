package httpd

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
)

// Names of cookies and of the form field with the CSRF token (protocol). Over TLS the names get a prefix with which
// browsers accept a cookie only from this host itself, over TLS.
const (
	sessionCookie    = "sessionid"
	csrfCookie       = "csrftoken"
	hostPrefix       = "__Host-"
	csrfField        = "csrfmiddlewaretoken"
	csrfHeader       = "X-CSRFToken"
	csrfCookieAge    = 365 * 24 * time.Hour
	csrfTokenLength  = 32 // characters of the token of a browser without a session
	maxCSRFToken     = 256
	sessionCookieAge = realm.BrowserSessionSeconds * time.Second
)

// browserHeaders is the headers of a request that decide about its browser session. Its slices belong to the request.
type browserHeaders struct {
	cookie, token, origin, referer, host []byte
	secure                               bool // the browser uses TLS
}

// secure reports whether browsers reach the organization over TLS, at this server or at a proxy in front of it.
func secure(tls bool, site wire.Site) bool { return tls || strings.HasPrefix(site.URL, "https://") }

func headersOfBrowser(ctx *fasthttp.RequestCtx, site wire.Site) browserHeaders {
	h := &ctx.Request.Header
	return browserHeaders{cookie: h.Peek("Cookie"), token: h.Peek(csrfHeader), origin: h.Peek("Origin"),
		referer: h.Peek("Referer"), host: ctx.Host(), secure: secure(ctx.IsTLS(), site)}
}

// cookieValue returns the value of the first cookie with a name in a Cookie header, or nil. prefix is put before the
// name.
func cookieValue(header []byte, prefix, name string) []byte {
	for len(header) > 0 {
		var c []byte
		c, header, _ = bytes.Cut(header, []byte(";"))
		key, value, ok := bytes.Cut(bytes.TrimLeft(c, " "), []byte("="))
		if ok && len(key) == len(prefix)+len(name) && string(key[:len(prefix)]) == prefix &&
			string(key[len(prefix):]) == name {
			return value
		}
	}
	return nil
}

func (b *browserHeaders) cookieNamed(name string) []byte {
	if b.secure {
		return cookieValue(b.cookie, hostPrefix, name)
	}
	return cookieValue(b.cookie, "", name)
}

// findSession identifies the caller by the cookie of a browser session. It sets c.Session, c.Account, and user and
// session of c.Caller, or reports false. c.Realm and c.Site must be set.
func (s *Server) findSession(c *wire.Call, b *browserHeaders) bool {
	secret := b.cookieNamed(sessionCookie)
	if len(secret) != realm.BrowserSecretLength || c.Realm == 0 || c.Site.Deactivated {
		return false
	}
	hash := s.options.Tools.HashKey(string(secret))
	a, session := s.options.Server.AccountBySessionHash(hash)
	if session == nil || a.Realm != c.Realm || !a.Active || s.now().Unix() >= session.Expires() ||
		c.Site.Policy.HasEnded(session, s.now().Unix()) || session.IsHelp() && session.Agent == "" {
		return false // or the session of a link that nobody has opened, see realm.BeginHelpSession
	}
	c.Session, c.Account, c.Caller.User, c.Caller.Session = session, a, a.User, hash
	return true
}

// csrfError returns the refusal of a request that a page of another site may have sent (protocol).
func csrfError(reason string) error {
	return realm.Refuse(realm.Forbidden, "CSRF_FAILED", "CSRF error: "+reason).With("reason", reason)
}

// checkOrigin refuses a request that was sent by a page of another site, as far as its headers show that. Over TLS,
// one of the headers is required. Without TLS, the network can forge headers anyway.
func (b *browserHeaders) checkOrigin(site wire.Site) error {
	switch {
	case len(b.origin) > 0:
		if !b.isOwnOrigin(string(b.origin), site) {
			return csrfError("Origin checking failed - " + printable(b.origin) + " does not match any trusted origins.")
		}
	case !b.secure:
	case len(b.referer) == 0:
		return csrfError("Referer checking failed - no Referer.")
	default:
		u, err := url.Parse(string(b.referer))
		if err != nil || u.Host == "" {
			return csrfError("Referer checking failed - Referer is malformed.")
		}
		if !b.isOwnOrigin(u.Scheme+"://"+u.Host, site) {
			return csrfError("Referer checking failed - " + printable(b.referer) +
				" does not match any trusted origins.")
		}
	}
	return nil
}

// maxShownHeader limits the bytes of a header that an answer repeats.
const maxShownHeader = 200

// printable returns the beginning of a header for an error text.
func printable(h []byte) string {
	return strings.ToValidUTF8(string(h[:min(len(h), maxShownHeader)]), "?")
}

// isOwnOrigin reports whether an origin is that of the request's host, or the organization's.
func (b *browserHeaders) isOwnOrigin(origin string, site wire.Site) bool {
	scheme, port := "http", ":80"
	if b.secure {
		scheme, port = "https", ":443"
	}
	withoutPort := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), port) }
	origin = withoutPort(origin)
	return origin == withoutPort(scheme+"://"+string(b.host)) || site.URL != "" && origin == withoutPort(site.URL)
}

// checkCSRF refuses a request that a page of another site may have sent. field is the token in a form, used when there
// is none in the headers. The token must match the cookie; with a session it must be the session's own, too.
func (s *Server) checkCSRF(c *wire.Call, b *browserHeaders, field string) error {
	if err := b.checkOrigin(c.Site); err != nil {
		return err
	}
	cookie := b.cookieNamed(csrfCookie)
	if len(cookie) == 0 {
		return csrfError("CSRF cookie not set.")
	}
	token, where := string(b.token), "the 'X-Csrftoken' HTTP header"
	if token == "" {
		token, where = field, "POST"
	}
	if token == "" {
		return csrfError("CSRF token missing.")
	}
	ok := equalInConstantTime(unmasked(token), string(cookie))
	if c.Session != nil && s.options.Tools.Sign != nil { // an edge cannot compute it; see csrfToken
		ok = ok && equalInConstantTime(string(cookie), s.csrfToken(c, b))
	}
	if !ok {
		return csrfError("CSRF token from " + where + " incorrect.")
	}
	return nil
}

func equalInConstantTime(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// csrfToken returns the token of the call's session. An edge cannot compute it without the server's secret: it returns
// the token of the browser's cookie, or "" if there is none. The owner checks it for every change and registration. For
// reports of presence, the only other requests, the edge checks that cookie, token and origin match.
func (s *Server) csrfToken(c *wire.Call, b *browserHeaders) string {
	if s.options.Tools.Sign == nil {
		cookie := b.cookieNamed(csrfCookie)
		if !wellFormedToken(cookie) {
			return ""
		}
		return string(cookie)
	}
	return wire.CSRFToken(c.Tools, c.Realm, c.Caller.User, c.Session.ID)
}

// masked returns a form of a token that differs each time, for pages: so the length of a compressed page reveals
// nothing about the token.
func masked(token string) string {
	b := make([]byte, 2*len(token))
	if _, err := rand.Read(b[:len(token)]); err != nil {
		panic("BUG: no randomness: " + err.Error())
	}
	for i := range token {
		b[len(token)+i] = b[i] ^ token[i]
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// unmasked returns the token of a text made by masked. It returns every other text unchanged.
func unmasked(text string) string {
	if len(text) > maxCSRFToken {
		return ""
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != 2*csrfTokenLength {
		return text
	}
	for i := range csrfTokenLength {
		b[i] ^= b[csrfTokenLength+i]
	}
	return string(b[:csrfTokenLength])
}

// authenticateBrowser identifies the caller of an endpoint by a browser session, and refuses a request that a page of
// another site may have sent. found reports whether there is a session.
func (s *Server) authenticateBrowser(ctx *fasthttp.RequestCtx, c *wire.Call, r *route) (found bool, err error) {
	b := headersOfBrowser(ctx, c.Site)
	if !s.findSession(c, &b) {
		return false, nil
	}
	if _, own := c.Params.Get("client"); !own {
		c.Caller.Client = wire.WebClientName(c.Agent)
	}
	field, _ := c.Params.Get(csrfField)
	c.Params.Consume(csrfField)
	switch {
	case ctx.IsGet() || ctx.IsHead():
	case r.resumable:
		// Its client sends no token. Every browser sends the origin with these methods.
		if err = b.checkOrigin(c.Site); err == nil && len(b.origin) == 0 {
			err = csrfError("Origin checking failed - no Origin.")
		}
	default:
		err = s.checkCSRF(c, &b, field)
	}
	// An open page polls and reports presence without its user: that does not count where unused sessions end early.
	byItself := r.shape == eventsPath || r.shape == presencePath
	if err == nil && !(byItself && c.Site.Policy.SessionIdle != 0) {
		s.renewSession(ctx, c)
	}
	return true, err
}

// renewSession records the use of a session if that is due, and extends its cookies. It does not wait.
func (s *Server) renewSession(ctx *fasthttp.RequestCtx, c *wire.Call) {
	if !c.Site.Policy.RenewalDue(c.Session, s.now().Unix()) {
		return
	}
	s.options.Server.RunAsync([]wire.AsyncCommand{{Realm: c.Realm, Caller: c.Caller,
		CommandWithCallback: sessionRenewal{realm.RenewBrowserSession{Agent: c.Agent, Address: c.Address,
			Policy: c.Site.Policy}}}})
	browser := headersOfBrowser(ctx, c.Site)
	s.setSessionCookies(ctx, c, string(browser.cookieNamed(sessionCookie)))
}

// sessionRenewal is a command whose answer is not needed: if it fails, the next request repeats it.
type sessionRenewal struct{ realm.RenewBrowserSession }

func (x sessionRenewal) Decide(t *realm.Turn) (any, error) { return x.RenewBrowserSession.Decide(t) }
func (sessionRenewal) Done(any, error)                     {}

// setCookie sets a cookie of this host. Scripts cannot read it, and requests that other sites cause do not carry it,
// except when a user follows a link. An age of 0 removes it.
func setCookie(ctx *fasthttp.RequestCtx, site wire.Site, name, value string, age time.Duration) {
	c := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(c)
	c.SetKey(name)
	if secure(ctx.IsTLS(), site) {
		c.SetKey(hostPrefix + name)
		c.SetSecure(true)
	}
	c.SetValue(value)
	c.SetPath("/")
	c.SetHTTPOnly(true)
	c.SetSameSite(fasthttp.CookieSameSiteLaxMode)
	if age == 0 {
		c.SetExpire(fasthttp.CookieExpireDelete)
	} else {
		c.SetMaxAge(int(age / time.Second))
	}
	ctx.Response.Header.SetCookie(c)
}

// setSessionCookies gives the browser the secret of its session and the session's CSRF token.
func (s *Server) setSessionCookies(ctx *fasthttp.RequestCtx, c *wire.Call, secret string) {
	setCookie(ctx, c.Site, sessionCookie, secret, sessionCookieAge)
	browser := headersOfBrowser(ctx, c.Site)
	if token := s.csrfToken(c, &browser); token != "" {
		setCookie(ctx, c.Site, csrfCookie, token, csrfCookieAge)
	}
	s.setWritesCookie(ctx, c)
}

// removeSessionCookies removes the cookies of a session that has ended.
func removeSessionCookies(ctx *fasthttp.RequestCtx, site wire.Site) {
	setCookie(ctx, site, sessionCookie, "", 0)
	setCookie(ctx, site, csrfCookie, "", 0)
}

// logIn gives the browser a session that was just opened. The session that the browser had before ends. The new secret
// was never known to the browser, so no page can have prepared the session (session fixation).
func (s *Server) logIn(ctx *fasthttp.RequestCtx, c *wire.Call, opened realm.OpenedBrowserSession) {
	if c.Session != nil {
		if err := s.endSession(c); err != nil {
			s.options.Log.Warn("the previous session of a browser was not ended", "realm", c.Realm,
				"user", c.Caller.User, "err", err)
		}
	}
	c.Session, c.Caller.User = &realm.BrowserSession{ID: opened.ID}, opened.User
	s.setSessionCookies(ctx, c, opened.Secret)
}

// endSession ends the session of a request.
func (s *Server) endSession(c *wire.Call) error {
	_, err := wire.Execute(c, realm.EndBrowserSessions{User: c.Caller.User, ID: c.Session.ID})
	return err
}

package httpd

import (
	"bytes"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/web"
)

// pageRoute is the route of a page that people open in a browser.
type pageRoute struct {
	path   string // without a slash at the end; {token} is a path parameter
	handle func(*Server, *pageRequest) (web.View, error)
	posts  bool // the page has a form
	// anywhere: the page is also shown at addresses without an organization, and for deactivated ones.
	anywhere bool
	// oneClick: mail programs send the form of the page without a token, because its address is a secret (RFC 8058).
	oneClick bool
	// signed: forms come from another site without a token, because they have a signature.
	signed bool
	// needsLogin: a browser without a session is redirected to the login page.
	needsLogin bool
}

// pageRoutes is every page. Each file of pages adds its own list here.
func pageRoutes() []pageRoute {
	return slices.Concat(loginPages, signOnPages, samlPages, factorPages, passkeyPages, linkPages, helpPages,
		accountPages, organizationPages, serverPages, offlinePages, apiPages, oauthPages, callPages)
}

// pageRequest is a request for a page while its handler runs.
type pageRequest struct {
	ctx     *fasthttp.RequestCtx
	call    *wire.Call // its Session is nil for visitors
	browser browserHeaders
	// language is the language of the page: the user's, or the one that the browser asks for.
	language web.Language
	answered bool   // set by a handler that has written the whole answer
	redirect string // set by a handler: the answer redirects to this path or URL
	policy   string // content security policy, set by a handler; "" for pagePolicy
}

// posted reports whether a form was sent. Its CSRF token has been checked.
func (p *pageRequest) posted() bool { return p.ctx.IsPost() }

// field returns a field of the form that was sent.
func (p *pageRequest) field(name string) string {
	return strings.ToValidUTF8(string(p.ctx.PostArgs().Peek(name)), "�")
}

// query returns a parameter of the address.
func (p *pageRequest) query(name string) string {
	return strings.ToValidUTF8(string(p.ctx.QueryArgs().Peek(name)), "�")
}

// token returns the path parameter of a link from an email.
func (p *pageRequest) token() string {
	token, _ := p.ctx.UserValue("token").(string)
	return token
}

// addPageRoutes adds the routes of pages and of the files that they load.
func (s *Server) addPageRoutes() {
	for _, r := range pageRoutes() {
		s.router.ANY(r.path, func(ctx *fasthttp.RequestCtx) { s.servePage(ctx, &r) })
	}
	s.addPageFile(web.StylePath, "text/css; charset=utf-8", whenAsked(web.Style, newConstantAnswer))
	s.addPageFile(web.IconPath, "image/svg+xml", whenAsked(web.Icon, newConstantAnswer))
	const script = "text/javascript; charset=utf-8"
	s.addPageFile(web.ServerScriptPath, script, whenAsked(web.ServerScript, newConstantAnswer))
	s.addPageFile(web.PasskeyScriptPath, script, whenAsked(web.PasskeyScript, newConstantAnswer))
	for _, f := range web.ClientFiles() {
		build := newConstantAnswer
		if f.Compressed {
			build = incompressibleAnswer
		}
		s.addPageFile(f.Path, f.Type, whenAsked(f.Content, build))
	}
	s.addInstallRoutes()
	s.router.ANY("/favicon.ico", s.readOnly(func(ctx *fasthttp.RequestCtx) {
		if s.serveWebAppIcon(ctx) {
			return
		}
		setCommonHeaders(ctx)
		ctx.Response.Header.Set("Location", web.IconPath)
		ctx.SetStatusCode(fasthttp.StatusFound)
	}))
}

// addPageFile adds the route of a file whose path changes with its content, so that browsers can cache it for ever.
func (s *Server) addPageFile(path, contentType string, answer func() constantAnswer) {
	s.router.ANY(path, s.readOnly(func(ctx *fasthttp.RequestCtx) {
		if !s.writeConstant(ctx, answer()) {
			return
		}
		ctx.SetContentType(contentType)
		ctx.Response.Header.Set("Cache-Control", "public, max-age=31536000, immutable")
		ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	}))
}

// methods returns the methods of a page, sorted.
func (r *pageRoute) methods() []string {
	if r.posts {
		return []string{"GET", "HEAD", "OPTIONS", "POST"}
	}
	return fileMethods
}

// servePage handles a request for a page. The order of the checks: method, organization, session, token of the form.
func (s *Server) servePage(ctx *fasthttp.RequestCtx, r *pageRoute) {
	switch allowed := slices.Contains(r.methods(), string(ctx.Method())); {
	case ctx.IsOptions():
		ctx.Response.Header.Set("Allow", strings.Join(r.methods(), ", "))
		setCommonHeaders(ctx)
		ctx.SetStatusCode(fasthttp.StatusNoContent)
		return
	case !allowed && !fromBrowser(ctx):
		s.writeMethodNotAllowed(ctx, r.methods())
		return
	}
	p := s.pageRequest(ctx)
	defer func() {
		if x := recover(); x != nil {
			s.park.LogPanic(ctx, x)
			ctx.Response.Reset()
			s.writePage(p, errPagePanic, web.View{})
			ctx.SetConnectionClose()
		}
	}()
	if s.options.Realms.IsForeign(strings.ToLower(string(ctx.Host()))) {
		s.writePage(p, errNoOrganization(), web.Failure("Page not found", "This server does not have this address. "+
			"Its operator can allow the address with the setting allowed-hosts."))
		return
	}
	if s.hasOtherOwner(p.call) {
		s.forwardPage(ctx, p)
		return
	}
	view, err := s.openPage(p, r)
	if err == nil && p.redirect == "" {
		view, err = r.handle(s, p)
		if p.posted() {
			s.setWritesCookie(ctx, p.call)
		}
	}
	if p.redirect != "" && err == nil {
		setPageHeaders(ctx)
		ctx.Response.Header.Set("Location", p.redirect)
		ctx.SetStatusCode(fasthttp.StatusFound)
		return
	}
	if !p.answered {
		s.writePage(p, err, view)
	}
}

// pageRequest returns the request of a page, with its session if there is one.
func (s *Server) pageRequest(ctx *fasthttp.RequestCtx) *pageRequest {
	c := s.call(ctx, &form.Values{})
	p := &pageRequest{ctx: ctx, call: c, language: web.Match(string(ctx.Request.Header.Peek("Accept-Language")))}
	p.browser = headersOfBrowser(ctx, c.Site)
	s.findSession(c, &p.browser)
	c.Caller.Client = wire.WebClientName(c.Agent)
	return p
}

// writeNotFound answers 404 for an address that the server does not have: with a page to browsers, else with JSON.
// Addresses of the API always get JSON.
func (s *Server) writeNotFound(ctx *fasthttp.RequestCtx) {
	path := string(ctx.Path())
	if to := officialPage(path); to != "" && fromBrowser(ctx) && (ctx.IsGet() || ctx.IsHead()) {
		setPageHeaders(ctx)
		ctx.Response.Header.Set("Location", to)
		ctx.SetStatusCode(fasthttp.StatusFound)
		return
	}
	if !fromBrowser(ctx) || strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, webPrefix+"/") {
		s.writeError(ctx, fasthttp.StatusNotFound, "Not found")
		return
	}
	page, err := pageNotFound()
	s.writePage(s.pageRequest(ctx), err, page)
}

// officialSite has the documentation of the protocol's clients and of its API, which this server does not repeat.
const officialSite = "https://zulip.com"

// officialFolders are the folders of paths to which the web app links and that exist on officialSite.
var officialFolders = []string{"/help", "/api", "/integrations", "/policies", "/communities", "/apps"}

// officialPage returns the address of a page of the documentation on the official site, or "" if the path is none.
func officialPage(path string) string {
	for _, folder := range officialFolders {
		rest, ok := strings.CutPrefix(path, folder)
		if ok && (rest == "" || rest[0] == '/') && !strings.HasPrefix(path, apiPrefix+"/") {
			return officialSite + (&url.URL{Path: path}).EscapedPath()
		}
	}
	return ""
}

// openPage makes the checks that all pages share. It returns the page to show if one fails.
func (s *Server) openPage(p *pageRequest, r *pageRoute) (web.View, error) {
	ctx, c := p.ctx, p.call
	if !slices.Contains(r.methods(), string(ctx.Method())) {
		ctx.Response.Header.Set("Allow", strings.Join(r.methods(), ", "))
		return web.Failure("Not allowed", "This page cannot be used in this way."), errPageMethod
	}
	if err := s.limitCall(ctx, c); err != nil {
		return web.Failure("Too many requests", s.formErrorText(err)), err
	}
	switch {
	case r.anywhere:
	case c.Realm == 0:
		return web.Failure("Page not found", "There is no organization here."), errNoOrganization()
	case c.Site.Deactivated:
		p.redirect = deactivatedPath
		return web.View{}, nil
	}
	if ctx.IsPost() {
		if tooManyParams(ctx.PostBody()) {
			return web.Failure("Not allowed", "This page cannot be used in this way."), errTooManyParams
		}
		if r.oneClick && string(ctx.FormValue("List-Unsubscribe")) == "One-Click" {
			return web.View{}, nil
		}
		if r.signed {
			return web.View{}, nil
		}
		if err := s.checkCSRF(c, &p.browser, p.field(csrfField)); err != nil {
			return web.Failure("Please try again", "This page was open too long, or it was sent from another site. "+
				"Go back, load the page again and repeat."), err
		}
	}
	if r.needsLogin && c.Session == nil {
		p.redirect = loginAddress(ctx)
		return web.View{}, nil
	}
	if c.Session != nil {
		s.extendSession(p)
	}
	return web.View{}, nil
}

// extendSession extends the cookies of a browser session by two more weeks, and records the use if that is due.
func (s *Server) extendSession(p *pageRequest) {
	s.setSessionCookies(p.ctx, p.call, string(p.browser.cookieNamed(sessionCookie)))
	s.renewSession(p.ctx, p.call)
}

// errPagePanic is the error of a page after the panic of a page's handler.
var errPagePanic = errors.New("the handler of a page panicked")

var errPageMethod = realm.Refuse(realm.Invalid, "BAD_REQUEST", "Method Not Allowed")

func errNoOrganization() error {
	return realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain")
}

// deactivatedPath is the page about an organization that was deactivated (protocol).
const deactivatedPath = "/accounts/deactivated/"

// csrfOf returns the token for the forms of a page. A browser without a session gets a cookie with a token of its own.
func (s *Server) csrfOf(p *pageRequest) string {
	if p.call.Session != nil {
		return masked(s.csrfToken(p.call, &p.browser))
	}
	cookie := p.browser.cookieNamed(csrfCookie)
	if !wellFormedToken(cookie) {
		cookie = []byte(s.options.Tools.Token(csrfTokenLength))
		setCookie(p.ctx, p.call.Site, csrfCookie, string(cookie), csrfCookieAge)
	}
	return masked(string(cookie))
}

// wellFormedToken reports whether a cookie can be a CSRF token that this server has set.
func wellFormedToken(b []byte) bool {
	return len(b) == csrfTokenLength && bytes.IndexFunc(b, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// errorText returns the message that a page may show for an error.
func (s *Server) errorText(err error) string {
	var r *realm.Refusal
	if errors.As(err, &r) {
		return r.Msg
	}
	if !errors.Is(err, errPagePanic) { // the panic is in the log
		s.options.Log.Error("page request failed", "err", err)
	}
	return "Something went wrong. Please try again later."
}

// writePage writes a page, with the status of err. The page of a view without a template says only why the request
// failed.
func (s *Server) writePage(p *pageRequest, err error, view web.View) {
	ctx := p.ctx
	status := fasthttp.StatusOK
	if err != nil {
		status, _ = wire.Failure(err)
		setRetryAfter(ctx, err)
		if view.Template == "" {
			view = web.Failure("Something went wrong", s.errorText(err))
		}
	}
	if err == errPageMethod {
		status = fasthttp.StatusMethodNotAllowed
	}
	token := ""
	if !ctx.IsHead() {
		token = s.csrfOf(p)
	}
	body := web.Render(web.Page{Language: p.language, CSRF: token, View: view})
	setPageHeaders(ctx)
	if p.policy != "" {
		ctx.Response.Header.Set("Content-Security-Policy", p.policy)
	}
	ctx.Response.Header.Set("Content-Language", p.language.String())
	ctx.Response.SkipBody = ctx.IsHead()
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBody(body)
}

// pagePolicy allows a page its stylesheet, its icon and forms to this server, nothing else.
const pagePolicy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'"

// formPolicy is pagePolicy for a page with a form whose answer may redirect to further sources.
func formPolicy(targets string) string {
	return strings.Replace(pagePolicy, "form-action 'self'", strings.TrimSpace("form-action 'self' "+targets), 1)
}

// clientPolicy allows the page of the client its own scripts and styles, but none inside the page, calls to this
// server, and pictures of messages, which may come from anywhere.
const clientPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; " +
	"img-src 'self' data: blob: http: https:; media-src 'self' blob:; manifest-src 'self'; worker-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// setPageHeaders forbids caches and frames for a page. Browsers send its address, which may be a secret, to this server
// only: the server checks with it which page has sent a form.
func setPageHeaders(ctx *fasthttp.RequestCtx) {
	setCommonHeaders(ctx)
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Language, Cookie")
}

// fromBrowser reports whether the request comes from a browser and has no credentials.
func fromBrowser(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	return len(h.Peek("Authorization")) == 0 && bytes.Contains(h.Peek("Accept"), []byte("text/html"))
}

// redirectToLogin redirects to the login page. The query is left out: it may contain secrets.
func redirectToLogin(ctx *fasthttp.RequestCtx) {
	setCommonHeaders(ctx)
	ctx.Response.Header.Set("Location", loginAddress(ctx))
	ctx.SetStatusCode(fasthttp.StatusFound)
}

// loginAddress returns the address of the login page from which the user returns to the requested path.
func loginAddress(ctx *fasthttp.RequestCtx) string {
	path := string(ctx.URI().PathOriginal())
	if path == "/" {
		return loginPath
	}
	return loginPath + "?next=" + url.QueryEscape(path)
}

// safeNext returns the path to which a user is redirected after a login: next if it is a path of this host, else "/".
// Browsers read a path that begins with two slashes or backslashes as another host.
func safeNext(next string) string {
	ok := strings.HasPrefix(next, "/") && len(next) <= maxNextBytes && !strings.Contains(next, "\\") &&
		strings.IndexFunc(next, func(r rune) bool { return r <= ' ' || r == 0x7f }) < 0
	if u, err := url.Parse(next); !ok || err != nil || u.Host != "" || u.Scheme != "" || strings.HasPrefix(next, "//") {
		return "/"
	}
	return next
}

// maxNextBytes limits the length of the path to which a user is redirected after a login.
const maxNextBytes = 2000

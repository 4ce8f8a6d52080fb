package httpd

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
	"parley/wire/webapp"
)

// languageCookie is the name of the cookie in which the web app stores the language of a visitor (protocol). Unlike
// the other cookies it is set by a script.
const languageCookie = "django_language"

// nonceLength is the length of the secret that permits the scripts of one page, in characters.
const nonceLength = 24

// robots asks search engines to read no page.
const robots = "User-agent: *\nDisallow: /\n"

// addWebAppRoutes adds the addresses that exist besides the API and the pages of this server: the web app in each of
// its languages, its files, and the file that tells search engines to stay away.
func (s *Server) addWebAppRoutes() {
	s.router.ANY("/robots.txt", s.readOnly(func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Cache-Control", "public, max-age=86400")
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString(robots)
	}))
	s.router.ANY("/thumbnail", s.readOnly(redirectToUpload))
	app := s.options.WebApp
	if app == nil {
		return
	}
	s.router.ANY(webapp.StaticPath+"{path:*}", s.readOnly(func(ctx *fasthttp.RequestCtx) {
		if !s.serveWebAppFile(ctx, pathParam(ctx, "path")) {
			s.writeError(ctx, fasthttp.StatusNotFound, "Not found")
		}
	}))
	var codes []string
	for _, l := range app.Languages() {
		codes = append(codes, l.Code)
		path := "/" + l.Code
		if slices.ContainsFunc(pageRoutes(), func(r pageRoute) bool { return r.path == path }) {
			continue // such as /new: it is also the code of a language
		}
		r := pageRoute{path: path, handle: func(s *Server, p *pageRequest) (web.View, error) {
			return s.webAppPage(p, l.Code)
		}}
		s.router.ANY(path, func(ctx *fasthttp.RequestCtx) { s.servePage(ctx, &r) })
	}
	s.webAppLanguage = web.NewMatcher(codes)
}

// faviconNames are the files of releases that can be the icon of the site, the best first.
var faviconNames = []string{"favicon.ico", "images/favicon.ico", "images/favicon.png", "images/favicon.svg"}

// serveWebAppIcon sends the icon of the web app. It reports false if there is none.
func (s *Server) serveWebAppIcon(ctx *fasthttp.RequestCtx) bool {
	return slices.ContainsFunc(faviconNames, func(name string) bool { return s.serveWebAppFile(ctx, name) })
}

// redirectToUpload redirects from an older address of thumbnails to the upload (protocol). It refuses other files.
func redirectToUpload(ctx *fasthttp.RequestCtx) {
	setCommonHeaders(ctx)
	target := "/" + strings.TrimPrefix(string(ctx.QueryArgs().Peek("url")), "/")
	if !strings.HasPrefix(target, "/user_uploads/") || safeNext(target) != target {
		ctx.SetStatusCode(fasthttp.StatusForbidden)
		return
	}
	ctx.Response.Header.Set("Location", target)
	ctx.SetStatusCode(fasthttp.StatusFound)
}

// webAppPage writes the page of the web app, with the state of the caller. language is that of the address, or "".
func (s *Server) webAppPage(p *pageRequest, language string) (web.View, error) {
	ctx, c, app := p.ctx, p.call, s.options.WebApp
	c.Caller.Operation = "load the web app"
	c.ReserveMemory = func(n int) error { return s.reserveMemory(ctx, c, n) }
	f := wire.WebPageForm{
		Language: language, LanguageInPath: language != "", Channel: p.query("stream"), Topic: p.query("topic"),
		Deferred: p.query("state_data") == "deferred" || ctx.IsHead(),
		// over TLS, a script too can set a cookie of this prefix
		LanguageCookie: s.languageCookieName(p), Languages: app.LanguageList(), Translations: s.translations,
	}
	if f.Language == "" && c.Account == nil {
		f.Language = s.visitorLanguage(p)
	}
	page, err := wire.OpenWebPage(c, f)
	var r *realm.Refusal
	if errors.As(err, &r) && r.Kind == realm.Unauthenticated {
		p.redirect = loginAddress(ctx)
		return web.View{}, nil
	}
	if err != nil {
		return web.View{}, err
	}
	shown := webapp.Page{
		Language: page.Language, ColorScheme: page.ColorScheme, Title: page.Organization, CSRF: s.csrfOf(p),
		Nonce: s.options.Tools.Token(nonceLength), Params: page.Params, Spectators: page.Spectators,
		FirefoxAndroid: strings.Contains(c.Agent, "Firefox/") && strings.Contains(c.Agent, "Android"),
	}
	if c.Account == nil {
		shown.Description = page.Description
	}
	// the parameters, the page, and the compressed page
	if n := 2 * len(page.Params); n >= largeAnswerBytes {
		if err := s.reserveMemory(ctx, c, n); err != nil {
			return web.View{}, err
		}
	}
	p.answered = true
	s.writeWebApp(ctx, app.HTML(&shown), &shown)
	return web.View{}, nil
}

// writeWebApp answers with the page of the web app.
func (s *Server) writeWebApp(ctx *fasthttp.RequestCtx, body []byte, page *webapp.Page) {
	setPageHeaders(ctx)
	h := &ctx.Response.Header
	h.Set("Content-Security-Policy", webAppPolicy(page.Nonce))
	h.Set("Content-Language", page.Language)
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.Response.SkipBody = ctx.IsHead()
	if acceptsGzip(ctx) && !ctx.IsHead() {
		h.Set("Content-Encoding", "gzip")
		body = fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestSpeed)
	}
	ctx.Response.SetBodyRaw(body)
}

// webAppPolicy returns the content security policy of the web app. Scripts are those of the page, and others that they
// load. Styles can be in attributes, as in formulas. Pictures and videos of messages can be on other sites, and so can
// the players of videos, which run in frames of their own.
func webAppPolicy(nonce string) string {
	return "default-src 'none'; script-src 'nonce-" + nonce + "' 'strict-dynamic'; style-src 'self' 'unsafe-inline'; " +
		"img-src 'self' data: blob: https: http:; media-src 'self' data: blob: https: http:; font-src 'self' data:; " +
		"connect-src 'self' data: blob:; frame-src https: data:; worker-src 'self' blob:; manifest-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
}

// translations returns the translations of the web app to a language; without any, those to English.
func (s *Server) translations(language string) (code string, list []byte) {
	code = wire.LanguageCode(language)
	if !s.options.WebApp.HasLanguage(code) {
		return webapp.English, []byte("{}")
	}
	list, err := s.options.WebApp.Translations(code)
	if err != nil {
		s.options.Log.Error("reading the translations of the web app failed", "language", code, "err", err)
		return webapp.English, []byte("{}")
	}
	return code, list
}

func (s *Server) languageCookieName(p *pageRequest) string {
	if p.browser.secure {
		return hostPrefix + languageCookie
	}
	return languageCookie
}

// visitorLanguage returns the language that a visitor has chosen, or that the browser asks for; "" if the web app has
// neither.
func (s *Server) visitorLanguage(p *pageRequest) string {
	chosen := wire.LanguageCode(string(p.browser.cookieNamed(languageCookie)))
	if s.options.WebApp.HasLanguage(chosen) {
		return chosen
	}
	return s.webAppLanguage(string(p.ctx.Request.Header.Peek("Accept-Language")))
}

// serveWebAppFile sends a file of the web app by its path below webapp.StaticPath. It reports false, and answers
// nothing, if there is none.
func (s *Server) serveWebAppFile(ctx *fasthttp.RequestCtx, name string) bool {
	if s.options.WebApp == nil {
		return false
	}
	f, err := s.options.WebApp.Open(name, acceptsGzip(ctx))
	if err != nil {
		return false
	}
	h := &ctx.Response.Header
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	if f.Lasting {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.HasPrefix(f.Type, "text/html") || strings.HasPrefix(f.Type, "image/svg") {
		// a page of its own if a browser opens it
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")
	}
	version := strconv.FormatInt(f.Info.Size(), 16) + "-" + strconv.FormatInt(f.Info.ModTime().UnixNano(), 16)
	if f.Compressed {
		h.Set("Content-Encoding", "gzip")
		version += "-gzip"
		ctx.Request.Header.Del("Range") // of the file, not of its compressed form
	}
	ctx.SetContentType(f.Type)
	s.sendOpenFile(ctx, localFile{f.File, f.Info.Size()}, `"`+version+`"`)
	return true
}

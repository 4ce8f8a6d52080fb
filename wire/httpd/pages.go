package httpd

import (
	"bytes"
	"errors"
	"html/template"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
)

// pageTemplate renders all pages: the form of an invitation link, which creates the account, and pages with text
// only. It works without scripts.
var pageTemplate = template.Must(template.New("join").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 26rem; margin: 4rem auto; padding: 0 1rem; }
label { display: block; margin: 1rem 0; }
input { display: block; width: 100%; box-sizing: border-box; font: inherit; padding: .5rem; }
button { font: inherit; padding: .5rem 1rem; }
.wrong { color: #a00; }
</style>
</head>
<body>
<h1>{{.Title}}</h1>
{{with .Text}}<p>{{.}}</p>{{end}}
{{with .Error}}<p class="wrong" role="alert">{{.}}</p>{{end}}
{{if .Form}}<form method="post">
<label>Email address
<input type="email" name="email" required autocomplete="email" value="{{.Email}}"
{{- if not .Multi}} readonly{{end}}></label>
<label>Full name
<input name="full_name" required maxlength="100" autocomplete="name" value="{{.Name}}"></label>
<label>Password
<input type="password" name="password" required maxlength="100" autocomplete="new-password"></label>
<button>Join</button>
</form>{{end}}
{{with .Button}}<form method="post"><button>{{.}}</button></form>{{end}}
</body>
</html>
`))

type pageData struct {
	Title, Text, Error string
	Form, Multi        bool
	Email, Name        string
	Button             string // of a form without fields
}

// addPageRoutes adds the routes of pages that people open in a browser.
func (s *Server) addPageRoutes() {
	s.router.GET(wire.JoinPath+"{token}", s.serveJoin)
	s.router.HEAD(wire.JoinPath+"{token}", s.serveJoin)
	s.router.POST(wire.JoinPath+"{token}", s.serveJoin)
	s.router.GET(wire.ConfirmAddressPath+"{token}", s.serveAddressConfirmation)
	s.router.HEAD(wire.ConfirmAddressPath+"{token}", s.serveAddressConfirmation)
	s.router.POST(wire.ConfirmAddressPath+"{token}", s.serveAddressConfirmation)
	s.router.GET(strings.TrimSuffix(loginPath, "/"), s.serveLogin)
	s.router.HEAD(strings.TrimSuffix(loginPath, "/"), s.serveLogin)
}

// loginPath is the page to which browsers without a login are redirected (protocol).
const loginPath = "/login/"

// fromBrowser reports whether the request comes from a browser and has no credentials.
func fromBrowser(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	return len(h.Peek("Authorization")) == 0 && bytes.Contains(h.Peek("Accept"), []byte("text/html"))
}

// redirectToLogin redirects to the login page. The query is left out: it may contain secrets.
func redirectToLogin(ctx *fasthttp.RequestCtx) {
	setCommonHeaders(ctx)
	ctx.Response.Header.Set("Location", loginPath+"?next="+url.QueryEscape(string(ctx.URI().PathOriginal())))
	ctx.SetStatusCode(fasthttp.StatusFound)
}

// writeNotFound answers 404 for an address that the server does not have: with a page to browsers, else with JSON.
func (s *Server) writeNotFound(ctx *fasthttp.RequestCtx) {
	if !fromBrowser(ctx) {
		s.writeError(ctx, fasthttp.StatusNotFound, "Not found")
		return
	}
	s.writePage(ctx, realm.Refuse(realm.NotFound, "BAD_REQUEST", "Not found"), pageData{Title: "Page not found",
		Text: "There is no page at this address. This server is used with Zulip apps, not in a browser."})
}

// serveLogin tells the user of a browser which clients to use. There is no login form in this server.
func (s *Server) serveLogin(ctx *fasthttp.RequestCtx) {
	c := &wire.Call{Server: s.options.Server, Tools: s.options.Tools, Params: &form.Values{}}
	c.Realm, c.Site = s.options.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	if err := s.limitCall(ctx, c); err != nil {
		s.writePage(ctx, err, pageData{Title: "Too many requests", Error: err.Error()})
		return
	}
	if c.Realm == 0 {
		s.writePage(ctx, realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain"),
			pageData{Title: "Log in", Error: "There is no organization here."})
		return
	}
	name, err := wire.Read(c, func(v realm.View) (string, error) { return v.Org().Name, nil })
	if err != nil {
		s.writePage(ctx, err, pageData{Title: "Log in", Error: s.errorText(err)})
		return
	}
	v := pageData{Title: name, Text: name + " is used with Zulip apps, not in a browser. Log in with one, at " +
		c.Site.URL + "."}
	if c.Site.Deactivated {
		v.Text = "This organization has been deactivated."
	}
	s.writePage(ctx, nil, v)
}

// linkCall returns the call of a link from an email, and the token at the end of the link.
func (s *Server) linkCall(ctx *fasthttp.RequestCtx) (*wire.Call, string) {
	c := &wire.Call{Server: s.options.Server, Tools: s.options.Tools, Params: &form.Values{},
		Agent: string(ctx.UserAgent())}
	c.Realm, c.Site = s.options.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	c.Caller.Client = "website"
	token, _ := ctx.UserValue("token").(string)
	return c, token
}

// serveAddressConfirmation shows a page that asks for confirmation of a new email address; its button confirms. Opening
// the link changes nothing: programs that check the links of emails open it, too.
func (s *Server) serveAddressConfirmation(ctx *fasthttp.RequestCtx) {
	c, token := s.linkCall(ctx)
	v := pageData{Title: "New address"}
	err := s.limitCall(ctx, c)
	if err == nil && ctx.IsPost() {
		var address string
		address, err = wire.ConfirmAddress(c, token)
		v.Text = "From now on, log in as " + address + "."
	} else if err == nil {
		var change realm.EmailChange
		change, err = wire.FindAddressChange(c, token)
		v.Text, v.Button = "Use "+change.To+" as your address from now on?", "Confirm"
	}
	if err != nil {
		v.Text, v.Button, v.Error = "", "", s.errorText(err)
	}
	s.writePage(ctx, err, v)
}

func (s *Server) serveJoin(ctx *fasthttp.RequestCtx) {
	c, token := s.linkCall(ctx)
	if err := s.limitCall(ctx, c); err != nil {
		s.writePage(ctx, err, pageData{Title: "Too many requests", Error: err.Error()})
		return
	}
	invited, err := wire.FindInvite(c, token)
	if err != nil {
		s.writePage(ctx, err, pageData{Title: "Invitation", Error: s.errorText(err)})
		return
	}
	v := pageData{Title: "Join " + invited.Org, Form: true, Multi: invited.Multi, Email: invited.Email}
	if invited.Inviter != "" {
		v.Text = invited.Inviter + " has invited you."
	}
	if ctx.IsPost() {
		args := ctx.PostArgs()
		v.Name = string(args.Peek("full_name"))
		if v.Multi {
			v.Email = string(args.Peek("email"))
		}
		err = wire.JoinByInvite(c, token, v.Email, v.Name, string(args.Peek("password")))
		if err == nil {
			v = pageData{Title: "Welcome to " + invited.Org, Text: "Your account is ready. Log in at " + c.Site.URL +
				" as " + v.Email + "."}
		} else {
			v.Error = s.errorText(err)
		}
	}
	s.writePage(ctx, err, v)
}

// errorText returns the message that a page may show for an error.
func (s *Server) errorText(err error) string {
	var r *realm.Refusal
	if errors.As(err, &r) {
		return r.Msg
	}
	s.options.Log.Error("page request failed", "err", err)
	return "Something went wrong. Please try again later."
}

// writePage writes a page that loads nothing, is not shown in frames, and does not leak its address, which is a
// secret.
func (s *Server) writePage(ctx *fasthttp.RequestCtx, err error, v pageData) {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		panic("BUG: render page: " + err.Error())
	}
	status := fasthttp.StatusOK
	if err != nil {
		status, _ = wire.Failure(err)
		setRetryAfter(ctx, err)
	}
	setCommonHeaders(ctx)
	ctx.Response.Header.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	ctx.Response.Header.Set("Referrer-Policy", "no-referrer")
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	ctx.Response.Header.Del("Access-Control-Allow-Origin")
	ctx.Response.SkipBody = ctx.IsHead()
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBody(b.Bytes())
}

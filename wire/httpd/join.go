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

// joinPage is where the links of invitations lead: it makes the account. It works without scripts.
var joinPage = template.Must(template.New("join").Parse(`<!doctype html>
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
{{with .Wrong}}<p class="wrong" role="alert">{{.}}</p>{{end}}
{{if .Form}}<form method="post">
<label>Email address
<input type="email" name="email" required autocomplete="email" value="{{.Email}}"{{if not .Multi}} readonly{{end}}></label>
<label>Full name
<input name="full_name" required maxlength="100" autocomplete="name" value="{{.Name}}"></label>
<label>Password
<input type="password" name="password" required maxlength="100" autocomplete="new-password"></label>
<button>Join</button>
</form>{{end}}
</body>
</html>
`))

type joinView struct {
	Title, Text, Wrong string
	Form, Multi        bool
	Email, Name        string
}

// servePages adds the pages people open in a browser.
func (s *Server) servePages() {
	s.router.GET(wire.JoinPath+"{token}", s.serveJoin)
	s.router.HEAD(wire.JoinPath+"{token}", s.serveJoin)
	s.router.POST(wire.JoinPath+"{token}", s.serveJoin)
	s.router.GET(wire.AddressPath+"{token}", s.serveAddress)
	s.router.GET(strings.TrimSuffix(loginPath, "/"), s.serveLogin)
	s.router.HEAD(strings.TrimSuffix(loginPath, "/"), s.serveLogin)
}

// loginPath is where browsers without a login are sent (protocol).
const loginPath = "/login/"

// byBrowser reports whether somebody without any credentials looks at an endpoint in a browser.
func byBrowser(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	return len(h.Peek("Authorization")) == 0 && bytes.Contains(h.Peek("Accept"), []byte("text/html"))
}

// sendToLogin answers with the login page. What the query says stays here: it may be nobody's business there.
func sendToLogin(ctx *fasthttp.RequestCtx) {
	always(ctx)
	ctx.Response.Header.Set("Location", loginPath+"?next="+url.QueryEscape(string(ctx.URI().PathOriginal())))
	ctx.SetStatusCode(fasthttp.StatusFound)
}

// serveLogin tells who came with a browser what the organization is used with; there is nothing to log in to here.
func (s *Server) serveLogin(ctx *fasthttp.RequestCtx) {
	c := &wire.Call{House: s.o.House, Tools: s.o.Tools, Params: &form.Values{}}
	c.Realm, c.Site = s.o.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	if err := s.count(ctx, c); err != nil {
		s.page(ctx, err, joinView{Title: "Too many requests", Wrong: err.Error()})
		return
	}
	if c.Realm == 0 {
		s.page(ctx, realm.Refuse(realm.NotFound, "NONEXISTENT_SUBDOMAIN", "Invalid subdomain"), joinView{Title: "Log in", Wrong: "There is no organization here."})
		return
	}
	name, err := wire.Look(c, func(v realm.View) (string, error) { return v.Org().Name, nil })
	if err != nil {
		s.page(ctx, err, joinView{Title: "Log in", Wrong: s.readable(err)})
		return
	}
	v := joinView{Title: name, Text: name + " is used with Zulip apps, not in a browser. Log in with one, at " + c.Site.URL + "."}
	if c.Site.Closed {
		v.Text = "This organization has been deactivated."
	}
	s.page(ctx, nil, v)
}

// linked is the call of somebody who followed a letter's link, and what the link ends in.
func (s *Server) linked(ctx *fasthttp.RequestCtx) (*wire.Call, string) {
	c := &wire.Call{House: s.o.House, Tools: s.o.Tools, Params: &form.Values{}, Agent: string(ctx.UserAgent())}
	c.Realm, c.Site = s.o.Realms.ByHost(strings.ToLower(string(ctx.Host())))
	c.Caller.Client = "website"
	token, _ := ctx.UserValue("token").(string)
	return c, token
}

// serveAddress is where the link leads by which a new address is confirmed: opening it is enough.
func (s *Server) serveAddress(ctx *fasthttp.RequestCtx) {
	c, token := s.linked(ctx)
	v := joinView{Title: "New address"}
	err := s.count(ctx, c)
	if err == nil {
		var address string
		address, err = wire.ConfirmAddress(c, token)
		v.Text = "From now on, log in as " + address + "."
	}
	if err != nil {
		v.Text, v.Wrong = "", s.readable(err)
	}
	s.page(ctx, err, v)
}

func (s *Server) serveJoin(ctx *fasthttp.RequestCtx) {
	c, token := s.linked(ctx)
	if err := s.count(ctx, c); err != nil {
		s.page(ctx, err, joinView{Title: "Too many requests", Wrong: err.Error()})
		return
	}
	invited, err := wire.Invited(c, token)
	if err != nil {
		s.page(ctx, err, joinView{Title: "Invitation", Wrong: s.readable(err)})
		return
	}
	v := joinView{Title: "Join " + invited.Org, Form: true, Multi: invited.Multi, Email: invited.Email}
	if invited.Inviter != "" {
		v.Text = invited.Inviter + " has invited you."
	}
	if ctx.IsPost() {
		args := ctx.PostArgs()
		v.Name = string(args.Peek("full_name"))
		if v.Multi {
			v.Email = string(args.Peek("email"))
		}
		err = wire.Join(c, token, v.Email, v.Name, string(args.Peek("password")))
		if err == nil {
			v = joinView{Title: "Welcome to " + invited.Org, Text: "Your account is ready. Log in at " + c.Site.URL + " as " + v.Email + "."}
		} else {
			v.Wrong = s.readable(err)
		}
	}
	s.page(ctx, err, v)
}

// readable is what a person may read of an error.
func (s *Server) readable(err error) string {
	var r *realm.Refusal
	if errors.As(err, &r) {
		return r.Msg
	}
	s.o.Log.Error("page failed", "error", err)
	return "Something went wrong. Please try again later."
}

// page writes a page that loads nothing, is shown in no frame, and keeps its address, which is a secret, to itself.
func (s *Server) page(ctx *fasthttp.RequestCtx, err error, v joinView) {
	var b bytes.Buffer
	if err := joinPage.Execute(&b, v); err != nil {
		panic("BUG: page: " + err.Error())
	}
	status := fasthttp.StatusOK
	if err != nil {
		status, _ = wire.Failure(err)
		retryAfter(ctx, err)
	}
	always(ctx)
	ctx.Response.Header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	ctx.Response.Header.Set("Referrer-Policy", "no-referrer")
	ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	ctx.Response.Header.Del("Access-Control-Allow-Origin")
	ctx.Response.SkipBody = ctx.IsHead()
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/html; charset=utf-8")
	ctx.SetBody(b.Bytes())
}

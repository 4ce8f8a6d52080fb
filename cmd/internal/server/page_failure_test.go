package server

import (
	"maps"
	"net"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
)

// panickingEmails is a composer with a bug in the email to new users.
type panickingEmails struct{ wire.EmailComposer }

func (panickingEmails) SignUp(realm.EmailedLink, bool, realm.Letterhead, wire.Site) realm.Email {
	panic("BUG: compose an email")
}

// A page whose handler panics is answered with an HTML page and status 500, in the language of the browser. The page
// does not show the reason. A panic of the realm before its first fact has the same answer. The server and the realm
// go on.
func TestPanickingPage(t *testing.T) {
	s := newMatrixStage(t, newCoverage(byKey))
	s.must(s.keeper, "PATCH", "/realm", "invite_required", false)
	check := s.tools.CheckPassword
	emails := s.tools.Emails
	s.tools.CheckPassword = func(realm.ID, string, string) (bool, error) { panic("BUG: check a password") }
	s.tools.Emails = panickingEmails{emails}
	for page, form := range map[string]url.Values{
		"/accounts/login/": {"username": {s.keeper.email}, "password": {"a password"}},
		"/register/":       {"email": {"new@example.net"}},
	} {
		status, body := s.page(ourHost, "POST", page, form)
		if status != fasthttp.StatusInternalServerError || !strings.HasPrefix(body, "<!doctype html>") ||
			!strings.Contains(body, "Etwas ist schiefgegangen") || strings.Contains(body, "BUG") {
			t.Errorf("%s: %d\n%s", page, status, body)
		}
	}
	s.tools.CheckPassword, s.tools.Emails = check, emails
	s.must(s.keeper, "GET", "/users/me")
	s.must(s.keeper, "PATCH", "/realm", "invite_required", true)
	if status, body := s.page(ourHost, "POST", "/accounts/login/", url.Values{"username": {s.keeper.email},
		"password": {"a password"}}); status != 200 || !strings.Contains(body, "Passwort ist falsch") {
		t.Errorf("the login page afterwards: %d\n%s", status, body)
	}
}

// page loads a page as a German browser without a session. With POST, it sends a form with the token of the login page.
func (c *matrixServer) page(host, method, path string, form url.Values) (status int, body string) {
	c.Helper()
	send := func(method, path, cookie string, form url.Values) *fasthttp.RequestCtx {
		req := &fasthttp.Request{}
		req.Header.SetMethod(method)
		req.SetRequestURI("http://" + host + path)
		req.Header.SetHost(host)
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Accept-Language", "de")
		if method == "POST" {
			req.Header.SetCookie("csrftoken", cookie)
			req.Header.SetContentType("application/x-www-form-urlencoded")
			req.SetBodyString(form.Encode())
		}
		ctx := &fasthttp.RequestCtx{}
		ctx.Init(req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
		c.server.Handle(ctx)
		return ctx
	}
	cookie := fasthttp.Cookie{}
	if method == "POST" {
		login := send("GET", "/login/", "", nil)
		cookie.SetKey("csrftoken")
		token := regexp.MustCompile(`name="csrfmiddlewaretoken" value="([^"]+)"`).FindSubmatch(login.Response.Body())
		if token == nil || !login.Response.Header.Cookie(&cookie) {
			c.Fatalf("the login page has no form: %d\n%s", login.Response.StatusCode(), login.Response.Body())
		}
		form = maps.Clone(form)
		form.Set("csrfmiddlewaretoken", string(token[1]))
	}
	ctx := send(method, path, string(cookie.Value()), form)
	return ctx.Response.StatusCode(), string(ctx.Response.Body())
}

package server

import (
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

func (panickingEmails) SignUp(realm.EmailedLink, bool, string, wire.Site) realm.Email {
	panic("BUG: compose an email")
}

// A page whose handler panics is answered with an HTML page and status 500, in the language of the browser. The page
// does not show the reason. A panic of the realm before its first fact has the same answer. The server and the realm
// go on.
func TestPanickingPage(t *testing.T) {
	s := newMatrixStage(t, &coverage{asked: map[string]map[string]int{}, done: map[string]bool{},
		events: map[string]int{}, counts: map[string][2]int{}})
	s.must(s.keeper, "PATCH", "/realm", "invite_required", false)
	check := s.tools.CheckPassword
	emails := s.tools.Emails
	s.tools.CheckPassword = func(string, string) (bool, error) { panic("BUG: check a password") }
	s.tools.Emails = panickingEmails{emails}
	for page, form := range map[string]url.Values{
		"/accounts/login/": {"username": {s.keeper.email}, "password": {"a password"}},
		"/register/":       {"email": {"new@example.net"}},
	} {
		status, kind, body := s.submitPage(page, form)
		if status != fasthttp.StatusInternalServerError || !strings.HasPrefix(kind, "text/html") ||
			!strings.Contains(body, "Etwas ist schiefgegangen") || strings.Contains(body, "BUG") {
			t.Errorf("%s: %d %s\n%s", page, status, kind, body)
		}
	}
	s.tools.CheckPassword, s.tools.Emails = check, emails
	s.must(s.keeper, "GET", "/users/me")
	s.must(s.keeper, "PATCH", "/realm", "invite_required", true)
	if status, _, body := s.submitPage("/accounts/login/", url.Values{"username": {s.keeper.email},
		"password": {"a password"}}); status != 200 || !strings.Contains(body, "Passwort ist falsch") {
		t.Errorf("the login page afterwards: %d\n%s", status, body)
	}
}

// submitPage loads a page as a German browser and sends its form.
func (c *matrixServer) submitPage(path string, form url.Values) (status int, kind, body string) {
	c.Helper()
	send := func(method string, cookie string) *fasthttp.RequestCtx {
		req := &fasthttp.Request{}
		req.Header.SetMethod(method)
		req.SetRequestURI("http://" + ourHost + path)
		req.Header.SetHost(ourHost)
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
	got := send("GET", "")
	var cookie fasthttp.Cookie
	cookie.SetKey("csrftoken")
	token := regexp.MustCompile(`name="csrfmiddlewaretoken" value="([^"]+)"`).FindSubmatch(got.Response.Body())
	if token == nil || !got.Response.Header.Cookie(&cookie) {
		c.Fatalf("%s has no form: %d\n%s", path, got.Response.StatusCode(), got.Response.Body())
	}
	form.Set("csrfmiddlewaretoken", string(token[1]))
	ctx := send("POST", string(cookie.Value()))
	return ctx.Response.StatusCode(), string(ctx.Response.Header.ContentType()), string(ctx.Response.Body())
}

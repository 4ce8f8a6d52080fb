package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

const (
	oauthBack     = "http://127.0.0.1:4711/back"
	oauthVerifier = "a-verifier-of-at-least-43-characters-0123456789"
)

// oauthApp is an app that has registered.
type oauthApp struct {
	*testing.T
	at, id string
}

// newOAuthApp registers an app with a redirect URI.
func newOAuthApp(t *testing.T, at, name string, redirects ...string) *oauthApp {
	t.Helper()
	app := &oauthApp{T: t, at: at}
	status, a := app.post("/oauth/register", `{"client_name":"`+name+`","redirect_uris":["`+
		strings.Join(redirects, `","`)+`"],"grant_types":["authorization_code","refresh_token"]}`)
	if status != 201 {
		t.Fatalf("registration: %d %v", status, a)
	}
	app.id = a["client_id"].(string)
	return app
}

// post sends a body and returns the JSON of the answer.
func (app *oauthApp) post(path, body string) (status int, answer map[string]any) {
	app.Helper()
	kind := "application/x-www-form-urlencoded"
	if strings.HasPrefix(body, "{") {
		kind = "application/json"
	}
	r, err := http.Post(app.at+path, kind, strings.NewReader(body))
	if err != nil {
		app.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(text, &answer); err != nil || r.Header.Get("Cache-Control") != "no-store" {
		app.Errorf("%s answers %d %v %q", path, r.StatusCode, r.Header, text)
	}
	return r.StatusCode, answer
}

// with returns values that are changed by pairs of name and value; "" removes one.
func with(values url.Values, changes ...string) url.Values {
	out := maps.Clone(values)
	for i := 0; i < len(changes); i += 2 {
		if out[changes[i]] = []string{changes[i+1]}; changes[i+1] == "" {
			delete(out, changes[i])
		}
	}
	return out
}

// request returns the parameters of a request for a key.
func (app *oauthApp) request() url.Values {
	sum := sha256.Sum256([]byte(oauthVerifier))
	return url.Values{"response_type": {"code"}, "client_id": {app.id}, "redirect_uri": {oauthBack},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"state": {"a state"}, "scope": {"read send"}, "resource": {app.at + "/mcp"}}
}

// exchange returns the parameters with which the app gets the key of a code.
func (app *oauthApp) exchange(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "client_id": {app.id},
		"redirect_uri": {oauthBack}, "code_verifier": {oauthVerifier}, "resource": {app.at + "/mcp"}}
}

var requestField = regexp.MustCompile(`name="request" value="([^"]+)"`)

// consent opens the page of a request and returns its form.
func (app *oauthApp) consent(b *browser, request url.Values) url.Values {
	app.Helper()
	a := b.send("GET", "/oauth/authorize?"+request.Encode(), nil)
	sealed, token := requestField.FindStringSubmatch(a.body), tokenField.FindStringSubmatch(a.body)
	if a.status != 200 || sealed == nil || token == nil {
		app.Fatalf("the page of the request: %d %v\n%s", a.status, a.header, a.body)
	}
	return url.Values{"request": {html.UnescapeString(sealed[1])}, "csrfmiddlewaretoken": {token[1]},
		"right": {"read", "send"}, "lifetime": {"86400"}, "answer": {"allow"}, "password": {browserPassword}}
}

// back returns the query with which the browser is sent back to the app.
func (app *oauthApp) back(a webAnswer) url.Values {
	app.Helper()
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != 302 || !strings.HasPrefix(u.String(), oauthBack+"?") {
		app.Fatalf("the browser is not sent back: %d %v\n%s", a.status, a.header, a.body)
	}
	return u.Query()
}

// allow has the user allow a key and returns the code.
func (app *oauthApp) allow(b *browser) string {
	app.Helper()
	q := app.back(b.send("POST", "/oauth/authorize", app.consent(b, app.request())))
	if q.Get("state") != "a state" || q.Get("iss") != app.at || q.Get("code") == "" {
		app.Fatalf("the app gets %v", q)
	}
	return q.Get("code")
}

// agentStatus returns the status of a request to /mcp with a key.
func agentStatus(t *testing.T, at, key string) int {
	t.Helper()
	r, _ := http.NewRequest("POST", at+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header.Set("Authorization", "Bearer "+key)
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	return a.StatusCode
}

// An app finds the server by the metadata, and gets a key with the rights that the user has left and with an expiry.
// The key works until the app or the user revokes it.
func TestOAuth(t *testing.T) {
	_, at, _ := browserDemo(t, "--oauth-registration")
	r, err := http.Post(at+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	resource := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(r.Header.Get("WWW-Authenticate"))
	if r.StatusCode != 401 || resource == nil {
		t.Fatalf("without a key: %d %v", r.StatusCode, r.Header)
	}
	visitor := newBrowser(t, at)
	a := visitor.send("GET", strings.TrimPrefix(resource[1], at), nil)
	if a.json["resource"] != at+"/mcp" || a.json["authorization_servers"].([]any)[0] != at {
		t.Errorf("the resource: %s", a.body)
	}
	a = visitor.send("GET", "/.well-known/oauth-authorization-server", nil)
	if a.json["issuer"] != at || a.json["token_endpoint"] != at+"/oauth/token" ||
		a.json["registration_endpoint"] != at+"/oauth/register" {
		t.Errorf("the server: %s", a.body)
	}
	app := newOAuthApp(t, at, "Helper <b>", "http://localhost/other", "http://127.0.0.1/back")

	// A browser without a session logs in first, and then sees the request.
	a = visitor.send("GET", "/oauth/authorize?"+app.request().Encode(), nil)
	if to := a.header.Get("Location"); a.status != 302 || to != "/login/?next=%2Foauth%2Fauthorize" {
		t.Fatalf("without a session: %d %s", a.status, to)
	}
	if a = visitor.tryLogIn("ann@example.org", browserPassword, "/oauth/authorize"); a.status != 302 {
		t.Fatalf("the login: %d", a.status)
	}
	a = visitor.send("GET", a.header.Get("Location"), nil)
	policy := a.header.Get("Content-Security-Policy")
	if !strings.Contains(a.body, "Helper &lt;b&gt;") || !strings.Contains(policy, "http://127.0.0.1:4711") ||
		!strings.Contains(policy, "frame-ancestors 'none'") {
		t.Fatalf("the page of the request: %d %s\n%s", a.status, policy, a.body)
	}
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	q := app.back(b.send("POST", "/oauth/authorize", with(app.consent(b, app.request()), "right", "read")))
	status, key := app.post("/oauth/token", app.exchange(q.Get("code")).Encode())
	if status != 200 || key["scope"] != "read" || key["token_type"] != "Bearer" ||
		key["expires_in"] != float64(86400) {
		t.Fatalf("the key: %d %v", status, key)
	}
	secret := key["access_token"].(string)
	if s := agentStatus(t, at, secret); s != 200 {
		t.Errorf("the key is refused with %d", s)
	}
	list := b.must("GET", "users/me/api_keys", nil)["api_keys"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["label"] != "Helper <b>" ||
		list[0].(map[string]any)["scope"].(map[string]any)["rights"].([]any)[0] != "read" {
		t.Errorf("the user's keys: %v", list)
	}
	for range 2 { // the second time the key is not valid, which is no error
		if status, _ := app.post("/oauth/revoke", url.Values{"token": {secret}}.Encode()); status != 200 {
			t.Errorf("revocation: %d", status)
		}
		if s := agentStatus(t, at, secret); s != 401 {
			t.Errorf("the revoked key gets %d", s)
		}
	}
}

// Requests that must not become a key. Without a known app and a registered redirect URI, the browser is not sent
// anywhere.
func TestOAuthRefusals(t *testing.T) {
	_, at, _ := browserDemo(t, "--oauth-registration")
	app, other := newOAuthApp(t, at, "One", oauthBack), newOAuthApp(t, at, "Other", oauthBack)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	for _, c := range [][2]string{{"client_id", ""}, {"client_id", "x"}, {"client_id", app.id[1:]},
		{"redirect_uri", ""}, {"redirect_uri", oauthBack + "/"}, {"redirect_uri", "https://evil.example/back"},
		{"redirect_uri", "http://127.0.0.1@evil.example/back"}, {"redirect_uri", oauthBack + "#x"},
		{"redirect_uri", "javascript:alert(1)"}} {
		a := b.send("GET", "/oauth/authorize?"+with(app.request(), c[0], c[1]).Encode(), nil)
		if a.status != 400 || a.header.Get("Location") != "" || requestField.MatchString(a.body) {
			t.Errorf("%s %q: %d %v", c[0], c[1], a.status, a.header)
		}
	}
	for _, c := range [][3]string{{"response_type", "token", "unsupported_response_type"},
		{"code_challenge_method", "plain", "invalid_request"}, {"code_challenge_method", "", "invalid_request"},
		{"code_challenge", "", "invalid_request"}, {"code_challenge", "short", "invalid_request"},
		{"scope", "manage", "invalid_scope"}, {"scope", "owner", "invalid_scope"},
		{"resource", "https://other.example/mcp", "invalid_target"},
		{"state", strings.Repeat("x", 1001), "invalid_request"}} {
		q := app.back(b.send("GET", "/oauth/authorize?"+with(app.request(), c[0], c[1]).Encode(), nil))
		if q.Get("error") != c[2] || q.Get("code") != "" {
			t.Errorf("%s %q: %v", c[0], c[1], q)
		}
	}

	form := app.consent(b, app.request())
	q := app.back(b.send("POST", "/oauth/authorize", with(form, "answer", "refuse")))
	if q.Get("error") != "access_denied" {
		t.Errorf("after a refusal: %v", q)
	}
	stranger := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	theirs := app.consent(stranger, app.request())
	for what, f := range map[string]url.Values{
		"a form without token":       with(form, "csrfmiddlewaretoken", ""),
		"a form with a wrong token":  with(form, "csrfmiddlewaretoken", theirs.Get("csrfmiddlewaretoken")),
		"a form of another session":  with(form, "request", theirs.Get("request")),
		"a changed request":          with(form, "request", form.Get("request")[1:]),
		"no right":                   with(form, "right", ""),
		"a right that was not asked": with(form, "right", "manage"),
		"no lifetime":                with(form, "lifetime", "0"),
		"a wrong password":           with(form, "password", "wrong"),
	} {
		if a := b.send("POST", "/oauth/authorize", f); a.header.Get("Location") != "" {
			t.Errorf("%s: %d %s", what, a.status, a.header.Get("Location"))
		}
	}

	code := app.allow(b)
	for _, c := range [][3]string{{"client_id", other.id, "invalid_grant"}, {"client_id", "x", "invalid_client"},
		{"redirect_uri", "http://127.0.0.1:4712/back", "invalid_grant"}, {"code", code[1:], "invalid_grant"},
		{"code_verifier", oauthVerifier + "x", "invalid_grant"}, {"code_verifier", "", "invalid_request"},
		{"grant_type", "refresh_token", "unsupported_grant_type"}, {"resource", at, "invalid_target"},
		{"code", form.Get("request"), "invalid_grant"}} {
		status, a := app.post("/oauth/token", with(app.exchange(code), c[0], c[1]).Encode())
		if a["error"] != c[2] || status < 400 || a["access_token"] != nil {
			t.Errorf("%s %q: %d %v", c[0], c[1], status, a)
		}
	}
	_, first := app.post("/oauth/token", app.exchange(code).Encode())
	if s := agentStatus(t, at, first["access_token"].(string)); s != 200 {
		t.Errorf("the key is refused with %d", s)
	}
	if status, a := app.post("/oauth/token", app.exchange(code).Encode()); status != 400 ||
		a["error"] != "invalid_grant" {
		t.Errorf("the same code again: %d %v", status, a)
	}
	if s := agentStatus(t, at, first["access_token"].(string)); s != 401 {
		t.Errorf("after its code was used twice, the key gets %d", s)
	}
}

// Apps register only if the operator allows it, with addresses that lead to them.
func TestOAuthRegistration(t *testing.T) {
	_, closed, _ := browserDemo(t)
	app := &oauthApp{T: t, at: closed}
	if status, a := app.post("/oauth/register", `{"redirect_uris":["`+oauthBack+`"]}`); status != 403 {
		t.Errorf("without the setting: %d %v", status, a)
	}
	if m := newBrowser(t, closed).send("GET", "/.well-known/oauth-authorization-server", nil); m.status != 200 ||
		m.json["registration_endpoint"] != nil {
		t.Errorf("the metadata: %s", m.body)
	}
	_, at, _ := browserDemo(t, "--oauth-registration")
	app.at = at
	for _, body := range []string{`{}`, `{"redirect_uris":[]}`, `{"redirect_uris":["/back"]}`, `{x`,
		`{"redirect_uris":"x"}`,
		`{"redirect_uris":["http://chat.example/back"]}`, `{"redirect_uris":["javascript:alert(1)"]}`,
		`{"redirect_uris":["https://user@chat.example/"]}`, `{"redirect_uris":["https://chat.example/#x"]}`,
		`{"redirect_uris":["https://chat.example/` + strings.Repeat("x", 300) + `"]}`,
		`{"redirect_uris":["` + strings.Repeat(oauthBack+`","`, 5) + oauthBack + `"]}`,
		`{"redirect_uris":["` + oauthBack + `"],"response_types":["token"]}`,
		`{"redirect_uris":["` + oauthBack + `"],"client_name":"` + strings.Repeat("x", 20_000) + `"}`} {
		if status, a := app.post("/oauth/register", body); status != 400 || a["error"] == nil || a["client_id"] != nil {
			t.Errorf("%.60s: %d %v", body, status, a)
		}
	}
	status, a := app.post("/oauth/register", `{"redirect_uris":["https://chat.example/back"],"client_name":"\u202e a"}`)
	if status != 201 || a["client_name"] != "a" || a["token_endpoint_auth_method"] != "none" {
		t.Errorf("an app on the web: %d %v", status, a)
	}
}

package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/wire/signon/signontest"
)

// authConfig writes a configuration with a provider and returns its path. more is further lines of TOML.
func authConfig(t *testing.T, p *signontest.Provider, more string) string {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "secret"), p.ClientSecret+"\n")
	file := filepath.Join(folder, "auth.toml")
	writeFile(t, file, fmt.Sprintf("[[provider]]\nname = \"company\"\ntype = \"oidc\"\n"+
		"display_name = \"The Company\"\nissuer = %q\nclient_id = %q\nclient_secret_file = \"secret\"\n"+
		"allow_insecure = true\n%s", p.URL, p.ClientID, more))
	return file
}

const companyLogin = "/accounts/login/social/oidc/company/"

// toProvider opens a page that redirects to the provider, and returns the path to which the provider redirects.
func (b *browser) toProvider(path string) string {
	b.Helper()
	a := b.send("GET", path, nil)
	if a.status != 302 {
		b.Fatalf("GET %s: %d\n%s", path, a.status, a.body)
	}
	return b.fromProvider(a.header.Get("Location"))
}

// fromProvider opens the provider's page and returns the path to which it redirects.
func (b *browser) fromProvider(address string) string {
	b.Helper()
	q, err := http.NewRequest("GET", address, nil)
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		b.Fatal(err)
	}
	r.Body.Close()
	to, err := r.Location()
	if err != nil || to.Path != "/complete/oidc/" {
		b.Fatalf("the provider answers %d, %v", r.StatusCode, r.Header)
	}
	return to.RequestURI()
}

// atCompany logs in at the provider and returns the last answer.
func (b *browser) atCompany() webAnswer {
	b.Helper()
	return b.send("GET", b.toProvider(companyLogin), nil)
}

// userID returns the id of the user that is logged in, 0 if there is none.
func (b *browser) userID() int {
	b.Helper()
	a := b.send("GET", "/json/users/me", nil)
	id, _ := a.json["user_id"].(float64)
	return int(id)
}

// The login page, server_settings and the registration name the providers.
func TestProvidersAreShown(t *testing.T) {
	p := signontest.New(t)
	picture, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "icon.png")
	writeFile(t, file, string(picture))
	_, at, _ := browserDemo(t, "--auth-config", authConfig(t, p, "icon_file = \""+file+"\"\n"))
	b := newBrowser(t, at)
	button := regexp.MustCompile(`<a class="provider" href="` + regexp.QuoteMeta(companyLogin+"?next=%2Fx") +
		`"><img src="(/accounts/login/icon/oidc/company/[0-9a-f]{8})" alt=""> Log in with The Company</a>`)
	page := b.send("GET", "/login/?next=%2Fx", nil).body
	icon := button.FindStringSubmatch(page)
	if icon == nil {
		t.Fatalf("the login page has no link to the provider:\n%s", page)
	}
	if a := b.send("GET", icon[1], nil); a.body != string(picture) || a.header.Get("Content-Type") != "image/png" {
		t.Errorf("the picture of the button: %d %v", a.status, a.header)
	}
	a := b.send("GET", "/api/v1/server_settings", nil).json
	methods, _ := a["authentication_methods"].(map[string]any)
	if methods["openid connect"] != true || methods["github"] != false || methods["password"] != true {
		t.Errorf("methods %v", methods)
	}
	want := "[map[display_icon:" + at + icon[1] +
		" display_name:The Company login_url:/accounts/login/social/oidc/company name:oidc:company " +
		"signup_url:/accounts/register/social/oidc/company]]"
	if got := fmt.Sprint(a["external_authentication_methods"]); got != want {
		t.Errorf("external methods %s, want %s", got, want)
	}
	olive := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	state := olive.must("POST", "register", url.Values{"fetch_event_types": {`["realm"]`}})
	if got := fmt.Sprint(state["realm_authentication_methods"]); got !=
		"map[Email:map[available:true enabled:true] OpenID Connect:map[available:true enabled:true]]" {
		t.Errorf("the registration has the methods %s", got)
	}
	queue := fmt.Sprint(state["queue_id"])
	olive.must("PATCH", "realm", url.Values{"authentication_methods": {`{"Email":false,"OpenID Connect":true}`}})
	events := olive.send("GET", "/json/events?dont_block=true&last_event_id=-1&queue_id="+queue, nil).body
	if !strings.Contains(events, `"authentication_methods":{"Email":{"available":true,"enabled":false},`+
		`"OpenID Connect":{"available":true,"enabled":true}}`) {
		t.Errorf("the event of switched off passwords: %s", events)
	}
	page = newBrowser(t, at).send("GET", "/login/", nil).body
	if strings.Contains(page, `type="password"`) || !strings.Contains(page, companyLogin) {
		t.Errorf("without passwords the login page is\n%s", page)
	}
	for _, wrong := range []string{"/accounts/login/social/oidc/other/", "/accounts/login/social/github/company/",
		"/accounts/login/social/oidc/"} {
		if a := b.send("GET", wrong, nil); a.status != 404 {
			t.Errorf("%s: %d", wrong, a.status)
		}
	}
}

// A person is the same account at every login, whatever their address and name are now. New accounts follow the rules
// of the organization.
func TestProviderLogin(t *testing.T) {
	p := signontest.New(t)
	_, at, _ := browserDemo(t, "--auth-config", authConfig(t, p, ""))
	olive := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	jane := signontest.Person{Subject: "jane", Email: "jane@example.net", Name: "Jane Doe", Verified: true}
	p.LogIn(jane)
	if a := newBrowser(t, at).atCompany(); a.status != 403 || !strings.Contains(a.body, "You need an invitation") {
		t.Errorf("a stranger where invitations are needed: %d\n%s", a.status, a.body)
	}
	olive.must("PATCH", "realm", url.Values{"invite_required": {"false"}})
	refused := func(who signontest.Person, status int, want string) {
		t.Helper()
		p.LogIn(who)
		b := newBrowser(t, at)
		if a := b.atCompany(); a.status != status || !strings.Contains(a.body, want) || b.loggedIn() {
			t.Errorf("%+v: %d, want %d with %q\n%s", who, a.status, status, want, a.body)
		}
	}
	for _, verified := range []any{false, nil, "no"} {
		refused(signontest.Person{Subject: "eve", Email: "eve@example.net", Name: "Eve", Verified: verified}, 400,
			"has not confirmed your email address")
		refused(signontest.Person{Subject: "eve", Email: "ann@example.org", Name: "Eve", Verified: verified}, 400,
			"has not confirmed your email address")
	}
	eve := signontest.Person{Subject: "eve", Email: "x@mailinator.com", Name: "Eve", Verified: true}
	refused(eve, 400, "Disposable")
	refused(signontest.Person{Subject: "eve", Email: "not an address", Name: "Eve", Verified: true}, 400, "valid email")
	p.LogIn(jane)
	first := newBrowser(t, at)
	a := first.send("GET", first.toProvider(companyLogin+"?next=%2F%23inbox"), nil)
	id := first.userID()
	if a.status != 302 || a.header.Get("Location") != "/#inbox" || id == 0 || first.cookies["parley_login"] != "" {
		t.Fatalf("the sign-up: %d %v\n%s", a.status, a.header, a.body)
	}
	me := first.must("GET", "users/me", nil)
	if me["full_name"] != "Jane Doe" || me["delivery_email"] != "jane@example.net" || me["role"] != 400.0 {
		t.Errorf("the account: %v", me)
	}
	if a := first.call("POST", "fetch_api_key", nil); a.json["api_key"] == nil {
		t.Errorf("the API key after a recent login: %d %s", a.status, a.body)
	}
	jane.Email, jane.Name, jane.Verified = "changed@example.net", "Jane Smith", false
	p.LogIn(jane)
	again := newBrowser(t, at)
	if a := again.atCompany(); again.userID() != id {
		t.Errorf("with another address: user %d, want %d: %d\n%s", again.userID(), id, a.status, a.body)
	}
	// another person with the address of the account: it needs the account's password, and there is none
	p.LogIn(signontest.Person{Subject: "mallory", Email: "jane@example.net", Name: "Jane Doe", Verified: true})
	mallory := newBrowser(t, at)
	if a := mallory.atCompany(); a.header.Get("Location") != "/accounts/login/finish/" || mallory.loggedIn() {
		t.Errorf("another person with the same address: %d %v", a.status, a.header)
	}
	const finish = "/accounts/login/finish/"
	if a := mallory.submit(finish, finish, url.Values{"password": {""}}); a.status != 401 || mallory.loggedIn() {
		t.Errorf("an account without a password is connected: %d\n%s", a.status, a.body)
	}
	olive.must("DELETE", fmt.Sprintf("users/%d", id), nil)
	if first.loggedIn() || again.loggedIn() {
		t.Error("the sessions of a deactivated account go on")
	}
	refused(jane, 401, "Account is deactivated")
}

// An account with the address is connected after its password, once.
func TestConnectByPassword(t *testing.T) {
	p := signontest.New(t)
	_, at, _ := browserDemo(t, "--auth-config", authConfig(t, p, ""))
	ann := newBrowser(t, at).logIn("ann@example.org", browserPassword).userID()
	p.LogIn(signontest.Person{Subject: "ann", Email: "Ann@Example.org", Name: "Ann", Verified: true})
	b := newBrowser(t, at)
	const page = "/accounts/login/finish/"
	if a := b.send("GET", page, nil); a.status != 302 || a.header.Get("Location") != "/login/" {
		t.Errorf("the page without a login at the provider: %d", a.status)
	}
	if a := b.atCompany(); a.status != 302 || a.header.Get("Location") != page || b.loggedIn() {
		t.Fatalf("an account with the address: %d %v\n%s", a.status, a.header, a.body)
	}
	stolen := b.cookies["parley_identity"]
	if len(stolen) < 100 || strings.Contains(stolen, "ann") || !b.set["parley_identity"].HttpOnly {
		t.Errorf("the cookie: %v", b.set["parley_identity"])
	}
	if a := b.submit(page, page, url.Values{"password": {"wrong"}}); a.status != 401 || b.loggedIn() ||
		!strings.Contains(a.body, "password is incorrect") {
		t.Errorf("a wrong password: %d\n%s", a.status, a.body)
	}
	if a := b.send("POST", page, url.Values{"password": {browserPassword}}); a.status != 403 || b.loggedIn() {
		t.Errorf("without a CSRF token: %d", a.status)
	}
	if a := b.submit(page, page, url.Values{"password": {browserPassword}}); a.status != 302 || b.userID() != ann ||
		b.cookies["parley_identity"] != "" {
		t.Fatalf("the right password: %d\n%s", a.status, a.body)
	}
	next := newBrowser(t, at)
	if next.atCompany(); next.userID() != ann {
		t.Errorf("the next login is user %d, want %d", next.userID(), ann)
	}
	changed := newBrowser(t, at)
	changed.cookies["parley_identity"] = stolen[:len(stolen)-4] + "AAAA"
	if a := changed.send("GET", page, nil); a.status != 302 {
		t.Errorf("a changed cookie: %d", a.status)
	}
	// The cookie of one purpose is not one of another.
	changed.cookies["parley_login"] = stolen
	if a := changed.send("GET", "/complete/oidc/?code=x&state=y", nil); a.status != 400 {
		t.Errorf("the cookie of an identity as that of a login: %d", a.status)
	}
}

// An answer of the provider fits only the browser that has started the login, and works once.
func TestProviderAnswerAttacks(t *testing.T) {
	p := signontest.New(t)
	_, at, _ := browserDemo(t, "--auth-config", authConfig(t, p, ""))
	newBrowser(t, at).logIn("olive@example.org", browserPassword).must("PATCH", "realm",
		url.Values{"invite_required": {"false"}})
	refused := func(what string, b *browser, path string) {
		t.Helper()
		if a := b.send("GET", path, nil); a.status != 400 || b.loggedIn() ||
			!strings.Contains(a.body, `href="/login/"`) {
			t.Errorf("%s: %d\n%s", what, a.status, a.body)
		}
	}
	victim, attacker := newBrowser(t, at), newBrowser(t, at)
	answer := attacker.toProvider(companyLogin)
	refused("login CSRF: the answer to another browser", victim, answer)
	victim.toProvider(companyLogin)
	refused("session fixation: the answer to a login of another browser", victim, answer)
	refused("an answer without a login", newBrowser(t, at), "/complete/oidc/?code=x&state=y")
	refused("no parameters", newBrowser(t, at), "/complete/oidc/")
	refused("another type", attacker.copied(), strings.Replace(answer, "/oidc/", "/github/", 1))
	replayed := attacker.copied()
	if a := attacker.send("GET", answer, nil); a.status != 302 || !attacker.loggedIn() {
		t.Fatalf("the login: %d\n%s", a.status, a.body)
	}
	refused("the same answer and cookie again", replayed, answer)
	for _, next := range []string{"https://evil.example", "//evil.example", `/\evil.example`, "javascript:alert(1)"} {
		b := newBrowser(t, at)
		a := b.send("GET", b.toProvider(companyLogin+"?next="+url.QueryEscape(next)), nil)
		if a.header.Get("Location") != "/" {
			t.Errorf("next=%s leads to %s", next, a.header.Get("Location"))
		}
	}
	p.Lie(signontest.Lies{Serve: func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(503)
		return true
	}})
	b := newBrowser(t, at)
	a := b.send("GET", companyLogin, nil) // its metadata is known
	to, _ := url.Parse(a.header.Get("Location"))
	answer = "/complete/oidc/?" + url.Values{"code": {"x"}, "iss": {p.URL}, "state": {to.Query().Get("state")}}.Encode()
	if a = b.send("GET", answer, nil); a.status != 400 || !strings.Contains(a.body, "try again later") {
		t.Errorf("a provider that fails: %d\n%s", a.status, a.body)
	}
}

// A login at a provider for a phone app ends with the encrypted key, for a desktop app with a token.
func TestProviderAppLogins(t *testing.T) {
	p := signontest.New(t)
	_, at, _ := browserDemo(t, "--auth-config", authConfig(t, p, ""))
	newBrowser(t, at).logIn("olive@example.org", browserPassword).must("PATCH", "realm",
		url.Values{"invite_required": {"false"}})
	secret := strings.Repeat("5a", 32)
	b := newBrowser(t, at)
	if a := b.send("GET", companyLogin+"?mobile_flow_otp=5a", nil); a.status != 400 {
		t.Errorf("a wrong secret: %d", a.status)
	}
	for range 2 { // the sign-up, and a later login
		a := b.send("GET", b.toProvider(companyLogin+"?mobile_flow_otp="+secret), nil)
		to, err := url.Parse(a.header.Get("Location"))
		if err != nil || a.status != 302 || to.Scheme != "zulip" || to.Host != "login" ||
			b.cookies["sessionid"] != "" || to.Query().Get("realm") != at {
			t.Fatalf("the phone app: %d %v\n%s", a.status, a.header, a.body)
		}
		key, err := hex.DecodeString(to.Query().Get("otp_encrypted_api_key"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range key {
			key[i] ^= 0x5a
		}
		jane := &account{url: at, email: to.Query().Get("email"), key: string(key)}
		jane.must(t, "GET", "users/me", nil)
	}
	a := b.send("GET", b.toProvider(companyLogin+"?desktop_flow_otp="+secret), nil)
	if text := regexp.MustCompile(`name="token" readonly value="([0-9a-f]+)"`).FindStringSubmatch(a.body); a.status !=
		200 || text == nil || b.cookies["sessionid"] != "" {
		t.Errorf("the desktop app: %d\n%s", a.status, a.body)
	}
}

// Users connect and disconnect logins on a page, which asks for the password if the login was long ago.
func TestIdentitiesPage(t *testing.T) {
	p := signontest.New(t)
	_, at, _ := browserDemo(t, "--auth-config", authConfig(t, p, ""))
	ann := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	const page = "/accounts/identities/"
	if a := newBrowser(t, at).send("GET", page, nil); a.status != 302 {
		t.Errorf("without a session: %d", a.status)
	}
	p.LogIn(signontest.Person{Subject: "a", Email: "other@example.net", Name: "Ann", Verified: false})
	a := ann.submit(page, page, url.Values{"connect": {"oidc/company"}})
	if a.status != 302 {
		t.Fatalf("connecting: %d\n%s", a.status, a.body)
	}
	answer := ann.fromProvider(a.header.Get("Location"))
	if a := newBrowser(t, at).logIn("olive@example.org", browserPassword).send("GET", answer, nil); a.status != 400 {
		t.Errorf("the answer in the session of another user: %d", a.status)
	}
	if a := ann.send("GET", answer, nil); a.status != 302 || a.header.Get("Location") != page {
		t.Fatalf("the answer: %d\n%s", a.status, a.body)
	}
	if body := ann.send("GET", page, nil).body; !strings.Contains(body, "The Company") ||
		!strings.Contains(body, `name="subject" value="a"`) {
		t.Errorf("the page:\n%s", body)
	}
	b := newBrowser(t, at)
	if b.atCompany(); b.userID() != ann.userID() {
		t.Error("the connected login is not Ann's")
	}
	olive := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	gone := url.Values{"issuer": {p.URL}, "subject": {"a"}}
	if a := olive.submit(page, page, gone); a.status != 404 {
		t.Errorf("another user disconnects the login: %d", a.status)
	}
	a = olive.submit(page, page, url.Values{"connect": {"oidc/company"}})
	if a := olive.send("GET", olive.fromProvider(a.header.Get("Location")), nil); a.status != 400 ||
		!strings.Contains(a.body, "already connected with another account") {
		t.Errorf("one login for two accounts: %d\n%s", a.status, a.body)
	}
	if a := ann.submit(page, page, gone); a.status != 302 {
		t.Errorf("disconnecting: %d\n%s", a.status, a.body)
	}
	if b = newBrowser(t, at); b.atCompany().status != 400 || b.loggedIn() {
		t.Error("a login that was disconnected still works")
	}
}

// An invitation admits a person at a provider to an organization that is closed otherwise.
func TestProviderInvitation(t *testing.T) {
	p := signontest.New(t)
	_, at, _ := browserDemo(t, "--auth-config", authConfig(t, p, ""))
	olive := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	invited := olive.must("POST", "invites/multiuse", url.Values{"invite_as": {"600"}})
	link, err := url.Parse(fmt.Sprint(invited["invite_link"]))
	if err != nil {
		t.Fatal(err)
	}
	b := newBrowser(t, at)
	to := regexp.MustCompile(`class="provider" href="([^"]+)"`).FindStringSubmatch(b.send("GET", link.Path, nil).body)
	if to == nil {
		t.Fatal("the page of the invitation has no link to the provider")
	}
	begin := strings.ReplaceAll(to[1], "&amp;", "&")
	if a := b.send("GET", b.toProvider(begin), nil); a.status != 302 ||
		b.must("GET", "users/me", nil)["role"] != 600.0 {
		t.Errorf("the invited person: %d\n%s", a.status, a.body)
	}
	p.LogIn(signontest.Person{Subject: "other", Email: "other@example.net", Name: "Other", Verified: true})
	wrong := newBrowser(t, at)
	if a := wrong.send("GET", wrong.toProvider(companyLogin+"?invite=wrong"), nil); a.status != 404 ||
		wrong.loggedIn() {
		t.Errorf("a wrong invitation: %d\n%s", a.status, a.body)
	}
	p.LogIn(signontest.Person{Subject: "odd", Email: "odd@example.net", Name: "Bad*Name", Verified: true})
	odd := newBrowser(t, at)
	if a := odd.send("GET", odd.toProvider(begin), nil); a.header.Get("Location") != "/accounts/login/finish/" {
		t.Fatalf("a name that is not allowed: %d\n%s", a.status, a.body)
	}
	const page = "/accounts/login/finish/"
	if a := odd.submit(page, page, url.Values{"full_name": {"*"}}); a.status != 400 {
		t.Errorf("another bad name: %d", a.status)
	}
	if a := odd.submit(page, page, url.Values{"full_name": {"Odd Person"}}); a.status != 302 || !odd.loggedIn() {
		t.Errorf("a good name: %d\n%s", a.status, a.body)
	}
}

// parley auth test says what works and what does not.
func TestAuthTest(t *testing.T) {
	p := signontest.New(t)
	file := authConfig(t, p, "")
	if out, code := runParley("auth", "test", "company", "--auth-config", file); code != 0 ||
		!strings.Contains(out, "publishes 1 keys") || !strings.Contains(out, "/complete/oidc/") {
		t.Errorf("code %d: %s", code, out)
	}
	if out, code := runParley("auth", "test", "other", "--auth-config", file); code == 0 ||
		!strings.Contains(out, "it has: company") {
		t.Errorf("an unknown name: code %d: %s", code, out)
	}
	p.Lie(signontest.Lies{Metadata: func(m map[string]any) { m["issuer"] = "https://other.example" }})
	if out, code := runParley("auth", "test", "company", "--auth-config", file); code == 0 ||
		!strings.Contains(out, "other.example") {
		t.Errorf("another issuer: code %d: %s", code, out)
	}
}

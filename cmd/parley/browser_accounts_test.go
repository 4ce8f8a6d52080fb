package main

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// outboxEmail returns the newest email to an address that contains a text.
func outboxEmail(t *testing.T, data, to, says string) (text string) {
	t.Helper()
	eventually(t, "the email to "+to+" is in the outbox", func() bool {
		list, _ := filepath.Glob(filepath.Join(data, "outbox", "*.eml"))
		for i := range list {
			b, err := os.ReadFile(list[len(list)-1-i])
			text = strings.NewReplacer("=\r\n", "", "\r\n ", " ", "=3D", "=").Replace(string(b))
			if err == nil && strings.Contains(text, "To: <"+to+">") && strings.Contains(text, says) {
				return true
			}
		}
		return false
	})
	return text
}

// emailCount returns the number of emails to an address.
func emailCount(data, to string) (n int) {
	list, _ := filepath.Glob(filepath.Join(data, "outbox", "*.eml"))
	for _, name := range list {
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), "To: <"+to+">") {
			n++
		}
	}
	return n
}

// linkIn returns the path of a link in an email.
func linkIn(t *testing.T, email, path string) string {
	t.Helper()
	link := regexp.MustCompile(`http://[^/\s]+(` + path + `[\w./-]+)`).FindStringSubmatch(email)
	if link == nil {
		t.Fatalf("no link to %s in\n%s", path, email)
	}
	return link[1]
}

const otherPassword = "yellow ferret 17 door"

// A forgotten password is replaced by a link that works once, ends sessions and keys, and tells nothing about accounts.
func TestPasswordReset(t *testing.T) {
	_, at, data := browserDemo(t)
	ann, visitor := newBrowser(t, at).logIn("ann@example.org", browserPassword), newBrowser(t, at)
	const page = "/accounts/password/reset/"
	for _, email := range []string{"nobody@example.org", "demo-bot@example.org", "ann@example.org"} {
		a := visitor.submit(page, page, url.Values{"email": {email}})
		if a.status != 302 || a.header.Get("Location") != "/accounts/password/reset/done/" {
			t.Errorf("reset for %s: %d %s", email, a.status, a.header.Get("Location"))
		}
	}
	link := linkIn(t, outboxEmail(t, data, "ann@example.org", "reset"), page)
	if emailCount(data, "nobody@example.org")+emailCount(data, "demo-bot@example.org") > 0 {
		t.Error("an address without an account got an email")
	}
	set := func(first, second string) webAnswer {
		t.Helper()
		return visitor.submit(link, link, url.Values{"new_password1": {first}, "new_password2": {second}})
	}
	for _, wrong := range []string{link + "x", link[:len(link)-1], strings.Replace(link, "reset/", "reset/1", 1)} {
		if a := visitor.send("GET", wrong, nil); a.status != 404 {
			t.Errorf("%s: %d", wrong, a.status)
		}
	}
	good := url.Values{"new_password1": {otherPassword}, "new_password2": {otherPassword}}
	if a := visitor.send("POST", link, good); a.status != 403 {
		t.Errorf("without a token: %d", a.status)
	}
	good.Set("csrfmiddlewaretoken", visitor.token(link))
	if a := visitor.send("POST", link, good, "Origin", "https://evil.example"); a.status != 403 {
		t.Errorf("from another origin: %d", a.status)
	}
	for _, x := range [][2]string{{otherPassword, otherPassword + "x"}, {"password", "password"}, {"", ""}} {
		if a := set(x[0], x[1]); a.status != 400 {
			t.Errorf("passwords %q: %d", x, a.status)
		}
	}
	if !ann.loggedIn() {
		t.Fatal("a refused reset ended a session")
	}
	if a := set(otherPassword, otherPassword); a.status != 302 ||
		a.header.Get("Location") != "/accounts/password/done/" {
		t.Fatalf("the reset: %d\n%s", a.status, a.body)
	}
	if ann.loggedIn() {
		t.Error("a session goes on after the reset")
	}
	if a := visitor.send("GET", link, nil); a.status != 404 {
		t.Errorf("the link a second time: %d", a.status)
	}
	if a := visitor.tryLogIn("ann@example.org", browserPassword, ""); a.status != 200 {
		t.Errorf("the old password: %d", a.status)
	}
	visitor.logIn("ann@example.org", otherPassword)
	outboxEmail(t, data, "ann@example.org", "was changed")
}

// Visitors sign up where the organization is open, with an address that its rules allow and that they have confirmed.
func TestSignUp(t *testing.T) {
	_, at, data := browserDemo(t)
	olive, b := newBrowser(t, at).logIn("olive@example.org", browserPassword), newBrowser(t, at)
	if a := b.send("GET", "/register/", nil); a.status != 403 {
		t.Errorf("sign-up where invitations are needed: %d", a.status)
	}
	if strings.Contains(b.send("GET", "/login/", nil).body, `href="/register/"`) {
		t.Error("the login page offers to sign up")
	}
	olive.must("PATCH", "realm", url.Values{"invite_required": {"false"}})
	if !strings.Contains(b.send("GET", "/login/", nil).body, `href="/register/"`) {
		t.Error("the login page does not offer to sign up")
	}
	ask := func(email string) webAnswer {
		t.Helper()
		return b.submit("/register/", "/register/", url.Values{"email": {email}})
	}
	for _, email := range []string{"x@mailinator.com", "x", ""} {
		if a := ask(email); a.status != 400 {
			t.Errorf("address %q: %d", email, a.status)
		}
	}
	fresh, known := ask("new@example.net"), ask("ann@example.org")
	hidden := func(a webAnswer) string { return tokenField.ReplaceAllString(a.body, "") }
	if fresh.status != 200 || known.status != 200 || hidden(fresh) != hidden(known) {
		t.Error("the answer tells which addresses have accounts")
	}
	if text := outboxEmail(t, data, "ann@example.org", "already"); strings.Contains(text, "do_confirm") {
		t.Error("a link to sign up was sent to an address with an account")
	}
	link := linkIn(t, outboxEmail(t, data, "new@example.net", "do_confirm"), "/accounts/do_confirm/")
	fill := func(name, password string) webAnswer {
		t.Helper()
		return b.submit(
			link,
			link,
			url.Values{"full_name": {name}, "password": {password}, "email": {"evil@example.net"}},
		)
	}
	for _, x := range [][2]string{{"", otherPassword}, {"New", "password"}, {"N*w", otherPassword}} {
		if a := fill(x[0], x[1]); a.status != 400 {
			t.Errorf("name and password %q: %d", x, a.status)
		}
	}
	olive.must("PATCH", "realm", url.Values{"emails_restricted_to_domains": {"true"}})
	olive.must("PATCH", "realm", url.Values{"invite_required": {"true"}})
	if a := b.send("GET", link, nil); a.status != 403 {
		t.Errorf("a link after the organization was closed: %d", a.status)
	}
	olive.must("PATCH", "realm", url.Values{"invite_required": {"false"}, "emails_restricted_to_domains": {"false"}})
	if a := fill("New Person", otherPassword); a.status != 302 || a.header.Get("Location") != "/" || !b.loggedIn() {
		t.Fatalf("the sign-up: %d\n%s", a.status, a.body)
	}
	if me := b.must("GET", "users/me", nil); me["email"] != "new@example.net" || me["role"] != 400.0 {
		t.Errorf("the new account: %v", me)
	}
	if a := newBrowser(t, at).send("GET", link, nil); a.status != 404 {
		t.Errorf("the link a second time: %d", a.status)
	}
}

// A link in an email about a login switches these emails off, also with one click in a mail program.
func TestUnsubscribe(t *testing.T) {
	_, at, data := browserDemo(t)
	ann := demoAccount(t, at, "ann@example.org")
	bo := demoAccount(t, at, "bo@example.org")
	me := bo.must(t, "GET", "users/me", nil)["user_id"]
	bo.must(t, "PATCH", "settings", url.Values{"email_notifications_batching_period_seconds": {"1"}})
	ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {fmt.Sprintf("[%v]", me)}, "content": {"hi"}})
	text := outboxEmail(t, data, "bo@example.org", "List-Unsubscribe:")
	if !strings.Contains(text, "List-Unsubscribe-Post: List-Unsubscribe=One-Click") {
		t.Errorf("the email has no header for one click:\n%s", text)
	}
	link := linkIn(t, text, "/accounts/unsubscribe/missed_messages/")
	enabled := func() any {
		queue := bo.must(t, "POST", "register", url.Values{"event_types": {`["user_settings"]`},
			"client_capabilities": {`{"user_settings_object":true,"notification_settings_null":true}`}})
		return queue["user_settings"].(map[string]any)["enable_offline_email_notifications"]
	}
	b := newBrowser(t, at)
	for _, wrong := range []string{link + "x", strings.Replace(link, "missed_messages", "login", 1),
		strings.Replace(link, "missed_messages", "other", 1)} {
		if a := b.send("POST", wrong, url.Values{"List-Unsubscribe": {"One-Click"}}); a.status != 404 {
			t.Errorf("%s: %d", wrong, a.status)
		}
	}
	if a := b.send("GET", link, nil); a.status != 200 || enabled() != true {
		t.Errorf("opening the link: %d, setting %v", a.status, enabled())
	}
	if a := b.send("POST", link, url.Values{}); a.status != 403 {
		t.Errorf("a form without a token: %d", a.status)
	}
	if a := b.send("POST", link, url.Values{"List-Unsubscribe": {"One-Click"}}); a.status != 200 || enabled() != false {
		t.Errorf("one click: %d, setting %v", a.status, enabled())
	}
	bo.must(t, "PATCH", "settings", url.Values{"enable_offline_email_notifications": {"true"}})
	if a := b.submit(link, link, nil); a.status != 200 || enabled() != false {
		t.Errorf("the button: %d, setting %v", a.status, enabled())
	}
}

// Users find their accounts by email, visitors create an organization only where the operator allows it, and its link
// works once.
func TestOrganizationPages(t *testing.T) {
	_, at, data := browserDemo(t, "--open-organizations")
	b := newBrowser(t, at)
	form := url.Values{"email": {"boss@example.net"}, "realm_name": {"Garden Club"}, "realm_subdomain": {"garden"}}
	for name, list := range map[string][]string{"email": {"x"}, "realm_name": {" "}, "realm_subdomain": {"-x", "",
		"www", "admin", "API", " mails ", "xn--80ak6aa92e", "XN--garden", "a.b"}} {
		for _, bad := range list {
			wrong := url.Values{"email": form["email"], "realm_name": form["realm_name"],
				"realm_subdomain": form["realm_subdomain"]}
			wrong.Set(name, bad)
			if a := b.submit("/new/", "/new/", wrong); a.status != 400 {
				t.Errorf("%s %q: %d", name, bad, a.status)
			}
		}
	}
	if a := b.submit("/new/", "/new/", form); a.status != 200 {
		t.Fatalf("the form: %d\n%s", a.status, a.body)
	}
	link := linkIn(t, outboxEmail(t, data, "boss@example.net", "new_organization"), "/accounts/new_organization/")
	a := b.submit(link, link, url.Values{"full_name": {"Boss"}, "password": {otherPassword}})
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != 302 || !strings.HasPrefix(to.Host, "garden.") ||
		!strings.Contains(a.header.Get("Content-Security-Policy"), "form-action") {
		t.Fatalf("the organization: %d %v\n%s", a.status, a.header, a.body)
	}
	owner := newBrowser(t, at)
	owner.host = to.Host
	if newBrowser(t, at).send("GET", to.Path, nil).status != 404 {
		t.Error("the login token of an organization is valid in another")
	}
	if a := owner.send("GET", to.Path, nil); a.status != 302 || !owner.loggedIn() {
		t.Fatalf("the login: %d\n%s", a.status, a.body)
	}
	if me := owner.must("GET", "users/me", nil); me["role"] != 100.0 {
		t.Errorf("the owner: %v", me)
	}
	if a := owner.copied().send("GET", to.Path, nil); a.status != 404 {
		t.Errorf("the login token a second time: %d", a.status)
	}
	if a := b.send("GET", link, nil); a.status != 400 {
		t.Errorf("the link a second time: %d", a.status)
	}
	if a := b.submit("/accounts/go/", "/accounts/go/", url.Values{"subdomain": {"garden"}}); a.status != 302 ||
		a.header.Get("Location") != "http://"+to.Host+"/login/" {
		t.Errorf("go: %d %s", a.status, a.header.Get("Location"))
	}
	if a := b.submit("/accounts/go/", "/accounts/go/", url.Values{"subdomain": {"none"}}); a.status != 404 {
		t.Errorf("go to a missing organization: %d", a.status)
	}
	b.submit("/accounts/find/", "/accounts/find/", url.Values{"emails": {"boss@example.net, nobody@example.net"}})
	outboxEmail(t, data, "boss@example.net", "http://"+to.Host+"/login/")
	if emailCount(data, "nobody@example.net") > 0 {
		t.Error("an address without an account got an email")
	}
}

// Browsers get a page at unknown addresses, programs JSON. Creating organizations is off by default.
func TestPageNotFound(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at)
	for _, x := range []struct{ path, accept, kind string }{
		{"/nowhere", "text/html,*/*", "text/html"}, {"/nowhere", "*/*", "application/json"},
		{"/api/v1/nowhere", "text/html", "application/json"}, {"/json/nowhere", "text/html", "application/json"},
		{"/new/", "text/html", "text/html"},
	} {
		a := b.send("GET", x.path, nil, "Accept", x.accept)
		if a.status != http.StatusNotFound || !strings.HasPrefix(a.header.Get("Content-Type"), x.kind) {
			t.Errorf("%s for %s: %d %s", x.path, x.accept, a.status, a.header.Get("Content-Type"))
		}
	}
}

// A login in a browser gives phone apps the API key and desktop apps a login token, each encrypted for the app.
func TestAppLogins(t *testing.T) {
	_, at, _ := browserDemo(t)
	secret := strings.Repeat("5a", 32)
	b := newBrowser(t, at)
	submit := func(field, secret, password string) webAnswer {
		t.Helper()
		page := "/login/?" + field + "=" + secret
		if body := b.send("GET", page, nil).body; !strings.Contains(body, `name="`+field+`" value="`+secret+`"`) {
			t.Errorf("%s is not in the form", field)
		}
		return b.submit(page, "/accounts/login/", url.Values{"username": {"ann@example.org"}, "password": {password},
			field: {secret}})
	}
	for _, wrong := range []string{"x", secret + "00", strings.Repeat("z", 64)} {
		if a := b.send("GET", "/login/?mobile_flow_otp="+wrong, nil); a.status != 400 {
			t.Errorf("secret %q: %d", wrong, a.status)
		}
	}
	if a := submit("mobile_flow_otp", secret, "wrong"); a.status != 200 || !strings.Contains(a.body, secret) ||
		!strings.Contains(a.header.Get("Content-Security-Policy"), "form-action 'self' zulip:;") {
		t.Errorf("a wrong password: %d %v", a.status, a.header)
	}
	a := submit("mobile_flow_otp", secret, browserPassword)
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != 302 || to.Scheme != "zulip" || to.Host != "login" || b.cookies["sessionid"] != "" {
		t.Fatalf("the phone app: %d %v", a.status, a.header)
	}
	key, err := hex.DecodeString(to.Query().Get("otp_encrypted_api_key"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range key {
		key[i] ^= 0x5a
	}
	ann := &account{url: at, email: to.Query().Get("email"), key: string(key)}
	ann.must(t, "GET", "users/me", nil)

	a = submit("desktop_flow_otp", secret, browserPassword)
	text := regexp.MustCompile(`name="token" readonly value="([0-9a-f]+)"`).FindStringSubmatch(a.body)
	if a.status != 200 || text == nil || b.cookies["sessionid"] != "" {
		t.Fatalf("the desktop app: %d\n%s", a.status, a.body)
	}
	sealed, _ := hex.DecodeString(text[1])
	raw, _ := hex.DecodeString(secret)
	block, _ := aes.NewCipher(raw)
	gcm, _ := cipher.NewGCM(block)
	token, err := gcm.Open(nil, sealed[:12], sealed[12:], nil)
	if err != nil {
		t.Fatal(err)
	}
	desktop, again := newBrowser(t, at), newBrowser(t, at)
	if a := desktop.send("GET", "/accounts/login/subdomain/"+string(token), nil); a.status != 302 ||
		!desktop.loggedIn() {
		t.Errorf("the login of the desktop app: %d\n%s", a.status, a.body)
	}
	if a := again.send("GET", "/accounts/login/subdomain/"+string(token), nil); a.status != 404 || again.loggedIn() {
		t.Errorf("the token a second time: %d", a.status)
	}
}

// A demo offers logins without a password. Forms that send emails are limited by address.
func TestDemoLoginAndFormLimits(t *testing.T) {
	data := t.TempDir()
	at := demo(t, data, "--rate-limit", "200").serving()
	b := newBrowser(t, at)
	a := b.submit("/login/", "/accounts/login/local/", url.Values{"direct_email": {"ann@example.org"}})
	if a.status != 302 || a.header.Get("Location") != "/" || !b.loggedIn() {
		t.Errorf("the demo login: %d\n%s", a.status, a.body)
	}
	if a := b.copied().submit("/login/?preview", "/accounts/login/local/",
		url.Values{"direct_email": {"demo-bot@example.org"}}); a.status != 401 {
		t.Errorf("the demo login of a bot: %d", a.status)
	}
	visitor := newBrowser(t, at)
	for i, want := range []int{302, 302, 429} {
		for _, email := range []string{"bo@example.org", "nobody@example.org"} {
			if a := visitor.submit("/accounts/password/reset/", "/accounts/password/reset/",
				url.Values{"email": {email}}); a.status != want {
				t.Errorf("reset %d for %s: %d", i+1, email, a.status)
			}
		}
	}
}

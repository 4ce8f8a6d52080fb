package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestLogin logs in with passwords. Accounts that do not exist, accounts without a password and wrong passwords
// get the same answer.
func TestLogin(t *testing.T) {
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
	at := p.serving()
	olive, visitor := demoAccount(t, at, "olive@example.org"), &account{url: at}
	const password = "correct horse battery staple"
	for email, name := range map[string]string{"Ida@example.org": "Ida", "gone@example.org": "Gone"} {
		a, err := olive.call("POST", "users", url.Values{"email": {email}, "password": {password}, "full_name": {name}})
		if err != nil {
			t.Fatal(err)
		}
		if name == "Gone" {
			if _, err := olive.call("DELETE", "users/"+fmt.Sprint(a["user_id"]), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	login := func(email, password string) url.Values {
		return url.Values{"username": {email}, "password": {password}}
	}
	a, err := visitor.call("POST", "fetch_api_key", login(" ida@EXAMPLE.org", password))
	if err != nil {
		t.Fatal(err)
	}
	ida := &account{url: at, email: "ida@example.org", key: a["api_key"].(string)}
	if me, err := ida.call("GET", "users/me", nil); err != nil || a["email"] != "Ida@example.org" ||
		me["user_id"] != a["user_id"] {
		t.Errorf("logged in as %v, but users/me is %v: %v", a, me, err)
	}
	for _, c := range []struct{ code, email, password string }{
		{"AUTHENTICATION_FAILED", "who@example.org", password},
		{"BAD_REQUEST", "@", password},
		{"BAD_REQUEST", "i da@example.org", password},
		{"AUTHENTICATION_FAILED", "ann@example.org", password},
		{"AUTHENTICATION_FAILED", "demo-bot@example.org", ""},
		{"AUTHENTICATION_FAILED", "ann@example.org", ""},
		{"USER_DEACTIVATED", "gone@example.org", password},
		{"AUTHENTICATION_FAILED", "gone@example.org", "another"},
		{"BAD_REQUEST", "ida", password},
	} {
		expectCode(t, visitor, c.code, "POST", "fetch_api_key", login(c.email, c.password))
	}
	expectCode(t, visitor, "AUTHENTICATION_FAILED", "POST", "dev_fetch_api_key",
		url.Values{"username": {"who@example.org"}})
	expectCode(t, visitor, "BAD_REQUEST", "POST", "dev_fetch_api_key", url.Values{"username": {"ann"}})
	// A correct password resets the failures. Wrong old passwords in a change of the password count as failed logins
	// too.
	for range 2 {
		for range 4 {
			expectCode(t, visitor, "AUTHENTICATION_FAILED", "POST", "fetch_api_key", login("Ida@example.org", "wrong"))
		}
		visitor.must(t, "POST", "fetch_api_key", login("ida@example.org", password))
	}
	change := func(old string) url.Values {
		return url.Values{"old_password": {old}, "new_password": {password}}
	}
	for range 4 {
		expectCode(t, ida, "BAD_REQUEST", "PATCH", "settings", change("wrong"))
	}
	// A new password ends every API key, the caller's too, and the answer has the next one; keep_api_keys prevents
	// it.
	kept := change(password)
	kept.Set("keep_api_keys", "true")
	if a := ida.must(t, "PATCH", "settings", kept); a["api_key"] != nil {
		t.Errorf("keys were kept, and the answer has %v", a["api_key"])
	}
	ida.must(t, "GET", "users/me", nil)
	next, _ := ida.must(t, "PATCH", "settings", change(password))["api_key"].(string)
	expectCode(t, ida, "UNAUTHORIZED", "GET", "users/me", nil)
	ida.key = next
	if a := visitor.must(t, "POST", "fetch_api_key", login("ida@example.org", password)); a["api_key"] != next {
		t.Errorf("the next login gets the key %v, the change of the password gave %v", a["api_key"], next)
	}
	for range 5 {
		expectCode(t, ida, "BAD_REQUEST", "PATCH", "settings", change("wrong"))
	}
	expectCode(t, ida, "RATE_LIMIT_HIT", "PATCH", "settings", change(password))
	expectCode(t, visitor, "RATE_LIMIT_HIT", "POST", "fetch_api_key", login("ida@example.org", password))
}

// Weak passwords are refused wherever a password is set over HTTP, each time with the protocol's text.
func TestWeakPasswordsAreRefused(t *testing.T) {
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo",
		"--login-limit", "0"))
	at := p.serving()
	olive, nobody := demoAccount(t, at, "olive@example.org"), &account{url: at}
	const strong = "correct horse battery staple"
	user := func(password string) url.Values {
		return url.Values{"email": {"ida@example.org"}, "password": {password}, "full_name": {"Ida"}}
	}
	link := olive.must(t, "POST", "invites/multiuse", nil)["invite_link"].(string)
	join := func(password string) (int, string) {
		path := strings.TrimPrefix(link, at)
		a := newBrowser(t, at).submit(path, path, url.Values{
			"email": {"jo@example.org"}, "password": {password}, "full_name": {"Jo"}})
		return a.status, a.body
	}
	weak := []string{"k8#Vq2!", "password1", "aaaaaaaaaaaa", strings.Repeat("k8#Vq2!zP4", 10) + "x"}
	for _, password := range weak {
		if a, err := olive.call("POST", "users", user(password)); err == nil ||
			a["msg"] != "The password is too weak." {
			t.Errorf("a new account with the password %q: %v", password, a)
		}
		if status, body := join(password); status != 400 || !strings.Contains(body, "The password is too weak.") {
			t.Errorf("joining with the password %q: %d %s", password, status, body)
		}
	}
	olive.must(t, "POST", "users", user(strong))
	if status, body := join(strong); status != 302 { // to the home page, logged in
		t.Errorf("joining with a strong password: %d %s", status, body)
	}
	a := nobody.must(t, "POST", "fetch_api_key", url.Values{"username": {"ida@example.org"}, "password": {strong}})
	ida := &account{url: at, email: "ida@example.org", key: a["api_key"].(string)}
	for _, password := range weak {
		change := url.Values{"old_password": {strong}, "new_password": {password}}
		if a, err := ida.call("PATCH", "settings", change); err == nil || a["msg"] != "New password is too weak!" {
			t.Errorf("the new password %q: %v", password, a)
		}
	}
	r := olive.must(t, "POST", "register", url.Values{"fetch_event_types": {`["realm"]`}})
	if r["password_min_length"] != 8.0 || r["password_min_guesses"] != 10000.0 || r["password_max_length"] != 100.0 {
		t.Errorf("limits in register: %v, %v, %v",
			r["password_min_length"], r["password_min_guesses"], r["password_max_length"])
	}
}

// TestConcurrentLoginsAreCounted tries one password many times before the first answer.
func TestConcurrentLoginsAreCounted(t *testing.T) {
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
	visitor := &account{url: p.serving()}
	codes := make(chan any, 20)
	for range cap(codes) {
		go func() {
			a, _ := visitor.call("POST", "fetch_api_key",
				url.Values{"username": {"ann@example.org"}, "password": {"wrong"}})
			codes <- a["code"]
		}()
	}
	count := map[any]int{}
	for range cap(codes) {
		count[<-codes]++
	}
	if count["AUTHENTICATION_FAILED"] != 5 || count["RATE_LIMIT_HIT"] != 15 {
		t.Errorf("twenty guesses at once are answered %v", count)
	}
}

// Clients that try keys, or passwords of many accounts, are soon limited, whatever the requests look like. Users with
// valid keys at the same IP address are not.
func TestWrongCredentialsLimitedByAddress(t *testing.T) {
	const limit = 5
	wrong := strings.Repeat("x", 32)
	for what, try := range map[string]struct {
		code string
		by   func(at string, n int) (map[string]any, error)
	}{
		"keys": {"UNAUTHORIZED", func(at string, n int) (map[string]any, error) {
			return (&account{url: at, email: "ann@example.org", key: wrong}).call("GET", "users/me", nil)
		}},
		"malformed keys": {"UNAUTHORIZED", func(at string, n int) (map[string]any, error) {
			return (&account{url: at, email: "ann@example.org", key: "x"}).call("POST", "messages", nil)
		}},
		"webhooks' keys": {"INVALID_API_KEY", func(at string, n int) (map[string]any, error) {
			return (&account{url: at}).call("POST", "external/slack_incoming?api_key="+wrong, nil)
		}},
		"files' keys": {"BAD_REQUEST", func(at string, n int) (map[string]any, error) {
			_, a, err := (&account{url: at}).request("GET", "/user_uploads/2/ab/none.txt?api_key="+wrong, "", nil)
			return a, err
		}},
		"passwords of many": {"AUTHENTICATION_FAILED", func(at string, n int) (map[string]any, error) {
			return (&account{url: at}).call("POST", "fetch_api_key",
				url.Values{"username": {fmt.Sprintf("n%d@example.org", n)}, "password": {"wrong"}})
		}},
	} {
		t.Run(what, func(t *testing.T) {
			p := demo(t, filepath.Join(t.TempDir(), "data"), "--anonymous-rate-limit", fmt.Sprint(limit))
			at := p.serving()
			ann := demoAccount(t, at, "ann@example.org") // a request without login, which counts
			began, tried := time.Now(), 0
			for ; tried < 3*limit; tried++ {
				a, _ := try.by(at, tried)
				if a["code"] == "RATE_LIMIT_HIT" {
					break
				}
				if a["code"] != try.code {
					t.Fatalf("attempt %d is answered %v", tried+1, a)
				}
			}
			if most := limit - 1 + int(time.Since(began)/(time.Minute/limit)) + 1; tried < limit-1 || tried > most {
				t.Errorf("%d attempts were accepted, with a limit of %d", tried, limit)
			}
			if _, err := ann.call("GET", "users/me", nil); err != nil {
				t.Errorf("a user with a valid key at the same address: %v", err)
			}
		})
	}
}

// The answer to a locked-out client says when it may log in again.
func TestLockoutSendsRetryAfter(t *testing.T) {
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
	at := p.serving()
	visitor := &account{url: at}
	login := url.Values{"username": {"ann@example.org"}, "password": {"wrong"}}
	for range 5 {
		expectCode(t, visitor, "AUTHENTICATION_FAILED", "POST", "fetch_api_key", login)
	}
	expectCode(t, visitor, "RATE_LIMIT_HIT", "POST", "fetch_api_key", login)
	r, err := http.PostForm(at+"/api/v1/fetch_api_key", login)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("the answer has no Retry-After header: %d, %v", r.StatusCode, r.Header)
	}
}

// A user gets a new email address after opening the link in the email to it. The link works once, and a changed link
// does not work.
func TestNewEmailAddressIsConfirmed(t *testing.T) {
	data := t.TempDir()
	p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo", "--rate-limit",
		"200"))
	at := p.serving()
	ann := demoAccount(t, at, "ann@example.org")
	ann.must(t, "PATCH", "settings", url.Values{"email": {"ann@example.org"}}) // unchanged
	ann.must(t, "PATCH", "settings", url.Values{"email": {"lee@example.net"}})
	if me := ann.must(t, "GET", "users/me", nil); me["email"] != "ann@example.org" {
		t.Fatalf("the address is %v before the link was opened", me["email"])
	}
	link := regexp.MustCompile(`http://\S+?/accounts/confirm_new_email/[\w.-]+`)
	emailTo := func(to string) (text string) {
		eventually(t, "the email to "+to+" is in the outbox", func() bool {
			list, _ := filepath.Glob(filepath.Join(data, "outbox", "*.eml"))
			for _, name := range list {
				if mail, err := os.ReadFile(name); err == nil && strings.Contains(string(mail), "To: <"+to+">") {
					text = strings.ReplaceAll(string(mail), "=\r\n", "")
					return true
				}
			}
			return false
		})
		return text
	}
	address := link.FindString(emailTo("lee@example.net"))
	open := func(address string) int {
		t.Helper()
		a, err := http.Get(at + address[strings.Index(address, "/accounts"):])
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	body := address[strings.LastIndex(address, "/")+1 : strings.LastIndex(address, ".")]
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	another := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(text), "lee@", "leo@", 1)))
	for _, wrong := range []string{strings.Replace(address, body, another, 1), address + "x", address[:len(address)-2],
		strings.Replace(address, body, "", 1)} {
		if status := open(wrong); status != 404 {
			t.Errorf("%s: %d", wrong, status)
		}
	}
	path := address[strings.Index(address, "/accounts"):]
	if status := open(address); status != 200 {
		t.Fatalf("the link: %d", status)
	}
	ann.must(t, "GET", "users/me", nil) // opening the link changes nothing: mail filters do it, too
	if a := newBrowser(t, at).submit(path, path, nil); a.status != 200 {
		t.Fatalf("the button of the page: %d\n%s", a.status, a.body)
	}
	expectCode(t, ann, "UNAUTHORIZED", "GET", "users/me", nil)
	ann.email = "lee@example.net"
	if me := ann.must(t, "GET", "users/me", nil); me["delivery_email"] != "lee@example.net" {
		t.Errorf("the address is %v", me["delivery_email"])
	}
	emailTo("ann@example.org") // the notice to the old address
	if status := open(address); status != 404 {
		t.Errorf("the link a second time: %d", status)
	}
	ann.must(t, "PATCH", "settings", url.Values{"email": {"lea@example.net"}})
	expectCode(t, ann, "RATE_LIMIT_HIT", "PATCH", "settings", url.Values{"email": {"leo@example.net"}})
}

// checkNoReset asks for the form with which users set a new password: it is not offered, and answers all addresses the
// same.
func checkNoReset(t *testing.T, b *browser) {
	t.Helper()
	const page, disabled = "/accounts/password/reset/", "Password authentication is disabled"
	if a := b.send("GET", page, nil); strings.Contains(a.body, `name="email"`) || !strings.Contains(a.body, disabled) {
		t.Errorf("%s: %d\n%s", page, a.status, a.body)
	}
	known := b.submit("/login/", page, url.Values{"email": {"ann@example.org"}})
	unknown := b.submit("/login/", page, url.Values{"email": {"none@example.org"}})
	if known.status != unknown.status || !strings.Contains(known.body, disabled) || !strings.Contains(unknown.body,
		disabled) {
		t.Errorf("the form to reset a password: %d and %d\n%s", known.status, unknown.status, known.body)
	}
}

// An owner switches passwords off where there is another way to log in. Then no password opens anything, the other ways
// work, and the logins that exist go on, also after a crash.
func TestPasswordsSwitchedOff(t *testing.T) {
	p, at, data := browserDemo(t)
	olive, ada := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ada@example.org")
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	off := url.Values{"authentication_methods": {`{"Email":false,"Dev":true}`}}
	expectCode(t, ada, "UNAUTHORIZED_PRINCIPAL", "PATCH", "realm", off)
	queue := b.must("POST", "register", url.Values{"event_types": {`["realm"]`}})["queue_id"].(string)
	for _, none := range []string{`{"Email":false}`, `{"Email":false,"Dev":false}`, `{"Email":false,"JWT":true}`} {
		expectCode(t, olive, "BAD_REQUEST", "PATCH", "realm", url.Values{"authentication_methods": {none}})
	}
	if a := olive.must(t, "PATCH", "realm", off); fmt.Sprint(a["authentication_methods"]) !=
		"map[Dev:true Email:false]" {
		t.Errorf("the answer to the change: %v", a)
	}
	events := b.must("GET", "events?queue_id="+queue+"&last_event_id=-1", nil)["events"].([]any)
	if e := fmt.Sprint(events); !strings.Contains(e,
		"data:map[authentication_methods:map[Email:map[available:true enabled:false]]]") {
		t.Errorf("the event of the change: %s", e)
	}
	p.kill()
	p = startProgram(t, parleyCommand("serve", "--data", data, "--listen", strings.TrimPrefix(at, "http://"), "--demo"))
	p.serving()

	visitor := &account{url: at}
	right := url.Values{"username": {"ann@example.org"}, "password": {browserPassword}}
	expectCode(t, visitor, "PASSWORD_AUTH_DISABLED", "POST", "fetch_api_key", right)
	settings := visitor.must(t, "GET", "server_settings", nil)
	methods := settings["authentication_methods"].(map[string]any)
	if settings["email_auth_enabled"] != false || methods["password"] != false || methods["email"] != false ||
		methods["dev"] != true {
		t.Errorf("server_settings: %v", settings)
	}
	register := b.must(
		"POST",
		"register",
		url.Values{"fetch_event_types": {`["realm"]`}, "event_types": {`["drafts"]`}},
	)
	if register["realm_password_auth_enabled"] != false || register["realm_email_auth_enabled"] != false {
		t.Error("register says that passwords are enabled")
	}
	b.must("POST", "fetch_api_key", nil)
	other := newBrowser(t, at)
	page := other.send("GET", "/login/", nil).body
	if strings.Contains(page, `id="login_form"`) || strings.Contains(page, "/accounts/password/reset/") ||
		!strings.Contains(page, "Password authentication is disabled") {
		t.Errorf("the login page:\n%s", page)
	}
	if a := other.tryLogIn("ann@example.org", browserPassword, ""); a.status != 200 || other.set["sessionid"] != nil {
		t.Errorf("a login with the right password: %d", a.status)
	}
	checkNoReset(t, other)
	if a := b.call("PATCH", "settings", url.Values{"old_password": {browserPassword}, "new_password": {
		"green walrus 77 tent"}}); a.status != 400 || a.json["msg"] != "Wrong password!" {
		t.Errorf("a new password: %d %s", a.status, a.body)
	}
	demo := url.Values{"direct_email": {"ann@example.org"}}
	if a := other.submit("/login/", "/accounts/login/local/", demo); a.status != 302 || !other.loggedIn() {
		t.Errorf("the other way to log in: %d", a.status)
	}
	olive.must(t, "PATCH", "realm", url.Values{"authentication_methods": {`{"Email":true}`}})
	visitor.must(t, "POST", "fetch_api_key", right)
}

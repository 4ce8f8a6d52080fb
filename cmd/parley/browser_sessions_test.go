package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const browserPassword = "purple otter 42 lamp"

// setDemoPasswords gives demo users a password.
func setDemoPasswords(t *testing.T, data string, emails ...string) {
	t.Helper()
	for _, email := range emails {
		if out, code := runParley("user", "password", "--data", data, "--email", email, "--password", browserPassword,
			"--keep-keys"); code != 0 {
			t.Fatalf("password of %s: %s", email, out)
		}
	}
}

// browserDemo starts a server with a demo organization, in which Ann and Olive have a password.
func browserDemo(t *testing.T, flags ...string) (p *program, at, data string) {
	t.Helper()
	data = t.TempDir()
	p = demo(t, data, append([]string{"--rate-limit", "0", "--anonymous-rate-limit", "0"}, flags...)...)
	at = p.serving()
	setDemoPasswords(t, data, "ann@example.org", "olive@example.org")
	return p, at, data
}

// A login sets new cookies with the protocol's names and flags, a logout ends the session, and wrong passwords show the
// form again.
func TestBrowserLogin(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at)
	for path, want := range map[string]string{"/": "/login/",
		"/accounts/sessions/": "/login/?next=%2Faccounts%2Fsessions%2F"} {
		if a := b.send("GET", path, nil); a.status != 302 || a.header.Get("Location") != want {
			t.Errorf("%s without a session: %d %s", path, a.status, a.header.Get("Location"))
		}
	}
	page := b.send("GET", "/login/", nil)
	for _, want := range []string{`<form id="login_form" method="post">`, `name="username"`,
		`name="password"`, `name="next" value="/"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the login page has no %s:\n%s", want, page.body)
		}
	}
	if a := b.tryLogIn("ann@example.org", "wrong", "/x"); a.status != 200 || b.set["sessionid"] != nil ||
		!strings.Contains(a.body, "Your username or password is incorrect") ||
		!strings.Contains(a.body, `value="ann@example.org"`) || !strings.Contains(a.body, `value="/x"`) {
		t.Errorf("a wrong password: %d\n%s", a.status, a.body)
	}
	before := b.cookies["csrftoken"]
	b.logIn("ann@example.org", browserPassword)
	for name, age := range map[string]int{"sessionid": 14 * 24 * 3600, "csrftoken": 365 * 24 * 3600} {
		if c := b.set[name]; c == nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" ||
			c.MaxAge != age || c.Secure || c.Domain != "" {
			t.Errorf("cookie %s: %+v", name, c)
		}
	}
	if b.cookies["csrftoken"] == before || !b.loggedIn() {
		t.Error("after the login the token is the old one, or nobody is logged in")
	}
	if a := b.send("GET", "/login/?next=/accounts/sessions/", nil); a.status != 302 ||
		a.header.Get("Location") != "/accounts/sessions/" {
		t.Errorf("the login page with a session: %d %s", a.status, a.header.Get("Location"))
	}
	if a := b.send("GET", "/", nil); a.status != 200 || !strings.Contains(a.body, "ann@example.org") ||
		!strings.Contains(a.body, `<form id="logout_form" method="post" action="/accounts/logout/">`) {
		t.Errorf("the start page: %d\n%s", a.status, a.body)
	}
	stolen := b.copied()
	if b.send("GET", "/accounts/logout/", nil); !b.loggedIn() {
		t.Error("a link ends the session")
	}
	if a := b.submit("/", "/accounts/logout/", nil); a.status != 302 || a.header.Get("Location") != "/login/" ||
		b.cookies["sessionid"] != "" || b.loggedIn() || stolen.loggedIn() {
		t.Errorf("the logout: %d %s, cookies %v", a.status, a.header.Get("Location"), b.cookies)
	}
}

// Nobody gets into a session with a secret or a token that was known before the login.
func TestSessionFixation(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at)
	planted := strings.Repeat("a", 32)
	b.cookies["sessionid"], b.cookies["csrftoken"] = planted, planted
	b.logIn("ann@example.org", browserPassword)
	thief := newBrowser(t, at)
	thief.cookies["sessionid"] = planted
	if b.cookies["sessionid"] == planted || b.cookies["csrftoken"] == planted || thief.loggedIn() {
		t.Error("a planted secret is the session's")
	}
	// A session that was open before is not the one after a login, and ends.
	before := b.copied()
	b.logIn("olive@example.org", browserPassword)
	if before.loggedIn() || !b.loggedIn() {
		t.Error("the session of the user before goes on")
	}
	if me := b.must("GET", "users/me", nil); me["email"] != "olive@example.org" {
		t.Errorf("logged in as %v", me["email"])
	}
}

// Failed logins of the page count against the limits of the API, and the other way round.
func TestBrowserLoginLimit(t *testing.T) {
	_, at, _ := browserDemo(t)
	b, visitor := newBrowser(t, at), &account{url: at}
	for range 3 {
		b.tryLogIn("ann@example.org", "wrong", "")
	}
	for range 2 {
		visitor.call("POST", "fetch_api_key", url.Values{"username": {"ann@example.org"}, "password": {"wrong"}})
	}
	if a := b.tryLogIn("ann@example.org", browserPassword, ""); a.status != 200 ||
		!strings.Contains(a.body, "too many attempts") || b.cookies["sessionid"] != "" {
		t.Errorf("the sixth attempt: %d\n%s", a.status, a.body)
	}
	b.logIn("olive@example.org", browserPassword)
}

// After a login the user returns to a path of this host only.
func TestOpenRedirects(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	for next, want := range map[string]string{
		"/accounts/sessions/": "/accounts/sessions/", "/a?b=c&d=%2F": "/a?b=c&d=%2F", "": "/", "x": "/",
		"https://evil.example/": "/", "//evil.example/": "/", "///evil.example/": "/", `/\evil.example/`: "/",
		`\\evil.example/`: "/", "/\t/evil.example/": "/", "/\n//evil.example": "/", " //evil.example": "/",
		"javascript:alert(1)": "/", "/x\r\nSet-Cookie: a=b": "/", "http:evil.example": "/", "/\x00": "/",
		"/" + strings.Repeat("x", 3000): "/",
	} {
		a := b.send("GET", "/login/?next="+url.QueryEscape(next), nil)
		if got := a.header.Get("Location"); a.status != 302 || got != want {
			t.Errorf("with a session, next %q: %d %q, want %q", next, a.status, got, want)
		}
		a = b.tryLogIn("ann@example.org", browserPassword, next)
		if got := a.header.Get("Location"); a.status != 302 || got != want || len(a.header.Values("Set-Cookie")) != 2 {
			t.Errorf("at a login, next %q: %d %q, want %q", next, a.status, got, want)
		}
	}
}

// Requests that a page of another site can cause change nothing.
func TestForgedRequests(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	other := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	fresh := newBrowser(t, at)
	visitorToken := fresh.token("/login/")
	good := b.cookies["csrftoken"]
	message := url.Values{"type": {"channel"}, "to": {`"general"`}, "topic": {"forged"}, "content": {"forged"}}
	with := func(form url.Values, more ...string) url.Values {
		out := url.Values{}
		for name, v := range form {
			out[name] = v
		}
		for i := 0; i < len(more); i += 2 {
			out.Set(more[i], more[i+1])
		}
		return out
	}
	for name, headers := range map[string][]string{
		"no token":                  nil,
		"an empty token":            {"X-CSRFToken", ""},
		"a guessed token":           {"X-CSRFToken", strings.Repeat("0", 32)},
		"a token that is too long":  {"X-CSRFToken", strings.Repeat("A", 4000)},
		"another session's token":   {"X-CSRFToken", other.cookies["csrftoken"]},
		"a visitor's token":         {"X-CSRFToken", visitorToken},
		"another origin":            {"X-CSRFToken", good, "Origin", "https://evil.example"},
		"another port":              {"X-CSRFToken", good, "Origin", "http://127.0.0.1:1"},
		"an origin that is hidden":  {"X-CSRFToken", good, "Origin", "null"},
		"an origin that looks like": {"X-CSRFToken", good, "Origin", at + ".evil.example"},
		"no cookie of the token":    {"X-CSRFToken", good, "Cookie", "sessionid=" + b.cookies["sessionid"]},
		"another cookie of the token": {"X-CSRFToken", good, "Cookie", "sessionid=" + b.cookies["sessionid"] +
			"; csrftoken=" + strings.Repeat("b", 32)},
		"token and cookie planted": {"X-CSRFToken", strings.Repeat("b", 32), "Cookie", "sessionid=" +
			b.cookies["sessionid"] + "; csrftoken=" + strings.Repeat("b", 32)},
	} {
		for _, r := range []struct {
			method, path string
			form         url.Values
		}{
			{"POST", "/json/messages", message},
			{"POST", "/json/settings", url.Values{"method": {"PATCH"}, "full_name": {"Forged"}}},
			{"PATCH", "/json/settings", url.Values{"full_name": {"Forged"}}},
			{"DELETE", "/json/users/me/avatar", nil},
		} {
			a := b.copied().send(r.method, r.path, r.form, headers...)
			reason, _ := a.json["reason"].(string)
			if a.status != 403 || a.json["code"] != "CSRF_FAILED" || a.json["msg"] != "CSRF error: "+reason ||
				reason == "" {
				t.Errorf("%s: %s %s: %d %s", name, r.method, r.path, a.status, a.body)
			}
		}
		for _, path := range []string{"/accounts/logout/", "/accounts/sessions/"} {
			if a := b.copied().send("POST", path, url.Values{"session": {"others"}}, headers...); a.status != 403 {
				t.Errorf("%s: POST %s: %d\n%s", name, path, a.status, a.body)
			}
		}
	}
	for name, form := range map[string]url.Values{"a wrong field": with(message, "csrfmiddlewaretoken", "x"),
		"an empty field": with(message, "csrfmiddlewaretoken", "")} {
		if a := b.send("POST", "/json/messages", form); a.status != 403 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	b.send("GET", "/json/messages?method=POST&"+message.Encode(), nil)
	login := url.Values{"username": {"ann@example.org"}, "password": {browserPassword}}
	if a := fresh.send("POST", "/accounts/login/", login); a.status != 403 || fresh.cookies["sessionid"] != "" {
		t.Errorf("a login without a token: %d", a.status)
	}
	if !b.loggedIn() || !other.loggedIn() {
		t.Error("a forged request ended a session")
	}
	if me := b.must("GET", "users/me", nil); me["full_name"] != "Ann Lee" {
		t.Errorf("a forged request changed the name to %v", me["full_name"])
	}
	found := b.must("GET", "messages?anchor=newest&num_before=100&num_after=0&narrow="+
		url.QueryEscape(`[["topic","forged"]]`), nil)
	if list := found["messages"].([]any); len(list) > 0 {
		t.Errorf("forged messages: %v", list)
	}
	// The same requests work with the token, in a header or in a field, also from the page.
	for _, a := range []webAnswer{b.call("POST", "messages", message),
		b.send("POST", "/json/messages", with(message, "csrfmiddlewaretoken", good)),
		b.send("POST", "/json/messages", with(message, "csrfmiddlewaretoken", b.token("/"))),
		b.send("POST", "/json/messages", message, "X-CSRFToken", b.token("/"), "Origin", at)} {
		if a.status != 200 || a.json["ignored_parameters_unsupported"] != nil {
			t.Errorf("with the token: %d %s", a.status, a.body)
		}
	}
}

// maxRevocation is how long a waiting poll goes on at most after its session was ended, also on a busy machine. It is
// less than the time until a heartbeat would answer the poll. TestPollsEndWithTheirSession holds that the server itself
// waits for at most 100 ms.
const maxRevocation = 15 * time.Second

// Every way of ending a session ends its waiting poll and refuses its next request.
func TestSessionsEnd(t *testing.T) {
	debug := freeAddress(t)
	p, at, data := browserDemo(t, "--debug-listen", debug)
	olive := demoAccount(t, at, "olive@example.org")
	me := func(b *browser) string { return fmt.Sprint(b.must("GET", "users/me", nil)["user_id"]) }
	operator := func(args ...string) {
		t.Helper()
		if out, code := runParley(append(args, "--data", data)...); code != 0 {
			t.Fatalf("%v: %s", args, out)
		}
	}
	password := func(b *browser) {
		b.must("PATCH", "settings", url.Values{"old_password": {browserPassword}, "new_password": {browserPassword}})
	}
	for _, c := range []struct {
		name string
		end  func(b, other *browser)
		goes bool // the other session goes on
	}{
		{"logout", func(b, _ *browser) { b.copied().submit("/", "/accounts/logout/", nil) }, true},
		{"by the user, one", func(b, other *browser) {
			other.submit("/accounts/sessions/", "/accounts/sessions/", url.Values{"session": {b.sessionID()}})
		}, true},
		{"by the user, all others", func(_, other *browser) {
			other.submit("/accounts/sessions/", "/accounts/sessions/", url.Values{"session": {"others"}})
		}, true},
		{"by a new password elsewhere", func(_, other *browser) { password(other) }, true},
		{"by the operator, one", func(b, _ *browser) {
			operator("user", "sessions", "--email", "ann@example.org", "--end", b.sessionID())
		}, true},
		{"by the operator, all", func(_, _ *browser) {
			operator("user", "sessions", "--email", "ann@example.org", "--end", "all")
		}, false},
		{"by a password of the operator", func(_, _ *browser) {
			setDemoPasswords(t, data, "ann@example.org")
		}, false},
		{"by deactivation", func(b, _ *browser) {
			id := me(b)
			olive.must(t, "DELETE", "users/"+id, nil)
		}, false},
		{"by deactivation of the organization", func(_, _ *browser) { operator("realm", "close") }, false},
	} {
		b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
		other := newBrowser(t, at).logIn("ann@example.org", browserPassword)
		ended := b.park(debug)
		c.end(b, other)
		done := time.Now()
		if took := ended().Sub(done); took > maxRevocation {
			t.Errorf("%s: the poll ended after %v", c.name, took)
		}
		if b.loggedIn() {
			t.Errorf("%s: the session goes on", c.name)
		}
		if other.loggedIn() != c.goes {
			t.Errorf("%s: the other session goes on: %v", c.name, !c.goes)
		}
		if c.name == "by deactivation" {
			olive.must(t, "POST", "users/"+fmt.Sprint(demoUserID(t, olive, "ann@example.org"))+"/reactivate", nil)
			if b.loggedIn() {
				t.Error("reactivation brings a session back")
			}
		}
	}
	if a := newBrowser(t, at).send("GET", "/login/", nil); a.status != 302 ||
		a.header.Get("Location") != "/accounts/deactivated/" {
		t.Errorf("login to a deactivated organization: %d %s", a.status, a.header.Get("Location"))
	}
	p.stop()
}

// sessionID returns the id of the browser's session, as the page of sessions has it.
func (b *browser) sessionID() (id string) {
	b.Helper()
	for _, item := range strings.Split(b.send("GET", "/accounts/sessions/", nil).body, "<li>")[1:] {
		if strings.Contains(item, "(this browser)") {
			_, rest, _ := strings.Cut(item, `name="session" value="`)
			id, _, _ = strings.Cut(rest, `"`)
		}
	}
	return id
}

// demoUserID returns the id of a user, also of a deactivated one.
func demoUserID(t *testing.T, who *account, email string) int {
	t.Helper()
	for _, x := range who.must(t, "GET", "users", nil)["members"].([]any) {
		if u := x.(map[string]any); u["delivery_email"] == email || u["email"] == email {
			return int(u["user_id"].(float64))
		}
	}
	t.Fatalf("no user %s", email)
	return 0
}

// The browser in which a user changes the password gets a new secret in that answer; pages that are open there go on.
func TestPasswordChangeInBrowser(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	open := b.token("/") // of a page that stays open
	stolen := b.copied()
	next := "green walrus 77 tent"
	a := b.call("PATCH", "settings", url.Values{"old_password": {browserPassword}, "new_password": {next}})
	if a.status != 200 || b.cookies["sessionid"] == stolen.cookies["sessionid"] {
		t.Fatalf("change of the password: %d %s", a.status, a.body)
	}
	if stolen.loggedIn() || !b.loggedIn() {
		t.Error("the old secret is still valid, or the new one is not")
	}
	if a := b.send("PATCH", "/json/settings", url.Values{"full_name": {"Annie"}}, "X-CSRFToken",
		open); a.status != 200 {
		t.Errorf("the open page: %d %s", a.status, a.body)
	}
	if a := b.call("POST", "fetch_api_key", url.Values{"password": {browserPassword}}); a.status != 400 ||
		a.json["msg"] != "Password is incorrect." {
		t.Errorf("the API key with the old password: %d %s", a.status, a.body)
	}
	key := b.must("POST", "fetch_api_key", url.Values{"password": {next}})
	(&account{url: at, email: "ann@example.org", key: fmt.Sprint(key["api_key"])}).must(t, "GET", "users/me", nil)
}

// The polls of the browser in which a user changes the password end after the new secret has arrived there, so that it
// polls again with it. Any of three tries has to show it: a busy machine can deliver both answers at the same time.
func TestPollsEndAfterNewSecret(t *testing.T) {
	debug := freeAddress(t)
	_, at, _ := browserDemo(t, "--debug-listen", debug)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	passwords := []string{browserPassword, "green walrus 77 tent", "quiet lemon 18 boat", "tall copper 53 moon"}
	for i := range passwords[1:] {
		ended := b.park(debug)
		b.must("PATCH", "settings", url.Values{"old_password": {passwords[i]}, "new_password": {passwords[i+1]}})
		changed := time.Now()
		took := ended().Sub(changed)
		if took > 0 {
			return
		}
		t.Logf("the poll ended %s before the new secret came", -took)
	}
	t.Error("the polls always end before the browser gets the new secret")
}

// Sessions and their ends survive a crash.
func TestSessionsSurviveKill(t *testing.T) {
	p, at, data := browserDemo(t)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	gone := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	gone2 := gone.copied()
	gone.submit("/", "/accounts/logout/", nil)
	p.kill()
	p = startProgram(t, parleyCommand("serve", "--data", data, "--listen", strings.TrimPrefix(at, "http://"), "--demo"))
	p.serving()
	if !b.loggedIn() || gone2.loggedIn() {
		t.Error("after the crash a session is lost, or one that ended goes on")
	}
	b.must("PATCH", "settings", url.Values{"full_name": {"Annie"}})
	out, _ := runParley("user", "sessions", "--data", data, "--email", "ann@example.org")
	if !strings.Contains(out, "address=127.0.0.1") || !strings.Contains(out, "device=Firefox on Linux") ||
		strings.Count(out, "id=") != 1 {
		t.Errorf("sessions of the user: %s", out)
	}
}

// A session belongs to one organization: its cookie is worthless at the others, also with the same email address.
func TestSessionsOfThreeOrganizations(t *testing.T) {
	data := t.TempDir()
	for i, realm := range []string{"", "one", "two"} {
		for _, args := range [][]string{{"realm", "create", "--name", "Org"},
			{"user", "create", "--email", "ann@example.org", "--name", fmt.Sprint("Ann ", i), "--password",
				browserPassword}} {
			if out, code := runParley(append(args, "--realm", realm, "--data", data)...); code != 0 {
				t.Fatalf("%v: %s", args, out)
			}
		}
	}
	p := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--url",
		"http://chat.example"))
	at := p.serving()
	hosts := []string{"chat.example", "one.chat.example", "two.chat.example"}
	var all []*browser
	for _, host := range hosts {
		b := newBrowser(t, at)
		b.host = host
		all = append(all, b.logIn("ann@example.org", browserPassword))
	}
	for i, b := range all {
		for j, host := range hosts {
			c := b.copied()
			c.host = host
			a := c.send("GET", "/json/users/me", nil)
			if want := map[bool]int{true: 200, false: 401}[i == j]; a.status != want ||
				i == j && a.json["full_name"] != fmt.Sprint("Ann ", i) {
				t.Errorf("session of %s at %s: %d %s", hosts[i], host, a.status, a.body)
			}
			if a := c.call("PATCH", "settings", url.Values{"full_name": {fmt.Sprint("Ann ", i)}}); a.status == 200 &&
				i != j {
				t.Errorf("session of %s writes at %s", hosts[i], host)
			}
			// the token of one organization with the session of another
			d := all[j].copied()
			d.cookies["csrftoken"] = b.cookies["csrftoken"]
			if a := d.call("PATCH", "settings", url.Values{"full_name": {"Forged"}}); i != j && a.status != 403 {
				t.Errorf("token of %s at %s: %d %s", hosts[i], host, a.status, a.body)
			}
			if a := all[j].send("PATCH", "/json/settings", url.Values{"full_name": {"Forged"}}, "X-CSRFToken",
				all[j].cookies["csrftoken"], "Origin", "http://"+hosts[i]); i != j && a.status != 403 {
				t.Errorf("origin of %s at %s: %d %s", hosts[i], host, a.status, a.body)
			}
		}
	}
	nowhere := newBrowser(t, at)
	nowhere.host = "three.chat.example"
	if a := nowhere.send("GET", "/login/", nil); a.status != 404 {
		t.Errorf("login where no organization is: %d", a.status)
	}
	all[1].submit("/", "/accounts/logout/", nil)
	if !all[0].loggedIn() || all[1].loggedIn() || !all[2].loggedIn() {
		t.Error("a logout in one organization changes the sessions of the others")
	}
}

// Behind TLS the cookies belong to the host alone, and the browser must say where a request comes from.
func TestBrowserCookiesOverTLS(t *testing.T) {
	_, at, _ := browserDemo(t, "--url", "https://chat.example")
	b := newBrowser(t, at)
	b.host = "chat.example"
	const self = "https://chat.example"
	token := tokenField.FindStringSubmatch(b.send("GET", "/login/", nil).body)[1]
	login := url.Values{"username": {"ann@example.org"}, "password": {browserPassword}, "csrfmiddlewaretoken": {token}}
	for name, headers := range map[string][]string{"no Referer": nil,
		"a Referer of another site": {"Referer", "https://evil.example/"},
		"a Referer without TLS":     {"Referer", "http://chat.example/login/"},
		"an Origin without TLS":     {"Origin", "http://chat.example"},
		"a malformed Referer":       {"Referer", "x"},
		"another Origin":            {"Origin", "https://evil.example", "Referer", self + "/login/"}} {
		if a := b.copied().send("POST", "/accounts/login/", login, headers...); a.status != 403 {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	if a := b.send("POST", "/accounts/login/", login, "Referer", self+"/login/"); a.status != 302 {
		t.Fatalf("login: %d\n%s", a.status, a.body)
	}
	for _, name := range []string{"__Host-sessionid", "__Host-csrftoken"} {
		if c := b.set[name]; c == nil || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" ||
			c.SameSite != http.SameSiteLaxMode {
			t.Errorf("cookie %s: %+v", name, c)
		}
	}
	if len(b.set) != 2 || !b.loggedIn() {
		t.Errorf("cookies %v", b.set)
	}
	change := url.Values{"full_name": {"Annie"}}
	good := b.cookies["__Host-csrftoken"]
	if a := b.send("PATCH", "/json/settings", change, "X-CSRFToken", good); a.status != 403 {
		t.Errorf("a change without an origin: %d", a.status)
	}
	if a := b.send("PATCH", "/json/settings", change, "X-CSRFToken", good, "Origin", self); a.status != 200 {
		t.Errorf("a change: %d %s", a.status, a.body)
	}
	// Without the prefix a cookie may be from a subdomain, or from a request without TLS.
	tossed := b.copied()
	for _, name := range []string{"sessionid", "csrftoken"} {
		tossed.cookies[name] = tossed.cookies["__Host-"+name]
		delete(tossed.cookies, "__Host-"+name)
	}
	if tossed.loggedIn() {
		t.Error("a cookie without the prefix is accepted")
	}
}

// A session is accepted for the paths of the web app only, and their answers cannot be read by other sites.
func TestPathsOfSessions(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	upload := "/" + strings.TrimPrefix(uploadText(t, demoAccount(t, at, "ann@example.org")), "/")
	avatar := fmt.Sprintf("/avatar/%d", int(b.must("GET", "users/me", nil)["user_id"].(float64)))
	tus := []string{"Tus-Resumable", "1.0.0", "Upload-Length", "3"}
	origin := func(o string) []string { return append([]string{"Origin", o}, tus...) }
	for _, c := range []struct {
		method, path    string
		headers         []string
		status, without int // with the session and without it
	}{
		{"GET", "/json/users/me", nil, 200, 401},
		{"GET", "/api/v1/users/me", nil, 401, 401},
		{"GET", upload, nil, 200, 403},
		{"GET", avatar, nil, 302, 404},
		{"POST", "/api/v1/tus", origin(at), 201, 401},
		{"POST", "/api/v1/tus/", origin(at), 201, 401},
		{"POST", "/api/v1/tus", origin("http://evil.example"), 403, 401},
		{"POST", "/api/v1/tus", tus, 403, 401},
		{"POST", "/json/tus", origin(at), 201, 401},
		{"GET", "/", nil, 200, 302},
		{"GET", "/accounts/sessions/", nil, 200, 302},
	} {
		for _, x := range []struct {
			who  *browser
			want int
		}{{b, c.status}, {newBrowser(t, at), c.without}} {
			a := x.who.send(c.method, c.path, nil, c.headers...)
			if a.status != x.want {
				t.Errorf("%s %s: %d %s, want %d", c.method, c.path, a.status, a.body, x.want)
			}
			if a.header.Get("Access-Control-Allow-Origin") != "" && !strings.HasPrefix(c.path, "/api/v1/") ||
				strings.HasPrefix(c.path, "/api/v1/tus") && x.who == b &&
					a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: other origins may read the answer", c.method, c.path)
			}
		}
	}
	queue := b.must("POST", "register", url.Values{"event_types": {`["drafts"]`}})["queue_id"].(string)
	b.must("POST", "drafts", url.Values{"drafts": {`[{"type":"stream","to":[1],"topic":"t","content":"tea"}]`}})
	events := b.send("GET", "/json/events?last_event_id=-1&queue_id="+url.QueryEscape(queue), nil)
	if list, _ := events.json["events"].([]any); events.status != 200 || len(list) != 1 ||
		events.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("events: %d %v %s", events.status, events.header, events.body)
	}
	b.must("DELETE", "events", url.Values{"queue_id": {queue}})
	if a := b.call("OPTIONS", "messages", nil); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("other origins may send requests below /json")
	}
}

// uploadText uploads a file and returns its path.
func uploadText(t *testing.T, who *account) string {
	t.Helper()
	status, a, err := who.upload(map[string]io.Reader{"tea.txt": strings.NewReader("tea")})
	if err != nil || status != 200 {
		t.Fatal(status, a, err)
	}
	return fmt.Sprint(a["url"])
}

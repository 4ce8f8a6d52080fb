package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// rulesFile writes a configuration with rules for the root organization and returns its path.
func rulesFile(t *testing.T, rules string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "auth.toml")
	writeFile(t, file, "[[organization]]\nsubdomain = \"\"\n"+rules)
	return file
}

const factorLogin = "/accounts/login/factor/"

var shownKey = regexp.MustCompile(`Key: ([A-Z2-7-]+)`)

// keyOn returns the key of a new second factor on a page.
func keyOn(t *testing.T, body string) string {
	t.Helper()
	m := shownKey.FindStringSubmatch(body)
	if m == nil || !strings.Contains(body, `src="data:image/png;base64,`) {
		t.Fatalf("the page has no key and picture:\n%s", body)
	}
	return strings.ReplaceAll(m[1], "-", "")
}

// appCode returns the code that an app shows at a time.
func appCode(t *testing.T, key string, at time.Time) string {
	t.Helper()
	code, err := totp.GenerateCode(key, at)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// recoveryOn returns the recovery codes on a page.
func recoveryOn(body string) (codes []string) {
	for _, m := range regexp.MustCompile(`<code>([A-Z2-7-]+)</code>`).FindAllStringSubmatch(body, -1) {
		codes = append(codes, m[1])
	}
	return codes
}

// addFactor gives the user of a browser a second factor and returns its key and recovery codes. The code that it uses
// is the one of half a minute ago, so that the present one remains.
func (b *browser) addFactor() (key string, recovery []string) {
	b.Helper()
	const page = "/accounts/factor/"
	key = keyOn(b.T, b.send("GET", page, nil).body)
	a := b.submit(page, page, url.Values{"code": {appCode(b.T, key, time.Now().Add(-30*time.Second))}})
	if recovery = recoveryOn(a.body); a.status != 200 || len(recovery) != 10 {
		b.Fatalf("adding a second factor: %d\n%s", a.status, a.body)
	}
	return key, recovery
}

// With a second factor a password alone gives neither a session nor an API key, at no address.
func TestSecondFactor(t *testing.T) {
	_, at, _ := browserDemo(t)
	ann := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	const page = "/accounts/factor/"
	if a := ann.submit(page, page, url.Values{"code": {"000000"}}); a.status != 401 {
		t.Errorf("a wrong first code: %d", a.status)
	}
	key, recovery := ann.addFactor()
	if a := newBrowser(t, at).send("GET", factorLogin, nil); a.status != 302 || a.header.Get("Location") != "/login/" {
		t.Errorf("the page for the code without a password: %d", a.status)
	}
	b := newBrowser(t, at)
	if a := b.tryLogIn("ann@example.org", browserPassword, "/x"); a.status != 302 ||
		a.header.Get("Location") != factorLogin || b.cookies["sessionid"] != "" || b.loggedIn() {
		t.Fatalf("the password alone: %d %v", a.status, a.header)
	}
	expectCode(t, &account{url: at}, "AUTHENTICATION_FAILED", "POST", "fetch_api_key",
		url.Values{"username": {"ann@example.org"}, "password": {browserPassword}})
	secret := strings.Repeat("5a", 32)
	for _, field := range []string{"mobile_flow_otp", "desktop_flow_otp"} {
		app := newBrowser(t, at)
		a := app.submit("/login/?"+field+"="+secret, "/accounts/login/", url.Values{"username": {"ann@example.org"},
			"password": {browserPassword}, field: {secret}})
		if a.status != 302 || a.header.Get("Location") != factorLogin {
			t.Errorf("%s with the password alone: %d %v", field, a.status, a.header)
		}
	}
	waiting := b.copied()
	for _, code := range []string{"000000", "", "12345", strings.Repeat("A", 16)} {
		if a := b.submit(factorLogin, factorLogin, url.Values{"code": {code}}); a.status != 401 || b.loggedIn() {
			t.Errorf("code %q: %d", code, a.status)
		}
	}
	code := appCode(t, key, time.Now())
	if a := b.submit(factorLogin, factorLogin, url.Values{"code": {code[:3] + " " + code[3:]}}); a.status != 302 ||
		a.header.Get("Location") != "/x" || !b.loggedIn() {
		t.Fatalf("the right code: %d\n%s", a.status, a.body)
	}
	if a := waiting.submit(factorLogin, factorLogin, url.Values{"code": {code}}); a.status != 401 ||
		waiting.loggedIn() {
		t.Errorf("the same code again: %d", a.status)
	}
	for i, want := range []int{302, 401} {
		again := newBrowser(t, at)
		again.tryLogIn("ann@example.org", browserPassword, "")
		if a := again.submit(factorLogin, factorLogin, url.Values{"code": {strings.ToLower(recovery[0])}}); a.status !=
			want {
			t.Errorf("a recovery code, use %d: %d", i+1, a.status)
		}
	}
	phone := newBrowser(t, at)
	phone.submit("/login/?mobile_flow_otp="+secret, "/accounts/login/", url.Values{"username": {"ann@example.org"},
		"password": {browserPassword}, "mobile_flow_otp": {secret}})
	if a := phone.submit(factorLogin, factorLogin, url.Values{"code": {recovery[1]}}); !strings.HasPrefix(
		a.header.Get("Location"), "zulip://login?") {
		t.Errorf("the phone app after the code: %d %v", a.status, a.header)
	}
}

// A lost second factor is reset by an administrator, or by the operator; users turn theirs off with a code only.
func TestFactorReset(t *testing.T) {
	_, at, data := browserDemo(t)
	setDemoPasswords(t, data, "ada@example.org", "bo@example.org")
	ann, olive := newBrowser(t, at).logIn("ann@example.org", browserPassword),
		newBrowser(t, at).logIn("olive@example.org", browserPassword)
	ada, bo := newBrowser(t, at).logIn("ada@example.org", browserPassword),
		newBrowser(t, at).logIn("bo@example.org", browserPassword)
	const page, reset = "/accounts/factor/", "/accounts/factor/reset/"
	ann.addFactor()
	olive.addFactor()
	for _, x := range []struct {
		by   *browser
		of   string
		want int
	}{{bo, "ann@example.org", 400}, {ann, "ann@example.org", 400}, {ada, "olive@example.org", 400},
		{ada, "nobody@example.org", 404}, {ada, "bo@example.org", 404}, {ada, "ann@example.org", 200}} {
		if a := x.by.submit(reset, reset, url.Values{"email": {x.of}}); a.status != x.want {
			t.Errorf("reset of %s: %d, want %d\n%s", x.of, a.status, x.want, a.body)
		}
	}
	newBrowser(t, at).logIn("ann@example.org", browserPassword)
	messages := ann.must("GET", "messages?"+url.Values{"anchor": {"newest"}, "num_before": {"1"}, "num_after": {"0"},
		"narrow": {`[{"operator":"is","operand":"dm"}]`}}.Encode(), nil)
	if text := fmt.Sprint(messages["messages"]); !strings.Contains(text, "has removed the second factor") ||
		!strings.Contains(text, "Ada") {
		t.Errorf("the user's message: %s", text)
	}
	_, recovery := ann.addFactor()
	if a := ann.submit(page, page, url.Values{"code": {"000000"}}); a.status != 401 {
		t.Errorf("turning off with a wrong code: %d", a.status)
	}
	if a := ann.submit(page, page, url.Values{"code": {recovery[0]}}); a.status != 302 {
		t.Errorf("turning off with a recovery code: %d\n%s", a.status, a.body)
	}
	newBrowser(t, at).logIn("ann@example.org", browserPassword)
	out := mustRun(t, "user", "factor", "--data", data, "--email", "olive@example.org", "--remove")
	if !strings.Contains(out, "removed") {
		t.Errorf("the operator removes the factor: %s", out)
	}
	newBrowser(t, at).logIn("olive@example.org", browserPassword)
}

// Where a role needs a second factor, its users add one in the login, and get neither a session nor a key before.
func TestRequiredFactor(t *testing.T) {
	_, at, _ := browserDemo(t, "--auth-config", rulesFile(t, "second_factor = \"administrators\"\n"))
	newBrowser(t, at).logIn("ann@example.org", browserPassword)
	expectCode(t, &account{url: at}, "AUTHENTICATION_FAILED", "POST", "fetch_api_key",
		url.Values{"username": {"olive@example.org"}, "password": {browserPassword}})
	olive, late := newBrowser(t, at), newBrowser(t, at)
	for _, b := range []*browser{olive, late} {
		if a := b.tryLogIn("olive@example.org", browserPassword, ""); a.header.Get("Location") != factorLogin ||
			b.loggedIn() {
			t.Fatalf("an owner without a second factor: %d %v", a.status, a.header)
		}
	}
	key := keyOn(t, olive.send("GET", factorLogin, nil).body)
	if a := olive.submit(factorLogin, factorLogin, url.Values{"code": {"000000"}}); a.status != 401 ||
		olive.loggedIn() {
		t.Errorf("a wrong code: %d", a.status)
	}
	a := olive.submit(factorLogin, factorLogin, url.Values{"code": {appCode(t, key, time.Now())}})
	if codes := recoveryOn(a.body); a.status != 200 || len(codes) != 10 || !olive.loggedIn() {
		t.Fatalf("the first code: %d\n%s", a.status, a.body)
	}
	// Another browser that has entered the password before cannot replace the factor.
	other := keyOn(t, late.send("GET", factorLogin, nil).body)
	a = late.submit(factorLogin, factorLogin, url.Values{"code": {appCode(t, other, time.Now())}})
	if a.status != 400 || late.loggedIn() {
		t.Errorf("a second factor instead of the first one: %d\n%s", a.status, a.body)
	}
}

// A session ends when it is unused for the time of its organization, or at the end of its lifetime. Polls are no use.
func TestSessionLifetimes(t *testing.T) {
	clock := filepath.Join(t.TempDir(), "clock")
	ahead := func(d time.Duration) {
		t.Helper()
		if err := os.WriteFile(clock, []byte(d.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ahead(0)
	t.Setenv(clockFile, clock)
	began := time.Now()
	_, at, _ := browserDemo(t, "--auth-config", rulesFile(t, "session_idle = \"8h\"\nsession_lifetime = \"48h\"\n"))
	idle, active := newBrowser(t, at).logIn("ann@example.org", browserPassword),
		newBrowser(t, at).logIn("olive@example.org", browserPassword)
	queue := fmt.Sprint(idle.must("POST", "register", nil)["queue_id"])
	bo := demoAccount(t, at, "bo@example.org")
	jump := func(d time.Duration) {
		t.Helper()
		ahead(d)
		eventually(t, "the server has the new time", func() bool {
			now, _ := bo.must(t, "GET", "realm/presence", nil)["server_timestamp"].(float64)
			return now >= float64(began.Add(d).Unix())
		})
	}
	for hours := 3; hours < 48; hours += 3 {
		jump(time.Duration(hours) * time.Hour)
		if !active.loggedIn() {
			t.Fatalf("a session in use has ended after %d hours", hours)
		}
		a := idle.send("GET", "/json/events?dont_block=true&last_event_id=-1&queue_id="+queue, nil)
		if ended := hours > 10; (a.status == 401) != ended && (hours < 8 || ended) {
			t.Errorf("an unused session after %d hours of polls: %d", hours, a.status)
		}
	}
	jump(49 * time.Hour)
	if active.loggedIn() {
		t.Error("a session is older than its lifetime")
	}
}

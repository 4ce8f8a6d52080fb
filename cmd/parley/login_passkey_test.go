package main

import (
	"html"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/wire/signon/signontest"
)

// Browsers have passkeys at an address with a name. The port is none that the test uses: only headers have it.
const (
	passkeyHost   = "chat.localhost:9991"
	passkeyOrigin = "http://" + passkeyHost
	passkeysPage  = "/accounts/passkeys/"
	passkeyLogin  = "/accounts/login/passkey/"
)

// passkeyDemo starts a server with an address that has passkeys.
func passkeyDemo(t *testing.T, flags ...string) (at, data string) {
	t.Helper()
	_, at, data = browserDemo(t, append([]string{"--url", passkeyOrigin}, flags...)...)
	return at, data
}

// passkeyBrowser is newBrowser at the address with passkeys.
func passkeyBrowser(t *testing.T, at string) *browser {
	b := newBrowser(t, at)
	b.host = passkeyHost
	return b
}

var (
	passkeyOptions  = regexp.MustCompile(`data-do="(create|get)" data-options="([^"]+)"`)
	passkeyQuestion = regexp.MustCompile(`name="passkey_question" value="([^"]+)"`)
)

// passkeyForm returns the form that a page sends after a device has answered; form has its other fields.
func (b *browser) passkeyForm(page string, d *signontest.Device, form url.Values) url.Values {
	b.Helper()
	body := b.send("GET", page, nil).body
	o, q := passkeyOptions.FindStringSubmatch(body), passkeyQuestion.FindStringSubmatch(body)
	if o == nil || q == nil {
		b.Fatalf("%s asks for no passkey:\n%s", page, body)
	}
	ask := d.GetAny
	if o[1] == "create" {
		ask = d.Create
	}
	answer, err := ask(html.UnescapeString(o[2]))
	if err != nil {
		b.Fatal(err)
	}
	filled := url.Values{"csrfmiddlewaretoken": {tokenField.FindStringSubmatch(body)[1]}, "passkey": {answer},
		"passkey_question": {html.UnescapeString(q[1])}}
	for name, values := range form {
		filled[name] = values
	}
	return filled
}

// usePasskey sends the form of a page with the answer of a device.
func (b *browser) usePasskey(page string, d *signontest.Device) webAnswer {
	b.Helper()
	return b.send("POST", page, b.passkeyForm(page, d, nil))
}

// addPasskey gives the user of a browser a passkey and returns the recovery codes, if there are new ones.
func (b *browser) addPasskey(d *signontest.Device, name string) []string {
	b.Helper()
	a := b.send("POST", passkeysPage, b.passkeyForm(passkeysPage, d, url.Values{"name": {name}}))
	if a.status != 200 && a.status != 302 {
		b.Fatalf("adding a passkey: %d\n%s", a.status, a.body)
	}
	return recoveryOn(a.body)
}

// A passkey is a second factor after the password, and replaces both where the device asks for a PIN. Each answer works
// once.
func TestPasskeys(t *testing.T) {
	at, _ := passkeyDemo(t)
	if body := passkeyBrowser(t, at).send("GET", "/login/", nil).body; strings.Contains(body, passkeyLogin) {
		t.Error("the login page offers passkeys that no user has")
	}
	ann := passkeyBrowser(t, at).logIn("ann@example.org", browserPassword)
	phone, laptop := signontest.NewDevice(passkeyOrigin), signontest.NewDevice(passkeyOrigin)
	recovery := ann.addPasskey(phone, "Phone")
	if len(recovery) != 10 {
		t.Fatalf("recovery codes: %v", recovery)
	}
	if more := ann.addPasskey(laptop, "Laptop"); more != nil {
		t.Errorf("new recovery codes with the second passkey: %v", more)
	}
	if body := ann.send("GET", passkeysPage, nil).body; !strings.Contains(body, `value="Phone"`) ||
		!strings.Contains(body, `value="Laptop"`) {
		t.Errorf("the page of the passkeys:\n%s", body)
	}
	expectCode(t, &account{url: at}, "AUTHENTICATION_FAILED", "POST", "fetch_api_key",
		url.Values{"username": {"ann@example.org"}, "password": {browserPassword}})
	if body := passkeyBrowser(t, at).send("GET", "/login/?next=/x", nil).body; !strings.Contains(body,
		`href="`+passkeyLogin+`?next=%2Fx"`) {
		t.Errorf("the login page has no link to %s:\n%s", passkeyLogin, body)
	}

	second := passkeyBrowser(t, at)
	if a := second.tryLogIn("ann@example.org", browserPassword, "/x"); a.header.Get("Location") != factorLogin ||
		second.loggedIn() {
		t.Fatalf("the password alone: %d %v", a.status, a.header)
	}
	form := second.passkeyForm(factorLogin, phone, nil)
	waiting := second.copied()
	if a := second.send("POST", factorLogin, form); a.status != 302 || a.header.Get("Location") != "/x" ||
		!second.loggedIn() {
		t.Fatalf("a passkey as the second factor: %d\n%s", a.status, a.body)
	}
	if a := waiting.send("POST", factorLogin, form); a.status != 401 || waiting.loggedIn() {
		t.Errorf("the same answer again: %d", a.status)
	}
	if a := waiting.submit(factorLogin, factorLogin, url.Values{"code": {recovery[0]}}); a.status != 302 {
		t.Errorf("a recovery code instead of the passkey: %d\n%s", a.status, a.body)
	}

	direct := passkeyBrowser(t, at)
	form = direct.passkeyForm(passkeyLogin+"?next=/y", laptop, nil)
	replay := direct.copied()
	form.Set("next", "/y")
	if a := direct.send("POST", passkeyLogin, form); a.status != 302 || a.header.Get("Location") != "/y" ||
		!direct.loggedIn() {
		t.Fatalf("a passkey instead of the password: %d\n%s", a.status, a.body)
	}
	if a := replay.send("POST", passkeyLogin, form); a.status != 401 || replay.loggedIn() {
		t.Errorf("the same answer again: %d", a.status)
	}
	laptop.Flags = signontest.UserPresent // without a PIN
	if b := passkeyBrowser(t, at); b.usePasskey(passkeyLogin, laptop).status != 401 || b.loggedIn() {
		t.Error("a passkey without a PIN replaces the password")
	}
	laptop.Flags |= signontest.UserVerified
	secret := strings.Repeat("5a", 32)
	app := passkeyBrowser(t, at)
	form = app.passkeyForm(passkeyLogin+"?mobile_flow_otp="+secret, laptop, url.Values{"mobile_flow_otp": {secret}})
	if a := app.send("POST", passkeyLogin, form); !strings.HasPrefix(a.header.Get("Location"), "zulip://login?") {
		t.Errorf("the phone app with a passkey: %d %v", a.status, a.header)
	}
	stranger := signontest.NewDevice(passkeyOrigin)
	passkeyBrowser(t, at).logIn("olive@example.org", browserPassword).addPasskey(stranger, "Olive's")
	b := passkeyBrowser(t, at)
	b.tryLogIn("ann@example.org", browserPassword, "")
	if a := b.usePasskey(factorLogin, stranger); a.status != 401 || b.loggedIn() {
		t.Errorf("the passkey of another user: %d", a.status)
	}
}

// Users rename and remove their passkeys, after a recent login or with the password; administrators reset them.
func TestPasskeySettings(t *testing.T) {
	clock := filepath.Join(t.TempDir(), "clock")
	ahead := func(d time.Duration) {
		t.Helper()
		if err := os.WriteFile(clock, []byte(d.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ahead(0)
	t.Setenv(clockFile, clock)
	at, data := passkeyDemo(t)
	ann := passkeyBrowser(t, at).logIn("ann@example.org", browserPassword)
	phone := signontest.NewDevice(passkeyOrigin)
	ann.addPasskey(phone, "Phone")
	id := regexp.MustCompile(`name="id" value="([^"]+)"`)
	key := id.FindStringSubmatch(ann.send("GET", passkeysPage, nil).body)[1]
	ahead(11 * time.Minute)
	eventually(t, "the login is old", func() bool {
		return strings.Contains(ann.send("GET", passkeysPage, nil).body, `name="password"`)
	})
	for _, x := range []struct {
		form url.Values
		want int
	}{
		{url.Values{"do": {"rename"}, "name": {"Tablet"}}, 400},
		{url.Values{"do": {"remove"}}, 400},
		{url.Values{"do": {"remove"}, "password": {"wrong"}}, 400},
		{url.Values{"do": {"rename"}, "name": {""}, "password": {browserPassword}}, 400},
		{url.Values{"do": {"rename"}, "name": {"Tablet"}}, 302}, // the password is confirmed by now
		{url.Values{"do": {"rename"}, "name": {"Tablet"}, "id": {"AAAA"}}, 404},
		{url.Values{"do": {"remove"}, "id": {"***"}}, 404},
		{url.Values{}, 401}, // no question
	} {
		if x.form["id"] == nil {
			x.form.Set("id", key)
		}
		if a := ann.submit(passkeysPage, passkeysPage, x.form); a.status != x.want {
			t.Errorf("%v: %d, want %d\n%s", x.form, a.status, x.want, a.body)
		}
	}
	if body := ann.send("GET", passkeysPage, nil).body; !strings.Contains(body, `value="Tablet"`) {
		t.Errorf("the page has no new name:\n%s", body)
	}
	out := mustRun(t, "user", "factor", "--data", data, "--email", "ann@example.org")
	if !strings.Contains(out, "passkeys: 1") || !strings.Contains(out, "factor: on") {
		t.Errorf("the operator sees: %s", out)
	}
	olive := passkeyBrowser(t, at).logIn("olive@example.org", browserPassword)
	const reset = "/accounts/factor/reset/"
	if a := olive.submit(reset, reset, url.Values{"email": {"ann@example.org"}}); a.status != 200 {
		t.Errorf("the reset: %d\n%s", a.status, a.body)
	}
	if a := passkeyBrowser(t, at).usePasskey(passkeyLogin, phone); a.status != 401 && a.status != 404 {
		t.Errorf("a login with a passkey that was reset: %d", a.status)
	}
	passkeyBrowser(t, at).logIn("ann@example.org", browserPassword)
}

// Where a role needs a second factor, its users can add a passkey in the login. Where passwords are switched off, a
// passkey does not replace them.
func TestRequiredPasskey(t *testing.T) {
	at, _ := passkeyDemo(t, "--auth-config", rulesFile(t, "second_factor = \"administrators\"\n"))
	olive := passkeyBrowser(t, at)
	if a := olive.tryLogIn("olive@example.org", browserPassword, ""); a.header.Get("Location") != factorLogin {
		t.Fatalf("an owner without a second factor: %d %v", a.status, a.header)
	}
	device := signontest.NewDevice(passkeyOrigin)
	late := olive.copied()
	a := olive.send("POST", factorLogin, olive.passkeyForm(factorLogin, device, url.Values{"name": {"Key"}}))
	if codes := recoveryOn(a.body); a.status != 200 || len(codes) != 10 || !olive.loggedIn() {
		t.Fatalf("a passkey as the first factor: %d\n%s", a.status, a.body)
	}
	// Another browser that has entered the password before adds no second passkey.
	other := signontest.NewDevice(passkeyOrigin)
	a = late.send("POST", factorLogin, late.passkeyForm(factorLogin, other, url.Values{"name": {"Thief"}}))
	if a.status != 400 || late.loggedIn() {
		t.Errorf("a passkey instead of the first one: %d\n%s", a.status, a.body)
	}
	olive.must("PATCH", "realm", url.Values{"authentication_methods": {`{"Email":false,"Dev":true}`}})
	b := passkeyBrowser(t, at)
	if body := b.send("GET", "/login/", nil).body; strings.Contains(body, passkeyLogin) {
		t.Error("the login page offers passkeys where passwords are switched off")
	}
	if a := b.usePasskey(passkeyLogin, device); a.status != 401 || b.loggedIn() {
		t.Errorf("a passkey where passwords are switched off: %d", a.status)
	}
}

// A page at an IP address offers no passkeys, because browsers have none there.
func TestPasskeysNeedAName(t *testing.T) {
	_, at, _ := browserDemo(t)
	ann := newBrowser(t, at).logIn("ann@example.org", browserPassword)
	if body := ann.send("GET", passkeysPage, nil).body; passkeyOptions.MatchString(body) {
		t.Errorf("the page asks for a passkey:\n%s", body)
	}
	if a := newBrowser(t, at).send("GET", passkeyLogin, nil, "Accept", "text/html"); a.status != 404 {
		t.Errorf("the login with a passkey: %d", a.status)
	}
}

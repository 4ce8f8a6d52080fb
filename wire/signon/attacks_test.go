package signon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire/signon/signontest"
)

const redirectAddress = "http://127.0.0.1:9991/complete/oidc/"

// open returns the provider of a configuration file.
func open(t *testing.T, text string) (*Providers, error) {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"auth.toml": text, "secret": "a secret: with % and +\n",
		"empty": "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Open(filepath.Join(folder, "auth.toml"))
}

// client returns the client of a test provider.
func client(t *testing.T, p *signontest.Provider, more string) *oidcProvider {
	t.Helper()
	list, err := open(t, fmt.Sprintf("[[provider]]\nname = \"test\"\ntype = \"oidc\"\nissuer = %q\nclient_id = %q\n"+
		"client_secret_file = \"secret\"\nallow_insecure = true\n", p.URL, p.ClientID)+more)
	if err != nil {
		t.Fatal(err)
	}
	return list.Find("", OIDC, "test").Provider.(*oidcProvider)
}

// follow begins a login and returns its state and the answer of the provider, as the browser passes it on.
func follow(t *testing.T, c *oidcProvider) (Flow, url.Values) {
	t.Helper()
	f := NewFlow(redirectAddress)
	address, err := c.Begin(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultTransport.RoundTrip(mustRequest(t, address))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	to, err := r.Location()
	if err != nil || !strings.HasPrefix(to.String(), redirectAddress+"?") {
		t.Fatalf("the provider answers %d %v", r.StatusCode, err)
	}
	return f, to.Query()
}

func mustRequest(t *testing.T, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// logIn makes a whole login.
func logIn(t *testing.T, c *oidcProvider) (Identity, error) {
	t.Helper()
	f, answer := follow(t, c)
	return c.Finish(context.Background(), f, answer)
}

// A provider that follows the specification identifies the person by issuer and subject.
func TestOIDCLogin(t *testing.T) {
	p := signontest.New(t)
	c := client(t, p, "")
	want := Identity{Issuer: p.URL, Subject: "248289761001", Email: "jane@example.org", Verified: true,
		Name: "Jane Doe"}
	for range 2 {
		if got, err := logIn(t, c); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("logged in as %+v, want %+v: %v", got, want, err)
		}
	}
	if n := p.Asked("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the metadata was fetched %d times for two logins", n)
	}
	p.RotateKeys()
	if got, err := logIn(t, c); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after a rotation of the keys: %+v %v", got, err)
	}
	p.Lie(signontest.Lies{Claims: func(c map[string]any) { delete(c, "email"); delete(c, "email_verified") }})
	if got, err := logIn(t, c); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("with the address in the user info only: %+v %v", got, err)
	}
	if len(p.Faults()) > 0 {
		t.Errorf("the provider has complaints: %q", p.Faults())
	}
}

// The server proves its identity to the provider as the metadata say; without them in both ways.
func TestClientAuthentication(t *testing.T) {
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		for _, listed := range []any{nil, []string{method}, []string{"private_key_jwt", method}} {
			p := signontest.New(t)
			p.Method = method
			p.Lie(signontest.Lies{Metadata: func(m map[string]any) {
				if listed != nil {
					m["token_endpoint_auth_methods_supported"] = listed
				}
			}})
			if _, err := logIn(t, client(t, p, "")); err != nil {
				t.Errorf("%s, listed %v: %v", method, listed, err)
			}
		}
	}
}

// An address counts as verified only if the provider says so, or if the operator has said so and the provider does not
// contradict.
func TestEmailVerified(t *testing.T) {
	p := signontest.New(t)
	for _, trust := range []bool{false, true} {
		c := client(t, p, fmt.Sprintf("trust_email = %v\n", trust))
		for _, x := range []struct {
			claim any
			want  bool
		}{{true, true}, {false, false}, {"true", true}, {"false", false}, {nil, trust}, {0, false}, {"yes", false},
			{[]any{true}, false}} {
			p.LogIn(signontest.Person{Subject: "1", Email: "jane@example.org", Name: "Jane", Verified: x.claim})
			if got, err := logIn(t, c); err != nil || got.Verified != x.want {
				t.Errorf("email_verified %v, trusted %v: %v %v, want %v", x.claim, trust, got.Verified, err, x.want)
			}
		}
		p.LogIn(signontest.Person{Subject: "1", Email: "", Name: "Jane", Verified: true})
		if got, err := logIn(t, c); err != nil || got.Verified {
			t.Errorf("no address is verified: %+v %v", got, err)
		}
	}
}

// attack is a lie of a provider, or of an attacker between it and the browser.
type attack struct {
	name   string
	lies   signontest.Lies
	reason string // part of the text that the page shows
}

const (
	badToken   = "an identity that is not valid"
	badRequest = "cannot be reached, or sent a wrong answer"
)

// tokenAttacks are ID tokens that must be refused.
func tokenAttacks(p *signontest.Provider) []attack {
	now, public := time.Now().Unix(), p.PublicPEM()
	claim := func(name string, value any) signontest.Lies {
		return signontest.Lies{Claims: func(c map[string]any) {
			if c[name] = value; value == nil {
				delete(c, name)
			}
		}}
	}
	token := func(change func(string) string) signontest.Lies { return signontest.Lies{Token: change} }
	hs := map[string]any{"alg": "HS256", "typ": "JWT"}
	return []attack{
		{"alg none", token(signontest.Unsigned), badToken},
		{"HS256 with the public key", token(func(s string) string {
			return signontest.SignHS256(s, public, hs)
		}), badToken},
		{"HS256 with the client secret", token(func(s string) string {
			return signontest.SignHS256(s, []byte(p.ClientSecret), hs)
		}), badToken},
		{"header says HS256", signontest.Lies{Header: func(h map[string]any) { h["alg"] = "HS256" }}, badToken},
		{"header says none", signontest.Lies{Header: func(h map[string]any) { h["alg"] = "none" }}, badToken},
		{"unknown key", signontest.Lies{Header: func(h map[string]any) { h["kid"] = "other" }}, badToken},
		{"another signature", token(func(s string) string { return s[:len(s)-8] + "AAAAAAAA" }), badToken},
		{"no ID token", token(func(string) string { return "" }), badToken},
		{"not a token", token(func(string) string { return "a.b.c" }), badToken},
		{"wrong audience", claim("aud", "another"), badToken},
		{"no audience", claim("aud", nil), badToken},
		{"several audiences without azp", claim("aud", []any{"parley", "another"}), badToken},
		{"azp of another client", claim("azp", "another"), badToken},
		{"another issuer", claim("iss", "https://accounts.google.com"), badToken},
		{"issuer with a slash", claim("iss", p.URL+"/"), badToken},
		{"nonce of another login", claim("nonce", "of another login"), badToken},
		{"no nonce", claim("nonce", nil), badToken},
		{"expired", claim("exp", now-120), badToken},
		{"no expiry", claim("exp", nil), badToken},
		{"not valid yet", claim("nbf", now+120), badToken},
		{"made in the future", claim("iat", now+120), badToken},
		{"made long ago", claim("iat", now-3600), badToken},
		{"no time", claim("iat", nil), badToken},
		{"no subject", claim("sub", nil), badToken},
		{"long subject", claim("sub", strings.Repeat("x", 300)), badToken},
		{"subject is a number", claim("sub", 5), badToken},
		{"another access token", claim("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"), badToken},
		{"user info of another person", signontest.Lies{Claims: func(c map[string]any) { delete(c, "email") },
			UserInfo: func(i map[string]any) { i["sub"] = "another" }}, badToken},
	}
}

// answerAttacks are answers in the browser that must be refused.
func answerAttacks(t *testing.T) []attack {
	redirect := func(name, value string) signontest.Lies {
		return signontest.Lies{Redirect: func(q url.Values) { q.Set(name, value) }}
	}
	other := signontest.New(t)
	return []attack{
		{"state of another login", redirect("state", "other"), "not started in this browser"},
		{"no state", redirect("state", ""), "not started in this browser"},
		{"mix-up: the answer names another issuer", redirect("iss", other.URL), "another login provider"},
		{"mix-up: the answer names no issuer", signontest.Lies{Redirect: func(q url.Values) { q.Del("iss") }},
			"another login provider"},
		{"code of another person's browser", redirect("code", "stolen"), "has refused the login"},
		{"no code", redirect("code", ""), "sent a wrong answer"},
		{"huge code", redirect("code", strings.Repeat("x", 5000)), "sent a wrong answer"},
		{"cancelled", redirect("error", "access_denied"), "has refused the login, or you have cancelled it"},
	}
}

// Every lie about an identity is refused with a reason for the page, and identifies nobody.
func TestOIDCAttacks(t *testing.T) {
	p := signontest.New(t)
	c := client(t, p, "")
	for _, x := range append(tokenAttacks(p), answerAttacks(t)...) {
		p.Lie(x.lies)
		who, err := logIn(t, c)
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Reason, x.reason) || !reflect.DeepEqual(who,
			Identity{}) {
			t.Errorf("%s: %+v, %v; want the reason %q", x.name, who, err, x.reason)
			continue
		}
		t.Logf("| %s | refused: %s |", x.name, failed.Err)
	}
	p.Lie(signontest.Lies{})
	if _, err := logIn(t, c); err != nil {
		t.Errorf("after the attacks: %v", err)
	}
}

// Clocks may differ by a minute.
func TestOIDCClockSkew(t *testing.T) {
	p := signontest.New(t)
	c := client(t, p, "")
	for _, ahead := range []time.Duration{-50 * time.Second, 50 * time.Second} {
		c.now = func() time.Time { return time.Now().Add(ahead) }
		if _, err := logIn(t, c); err != nil {
			t.Errorf("the clock is %s ahead: %v", ahead, err)
		}
	}
	for _, ahead := range []time.Duration{-5 * time.Minute, 10 * time.Minute} {
		c.now = func() time.Time { return time.Now().Add(ahead) }
		if _, err := logIn(t, c); err == nil {
			t.Errorf("a login with a clock that is %s ahead", ahead)
		}
	}
}

// A code and a state work once. An answer does not fit another login of the same browser.
func TestOIDCReplay(t *testing.T) {
	p := signontest.New(t)
	c := client(t, p, "")
	first, answer := follow(t, c)
	second, other := follow(t, c)
	if _, err := c.Finish(context.Background(), second, answer); err == nil {
		t.Error("the answer to one login finishes another")
	}
	mixed := url.Values{"state": {second.State}, "code": answer["code"], "iss": answer["iss"]}
	if _, err := c.Finish(context.Background(), second, mixed); err == nil {
		t.Error("the code of one login finishes another: PKCE does not hold")
	}
	if _, err := c.Finish(context.Background(), first, answer); err == nil {
		t.Error("a code works after it was used with the wrong verifier")
	}
	if _, err := c.Finish(context.Background(), second, other); err != nil {
		t.Error(err)
	}
	if _, err := c.Finish(context.Background(), second, other); err == nil {
		t.Error("a code works twice")
	}
}

// wrongProviders are providers that are down, slow, huge or wrong, with the reason that the page shows.
func wrongProviders(p *signontest.Provider) []attack {
	at := func(path string, serve func(http.ResponseWriter, *http.Request)) signontest.Lies {
		return signontest.Lies{Serve: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				serve(w, r)
			}
			return r.URL.Path == path
		}}
	}
	const metadata = "/.well-known/openid-configuration"
	huge := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 4096 {
			if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<10)); err != nil {
				return
			}
		}
	}
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	away := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, p.URL+"/elsewhere", http.StatusFound)
	}
	change := func(name string, value any) signontest.Lies {
		return signontest.Lies{Metadata: func(m map[string]any) { m[name] = value }}
	}
	const tooLarge, forbidden, refused = "too large", "must not contact", "has refused the login"
	return []attack{
		{"metadata: huge", at(metadata, huge), tooLarge},
		{"metadata: 500", at(metadata, status(500)), badRequest},
		{"metadata: 404", at(metadata, status(404)), badRequest},
		{"metadata: redirect", at(metadata, away), badRequest},
		{"metadata: of another issuer", change("issuer", "https://accounts.google.com"), badRequest},
		{"metadata: no encryption", change("token_endpoint", "http://login.example.org/token"), "wrong configuration"},
		{"metadata: no endpoint", change("token_endpoint", ""), "wrong configuration"},
		{"metadata: file", change("jwks_uri", "file:///etc/passwd"), "wrong configuration"},
		{"metadata: not JSON", at(metadata, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }),
			badRequest},
		{"token: cloud metadata (SSRF)", change("token_endpoint", "https://169.254.169.254/token"), forbidden},
		{"token: private network (SSRF)", change("token_endpoint", "https://10.0.0.1/token"), forbidden},
		{"keys: private network (SSRF)", change("jwks_uri", "https://192.168.1.1/keys"), forbidden},
		{"token: huge", at("/token", huge), tooLarge},
		{"token: 500", at("/token", status(500)), badRequest},
		{"token: redirect", at("/token", away), refused},
		{"keys: huge", at("/jwks", huge), tooLarge},
		{"keys: none", signontest.Lies{Keys: func([]map[string]any) []map[string]any { return nil }}, badToken},
		{"keys: 500", at("/jwks", status(500)), badRequest},
	}
}

// A provider that is wrong gets an error with a reason.
func TestWrongProviders(t *testing.T) {
	p := signontest.New(t)
	for _, x := range wrongProviders(p) {
		p.Lie(x.lies)
		c := client(t, p, "") // without metadata
		f := NewFlow(redirectAddress)
		address, err := c.Begin(context.Background(), f)
		if err == nil {
			r, failed := http.DefaultTransport.RoundTrip(mustRequest(t, address))
			if failed != nil {
				t.Fatal(failed)
			}
			r.Body.Close()
			to, _ := r.Location()
			_, err = c.Finish(context.Background(), f, to.Query())
		}
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Reason, x.reason) {
			t.Errorf("%s: %v; want the reason %q", x.name, err, x.reason)
			continue
		}
		t.Logf("| %s | refused: %s |", x.name, failed.Err)
	}
}

// A provider that does not answer, or that answers byte by byte, ends at the deadline.
func TestSlowProvider(t *testing.T) {
	p := signontest.New(t)
	p.Lie(signontest.Lies{Serve: func(w http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := client(t, p, "").Begin(ctx, NewFlow(redirectAddress))
	var failed *Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Reason, "did not answer in time") {
		t.Errorf("a provider that does not answer: %v", err)
	}
	if MaxStep >= 10*time.Second || maxRequest > MaxStep {
		t.Errorf("a step takes up to %s: a person must get a page within 10 seconds", MaxStep)
	}
	p.Lie(signontest.Lies{})
	c := client(t, p, "")
	c.config.Issuer = "http://127.0.0.1:1"
	if _, err = c.Begin(context.Background(), NewFlow(redirectAddress)); !errors.As(err, &failed) ||
		!strings.Contains(failed.Reason, badRequest) {
		t.Errorf("a provider that is down: %v", err)
	}
}

// Wrong configurations are refused at the start, with the reason.
func TestWrongConfigurations(t *testing.T) {
	good := map[string]string{"name": `"a"`, "type": `"oidc"`, "issuer": `"https://login.example.org"`,
		"client_id": `"c"`}
	for _, x := range []struct{ key, value, want string }{
		{"name", `""`, "name must be"}, {"name", `"a/b"`, "name must be"}, {"name", `"a b"`, "name must be"},
		{"type", `"openid"`, "type must be"}, {"issuer", `""`, "issuer is missing"},
		{"issuer", `"http://login.example.org"`, "must begin with https"}, {"issuer", `"login"`, "must be an address"},
		{"issuer", `"https://a:b@login.example.org"`, "must be an address"},
		{"client_id", `""`, "client_id is missing"},
		{"client_secret_file", `"missing"`, "no such file"}, {"client_secret_file", `"empty"`, "must have 1 to"},
		{"allow_insecure", `true`, "only for providers on this machine"}, {"unknown", `1`, "unknown key"},
		{"networks", `["x"]`, "networks"}, {"ca_file", `"empty"`, "no certificate"},
		{"preset", `"x"`, "unknown preset"},
		{"client_secret", `"x"`, "unknown key"}, {"allow_insecure", `"yes"`, "incompatible types"},
	} {
		text := "[[provider]]\n"
		for key, value := range good {
			if key != x.key {
				text += key + " = " + value + "\n"
			}
		}
		if _, err := open(t, text+x.key+" = "+x.value+"\n"); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s = %s: %v; want %q", x.key, x.value, err, x.want)
		}
	}
	one := "[[provider]]\nname = \"a\"\npreset = \"google\"\nclient_id = \"c\"\n"
	if _, err := open(t, one+one); err == nil || !strings.Contains(err.Error(), "two providers") {
		t.Errorf("two providers with a name: %v", err)
	}
	list, err := open(t, one+"organizations = [\"acme\"]\n"+strings.ReplaceAll(one, `"a"`, `"b"`))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := list.Of("acme"), list.Of(""); len(a) != 2 || len(b) != 1 || b[0].Name != "b" ||
		a[0].Display != "Google" {
		t.Errorf("providers of acme %v, of the root organization %v", a, b)
	}
	public, err := ParsePublic(list.Public().Text())
	acme, root := realm.Site{Name: "acme"}, realm.Site{}
	public.Complete(&acme)
	public.Complete(&root)
	if err != nil || len(acme.Providers()) != 2 || len(root.Providers()) != 1 ||
		strings.Contains(list.Public().Text(), "client") {
		t.Errorf("edges get %s: %v", list.Public().Text(), err)
	}
}

// The rules of an organization are its own, or those of all others.
func TestRulesOfOrganizations(t *testing.T) {
	list, err := open(t, "[[organization]]\nsubdomain = \"*\"\nsecond_factor = \"administrators\"\n"+
		"session_idle = \"8h\"\n"+
		"[[organization]]\nsubdomain = \"\"\nsession_lifetime = \"720h\"\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]realm.LoginPolicy{"": {SessionLifetime: 720 * 3600},
		"acme": {FactorUpTo: realm.Administrator, SessionIdle: 8 * 3600}} {
		site := realm.Site{Name: name}
		again, public := site, list.Public()
		public.Complete(&again)
		if public.Complete(&site); site != again { // sites are part of keys
			t.Errorf("the site of %q differs from itself", name)
		}
		if site.Policy != want {
			t.Errorf("%q has the rules %+v, want %+v", name, site.Policy, want)
		}
	}
	for text, want := range map[string]string{"second_factor = \"all\"": "must be one of",
		"session_idle = \"1m\"": "at least", "session_lifetime = \"never\"": "at least",
		"session_idle = 5": "incompatible",
		"idle = \"8h\"":    "unknown key"} {
		if _, err := open(t, "[[organization]]\n"+text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	if _, err := open(t, strings.Repeat("[[organization]]\nsubdomain = \"a\"\n", 2)); err == nil {
		t.Error("an organization has rules twice")
	}
}

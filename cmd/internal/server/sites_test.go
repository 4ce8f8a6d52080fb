package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/cmd/internal/certificates"
)

// A server with a name shows its pages at no other name. Servers without one, such as those that are known by their IP
// address only, show them at every name.
func TestForeignHosts(t *testing.T) {
	always := []string{"", "127.0.0.1", "127.0.0.1:9991", "[::1]:9991", "[::1]", "10.1.2.3:80", "[2001:db8::1]",
		"localhost:9991", "chat.localhost", "parley", "parley:9991"}
	foreign := []string{"evil.example", "evil.example:9991", "example.org", "chat.example.org.evil.example",
		"xchat.example.org", "127.0.0.1.evil.example", "localhost.evil.example", "127.1"}
	named := []string{"chat.example.org", "chat.example.org:443", "chat.example.org.", "acme.chat.example.org",
		"www.chat.example.org", "missing.chat.example.org"}
	for _, x := range []struct {
		url, allowed, proxies string
		shows, refuses        []string
	}{
		{"https://chat.example.org", "", "", named, foreign},
		{"https://chat.example.org:8443", "", "10.0.0.1", named, foreign},
		{"https://Chat.Example.org", "", "", named, foreign},
		{"https://chat.example.org", " old.example.net, Other.example.com", "",
			[]string{"old.example.net:443", "other.example.com"}, append(foreign, "new.old.example.net")},
		{"https://chat.example.org", "*", "", append(named, foreign...), nil},
		{"http://127.0.0.1:9991", "", "", nil, foreign},
		{"http://localhost:9991", "", "", nil, foreign},
		{"http://[::1]:9991", "", "", nil, foreign},
		{"http://127.0.0.1:9991", "", "127.0.0.1", foreign, nil},
		{"http://:9991", "", "", foreign, nil},
		{"http://0.0.0.0:9991", "", "", foreign, nil},
		{"http://192.0.2.1:9991", "", "", foreign, nil},
		{"http://parley:9991", "", "", []string{"parley.lan"}, nil},
	} {
		settings := Settings{URL: x.url, AllowedHosts: x.allowed}
		settings.TrustedProxies = x.proxies
		sites := settings.newSites()
		for _, host := range append(always, x.shows...) {
			if sites.IsForeign(host) {
				t.Errorf("%s (allowed %q): %q is refused", x.url, x.allowed, host)
			}
		}
		for _, host := range x.refuses {
			if !sites.IsForeign(host) {
				t.Errorf("%s (allowed %q): %q is accepted", x.url, x.allowed, host)
			}
		}
	}
	certified := Settings{URL: "https://a.example.org", TLS: certificates.Settings{ACME: "a.example.org,b.example.org"}}
	if certified.newSites().IsForeign("b.example.org") {
		t.Error("a name of the certificates is refused")
	}
}

// At a foreign name there are no pages of the root organization, of any kind, and no form is accepted. The API answers
// as at the root organization, and /health always.
func TestForeignHostGetsNoPages(t *testing.T) {
	d := startDemo(t, func(s *Settings) { s.OpenOrganizations = true })
	ask := func(method, host, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, d.BaseURL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		r.Header.Set("Accept", "text/html")
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	for _, path := range []string{"/", "/login/", "/register/", "/new/", "/accounts/find/", "/accounts/go/",
		"/accounts/password/reset/", "/accounts/login/local/", "/accounts/sessions/", "/desktop_home"} {
		for _, method := range []string{"GET", "POST"} {
			status, body := ask(method, "evil.example.com", path)
			if status != 404 || strings.Contains(body, "<form") || strings.Contains(body, "Demo") ||
				!strings.Contains(body, "allowed-hosts") {
				t.Errorf("%s %s at a foreign name: %d %s", method, path, status, body)
			}
		}
		if status, body := ask("GET", "127.0.0.1", path); status == 404 && strings.Contains(body, "allowed-hosts") {
			t.Errorf("%s at the address: %d", path, status)
		}
	}
	for _, path := range []string{"/api/v1/server_settings", "/health"} {
		if status, _ := ask("GET", "evil.example.com", path); status != 200 {
			t.Errorf("%s at a foreign name: %d", path, status)
		}
	}
}

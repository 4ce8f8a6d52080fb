package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The page about the server is for owners of the root organization. Other roles get 403, visitors the login page.
func TestServerPagePermissions(t *testing.T) {
	_, at, data := browserDemo(t)
	if a := newBrowser(t, at).send("GET", "/admin/server", nil); a.status != 302 ||
		a.header.Get("Location") != "/login/?next=%2Fadmin%2Fserver" {
		t.Errorf("a visitor: %d %s", a.status, a.header.Get("Location"))
	}
	if a := newBrowser(t, at).send("GET", "/admin/server.json", nil); a.status != 401 {
		t.Errorf("the numbers for a visitor: %d", a.status)
	}
	for _, role := range []string{"owner", "administrator", "moderator", "member", "guest"} {
		email := role + "@server-page.example"
		if out, code := runParley("user", "create", "--data", data, "--email", email, "--name", role, "--role", role,
			"--password", browserPassword); code != 0 {
			t.Fatal(out)
		}
		b, want := newBrowser(t, at).logIn(email, browserPassword), 403
		if role == "owner" {
			want = 200
		}
		page, numbers := b.send("GET", "/admin/server", nil), b.send("GET", "/admin/server.json", nil)
		if page.status != want || numbers.status != want {
			t.Errorf("%s: page %d, numbers %d, want %d", role, page.status, numbers.status, want)
		}
		if strings.Contains(page.body, "Slowest turns") != (want == 200) {
			t.Errorf("%s: the page is\n%s", role, page.body)
		}
		if policy := page.header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "default-src 'none'") {
			t.Errorf("policy %q", policy)
		}
		if role == "owner" {
			stolen := b.copied()
			b.submit("/accounts/sessions/", "/accounts/sessions/", url.Values{"session": {b.sessionID()}})
			if a := stolen.send("GET", "/admin/server.json", nil); a.status != 401 {
				t.Errorf("a session that has ended: %d", a.status)
			}
		}
	}
}

// A message that is sent raises the number of send requests, which the debug address shows without a login.
func TestServerPageNumbers(t *testing.T) {
	debug := freeAddress(t)
	at := demo(t, t.TempDir(), "--debug-listen", debug).serving()
	get := func(path string) string {
		r, text := getText(t, "http://"+debug+path)
		if r.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, r.StatusCode, text)
		}
		return text
	}
	if text := get("/admin/server.json"); !strings.Contains(text, `"values":[{"key":"v0","text":"0"`) {
		t.Errorf("before the message: %s", text)
	}
	demoAccount(t, at, "ann@example.org").must(t, "POST", "messages",
		url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"t"}, "content": {"x"}})
	for end := time.Now().Add(binaryTimeout); ; time.Sleep(50 * time.Millisecond) {
		text := get("/admin/server.json")
		if strings.Contains(text, `"values":[{"key":"v0","text":"1"`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after the message: %s", text)
		}
	}
	if page := get("/admin/server"); !strings.Contains(page, "connections") {
		t.Errorf("the page has no bounds:\n%s", page)
	}
}

// With several organizations only owners of the root organization see the page: any visitor may own another one.
func TestServerPageOfOtherOrganizations(t *testing.T) {
	data := t.TempDir()
	for _, realm := range []string{"", "one"} {
		for _, args := range [][]string{{"realm", "create", "--name", "Org"},
			{"user", "create", "--email", "ann@example.org", "--name", "Ann", "--role", "owner", "--password",
				browserPassword}} {
			if out, code := runParley(append(args, "--realm", realm, "--data", data)...); code != 0 {
				t.Fatal(fmt.Sprint(args, out))
			}
		}
	}
	at := startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--url",
		"http://chat.example")).serving()
	for host, want := range map[string]int{"chat.example": 200, "one.chat.example": 403} {
		b := newBrowser(t, at)
		b.host = host
		b.logIn("ann@example.org", browserPassword)
		for _, path := range []string{"/admin/server", "/admin/server.json"} {
			if a := b.send("GET", path, nil); a.status != want {
				t.Errorf("%s at %s: %d, want %d", path, host, a.status, want)
			}
		}
	}
}

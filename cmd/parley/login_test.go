package main

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

// TestLoggingIn asks for keys with passwords: who does not exist, who has no password and who errs read the same.
func TestLoggingIn(t *testing.T) {
	p := start(t, parley("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
	at := p.serving()
	olive, nobody := demoPerson(t, at, "olive@example.org"), &person{at: at}
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
	a, err := nobody.call("POST", "fetch_api_key", login(" ida@EXAMPLE.org", password))
	if err != nil {
		t.Fatal(err)
	}
	ida := &person{at: at, email: "ida@example.org", key: a["api_key"].(string)}
	if me, err := ida.call("GET", "users/me", nil); err != nil || a["email"] != "Ida@example.org" || me["user_id"] != a["user_id"] {
		t.Errorf("logged in as %v, who is %v: %v", a, me, err)
	}
	for _, c := range []struct{ code, email, password string }{
		{"AUTHENTICATION_FAILED", "who@example.org", password},
		{"AUTHENTICATION_FAILED", "@", password},
		{"AUTHENTICATION_FAILED", "ann@example.org", password},
		{"AUTHENTICATION_FAILED", "demo-bot@example.org", ""},
		{"AUTHENTICATION_FAILED", "ann@example.org", ""},
		{"USER_DEACTIVATED", "gone@example.org", password},
		{"AUTHENTICATION_FAILED", "gone@example.org", "another"},
		{"BAD_REQUEST", "ida", password},
	} {
		refusedAs(t, nobody, c.code, "POST", "fetch_api_key", login(c.email, c.password))
	}
	refusedAs(t, nobody, "AUTHENTICATION_FAILED", "POST", "dev_fetch_api_key", url.Values{"username": {"who@example.org"}})
	for range 5 {
		refusedAs(t, nobody, "AUTHENTICATION_FAILED", "POST", "fetch_api_key", login("Ida@example.org", "wrong"))
	}
	refusedAs(t, nobody, "RATE_LIMIT_HIT", "POST", "fetch_api_key", login("ida@example.org", password))
	r, err := http.PostForm(at+"/api/v1/fetch_api_key", login("ida@example.org", password))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 429 || r.Header.Get("Retry-After") == "" {
		t.Errorf("clients are not told when to log in again: %d, %v", r.StatusCode, r.Header)
	}
}

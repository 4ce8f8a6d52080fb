package signon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// fakeGitHub answers as the documentation of GitHub's OAuth apps says. Its fields are the next answers.
type fakeGitHub struct {
	account, emails any
	challenge       string
	status          int // of the API; 0: 200
}

func (g *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/login/oauth/authorize":
		q := r.URL.Query()
		g.challenge = q.Get("code_challenge")
		query := url.Values{"code": {"one"}, "state": {q.Get("state")}}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+query.Encode(), http.StatusFound)
	case "/login/oauth/access_token":
		if r.PostFormValue("code") != "one" || r.PostFormValue("client_secret") != "a secret: with % and +" ||
			r.PostFormValue("code_verifier") == "" || g.challenge == "" {
			answer(map[string]any{"error": "bad_verification_code", "error_description": "expired"}) // with 200
			return
		}
		answer(map[string]any{"access_token": "gho_x", "token_type": "bearer", "scope": "read:user,user:email"})
	case "/api/v3/user", "/api/v3/user/emails":
		if r.Header.Get("Authorization") != "Bearer gho_x" {
			w.WriteHeader(401)
			return
		}
		if g.status != 0 {
			w.WriteHeader(g.status)
		}
		if strings.HasSuffix(r.URL.Path, "emails") {
			answer(g.emails)
			return
		}
		answer(g.account)
	default:
		http.NotFound(w, r)
	}
}

// startGitHub returns a fake GitHub and its client.
func startGitHub(t *testing.T) (*fakeGitHub, *Entry) {
	t.Helper()
	g := &fakeGitHub{account: map[string]any{"id": 583231, "login": "octocat", "name": "The Octocat"},
		emails: []map[string]any{{"email": "old@example.org", "primary": false, "verified": true},
			{"email": "octocat@example.org", "primary": true, "verified": true}}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	list, err := open(t, fmt.Sprintf("[[provider]]\nname = \"gh\"\npreset = \"github\"\nissuer = %q\n"+
		"client_id = \"c\"\nclient_secret_file = \"secret\"\nallow_insecure = true\n", server.URL))
	if err != nil {
		t.Fatal(err)
	}
	return g, list.Find("", GitHub, "gh")
}

// atGitHub makes a whole login; change may change the answer in the browser.
func atGitHub(t *testing.T, e *Entry, change func(url.Values)) (Identity, error) {
	t.Helper()
	f := NewFlow("http://127.0.0.1:9991/complete/github/")
	address, err := e.Begin(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultTransport.RoundTrip(mustRequest(t, address))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	to, err := r.Location()
	if err != nil {
		t.Fatal(err)
	}
	answer := to.Query()
	change(answer)
	return e.Finish(context.Background(), f, answer)
}

// A GitHub account is identified by its number. Only the primary address counts, and only if it is verified.
func TestGitHubLogin(t *testing.T) {
	g, e := startGitHub(t)
	same := func(url.Values) {}
	want := Identity{Issuer: e.Issuer, Subject: "583231", Email: "octocat@example.org", Verified: true,
		Name: "The Octocat"}
	if got, err := atGitHub(t, e, same); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("logged in as %+v, want %+v: %v", got, want, err)
	}
	g.emails = []map[string]any{{"email": "octocat@example.org", "primary": true, "verified": false}}
	if got, err := atGitHub(t, e, same); err != nil || got.Verified {
		t.Errorf("an address that is not verified: %+v %v", got, err)
	}
	g.emails = []any{}
	g.account = map[string]any{"id": 583231, "login": "octocat", "name": nil}
	if got, err := atGitHub(t, e, same); err != nil || got.Verified || got.Email != "" || got.Name != "octocat" {
		t.Errorf("an account without address and name: %+v %v", got, err)
	}
}

// Wrong answers of GitHub identify no account.
func TestGitHubAttacks(t *testing.T) {
	g, e := startGitHub(t)
	same := func(url.Values) {}
	for name, change := range map[string]func(url.Values){
		"another state":  func(q url.Values) { q.Set("state", "other") },
		"another code":   func(q url.Values) { q.Set("code", "other") },
		"another issuer": func(q url.Values) { q.Set("iss", "https://evil.example") },
		"no code":        func(q url.Values) { q.Del("code") },
	} {
		var failed *Error
		if who, err := atGitHub(t, e, change); !errors.As(err, &failed) || !reflect.DeepEqual(who, Identity{}) {
			t.Errorf("%s: %+v %v", name, who, err)
		}
	}
	for name, account := range map[string]any{"no number": map[string]any{"login": "octocat"}, "a list": []any{},
		"number 0": map[string]any{"id": 0}, "a text": map[string]any{"id": "583231"}} {
		g.account = account
		if who, err := atGitHub(t, e, same); err == nil {
			t.Errorf("%s: %+v", name, who)
		}
	}
	g.account, g.status = map[string]any{"id": 5}, 403
	if who, err := atGitHub(t, e, same); err == nil {
		t.Errorf("an API that refuses: %+v", who)
	}
}

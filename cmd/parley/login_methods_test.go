package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/wire/signon/signontest"
)

// loginMethods are the ways to log in, each with a session of an account of its own. The accounts are members.
func loginMethods(t *testing.T) (at string, sessions map[string]*browser) {
	t.Helper()
	p, d := signontest.New(t), signontest.NewDirectory(t, staff("carl")...)
	p.LogIn(signontest.Person{Subject: "7", Email: "jane@example.org", Name: "Jane Doe", Verified: true})
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "oidc"), p.ClientSecret+"\n")
	writeFile(t, filepath.Join(folder, "ldap"), "directory secret\n")
	file := filepath.Join(folder, "auth.toml")
	writeFile(t, file, fmt.Sprintf("[[provider]]\nname = \"company\"\ntype = \"oidc\"\nissuer = %q\nclient_id = %q\n"+
		"client_secret_file = \"oidc\"\nallow_insecure = true\n[[provider]]\nname = \"staff\"\ntype = \"ldap\"\n"+
		"urls = [%q]\nallow_insecure = true\nbase_dn = %q\nbind_dn = %q\nbind_password_file = \"ldap\"\n", p.URL,
		p.ClientID, d.URL, "ou=people,"+directoryBase, directorySearcher))
	at, data := passkeyDemo(t, "--login-limit", "0", "--auth-config", file)
	setDemoPasswords(t, data, "bo@example.org", "cy@example.org")
	demoAccount(t, at, "olive@example.org").must(t, "PATCH", "realm", url.Values{"invite_required": {"false"}})
	visit := func() *browser { return passkeyBrowser(t, at) }
	sessions = map[string]*browser{"password": visit().logIn("ann@example.org", browserPassword)}

	key, _ := visit().logIn("bo@example.org", browserPassword).addFactor()
	b := visit()
	b.tryLogIn("bo@example.org", browserPassword, "")
	b.submit(factorLogin, factorLogin, url.Values{"code": {appCode(t, key, time.Now())}})
	sessions["password and code"] = b

	device := signontest.NewDevice(passkeyOrigin)
	visit().logIn("cy@example.org", browserPassword).addPasskey(device, "Phone")
	b = visit()
	b.usePasskey(passkeyLogin, device)
	sessions["passkey"] = b

	b = visit()
	b.submit("/login/", "/accounts/login/local/", url.Values{"direct_email": {"di@example.org"}})
	sessions["development"] = b

	b = visit()
	b.atCompany()
	sessions["OpenID Connect"] = b

	b = visit()
	b.logInAs("carl", "of carl")
	sessions["directory"] = b
	for name, b := range sessions {
		if !b.loggedIn() {
			t.Fatalf("%s: not logged in", name)
		}
	}
	return at, sessions
}

// methodRequests are requests whose answers depend on the role.
func methodRequests(round string) []sessionRequest {
	return []sessionRequest{
		{"GET", "users/me", nil},
		{"PATCH", "realm", url.Values{"name": {"Demo"}}},
		{"POST", "invites/multiuse", url.Values{"invite_as": {"400"}}},
		{"POST", "invites/multiuse", url.Values{"invite_as": {"100"}}},
		{"POST", "user_groups/create", url.Values{"name": {round}, "description": {"x"}, "members": {"[]"}}},
		{"POST", "users/me/subscriptions", url.Values{"subscriptions": {`[{"name":"` + round + `"}]`}}},
		{"GET", "audit_log", nil},
		{"GET", "export/realm", nil},
		{"POST", "realm/domains", url.Values{"domain": {strings.ReplaceAll(round, " ", "-") + ".example.com"},
			"allow_subdomains": {"false"}}},
		{"POST", "realm/deactivate", url.Values{"no": {"x"}}},
	}
}

// sessionRequest is a request of a session.
type sessionRequest struct {
	method, path string
	form         url.Values
}

// Sessions have the same rights, whichever way their users have logged in: each role gets the same answers.
func TestSessionsOfEachMethod(t *testing.T) {
	at, sessions := loginMethods(t)
	olive := demoAccount(t, at, "olive@example.org")
	answers := map[string]map[string]bool{} // by request: those of all roles
	for _, role := range []string{"400", "300", "200", "600"} {
		first := map[string]string{}
		for name, b := range sessions {
			olive.must(t, "PATCH", fmt.Sprintf("users/%d", b.userID()), url.Values{"role": {role}})
			for i, x := range methodRequests(name + " " + role) {
				a := b.call(x.method, x.path, x.form)
				request := fmt.Sprint(i, " ", x.method, " ", x.path)
				answer := fmt.Sprint(a.status, a.json["code"], a.json["msg"])
				if want, known := first[request]; known && answer != want {
					t.Errorf("role %s, %s by %s: %q, others got %q", role, request, name, answer, want)
				}
				first[request] = answer
				if answers[request] == nil {
					answers[request] = map[string]bool{}
				}
				answers[request][answer] = true
			}
		}
	}
	different := 0
	for _, of := range answers {
		if len(of) > 1 {
			different++
		}
	}
	if different < 4 {
		t.Errorf("only %d requests depend on the role: %v", different, answers)
	}
	t.Logf("%d ways to log in, 4 roles, %d requests, of which %d depend on the role", len(sessions), len(answers),
		different)
}

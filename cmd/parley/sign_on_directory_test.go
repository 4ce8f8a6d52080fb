package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"parley/wire/signon/signontest"
)

const (
	directoryBase     = "dc=example,dc=org"
	directorySearcher = "cn=parley," + directoryBase
)

// directoryConfig writes a configuration with a directory and returns its path. more is further lines of TOML.
func directoryConfig(t *testing.T, address, more string) string {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "secret"), "directory secret\n")
	file := filepath.Join(folder, "auth.toml")
	writeFile(t, file, fmt.Sprintf("[[provider]]\nname = \"staff\"\ntype = \"ldap\"\nurls = [%q]\n"+
		"allow_insecure = true\nbase_dn = %q\nbind_dn = %q\nbind_password_file = \"secret\"\nsync_every = \"2s\"\n%s",
		address, "ou=people,"+directoryBase, directorySearcher, more))
	return file
}

// staff returns the entries of a test directory with people and the program that searches.
func staff(names ...string) []signontest.Entry {
	out := []signontest.Entry{{DN: directorySearcher, Password: "directory secret"}}
	for _, name := range names {
		out = append(out, signontest.Entry{DN: "uid=" + name + ",ou=people," + directoryBase,
			Password: "of " + name, Attributes: map[string][]string{"objectclass": {"person"}, "uid": {name},
				"cn": {"Staff " + name}, "mail": {name + "@example.net"}, "entryuuid": {"uuid-" + name},
				"memberof": {"cn=everyone," + directoryBase}}})
	}
	return out
}

// logInAs fills in the login form.
func (b *browser) logInAs(name, password string) webAnswer {
	b.Helper()
	return b.submit("/login/", "/login/", url.Values{"username": {name}, "password": {password}})
}

// keyByPassword asks for an API key as an app does.
func keyByPassword(t *testing.T, at, name, password string) webAnswer {
	t.Helper()
	form := url.Values{"username": {name}, "password": {password}}
	return newBrowser(t, at).send("POST", "/api/v1/fetch_api_key", form)
}

// Users of a directory log in with its names and passwords, in a browser and in an app. Their accounts follow the rules
// of the organization.
func TestDirectoryLogin(t *testing.T) {
	d := signontest.NewDirectory(t, staff("carl", "dora")...)
	_, at, _ := browserDemo(t, "--login-limit", "0", "--auth-config", directoryConfig(t, d.URL, ""))
	page := newBrowser(t, at).send("GET", "/login/", nil).body
	if !strings.Contains(page, `<input type="text" name="username"`) || strings.Contains(page, "Log in with staff") {
		t.Errorf("the login page takes no names, or has a button:\n%s", page)
	}
	a := newBrowser(t, at).send("GET", "/api/v1/server_settings", nil).json
	methods, _ := a["authentication_methods"].(map[string]any)
	if methods["ldap"] != true || a["require_email_format_usernames"] != false ||
		fmt.Sprint(a["external_authentication_methods"]) != "[]" {
		t.Errorf("server_settings: %v %v %v", methods, a["require_email_format_usernames"],
			a["external_authentication_methods"])
	}
	if a := newBrowser(t, at).logInAs("carl", "of carl"); !strings.Contains(a.body, "You need an invitation") {
		t.Errorf("a stranger where invitations are needed: %d\n%s", a.status, a.body)
	}
	olive := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	olive.must("PATCH", "realm", url.Values{"invite_required": {"false"}})
	carl := newBrowser(t, at)
	if a := carl.logInAs("carl", "of carl"); a.status != 302 || !carl.loggedIn() {
		t.Fatalf("the first login: %d\n%s", a.status, a.body)
	}
	me := carl.must("GET", "users/me", nil)
	if me["full_name"] != "Staff carl" || me["delivery_email"] != "carl@example.net" || me["role"] != 400.0 {
		t.Errorf("the account: %v", me)
	}
	for _, x := range [][2]string{{"carl", "of dora"}, {"carl", ""}, {"carl", "\x00"}, {"*", "of carl"},
		{"carl)(uid=*", "of carl"}, {"nobody", "of carl"}, {"parley", "directory secret"}} {
		b := newBrowser(t, at)
		if a := b.logInAs(x[0], x[1]); b.loggedIn() || a.status != 200 {
			t.Errorf("%q with %q: %d", x[0], x[1], a.status)
		}
		if a := keyByPassword(t, at, x[0], x[1]); a.status < 400 || a.json["api_key"] != nil {
			t.Errorf("%q with %q gets a key: %d %s", x[0], x[1], a.status, a.body)
		}
	}
	key := keyByPassword(t, at, "carl", "of carl")
	if key.json["email"] != "carl@example.net" {
		t.Fatalf("an app: %d %s", key.status, key.body)
	}
	second := keyByPassword(t, at, "dora", "of dora")
	dora := &account{url: at, email: "dora@example.net", key: fmt.Sprint(second.json["api_key"])}
	if got := dora.must(t, "GET", "users/me", nil)["full_name"]; got != "Staff dora" {
		t.Errorf("a new account by an app: %v", got)
	}
	d.GoDown(true)
	if a := keyByPassword(t, at, "carl", "of carl"); a.status != 400 || !strings.Contains(a.body, "cannot be reached") {
		t.Errorf("while the directory is down: %d %s", a.status, a.body)
	}
	newBrowser(t, at).logIn("olive@example.org", browserPassword) // accounts with passwords go on
}

// An account with the address of a person is connected after its password, in a browser.
func TestDirectoryConnectsAccounts(t *testing.T) {
	entries := staff("ann")
	entries[1].Attributes["mail"] = []string{"ann@example.org"}
	d := signontest.NewDirectory(t, entries...)
	_, at, _ := browserDemo(t, "--login-limit", "0", "--auth-config", directoryConfig(t, d.URL, ""))
	if a := keyByPassword(t, at, "ann", "of ann"); a.status != 400 || a.json["api_key"] != nil {
		t.Errorf("an app gets the account of an address: %d %s", a.status, a.body)
	}
	b := newBrowser(t, at)
	const finish = "/accounts/login/finish/"
	if a := b.logInAs("ann", "of ann"); a.header.Get("Location") != finish || b.loggedIn() {
		t.Fatalf("the account of an address: %d %v", a.status, a.header)
	}
	if a := b.submit(finish, finish, url.Values{"password": {"of ann"}}); b.loggedIn() {
		t.Errorf("the directory's password opens an account with another one: %d", a.status)
	}
	if a := b.submit(finish, finish, url.Values{"password": {browserPassword}}); !b.loggedIn() {
		t.Errorf("the account's password: %d\n%s", a.status, a.body)
	}
	if a := keyByPassword(t, at, "ann", "of ann"); a.json["email"] != "ann@example.org" {
		t.Errorf("after connecting: %d %s", a.status, a.body)
	}
}

// A second factor counts for passwords of a directory, too.
func TestDirectoryNeedsFactor(t *testing.T) {
	d := signontest.NewDirectory(t, staff("carl")...)
	_, at, _ := browserDemo(t, "--auth-config", directoryConfig(t, d.URL,
		"[[organization]]\nsubdomain = \"\"\nsecond_factor = \"members\"\n"))
	demoAccount(t, at, "olive@example.org").must(t, "PATCH", "realm", url.Values{"invite_required": {"false"}})
	b := newBrowser(t, at)
	if a := b.logInAs("carl", "of carl"); a.header.Get("Location") != "/accounts/login/factor/" || b.loggedIn() {
		t.Errorf("a login without a second factor: %d %v", a.status, a.header)
	}
	if a := keyByPassword(t, at, "carl", "of carl"); a.status < 400 || a.json["api_key"] != nil {
		t.Errorf("a key without a second factor: %d %s", a.status, a.body)
	}
}

// Changes of a directory become true within one comparison: roles, groups, names; and the end of the account,
// with its key, queue and session.
func TestDirectorySync(t *testing.T) {
	d := signontest.NewDirectory(t, staff("carl", "dora")...)
	_, at, _ := browserDemo(t, "--auth-config", directoryConfig(t, d.URL, "[[provider.rule]]\nclaim = \"memberOf\"\n"+
		"value = \"CN=admins,"+directoryBase+"\"\nrole = \"administrator\"\ngroups = [\"operators\"]\n"))
	olive := newBrowser(t, at).logIn("olive@example.org", browserPassword)
	olive.must("PATCH", "realm", url.Values{"invite_required": {"false"}})
	olive.must("POST", "user_groups/create", url.Values{"name": {"operators"}, "description": {""}, "members": {"[]"}})
	carl := newBrowser(t, at)
	carl.logInAs("carl", "of carl")
	id := carl.userID()
	key := keyByPassword(t, at, "carl", "of carl")
	app := &account{url: at, email: "carl@example.net", key: fmt.Sprint(key.json["api_key"])}
	queue := fmt.Sprint(app.must(t, "POST", "register", nil)["queue_id"])
	profile := func() map[string]any {
		u, _ := olive.must("GET", fmt.Sprintf("users/%d", id), nil)["user"].(map[string]any)
		return u
	}
	entries := staff("carl", "dora")
	entries[1].Attributes["memberof"] = []string{"cn=Admins," + directoryBase}
	entries[1].Attributes["cn"] = []string{"Carl Renamed"}
	d.Set(entries...)
	eventually(t, "the role and the name of the directory", func() bool {
		u := profile()
		return u["role"] == 200.0 && u["full_name"] == "Carl Renamed"
	})
	if groups := fmt.Sprint(olive.must("GET", "user_groups", nil)["user_groups"]); !strings.Contains(groups,
		fmt.Sprintf("members:[%d] name:operators", id)) {
		t.Errorf("the group has not the user: %s", groups)
	}
	d.Set(staff("carl", "dora")...)
	eventually(t, "the role is taken away", func() bool { return profile()["role"] == 400.0 })
	d.Set(staff()...) // no user at all: the configuration is wrong, not the people
	d.Set(staff("dora")...)
	eventually(t, "the account ends", func() bool { return profile()["is_active"] == false })
	if carl.loggedIn() {
		t.Error("the session goes on")
	}
	if a := newBrowser(t, at).logInAs("carl", "of carl"); a.status != 200 {
		t.Errorf("a login after the end: %d", a.status)
	}
	for _, path := range []string{"users/me", "events?dont_block=true&last_event_id=-1&queue_id=" + queue} {
		if a, err := app.call("GET", path, nil); err == nil {
			t.Errorf("%s with the key: %v", path, a)
		}
	}
	d.Set(staff("carl", "dora")...)
	eventually(t, "the account is back", func() bool { return profile()["is_active"] == true })
	if a := carl.logInAs("carl", "of carl"); a.status != 302 || carl.userID() != id {
		t.Errorf("the login of a person that is back: %d, user %d, want %d", a.status, carl.userID(), id)
	}
}

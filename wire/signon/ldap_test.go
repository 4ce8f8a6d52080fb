package signon

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire/signon/signontest"
)

const searcher = "cn=parley,dc=example,dc=org"

// person returns an entry of a test directory.
func person(name string) signontest.Entry {
	return signontest.Entry{DN: "uid=" + name + ",ou=people,dc=example,dc=org", Password: "secret of " + name,
		Attributes: map[string][]string{"objectclass": {"person"}, "uid": {name}, "cn": {"Person " + name},
			"mail": {name + "@example.org"}, "entryuuid": {"uuid-of-" + name}, "telephonenumber": {"+49 " + name}}}
}

// openDirectory returns the client of a test directory. more is further lines of TOML.
func openDirectory(t *testing.T, d *signontest.Directory, more string) *Entry {
	t.Helper()
	list, err := open(t, fmt.Sprintf("[[provider]]\nname = \"company\"\ntype = \"ldap\"\nurls = [%q]\n"+
		"allow_insecure = true\nbase_dn = \"dc=example,dc=org\"\nbind_dn = %q\nbind_password_file = \"secret\"\n",
		d.URL, searcher)+more)
	if err != nil {
		t.Fatal(err)
	}
	return list.Find("", LDAP, "company")
}

// newDirectory starts a directory with some people and the program that searches.
func newDirectory(t *testing.T, people ...signontest.Entry) *signontest.Directory {
	program := signontest.Entry{DN: searcher, Password: "a secret: with % and +"}
	return signontest.NewDirectory(t, append(people, program)...)
}

func logInLDAP(t *testing.T, e *Entry, name, password string) (Identity, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), MaxStep)
	defer cancel()
	return e.Directory.LogIn(ctx, name, password)
}

// A user of a directory is identified by an attribute that never changes, after a search and a bind.
func TestDirectoryLogin(t *testing.T) {
	d := newDirectory(t, person("ann"), person("bo"))
	e := openDirectory(t, d, "[provider.profile_fields]\n\"Phone\" = \"telephoneNumber\"\n"+
		"[[provider.rule]]\nclaim = \"uid\"\nvalue = \"ANN\"\nrole = \"moderator\"\ngroups = [\"a\"]\n"+
		"[[provider.rule]]\nclaim = \"mail\"\nvalue = \"*\"\nrole = \"member\"\n")
	want := Identity{Issuer: "ldap:company", Subject: "uuid-of-ann", Email: "ann@example.org", Verified: true,
		Name: "Person ann", Rules: []int{0, 1}, Fields: map[string]string{"Phone": "+49 ann"}}
	got, err := logInLDAP(t, e, "ann", "secret of ann")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("logged in as %+v, want %+v: %v", got, want, err)
	}
	p := e.Person(got, true)
	if p.Role != realm.Moderator || !slices.Equal(p.Groups, []string{"a"}) || p.Name != "Person ann" {
		t.Errorf("the person is %+v", p)
	}
	var steps []string
	ctx, cancel := context.WithTimeout(t.Context(), MaxStep)
	defer cancel()
	if err := e.Check(ctx, func(s string) { steps = append(steps, s) }); err != nil || len(steps) != 3 {
		t.Errorf("the check: %v %q", err, steps)
	}
}

// directoryAttacks are names and passwords that must identify no person.
var directoryAttacks = []struct{ what, name, password string }{
	{"wrong password", "ann", "wrong"},
	{"empty password: an anonymous bind", "ann", ""},
	{"a zero byte: an empty password for programs in C", "ann", "\x00"},
	{"a zero byte after the password", "ann", "secret of ann\x00"},
	{"the password of another user", "ann", "secret of bo"},
	{"no name", "", "secret of ann"},
	{"all names", "*", "secret of ann"},
	{"a part of a name", "an*", "secret of ann"},
	{"a filter", "ann)(uid=*", "secret of ann"},
	{"another filter", "x)(|(uid=ann))", "secret of ann"},
	{"a backslash", `\61nn`, "secret of ann"},
	{"a zero byte in the name", "ann\x00", "secret of ann"},
	{"the program that searches", "parley", "a secret: with % and +"},
	{"the DN of the program", searcher, "a secret: with % and +"},
	{"no text", "\xff", "secret of ann"},
	{"a long name", strings.Repeat("a", 255), "secret of ann"},
	{"a long password", "ann", strings.Repeat("a", 1025)},
}

// Attacks on a directory by names and passwords find no user, and passwords that are empty never reach it.
func TestDirectoryAttacks(t *testing.T) {
	d := newDirectory(t, person("ann"), person("bo"))
	e := openDirectory(t, d, "")
	for _, x := range directoryAttacks {
		before := len(d.Binds())
		who, err := logInLDAP(t, e, x.name, x.password)
		if !errors.Is(err, ErrNoEntry) || !reflect.DeepEqual(who, Identity{}) {
			t.Errorf("%s: %+v %v", x.what, who, err)
			continue
		}
		if x.password == "" && len(d.Binds()) != before {
			t.Errorf("%s: the directory was asked", x.what)
		}
		t.Logf("| %s | refused |", x.what)
	}
	for _, f := range d.Filters() {
		if strings.Count(f, "(") != 3 {
			t.Errorf("a name has changed the filter to %s", f)
		}
	}
	if _, err := logInLDAP(t, e, "ann", "secret of ann"); err != nil {
		t.Errorf("after the attacks: %v", err)
	}
	twins := []signontest.Entry{person("ann"), person("bo"), {DN: searcher, Password: "a secret: with % and +"}}
	twins[1].Attributes["uid"] = []string{"ann"}
	d.Set(twins...)
	var failed *Error
	if _, err := logInLDAP(t, e, "ann", "secret of ann"); !errors.As(err, &failed) {
		t.Errorf("two users with the same name: %v", err)
	}
}

// All users are read in pages, with those beyond 1,000, and binary identities.
func TestDirectoryPages(t *testing.T) {
	var people []signontest.Entry
	for i := range 2345 {
		x := person(fmt.Sprint("p", i))
		x.Attributes["objectguid"] = []string{string([]byte{byte(i), byte(i >> 8), 0xff, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
			10, 11, 12})}
		people = append(people, x)
	}
	d := newDirectory(t, people...)
	e := openDirectory(t, d, "id_attribute = \"objectGUID\"\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	seen := map[string]bool{}
	all, err := e.Directory.Each(ctx, func(s string) bool { return strings.HasPrefix(s, "hex:") },
		func(x DirectoryEntry, _ *Session) error {
			seen[x.Subject] = true
			return nil
		})
	if err != nil || all != 2345 || len(seen) != 2345 || !seen["hex:0102ff000102030405060708090a0b0c"] {
		t.Errorf("%d people, %d identities: %v", all, len(seen), err)
	}
	delete(people[7].Attributes, "objectguid")
	d.Set(append(people, signontest.Entry{DN: searcher, Password: "a secret: with % and +"})...)
	none := func(string) bool { return false }
	if all, err = e.Directory.Each(ctx, none, nil); err == nil {
		t.Errorf("a person without identity is skipped, so the account would be deactivated: %d", all)
	}
}

// Identities of 16 bytes are binary, also those that are text by chance.
func TestBinarySubjects(t *testing.T) {
	for raw, want := range map[string]string{"": "", "ann": "ann", "8f1c4d2e-0000-4000-8000-000000000000": "" +
		"8f1c4d2e-0000-4000-8000-000000000000", "sixteen is ascii": "hex:7369787465656e206973206173636969",
		"\x00\x01": "hex:0001", "\xff": "hex:ff"} {
		if got := subjectOf([]byte(raw)); got != want {
			t.Errorf("%q is %q, want %q", raw, got, want)
		}
	}
}

// Files with mistakes are refused with the key that is wrong.
func TestDirectoryConfig(t *testing.T) {
	good := map[string]string{"name": `"x"`, "type": `"ldap"`, "urls": `["ldaps://ldap.example.org"]`,
		"base_dn": `"dc=example"`}
	for _, x := range []struct{ key, value, want string }{
		{"urls", `[]`, "urls must have"}, {"urls", `["ldap://ldap.example.org"]`, "passwords need encryption"},
		{"urls", `["https://ldap.example.org"]`, "urls must have"}, {"base_dn", `""`, "base_dn is missing"},
		{"urls", `["ldaps://u:p@ldap.example.org"]`, "urls must have"},
		{"base_dn", `"nonsense"`, "base_dn"}, {"user_filter", `"(uid=x)"`, "must contain %s"},
		{"user_filter", `"(uid=%s"`, "user_filter"}, {"group_filter", `"(member=x)"`, "must contain %s"},
		{"bind_dn", `"cn=x"`, "belong together"}, {"allow_insecure", "true", "only for providers on this machine"},
		{"sync_every", `"1s"`, "sync_every"}, {"sync_every", `"soon"`, "sync_every"},
		{"bind_password_file", `"none"`, "belong together"},
		{"rule", `[{claim = "x", value = "y", role = "king"}]`, "role must be one of"},
		{"rule", `[{claim = "x", value = "y"}]`, "neither a role nor groups"},
		{"rule", `[{claim = "x", role = "owner"}]`, "claim and value are needed"},
	} {
		keys := map[string]string{x.key: x.value}
		text := "[[provider]]\n"
		for k, v := range good {
			if keys[k] == "" {
				keys[k] = v
			}
		}
		for k, v := range keys {
			text += k + " = " + v + "\n"
		}
		if _, err := open(t, text); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s = %s: %v, want %q", x.key, x.value, err, x.want)
		}
	}
	text := "[[provider]]\nname = \"ad\"\npreset = \"active-directory\"\nurls = [\"ldap://dc1.example.org\"]\n" +
		"start_tls = true\nbase_dn = \"dc=example\"\n"
	list, err := open(t, text)
	if err != nil {
		t.Fatal(err)
	}
	c := list.Find("", LDAP, "ad").config
	if c.IDAttribute != "objectGUID" || !strings.Contains(c.UserFilter, "userAccountControl") ||
		c.DisplayName != "Active Directory" || c.syncEvery != defaultSync {
		t.Errorf("the preset gives %+v", c.DirectoryConfig)
	}
}

// A directory that is down gives a reason; the second address is used.
func TestDirectoryDown(t *testing.T) {
	d := newDirectory(t, person("ann"))
	down := signontest.NewDirectory(t)
	down.GoDown(true)
	e := openDirectory(t, d, "")
	e.config.URLs = []string{"ldap://127.0.0.1:1", d.URL}
	if _, err := logInLDAP(t, e, "ann", "secret of ann"); err != nil {
		t.Errorf("the second address is not used: %v", err)
	}
	for _, addresses := range [][]string{{"ldap://127.0.0.1:1"}, {down.URL}} {
		e.config.URLs = addresses
		var failed *Error
		if _, err := logInLDAP(t, e, "ann", "secret of ann"); !errors.As(err, &failed) ||
			!strings.Contains(failed.Reason, "cannot be reached") {
			t.Errorf("%v: %v", addresses, err)
		}
	}
}

// A rule is about values of claims of a token, also inside others.
func TestRules(t *testing.T) {
	p := signontest.New(t)
	c := client(t, p, "[[provider.rule]]\nclaim = \"groups\"\nvalue = \"admins\"\nrole = \"administrator\"\n"+
		"[[provider.rule]]\nclaim = \"realm_access.roles\"\nvalue = \"guest\"\nrole = \"guest\"\n"+
		"[[provider.rule]]\nclaim = \"level\"\nvalue = \"7\"\ngroups = [\"seven\"]\n"+
		"[[provider.rule]]\nclaim = \"staff\"\nvalue = \"true\"\ngroups = [\"staff\"]\n")
	for _, x := range []struct {
		claims map[string]any
		want   []int
	}{
		{map[string]any{"groups": []string{"users", "admins"}}, []int{0}},
		{map[string]any{"groups": "admins"}, []int{0}},
		{map[string]any{"groups": []any{"ADMINS", map[string]any{}, nil, 5}}, nil},
		{map[string]any{"groups": map[string]any{"admins": true}}, nil},
		{map[string]any{"realm_access": map[string]any{"roles": []string{"guest"}}}, []int{1}},
		{map[string]any{"realm_access.roles": "guest"}, []int{1}},
		{map[string]any{"level": 7, "staff": true}, []int{2, 3}},
		{map[string]any{"staff": "false"}, nil},
		{map[string]any{}, nil},
	} {
		for _, inUserInfo := range []bool{false, true} {
			set := func(m map[string]any) {
				for k, v := range x.claims {
					m[k] = v
				}
			}
			p.Lie(signontest.Lies{Claims: set})
			if inUserInfo {
				p.Lie(signontest.Lies{UserInfo: set})
			}
			if got, err := logIn(t, c); err != nil || !slices.Equal(got.Rules, x.want) {
				t.Errorf("%v in the user info %t: rules %v, want %v: %v", x.claims, inUserInfo, got.Rules, x.want, err)
			}
		}
	}
}

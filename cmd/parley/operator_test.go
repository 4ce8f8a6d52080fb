package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Accounts and organizations of a server that does not run.
func TestOperatorCommands(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	try := func(input, line string, more ...string) (string, error) {
		t.Helper()
		words := strings.Fields(line)
		var out strings.Builder
		err := runOperator(words[0], append(append(words[1:], more...), "--data", data), strings.NewReader(input), &out)
		return out.String(), err
	}
	says := func(want, input, line string, more ...string) {
		t.Helper()
		out, err := try(input, line, more...)
		if err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: %q, %v; want %s", line, out, err, want)
		}
	}
	refuses := func(want, input, line string, more ...string) {
		t.Helper()
		if out, err := try(input, line, more...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", line, out, err, want)
		}
	}

	refuses("data directory: ", "", "realm list")
	refuses("data directory: ", "", "user create --email a@example.org --name A")
	if _, err := os.Stat(data); err == nil {
		t.Error("a command about nothing made a data directory")
	}
	says("id: 1\n", "", "realm create", "--name", "Example")
	says("id: 2\n", "", "realm create --realm two", "--name", "Two")
	refuses("There is a root organization already", "", "realm create --name Other")
	refuses("Organization 'two' exists already", "", "realm create --name Other --realm two")
	refuses("is not a subdomain", "", "realm create --name Other", "--realm", "Bad Name")
	refuses("unknown command", "", "realm rename")
	if err := runOperator("user", nil, nil, nil); err == nil || !strings.Contains(err.Error(), "usage: parley user") {
		t.Error(err)
	}

	says("api_key: [A-Za-z0-9]{32}\nemail: olive@example.org\n", "a long password\n", "user create --email olive@example.org --name Olive --role owner --password -")
	says("api_key: ", "", "user create --email olive@example.org --name Olive --realm two")
	refuses("Email is already in use", "", "user create --email olive@example.org --name Other")
	refuses("Enter a valid email address", "", "user create --email olive --name Other")
	refuses("--role is owner, administrator", "", "user create --email o@example.org --name Other --role emperor")
	refuses(`no organization "three"`, "", "user list --realm three")
	says("email=olive@example.org  name=Olive  role=100", "", "user list")
	says("email=olive@example.org  name=Olive  role=400", "", "user list --realm two")
	says("api_key: ", "", "user api-key --email olive@example.org")
	refuses(`no user "oliver@example.org"`, "", "user api-key --email oliver@example.org")
	refuses("read the password", "", "user password --email olive@example.org")
	says("", "another password\n", "user password --email olive@example.org")
	says("", "", "user grant --email olive@example.org --create-users true")

	says("id: 2", "", "realm close --realm two")
	says("closed=false .* subdomain= ", "", "realm list")
	says("closed=true .* subdomain=two", "", "realm list")
	says("", "", "realm reopen --realm two")
	says("closed=false .* subdomain=two", "", "realm list")
	says("state=realm 1 at .*\nstate=realm 2 at ", "", "realm digest")
}

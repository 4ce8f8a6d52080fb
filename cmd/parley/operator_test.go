package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The commands of an operator on a server that does not run.
func TestOperatorCommands(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	run := func(input, line string, more ...string) (string, error) {
		t.Helper()
		root, out := newRootCommand(), &strings.Builder{}
		root.SetIn(strings.NewReader(input))
		root.SetOut(out)
		root.SetArgs(append(append(strings.Fields(line), more...), "--data", data))
		err := root.Execute()
		return out.String(), err
	}
	prints := func(want, input, line string, more ...string) {
		t.Helper()
		out, err := run(input, line, more...)
		if err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: %q, %v; want %s", line, out, err, want)
		}
	}
	fails := func(want, input, line string, more ...string) {
		t.Helper()
		if out, err := run(input, line, more...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want %s", line, out, err, want)
		}
	}

	fails("data directory: ", "", "realm list")
	fails("data directory: ", "", "user create --email a@example.org --name A")
	if _, err := os.Stat(data); err == nil {
		t.Error("a command that needs a data directory created one")
	}
	prints("id: 1\n", "", "realm create", "--name", "Example")
	prints("id: 2\n", "", "realm create --realm two", "--name", "Two")
	fails("There is a root organization already", "", "realm create --name Other")
	fails("Organization 'two' exists already", "", "realm create --name Other --realm two")
	fails("is not a subdomain", "", "realm create --name Other", "--realm", "Bad Name")
	fails("must not begin with xn--", "", "realm create --name Other --realm xn--80ak6aa92e --allow-reserved")
	fails("reserved", "", "realm create --name Other --realm mail")
	prints("api_key: [A-Za-z0-9]{32}\nemail: olive@example.org\n", "a long password\n",
		"user create --email olive@example.org --name Olive --role owner --password -")
	prints("api_key: ", "", "user create --email olive@example.org --name Olive --realm two")
	fails("Email is already in use", "", "user create --email olive@example.org --name Other")
	fails("Enter a valid email address", "", "user create --email olive --name Other")
	fails("--role must be owner, administrator", "", "user create --email o@example.org --name Other --role emperor")
	fails(`no organization "three"`, "", "user list --realm three")
	prints("email=olive@example.org  name=Olive  role=100", "", "user list")
	prints("email=olive@example.org  name=Olive  role=400", "", "user list --realm two")
	prints("api_key: ", "", "user api-key --email olive@example.org")
	fails(`no user "oliver@example.org"`, "", "user api-key --email oliver@example.org")
	prints(`api_key: [A-Za-z0-9]{32}\n.*\nexpires: 20\d\d-.*\nid: 1\n`, "",
		"user keys --email olive@example.org --add script --expires-in 720h")
	prints("expires=20.*id=1  label=script  last_used=never", "", "user keys --email olive@example.org")
	fails("--expires-in must be a duration", "", "user keys --email olive@example.org --add x --expires-in soon")
	fails("API key does not exist", "", "user keys --email olive@example.org --revoke 2")
	prints("^$", "", "user keys --email olive@example.org --revoke 1")
	fails("read the password", "", "user password --email olive@example.org")
	prints("", "another password\n", "user password --email olive@example.org")
	fails("the password is too weak: use 8 to 100 characters", "password1\n", "user password --email olive@example.org")
	fails("the password is too weak", "", "user create --email weak@example.org --name Weak --password short")
	fails("the password is too weak", "\n", "user password --email olive@example.org")
	prints("", "", "user grant --email olive@example.org --create-users true")

	prints("^$", "", "retention list")
	fails("give --archive or --message", "", "retention restore")
	fails("--message must be the id of a message", "", "retention restore --message x")
	fails(`no archive "2020-01-01.retention.direct"`, "", "retention restore --archive 2020-01-01.retention.direct")
	fails("give --email or --channel", "", "retention hold add")
	fails(`no user "oliver@example.org"`, "", "retention hold add --email oliver@example.org")
	fails(`no channel "nowhere"`, "", "retention hold add --channel nowhere")
	prints("hold: 1", "", "retention hold add --email Olive@example.org --reason", "case 7")
	prints("hold: 2", "", "retention hold add --channel general")
	prints("hold=1  on=olive@example.org  reason=case 7  since=", "", "retention hold list")
	prints("hold: 1", "", "retention hold remove --hold 1")
	fails("no legal hold 1; parley retention hold list shows them", "", "retention hold remove --hold 1")
	prints("^hold=2  on=#general  reason=  since=[^\n]*\n$", "", "retention hold list")
	prints("^$", "", "retention hold list --realm two")

	prints("id: 2", "", "realm close --realm two")
	prints("closed=false .* subdomain= ", "", "realm list")
	prints("closed=true .* subdomain=two", "", "realm list")
	prints("", "", "realm reopen --realm two")
	prints("closed=false .* subdomain=two", "", "realm list")
	prints("state=realm 1 at .*\nstate=realm 2 at ", "", "realm digest")
	prints("id: 3\n", "", "realm create --name Mail --realm mail --allow-reserved")

	for line, want := range map[string]string{"realm rename": `unknown command "rename"`,
		"user": "usage: parley user "} {
		if out, code := runParley(strings.Fields(line)...); code != exitError || !strings.Contains(out, want) {
			t.Errorf("%s: code %d: %s", line, code, out)
		}
	}
}

// An address whose first part cannot be a name gets an owner, too, and the command says that no server runs.
func TestOwnerWithShortAddress(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	out, code := runParley("realm", "create", "--name", "Example", "--owner", "o@example.org", "--data", data)
	if code != 0 || !strings.Contains(out, "note: no server is running in "+data) {
		t.Errorf("%d: %s", code, out)
	}
	if out, _ := runParley("user", "list", "--data", data); !strings.Contains(out, "email=o@example.org  name=Owner") {
		t.Error(out)
	}
}

// Commands of root on a stopped server leave a directory that the server's user can open.
func TestCommandsOfRootKeepTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a directory of another user")
	}
	const nobody = 65534
	data := filepath.Join(t.TempDir(), "data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.Chown(data, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"realm create --name Example", "cluster init --node a --peer-listen 127.0.0.1:9"} {
		if out, code := runParley(append(strings.Fields(line), "--data", data)...); code != 0 {
			t.Fatal(out)
		}
		files := 0
		err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			var s syscall.Stat_t
			if err := syscall.Lstat(path, &s); err != nil || s.Uid != nobody {
				t.Errorf("after %s: %s belongs to user %d, %v", line, path, s.Uid, err)
			}
			files++
			return nil
		})
		if err != nil || files < 5 {
			t.Errorf("%d files, %v", files, err)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each command that an operator needs weekly works on a running server, refuses bad arguments, and is in the audit log.
func TestWeeklyOperatorCommands(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	run := func(line string) (string, int) {
		t.Helper()
		return runParley(append(strings.Fields(line), "--data", data)...)
	}
	for line, want := range map[string]string{
		"user role --email nobody@example.org --role member":    `no user "nobody@example.org"`,
		"user role --email ann@example.org --role emperor":      "--role must be owner",
		"user rename --email ann@example.org":                   "--name is required",
		"user deactivate --email olive@example.org --realm two": "no organization",
		"channel archive --channel nothing":                     `no channel "nothing"`,
		"mail test --to nobody":                                 "Enter a valid email address",
	} {
		if out, code := run(line); code == 0 || !strings.Contains(out, want) {
			t.Errorf("parley %s: code %d: %s", line, code, out)
		}
	}
	ann := demoAccount(t, at, "ann@example.org")
	for _, line := range []string{"user role --email ann@example.org --role moderator",
		"user rename --email bo@example.org --name Bo-Two", "user deactivate --email cy@example.org",
		"channel archive --channel general", "mail test --to ann@example.org"} {
		if out, code := run(line); code != 0 {
			t.Errorf("parley %s: %s", line, out)
		}
	}
	if me := ann.must(t, "GET", "users/me", nil); me["role"] != 300.0 {
		t.Errorf("Ann has the role %v", me["role"])
	}
	if _, err := ann.send("hello"); err == nil || !strings.Contains(err.Error(), "general") {
		t.Errorf("a message to an archived channel: %v", err)
	}
	if out, _ := run("channel list"); !strings.Contains(out, "archived=true") ||
		!strings.Contains(out, "name=general") {
		t.Errorf("the channels: %s", out)
	}
	if out, _ := run("user list"); !strings.Contains(out, "name=Bo-Two") ||
		!strings.Contains(out, "active=false  bot=false  email=cy@example.org") {
		t.Errorf("the users: %s", out)
	}
	if out, code := run("user reactivate --email cy@example.org"); code != 0 {
		t.Error(out)
	}
	demoAccount(t, at, "cy@example.org")
	log, _ := run("audit list")
	for _, want := range []string{`kind="user.role" via="operator" client="Operator" user="ann@example.org"`,
		`kind="user.deactivate" via="operator"`, `kind="user.reactivate"`, `kind="channel.archive" via="operator"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log lacks %s:\n%s", want, log)
		}
	}
	if mails, err := os.ReadDir(filepath.Join(data, "outbox")); err == nil && len(mails) == 0 {
		t.Error("the test email was not sent")
	}
}

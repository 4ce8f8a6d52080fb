package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
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
		"user role --email nobody@example.org --role member":       `no user "nobody@example.org"`,
		"user role --email ann@example.org --role emperor":         "--role must be owner",
		"user rename --email ann@example.org":                      "--name is required",
		"user deactivate --email olive@example.org --realm two":    "no organization",
		"channel archive --channel nothing":                        `no channel "nothing"`,
		"mail test --to nobody":                                    "Enter a valid email address",
		"channel owners --channel nothing":                         `no channel "nothing"`,
		"channel owners --channel general --add nobody@x.org":      `no user "nobody@x.org"`,
		"channel owners --channel general --remove cy@example.org": "is no owner of the channel",
		"invite revoke --id x":                                     "--id must be the number of an invitation",
		"invite revoke --id 77":                                    "No such invitation",
	} {
		if out, code := run(line); code == 0 || !strings.Contains(out, want) {
			t.Errorf("parley %s: code %d: %s", line, code, out)
		}
	}
	ann := demoAccount(t, at, "ann@example.org")
	testOwnersAndInvites(t, at, run)
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
		`kind="invitation.revoke" via="operator"`, `via="operator" client="Operator" channel="engineering"`,
		`kind="user.deactivate" via="operator"`, `kind="user.reactivate"`, `kind="channel.archive" via="operator"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log lacks %s:\n%s", want, log)
		}
	}
	if mails, err := os.ReadDir(filepath.Join(data, "outbox")); err == nil && len(mails) == 0 {
		t.Error("the test email was not sent")
	}
}

// testOwnersAndInvites makes a member the owner of a channel, who administers it then, and revokes invitations of an
// owner, whose links do not work then.
func testOwnersAndInvites(t *testing.T, at string, run func(line string) (string, int)) {
	t.Helper()
	bo, olive := demoAccount(t, at, "bo@example.org"), demoAccount(t, at, "olive@example.org")
	channel := 0
	for _, c := range bo.must(t, "GET", "streams", nil)["streams"].([]any) {
		if c := c.(map[string]any); c["name"] == "engineering" {
			channel = int(c["stream_id"].(float64))
		}
	}
	rename := func(text string) error {
		_, err := bo.call("PATCH", fmt.Sprintf("streams/%d", channel), url.Values{"description": {text}})
		return err
	}
	if channel == 0 || rename("not allowed") == nil {
		t.Fatal("a member changes a channel: this test would prove nothing")
	}
	if out, code := run("channel owners --channel engineering --add bo@example.org"); code != 0 ||
		!strings.Contains(out, "email=bo@example.org") {
		t.Errorf("the owners are %s", out)
	}
	if err := rename("changed by an owner of the channel"); err != nil {
		t.Error(err)
	}
	if out, code := run("channel owners --channel engineering --remove bo@example.org"); code != 0 ||
		strings.Contains(out, "bo@example.org") {
		t.Errorf("the owners are %s", out)
	}
	if rename("not allowed any more") == nil {
		t.Error("a user who is no owner any more changes the channel")
	}
	link := olive.must(t, "POST", "invites/multiuse", url.Values{"invite_as": {"400"}})["invite_link"].(string)
	olive.must(t, "POST", "invites", url.Values{"invitee_emails": {"new@example.net"}, "stream_ids": {"[]"}})
	out, _ := run("invite list")
	for _, want := range []string{"by=olive@example.org  email=  ", "email=new@example.net  ",
		"link=true  role=member"} {
		if !strings.Contains(out, want) {
			t.Errorf("the list of invitations lacks %q: %s", want, out)
		}
	}
	for _, m := range regexp.MustCompile(`id=(\d+)  link=(true|false)`).FindAllStringSubmatch(out, -1) {
		line := "invite revoke --id " + m[1]
		if m[2] == "true" {
			line += " --link"
		}
		if out, code := run(line); code != 0 {
			t.Error(out)
		}
	}
	if out, _ := run("invite list"); strings.Contains(out, "email") {
		t.Errorf("after all were revoked the list has %s", out)
	}
	r, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode == 200 && strings.Contains(string(text), "full_name") {
		t.Errorf("a revoked link shows the form: %d", r.StatusCode)
	}
}

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
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
		"user help --email ann@example.org":                        "A reason is required",
		"user help --email ann@example.org --for x":                "--for must be a time such as 30m",
		"user help --email ann@example.org --reason r --for 5h":    "must be between 60 and 14400 seconds",
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

// The link of parley user help logs an operator in as a user, once. The user sees that and ends it at once; it is in
// the audit log. The login makes no keys.
func TestOperatorHelpsUser(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	at := demo(t, data).serving()
	ann := demoAccount(t, at, "ann@example.org")
	help := func(more ...string) string {
		t.Helper()
		args := append([]string{"user", "help", "--email", "ann@example.org", "--data", data}, more...)
		out, code := runParley(args...)
		if code != 0 {
			t.Fatal(out)
		}
		return out
	}
	link := regexp.MustCompile(`link: (\S+)`).FindStringSubmatch(help("--reason", "asked by phone"))[1]
	get := func(b *http.Client, address string) string {
		t.Helper()
		r, err := b.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	token := regexp.MustCompile(`name="csrfmiddlewaretoken" value="([^"]+)"`)
	press := func(b *http.Client, address string, fields url.Values) string {
		t.Helper()
		fields.Set("csrfmiddlewaretoken", token.FindStringSubmatch(get(b, address))[1])
		r, err := b.PostForm(address, fields)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		return string(text)
	}
	newBrowser := func() *http.Client {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Client{Jar: jar}
	}
	operator, site := newBrowser(), link[:strings.Index(link, "/accounts/")]
	press(operator, link, url.Values{})
	me := site + "/json/users/me"
	if text := get(operator, me); !strings.Contains(text, "ann@example.org") {
		t.Fatalf("the operator is not logged in: %s", text)
	}
	if text := get(newBrowser(), link); !strings.Contains(text, "This link was used already") {
		t.Errorf("the link works twice: %s", text)
	}
	sessions := get(operator, site+"/accounts/sessions/")
	if !strings.Contains(sessions, "asked by phone") {
		t.Errorf("the list of sessions: %s", sessions)
	}
	got := ann.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"5"}, "num_after": {"0"},
		"narrow": {`[{"operator":"is","operand":"dm"}]`}})
	if text := fmt.Sprint(got["messages"]); !strings.Contains(text, "asked by phone") {
		t.Errorf("the messages to the user: %s", text)
	}
	id := regexp.MustCompile(`(?s)Login of the operator.*?name="session" value="(\d+)"`).FindStringSubmatch(sessions)[1]
	press(operator, site+"/accounts/sessions/", url.Values{"session": {id}}) // as the user's browser does
	if text := get(operator, me); !strings.Contains(text, "UNAUTHORIZED") {
		t.Errorf("an ended login still works: %s", text)
	}
	help("--reason", "asked again", "--for", "1h")
	if out := help("--end"); !strings.Contains(out, "ended: 1") {
		t.Errorf("the operator ends the login: %s", out)
	}
	log, _ := runParley("audit", "list", "--data", data)
	for _, want := range []string{`kind="login.help" via="operator"`, `name="asked by phone"`,
		`via="help session `, `kind="session.end" via="operator"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log lacks %s:\n%s", want, log)
		}
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

// A login to help a user makes and removes nothing with which one can log in later, also while it is new: neither
// passkeys nor factors nor connections to login providers, not even with the user's password.
func TestHelpChangesNoLogins(t *testing.T) {
	_, at, data := browserDemo(t)
	out, code := runParley("user", "help", "--email", "ann@example.org", "--reason", "asked by phone", "--data", data)
	link := regexp.MustCompile(`link: (\S+)`).FindStringSubmatch(out)
	if code != 0 || link == nil {
		t.Fatal(out)
	}
	path := link[1][strings.Index(link[1], "/accounts/"):]
	b := newBrowser(t, at)
	b.submit(path, path, nil)
	if !b.loggedIn() {
		t.Fatal("the operator is not logged in")
	}
	for _, page := range []string{"/accounts/passkeys/", "/accounts/factor/", "/accounts/identities/"} {
		for _, password := range []string{"", browserPassword} {
			a := b.submit("/accounts/sessions/", page, url.Values{"do": {"remove"}, "id": {"eA"}, "issuer": {"x"},
				"subject": {"x"}, "password": {password}})
			if !strings.Contains(a.body, "A login to help a user cannot do this.") {
				t.Errorf("%s with the password %q: %d\n%.2000s", page, password, a.status, a.body)
			}
		}
	}
}

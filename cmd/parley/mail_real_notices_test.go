package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/mail"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// mailReaderPackage reads signatures, for the reader in testdata/mail.
const mailReaderPackage = "dkimpy==1.1.8"

// mailboxReader reads mailboxes by IMAP, and signatures, with programs of others.
type mailboxReader struct {
	python, record string
	servers        *realMailServers
}

// readMail is a mail as the reader describes it.
type readMail struct {
	Header     map[string][]string
	Text, HTML string
	Signed     []string // the header fields that the signature covers
	Valid      bool     // the signature
	KeyName    []string `json:"key_name"`
	Defects    []string
}

// field returns a header field that a mail has once.
func (m readMail) field(t *testing.T, name string) string {
	t.Helper()
	if len(m.Header[name]) != 1 {
		t.Fatalf("the mail has %s %d times: %v", name, len(m.Header[name]), m.Header)
	}
	return m.Header[name][0]
}

// newMailboxReader installs the reader. record is the text of the DNS record of the key.
func newMailboxReader(t *testing.T, s *realMailServers, record string) *mailboxReader {
	t.Helper()
	folder := filepath.Join(s.folder, "python")
	python := filepath.Join(folder, "bin", "python3")
	t.Logf("installing %s into %s", mailReaderPackage, folder)
	for _, c := range [][]string{{"python3", "-m", "venv", folder},
		{python, "-m", "pip", "install", "-q", mailReaderPackage}} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s cannot be installed, so mailboxes are not read: %v\n%s", mailReaderPackage, err, out)
		}
	}
	return &mailboxReader{python, record, s}
}

// folder returns the mails of a folder of a user.
func (r *mailboxReader) folder(t *testing.T, user, folder string) (list []readMail) {
	t.Helper()
	host, port, _ := net.SplitHostPort(r.servers.imap)
	c := exec.Command(r.python, "testdata/mail/read_mailbox.py", host, port, user, "secret", folder, r.record)
	var errors strings.Builder
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errors)
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// wait waits for a mail with a subject.
func (r *mailboxReader) wait(t *testing.T, user, subject string) (found readMail) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q is in the mailbox of %s", subject, user), func() bool {
		for _, m := range r.folder(t, user, "INBOX") {
			if strings.Contains(strings.Join(m.Header["subject"], ""), subject) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// checkNotice checks the fields and parts that all emails of the server have.
func checkNotice(t *testing.T, m readMail, to string) {
	t.Helper()
	if from, err := mail.ParseAddress(m.field(t, "from")); err != nil || *from != (mail.Address{Name: "Chat",
		Address: "noreply@chat.example"}) {
		t.Errorf("from %v, %v", from, err)
	}
	if a, err := mail.ParseAddress(m.field(t, "to")); err != nil || a.Address != to {
		t.Errorf("to %v, %v, want %s", a, err, to)
	}
	if got := m.field(t, "auto-submitted"); got != "auto-generated" {
		t.Errorf("Auto-Submitted is %q", got)
	}
	if id := m.field(t, "message-id"); !regexp.MustCompile(`^<[^<>@\s]+@chat\.example>$`).MatchString(id) {
		t.Errorf("Message-ID is %q", id)
	}
	if _, err := mail.ParseDate(m.field(t, "date")); err != nil {
		t.Error(err)
	}
	if !m.Valid || !slices.Equal(m.KeyName, []string{"parley._domainkey.chat.example."}) {
		t.Errorf("the signature is valid: %v, by the key %v", m.Valid, m.KeyName)
	}
	for _, name := range []string{"from", "to", "subject", "date", "message-id", "auto-submitted", "list-unsubscribe",
		"list-unsubscribe-post", "content-type", "mime-version"} {
		if m.Header[name] != nil && !slices.Contains(m.Signed, name) {
			t.Errorf("the signature does not cover %s, but %v", name, m.Signed)
		}
	}
	if m.Text == "" || !strings.HasPrefix(m.HTML, "<!doctype html>") || len(m.Defects) > 0 {
		t.Errorf("text %q, HTML %q, defects %v", m.Text, m.HTML, m.Defects)
	}
}

// oneClick unsubscribes as a mail program does it with one click, and returns the status.
func oneClick(t *testing.T, m readMail) int {
	t.Helper()
	at := strings.Trim(m.field(t, "list-unsubscribe"), "<>")
	name, value, _ := strings.Cut(m.field(t, "list-unsubscribe-post"), "=")
	for _, method := range []string{"GET", "HEAD"} { // programs that examine links switch nothing off
		r, err := http.NewRequest(method, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
	}
	a, err := http.PostForm(at, url.Values{name: {value}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	io.Copy(io.Discard, a.Body)
	return a.StatusCode
}

// digestMorning returns how far a clock must be ahead of the system's to show nine o'clock, UTC, of the day some days
// from now, and the number of that day in its week, from 0 for Monday.
func digestMorning(days int) (ahead time.Duration, weekday string) {
	now := time.Now().UTC()
	morning := now.Truncate(24*time.Hour).AddDate(0, 0, days).Add(9 * time.Hour)
	return morning.Sub(now), fmt.Sprint(int(morning.Weekday()+6) % 7)
}

// The emails that the server sends by itself arrive in real mailboxes, signed: the one for a new account, the reminder
// of an invitation, which can still be accepted, and the weekly digest. The digest has nothing that its reader muted,
// left, or may not read, and one click ends it.
func TestMailThroughRealServersOfNotices(t *testing.T) {
	s := startMailServers(t, "", "")
	key, record := realMailKey(t, s)
	reader := newMailboxReader(t, s, record)
	host, port, _ := net.SplitHostPort(s.smtp)
	clock := filepath.Join(s.folder, "clock")
	setClock := func(ahead time.Duration) { writeFile(t, clock, ahead.String()) }
	setClock(0)
	cmd := parleyCommand("serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", freeAddress(t), "--demo",
		"--smtp-host", host, "--smtp-port", port, "--smtp-tls", "none", "--smtp-from", "Chat <noreply@chat.example>",
		"--dkim-key", key)
	cmd.Env = append(cmd.Env, clockFile+"="+clock)
	at := startProgram(t, cmd).serving()
	olive := demoAccount(t, at, "olive@example.org")
	morning, weekday := digestMorning(6) // within the week of the messages, five days after the users were here
	olive.must(t, "PATCH", "realm", url.Values{"digest_emails_enabled": {"true"}, "digest_weekday": {weekday}})

	olive.must(t, "POST", "invites", url.Values{"invitee_emails": {"kai@example.org, lou@example.org"},
		"stream_ids": {"[]"}, "invite_expires_in_minutes": {fmt.Sprint(7 * 24 * 60)}})
	invitation := reader.wait(t, "kai@example.org", "Olive Owner has invited you to join Parley Demo")
	checkNotice(t, invitation, "kai@example.org")
	joinByMail(t, at, invitation, "Kai Wolf")
	welcome := reader.wait(t, "kai@example.org", "Welcome to Parley Demo")
	checkNotice(t, welcome, "kai@example.org")
	if welcome.Header["list-unsubscribe"] != nil || !strings.Contains(welcome.Text, at) {
		t.Errorf("the email for a new account is\n%s\n%v", welcome.Text, welcome.Header)
	}
	prepareDigest(t, at)

	setClock(morning) // the invitations end in a day
	reminder := reader.wait(t, "lou@example.org", "Reminder: Olive Owner has invited you")
	checkNotice(t, reminder, "lou@example.org")
	joinByMail(t, at, reminder, "Lou Berg")
	digest := reader.wait(t, "bo@example.org", "Your week in Parley Demo")
	checkNotice(t, digest, "bo@example.org")
	checkDigest(t, at, digest)
	if status := oneClick(t, digest); status != http.StatusOK {
		t.Errorf("one click: %d", status)
	}
	reader.wait(t, "cy@example.org", "Your week in Parley Demo")

	sendToGeneral(t, demoAccount(t, at, "ann@example.org"), "boats", "a week later")
	again, _ := digestMorning(13)
	setClock(again)
	eventually(t, "Cy gets the next digest", func() bool {
		return count(reader.folder(t, "cy@example.org", "INBOX"), "Your week in") == 2
	})
	// The digests are made in the order of the accounts, and Bo's is before Cy's.
	all := reader.folder(t, "bo@example.org", "INBOX")
	if count(all, "Your week in") != 1 {
		t.Error("Bo got a digest after the click")
	}
	for _, m := range all {
		if strings.Contains(m.Text+m.HTML, "SECRET") {
			t.Errorf("%v has\n%s", m.Header["subject"], m.Text)
		}
	}
	if list := reader.folder(t, "kai@example.org", "INBOX"); count(list, "Reminder") > 0 {
		t.Error("Kai was reminded of an invitation that is accepted")
	}
}

// count returns how many mails have a text in their subject.
func count(list []readMail, subject string) (n int) {
	for _, m := range list {
		if strings.Contains(strings.Join(m.Header["subject"], ""), subject) {
			n++
		}
	}
	return n
}

// joinByMail accepts an invitation with the link of an email.
func joinByMail(t *testing.T, at string, m readMail, name string) {
	t.Helper()
	link := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(at) + `(/join/\S+)$`).FindStringSubmatch(m.Text)
	if link == nil || !strings.Contains(m.HTML, `<a href="`+link[0]+`">`) {
		t.Fatalf("no link in\n%s\n%s", m.Text, m.HTML)
	}
	a := newBrowser(t, at).submit(link[1], link[1], url.Values{"full_name": {name}, "password": {browserPassword}})
	if a.status != http.StatusFound {
		t.Fatalf("joining: %d\n%s", a.status, a.body)
	}
}

// sendToGeneral sends a message to the channel general and returns its id.
func sendToGeneral(t *testing.T, who *account, topic, text string) string {
	t.Helper()
	return fmt.Sprint(who.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"},
		"topic": {topic}, "content": {text}})["id"])
}

// prepareDigest sends messages: some for the digest of Bo, and others, with the word SECRET, that are not.
func prepareDigest(t *testing.T, at string) {
	t.Helper()
	olive, ann, bo, cy := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org"),
		demoAccount(t, at, "bo@example.org"), demoAccount(t, at, "cy@example.org")
	id := func(who *account) string { return fmt.Sprint(who.must(t, "GET", "users/me", nil)["user_id"]) }
	boID, cyID := id(bo), id(cy)
	channels := map[string]string{}
	for _, name := range []string{"muted", "left", "closed"} {
		olive.must(t, "POST", "users/me/subscriptions", url.Values{"subscriptions": {`[{"name":"` + name + `"}]`},
			"principals":  {"[" + boID + "," + cyID + "," + id(olive) + "," + id(ann) + "]"},
			"invite_only": {fmt.Sprint(name == "closed")}})
		channels[name] = fmt.Sprint(olive.must(t, "GET", "get_stream_id", url.Values{"stream": {name}})["stream_id"])
		ann.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {name}, "topic": {"SECRET topic"},
			"content": {"SECRET in " + name}})
	}
	bo.must(t, "POST", "users/me/subscriptions/properties", url.Values{"subscription_data": {
		`[{"stream_id":` + channels["muted"] + `,"property":"is_muted","value":true}]`}})
	bo.must(t, "DELETE", "users/me/subscriptions", url.Values{"subscriptions": {`["left"]`}})
	olive.must(t, "DELETE", "users/me/subscriptions", url.Values{"subscriptions": {`["closed"]`},
		"principals": {"[" + boID + "]"}})
	general := fmt.Sprint(olive.must(t, "GET", "get_stream_id", url.Values{"stream": {"general"}})["stream_id"])
	bo.must(t, "POST", "user_topics", url.Values{"stream_id": {general}, "topic": {"SECRET muted"},
		"visibility_policy": {"1"}})
	bo.must(t, "POST", "users/me/muted_users/"+cyID, nil)
	sendToGeneral(t, ann, "SECRET muted", "SECRET in a muted topic")
	sendToGeneral(t, cy, "boats", "SECRET of a muted user")
	deleted := sendToGeneral(t, ann, "boats", "SECRET deleted")
	moved := sendToGeneral(t, ann, "boats", "SECRET moved")
	sendToGeneral(t, ann, "boats", "who rows on <b>Monday</b> & \"why\"?")
	edited := sendToGeneral(t, ann, "boats", "SECRET before")
	read := sendToGeneral(t, ann, "SECRET read", "SECRET read")
	ann.must(t, "PATCH", "messages/"+edited, url.Values{"content": {"after the edit"}})
	olive.must(t, "DELETE", "messages/"+deleted, nil)
	olive.must(t, "PATCH", "messages/"+moved, url.Values{"stream_id": {channels["closed"]}})
	bo.must(t, "POST", "messages/flags", url.Values{"messages": {"[" + read + "]"}, "op": {"add"}, "flag": {"read"}})
	for _, who := range []*account{ann, cy} {
		who.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {"[" + boID + "]"}, "content": {"hello"}})
	}
}

// checkDigest checks the digest of Bo.
func checkDigest(t *testing.T, at string, m readMail) {
	t.Helper()
	for _, want := range []string{"Hello Bo Park,", "Direct messages: 1\n",
		"#general > boats (new messages: 2, senders: 1)",
		"Ann Lee: who rows on <b>Monday</b> & \"why\"?", "Ann Lee: after the edit", at + "/#narrow/channel/",
		at + "/accounts/unsubscribe/digest/"} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("the digest has no %q:\n%s", want, m.Text)
		}
	}
	if !strings.Contains(m.HTML, "who rows on &lt;b&gt;Monday&lt;/b&gt; &amp;") || strings.Contains(m.HTML, "<b>") {
		t.Errorf("the HTML of the digest:\n%s", m.HTML)
	}
	if got := m.field(t, "list-unsubscribe"); !strings.HasPrefix(got, "<"+at+"/accounts/unsubscribe/digest/") {
		t.Errorf("List-Unsubscribe is %s", got)
	}
}

// realMailKey makes a key for signatures, and returns its file and the text of its DNS record.
func realMailKey(t *testing.T, s *realMailServers) (path, record string) {
	t.Helper()
	path = filepath.Join(s.folder, "dkim.pem")
	if out, err := exec.Command("openssl", "genpkey", "-algorithm", "rsa", "-out", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	der, err := exec.Command("sh", "-c", "openssl pkey -in "+path+" -pubout -outform DER | base64 -w0").Output()
	if err != nil {
		t.Fatal(err)
	}
	return path, "v=DKIM1; k=rsa; p=" + string(der)
}

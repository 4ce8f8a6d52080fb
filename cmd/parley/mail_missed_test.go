package main

import (
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// Direct messages that an offline user does not read are emailed, one email for a conversation, although the server is
// killed before.
func TestMissedMessagesAreMailed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	bo.must(t, "PATCH", "settings", url.Values{"email_notifications_batching_period_seconds": {"3"}})
	me := fmt.Sprintf("[%v]", bo.must(t, "GET", "users/me", nil)["user_id"])
	for _, text := range []string{"the first", "the *second*"} {
		ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {me}, "content": {text}})
	}
	p.kill()
	p = startProgram(t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0", "--demo"))
	p.serving()
	eventually(t, "one email to Bo contains both", func() bool {
		list, _ := filepath.Glob(filepath.Join(data, "outbox", "*.eml"))
		n := 0
		for _, name := range list {
			text, err := os.ReadFile(name)
			if err == nil && strings.Contains(string(text), "To: <bo@example.org>") &&
				strings.Contains(string(text), "the first") && strings.Contains(string(text), "the second") {
				n++
			}
		}
		return n == 1
	})
}

// smtpInbox is an SMTP server that accepts every email.
type smtpInbox struct {
	received chan receivedEmail
	seen     []receivedEmail // by the test
}

// receivedEmail is an email as it arrived.
type receivedEmail struct {
	to, subject, text string
	header            mail.Header
}

func newSMTPInbox(t *testing.T) (*smtpInbox, []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &smtpInbox{received: make(chan receivedEmail, 100)}
	s := smtp.NewServer(b)
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return b, []string{"--smtp-host", "127.0.0.1", "--smtp-port", port, "--smtp-tls", "none"}
}

// NewSession is called for every connection.
func (b *smtpInbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &smtpSession{box: b}, nil }

type smtpSession struct {
	box *smtpInbox
	to  string
}

func (*smtpSession) Mail(string, *smtp.MailOptions) error        { return nil }
func (p *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error { p.to = to; return nil }
func (*smtpSession) Reset()                                      {}
func (*smtpSession) Logout() error                               { return nil }

func (p *smtpSession) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(m.Body)
	p.box.received <- receivedEmail{p.to, m.Header.Get("Subject"), string(text), m.Header}
	return err
}

// next returns the next email to an address that contains a text; it skips other emails.
func (b *smtpInbox) next(t *testing.T, to, says string) receivedEmail {
	t.Helper()
	for end := time.After(binaryTimeout); ; {
		select {
		case d := <-b.received:
			b.seen = append(b.seen, d)
			if d.to == to && strings.Contains(d.text, says) {
				return d
			}
		case <-end:
			t.Fatalf("no email to %s contains %q", to, says)
		}
	}
}

// Messages in followed topics, and in channels with email notifications, reach the mail server. The subject contains
// the organization for users with another account on this server, and for users who always want it.
func TestMissedMessageEmails(t *testing.T) {
	box, flags := newSMTPInbox(t)
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data, flags...)
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	bo.must(t, "PATCH", "settings", url.Values{"email_notifications_batching_period_seconds": {"1"}})
	bo.must(t, "POST", "user_topics", url.Values{"stream_id": {"1"}, "topic": {"boats"}, "visibility_policy": {"3"}})
	say := func(topic, text string) {
		t.Helper()
		ann.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {topic},
			"content": {text}})
	}
	subject := func(says, want string) {
		t.Helper()
		if d := box.next(t, "bo@example.org", says); d.subject != want {
			t.Errorf("the subject is %q, want %q", d.subject, want)
		}
	}
	say("cars", "not emailed")
	say("boats", "a boat")
	subject("a boat", "#general > boats")
	if out, code := runParley("realm", "create", "--name", "Other", "--realm", "other", "--data", data); code != 0 {
		t.Fatal(out)
	}
	if out, code := runParley("user", "create", "--email", "Bo@example.org", "--name", "Bo", "--realm", "other",
		"--data", data); code != 0 {
		t.Fatal(out)
	}
	say("boats", "a ship")
	subject("a ship", "[Parley Demo] #general > boats")
	bo.must(t, "PATCH", "settings", url.Values{"realm_name_in_email_notifications_policy": {"3"}})
	say("boats", "a canoe")
	subject("a canoe", "#general > boats")
	bo.must(t, "POST", "users/me/subscriptions/properties",
		url.Values{"subscription_data": {`[{"stream_id":1,"property":"email_notifications","value":true}]`}})
	say("cars", "a lorry")
	subject("a lorry", "#general > cars")
	if out, code := runParley("realm", "close", "--realm", "other", "--data", data); code != 0 {
		t.Fatal(out)
	}
	bo.must(t, "PATCH", "settings", url.Values{"realm_name_in_email_notifications_policy": {"1"}})
	say("cars", "a van")
	subject("a van", "#general > cars")
	bo.must(t, "PATCH", "settings", url.Values{"realm_name_in_email_notifications_policy": {"2"}})
	say("cars", "a bus")
	subject("a bus", "[Parley Demo] #general > cars")
	for _, d := range box.seen {
		if strings.Contains(d.text, "not emailed") {
			t.Errorf("an unwanted email: %+v", d)
		}
	}
}

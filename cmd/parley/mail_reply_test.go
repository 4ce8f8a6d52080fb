package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
)

// sendMail sends a mail to a server, as a mail server does.
func sendMail(t *testing.T, at, from, to, text string) error {
	t.Helper()
	c, err := smtp.Dial(at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.SendMail(from, []string{to}, strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n")))
}

// newest returns the newest message that a user can read.
func (p *account) newest(t *testing.T) map[string]any {
	t.Helper()
	a := p.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"1"}, "num_after": {"0"},
		"apply_markdown": {"false"}})
	return a["messages"].([]any)[0].(map[string]any)
}

// A user answers an email about missed messages with a mail, also after the server was killed. The answer arrives in
// the conversation with its file, and nobody else can use the address.
func TestReplyToMissedMessageEmail(t *testing.T) {
	box, flags := newSMTPInbox(t)
	smtpAddress, data := freeAddress(t), t.TempDir()
	flags = append(flags, "--mail-listen", smtpAddress, "--mail-dmarc=false", "--mail-domain", "chat.example")
	p := demo(t, data, flags...)
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	bo.must(t, "PATCH", "settings", url.Values{"email_notifications_batching_period_seconds": {"1"}})
	id := func(who *account) string { return fmt.Sprint(who.must(t, "GET", "users/me", nil)["user_id"]) }
	ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {"[" + id(bo) + "]"},
		"content": {"who *rows*?"}})
	email := box.next(t, "bo@example.org", "who rows?")
	address, err := email.header.AddressList("Reply-To")
	if err != nil || !strings.HasSuffix(address[0].Address, "@chat.example") ||
		!strings.Contains(email.text, "Reply to this email to answer") {
		t.Fatalf("the email cannot be answered: %v %v", email.header, err)
	}
	for _, h := range []string{"List-Unsubscribe", "List-Unsubscribe-Post"} {
		if email.header.Get(h) == "" {
			t.Errorf("the email has no %s", h)
		}
	}
	p.kill()
	at = demo(t, data, flags...).serving()
	reply := "From: Bo <bo@example.org>\nSubject: Re: " + email.subject + "\nContent-Type: multipart/mixed; " +
		"boundary=b\n\n--b\nContent-Type: text/plain\n\nI do\n\nOn Mon, Nov 13, 2023 Parley wrote:\n" +
		"> Ann: who rows?\n> x\n--b\nContent-Type: text/plain\nContent-Disposition: attachment; " +
		"filename=\"plan.txt\"\n\nthe plan\n--b--\n"
	for name, text := range map[string]string{
		"another sender": strings.ReplaceAll(reply, "bo@", "eve@"),
		"a vacation":     "Auto-Submitted: auto-replied\n" + reply,
		"nothing":        "From: bo@example.org\n\n\n",
	} {
		if err := sendMail(t, smtpAddress, "x@example.com", address[0].Address, text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := sendMail(t, smtpAddress, "bo@example.org", address[0].Address, reply); err != nil {
		t.Fatal(err)
	}
	ann = demoAccount(t, at, "ann@example.org")
	got := ann.newest(t)
	content := fmt.Sprint(got["content"])
	if got["sender_email"] != "bo@example.org" && got["sender_full_name"] != "Bo" || got["type"] != "private" ||
		!strings.HasPrefix(content, "I do\n\n[plan.txt](/user_uploads/") || strings.Contains(content, "who") {
		t.Fatalf("the reply became %v", got)
	}
	_, path, _ := strings.Cut(strings.TrimSuffix(content, ")"), "](")
	if got := ann.download(t, path); got != "the plan" {
		t.Errorf("the file is %q", got)
	}
}

package mail

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"

	"parley/actors/realm"
	"parley/wire"
)

// fakeReplies takes the replies of ann@example.org, user 7 of organization 2.
type fakeReplies struct {
	fakeChannels
	tools *wire.Tools
	now   time.Time
	fail  error
	got   []string
}

func (b *fakeReplies) FindReply(address string) (wire.MailReply, error) {
	return wire.FindReply(b.tools, address, b.now)
}

func (b *fakeReplies) ReplySender(r wire.MailReply) (string, error) {
	if r.Realm != 2 || r.User != 7 {
		return "", nil
	}
	return "Ann@Example.org", nil
}

func (b *fakeReplies) PostReply(r wire.MailReply, m wire.IncomingMail) error {
	if b.fail == nil {
		b.got = append(b.got, r.Message.String()+": "+m.Text)
	}
	return b.fail
}

func newFakeReplies() (*fakeReplies, *Receiver, string) {
	b := &fakeReplies{now: time.Unix(1_700_000_000, 0), tools: &wire.Tools{ChannelMailPattern: "%s@chat.example",
		Sign: signForTest}}
	x := &Receiver{Mailboxes: b, Senders: SenderCheck{AddressOnly: true}, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return b.now }}
	return b, x, wire.ReplyAddress(b.tools, wire.MailReply{Realm: 2, EmailReply: realm.EmailReply{User: 7, Message: 55},
		Until: b.now.Add(wire.ReplyValidity).Unix()})
}

func signForTest(text string) string {
	mac := hmac.New(sha256.New, []byte("a secret of the test"))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// deliver sends a mail as a mail server does.
func (x *Receiver) deliver(sender, to, mail string) error {
	r, err := x.recipient(to)
	if err != nil {
		return err
	}
	return x.receive(strings.NewReader(strings.ReplaceAll(mail, "\n", "\r\n")), sender, []mailRecipient{r})
}

// A reply contains what its writer has written, and nothing of the mail that it answers.
func TestReplyTexts(t *testing.T) {
	b, x, address := newFakeReplies()
	const quoted = "\n> Bo: who rows?\n> \n> Reply to this email to answer, or read it here:\n"
	for mail, want := range map[string]string{
		"\n\nI do\n": "I do",
		"\n\nI do\n\nOn Mon, Nov 13, 2023 at 10:00 AM Parley <noreply@chat.example> wrote:\n" + quoted: "I do",
		"\n\nI do\n\n-----Original Message-----\nFrom: Parley\nSent: today\n\nBo: who rows?\n":         "I do",
		"\n\nI do\n\nAm 13.11.2023 um 10:00 schrieb Parley:\n" + quoted + "\n-- \nAnn\nSales":          "I do",
		"\n\nI do\n\nSent from my phone\n":       "I do",
		"\n\nI do\n\nVon meinem iPhone gesendet": "I do",
		"\n\nI do\n-- \nAnn\n":                   "I do",
		"\nContent-Type: text/html\n\n<p>I do</p><div class=gmail_quote>On Monday Bo wrote:<blockquote>who " +
			"rows?</blockquote></div>": "I do",
		"\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nI do\n--b\nContent-Type: text/html\n\n" +
			"<p>I <b>do</b></p>\n--b--\n": "I do",
	} {
		b.got = nil
		mail = "From: Ann <ann@example.org>\nSubject: Re: x" + mail
		err := x.deliver("ann@example.org", strings.ToUpper(address), mail)
		if err != nil || len(b.got) != 1 || b.got[0] != "55: "+want {
			t.Errorf("%q: posted %q, %v", mail, b.got, err)
		}
	}
	for _, mail := range []string{
		"\n\n", "\n\n-- \nAnn\n",
		"\n\nOn Mon, Nov 13, 2023 at 10:00 AM Parley <noreply@chat.example> wrote:\n" + quoted,
		"\nContent-Type: text/html\n\n<div class=gmail_quote>who rows?</div>",
	} {
		b.got = nil
		err := x.deliver("ann@example.org", address, "From: ann@example.org\nSubject: Re: x"+mail)
		if !errors.Is(err, errNothingNew) || len(b.got) != 0 {
			t.Errorf("%q: posted %q, %v", mail, b.got, err)
		}
	}
}

// Only people reply, and only the person who got the email.
func TestRepliesAreRefused(t *testing.T) {
	const from, ann = "From: Ann <ann@example.org>\n", "ann@example.org"
	for name, c := range map[string]struct {
		sender, head string
		want         error
	}{
		"vacation":            {ann, from + "Auto-Submitted: auto-replied (vacation)\n", errAutomatic},
		"program":             {ann, from + "auto-submitted: Auto-Generated; x=y\n", errAutomatic},
		"list":                {ann, from + "List-Id: <list.example.org>\n", errAutomatic},
		"report by envelope":  {"", from, errAutomatic},
		"report by path":      {ann, from + "Return-Path: <>\n", errAutomatic},
		"report by type":      {ann, from + "Content-Type: multipart/report; boundary=b\n", errAutomatic},
		"bulk":                {ann, from + "Precedence: Bulk\n", errAutomatic},
		"automatic":           {ann, from + "X-Autoreply: yes\n", errAutomatic},
		"another sender":      {"eve@example.org", "From: eve@example.org\n", errOtherSender},
		"name of the sender":  {ann, "From: \"ann@example.org\" <eve@example.org>\n", errOtherSender},
		"encoded sender":      {ann, "From: =?utf-8?q?ann=40example.org=2C?= <eve@example.org>\n", errOtherSender},
		"two senders":         {ann, "From: ann@example.org, eve@example.org\n", errOtherSender},
		"two fields":          {ann, from + "From: eve@example.org\n", errOtherSender},
		"no sender":           {ann, "", errOtherSender},
		"longer domain":       {ann, "From: ann@example.org.eve.example\n", errOtherSender},
		"submitted by people": {ann, from + "Auto-Submitted: no\n", nil},
	} {
		b, x, address := newFakeReplies()
		err := x.deliver(c.sender, address, c.head+"Subject: x\n\nhello\n")
		if err != c.want && !errors.Is(err, c.want) || (c.want == nil) != (len(b.got) == 1) {
			t.Errorf("%s: %v, posted %q", name, err, b.got)
		}
	}
}

// A reply address is for one message and one person, ends, and cannot be changed.
func TestReplyAddresses(t *testing.T) {
	b, x, address := newFakeReplies()
	mail := "From: ann@example.org\n\nhello\n"
	if err := x.deliver("a", address, mail); err != nil {
		t.Fatal(err)
	}
	local, _, _ := strings.Cut(address, "@")
	if len(local) > 64 {
		t.Errorf("the local part has %d characters", len(local))
	}
	for i := len("reply."); i < len(local); i++ {
		for _, c := range "a7" {
			changed := local[:i] + string(c) + local[i+1:]
			if r, err := b.FindReply(changed + "@chat.example"); changed != local && err == nil {
				t.Fatalf("%s is accepted as %+v", changed, r)
			}
		}
	}
	for _, other := range []string{"reply.@chat.example", "reply." + strings.Repeat("a", 500), local[:20],
		local + "aa", "reply.ü@x"} {
		if err := x.deliver("a", other, mail); !errors.Is(err, errUnknownReply) {
			t.Errorf("%q: %v", other, err)
		}
	}
	b.now = b.now.Add(wire.ReplyValidity)
	if err := x.deliver("a", address, mail); !errors.Is(err, errReplyExpired) || len(b.got) != 1 {
		t.Errorf("after the end: %v, %q", err, b.got)
	}
}

// The sender learns why a reply was refused. A failure that passes lets mail servers send the reply again.
func TestRepliesThatCannotBePosted(t *testing.T) {
	const why = "Not authorized to send to channel 'plans'"
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{realm.BadRequest(why), 554, why},
		{realm.Refuse(realm.Busy, "X", "full"), 451, "again later"},
		{errors.New("disk"), 451, "again later"},
	} {
		b, x, address := newFakeReplies()
		b.fail = c.err
		var got *smtp.SMTPError
		err := x.deliver("a", address, "From: ann@example.org\n\nhello\n")
		if !errors.As(err, &got) || got.Code != c.code || !strings.Contains(got.Message, c.text) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
	b, x, address := newFakeReplies()
	for range maxRepliesPerHour {
		if err := x.deliver("a", address, "From: ann@example.org\n\nhello\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.deliver("a", address, "From: ann@example.org\n\nhello\n"); !errors.Is(err, errTooMany) {
		t.Errorf("one more: %v", err)
	}
	b.now = b.now.Add(time.Hour)
	if err := x.deliver("a", address, "From: ann@example.org\n\nhello\n"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	s := &smtpSession{server: &SMTPServer{receiver: x}}
	if err := errors.Join(s.Rcpt(address, nil), s.Rcpt(address, nil)); !errors.Is(err, errOneByOne) || len(s.to) != 1 {
		t.Errorf("two recipients: %v", err)
	}
}

// If the sender's domain asks for signatures, a reply needs one of that domain.
func TestSendersAreChecked(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	const mail = "From: Ann <ann@example.org>\r\nTo: x@chat.example\r\nSubject: x\r\n\r\nhello\r\n"
	signed := func(domain string, fields ...string) string {
		var b bytes.Buffer
		if err := dkim.Sign(&b, strings.NewReader(mail), &dkim.SignOptions{Domain: domain, Selector: "s",
			Signer: private, HeaderKeys: fields}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	key := "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)
	for name, c := range map[string]struct {
		policy string
		mail   string
		want   error
	}{
		"no policy":             {"", mail, nil},
		"policy none":           {"v=DMARC1; p=none", mail, nil},
		"unsigned":              {"v=DMARC1; p=reject", mail, errForged},
		"quarantine":            {"v=DMARC1; p=quarantine", mail, errForged},
		"signed":                {"v=DMARC1; p=reject", signed("example.org"), nil},
		"signed below":          {"v=DMARC1; p=reject", signed("mail.example.org"), nil},
		"strict, signed below":  {"v=DMARC1; p=reject; adkim=s", signed("mail.example.org"), errForged},
		"signed by another":     {"v=DMARC1; p=reject", signed("example.net"), errForged},
		"changed":               {"v=DMARC1; p=reject", signed("example.org") + "more\r\n", errForged},
		"no key":                {"v=DMARC1; p=reject", signed("nokey.example.org"), errForged},
		"key not to be had":     {"v=DMARC1; p=reject", signed("down.example.org"), errNotNow},
		"policy not to be had":  {"down", mail, errNotNow},
		"policy that is broken": {"v=DMARC1; p=maybe", mail, errForged},
	} {
		check := SenderCheck{LookupTXT: func(name string) ([]string, error) {
			switch {
			case name == "_dmarc.example.org" && c.policy == "down", strings.Contains(name, "down"):
				return nil, errors.New("no answer")
			case name == "_dmarc.example.org" && c.policy != "":
				return []string{c.policy}, nil
			case strings.HasPrefix(name, "s._domainkey.") && !strings.Contains(name, "nokey"):
				return []string{key}, nil
			}
			return nil, &net.DNSError{IsNotFound: true}
		}}
		if got := check.check(strings.NewReader(c.mail), mailHeader{"from": "Ann <ann@example.org>"},
			"ann@example.org"); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

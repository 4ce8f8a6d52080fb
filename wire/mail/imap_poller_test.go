package mail

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
)

// mailbox is an IMAP server with one mailbox.
type mailbox struct {
	user *imapmemserver.User
	c    IMAPConfig
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	b := &mailbox{user: imapmemserver.NewUser("parley", "secret")}
	if err := b.user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	memory := imapmemserver.New()
	memory.AddUser(b.user)
	s := imapserver.New(&imapserver.Options{InsecureAuth: true, Caps: imap.CapSet{imap.CapIMAP4rev1: {},
		imap.CapUIDPlus: {}}, NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
		return memory.NewSession(), nil, nil
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	b.c = IMAPConfig{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "parley", Password: "secret",
		Security: Plain, Folder: "INBOX", Domain: "chat.example"}
	return b
}

func (b *mailbox) add(t *testing.T, mail string) {
	t.Helper()
	mail = strings.ReplaceAll(mail, "\n", "\r\n")
	text := literal{strings.NewReader(mail), int64(len(mail))}
	if _, err := b.user.Append("INBOX", text, &imap.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
}

type literal struct {
	*strings.Reader
	size int64
}

func (l literal) Size() int64 { return l.size }

// count returns the number of mails in the mailbox.
func (b *mailbox) count(t *testing.T) uint32 {
	t.Helper()
	s, err := b.user.Status("INBOX", &imap.StatusOptions{NumMessages: true})
	if err != nil {
		t.Fatal(err)
	}
	return *s.NumMessages
}

// Mails of a mailbox are posted once and removed. Refused ones stay and are not tried again; others are tried again.
func TestMailboxIsPolled(t *testing.T) {
	b := newMailbox(t)
	replies, receiver, address := newFakeReplies()
	replies.fakeChannels.posts = make(chan [2]string, 10)
	p := &IMAPPoller{c: b.c, receiver: receiver, log: slog.New(slog.DiscardHandler)}
	look := func(left uint32, posted ...string) {
		t.Helper()
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := b.count(t); n != left || !slices.Equal(replies.got, posted) {
			t.Errorf("%d mails are left, want %d; posted %q, want %q", n, left, replies.got, posted)
		}
		replies.got = nil
	}
	look(0)
	b.add(t, "Return-Path: <ann@example.org>\nFrom: ann@example.org\nTo: Parley <"+address+">\nSubject: Re: x\n"+
		"\nI do\n")
	b.add(t, "From: x@example.org\nTo: list@example.net\nDelivered-To: plans."+token+"@chat.example\nSubject: s\n"+
		"\nhello\n")
	look(0, "55: I do")
	if got := <-replies.posts; got != [2]string{"s", "hello"} {
		t.Errorf("the channel got %q", got)
	}
	b.add(t, "From: eve@example.org\nTo: "+address+"\n\nforged\n")
	b.add(t, "Return-Path: <>\nFrom: ann@example.org\nTo: "+address+"\n\nI am away\n")
	b.add(t, "From: ann@example.org\nTo: parley@chat.example\n\nhello\n")
	b.add(t, "From: ann@example.org\nTo: "+address+"\n\n"+strings.Repeat(strings.Repeat("x", 70)+"\n", maxMailBytes/70))
	b.add(t, "From: ann@example.org\nTo: "+address+"\n\nthe second\n")
	replies.fail = errors.New("disk")
	look(5)
	replies.fail = nil
	look(4, "55: the second")
	look(4)
	b.c.Password = "wrong"
	if err := (&IMAPPoller{c: b.c, receiver: receiver}).look(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "log in") {
		t.Errorf("a wrong password: %v", err)
	}
}

// Emails of the server that a user's mailbox forwards to a channel are refused: each would cause the next one.
func TestOwnEmailsAreNotPosted(t *testing.T) {
	b, x, _ := newFakeReplies()
	b.fakeChannels.posts = make(chan [2]string, 10)
	x.Own = "Parley <noreply@chat.example>"
	to := "plans." + token + "@chat.example"
	for from, want := range map[string]error{
		`"Chat" <NoReply@chat.example>`: errOwnMail, "noreply@chat.example": errOwnMail,
		"noreply@example.org": nil, `"noreply@chat.example" <ann@example.org>`: nil, "": nil} {
		err := x.deliver("ann@example.org", to, "From: "+from+"\nSubject: s\n\nwho rows?\n")
		if !errors.Is(err, want) || (err == nil) != (len(b.posts) == 1) {
			t.Errorf("from %s: %v, %d messages", from, err, len(b.posts))
		}
		for len(b.posts) > 0 {
			<-b.posts
		}
	}
}

// twoChannels knows the addresses of two channels.
type twoChannels struct{ fakeChannels }

func (twoChannels) Known(t string) bool { return t == token || t == otherToken }

const otherToken = "543210zyxwvutsrqponmlkjihgfedcba"

// Each copy of a mail is posted to the recipient of the copy: not to all that its header names. Mail servers say in
// different fields who that is.
func TestMailboxHasCopies(t *testing.T) {
	p := &IMAPPoller{c: IMAPConfig{Domain: "chat.example"}, receiver: &Receiver{Mailboxes: twoChannels{}}}
	for name, x := range map[string]struct {
		header string
		want   []string
	}{
		"a copy for one of two": {"X-Original-To: B\nTo: A\n", []string{otherToken}},
		"the mailbox itself":    {"Delivered-To: all@chat.example\nTo: A\nCc: B, A\n", []string{token, otherToken}},
		"a forwarded mail": {"Delivered-To: all@box.example\nDelivered-To: B\nTo: list@box.example\n",
			[]string{otherToken}},
		"Received and To":        {"Received: by a for <B>; now\nTo: A\n", []string{token}},
		"no address of a domain": {"Received: by a for <all>; now\nTo: list@box.example\n", nil},
		"only Received": {"Received: from a by b with LMTP for <all>; now\nReceived: from c by d\n\tfor <B>; now\n" +
			"Received: from e by f for <list@box.example>\nTo: list@box.example\n", []string{otherToken}},
	} {
		t.Run(name, func(t *testing.T) {
			header := strings.NewReplacer("A", "plans."+token+"@chat.example", "B", "crew."+otherToken+"@chat.example").
				Replace(x.header)
			to, err := p.recipientsOfCopy(readHeader(newMailLines(strings.NewReader(header+"\nhello\n")), nil))
			var got []string
			for _, r := range to {
				got = append(got, r.token)
			}
			if !slices.Equal(got, x.want) || (err == nil) != (x.want != nil) {
				t.Errorf("the recipients are %q, %v, want %q", got, err, x.want)
			}
		})
	}
}

// Mails that cannot be posted for now do not keep out later ones: each look begins where the last one ended.
func TestMailboxIsPolledInTurn(t *testing.T) {
	b := newMailbox(t)
	replies, receiver, address := newFakeReplies()
	p := &IMAPPoller{c: b.c, receiver: receiver, log: slog.New(slog.DiscardHandler)}
	for range maxMailsPerLook {
		b.add(t, "From: ann@example.org\nTo: "+address+"\n\nwaits\n")
	}
	b.add(t, "From: ann@example.org\nTo: "+address+"\n\nthe last\n")
	replies.fail = errors.New("disk")
	if err := p.look(t.Context()); err != nil || b.count(t) != maxMailsPerLook+1 {
		t.Fatalf("%d mails are left: %v", b.count(t), err)
	}
	replies.fail = nil
	if err := p.look(t.Context()); err != nil || len(replies.got) == 0 || replies.got[0] != "55: the last" {
		t.Errorf("the second look posts %q: %v", replies.got, err)
	}
}

// Settings of a mailbox that cannot work are refused.
func TestMailboxSettings(t *testing.T) {
	good := IMAPConfig{Port: 993, User: "u", Security: TLS, Folder: "INBOX"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*IMAPConfig){
		func(c *IMAPConfig) { c.Port = 0 }, func(c *IMAPConfig) { c.Port = 65536 },
		func(c *IMAPConfig) { c.Security = "ssl" }, func(c *IMAPConfig) { c.User = "" },
		func(c *IMAPConfig) { c.Folder = "" },
	} {
		c := good
		if change(&c); c.Check() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

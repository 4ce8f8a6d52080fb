package mail

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
)

const token = "abcdefghijklmnopqrstuvwxyz012345"

// inbox takes what comes for one token.
type inbox struct{ posts chan [2]string }

func (b inbox) Known(t string) bool { return t == token }

func (b inbox) Post(t, topic, text string) error {
	if strings.Contains(text, "refuse me") {
		return errors.New("no")
	}
	b.posts <- [2]string{topic, text}
	return nil
}

// open has a gate serve; served gets what Serve returns.
func (b inbox) open(t *testing.T) (g *Gate, address string, served chan error) {
	t.Helper()
	g = NewGate("example.com", b, slog.New(slog.DiscardHandler))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served = make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	return g, l.Addr().String(), served
}

func TestMailComesInForChannels(t *testing.T) {
	b := inbox{make(chan [2]string, 10)}
	g, at, served := b.open(t)
	send := func(to, text string) error {
		c, err := smtp.Dial(at)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.SendMail("ann@example.org", []string{to}, strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n")))
	}
	address := "plans." + strings.ToUpper(token) + ".show-sender@example.com"
	for _, x := range []struct{ mail, topic, text string }{
		{"From: Ann <ann@example.org>\nSubject: Re: FWD: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n\nHello\nthere\n", "Gr\u00fc\u00dfe", "From: \"Ann\" (ann@example.org)\n\nHello\nthere"},
		{"Subject: page\nContent-Type: text/html; charset=iso-8859-1\n\n<head><style>p{}</style></head><p>One &amp; <b>two</b></p><script>x()</script><div>three</div>\n", "page", "One & two\nthree"},
		{"Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>page</p>\n--b\nContent-Type: text/plain\n\nplain\n--b--\n", "Email with no subject", "plain"},
	} {
		if err := send(address, x.mail); err != nil {
			t.Fatal(err)
		}
		if got := <-b.posts; got != [2]string{x.topic, x.text} {
			t.Errorf("posted %q, want %q in %q", got, x.text, x.topic)
		}
	}
	var refused *smtp.SMTPError
	if err := send("plans."+strings.Repeat("x", 32)+"@example.com", "Subject: x\n\nx\n"); !errors.As(err, &refused) || refused.Code != 550 {
		t.Errorf("an unknown address: %v", err)
	}
	if err := send(address, "Subject: x\n\nrefuse me\n"); !errors.As(err, &refused) || refused.Code != 554 {
		t.Errorf("a mail that is not posted: %v", err)
	}
	if err := send(address, "Subject: x\n\n"+strings.Repeat(strings.Repeat("x", 70)+"\n", maxIncoming/70)); !errors.As(err, &refused) || refused.Code != 552 {
		t.Errorf("too large a mail: %v", err)
	}
	g.Close(context.Background())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Whoever is slow does not hold up a gate that closes: nothing of half a mail is posted, and its sender is told to try again.
func TestHalfAMailDoesNotKeepTheGateOpen(t *testing.T) {
	for name, half := range map[string]string{
		"nothing yet":    "",
		"half a header":  "MAIL FROM:<ann@example.org>\r\nRCPT TO:<" + token + "@example.com>\r\nDATA\r\nSubject: x",
		"half a text":    "MAIL FROM:<ann@example.org>\r\nRCPT TO:<" + token + "@example.com>\r\nDATA\r\nSubject: x\r\n\r\nhello",
		"a part of many": "MAIL FROM:<ann@example.org>\r\nRCPT TO:<" + token + "@example.com>\r\nDATA\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nplain\r\n--b\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := inbox{make(chan [2]string, 10)}
			g, at, served := b.open(t)
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			said := bufio.NewReader(c)
			answer := func() string {
				t.Helper()
				for {
					line, err := said.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					if line[3] == ' ' {
						return line[:3]
					}
				}
			}
			answer()
			io.WriteString(c, "EHLO ann\r\n")
			answer()
			io.WriteString(c, half)
			for range strings.Count(half[:max(0, strings.Index(half, "DATA\r\n"))], "\r\n") + min(1, strings.Count(half, "DATA")) {
				answer()
			}
			ctx, cancel := context.WithTimeout(context.Background(), gateTimeout/2)
			defer cancel()
			if err := g.Close(ctx); err != nil {
				t.Error("close:", err)
			}
			want := "421"
			if strings.Contains(half, "DATA") {
				want = "451"
			}
			if got := answer(); got != want {
				t.Errorf("the sender was told %s, not %s", got, want)
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
			if len(b.posts) > 0 {
				t.Errorf("posted: %q", <-b.posts)
			}
		})
	}
}

package mail

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"parley/actors/realm"
	"parley/wire"
)

const token = "abcdefghijklmnopqrstuvwxyz012345"

// fakeChannels records the mails for one token, and their attachments as name: content.
type fakeChannels struct {
	posts chan [2]string
	files chan []string
}

func (b fakeChannels) Known(t string) bool { return t == token }

func (b fakeChannels) FindReply(string) (wire.MailReply, error) {
	return wire.MailReply{}, wire.ErrReplyAddress
}
func (b fakeChannels) ReplySender(wire.MailReply) (string, error)        { return "", nil }
func (b fakeChannels) PostReply(wire.MailReply, wire.IncomingMail) error { return nil }

func (b fakeChannels) Post(t string, m wire.IncomingMail) error {
	if strings.Contains(m.Text, "refuse me") {
		return realm.BadRequest("no")
	}
	b.posts <- [2]string{m.Topic, m.Text}
	var files []string
	for _, f := range m.Files {
		for range 2 { // a mail to two channels is posted twice
			f.Content.Seek(0, io.SeekStart)
			content, err := io.ReadAll(f.Content)
			if err != nil {
				return err
			}
			files = append(files, f.Name+": "+string(content))
		}
	}
	if b.files != nil {
		b.files <- files
	}
	return nil
}

// open starts a server; served receives the result of Serve.
func (b fakeChannels) open(t *testing.T) (g *SMTPServer, address string, served chan error) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	g = NewSMTPServer("example.com", &Receiver{Mailboxes: b, Log: log, Now: time.Now}, log)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served = make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	return g, l.Addr().String(), served
}

func send(at, to, text string) error {
	c, err := smtp.Dial(at)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.SendMail("ann@example.org", []string{to}, strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n")))
}

func TestReceiveMail(t *testing.T) {
	b := fakeChannels{posts: make(chan [2]string, 10)}
	g, at, served := b.open(t)
	send := func(to, text string) error { return send(at, to, text) }
	address := "plans." + strings.ToUpper(token) + ".show-sender@example.com"
	for _, x := range []struct{ mail, topic, text string }{
		{
			"From: Ann <ann@example.org>\nSubject: Re: FWD: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n\nHello\nthere\n",
			"Gr\u00fc\u00dfe", "From: \"Ann\" (ann@example.org)\n\nHello\nthere",
		},
		{
			"Subject: page\nContent-Type: text/html; charset=iso-8859-1\n\n<head><style>p{}</style></head>" +
				"<p>One &amp; <b>two</b></p><script>x()</script><div>three</div>\n",
			"page", "One & two\nthree",
		},
		{
			"Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>page</p>\n" +
				"--b\nContent-Type: text/plain\n\nplain\n--b--\n",
			"Email with no subject", "plain",
		},
	} {
		if err := send(address, x.mail); err != nil {
			t.Fatal(err)
		}
		if got := <-b.posts; got != [2]string{x.topic, x.text} {
			t.Errorf("posted %q, want %q in %q", got, x.text, x.topic)
		}
	}
	var refused *smtp.SMTPError
	err := send("plans."+strings.Repeat("x", 32)+"@example.com", "Subject: x\n\nx\n")
	if !errors.As(err, &refused) || refused.Code != 550 {
		t.Errorf("an unknown address: %v", err)
	}
	err = send(address, "Subject: x\n\nrefuse me\n")
	if !errors.As(err, &refused) || refused.Code != 554 {
		t.Errorf("a mail that is not posted: %v", err)
	}
	err = send(address, "Subject: x\n\n"+strings.Repeat(strings.Repeat("x", 70)+"\n", maxMailBytes/70))
	if !errors.As(err, &refused) || refused.Code != 552 {
		t.Errorf("a mail that is too large: %v", err)
	}
	g.Close(context.Background())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Attachments are found in every form in which mails name files. Only realm.MaxEmailFiles of them are kept.
func TestReceiveAttachments(t *testing.T) {
	part := func(head, body string) string { return "--b\n" + head + "\n\n" + body + "\n" }
	mixed := func(parts ...string) string {
		return "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Join(parts, "") + "--b--\n"
	}
	text := part("Content-Type: text/plain", "see the files")
	for name, x := range map[string]struct {
		mail, text string
		files      []string
	}{
		"none": {mixed(text), "see the files", nil},
		"one in base64": {
			mixed(text, part("Content-Type: application/pdf\nContent-Disposition: attachment; "+
				"filename=\"a plan.pdf\"\nContent-Transfer-Encoding: base64", "aGVsbG8=")),
			"see the files", []string{"a plan.pdf: hello"},
		},
		"a text file before the text": {
			mixed(part("Content-Type: text/plain\nContent-Disposition: attachment; filename*=utf-8''%C3%BCber.txt",
				"about us"), text),
			"see the files", []string{"\u00fcber.txt: about us"},
		},
		"inline": {
			mixed(text, part("Content-Type: image/png; name=pic.png\nContent-Disposition: inline", "picture")),
			"see the files", []string{"pic.png: picture"},
		},
		"without a name": {
			mixed(text, part("Content-Type: application/zip\nContent-Disposition: attachment", "zip"),
				part("Content-Type: text/calendar", "invitation")),
			"see the files", []string{": zip"},
		},
		"no text": {
			mixed(part("Content-Type: application/zip\nContent-Disposition: attachment; filename=z.zip", "zip")),
			"(no text)", []string{"z.zip: zip"},
		},
		"too many": {
			mixed(text, strings.Repeat(part("Content-Type: image/png; name=p", "p"), realm.MaxEmailFiles+3)),
			"see the files\n\n(3 further files of this mail were not kept.)",
			slices.Repeat([]string{"p: p"}, realm.MaxEmailFiles),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := fakeChannels{make(chan [2]string, 1), make(chan []string, 1)}
			g, at, _ := b.open(t)
			defer g.Close(context.Background())
			if err := send(at, token+"@example.com", x.mail); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, f := range x.files {
				want = append(want, f, f)
			}
			if got, files := <-b.posts, <-b.files; got[1] != x.text || !slices.Equal(files, want) {
				t.Errorf("posted %q with %q, want %q with %q", got[1], files, x.text, want)
			}
		})
	}
}

// A slow client does not delay Close. Nothing of an incomplete mail is posted, and its sender is told to send it again.
func TestCloseDuringIncompleteMail(t *testing.T) {
	begin := "MAIL FROM:<ann@example.org>\r\nRCPT TO:<" + token + "@example.com>\r\nDATA\r\n"
	for name, half := range map[string]string{
		"nothing":       "",
		"half a header": begin + "Subject: x",
		"half a text":   begin + "Subject: x\r\n\r\nhello",
		"one of many parts": begin + "Content-Type: multipart/mixed; boundary=b\r\n\r\n" +
			"--b\r\nContent-Type: text/plain\r\n\r\nplain\r\n--b\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := fakeChannels{posts: make(chan [2]string, 10)}
			g, at, served := b.open(t)
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			replies := bufio.NewReader(c)
			readCode := func() string {
				t.Helper()
				for {
					line, err := replies.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					if line[3] == ' ' {
						return line[:3]
					}
				}
			}
			readCode()
			io.WriteString(c, "EHLO ann\r\n")
			readCode()
			io.WriteString(c, half)
			commands := strings.Count(half[:strings.Index(half, "DATA")+1], "\r\n") + strings.Count(half, "DATA")
			for range commands {
				readCode()
			}
			ctx, cancel := context.WithTimeout(context.Background(), smtpTimeout/2)
			defer cancel()
			if err := g.Close(ctx); err != nil {
				t.Error("close:", err)
			}
			want := "421"
			if strings.Contains(half, "DATA") {
				want = "451"
			}
			if got := readCode(); got != want {
				t.Errorf("the sender got %s, want %s", got, want)
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

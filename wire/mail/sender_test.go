package mail

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// server is a real SMTP server that refuses the first attempts.
type server struct {
	port   int
	refuse []error // of each attempt, nil to take it
	came   chan string

	mu    sync.Mutex
	tried int
}

func startServer(t *testing.T, secure *tls.Config, refuse ...error) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{port: l.Addr().(*net.TCPAddr).Port, refuse: refuse, came: make(chan string, 10)}
	x := smtp.NewServer(s)
	x.Domain, x.TLSConfig = "localhost", secure
	go x.Serve(l)
	t.Cleanup(func() { x.Close() })
	return s
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{s: s}, nil }

type session struct {
	s     *server
	known bool
	to    string
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "parley" || password != "secret" {
			return errors.New("who are you")
		}
		x.known = true
		return nil
	}), nil
}

func (x *session) Mail(string, *smtp.MailOptions) error {
	if !x.known {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error { x.to = to; return nil }
func (*session) Reset()                                      {}
func (*session) Logout() error                               { return nil }

func (x *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	n := x.s.tried
	x.s.tried++
	if n < len(x.s.refuse) && x.s.refuse[n] != nil {
		return x.s.refuse[n]
	}
	x.s.came <- x.to + "\n" + string(text)
	return nil
}

// certificate is a pair for 127.0.0.1 and a client that trusts it.
func certificate(t *testing.T) (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

// logBuffer is a log a test reads.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var hello = realm.Email{To: "bo@example.com", Subject: "Hi\nBcc: eve@example.com", Paragraphs: []string{"Olive <3 invites you.", "https://chat.example.com/join/abc"}}

func newTestSender(t *testing.T, c Config) (*Sender, *logBuffer) {
	book := &logBuffer{}
	c.From, c.Tools = "Parley <noreply@example.com>", &wire.Tools{LinkToken: func(realm.ID, int64) string { return "abc" }}
	p, err := NewSender(c, slog.New(slog.NewTextHandler(book, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return p, book
}

// sendEmail has a letter sent as a courier does, until it is done with.
func sendEmail(p *Sender, l realm.Email, errand int64) (attempts int) {
	for j := (&dispatch.Attempt{Realm: 1, Site: wire.Site{URL: "https://chat.example.com"}, Job: realm.OutboxJob{ID: errand, At: time.Now().Unix(), Letter: &l}}); ; {
		j.Number++
		if p.Handle(context.Background(), j).RetryAfter == 0 {
			return j.Number
		}
	}
}

func TestRetryAfterTemporaryFailure(t *testing.T) {
	secure, trusting := certificate(t)
	busy := &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "busy"}
	s := startServer(t, secure, busy, busy)
	p, book := newTestSender(t, Config{Host: "127.0.0.1", Port: s.port, User: "parley", Password: "secret", Security: StartTLS, TLS: trusting, RetryPauses: []time.Duration{time.Millisecond, time.Millisecond}})
	if n := sendEmail(p, hello, 7); n != 3 {
		t.Errorf("%d attempts", n)
	}
	select {
	case text := <-s.came:
		for _, want := range []string{"bo@example.com\n", "Subject: Hi Bcc: eve@example.com\r\n", "multipart/alternative", "Olive <3 invites you.", "Olive &lt;3 invites you.", "Auto-Submitted: auto-generated"} {
			if !strings.Contains(text, want) {
				t.Errorf("the letter lacks %q:\n%s", want, text)
			}
		}
	default:
		t.Fatalf("nothing came; log:\n%s", book)
	}
}

func TestPermanentFailure(t *testing.T) {
	secure, trusting := certificate(t)
	s := startServer(t, secure, &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"})
	p, book := newTestSender(t, Config{Host: "127.0.0.1", Port: s.port, User: "parley", Password: "secret", Security: StartTLS, TLS: trusting})
	sendEmail(p, hello, 7)
	if s.tried != 1 || !strings.Contains(book.String(), "mail given up") || !strings.Contains(book.String(), "bo@example.com") {
		t.Errorf("tried %d times; log:\n%s", s.tried, book)
	}
}

func TestTLSIsRequired(t *testing.T) {
	s := startServer(t, nil) // offers no TLS
	p, book := newTestSender(t, Config{Host: "127.0.0.1", Port: s.port, User: "parley", Password: "secret", Security: StartTLS, RetryPauses: []time.Duration{}})
	sendEmail(p, hello, 7)
	if s.tried != 0 || !strings.Contains(book.String(), "mail given up") {
		t.Errorf("tried %d times; log:\n%s", s.tried, book)
	}
}

func TestFolderWithoutSMTPServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "outbox")
	p, _ := newTestSender(t, Config{Security: StartTLS, Folder: dir})
	invitation := hello
	invitation.Paragraphs, invitation.Link = []string{"Olive <3 invites you.", realm.LinkPlaceholder}, -5
	for i := range 3 {
		sendEmail(p, invitation, int64(i))
	}
	sendEmail(p, invitation, 2)
	list, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(list) != 4 {
		t.Fatalf("the outbox holds %v", list)
	}
	text, err := os.ReadFile(list[0])
	if err != nil || !strings.Contains(string(text), "https://chat.example.com/join/abc") {
		t.Errorf("%v\n%s", err, text)
	}
	ids := map[string]bool{}
	for _, name := range list {
		text, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(text), "Message-ID: ")
		id, _, _ := strings.Cut(rest, "\r\n")
		ids[id] = true
	}
	if len(ids) != 3 {
		t.Errorf("three letters, one of them twice, have the ids %v", ids)
	}
}

func TestConfigCheck(t *testing.T) {
	for _, c := range []Config{{From: "a@example.com", Security: "maybe"}, {From: "nobody", Security: TLS}, {Security: TLS}} {
		if c.Check() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

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
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"parley/actors/realm"
	"parley/actors/realm/realmtest"
	"parley/wire"
	"parley/wire/dispatch"
)

// server is an SMTP server that rejects the first attempts.
type server struct {
	port     int
	refuse   []error // for each attempt; nil accepts it
	received chan string

	mu       sync.Mutex
	attempts int
}

func startServer(t *testing.T, secure *tls.Config, refuse ...error) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{port: l.Addr().(*net.TCPAddr).Port, refuse: refuse, received: make(chan string, 10)}
	x := smtp.NewServer(s)
	x.Domain, x.TLSConfig = "localhost", secure
	go x.Serve(l)
	t.Cleanup(func() { x.Close() })
	return s
}

func (s *server) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{s: s}, nil }

type session struct {
	s             *server
	authenticated bool
	to            string
}

func (*session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "parley" || password != "secret" {
			return errors.New("wrong password")
		}
		x.authenticated = true
		return nil
	}), nil
}

func (x *session) Mail(string, *smtp.MailOptions) error {
	if !x.authenticated {
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
	n := x.s.attempts
	x.s.attempts++
	if n < len(x.s.refuse) && x.s.refuse[n] != nil {
		return x.s.refuse[n]
	}
	x.s.received <- x.to + "\n" + string(text)
	return nil
}

// certificate returns the configurations of a server on 127.0.0.1 and of a client that trusts it.
func certificate(t *testing.T) (server, client *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return server, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
}

// logBuffer is a log that tests read.
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

var hello = realm.Email{
	To: "bo@example.com", Subject: "Hi\nBcc: eve@example.com",
	Paragraphs: []string{"Olive <3 invites you.", "https://chat.example.com/join/abc"},
}

func newTestSender(t *testing.T, c Config) (*Sender, *logBuffer) {
	log := &logBuffer{}
	c.From = "Parley <noreply@example.com>"
	c.Tools = &wire.Tools{LinkToken: func(realm.ID, int64) string { return "abc" }}
	p, err := NewSender(c, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return p, log
}

// sendEmail handles an email as the dispatcher does, without its pauses, until it is delivered or given up.
func sendEmail(s *Sender, email realm.Email, id int64) (attempts int) {
	a := &dispatch.Attempt{Realm: 1, Site: wire.Site{URL: "https://chat.example.com"}}
	a.Job = realm.OutboxJob{ID: id, At: time.Now().Unix(), Letter: &email}
	for {
		a.Number++
		if s.Handle(context.Background(), a).RetryAfter == 0 {
			return a.Number
		}
	}
}

// smtpConfig returns the configuration for a test server.
func smtpConfig(s *server, trusted *tls.Config, pauses ...time.Duration) Config {
	return Config{
		Host: "127.0.0.1", Port: s.port, User: "parley", Password: "secret", Security: StartTLS,
		TLS: trusted, RetryPauses: pauses,
	}
}

func TestRetryAfterTemporaryFailure(t *testing.T) {
	encrypted, trusted := certificate(t)
	busy := &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "busy"}
	s := startServer(t, encrypted, busy, busy)
	p, log := newTestSender(t, smtpConfig(s, trusted, time.Millisecond, time.Millisecond))
	if n := sendEmail(p, hello, 7); n != 3 {
		t.Errorf("%d attempts", n)
	}
	select {
	case text := <-s.received:
		for _, want := range []string{
			"bo@example.com\n", "Subject: Hi Bcc: eve@example.com\r\n", "multipart/alternative",
			"Olive <3 invites you.", "Olive &lt;3 invites you.", "Auto-Submitted: auto-generated",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the email does not contain %q:\n%s", want, text)
			}
		}
		parts := partsOf(t, strings.TrimPrefix(text, "bo@example.com\n"))
		if !strings.Contains(parts["text/plain"], "Olive <3 invites you.") ||
			!strings.Contains(parts["text/html"], `<a href="https://chat.example.com/join/abc">`) {
			t.Errorf("the parts are %q", parts)
		}
	default:
		t.Fatalf("nothing was received; log:\n%s", log)
	}
}

// partsOf returns the parts of an email, as a program that reads mail finds them, by their type.
func partsOf(t *testing.T, text string) map[string]string {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if agent := m.Header.Get("User-Agent") + m.Header.Get("X-Mailer"); agent != "" {
		t.Errorf("the email names the program %q", agent)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("the type is %q, %v", m.Header.Get("Content-Type"), err)
	}
	parts := map[string]string{}
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		parts[kind] = string(body)
	}
}

func TestPermanentFailure(t *testing.T) {
	encrypted, trusted := certificate(t)
	unknown := &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	s := startServer(t, encrypted, unknown)
	p, log := newTestSender(t, smtpConfig(s, trusted))
	sendEmail(p, hello, 7)
	if text := log.String(); s.attempts != 1 || !strings.Contains(text, "email given up") ||
		!strings.Contains(text, "bo@example.com") {
		t.Errorf("%d attempts; log:\n%s", s.attempts, log)
	}
}

func TestTLSIsRequired(t *testing.T) {
	s := startServer(t, nil) // offers no TLS
	c := smtpConfig(s, nil)
	c.RetryPauses = []time.Duration{} // none
	p, log := newTestSender(t, c)
	sendEmail(p, hello, 7)
	if s.attempts != 0 || !strings.Contains(log.String(), "email given up") {
		t.Errorf("%d attempts; log:\n%s", s.attempts, log)
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
		t.Fatalf("the folder contains %v", list)
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
		t.Errorf("three jobs, one of them sent twice, have the ids %v", ids)
	}
}

func TestConfigCheck(t *testing.T) {
	for _, c := range []Config{
		{From: "a@example.com", Security: "maybe"}, {From: "no address", Security: TLS}, {Security: TLS},
	} {
		if c.Check() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// placesServer is a server with one organization.
type placesServer struct {
	wire.Server
	scene *realmtest.Scene
}

func (s placesServer) View(_ realm.ID, c realm.Caller, read func(realm.View) (any, error)) (any, error) {
	return read(s.scene.Realm.ViewAs(c, realmtest.StartTime))
}

// The settings of an organization are asked before each attempt, also for emails that were written before: emails about
// messages lose the contents of the messages, or are not sent. Emails about accounts are sent in any case.
func TestEmailsThatAreNoLongerAllowed(t *testing.T) {
	scene := realmtest.New(t)
	olive, bo := scene.Join("Olive", realm.Owner), scene.Join("Bo")
	folder := t.TempDir()
	p, _ := newTestSender(t, Config{Folder: folder, Security: StartTLS, Server: placesServer{scene: scene}})
	p.c.Tools.Sign = func(string) string { return "signature" }
	missed := realm.Email{To: "bo@example.com", Subject: "#plans > secret topic",
		Paragraphs:  []string{"Ann: secret text"},
		Unsubscribe: &realm.Unsubscription{User: bo, Topic: realm.MissedMessageEmails}}
	sent := func(email realm.Email) string {
		t.Helper()
		before, _ := filepath.Glob(filepath.Join(folder, "*.eml"))
		sendEmail(p, email, int64(len(before)))
		after, _ := filepath.Glob(filepath.Join(folder, "*.eml"))
		for _, name := range after {
			if !slices.Contains(before, name) {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
		}
		return ""
	}
	closePlace := func(setting string) {
		realmtest.Do(scene, olive, realm.ChangeOrganization{Values: []realm.SettingValue{
			{Name: setting, Value: false}}})
	}
	if text := sent(missed); !strings.Contains(text, "secret text") || !strings.Contains(text, "secret topic") {
		t.Errorf("allowed: %q", text)
	}
	closePlace("message_content_allowed_in_email_notifications")
	if text := sent(missed); !strings.Contains(text, "New messages") || strings.Contains(text, "secret") {
		t.Errorf("without contents: %q", text)
	}
	closePlace("allow_message_emails")
	if text := sent(missed); text != "" {
		t.Errorf("closed: %q", text)
	}
	if text := sent(hello); !strings.Contains(text, "Olive") {
		t.Errorf("about an account: %q", text)
	}
}

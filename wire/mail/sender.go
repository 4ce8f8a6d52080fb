package mail

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wneessen/go-mail"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// Limits of outgoing email.
const (
	maxFolderFiles = 1000             // newest emails that are kept in Config.Folder
	sendTimeout    = 30 * time.Second // of one attempt
	// maxAge is when an email is given up although processes ended before its last attempt.
	maxAge = 72 * time.Hour
	// MaxSending is how many emails are sent at a time. Most servers treat more connections as abuse.
	MaxSending = 2
)

// retryPauses are the pauses before each further attempt: about an hour and a half together. After the last one an
// email is given up.
var retryPauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}

// Values of Config.Security: how the connection to the SMTP server is encrypted.
const (
	StartTLS = "starttls" // by the STARTTLS command, which the server must offer
	TLS      = "tls"      // from the first byte
	Plain    = "none"     // not at all; for a server on the same machine
)

// Config of outgoing email. Without a host, emails are written to Folder.
type Config struct {
	Host           string
	Port           int
	User, Password string
	From           string // address, with or without a name
	Security       string
	Folder         string
	DKIM           *DKIMKey // signs the emails; nil: the mail server may

	TLS         *tls.Config     // nil: the system's root certificates
	RetryPauses []time.Duration // nil: the default

	Tools *wire.Tools // makes links
	// Server has the languages of readers of the text that ends an email; nil: all read English.
	Server wire.Server
	Places *wire.Places // nil: new ones of Server, if there is one
}

// Check returns an error if a value of the configuration is invalid.
func (c Config) Check() error {
	if !slices.Contains([]string{StartTLS, TLS, Plain}, c.Security) {
		return fmt.Errorf("the SMTP security must be %s, %s or %s, not %q", StartTLS, TLS, Plain, c.Security)
	}
	if err := mail.NewMsg().From(c.From); err != nil {
		return fmt.Errorf("sender of email: %w", err)
	}
	return nil
}

// Sender is the dispatch.Handler that delivers emails.
type Sender struct {
	c       Config
	log     *slog.Logger
	deliver func(context.Context, *mail.Msg) error

	mu    sync.Mutex
	count int // files written to the folder by this process
}

// NewSender returns a Sender. It makes the folder if that is used.
func NewSender(c Config, log *slog.Logger) (*Sender, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.RetryPauses == nil {
		c.RetryPauses = retryPauses
	}
	if c.Places == nil && c.Server != nil {
		c.Places = wire.NewPlaces(c.Server, nil)
	}
	s := &Sender{c: c, log: log}
	s.deliver = s.smtp
	if c.Host == "" {
		if err := os.MkdirAll(c.Folder, 0o700); err != nil {
			return nil, fmt.Errorf("make folder for email: %w", err)
		}
		s.deliver = s.saveToFolder
	}
	return s, nil
}

// Handle tries once to deliver the email of a job.
func (s *Sender) Handle(ctx context.Context, a *dispatch.Attempt) dispatch.Outcome {
	allowed, err := s.allowed(a)
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause, State: a.State}
	}
	if allowed == nil {
		return dispatch.Outcome{}
	}
	email := withLink(*allowed, a.Realm, a.Site, s.c.Tools)
	unsubscribe := wire.UnsubscribeURL(email, a.Realm, a.Site, s.c.Tools)
	if unsubscribe != "" {
		email.Paragraphs = append(
			slices.Clone(email.Paragraphs),
			s.textsFor(a.Realm, email.Unsubscribe.User).text("To get no more emails of this kind, follow this link:"),
			unsubscribe,
		)
	}
	m, err := s.message(email, fmt.Sprintf("%d %d %d %s", a.Realm, a.Job.ID, a.Job.At, a.Site.Host))
	if r := email.Reply; err == nil && r != nil {
		err = m.ReplyTo(wire.ReplyAddress(s.c.Tools, wire.MailReply{Realm: a.Realm, EmailReply: *r,
			Until: a.Job.At + int64(wire.ReplyValidity.Seconds())}))
	}
	if err == nil && unsubscribe != "" {
		m.SetGenHeader("List-Unsubscribe", "<"+unsubscribe+">")
		m.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	if err == nil && s.c.DKIM != nil {
		err = s.c.DKIM.sign(m)
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		err = s.deliver(ctx, m)
		cancel()
	}
	if err == nil {
		s.log.Debug("email sent", "subject", email.Subject, "attempts", a.Number)
		return dispatch.Outcome{}
	}
	log := s.log.With("to", email.To, "subject", email.Subject, "attempts", a.Number, "err", err)
	if isPermanent(err) || a.Number > len(s.c.RetryPauses) || time.Since(time.Unix(a.Job.At, 0)) > maxAge {
		log.Error("email given up")
		return dispatch.Outcome{}
	}
	pause := s.c.RetryPauses[a.Number-1]
	log.Warn("email not sent yet", "next", pause.String())
	return dispatch.Outcome{RetryAfter: pause}
}

// allowed returns the email of a job as the organization allows it at this moment: nil if it must not be sent, and
// without the contents of messages if these must not be in emails any more.
func (s *Sender) allowed(a *dispatch.Attempt) (*realm.Email, error) {
	email := a.Job.Letter
	if s.c.Places == nil {
		return email, nil
	}
	place := realm.PlaceAccountEmails
	if email.AboutMessages() {
		place = realm.PlaceMessageEmails
	}
	if err := s.c.Places.Ask(a.Realm, place); errors.Is(err, wire.ErrPlaceClosed) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if !email.AboutMessages() {
		return email, nil
	}
	err := s.c.Places.Ask(a.Realm, realm.PlaceMessageEmailContent)
	if !errors.Is(err, wire.ErrPlaceClosed) {
		return email, err
	}
	t := s.textsFor(a.Realm, email.Unsubscribe.User)
	return &realm.Email{To: email.To, Subject: t.text("New messages"), Unsubscribe: email.Unsubscribe,
		Paragraphs: []string{t.text(hiddenContentNotice), a.Site.URL}}, nil
}

// textsFor returns the texts in the language of a user. The email is sent in English rather than not at all.
func (s *Sender) textsFor(id realm.ID, u realm.UserID) texts {
	code := ""
	if s.c.Server != nil {
		_, err := s.c.Server.View(id, system, func(v realm.View) (any, error) {
			code = v.LetterheadFor(v.Find(u)).Language
			return nil, nil
		})
		if err != nil {
			s.log.Debug("language of an email not found", "realm", id, "err", err)
		}
	}
	return textsIn(code)
}

// isPermanent reports whether another attempt cannot succeed: the SMTP server rejected the email permanently, or the
// email is invalid.
func isPermanent(err error) bool {
	var e *mail.SendError
	if errors.As(err, &e) {
		return !e.IsTemp() && e.ErrorCode() >= 500
	}
	return errors.Is(err, errBadEmail)
}

var errBadEmail = errors.New("invalid email")

// message returns an email in the form of the mail library. The Message-ID is a hash of job, so a second delivery of
// the same job can be recognized.
func (s *Sender) message(email realm.Email, job string) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := m.From(s.c.From); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadEmail, err)
	}
	if err := m.To(email.To); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadEmail, err)
	}
	m.Subject(strings.Join(strings.Fields(email.Subject), " ")) // one line: a subject cannot add headers
	m.SetDate()
	id := sha256.Sum256([]byte(job))
	_, host, _ := strings.Cut(strings.TrimSuffix(s.c.From, ">"), "@")
	m.SetMessageIDWithValue(hex.EncodeToString(id[:16]) + "@" + host)
	// An email is written twice if it is signed. The library does not quote the boundary, so it is a token of MIME.
	m.SetBoundary("part_" + hex.EncodeToString(id[16:]))
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(mail.TypeTextPlain, plainText(email))
	m.AddAlternativeString(mail.TypeTextHTML, htmlText(email))
	return m, nil
}

func (s *Sender) smtp(ctx context.Context, m *mail.Msg) error {
	o := []mail.Option{mail.WithPort(s.c.Port), mail.WithTimeout(sendTimeout)}
	switch s.c.Security {
	case StartTLS:
		o = append(o, mail.WithTLSPolicy(mail.TLSMandatory))
	case TLS:
		o = append(o, mail.WithSSL())
	case Plain:
		o = append(o, mail.WithTLSPolicy(mail.NoTLS))
	}
	if s.c.TLS != nil {
		o = append(o, mail.WithTLSConfig(s.c.TLS))
	}
	if s.c.User != "" {
		o = append(o,
			mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover),
			mail.WithUsername(s.c.User),
			mail.WithPassword(s.c.Password))
	}
	client, err := mail.NewClient(s.c.Host, o...)
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, m)
}

// saveToFolder writes an email to the folder, under a name that sorts by time. It then removes the oldest emails beyond
// maxFolderFiles.
func (s *Sender) saveToFolder(_ context.Context, m *mail.Msg) error {
	s.mu.Lock()
	s.count++
	name := fmt.Sprintf("%s-%06d.eml", time.Now().UTC().Format("20060102-150405.000000"), s.count)
	s.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(s.c.Folder, name+".new"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = m.WriteTo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), strings.TrimSuffix(f.Name(), ".new")); err != nil {
		return err
	}
	list, err := os.ReadDir(s.c.Folder) // in the order of the names, which is the order of the times
	list = slices.DeleteFunc(list, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".eml") })
	for _, old := range list[:max(0, len(list)-maxFolderFiles)] {
		if err := os.Remove(filepath.Join(s.c.Folder, old.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

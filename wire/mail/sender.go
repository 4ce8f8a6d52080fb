// Package mail sends the letters the server writes, by SMTP or into a folder, and takes mail for channels.
//
// Letters are errands: organizations hold them until they have gone. Where the other side is busy or away a letter is
// tried again, ever more seldom; what cannot be delivered at all is given up, and logged.
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

// Limits of outgoing mail.
const (
	maxFolderFiles = 1000             // newest letters in an outbox folder
	sendTimeout    = 30 * time.Second // of one attempt
	// maxAge is when a letter that went from process to process without arriving is given up.
	maxAge = 72 * time.Hour
	// MaxSending is how many letters are sent at a time: more connections would look like a flood to most servers.
	MaxSending = 2
)

// retryPauses before each further attempt; after the last one a letter is given up. Together about an hour and a half.
var retryPauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}

// Security of the connection to the SMTP server.
const (
	StartTLS = "starttls" // required, after a plain greeting
	TLS      = "tls"      // from the first byte
	Plain    = "none"     // for a server on the same machine
)

// Config of outgoing mail. Without a host letters go to the outbox folder.
type Config struct {
	Host           string
	Port           int
	User, Password string
	From           string // address, with or without a name
	Security       string
	Folder         string // folder

	TLS         *tls.Config     // nil: the system's roots
	RetryPauses []time.Duration // nil: the usual ones

	Tools *wire.Tools // that links are made with
}

// Check finds what is wrong with a configuration.
func (c Config) Check() error {
	if !slices.Contains([]string{StartTLS, TLS, Plain}, c.Security) {
		return fmt.Errorf("%q is not %s, %s or %s", c.Security, StartTLS, TLS, Plain)
	}
	if err := mail.NewMsg().From(c.From); err != nil {
		return fmt.Errorf("sender of mail: %w", err)
	}
	return nil
}

// Sender sends letters.
type Sender struct {
	c       Config
	log     *slog.Logger
	deliver func(context.Context, *mail.Msg) error

	mu    sync.Mutex
	count int // of files in the outbox
}

// NewSender gets ready to send.
func NewSender(c Config, log *slog.Logger) (*Sender, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.RetryPauses == nil {
		c.RetryPauses = retryPauses
	}
	p := &Sender{c: c, log: log}
	p.deliver = p.smtp
	if c.Host == "" {
		if err := os.MkdirAll(c.Folder, 0o700); err != nil {
			return nil, fmt.Errorf("make outbox: %w", err)
		}
		p.deliver = p.saveToFolder
	}
	return p, nil
}

// Handle tries to send an errand's letter once.
func (p *Sender) Handle(ctx context.Context, j *dispatch.Attempt) dispatch.Outcome {
	l := withLink(*j.Job.Letter, j.Realm, j.Site, p.c.Tools)
	m, err := p.message(l, fmt.Sprintf("%d %d %d %s", j.Realm, j.Job.ID, j.Job.At, j.Site.Host))
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		err = p.deliver(ctx, m)
		cancel()
	}
	if err == nil {
		p.log.Debug("mail sent", "subject", l.Subject, "attempts", j.Number)
		return dispatch.Outcome{}
	}
	if isPermanent(err) || j.Number > len(p.c.RetryPauses) || time.Since(time.Unix(j.Job.At, 0)) > maxAge {
		p.log.Error("mail given up", "to", l.To, "subject", l.Subject, "attempts", j.Number, "error", err)
		return dispatch.Outcome{}
	}
	pause := p.c.RetryPauses[j.Number-1]
	p.log.Warn("mail is tried again", "to", l.To, "in", pause.String(), "attempts", j.Number, "error", err)
	return dispatch.Outcome{RetryAfter: pause}
}

// isPermanent errors will not go away: the server refused the letter, or it is none.
func isPermanent(err error) bool {
	var e *mail.SendError
	if errors.As(err, &e) {
		return !e.IsTemp() && e.ErrorCode() >= 500
	}
	return errors.Is(err, errBadEmail)
}

var errBadEmail = errors.New("letter cannot be written")

// message is a letter as the mail system knows it. Its id follows from its errand, so that whoever gets it twice can tell.
func (p *Sender) message(l realm.Email, errand string) (*mail.Msg, error) {
	m := mail.NewMsg()
	if err := m.From(p.c.From); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadEmail, err)
	}
	if err := m.To(l.To); err != nil {
		return nil, fmt.Errorf("%w: %w", errBadEmail, err)
	}
	m.Subject(strings.Join(strings.Fields(l.Subject), " "))
	m.SetDate()
	id := sha256.Sum256([]byte(errand))
	_, host, _ := strings.Cut(strings.TrimSuffix(p.c.From, ">"), "@")
	m.SetMessageIDWithValue(hex.EncodeToString(id[:16]) + "@" + host)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(mail.TypeTextPlain, plainText(l))
	m.AddAlternativeString(mail.TypeTextHTML, htmlText(l))
	return m, nil
}

func (p *Sender) smtp(ctx context.Context, m *mail.Msg) error {
	o := []mail.Option{mail.WithPort(p.c.Port), mail.WithTimeout(sendTimeout)}
	switch p.c.Security {
	case StartTLS:
		o = append(o, mail.WithTLSPolicy(mail.TLSMandatory))
	case TLS:
		o = append(o, mail.WithSSL())
	case Plain:
		o = append(o, mail.WithTLSPolicy(mail.NoTLS))
	}
	if p.c.TLS != nil {
		o = append(o, mail.WithTLSConfig(p.c.TLS))
	}
	if p.c.User != "" {
		o = append(o, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(p.c.User), mail.WithPassword(p.c.Password))
	}
	client, err := mail.NewClient(p.c.Host, o...)
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, m)
}

// saveToFolder writes a letter to the outbox folder, under a name that sorts by time; the oldest go beyond maxFolderFiles.
func (p *Sender) saveToFolder(_ context.Context, m *mail.Msg) error {
	p.mu.Lock()
	p.count++
	name := fmt.Sprintf("%s-%06d.eml", time.Now().UTC().Format("20060102-150405.000000"), p.count)
	p.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(p.c.Folder, name+".new"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
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
	list, err := os.ReadDir(p.c.Folder) // in the order of their names, which is that of their times
	list = slices.DeleteFunc(list, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".eml") })
	for _, old := range list[:max(0, len(list)-maxFolderFiles)] {
		if err := os.Remove(filepath.Join(p.c.Folder, old.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

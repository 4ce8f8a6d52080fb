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

	"parley/wire"
	"parley/wire/courier"
)

// Limits of outgoing mail.
const (
	maxKept     = 1000             // newest letters in an outbox folder
	sendTimeout = 30 * time.Second // of one attempt
	// stale is when a letter that went from process to process without arriving is given up.
	stale = 72 * time.Hour
	// Senders is how many letters are sent at a time: more connections would look like a flood to most servers.
	Senders = 2
)

// pauses before each further attempt; after the last one a letter is given up. Together about an hour and a half.
var pauses = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 20 * time.Minute, time.Hour}

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
	Outbox         string // folder

	TLS    *tls.Config     // nil: the system's roots
	Pauses []time.Duration // nil: the usual ones

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

// Post sends letters.
type Post struct {
	c       Config
	log     *slog.Logger
	deliver func(context.Context, *mail.Msg) error

	mu    sync.Mutex
	count int // of files in the outbox
}

// NewPost gets ready to send.
func NewPost(c Config, log *slog.Logger) (*Post, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Pauses == nil {
		c.Pauses = pauses
	}
	p := &Post{c: c, log: log}
	p.deliver = p.smtp
	if c.Host == "" {
		if err := os.MkdirAll(c.Outbox, 0o700); err != nil {
			return nil, fmt.Errorf("make outbox: %w", err)
		}
		p.deliver = p.keep
	}
	return p, nil
}

// Carry tries to send an errand's letter once.
func (p *Post) Carry(ctx context.Context, j *courier.Job) courier.Outcome {
	l := wire.Sealed(*j.Errand.Letter, j.Realm, j.Site, p.c.Tools)
	m, err := p.message(l, fmt.Sprintf("%d %d %d %s", j.Realm, j.Errand.ID, j.Errand.At, j.Site.Host))
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, sendTimeout)
		err = p.deliver(ctx, m)
		cancel()
	}
	if err == nil {
		p.log.Debug("mail sent", "subject", l.Subject, "attempts", j.Attempt)
		return courier.Outcome{}
	}
	if final(err) || j.Attempt > len(p.c.Pauses) || time.Since(time.Unix(j.Errand.At, 0)) > stale {
		p.log.Error("mail given up", "to", l.To, "subject", l.Subject, "attempts", j.Attempt, "error", err)
		return courier.Outcome{}
	}
	pause := p.c.Pauses[j.Attempt-1]
	p.log.Warn("mail is tried again", "to", l.To, "in", pause.String(), "attempts", j.Attempt, "error", err)
	return courier.Outcome{Again: pause}
}

// final errors will not go away: the server refused the letter, or it is none.
func final(err error) bool {
	var e *mail.SendError
	if errors.As(err, &e) {
		return !e.IsTemp() && e.ErrorCode() >= 500
	}
	return errors.Is(err, errLetter)
}

var errLetter = errors.New("letter cannot be written")

// message is a letter as the mail system knows it. Its id follows from its errand, so that whoever gets it twice can tell.
func (p *Post) message(l wire.Letter, errand string) (*mail.Msg, error) {
	m := mail.NewMsg()
	if err := m.From(p.c.From); err != nil {
		return nil, fmt.Errorf("%w: %w", errLetter, err)
	}
	if err := m.To(l.To); err != nil {
		return nil, fmt.Errorf("%w: %w", errLetter, err)
	}
	m.Subject(strings.Join(strings.Fields(l.Subject), " "))
	m.SetDate()
	id := sha256.Sum256([]byte(errand))
	_, host, _ := strings.Cut(strings.TrimSuffix(p.c.From, ">"), "@")
	m.SetMessageIDWithValue(hex.EncodeToString(id[:16]) + "@" + host)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(mail.TypeTextPlain, wire.LetterText(l))
	m.AddAlternativeString(mail.TypeTextHTML, wire.LetterHTML(l))
	return m, nil
}

func (p *Post) smtp(ctx context.Context, m *mail.Msg) error {
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

// keep writes a letter to the outbox folder, under a name that sorts by time; the oldest go beyond maxKept.
func (p *Post) keep(_ context.Context, m *mail.Msg) error {
	p.mu.Lock()
	p.count++
	name := fmt.Sprintf("%s-%06d.eml", time.Now().UTC().Format("20060102-150405.000000"), p.count)
	p.mu.Unlock()
	f, err := os.OpenFile(filepath.Join(p.c.Outbox, name+".new"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
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
	list, err := os.ReadDir(p.c.Outbox) // in the order of their names, which is that of their times
	list = slices.DeleteFunc(list, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".eml") })
	for _, old := range list[:max(0, len(list)-maxKept)] {
		if err := os.Remove(filepath.Join(p.c.Outbox, old.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

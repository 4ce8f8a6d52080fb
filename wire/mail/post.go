// Package mail sends the letters the server writes, by SMTP or into a folder, and takes mail for channels.
//
// Sending never waits: a letter is put into a bounded queue, and what becomes of it is logged. Where the other side is
// busy or away it is tried again, ever more seldom; what cannot be delivered at all is given up. Nothing that a letter
// tells of depends on its arrival.
package mail

import (
	"context"
	"crypto/tls"
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
)

// Limits of outgoing mail.
const (
	maxWaiting  = 10_000           // letters in memory, a few kB each, the ones to be tried again included
	maxKept     = 1000             // newest letters in an outbox folder
	senders     = 2                // connections at a time: more would look like a flood to most servers
	sendTimeout = 30 * time.Second // of one attempt
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

// Post sends letters. Close it.
type Post struct {
	c       Config
	log     *slog.Logger
	deliver func(context.Context, *mail.Msg) error

	ctx    context.Context // ends when sending must stop
	cancel context.CancelFunc
	queue  chan *letter
	work   sync.WaitGroup

	mu      sync.Mutex
	waiting int                     // letters accepted and not done with
	later   map[*letter]*time.Timer // to be tried again
	idle    chan struct{}           // closed when closing and nothing waits
	closing bool
	count   int // of files in the outbox
}

type letter struct {
	wire.Letter
	attempts int
}

// NewPost starts sending.
func NewPost(c Config, log *slog.Logger) (*Post, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Pauses == nil {
		c.Pauses = pauses
	}
	p := &Post{c: c, log: log, queue: make(chan *letter, maxWaiting), later: map[*letter]*time.Timer{}, idle: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if c.Host == "" {
		if err := os.MkdirAll(c.Outbox, 0o700); err != nil {
			return nil, fmt.Errorf("make outbox: %w", err)
		}
		p.deliver = p.keep
	} else {
		p.deliver = p.smtp
	}
	for range senders {
		p.work.Add(1)
		go p.run()
	}
	return p, nil
}

// Send takes a letter; it never waits.
func (p *Post) Send(l wire.Letter) {
	p.mu.Lock()
	full := p.closing || p.waiting >= maxWaiting
	if !full {
		p.waiting++
		p.queue <- &letter{Letter: l} // has room: it holds as many as may wait
	}
	p.mu.Unlock()
	if full {
		p.log.Error("mail not sent: too many letters wait, or the server stops", "subject", l.Subject, "limit", maxWaiting)
	}
}

func (p *Post) run() {
	defer p.work.Done()
	for {
		select {
		case <-p.ctx.Done():
			return
		case l := <-p.queue:
			p.try(l)
		}
	}
}

func (p *Post) try(l *letter) {
	l.attempts++
	m, err := p.message(l.Letter)
	if err == nil {
		ctx, cancel := context.WithTimeout(p.ctx, sendTimeout)
		err = p.deliver(ctx, m)
		cancel()
	}
	if err == nil {
		p.log.Debug("mail sent", "subject", l.Subject, "attempts", l.attempts)
		p.done()
		return
	}
	p.mu.Lock()
	closing := p.closing
	p.mu.Unlock()
	if final(err) || closing || l.attempts > len(p.c.Pauses) {
		p.log.Error("mail given up", "to", l.To, "subject", l.Subject, "attempts", l.attempts, "error", err)
		p.done()
		return
	}
	pause := p.c.Pauses[l.attempts-1]
	p.log.Warn("mail is tried again", "to", l.To, "in", pause.String(), "attempts", l.attempts, "error", err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.later[l] = time.AfterFunc(pause, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.later[l] != nil {
			delete(p.later, l)
			p.queue <- l
		}
	})
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

func (p *Post) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting--
	if p.closing && p.waiting == 0 {
		close(p.idle)
	}
}

// message is a letter as the mail system knows it.
func (p *Post) message(l wire.Letter) (*mail.Msg, error) {
	m := mail.NewMsg()
	if err := m.From(p.c.From); err != nil {
		return nil, fmt.Errorf("%w: %w", errLetter, err)
	}
	if err := m.To(l.To); err != nil {
		return nil, fmt.Errorf("%w: %w", errLetter, err)
	}
	m.Subject(strings.Join(strings.Fields(l.Subject), " "))
	m.SetDate()
	m.SetMessageID()
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(mail.TypeTextPlain, l.Text())
	m.AddAlternativeString(mail.TypeTextHTML, l.HTML())
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
	list, err := filepath.Glob(filepath.Join(p.c.Outbox, "*.eml"))
	for _, old := range list[:max(0, len(list)-maxKept)] {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return err
}

// Close takes no more letters, gives those that wait until ctx ends, and logs what is left. Letters to be tried again
// are tried once more at once.
func (p *Post) Close(ctx context.Context) error {
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return nil
	}
	p.closing = true
	for l, timer := range p.later {
		timer.Stop()
		delete(p.later, l)
		p.queue <- l
	}
	if p.waiting == 0 {
		close(p.idle)
	}
	p.mu.Unlock()
	select {
	case <-p.idle:
	case <-ctx.Done():
	}
	p.cancel()
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting > 0 {
		p.log.Error("mail lost: the server stopped before it was sent", "letters", p.waiting)
	}
	return nil
}

package mail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"parley/wire"
)

// Limits of incoming mail.
const (
	maxMailBytes   = 10 << 20  // bytes of one mail
	maxRecipients  = 20        // addresses of one mail
	maxParts       = 100       // parts of one mail that are read
	maxText        = 256 << 10 // bytes of text that are read; the message is cut to a much shorter length
	MaxConnections = 50        // connections at the same time; others wait
	smtpTimeout    = time.Minute
	// shutdownGrace is how long a closing server waits for the rest of a mail. Then the sender gets a temporary error,
	// or sees the connection end. Mail servers send the mail again later in both cases.
	shutdownGrace = 500 * time.Millisecond
)

// Channels posts mail to channels.
type Channels interface {
	// Known reports whether a channel has the token in its mail address.
	Known(token string) bool
	// Post posts a mail to the channel with the token, and returns when the message is on disk.
	Post(token string, m wire.IncomingMail) error
}

// SMTPServer receives mail for channels by SMTP.
type SMTPServer struct {
	server   *smtp.Server
	channels Channels
	log      *slog.Logger
	closing  chan struct{} // closed when no connection is read any more
}

// NewSMTPServer returns a server for addresses of one domain. Serve starts it.
func NewSMTPServer(domain string, c Channels, log *slog.Logger) *SMTPServer {
	s := &SMTPServer{channels: c, log: log, closing: make(chan struct{})}
	s.server = smtp.NewServer(s)
	s.server.Domain, s.server.MaxMessageBytes, s.server.MaxRecipients = domain, maxMailBytes, maxRecipients
	s.server.ReadTimeout, s.server.WriteTimeout = smtpTimeout, smtpTimeout
	s.server.ErrorLog = debugLogger{log}
	return s
}

// debugLogger logs the errors of single connections, which clients cause, at the debug level.
type debugLogger struct{ log *slog.Logger }

func (l debugLogger) Printf(format string, v ...any) {
	l.log.Debug("SMTP connection failed", "err", fmt.Sprintf(format, v...))
}

func (l debugLogger) Println(v ...any) {
	l.log.Debug("SMTP connection failed", "err", fmt.Sprint(v...))
}

// Serve accepts connections until Close; it then returns nil.
func (s *SMTPServer) Serve(l net.Listener) error {
	err := s.server.Serve(&limitedListener{l, make(chan struct{}, MaxConnections), s.closing})
	if errors.Is(err, smtp.ErrServerClosed) {
		return nil
	}
	return err
}

// Close accepts no further connections, waits shutdownGrace for mails that are being received, and returns when all
// connections are closed or ctx ends.
func (s *SMTPServer) Close(ctx context.Context) error {
	defer time.AfterFunc(shutdownGrace, func() { close(s.closing) }).Stop()
	return s.server.Shutdown(ctx)
}

// limitedListener bounds the number of open connections. Further ones wait in the socket until one is closed. Once
// closing is closed, nothing more is read from any of them.
type limitedListener struct {
	net.Listener
	open    chan struct{}
	closing <-chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	l.open <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	limited := &limitedConn{Conn: c, open: l.open, closing: l.closing, closed: make(chan struct{})}
	go func() {
		select {
		case <-l.closing:
			c.SetReadDeadline(time.Unix(1, 0)) // interrupts a Read
		case <-limited.closed:
		}
	}()
	return limited, nil
}

type limitedConn struct {
	net.Conn
	open    chan struct{} // the listener's; Close takes one out
	closing <-chan struct{}
	closed  chan struct{}
	once    sync.Once
}

// Read fails once the server is closing. The deadline alone is not enough: the SMTP library sets it again.
func (c *limitedConn) Read(p []byte) (int, error) {
	select {
	case <-c.closing:
		return 0, os.ErrDeadlineExceeded
	default:
		return c.Conn.Read(p)
	}
}

func (c *limitedConn) Close() error {
	c.once.Do(func() {
		<-c.open
		close(c.closed)
	})
	return c.Conn.Close()
}

// NewSession starts the session of one connection. The SMTP library calls it.
func (s *SMTPServer) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &smtpSession{server: s}, nil
}

// smtpSession is one mail that is being received.
type smtpSession struct {
	server *SMTPServer
	to     []mailRecipient
}

func (*smtpSession) Mail(string, *smtp.MailOptions) error { return nil }
func (x *smtpSession) Reset()                             { x.to = nil }
func (*smtpSession) Logout() error                        { return nil }

// mailRecipient is a channel that gets the mail.
type mailRecipient struct {
	token   string
	options addressOptions
}

var errUnknownAddress = &smtp.SMTPError{
	Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No channel has this address",
}

// errSendAgain answers an incomplete mail. Nothing of it was posted.
var errSendAgain = &smtp.SMTPError{
	Code: 451, EnhancedCode: smtp.EnhancedCode{4, 4, 2}, Message: "Send it again later",
}

// errNoSpace answers a mail whose attachments cannot be stored at the moment.
var errNoSpace = &smtp.SMTPError{
	Code: 452, EnhancedCode: smtp.EnhancedCode{4, 3, 1}, Message: "Insufficient storage",
}

var errUnreadable = &smtp.SMTPError{
	Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "Mail cannot be read",
}

var errNotPosted = &smtp.SMTPError{
	Code: 554, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "Mail cannot be posted",
}

// Rcpt rejects an address without a known token at once, so that the sender learns about the mistake.
func (x *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	token := AddressToken(to)
	if token == "" || !x.server.channels.Known(token) {
		return errUnknownAddress
	}
	x.to = append(x.to, mailRecipient{token, optionsOf(to)})
	return nil
}

// Data posts a mail to each of its channels, once the whole mail was received.
func (x *smtpSession) Data(r io.Reader) error {
	m, err := parseMail(r)
	switch {
	case err == nil:
	case errors.Is(err, smtp.ErrDataTooLarge):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSendAgain
	case errors.Is(err, errNoSpace):
		x.server.log.Error("attachments of an incoming mail not stored", "err", err)
		return errNoSpace
	default:
		x.server.log.Info("incoming mail not readable", "err", err)
		return errUnreadable
	}
	defer m.close()
	_, err = io.Copy(io.Discard, r) // the parts after maxParts; a mail that is too large is rejected here
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSendAgain
	}
	if err != nil {
		return err
	}
	for _, to := range x.to {
		m.Text = m.textFor(to.options)
		if err := x.server.channels.Post(to.token, m.IncomingMail); err != nil {
			x.server.log.Warn("incoming mail not posted", "err", err)
			return errNotPosted
		}
	}
	return nil
}

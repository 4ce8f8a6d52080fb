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

// SMTPServer receives mail by SMTP.
type SMTPServer struct {
	server   *smtp.Server
	receiver *Receiver
	log      *slog.Logger
	closing  chan struct{} // closed when no connection is read any more
}

// NewSMTPServer returns a server for addresses of one domain. Serve starts it.
func NewSMTPServer(domain string, r *Receiver, log *slog.Logger) *SMTPServer {
	s := &SMTPServer{receiver: r, log: log, closing: make(chan struct{})}
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
	sender string // of the envelope; "": a report of a mail server
	to     []mailRecipient
}

func (x *smtpSession) Mail(from string, _ *smtp.MailOptions) error {
	x.sender = from
	return nil
}

func (x *smtpSession) Reset()      { x.sender, x.to = "", nil }
func (*smtpSession) Logout() error { return nil }

// Rcpt rejects an address that nothing can be sent to at once, so that the sender learns about the mistake. A reply has
// one recipient, because a mail is refused or accepted as a whole. Mail servers send it to the others afterwards.
func (x *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	r, err := x.server.receiver.recipient(to)
	if err != nil {
		return err
	}
	if len(x.to) > 0 && (r.reply != nil || x.to[0].reply != nil) {
		return errOneByOne
	}
	x.to = append(x.to, r)
	return nil
}

// Data posts a mail to its recipients, once the whole mail was received.
func (x *smtpSession) Data(r io.Reader) error {
	return x.server.receiver.receive(r, x.sender, x.to)
}

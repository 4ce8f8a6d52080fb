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

// Limits of mail that comes in.
const (
	maxMailBytes   = 10 << 20  // bytes of one mail
	maxRecipients  = 20        // addresses of one mail
	maxParts       = 100       // of one mail that are looked at
	maxText        = 256 << 10 // bytes of text that are read; a message is far shorter
	MaxConnections = 50        // at a time
	smtpTimeout    = time.Minute
	// shutdownGrace is how long a gate that closes waits for more of a mail. Whoever sent part of it hears, or takes it from
	// the connection's end, that it is to be sent again later, as mail servers do.
	shutdownGrace = 500 * time.Millisecond
)

// Channels takes what came for a channel.
type Channels interface {
	// Known reports whether mail to the token of a channel's address would be taken.
	Known(token string) bool
	Post(token string, m wire.IncomingMail) error
}

// SMTPServer receives mail for channels by SMTP.
type SMTPServer struct {
	server   *smtp.Server
	channels Channels
	log      *slog.Logger
	closing  chan struct{} // closed when nobody is listened to any more
}

// NewSMTPServer makes a gate for addresses of one domain; Serve opens it.
func NewSMTPServer(domain string, c Channels, log *slog.Logger) *SMTPServer {
	g := &SMTPServer{channels: c, log: log, closing: make(chan struct{})}
	s := smtp.NewServer(g)
	s.Domain, s.MaxMessageBytes, s.MaxRecipients = domain, maxMailBytes, maxRecipients
	s.ReadTimeout, s.WriteTimeout = smtpTimeout, smtpTimeout
	s.ErrorLog = debugLogger{log}
	g.server = s
	return g
}

// debugLogger notes what single connections do wrong where nobody is woken by it.
type debugLogger struct{ log *slog.Logger }

func (q debugLogger) Printf(format string, v ...any) {
	q.log.Debug("mail gate: " + fmt.Sprintf(format, v...))
}
func (q debugLogger) Println(v ...any) { q.log.Debug("mail gate: " + fmt.Sprint(v...)) }

// Serve takes mail until the gate is closed.
func (g *SMTPServer) Serve(l net.Listener) error {
	err := g.server.Serve(&limitedListener{l, make(chan struct{}, MaxConnections), g.closing})
	if errors.Is(err, smtp.ErrServerClosed) {
		return nil
	}
	return err
}

// Close lets mails that are all but there come in, and no more.
func (g *SMTPServer) Close(ctx context.Context) error {
	defer time.AfterFunc(shutdownGrace, func() { close(g.closing) }).Stop()
	return g.server.Shutdown(ctx)
}

// limitedListener is a listener with a bound on its open connections: the others wait in the socket. From them nothing more is read
// once closing is closed.
type limitedListener struct {
	net.Listener
	open    chan struct{}
	closing <-chan struct{}
}

func (n *limitedListener) Accept() (net.Conn, error) {
	n.open <- struct{}{}
	c, err := n.Listener.Accept()
	if err != nil {
		<-n.open
		return nil, err
	}
	x := &limitedConn{Conn: c, free: n.open, closing: n.closing, closed: make(chan struct{})}
	go func() {
		select {
		case <-n.closing:
			c.SetReadDeadline(time.Unix(1, 0))
		case <-x.closed:
		}
	}()
	return x, nil
}

type limitedConn struct {
	net.Conn
	free    chan struct{}
	closing <-chan struct{}
	closed  chan struct{}
	once    sync.Once
}

// Read ends when the gate closes, whatever deadline the server has set anew meanwhile.
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
		<-c.free
		close(c.closed)
	})
	return c.Conn.Close()
}

// NewSession begins one connection.
func (g *SMTPServer) NewSession(*smtp.Conn) (smtp.Session, error) {
	return &smtpSession{server: g}, nil
}

// smtpSession is one mail on its way in.
type smtpSession struct {
	server *SMTPServer
	tokens []string
}

func (*smtpSession) Mail(string, *smtp.MailOptions) error { return nil }
func (x *smtpSession) Reset()                             { x.tokens = nil }
func (*smtpSession) Logout() error                        { return nil }

var errUnknownAddress = &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No channel has this address"}

// errSendAgain is for a mail that did not come to its end: nothing of it was taken.
var errSendAgain = &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 4, 2}, Message: "Send it again later"}

// Rcpt refuses what is no channel's address at once, so that whoever wrote hears of it.
func (x *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	token := AddressToken(to)
	if token == "" || !x.server.channels.Known(token) {
		return errUnknownAddress
	}
	x.tokens = append(x.tokens, token)
	return nil
}

// Data posts a mail to every channel it came for. Parts that cannot be read do not keep the others out.
func (x *smtpSession) Data(r io.Reader) error {
	m, err := parseMail(r)
	if errors.Is(err, smtp.ErrDataTooLarge) {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSendAgain
	}
	if errors.Is(err, errNoSpace) {
		x.server.log.Error("mail not kept", "error", err)
		return errNoSpace
	}
	if err != nil {
		x.server.log.Info("mail not understood", "error", err)
		return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 6, 0}, Message: "Mail cannot be read"}
	}
	defer m.close()
	_, err = io.Copy(io.Discard, r) // parts nobody looked at; too large a mail is refused here
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errSendAgain
	}
	if err != nil {
		return err
	}
	for _, token := range x.tokens {
		if err := x.server.channels.Post(token, m.IncomingMail); err != nil {
			x.server.log.Warn("mail not posted", "error", err)
			return &smtp.SMTPError{Code: 554, EnhancedCode: smtp.EnhancedCode{5, 7, 1}, Message: "Mail cannot be posted"}
		}
	}
	return nil
}

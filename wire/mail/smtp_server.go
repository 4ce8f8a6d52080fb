package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // mails come in every character set there is
	readmail "github.com/emersion/go-message/mail"
	"github.com/emersion/go-smtp"
	"golang.org/x/net/html"

	"parley/actors/realm"
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

// tokenLength is what tells the token in an address from the readable rest.
const tokenLength = 32

// AddressToken is the token in an address such as plans.<token>.show-sender@example.com, or "".
func AddressToken(address string) string {
	local, _, _ := strings.Cut(address, "@")
	for _, part := range strings.Split(local, ".") {
		if len(part) == tokenLength && !strings.Contains(part, "-") {
			return strings.ToLower(part)
		}
	}
	return ""
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

// parsedMail is a mail that was parsedMail. Its files lie behind each other in a file that has no name any more.
type parsedMail struct {
	wire.IncomingMail
	files   *os.File // nil: there are none
	size    int64
	omitted int // files that were not kept
}

func (p *parsedMail) close() {
	if p.files != nil {
		p.files.Close()
	}
}

// errNoSpace is for a mail whose files cannot be kept at the moment.
var errNoSpace = &smtp.SMTPError{Code: 452, EnhancedCode: smtp.EnhancedCode{4, 3, 1}, Message: "Insufficient storage"}

// addFile takes a file out of a mail.
func (p *parsedMail) addFile(name string, r io.Reader) error {
	if len(p.Files) == realm.MaxEmailFiles {
		p.omitted++
		return nil
	}
	if p.files == nil {
		f, err := os.CreateTemp("", "parley-mail-")
		if err != nil {
			return errNoSpace
		}
		p.files = f
		os.Remove(f.Name())
	}
	w := &failureWriter{w: p.files}
	n, err := io.Copy(w, r)
	if w.failed {
		return errNoSpace
	}
	if err != nil {
		return err
	}
	p.Files = append(p.Files, wire.MailAttachment{Name: name, Content: io.NewSectionReader(p.files, p.size, n)})
	p.size += n
	return nil
}

// failureWriter is a writer that knows whether it was the one that failed.
type failureWriter struct {
	w      io.Writer
	failed bool
}

func (x *failureWriter) Write(b []byte) (int, error) {
	n, err := x.w.Write(b)
	x.failed = err != nil
	return n, err
}

// parseMail finds the topic, the text and the files of a mail: its first plain text, or else its first page, without markup;
// and all parts that have a name. The caller closes it.
func parseMail(r io.Reader) (p *parsedMail, err error) {
	m, err := readmail.CreateReader(r)
	if err != nil && (m == nil || !message.IsUnknownCharset(err)) {
		return nil, err
	}
	p = &parsedMail{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	subject, _ := m.Header.Subject() // one that cannot be decoded counts as none
	p.Topic = topicFromSubject(subject)
	from := ""
	if list, err := m.Header.AddressList("From"); err == nil && len(list) > 0 {
		from = list[0].String()
	}
	plain, page := "", ""
	for range maxParts {
		part, err := m.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil && (part == nil || !message.IsUnknownCharset(err)) {
			return p, err
		}
		kind, name, isFile := describePart(part)
		switch {
		case isFile:
			err = p.addFile(name, part.Body)
		case kind == "text/plain" && plain == "":
			plain, err = readText(part.Body)
			plain = strings.TrimSpace(plain)
		case kind == "text/html" && page == "":
			page, err = readText(part.Body)
			page = htmlToText(page)
		default:
			err = nil
		}
		if err != nil {
			return p, err
		}
	}
	if plain == "" {
		plain = page
	}
	if plain == "" {
		plain = "(no text)"
	}
	p.Text = strings.ReplaceAll(strings.ToValidUTF8(plain, "\uFFFD"), "\r\n", "\n")
	if from != "" {
		p.Text = "From: " + strings.NewReplacer("*", "", "`", "", "<", "(", ">", ")").Replace(from) + "\n\n" + p.Text
	}
	if p.omitted > 0 {
		p.Text += fmt.Sprintf("\n\n(%d further files of this mail were not kept.)", p.omitted)
	}
	return p, nil
}

// describePart is a part's type and, if it is a file, its name: what is attached, and what is to be shown in place but has a name.
func describePart(part *readmail.Part) (kind, name string, isFile bool) {
	switch h := part.Header.(type) {
	case *readmail.AttachmentHeader:
		name, _ = h.Filename()
		return "", name, true
	case *readmail.InlineHeader:
		kind, params, _ := h.ContentType()
		_, shown, _ := h.ContentDisposition()
		name = cmp.Or(shown["filename"], params["name"])
		return kind, name, name != ""
	}
	return "", "", false
}

func readText(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxText))
	return string(text), err
}

// topicFromSubject is a subject without the marks of answers and forwarding, so that a conversation stays in its topic.
func topicFromSubject(subject string) string {
	s := strings.Join(strings.Fields(subject), " ")
	for {
		cut := false
		for _, mark := range []string{"re:", "fwd:", "fw:", "aw:"} {
			if len(s) >= len(mark) && strings.EqualFold(s[:len(mark)], mark) {
				s, cut = strings.TrimSpace(s[len(mark):]), true
			}
		}
		if !cut {
			break
		}
	}
	if s == "" {
		return "Email with no subject"
	}
	return s
}

// htmlToText is what a page says, one line a block.
func htmlToText(page string) string {
	var b strings.Builder
	hidden := 0
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			lines := strings.Split(b.String(), "\n")
			out := lines[:0]
			for _, l := range lines {
				if l = strings.Join(strings.Fields(l), " "); l != "" {
					out = append(out, l)
				}
			}
			return strings.Join(out, "\n")
		case html.TextToken:
			if hidden == 0 {
				b.WriteString(strings.ReplaceAll(string(z.Text()), "\n", " "))
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch string(name) {
			case "style", "script", "head", "title":
				if kind == html.StartTagToken {
					hidden++
				} else if kind == html.EndTagToken && hidden > 0 {
					hidden--
				}
			case "p", "div", "br", "li", "tr", "h1", "h2", "h3", "blockquote", "table", "ul", "ol":
				b.WriteByte('\n')
			}
		}
	}
}

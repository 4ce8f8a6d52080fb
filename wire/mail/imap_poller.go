package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
)

const (
	// imapPause is the pause between two looks into a mailbox.
	imapPause = 30 * time.Second
	// imapTimeout limits one look.
	imapTimeout = 2 * time.Minute
	// maxMailsPerLook limits the mails of one look; the next look takes the others. Each is in memory for a moment.
	maxMailsPerLook = 50
	// maxNamedRecipients limits the addresses of the domain that are read from a header: each is searched for.
	maxNamedRecipients = 100
)

// IMAPConfig is the mailbox that a poller reads.
type IMAPConfig struct {
	Host           string
	Port           int
	User, Password string
	Security       string // StartTLS, TLS or Plain
	Folder         string
	Domain         string // of the addresses of channels and replies
}

// IMAPPoller posts the mails of a mailbox, as another way in than SMTP. It removes a mail from the mailbox once it is
// posted. A mail that is refused stays there, marked as flagged, because its sender gets no error. Other mails are
// tried again. A crash between the two steps posts a mail twice.
type IMAPPoller struct {
	c        IMAPConfig
	receiver *Receiver
	log      *slog.Logger
	stop     context.CancelFunc
	done     chan struct{}
	failing  bool // the last look failed; the log has it already
	// last is the mail that was taken last. Each look begins after it, so that mails that cannot be posted for now do
	// not keep out later ones.
	last imap.UID
}

// StartIMAP polls a mailbox until Close.
func StartIMAP(c IMAPConfig, r *Receiver, log *slog.Logger) *IMAPPoller {
	ctx, stop := context.WithCancel(context.Background())
	p := &IMAPPoller{c: c, receiver: r, log: log, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		for ctx.Err() == nil {
			p.poll(ctx)
			select {
			case <-time.After(imapPause):
			case <-ctx.Done():
			}
		}
	}()
	return p
}

// Close ends the polling. A mail that is being posted is posted.
func (p *IMAPPoller) Close() {
	p.stop()
	<-p.done
}

// poll looks into the mailbox once and logs errors when they begin and end.
func (p *IMAPPoller) poll(ctx context.Context) {
	err := p.look(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil && !p.failing:
		p.log.Error("mailbox not readable", "host", p.c.Host, "user", p.c.User, "err", err)
	case err == nil && p.failing:
		p.log.Info("mailbox readable again", "host", p.c.Host)
	}
	p.failing = err != nil
}

func (p *IMAPPoller) connect() (*imapclient.Client, error) {
	at := net.JoinHostPort(p.c.Host, strconv.Itoa(p.c.Port))
	switch p.c.Security {
	case TLS:
		return imapclient.DialTLS(at, nil)
	case StartTLS:
		return imapclient.DialStartTLS(at, nil)
	}
	return imapclient.DialInsecure(at, nil)
}

// look posts the waiting mails, the oldest first, and begins after the one that was taken last.
func (p *IMAPPoller) look(ctx context.Context) error {
	c, err := p.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, imapTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	defer c.Close()
	if err := c.Login(p.c.User, p.c.Password).Wait(); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if _, err := c.Select(p.c.Folder, nil).Wait(); err != nil {
		return fmt.Errorf("open folder %s: %w", p.c.Folder, err)
	}
	waiting := &imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagDeleted, imap.FlagFlagged}}
	found, err := c.UIDSearch(waiting, nil).Wait()
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	list := found.AllUIDs()
	slices.Sort(list)
	first, _ := slices.BinarySearch(list, p.last+1)
	list = slices.Concat(list[first:], list[:first])
	for _, id := range list[:min(len(list), maxMailsPerLook)] {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.last = id
		if err := p.take(c, id); err != nil {
			return err
		}
	}
	return c.Logout().Wait()
}

// take posts one mail and removes or marks it.
func (p *IMAPPoller) take(c *imapclient.Client, id imap.UID) error {
	set := imap.UIDSetNum(id)
	sizes, err := c.Fetch(set, &imap.FetchOptions{RFC822Size: true}).Collect()
	if err != nil || len(sizes) == 0 {
		return err // another program has removed it
	}
	why := error(errTooLarge)
	if sizes[0].RFC822Size <= maxMailBytes {
		section := &imap.FetchItemBodySection{Peek: true}
		mails, err := c.Fetch(set, &imap.FetchOptions{BodySection: []*imap.FetchItemBodySection{section}}).Collect()
		if err != nil || len(mails) == 0 {
			return err
		}
		why = p.post(mails[0].FindBodySection(section))
	}
	switch {
	case why == nil:
		return p.remove(c, set)
	case IsPermanentError(why):
		p.log.Warn("mail in the mailbox refused", "mail", id, "err", why)
		return c.Store(set, &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true,
			Flags: []imap.Flag{imap.FlagFlagged}}, nil).Close()
	}
	p.log.Info("mail in the mailbox not posted yet", "mail", id, "err", why)
	return nil
}

var errTooLarge = mailError(552, 5, 3, 4, "Mail is too large")

// remove deletes a mail that was posted, and no other one if the server can do that.
func (p *IMAPPoller) remove(c *imapclient.Client, set imap.UIDSet) error {
	err := c.Store(set, &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true,
		Flags: []imap.Flag{imap.FlagDeleted}}, nil).Close()
	if err != nil {
		return err
	}
	if c.Caps().Has(imap.CapUIDPlus) {
		return c.UIDExpunge(set).Close()
	}
	return c.Expunge().Close()
}

// post posts a mail to the addresses in its header.
func (p *IMAPPoller) post(mail []byte) error {
	h := readHeader(newMailLines(bytes.NewReader(mail)), nil)
	to, err := p.recipientsOfCopy(h)
	if err != nil {
		return err
	}
	return p.receiver.receive(bytes.NewReader(mail), senderPath(h), to)
}

// recipientsOfCopy returns the recipients in the first of recipientFields that have a valid one.
func (p *IMAPPoller) recipientsOfCopy(h mailHeader) ([]mailRecipient, error) {
	last := error(errUnknownAddress)
	for _, fields := range recipientFields {
		to, err := p.recipients(h, fields)
		if len(to) > 0 {
			return to, nil
		}
		if err != nil {
			last = err
		}
	}
	return nil, last
}

// recipients returns the valid recipients in some fields of a header: channels, or the address of a reply. The error is
// that of an invalid one.
func (p *IMAPPoller) recipients(h mailHeader, fields []string) (to []mailRecipient, last error) {
	for _, address := range recipientsOf(h, p.c.Domain, fields) {
		r, err := p.receiver.recipient(address)
		switch {
		case err != nil:
			last = err
		case r.reply != nil:
			return []mailRecipient{r}, nil
		case len(to) < maxRecipients:
			to = append(to, r)
		}
	}
	return to, last
}

// senderPath returns the sender of the envelope, which mail servers write into the header. It is "unknown" if
// the server does not.
func senderPath(h mailHeader) string {
	if path, ok := h["return-path"]; ok {
		return strings.Trim(path, "<> ")
	}
	return "unknown"
}

// recipientFields are the fields that name recipients. The first ones say to which the mail server delivered this copy:
// the others may name recipients that got a copy of their own. Some servers name the recipient only in Received.
var recipientFields = [][]string{{"delivered-to", "x-original-to", "envelope-to"}, {"to", "cc"}, {receivedField}}

// receivedFor finds the recipient in a Received field.
var receivedFor = regexp.MustCompile(`\bfor <([^<>\s]+)>`)

// recipientsOf returns the addresses of a domain in some fields, each once.
func recipientsOf(h mailHeader, domain string, fields []string) (out []string) {
	add := func(address string) {
		address = strings.ToLower(address)
		_, host, _ := strings.Cut(address, "@")
		if strings.EqualFold(host, domain) && !slices.Contains(out, address) && len(out) < maxNamedRecipients {
			out = append(out, address)
		}
	}
	for _, field := range fields {
		if field == receivedField {
			for _, found := range receivedFor.FindAllStringSubmatch(h[field], maxNamedRecipients) {
				add(found[1])
			}
			continue
		}
		list, err := parseAddresses(decodeCharset("", []byte(h[field])))
		if err != nil {
			continue
		}
		for _, a := range list {
			add(a.Address)
		}
	}
	return out
}

// Check returns an error if a value of the configuration is invalid.
func (c IMAPConfig) Check() error {
	switch {
	case c.Port < 1 || c.Port > 65535:
		return fmt.Errorf("imap-port must be between 1 and 65535, not %d", c.Port)
	case !slices.Contains([]string{StartTLS, TLS, Plain}, c.Security):
		return fmt.Errorf("imap-tls must be %s, %s or %s, not %q", StartTLS, TLS, Plain, c.Security)
	case c.User == "" || c.Folder == "":
		return errors.New("imap-user and imap-folder must not be empty if imap-host is set")
	}
	return nil
}

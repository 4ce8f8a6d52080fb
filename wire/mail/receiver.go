package mail

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	netmail "net/mail"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"parley/actors/realm"
	"parley/wire"
)

// Mailboxes posts mail to channels, and replies to conversations.
type Mailboxes interface {
	// Known reports whether a channel has the token in its mail address.
	Known(token string) bool
	// Post posts a mail to the channel with the token, and returns when the message is on disk.
	Post(token string, m wire.IncomingMail) error
	// FindReply returns the meaning of a reply address, wire.ErrReplyAddress or wire.ErrReplyExpired.
	FindReply(address string) (wire.MailReply, error)
	// ReplySender returns the email address of the user whose replies r takes, or "".
	ReplySender(r wire.MailReply) (string, error)
	// PostReply sends a mail as a message of the user, and returns when the message is on disk.
	PostReply(r wire.MailReply, m wire.IncomingMail) error
}

// Receiver checks the mails that arrive by SMTP or from a mailbox, and posts them.
type Receiver struct {
	Mailboxes Mailboxes
	Senders   SenderCheck // of replies
	Own       string      // Config.From: mails from this address are refused
	Log       *slog.Logger
	Now       func() time.Time

	mu      sync.Mutex
	hour    int64               // since 1970, in which replies are counted
	replies map[replyAuthor]int // in that hour
}

// replyAuthor is the user of an organization that sends replies.
type replyAuthor struct {
	realm realm.ID
	user  realm.UserID
}

// maxRepliesPerHour limits the replies of one user. It ends loops with programs that do not mark their mails.
const maxRepliesPerHour = 60

// mailRecipient is a channel that gets the mail, or the conversation that a reply belongs to.
type mailRecipient struct {
	token   string
	options addressOptions
	reply   *wire.MailReply // nil: a channel
}

// mailError returns an error with an SMTP code and an enhanced status code (RFC 3463). Codes from 500 on are permanent.
func mailError(code int, class, subject, detail int, text string) *smtp.SMTPError {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{class, subject, detail}, Message: text}
}

var (
	errUnknownAddress = mailError(550, 5, 1, 1, "No channel has this address")
	errUnknownReply   = mailError(550, 5, 1, 1, "No such reply address")
	errReplyExpired   = mailError(550, 5, 1, 6, "Too late to reply to this email; please use the app")
	// errOneByOne asks the mail server to send the mail to the other recipients afterwards.
	errOneByOne = mailError(452, 4, 5, 3, "One recipient at a time, please")
	// errSendAgain answers an incomplete mail. Nothing of it was posted.
	errSendAgain = mailError(451, 4, 4, 2, "Send it again later")
	// errNotNow answers a mail that could not be posted at the moment.
	errNotNow = mailError(451, 4, 3, 0, "Cannot be posted now; send it again later")
	// errNoSpace answers a mail whose attachments cannot be stored at the moment.
	errNoSpace     = mailError(452, 4, 3, 1, "Insufficient storage")
	errUnreadable  = mailError(554, 5, 6, 0, "Mail cannot be read")
	errNotPosted   = mailError(554, 5, 7, 1, "Mail cannot be posted")
	errAutomatic   = mailError(554, 5, 7, 1, "Only people can reply: this mail was sent by a program or a list")
	errOtherSender = mailError(554, 5, 7, 1, "Only the person who got the email can reply to it, from the same address")
	errOwnMail     = mailError(554, 5, 4, 6, "Emails of this server cannot be posted, because that could make a loop")
	errForged      = mailError(554, 5, 7, 1, "The sender's domain does not confirm this mail (DMARC)")
	errNothingNew  = mailError(554, 5, 6, 0, "The reply has no text of its own")
	errTooMany     = mailError(450, 4, 7, 1, "Too many replies; send it again later")
)

// IsPermanentError reports whether the same mail will be refused again.
func IsPermanentError(err error) bool {
	var e *smtp.SMTPError
	return errors.As(err, &e) && e.Code >= 500
}

// recipient returns the meaning of an address, or an *smtp.SMTPError.
func (x *Receiver) recipient(address string) (mailRecipient, error) {
	if wire.IsReplyAddress(address) {
		r, err := x.Mailboxes.FindReply(address)
		switch {
		case errors.Is(err, wire.ErrReplyExpired):
			return mailRecipient{}, errReplyExpired
		case err != nil && AddressToken(address) == "":
			return mailRecipient{}, errUnknownReply
		case err == nil:
			return mailRecipient{reply: &r}, nil
		}
	}
	token := AddressToken(address)
	if token == "" || !x.Mailboxes.Known(token) {
		return mailRecipient{}, errUnknownAddress
	}
	return mailRecipient{token: token, options: optionsOf(address)}, nil
}

// receive posts a mail to its recipients. It reads the whole mail first. sender is the address of the envelope. Errors
// are an *smtp.SMTPError.
func (x *Receiver) receive(r io.Reader, sender string, to []mailRecipient) error {
	if len(to) == 1 && to[0].reply != nil {
		return x.receiveReply(r, sender, *to[0].reply)
	}
	m, err := x.parse(r)
	if err != nil {
		return err
	}
	defer m.close()
	if x.isOwn(m.header) {
		x.Log.Warn("mail of this server refused: it was forwarded to a channel", "subject", m.header["subject"])
		return errOwnMail
	}
	for _, to := range to {
		m.Text = m.textFor(to.options)
		if err := x.Mailboxes.Post(to.token, m.IncomingMail); err != nil {
			return x.notPosted(err, errNotPosted)
		}
	}
	return nil
}

// parse reads a mail to its end.
func (x *Receiver) parse(r io.Reader) (*parsedMail, error) {
	m, err := parseMail(r)
	if err == nil {
		// the parts after maxParts; a mail that is too large is rejected here
		if _, err = io.Copy(io.Discard, r); err != nil {
			m.close()
		}
	}
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, smtp.ErrDataTooLarge):
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSendAgain
	case errors.Is(err, errNoSpace):
		x.Log.Error("attachments of an incoming mail not stored", "err", err)
		err = errNoSpace
	default:
		x.Log.Info("incoming mail not readable", "err", err)
		err = errUnreadable
	}
	return nil, err
}

// notPosted returns the answer to a mail that was not posted: refused, or an error that may pass.
func (x *Receiver) notPosted(err error, refused *smtp.SMTPError) error {
	x.Log.Warn("incoming mail not posted", "err", err)
	var r *realm.Refusal
	if !errors.As(err, &r) || r.Kind == realm.Busy {
		return errNotNow
	}
	return refused
}

// receiveReply posts a reply. It checks everything that needs no turn before it stores a file.
func (x *Receiver) receiveReply(r io.Reader, sender string, to wire.MailReply) error {
	raw, err := os.CreateTemp("", "parley-mail-") // the check of a signature reads the mail again
	if err != nil {
		return errNoSpace
	}
	defer raw.Close()
	os.Remove(raw.Name())
	disk := &failureWriter{w: raw}
	m, err := x.parse(io.TeeReader(r, disk))
	if disk.failed {
		err = errNoSpace
	}
	if err != nil {
		return err
	}
	defer m.close()
	if why := automaticMail(m.header, sender); why != "" {
		x.Log.Info("reply by mail refused", "realm", to.Realm, "user", to.User, "why", why)
		return errAutomatic
	}
	want, err := x.Mailboxes.ReplySender(to)
	if err != nil {
		return x.notPosted(err, errOtherSender)
	}
	if _, err := raw.Seek(0, io.SeekStart); err != nil {
		return errNoSpace
	}
	if err := x.Senders.check(raw, m.header, want); err != nil {
		x.Log.Warn("reply by mail refused", "realm", to.Realm, "user", to.User, "from", m.from, "err", err)
		return err
	}
	if m.Text = m.replyText(); m.Text == "" && len(m.Files) == 0 {
		return errNothingNew
	}
	if !x.count(replyAuthor{to.Realm, to.User}) {
		return errTooMany
	}
	if err := x.Mailboxes.PostReply(to, m.IncomingMail); err != nil {
		// the sender is the user, who may read why
		return x.notPosted(err, mailError(554, 5, 7, 1, oneLine(err.Error())))
	}
	return nil
}

// count adds a reply of a user, and reports whether the user may send it.
func (x *Receiver) count(who replyAuthor) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if hour := x.Now().Unix() / 3600; hour != x.hour || x.replies == nil {
		x.hour, x.replies = hour, map[replyAuthor]int{}
	}
	x.replies[who]++
	return x.replies[who] <= maxRepliesPerHour
}

// isOwn reports whether a mail is an email of this server. A user's mailbox may forward them to a channel, whose new
// message would cause the next email.
func (x *Receiver) isOwn(h mailHeader) bool {
	own, err := parseAddresses(x.Own)
	from, fault := parseAddresses(decodeCharset("", []byte(h["from"])))
	return err == nil && fault == nil && len(own) == 1 && slices.ContainsFunc(from, func(a *netmail.Address) bool {
		return strings.EqualFold(a.Address, own[0].Address)
	})
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// automaticMail returns why a mail was not written by a person, or "". sender is the address of the envelope. Answering
// such mails could make a loop (RFC 3834).
func automaticMail(h mailHeader, sender string) string {
	first := func(name string) string {
		v, _, _ := strings.Cut(h[name], ";")
		return strings.ToLower(strings.TrimSpace(v))
	}
	switch submitted := first("auto-submitted"); {
	case submitted != "" && submitted != "no":
		return "Auto-Submitted: " + submitted
	case h["list-id"] != "":
		return "List-Id"
	case strings.Trim(sender, "<> ") == "", h["return-path"] != "" && strings.Trim(h["return-path"], "<> ") == "":
		return "empty envelope sender"
	case strings.HasPrefix(first("content-type"), "multipart/report"):
		return "report"
	case cmp.Or(h["x-autoreply"], h["x-autorespond"], h["x-autoresponse"]) != "":
		return "automatic reply"
	}
	switch p := first("precedence"); p {
	case "bulk", "list", "junk", "auto_reply":
		return "Precedence: " + p
	}
	return ""
}

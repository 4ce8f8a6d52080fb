package wire

import (
	"crypto/hmac"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/actors/realm"
)

// ReplyValidity is how long a user can answer an email about missed messages.
const ReplyValidity = 5 * 24 * time.Hour

const (
	// replyPrefix begins the local part of the addresses to which users send replies.
	replyPrefix = "reply."
	// replySignatureBytes is the length of the signature in such an address. The local part has at most 64 characters
	// (RFC 5321), and nobody can try 2^80 addresses.
	replySignatureBytes = 10
)

// replyEncoding has letters of one case, because mail programs may change the case of an address.
var replyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// MailReply is the meaning of a reply address: whose replies it takes, which message they answer, and until when.
type MailReply struct {
	Realm realm.ID
	realm.EmailReply
	Until int64 // Unix seconds; an address contains the whole hour before it
}

// ErrReplyExpired is the error of a reply address that was valid.
var ErrReplyExpired = errors.New("this reply address has expired")

// ErrReplyAddress is the error of a reply address that the server did not make.
var ErrReplyAddress = errors.New("no such reply address")

// ReplyAddress returns the address to which a user replies. It contains a signature with the server's secret, so it is
// made when the email is sent and never stored.
func ReplyAddress(t *Tools, r MailReply) string {
	r.Until -= r.Until % 3600
	b := r.fields()
	b = append(b, r.signature(t)...)
	return fmt.Sprintf(t.ChannelMailPattern, replyPrefix+replyEncoding.EncodeToString(b))
}

// fields returns realm, user, message and the hour of the end.
func (r MailReply) fields() (b []byte) {
	for _, n := range []uint64{uint64(r.Realm), uint64(r.User), uint64(r.Message), uint64(r.Until / 3600)} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func (r MailReply) signature(t *Tools) []byte {
	text := fmt.Sprintf("reply of %d in %d to message %d until %d", r.User, r.Realm, r.Message, r.Until)
	mark, err := hex.DecodeString(t.Sign(text))
	if err != nil || len(mark) < replySignatureBytes {
		panic("BUG: signature is not in hexadecimal")
	}
	return mark[:replySignatureBytes]
}

// IsReplyAddress reports whether an address has the form of a reply address.
func IsReplyAddress(address string) bool {
	return strings.HasPrefix(strings.ToLower(address), replyPrefix)
}

// FindReply returns the meaning of a reply address, ErrReplyAddress or ErrReplyExpired. It checks the signature, but
// not the present rights of the user.
func FindReply(t *Tools, address string, now time.Time) (r MailReply, err error) {
	local, _, _ := strings.Cut(strings.ToLower(address), "@")
	b, err := replyEncoding.DecodeString(strings.TrimPrefix(local, replyPrefix))
	if err != nil || !IsReplyAddress(address) || t.Sign == nil {
		return r, ErrReplyAddress
	}
	var n [4]uint64
	rest := b
	for i := range n {
		size := 0
		if n[i], size = binary.Uvarint(rest); size <= 0 || n[i] >= 1<<40 {
			return r, ErrReplyAddress
		}
		rest = rest[size:]
	}
	r = MailReply{realm.ID(n[0]), realm.EmailReply{User: realm.UserID(n[1]), Message: realm.MessageID(n[2])},
		int64(n[3]) * 3600}
	if !hmac.Equal(r.signature(t), rest) {
		return r, ErrReplyAddress
	}
	if now.Unix() >= r.Until {
		return r, ErrReplyExpired
	}
	return r, nil
}

// PostReply sends an email as a message of the user to the conversation of the message that it answers. The caller has
// checked that the user sent the email.
func PostReply(c *Call, r MailReply, m IncomingMail) error {
	user := *c
	user.Realm, user.Caller = r.Realm, realm.Caller{User: r.User, Client: replyClient}
	cmd := realm.ReplyByEmail{Message: r.Message, Text: m.Text}
	return m.post(&user, &cmd.Files, func() (realm.EmailPosted, error) { return Execute(&user, cmd) })
}

// replyClient is the program that messages name which were sent by email (protocol).
const replyClient = "Internal"

package realm

import (
	"fmt"
	"strings"
)

// MailAddress is the row of an email address that posts to a channel. Its key is the token in the address. There is one
// for each channel, each user that asked for it, and each sender that its messages show.
type MailAddress struct {
	Channel ChannelID
	User    UserID
	Sender  UserID
}

// MailToken asks for the token of the caller's email address of a channel. Sender 0 is the email gateway bot.
type MailToken struct {
	Channel ChannelID
	Sender  UserID
}

// ChannelMail answers MailToken.
type ChannelMail struct{ Slug, Token string }

func (c MailToken) Decide(t *Turn) (ChannelMail, error) {
	me := t.Me()
	if me == nil {
		return ChannelMail{}, errNotMember()
	}
	ch, err := t.VisibleChannel(c.Channel)
	if err != nil {
		return ChannelMail{}, err
	}
	sender := EmailGateway
	if c.Sender != 0 {
		u := t.Find(c.Sender)
		if u == nil || u.ID != me.ID && u.ID != EmailGateway &&
			(!u.IsBot() || u.BotOwner != me.ID || u.outranks(me)) {
			return ChannelMail{}, BadRequest("Invalid user ID: %d", c.Sender)
		}
		sender = u.ID
	}
	if err := t.checkMaySend(me, ch); err != nil {
		return ChannelMail{}, errInvalidChannel()
	}
	key := mailKey{ch.ID, me.ID, sender}
	token, ok := t.index.mailTokens[key]
	if !ok {
		token = strings.ToLower(t.Token(32))
		t.Record(&MailTokenMade{Token: token, Address: MailAddress{ch.ID, me.ID, sender}})
	}
	return ChannelMail{Slug: mailSlug(ch.Name), Token: token}, nil
}

// mailKey finds the token of an address that a user has already asked for.
type mailKey struct {
	channel      ChannelID
	user, sender UserID
}

// MailTokenMade adds an email address to a channel.
type MailTokenMade struct {
	Token   string
	Address MailAddress
}

func (f *MailTokenMade) apply(r *Realm) {
	a := f.Address
	r.small.mailAddresses.put(f.Token, &a)
	r.index.mailTokens[mailKey{a.Channel, a.User, a.Sender}] = f.Token
}

func (f *MailTokenMade) notices(*Realm) []Notice { return nil }

// FindMailAddress returns the address with a token, or nil. Addresses of archived channels do not work.
func (r *Realm) FindMailAddress(token string) *MailAddress {
	a := r.small.mailAddresses.find(strings.ToLower(token))
	if a == nil || r.channels.must(a.Channel).Archived {
		return nil
	}
	return a
}

// mailSlug returns the readable part of a channel's address: the letters and digits of its name with single dashes
// between. It is empty for names that are not ASCII.
func mailSlug(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c > 127:
			return ""
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteRune(c)
		default:
			b.WriteByte('-')
		}
	}
	parts := strings.FieldsFunc(b.String(), func(c rune) bool { return c == '-' })
	return strings.Join(parts, "-")
}

// Address returns the full address. pattern contains one %s for the local part: "%s@example.com".
func (m ChannelMail) Address(pattern string) string {
	if pattern == "" {
		return ""
	}
	local := m.Token + ".show-sender"
	if m.Slug != "" {
		local = m.Slug + "." + local
	}
	return fmt.Sprintf(pattern, local)
}

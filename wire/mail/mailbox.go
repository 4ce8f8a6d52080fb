package mail

import (
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// Mailbox delivers an email to the channel or the conversation that its address belongs to.
type Mailbox struct {
	Organizations interface {
		wire.Server
		// RealmsWithAddress returns the organizations that can have a channel with the address token. It does not load
		// those that are asleep.
		RealmsWithAddress(token string) []realm.ID
	}
	Tools *wire.Tools
}

// Known reports whether a channel of any organization has the address token.
func (m Mailbox) Known(token string) bool {
	_, ok := m.find(token)
	return ok
}

func (m Mailbox) find(token string) (realm.ID, bool) {
	for _, id := range m.Organizations.RealmsWithAddress(token) {
		known, err := m.Organizations.View(id, realm.Caller{System: true}, func(v realm.View) (any, error) {
			return v.Founded() && v.FindMailAddress(token) != nil, nil
		})
		if err == nil && known == true {
			return id, true
		}
	}
	return 0, false
}

// Post sends an email as a message to the channel with the address token.
func (m Mailbox) Post(token string, x wire.IncomingMail) error {
	id, ok := m.find(token)
	if !ok {
		return realm.Missing("No channel has this address.")
	}
	call := &wire.Call{Server: m.Organizations, Tools: m.Tools, Realm: id, Caller: realm.System}
	return wire.PostIncomingMail(call, token, x)
}

// FindReply returns the meaning of a reply address, wire.ErrReplyAddress or wire.ErrReplyExpired.
func (m Mailbox) FindReply(address string) (wire.MailReply, error) {
	return wire.FindReply(m.Tools, address, time.Now())
}

// ReplySender returns the email address of the user whose replies r takes. It is "" for users who have no account any
// more.
func (m Mailbox) ReplySender(r wire.MailReply) (string, error) {
	email, err := m.Organizations.View(r.Realm, realm.System, func(v realm.View) (any, error) {
		if u := v.Find(r.User); v.Founded() && u != nil && u.Active && !u.IsBot() {
			return u.Email, nil
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	return email.(string), nil
}

// PostReply sends a mail as a message of the user.
func (m Mailbox) PostReply(r wire.MailReply, x wire.IncomingMail) error {
	return wire.PostReply(&wire.Call{Server: m.Organizations, Tools: m.Tools}, r, x)
}

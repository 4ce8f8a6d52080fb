package realm

import "slices"

// EmailReply names the user that an email was sent to, and the message that the user's reply to the email answers.
type EmailReply struct {
	User    UserID
	Message MessageID
}

// ReplyByEmail asks to send the reply to an email about a missed message. The caller is the user that got the email.
// The reply is sent to the topic or the direct conversation in which the message is now, if the caller may read the
// message and may send there.
type ReplyByEmail struct {
	Message MessageID
	Text    string       // may be empty if there are files
	Files   []SaveUpload // attachments, at most MaxEmailFiles
}

func (c ReplyByEmail) Decide(t *Turn) (a EmailPosted, err error) {
	me := t.Me()
	m, err := t.WritableMessage(c.Message)
	if err != nil {
		return a, err
	}
	// The files have no addresses yet. Their names are part of the checks, because a name may contain a mention.
	named := ""
	for _, f := range c.Files {
		named += "\n[" + linkText(cleanFileName(f.Name)) + "](/user_uploads/)"
	}
	text, err := NormalizeContent(withFileLinks(c.Text, named))
	if err != nil {
		return a, err
	}
	send := SendMessage{ToChannel: m.Channel != 0, Channel: m.Channel, Topic: m.Topic, ReadBySender: true}
	for _, p := range m.People {
		send.People = append(send.People, Principal{ID: p.ID})
	}
	send.Body, send.Content = t.Render(text)
	f, err := send.plan(t, me)
	if err != nil {
		return a, err
	}
	if len(c.Files) > 0 {
		links := ""
		a.Files, links = t.saveEmailFiles(me.ID, c.Files)
		if text, err = NormalizeContent(withFileLinks(c.Text, links)); err != nil {
			panic("BUG: text of a reply with files: " + err.Error())
		}
		f.Body, f.Content = t.Render(text)
		f.Content.Attachments = t.visibleAttachments(me, f.Content.Attachments)
	}
	a.Message = t.send(me, f).ID
	return a, nil
}

// withoutReplies returns emails that cannot be answered. Programs below mailLevel do not store where answers go.
func (t *Turn) withoutReplies(emails []Email) []Email {
	if t.Level() >= mailLevel {
		return emails
	}
	emails = slices.Clone(emails)
	for i := range emails {
		emails[i].Reply = nil
	}
	return emails
}

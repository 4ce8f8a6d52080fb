package realm

import "strings"

// PostMail asks to post a mail that came to a channel's address. The server asks for it: whoever knows the address may
// write there, as long as whoever got the address may.
type PostMail struct {
	Token       string
	Topic, Text string
}

func (c PostMail) Decide(t *Turn) (MessageID, error) {
	if !t.System {
		return 0, errPermission()
	}
	a := t.FindMailAddress(c.Token)
	if a == nil {
		return 0, errMailAddress()
	}
	u, sender, ch := t.Find(a.User), t.Find(a.Sender), t.chans.must(a.Channel)
	if u == nil || !u.Active || sender == nil || !sender.Active || t.maySend(u, ch) != nil {
		return 0, errMailAddress()
	}
	topic := strings.TrimSpace(c.Topic)
	if length(topic) > MaxTopic {
		topic = firstRunes(topic, MaxTopic-1) + "…"
	}
	if _, err := NormalizeContent(c.Text); err != nil {
		return 0, err
	}
	return t.Say(BotMessage{Bot: sender.ID, Channel: ch.ID, Topic: topic, Text: c.Text}), nil
}

func errMailAddress() *Refusal { return Missing("No channel has this address.") }

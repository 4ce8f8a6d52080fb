package realm

import "slices"

// Mails of missed messages. Who writes to somebody directly, or mentions him, is heard by mail where he neither reads the
// message nor sits at a client within the time his settings give him. Each such message is an errand until then.

// missed is who may have to be told of a message by mail.
func (t *Turn) missed(f *MessageSent) (out []Errand) {
	if !t.moment.Mails || f.Sender == WelcomeBot {
		return nil
	}
	who := SetOf(f.People...)
	switch {
	case f.Channel != 0 && f.Content.ChannelWildcard:
		who = t.by.channel[f.Channel].active
	case f.Channel != 0:
		who = SetOf(slices.Concat(f.Mentioned, f.GroupMentioned, f.TopicMentioned)...)
	}
	for _, id := range IDs[UserID](who) {
		if len(t.nouns.waiting.missed[id]) >= maxMissedOfOne {
			continue // the mail that waits says enough
		}
		switch why := t.trigger(t.users.must(id), f, mails); why {
		case "", pushFollowed, pushChannel: // these two say nothing of whether he is mentioned
		default:
			out = append(out, Errand{Kind: MissedErrand, User: id, Message: f.ID, Why: why, Told: t.seq})
		}
	}
	return out
}

// MissedBy is the errands of messages that a user may have missed, oldest first.
func (v View) MissedBy(u UserID) []Errand {
	var out []Errand
	for _, id := range v.nouns.waiting.missed[u] {
		out = append(out, *v.nouns.errands.must(id))
	}
	return out
}

// MailMissed is the server's: these errands of missed messages are over, and the letters tell of what is still missed. It
// does nothing if they are over already.
type MailMissed struct {
	IDs     []int64
	Letters []Letter
}

func (c MailMissed) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	if !slices.ContainsFunc(c.IDs, func(id int64) bool { return t.nouns.errands.find(id) != nil }) {
		return Done{}, nil
	}
	t.Post(c.Letters...)
	t.Settle(c.IDs)
	return Done{}, nil
}

package realm

import "slices"

// Mails of missed messages. Who writes to somebody directly, or mentions him, or writes where he wants mails of
// everything, is heard by mail where he neither reads the message nor sits at a client within the time his settings give
// him. Each such message is an errand until then.

// mails reports whether people are to be told of a message by mail at all.
func (t *Turn) mails(f *MessageSent) bool { return t.moment.Mails && f.Sender != WelcomeBot }

// mayMiss is everybody a message might be mailed to, as their settings say. Subscribers who want no mails are not looked
// at, unless all are mentioned.
func (t *Turn) mayMiss(f *MessageSent) Set {
	if !t.mails(f) {
		return Set{}
	}
	if f.Channel == 0 {
		return SetOf(f.People...)
	}
	ix := t.by.channel[f.Channel]
	if f.Content.ChannelWildcard {
		return ix.active
	}
	meant := SetOf(slices.Concat(f.Mentioned, f.GroupMentioned, f.TopicMentioned, t.TopicPolicyUsers(f.Channel, f.TopicName, TopicFollowed))...)
	return Either(meant, Both(ix.active, t.by.mailed), Both(ix.active, ix.mailed))
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

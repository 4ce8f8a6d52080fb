package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Mails of missed messages. Who writes to somebody directly, or mentions him, or writes where he wants mails of
// everything, is heard by mail where he neither reads the message nor sits at a client within the time his settings give
// him. Each such message is an errand until then.

// sendsMissedEmails reports whether people are to be told of a message by mail at all.
func (t *Turn) sendsMissedEmails(f *MessageSent) bool {
	return t.env.EmailEnabled && f.Sender != WelcomeBot
}

// missedEmailCandidates is everybody a message might be mailed to, as their settings say. Subscribers who want no mails are not looked
// growTo, unless all are mentioned.
func (t *Turn) missedEmailCandidates(f *MessageSent) ids.Set {
	if !t.sendsMissedEmails(f) {
		return ids.Set{}
	}
	if f.Channel == 0 {
		return ids.SetOf(f.People...)
	}
	ix := t.index.channels[f.Channel]
	if f.Content.ChannelWildcard {
		return ix.active
	}
	meant := ids.SetOf(slices.Concat(f.Mentioned, f.GroupMentioned, f.TopicMentioned, t.TopicPolicyUsers(f.Channel, f.TopicName, TopicFollowed))...)
	return ids.Union(meant, ids.Intersection(ix.active, t.index.emailsAllChannels), ids.Intersection(ix.active, ix.wantsEmail))
}

// MissedMessageJobs is the errands of messages that a user may have missed, oldest first.
func (v View) MissedMessageJobs(u UserID) []OutboxJob {
	var out []OutboxJob
	for _, id := range v.small.outboxCount.missed[u] {
		out = append(out, *v.small.outboxJobs.must(id))
	}
	return out
}

// SendMissedEmails is the server's: these errands of missed messages are over, and the letters tell of what is still missed. It
// does nothing if they are over already.
type SendMissedEmails struct {
	IDs    []int64
	Emails []Email
}

func (c SendMissedEmails) Decide(t *Turn) (Done, error) {
	if !t.System {
		return Done{}, errPermission()
	}
	if !slices.ContainsFunc(c.IDs, func(id int64) bool { return t.small.outboxJobs.find(id) != nil }) {
		return Done{}, nil
	}
	t.SendEmails(c.Emails...)
	t.FinishOutboxJobs(c.IDs)
	return Done{}, nil
}

package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Emails about missed messages. A direct message, a mention, or a message in a channel with email notifications is
// sent to its recipients by email. A user gets no email if they read the message, or are active in a client, within
// the delay of their settings. Until then each such message is an outbox job for each user.

// sendsMissedEmails reports whether the server sends emails about a message to users that miss it.
func (t *Turn) sendsMissedEmails(f *MessageSent) bool {
	return t.env.EmailEnabled && f.Sender != WelcomeBot && t.PlaceOpen(PlaceMessageEmails)
}

// missedEmailCandidates returns the users that may get an email about a message. Subscribers without email
// notifications are left out early, unless the message mentions all subscribers.
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
	named := slices.Concat(f.Mentioned, f.GroupMentioned, f.TopicMentioned)
	followers := t.TopicPolicyUsers(f.Channel, f.TopicName, TopicFollowed)
	meant := ids.SetOf(slices.Concat(named, followers)...)
	allChannels := ids.Intersection(ix.active, t.index.emailsAllChannels)
	return ids.Union(meant, allChannels, ids.Intersection(ix.active, ix.wantsEmail))
}

// MissedMessageJobs returns the outbox jobs of messages that a user may have missed, oldest first.
func (v View) MissedMessageJobs(u UserID) []OutboxJob {
	var out []OutboxJob
	for _, id := range v.small.outboxCount.missed[u] {
		out = append(out, *v.small.outboxJobs.must(id))
	}
	return out
}

// SendMissedEmails is a command of the server: it finishes jobs of missed messages and adds jobs for the emails. It
// does nothing if all these jobs are finished already.
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
	t.SendEmails(t.withoutReplies(c.Emails)...)
	t.FinishOutboxJobs(c.IDs)
	return Done{}, nil
}

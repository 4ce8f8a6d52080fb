package realm

import "slices"

// ReportType is a reason for reporting a message.
type ReportType struct{ Key, Name string }

// ReportTypes are the reasons of the protocol. The last one requires an explanation.
var ReportTypes = []ReportType{
	{"spam", "Spam"}, {"harassment", "Harassment"}, {"inappropriate", "Inappropriate content"},
	{"norms", "Violates community norms"}, {"other", "Other reason"},
}

// ModerationChannel returns the channel that reports are sent to.
func (r *Realm) ModerationChannel() (*Channel, error) {
	c := r.channels.find(ChannelID(r.OrgInt("moderation_request_channel_id")))
	if c == nil || c.Archived {
		return nil, BadRequest("Moderation request channel must be specified to enable message reporting.")
	}
	return c, nil
}

// ReportMessage asks to report a message in the moderation channel. Text is the message's source, read before the turn.
type ReportMessage struct {
	Message                 MessageID
	Type, Description, Text string
}

func (c ReportMessage) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errNotMember()
	}
	at := slices.IndexFunc(ReportTypes, func(r ReportType) bool { return r.Key == c.Type })
	if at < 0 {
		return Done{}, BadRequest("Invalid report_type")
	}
	if c.Type == "other" && c.Description == "" {
		return Done{}, BadRequest("An explanation is required.")
	}
	to, err := t.ModerationChannel()
	if err != nil {
		return Done{}, err
	}
	i, err := t.ReadableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	text := t.SilentMention(me.ID) + " reported a message by " + t.SilentMention(i.Sender.ID) + " (" +
		t.messageLink(me, i) + ").\n\n**Reason**: " + ReportTypes[at].Name
	if c.Description != "" {
		text += "\n\n**Explanation**:\n\n" + QuoteBlock(c.Description)
	}
	topic, err := NormalizeTopic(i.Sender.Name + "'s moderation requests")
	if err != nil {
		return Done{}, err
	}
	t.NotifyChannel(to.ID, topic, text+"\n\n**Reported message**:\n\n"+QuoteBlock(c.Text))
	return Done{}, nil
}

package realm

import (
	"strconv"
	"strings"
)

// The messages that the notification bot posts about channels. Clients depend on their channel, their topic and the
// users they mention, but not on the words.

// Topics of these messages.
const (
	channelEventsTopic = "channel events"
	newChannelsTopic   = "new channels"
)

// MaxNewSubscriptionMessages is the limit of users that one request notifies of new subscriptions or groups. Each of
// them gets a direct message. Clients know it as max_bulk_new_subscription_messages.
const MaxNewSubscriptionMessages = 100

// eventsTopicOf returns the topic of messages about a channel. A channel that allows only the empty topic gets them
// there.
func (r *Realm) eventsTopicOf(c *Channel) string {
	if c.TopicsPolicy == "empty_topic_only" {
		return ""
	}
	return channelEventsTopic
}

// postChannelEvent posts a message about a channel into the channel, unless it is archived or these messages are turned
// off in the organization.
func (t *Turn) postChannelEvent(c *Channel, text string, readBy ...UserID) {
	if t.OrgBool("send_channel_events_messages") && !t.channels.must(c.ID).Archived {
		t.NotifyChannel(c.ID, t.eventsTopicOf(c), text, readBy...)
	}
}

// actor returns a mention of the caller, or "The server".
func (t *Turn) actor() string {
	if t.Me() == nil {
		return "The server"
	}
	return t.SilentMention(t.User)
}

// byActor returns " by" and a mention of the caller, or "" for the server itself.
func (t *Turn) byActor() string {
	if t.Me() == nil {
		return ""
	}
	return " by " + t.SilentMention(t.User)
}

// PrivacyName returns the words for a channel's privacy in messages.
func (c *Channel) PrivacyName() string {
	switch {
	case c.WebPublic:
		return "Web-public"
	case !c.Private:
		return "Public"
	case c.History:
		return "Private, shared history"
	}
	return "Private, protected history"
}

// quotedDescription returns a description as a quotation in Markdown.
func quotedDescription(text string) string {
	if text == "" {
		return "*No description.*"
	}
	return QuoteBlock(text)
}

// postChannelCreated posts the first message into a new channel: its privacy and its description.
func (t *Turn) postChannelCreated(c *Channel) {
	created := "**" + c.PrivacyName() + "** channel created" + t.byActor() + "."
	t.postChannelEvent(c, created+" Description:\n\n"+quotedDescription(c.Description), t.User)
}

// announceNewChannels posts links to new channels into the organization's channel for such announcements. Private
// channels are left out.
func (t *Turn) announceNewChannels(channels []*Channel) {
	to := t.channels.find(ChannelID(t.OrgInt("new_stream_announcements_stream_id")))
	if to == nil || to.Archived {
		return
	}
	var links []string
	for _, c := range channels {
		if !c.Private {
			links = append(links, t.ChannelLink(c))
		}
	}
	topic := newChannelsTopic
	if to.TopicsPolicy == "empty_topic_only" {
		topic = ""
	}
	switch len(links) {
	case 0:
	case 1:
		t.NotifyChannel(to.ID, topic, t.actor()+" created the channel "+links[0]+".")
	default:
		t.NotifyChannel(to.ID, topic, t.actor()+" created these channels:\n\n* "+strings.Join(links, "\n* "))
	}
}

// notifySubscribed sends direct messages to users that the caller subscribed to channels that already existed. order is
// the order of the messages.
func (t *Turn) notifySubscribed(joined map[UserID][]*Channel, order []*User) {
	for _, u := range order {
		id := u.ID
		if len(joined[id]) == 0 || u.IsBot() || id == t.User {
			continue
		}
		var links []string
		for _, c := range joined[id] {
			links = append(links, t.ChannelLink(c))
		}
		actor := t.actor()
		if t.Me() != nil { // a mention that is not silent: the message is not sent to the caller (protocol)
			actor = t.mention(t.User)
		}
		if len(links) == 1 {
			t.NotifyUsers(actor+" subscribed you to the channel "+links[0]+".", id)
		} else {
			t.NotifyUsers(actor+" subscribed you to these channels:\n\n* "+strings.Join(links, "\n* "), id)
		}
	}
}

// postChannelChange posts a message about a change of a channel. old is the channel before it.
func (t *Turn) postChannelChange(old, c *Channel, f Fact) {
	switch f := f.(type) {
	case *ChannelUnarchived:
		t.postChannelEvent(c, "Channel **"+c.Name+"** is open again; unarchived"+t.byActor()+".")
	case *ChannelPrivacySet:
		t.postChannelEvent(c, t.actor()+" changed the privacy of this channel:\n\n"+
			beforeAndAfter(old.PrivacyName(), c.PrivacyName()))
	case *ChannelChanged:
		t.postPropertyChange(old, c, f)
	}
}

// postPropertyChange posts a message with the old and the new value of a property of a channel.
func (t *Turn) postPropertyChange(old, c *Channel, f *ChannelChanged) {
	var subject, before, after string
	switch f.Property {
	case "name":
		t.postChannelEvent(c, t.actor()+" renamed this channel from **"+old.Name+"** to "+t.ChannelLink(c)+".")
		return
	case "description":
		t.postChannelEvent(c, t.actor()+" changed the description of this channel.\n\n"+
			"* **Before:**\n\n"+quotedDescription(old.Description)+"\n\n"+
			"* **Now:**\n\n"+quotedDescription(c.Description))
		return
	case "message_retention_days":
		subject = "for how long this channel keeps messages"
		before, after = t.describeRetention(old.Retention), t.describeRetention(c.Retention)
	case "folder_id":
		subject, before, after = "the folder of this channel", t.folderName(old.Folder), t.folderName(c.Folder)
	case "topics_policy":
		subject = "which topics this channel allows"
		before, after = topicsPolicyNames[old.TopicsPolicy], topicsPolicyNames[c.TopicsPolicy]
	case "can_send_message_group":
		subject = "the permission to post in this channel"
		before = t.describeGroupValue(t.ChannelSetting(old, f.Property))
		after = t.describeGroupValue(t.ChannelSetting(c, f.Property))
	default:
		return // changes of other permissions post no message (protocol)
	}
	t.postChannelEvent(c, t.actor()+" changed "+subject+":\n\n"+beforeAndAfter(before, after))
}

// beforeAndAfter returns a list of two values in Markdown.
func beforeAndAfter(before, after string) string {
	return "* **Before:** " + before + "\n* **Now:** " + after
}

// describeRetention returns the words for a channel's retention time in days. nil means the organization's.
func (r *Realm) describeRetention(days *int64) string {
	n := r.OrgInt("message_retention_days")
	inherited := ""
	if days != nil {
		n = *days
	} else {
		inherited = " (as in the whole organization)"
	}
	if n < 0 {
		return "for ever" + inherited
	}
	return strconv.FormatInt(n, 10) + " days" + inherited
}

var topicsPolicyNames = map[string]string{
	"inherit":             "as in the whole organization",
	"allow_empty_topic":   "any, and messages without a topic",
	"disable_empty_topic": "any, but every message needs one",
	"empty_topic_only":    "none: messages have no topic",
}

// describeGroupValue names the groups and users of a permission setting without notifying them.
func (r *Realm) describeGroupValue(v GroupValue) string {
	var parts []string
	groups := v.Subgroups
	if v.Group != 0 {
		groups = []GroupID{v.Group}
	}
	for _, g := range groups {
		parts = append(parts, "@_*"+r.groups.must(g).Name+"*")
	}
	for _, u := range r.WithoutDeactivated(v).Members {
		parts = append(parts, r.SilentMention(u))
	}
	if len(parts) == 0 {
		return "@_*role:nobody*"
	}
	return strings.Join(parts, ", ")
}

package realm

import (
	"strconv"
	"strings"
)

// What the notification bot writes about channels. Clients depend on where these notices stand and whom they name, not
// on their words.

// Topics of the notices.
const (
	channelEventsTopic = "channel events"
	newChannelsTopic   = "new channels"
)

// MaxNewSubscriptionMessages is how many people one request may have told of their new subscriptions or groups: a direct message
// each. Clients know it as max_bulk_new_subscription_messages.
const MaxNewSubscriptionMessages = 100

// eventsTopicOf is where notices about a channel go: a channel that has only the empty topic keeps it that way.
func (r *Realm) eventsTopicOf(c *Channel) string {
	if c.TopicsPolicy == "empty_topic_only" {
		return ""
	}
	return channelEventsTopic
}

// postChannelEvent posts into a channel about the channel itself, unless the organization does not want such notices.
func (t *Turn) postChannelEvent(c *Channel, text string, readBy ...UserID) {
	if t.OrgBool("send_channel_events_messages") {
		t.NotifyChannel(c.ID, t.eventsTopicOf(c), text, readBy...)
	}
}

// actor names who acts; the server itself has no name.
func (t *Turn) actor() string {
	if t.Me() == nil {
		return "The server"
	}
	return t.SilentMention(t.User)
}

// byActor is " by" and who acts, or nothing for the server itself.
func (t *Turn) byActor() string {
	if t.Me() == nil {
		return ""
	}
	return " by " + t.SilentMention(t.User)
}

// PrivacyName is how people call who may find and read a channel.
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

func quotedDescription(text string) string {
	if text == "" {
		return "*No description.*"
	}
	return QuoteBlock(text)
}

// postChannelCreated tells a new channel's first subscribers what it is.
func (t *Turn) postChannelCreated(c *Channel) {
	t.postChannelEvent(c, "**"+c.PrivacyName()+"** channel created"+t.byActor()+". Description:\n\n"+quotedDescription(c.Description), t.User)
}

// announceNewChannels tells the organization of new channels.
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

// notifySubscribed writes to people whom the caller subscribed to channels that were there already.
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
		if len(links) == 1 {
			t.NotifyUsers(t.actor()+" subscribed you to the channel "+links[0]+".", id)
		} else {
			t.NotifyUsers(t.actor()+" subscribed you to these channels:\n\n* "+strings.Join(links, "\n* "), id)
		}
	}
}

// postChannelChange posts about a change of the channel. old is the channel as it was.
func (t *Turn) postChannelChange(old, c *Channel, f Fact) {
	switch f := f.(type) {
	case *ChannelUnarchived:
		t.postChannelEvent(c, "Channel **"+c.Name+"** is open again; unarchived"+t.byActor()+".")
	case *ChannelPrivacySet:
		t.postChannelEvent(c, t.actor()+" changed the privacy of this channel:\n\n"+beforeAndAfter(old.PrivacyName(), c.PrivacyName()))
	case *ChannelChanged:
		t.postPropertyChange(old, c, f)
	}
}

func (t *Turn) postPropertyChange(old, c *Channel, f *ChannelChanged) {
	var what, before, after string
	switch f.Property {
	case "name":
		t.postChannelEvent(c, t.actor()+" renamed this channel from **"+old.Name+"** to "+t.ChannelLink(c)+".")
		return
	case "description":
		t.postChannelEvent(c, t.actor()+" changed the description of this channel.\n\n* **Before:**\n\n"+quotedDescription(old.Description)+"\n\n* **Now:**\n\n"+quotedDescription(c.Description))
		return
	case "message_retention_days":
		what, before, after = "for how long this channel keeps messages", t.describeRetention(old.Retention), t.describeRetention(c.Retention)
	case "folder_id":
		what, before, after = "the folder of this channel", t.folderName(old.Folder), t.folderName(c.Folder)
	case "topics_policy":
		what, before, after = "which topics this channel allows", topicsPolicyNames[old.TopicsPolicy], topicsPolicyNames[c.TopicsPolicy]
	default:
		what, before, after = "who "+settingDescriptions[f.Property], t.describeGroupValue(t.ChannelSetting(old, f.Property)), t.describeGroupValue(t.ChannelSetting(c, f.Property))
	}
	t.postChannelEvent(c, t.actor()+" changed "+what+":\n\n"+beforeAndAfter(before, after))
}

func beforeAndAfter(before, after string) string {
	return "* **Before:** " + before + "\n* **Now:** " + after
}

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
	"inherit": "as in the whole organization", "allow_empty_topic": "any, and messages without a topic", "disable_empty_topic": "any, but every message needs one",
	"empty_topic_only": "none: messages have no topic",
}

// settingDescriptions says what the permission settings permit.
var settingDescriptions = map[string]string{
	"can_add_subscribers_group": "may add subscribers", "can_administer_channel_group": "may administer this channel", "can_create_topic_group": "may begin topics",
	"can_delete_any_message_group": "may delete any message", "can_delete_own_message_group": "may delete messages of their own",
	"can_move_messages_out_of_channel_group": "may move messages out of this channel", "can_move_messages_within_channel_group": "may move messages within this channel",
	"can_remove_subscribers_group": "may remove subscribers", "can_resolve_topics_group": "may resolve topics", "can_send_message_group": "may post", "can_subscribe_group": "may subscribe",
}

// describeGroupValue names the people a permission setting means, notifying none.
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

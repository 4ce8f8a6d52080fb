package realm

import (
	"slices"
	"strings"
)

// What the server itself says is said by the system bots, inside the turn that gave cause: the message is one more fact
// of that turn. Other nouns use t.Announce (a topic of a channel) and t.Whisper (a direct message), or t.Say for both.

// BotMessage is something a system bot says, to a channel's topic or to people.
type BotMessage struct {
	Bot     UserID // 0: the notification bot
	Channel ChannelID
	Topic   string
	People  []UserID // of a direct message; the bot itself may be left out
	Text    string   // markdown; Mention, ChannelLink and QuoteBlock help to write it
	ReadBy  []UserID // who has it read at once
	Kind    string   // of notice, where the server must know it again
}

// NotifyChannel has the notification bot post to a channel, whatever its rules say: system bots post everywhere.
func (t *Turn) NotifyChannel(c ChannelID, topic, text string, readBy ...UserID) MessageID {
	return t.SendBotMessage(BotMessage{Channel: c, Topic: topic, Text: text, ReadBy: readBy})
}

// NotifyUsers has the notification bot write to people directly.
func (t *Turn) NotifyUsers(text string, people ...UserID) MessageID {
	return t.SendBotMessage(BotMessage{People: people, Text: text})
}

// SendBotMessage records the message of a system bot. The text is written by this package, but may quote what people wrote where
// more is allowed than in messages, such as null bytes in a description: these are left out. Of a text that holds nothing
// nothing is said, and 0 returned.
func (t *Turn) SendBotMessage(m BotMessage) MessageID {
	if m.Bot == 0 {
		m.Bot = NotificationBot
	}
	text, err := NormalizeContent(strings.ReplaceAll(m.Text, "\x00", ""))
	if err != nil {
		return 0
	}
	f := &MessageSent{Sender: m.Bot, At: t.Now, Client: "Internal", ReadBy: append(slices.Clone(m.ReadBy), m.Bot), Notice: m.Kind}
	f.Body, f.Content = t.Render(text)
	f.Content.Attachments = t.visibleAttachments(t.users.must(m.Bot), f.Content.Attachments) // it may quote who may not see them
	if m.Channel != 0 {
		if t.channels.must(m.Channel).Archived { // where nothing counts as unread
			f.ReadBy = append(f.ReadBy, t.Subscribers(m.Channel)...)
		}
		f.Channel, f.TopicName = m.Channel, m.Topic
	} else {
		f.People = append(slices.Clone(m.People), m.Bot)
		slices.Sort(f.People)
		f.People = slices.Compact(f.People)
	}
	t.completeMessage(f)
	t.recordWithVisibility(f)
	t.addMessageOutboxJobs(f)
	return f.ID
}

// Render turns a text into a message's body inside the turn, without what takes long (math, previews).
func (t *Turn) Render(text string) (Body, ContentInfo) {
	if t.env.RenderMessage == nil {
		return Body{text, paragraphs(text)}, ContentInfo{}
	}
	return t.env.RenderMessage(text, t.View)
}

// Describe renders the description of a channel or folder: it mentions nobody and shows no previews.
func (t *Turn) Describe(text string) string {
	if t.env.RenderDescription == nil {
		return paragraphs(text)
	}
	return t.env.RenderDescription(text, t.View)
}

// paragraphs is how a moment without a renderer shows text: nothing but paragraphs and line breaks.
func paragraphs(text string) string {
	var out []string
	for _, p := range strings.Split(text, "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, "<p>"+strings.ReplaceAll(escapeHTML(p), "\n", "<br>\n")+"</p>")
		}
	}
	return strings.Join(out, "\n")
}

// SilentMention names a user in markdown without notifying him.
func (r *Realm) SilentMention(id UserID) string {
	return "@_**" + r.users.must(id).Name + "|" + id.String() + "**"
}

// ChannelLink links a channel in markdown.
func (r *Realm) ChannelLink(c *Channel) string { return "#**" + c.Name + "**" }

// TopicLink links a channel's topic in markdown.
func (r *Realm) TopicLink(c *Channel, topic string) string {
	return "#**" + c.Name + ">" + topic + "**"
}

// QuoteBlock shows a text as a quotation in markdown, with a fence no line of the text can close.
func QuoteBlock(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + " quote\n" + text + "\n" + fence
}

package realm

import (
	"slices"
	"strings"
)

// Messages of the server are sent by the system bots, inside the turn that causes them: the message is one more fact of
// that turn. Other files call NotifyChannel (a topic of a channel), NotifyUsers (a direct message) or SendBotMessage
// (all options).

// BotMessage is a message of a system bot, to a channel's topic or to users.
type BotMessage struct {
	Bot     UserID // 0: the notification bot
	Channel ChannelID
	Topic   string
	People  []UserID // of a direct message; the bot itself may be left out
	Text    string   // Markdown; SilentMention, ChannelLink and QuoteBlock help to write it
	ReadBy  []UserID // users for whom it counts as read at once
	Kind    string   // of notice, if the server must recognize the message later
}

// NotifyChannel makes the notification bot post to a channel. System bots may post to every channel, whatever its
// settings are.
func (t *Turn) NotifyChannel(c ChannelID, topic, text string, readBy ...UserID) MessageID {
	return t.SendBotMessage(BotMessage{Channel: c, Topic: topic, Text: text, ReadBy: readBy})
}

// NotifyUsers makes the notification bot send a direct message to users.
func (t *Turn) NotifyUsers(text string, people ...UserID) MessageID {
	return t.SendBotMessage(BotMessage{People: people, Text: text})
}

// SendBotMessage records a message of a system bot and returns its id. The text may quote texts of users that may
// contain more than messages may, such as a null byte in a description. Such bytes are removed. An empty text records
// nothing and returns 0.
func (t *Turn) SendBotMessage(m BotMessage) MessageID {
	if m.Bot == 0 {
		m.Bot = NotificationBot
	}
	text, err := NormalizeContent(strings.ReplaceAll(m.Text, "\x00", ""))
	if err != nil {
		return 0
	}
	f := &MessageSent{Sender: m.Bot, At: t.Now, Client: "Internal", ReadBy: append(slices.Clone(m.ReadBy), m.Bot),
		Notice: m.Kind}
	f.Body, f.Content = t.Render(text)
	// the text may quote a user that cannot see the files
	f.Content.Attachments = t.visibleAttachments(t.users.must(m.Bot), f.Content.Attachments)
	if m.Channel != 0 {
		if t.channels.must(m.Channel).Archived { // in an archived channel nothing counts as unread
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

// Render turns a text into the body of a message inside the turn. It leaves out the slow parts: math and link previews.
func (t *Turn) Render(text string) (Body, ContentInfo) {
	if t.env.RenderMessage == nil {
		return Body{text, paragraphs(text)}, ContentInfo{}
	}
	return t.env.RenderMessage(text, t.View)
}

// Describe renders the description of a channel or folder. Mentions in it notify no user, and it shows no
// previews.
func (t *Turn) Describe(text string) string {
	if t.env.RenderDescription == nil {
		return paragraphs(text)
	}
	return t.env.RenderDescription(text, t.View)
}

// paragraphs is the renderer of a turn that has none: it makes paragraphs and line breaks and escapes the rest.
func paragraphs(text string) string {
	var out []string
	for _, p := range strings.Split(text, "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, "<p>"+strings.ReplaceAll(escapeHTML(p), "\n", "<br>\n")+"</p>")
		}
	}
	return strings.Join(out, "\n")
}

// SilentMention returns Markdown that names a user without notifying them.
func (r *Realm) SilentMention(id UserID) string {
	return "@_**" + r.users.must(id).Name + "|" + id.String() + "**"
}

// mention returns Markdown that mentions a user.
func (r *Realm) mention(id UserID) string {
	return "@**" + r.users.must(id).Name + "|" + id.String() + "**"
}

// ChannelLink returns Markdown that links to a channel.
func (r *Realm) ChannelLink(c *Channel) string { return "#**" + c.Name + "**" }

// TopicLink returns Markdown that links to a topic of a channel.
func (r *Realm) TopicLink(c *Channel, topic string) string {
	return "#**" + c.Name + ">" + topic + "**"
}

// QuoteBlock returns Markdown that shows a text as a quotation. Its fence is longer than any fence in the text.
func QuoteBlock(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + " quote\n" + text + "\n" + fence
}

package wire

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
)

var messageEndpoints = []Endpoint{
	Custom("POST", "/messages", sendMessage).allowWebhookBots(),
	Custom("POST", "/messages/render", renderMessage),
	Custom("POST", "/messages/{message_id}/report", reportMessage),
	Custom("POST", "/zcommand", zcommand),
}

type sendForm struct {
	Type    string           `form:"type,required,enum=direct|private|stream|channel"`
	To      form.Recipients  `form:"to"`
	Topic   form.Opt[string] `form:"topic,alias=subject,strip"`
	Content string           `form:"content,required"`
	Queue   string           `form:"queue_id"`
	LocalID string           `form:"local_id,maxlen=100"`
	Read    form.Opt[bool]   `form:"read_by_sender"`
	Widget  form.Opt[string] `form:"widget_content,hidden"`
	// The protocol lets mirroring programs send messages of other users. This server refuses that.
	Sender form.Opt[string] `form:"sender,hidden"`
	Forged string           `form:"forged,hidden"`
}

// clientsReadingOwnMessages are the programs that mark the messages their user sends as read (protocol).
var clientsReadingOwnMessages = map[string]bool{
	"zulipandroid":  true,
	"zulipios":      true,
	"zulipdesktop":  true,
	"zulipmobile":   true,
	"zulipelectron": true,
	"zulipterminal": true,
	"snipe":         true,
	"website":       true,
	"ios":           true,
	"android":       true,
	"zulipflutter":  true,
}

// sendMessage sends a message. If a bot sends to a channel that does not exist, its owner gets a warning.
func sendMessage(c *Call, f sendForm) (*sentAnswer, error) {
	cmd, err := f.command(c)
	if err != nil {
		return nil, err
	}
	s, err := Execute(c, cmd)
	if isNoSuchChannel(err) {
		err = cmp.Or(warnBotOwner(c, cmd), err)
	}
	if err != nil {
		return nil, err
	}
	return newSentAnswer(s), nil
}

// isNoSuchChannel reports whether a message was refused because its channel does not exist.
func isNoSuchChannel(err error) bool {
	var r *realm.Refusal
	return errors.As(err, &r) && r.Code == "STREAM_DOES_NOT_EXIST"
}

// warnBotOwner tells the owner of a bot that it sent a message to a channel that does not exist. It does nothing for
// users.
func warnBotOwner(c *Call, cmd realm.SendMessage) error {
	if c.Account == nil || c.Account.Bot == realm.Human {
		return nil
	}
	name := cmp.Or(cmd.RawChannelID, cmd.ChannelName)
	if name == "" && cmd.Channel != 0 {
		name = cmd.Channel.String()
	}
	_, err := Execute(c, realm.WarnBotOwner{Channel: name})
	return err
}

func (f *sendForm) command(c *Call) (realm.SendMessage, error) {
	cmd, text, err := f.commandWithoutBody(c)
	if err != nil {
		return cmd, err
	}
	cmd.Body, cmd.Content, err = render(c, text)
	return cmd, err
}

// commandWithoutBody returns the command without its rendered body, and the text to render.
func (f *sendForm) commandWithoutBody(c *Call) (cmd realm.SendMessage, text string, err error) {
	switch {
	case f.Forged == "yes", f.Forged == "true":
		return cmd, "", realm.BadRequest("User not authorized for this query")
	case f.Sender.Set:
		return cmd, "", realm.BadRequest("Invalid mirrored message")
	}
	cmd = realm.SendMessage{Queue: realm.QueueID(f.Queue), LocalID: f.LocalID,
		ReadBySender: f.Read.Or(readsOwnMessages(c))}
	if f.Type == "stream" || f.Type == "channel" {
		if err := f.setChannel(c, &cmd); err != nil {
			return cmd, "", err
		}
	} else {
		to, err := f.To.Direct()
		if err != nil {
			return cmd, "", err
		}
		cmd.People = directRecipients(to)
		for _, e := range to.Emails {
			cmd.People = append(cmd.People, realm.Principal{Email: e})
		}
	}
	if text, err = realm.NormalizeContent(f.Content); err != nil {
		return cmd, "", err
	}
	if f.Widget.Set {
		if cmd.Widget, cmd.WidgetData, err = checkWidget(f.Widget.Value); err != nil {
			return cmd, "", err
		}
	} else {
		cmd.Widget, cmd.WidgetData = WidgetIn(text)
	}
	return cmd, text, nil
}

// setChannel sets the destination of a channel message. A bot can have a default channel for messages without one.
func (f *sendForm) setChannel(c *Call, cmd *realm.SendMessage) error {
	cmd.ToChannel = true
	if !f.To.IsSet() {
		if c.Account == nil || c.Account.Bot == realm.Human {
			return realm.BadRequest("Missing channel")
		}
		var err error
		if cmd.Channel, err = Read(c, func(v realm.View) (realm.ChannelID, error) {
			return v.BotOf(v.User).Sending, nil
		}); err != nil {
			return err
		}
		if cmd.Channel == 0 {
			return realm.BadRequest("Missing channel")
		}
	} else {
		to, err := f.To.Channel()
		if err != nil {
			return err
		}
		cmd.Channel, cmd.ChannelName, cmd.RawChannelID = realm.ChannelID(to.ID), to.Name, impossibleChannelID(to)
	}
	if !f.Topic.Set {
		return realm.BadRequest("Missing topic")
	}
	cmd.Topic = f.Topic.Value
	return nil
}

// impossibleChannelID returns the id as it was written if no channel can have it, else "".
func impossibleChannelID(to form.ChannelTarget) string {
	if to.OutOfRange == "" && to.ByID && to.ID <= 0 {
		return strconv.FormatInt(to.ID, 10)
	}
	return to.OutOfRange
}

// readsOwnMessages reports whether the caller's program marks the messages its user sends as read.
func readsOwnMessages(c *Call) bool {
	return clientsReadingOwnMessages[strings.ToLower(c.Caller.Client)]
}

type renderForm struct {
	Content string `form:"content,required,maxlen=10000"`
}

func renderMessage(c *Call, f renderForm) (*renderedAnswer, error) {
	body, _, err := render(c, f.Content)
	if err != nil {
		return nil, err
	}
	return &renderedAnswer{body.HTML}, nil
}

type renderedAnswer struct {
	HTML string `json:"rendered"`
}

type sentAnswer struct {
	ID     realm.MessageID `json:"id"`
	Policy int             `json:"automatic_new_visibility_policy,omitzero"` // that the sender now has for the topic
}

func newSentAnswer(s realm.SendResult) *sentAnswer { return &sentAnswer{s.ID, s.Policy} }

// arrivedMessageJSON is a message without what depends on its reader.
type arrivedMessageJSON struct {
	ID          realm.MessageID              `json:"id"`
	Type        string                       `json:"type" enum:"stream|private"`
	Sender      realm.UserID                 `json:"sender_id"`
	Email       string                       `json:"sender_email"`
	Name        string                       `json:"sender_full_name"`
	Realm       string                       `json:"sender_realm_str"`
	Avatar      *string                      `json:"avatar_url"`
	Client      string                       `json:"client"`
	Time        int64                        `json:"timestamp"`
	Recipient   int64                        `json:"recipient_id"`
	Display     either[string, []personJSON] `json:"display_recipient"` // the channel's name, or the participants
	Channel     realm.ChannelID              `json:"stream_id,omitzero"`
	Topic       string                       `json:"subject"`
	Links       []topicLinkJSON              `json:"topic_links"`
	Me          bool                         `json:"is_me_message"`
	Content     string                       `json:"content"`
	ContentType string                       `json:"content_type" enum:"text/html|text/x-markdown"`
	Reactions   []reactionJSON               `json:"reactions"`
	Submessages []submessageJSON             `json:"submessages"`
	Edited      int64                        `json:"last_edit_timestamp,omitzero"`
	Moved       int64                        `json:"last_moved_timestamp,omitzero"`
}

type personJSON struct {
	ID    realm.UserID `json:"id"`
	Email string       `json:"email"`
	Name  string       `json:"full_name"`
	Dummy bool         `json:"is_mirror_dummy"` // always false
}

type topicLinkJSON struct {
	Text string `json:"text"`
	URL  string `json:"url"`
}

type submessageJSON struct {
	ID      int64           `json:"id"`
	Message realm.MessageID `json:"message_id"`
	Sender  realm.UserID    `json:"sender_id"`
	Type    string          `json:"msg_type"`
	Content string          `json:"content"`
}

// newMessage returns a message for one kind of client. unknown replaces the sender, for readers that are not allowed to
// see that user.
func newMessage(m *realm.MessageInfo, body realm.Body, c Client, s Site, unknown bool) arrivedMessageJSON {
	out := arrivedMessageJSON{ID: m.ID, Sender: m.Sender.ID, Email: apiEmail(m.Sender, s), Name: m.Sender.Name,
		Realm: s.Name, Client: m.Client, Time: m.Time, Links: topicLinks(m.Links), Me: m.Me,
		Reactions: each(m.Reactions, newReaction), Submessages: newSubmessages(m), Edited: m.Edited, Moved: m.Moved,
		Content: body.Text, ContentType: "text/x-markdown"}
	if unknown {
		out.Email, out.Name, out.Avatar = dummyEmail(m.Sender.ID, s), unknownName, ptr(unknownAvatar)
	} else {
		out.Avatar = avatarURL(m.Sender, s, c.Gravatar && m.Sender.EmailPublic)
	}
	if c.Markdown {
		out.Content, out.ContentType = body.HTML, "text/html"
	}
	if m.Channel != 0 {
		out.Type, out.Display.value, out.Channel, out.Recipient = "stream", m.ChannelName, m.Channel,
			m.Channel.Recipient()
		out.Topic = c.Topic(m.Topic)
	} else {
		out.Type, out.Display.value, out.Recipient = "private", newPeople(m.People, s), int64(m.Talk)*2
	}
	return out
}

func newPeople(people []realm.UserInfo, s Site) []personJSON {
	return each(people, func(p realm.UserInfo) personJSON { return personJSON{p.ID, apiEmail(p, s), p.Name, false} })
}

func topicLinks(links []realm.TopicLink) []topicLinkJSON {
	return each(links, func(l realm.TopicLink) topicLinkJSON { return topicLinkJSON{l.Text, l.URL} })
}

func newSubmessages(m *realm.MessageInfo) []submessageJSON {
	return each(m.Submessages, func(s realm.Submessage) submessageJSON {
		return submessageJSON{s.ID, m.ID, s.Sender, s.Type, s.Content}
	})
}

// flagNames returns the names of flags. The older name wildcard_mentioned follows from the two newer ones.
func flagNames(f realm.Flags) []string {
	out := modernFlagNames(f)
	if f&(realm.FlagChannelWildcard|realm.FlagTopicWildcard) != 0 {
		out = append(out, "wildcard_mentioned")
	}
	return out
}

// modernFlagNames returns the names of flags without the older name. Events about changed messages have these.
func modernFlagNames(f realm.Flags) []string {
	out := []string{}
	for i, n := range []string{"read", "starred", "collapsed", "mentioned", "stream_wildcard_mentioned",
		"topic_wildcard_mentioned", "has_alert_word", "historical"} {
		if f&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

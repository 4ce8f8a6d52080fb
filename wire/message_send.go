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
	Custom("POST", "/messages", sendMessage).
		Returns("{id: int, automatic_new_visibility_policy?: int}").allowWebhookBots(),
	Custom("POST", "/messages/render", renderMessage).Returns("{rendered: str}"),
	Custom("POST", "/messages/{message_id}/report", reportMessage),
	Custom("POST", "/zcommand", zcommand).Returns("{msg: str}"),
	Custom("GET", "/messages/summary", summarize).AlwaysFails(),
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
func sendMessage(c *Call, f sendForm) (Answer, error) {
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
	return sendAnswer(s), nil
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
		cmd.Widget, cmd.WidgetData = widgetIn(text)
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

type summaryForm struct {
	Narrow form.Narrow `form:"narrow"`
}

// summarize always refuses: this server has no language model. Registrations say so in server_can_summarize_topics.
func summarize(*Call, summaryForm) (Answer, error) {
	return nil, realm.BadRequest("Topic summaries are not enabled on this server.")
}

type renderForm struct {
	Content string `form:"content,required,maxlen=10000"`
}

func renderMessage(c *Call, f renderForm) (Answer, error) {
	body, _, err := render(c, f.Content)
	if err != nil {
		return nil, err
	}
	return Answer{"rendered": body.HTML}, nil
}

func sendAnswer(s realm.SendResult) Answer {
	a := Answer{"id": s.ID}
	if s.Policy != 0 {
		a["automatic_new_visibility_policy"] = s.Policy
	}
	return a
}

// messageObject returns a message as JSON for one kind of client, without flags. unknown replaces the sender, for
// readers that are not allowed to see that user.
func messageObject(m *realm.MessageInfo, body realm.Body, c Client, s Site, unknown bool) obj {
	sender, name := apiEmail(m.Sender, s), m.Sender.Name
	avatar := avatarURL(m.Sender, s, c.Gravatar && m.Sender.EmailPublic)
	if unknown {
		sender, name, avatar = dummyEmail(m.Sender.ID, s), unknownName, ptr(unknownAvatar)
	}
	o := obj{
		"id":               m.ID,
		"sender_id":        m.Sender.ID,
		"sender_email":     sender,
		"sender_full_name": name,
		"sender_realm_str": s.Name,
		"avatar_url":       avatar,
		"client":           m.Client,
		"timestamp":        m.Time,
		"subject":          c.Topic(m.Topic),
		"topic_links":      topicLinks(m.Links),
		"is_me_message":    m.Me,
		"reactions":        reactionObjects(m.Reactions),
		"submessages":      submessageObjects(m),
	}
	if c.Markdown {
		o["content"], o["content_type"] = body.HTML, "text/html"
	} else {
		o["content"], o["content_type"] = body.Text, "text/x-markdown"
	}
	if m.Channel != 0 {
		o["type"], o["display_recipient"], o["stream_id"], o["recipient_id"] = "stream", m.ChannelName, m.Channel,
			m.Channel.Recipient()
	} else {
		o["type"], o["display_recipient"], o["recipient_id"], o["subject"] = "private", personObjects(m.People, s),
			int64(m.Talk)*2, ""
	}
	if m.Edited != 0 {
		o["last_edit_timestamp"] = m.Edited
	}
	if m.Moved != 0 {
		o["last_moved_timestamp"] = m.Moved
	}
	return o
}

func personObjects(people []realm.UserInfo, s Site) []any {
	out := []any{}
	for _, p := range people {
		out = append(out, obj{"id": p.ID, "email": apiEmail(p, s), "full_name": p.Name, "is_mirror_dummy": false})
	}
	return out
}

func topicLinks(links []realm.TopicLink) []any {
	out := []any{}
	for _, l := range links {
		out = append(out, obj{"text": l.Text, "url": l.URL})
	}
	return out
}

func reactionObjects(list []realm.Reaction) []any {
	out := []any{}
	for _, r := range list {
		out = append(out, obj{"emoji_name": r.Name, "emoji_code": r.Code, "reaction_type": r.Type, "user_id": r.User})
	}
	return out
}

func submessageObjects(m *realm.MessageInfo) []any {
	out := []any{}
	for _, s := range m.Submessages {
		out = append(out, obj{"id": s.ID, "message_id": m.ID, "sender_id": s.Sender, "msg_type": s.Type,
			"content": s.Content})
	}
	return out
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

package realm

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// SendMessage asks to send a message to a channel or to users. Its text was normalized and rendered before the turn.
type SendMessage struct {
	ToChannel    bool
	Channel      ChannelID
	ChannelName  string // used if Channel is 0
	RawChannelID string // the channel id as the client wrote it, if no channel can have it
	People       []Principal
	Topic        string
	Body         Body
	Content      ContentInfo
	ReadBySender bool
	Queue        QueueID // the sender's own queue, which gets LocalID back
	LocalID      string
	Widget       string // poll, todo or zform
	WidgetData   string // the first submessage
}

// ContentInfo is everything that rendering found in a text.
type ContentInfo struct {
	Users           []UserID
	Groups          []GroupID
	ChannelWildcard bool
	TopicWildcard   bool
	Link, Image     bool
	Attachment      bool
	Me              bool
	Attachments     []string
	AlertWords      []string // the organization's alert words in the text
	Previews        []string // addresses of pages that could get a preview
}

// SendResult answers SendMessage.
type SendResult struct {
	ID     MessageID
	Policy int // the sender's new topic policy (2 or 3), 0 if it did not change
}

// truncationMark is the end of a message text that was too long (protocol).
const truncationMark = "\n[message truncated]"

// NormalizeContent returns a message text in its stored form. It removes trailing white space and leading newlines, and
// truncates the text to MaxMessage code points with a mark at the end.
func NormalizeContent(text string) (string, error) {
	text = strings.TrimLeft(strings.TrimRightFunc(text, isSpace), "\n\r")
	if text == "" {
		return "", BadRequest("Message must not be empty")
	}
	if strings.ContainsRune(text, 0) {
		return "", BadRequest("Message must not contain null bytes")
	}
	if runeCount(text) > MaxMessage {
		text = firstRunes(text, MaxMessage-runeCount(truncationMark)) + truncationMark
	}
	return text, nil
}

// isSpace reports whether c is white space in Unicode or one of the four ASCII separators.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

// EmptyTopicName is shown for the empty topic to clients that do not support it.
const EmptyTopicName = "general chat"

// NormalizeTopic returns a topic in its stored form, or a refusal.
func NormalizeTopic(topic string) (string, error) {
	topic = strings.TrimFunc(topic, isSpace)
	if topic == EmptyTopicName || topic == "(no topic)" {
		return "", nil
	}
	if at, ok := findUnprintable(topic); !ok {
		return "", BadRequest("Invalid character in topic, at position %d!", at)
	}
	if runeCount(topic) > MaxTopic {
		topic = firstRunes(topic, MaxTopic-3) + "..."
	}
	return topic, nil
}

func (c SendMessage) Decide(t *Turn) (SendResult, error) {
	me := t.Me()
	if me == nil {
		return SendResult{}, errNotMember()
	}
	f, err := c.plan(t, me)
	if err != nil {
		return SendResult{}, err
	}
	return t.send(me, f), nil
}

// plan checks whether the message may be sent, and returns its fact with the recipients. It records nothing.
func (c SendMessage) plan(t *Turn, me *User) (*MessageSent, error) {
	f := &MessageSent{
		Sender: me.ID, At: t.Now, Client: t.Caller.Client, Body: c.Body, Queue: c.Queue, LocalID: c.LocalID,
		Content: c.Content, Widget: c.Widget, WidgetData: c.WidgetData,
	}
	f.Content.Attachments = t.visibleAttachments(me, c.Content.Attachments)
	if c.ReadBySender {
		f.ReadBy = append(f.ReadBy, me.ID)
	}
	if c.ToChannel {
		return f, c.planForChannel(t, me, f)
	}
	return f, c.planForUsers(t, me, f)
}

// send records a planned message and everything that follows from it: topic policies, outbox jobs, answers of bots.
func (t *Turn) send(me *User, f *MessageSent) SendResult {
	t.completeMessage(f)
	policy := t.followOnSend(me, f)
	t.recordWithVisibility(f)
	t.addMessageOutboxJobs(f)
	t.answerAsWelcomeBot(me, f)
	if me.IsBot() && f.Channel != 0 && t.SubscriberCount(f.Channel) == 0 {
		t.warnBotOwner(me, "tried to send a message to channel "+t.ChannelLink(t.channels.must(f.Channel))+
			". The channel exists, but nobody is subscribed to it.")
	}
	return SendResult{f.ID, policy}
}

// completeMessage sets the fields of the fact that depend on the recipients: ids, mentions, and users for whom the
// message is marked as read at once.
func (t *Turn) completeMessage(f *MessageSent) {
	f.ID = t.Org().NextMessage
	if f.Channel != 0 {
		f.Topic, f.NewTopic = t.topicIDFor(f.Channel, f.TopicName)
	} else if f.Talk = t.FindDirectConversation(f.People); f.Talk == 0 {
		f.Talk, f.NewTalk = t.Org().NextTalk, true
	}
	f.ClientID = t.index.clientIDs[f.Client]
	if f.ClientID == 0 {
		f.ClientID = t.Org().NextClient
	}
	t.resolveMentions(f, func(u UserID) bool { return t.isRecipient(f, u) })
	f.ReadBy = sortUnique(append(f.ReadBy, t.mutersOf(f)...))
	f.Links = t.topicLinks(f.TopicName)
	if f.Channel != 0 {
		c := t.channels.must(f.Channel)
		f.Woke = c.Quiet || t.Now-c.LastActive > recentActivityPeriod
	}
}

func errUnknownChannelID(id string) *Refusal {
	return Refuse(Invalid, "STREAM_DOES_NOT_EXIST", "Channel with ID '"+id+"' does not exist").
		With("stream_id", json.Number(id))
}

// planForChannel checks a channel message in the protocol's order: the channel exists, the topic is valid, the sender
// may post, and may use these mentions. For a sender that must not know of a channel, it does not exist.
func (c SendMessage) planForChannel(t *Turn, me *User, f *MessageSent) error {
	var ch *Channel
	if c.RawChannelID != "" {
		return errUnknownChannelID(c.RawChannelID)
	} else if c.Channel != 0 {
		if ch = t.channels.find(c.Channel); ch == nil || !t.knowsChannel(me, ch) || !t.scope.HasChannel(ch.ID) {
			return errUnknownChannelID(c.Channel.String())
		}
	} else if ch = t.FindChannelByName(c.ChannelName); ch == nil || !t.knowsChannel(me, ch) ||
		!t.scope.HasChannel(ch.ID) {
		return Refuse(Invalid, "STREAM_DOES_NOT_EXIST", "Channel '"+c.ChannelName+"' does not exist").
			With("stream", escapeHTML(c.ChannelName))
	}
	topic, err := NormalizeTopic(c.Topic)
	if err != nil {
		return err
	}
	if err := t.checkSendInScope(ch.ID, topic); err != nil {
		return err
	}
	if err := t.checkPost(me, ch, topic); err != nil {
		return err
	}
	f.Channel, f.TopicName = ch.ID, topic
	return t.checkMentions(me, ch, topic, c.Content)
}

// knowsChannel reports whether a sender may learn that the channel exists: senders with metadata access, bots whose
// owner is subscribed and which may therefore send there, and system bots.
func (r *Realm) knowsChannel(me *User, c *Channel) bool {
	return me.System || r.hasMetadataAccess(me, c) || me.BotOwner != 0 && r.Subscribed(me.BotOwner, c.ID)
}

// checkMaySend refuses users who may not post in any topic of the channel. It checks the posting group first, then
// access.
func (r *Realm) checkMaySend(me *User, c *Channel) error {
	if me.System {
		return nil
	}
	if !r.senderHasPermission(me, c, "can_send_message_group") {
		return BadRequest("You do not have permission to post in this channel.")
	}
	owner := r.users.find(me.BotOwner)
	ok := c.WebPublic || !c.Private && !me.IsGuest() || r.Subscribed(me.ID, c.ID) ||
		owner != nil && r.Subscribed(owner.ID, c.ID) || c.History && r.hasContentAccess(me, c)
	if c.Archived || !ok {
		return BadRequest("Not authorized to send to channel '%s'", c.Name)
	}
	return nil
}

// senderHasPermission reports whether a sender has a permission of the channel. A bot also has the permissions of its
// owner.
func (r *Realm) senderHasPermission(me *User, c *Channel, setting string) bool {
	owner := r.users.find(me.BotOwner)
	return r.channelAllows(me, c, setting) || owner != nil && r.channelAllows(owner, c, setting)
}

// checkPost refuses users who may not post in this topic of the channel. System bots may post everywhere.
func (t *Turn) checkPost(me *User, c *Channel, topic string) error {
	if me.System {
		return nil
	}
	// The protocol's order: first the refusal of a new topic, then the refusals of checkMaySend. checkMaySend checks
	// the posting group again; that matters only for senders who passed it here.
	if t.senderHasPermission(me, c, "can_send_message_group") && t.index.channels[c.ID].topics[fold(topic)] == nil &&
		!t.senderHasPermission(me, c, "can_create_topic_group") {
		return BadRequest("You do not have permission to create new topics in this channel.")
	}
	if err := t.checkMaySend(me, c); err != nil {
		return err
	}
	return t.checkTopicsPolicy(c, topic)
}

// checkTopicsPolicy applies the channel's topics policy. A channel that inherits it uses the policy of the
// organization.
func (r *Realm) checkTopicsPolicy(c *Channel, topic string) error {
	policy := c.TopicsPolicy
	if policy == "inherit" || policy == "" {
		policy = r.OrgText("topics_policy")
	}
	switch {
	case policy == "disable_empty_topic" && topic == "":
		return BadRequest("Sending messages to the general chat is not allowed in this channel.")
	case policy == "empty_topic_only" && topic != "":
		return BadRequest("Only the general chat topic is allowed in this channel.")
	}
	return nil
}

// planForUsers checks a direct message in the protocol's order: the recipients, the mentions of groups, and the
// permission.
func (c SendMessage) planForUsers(t *Turn, me *User, f *MessageSent) error {
	if err := t.checkSendInScope(0, ""); err != nil {
		return err
	}
	members, err := t.directRecipients(me, c.People)
	if err != nil {
		return err
	}
	f.People = members
	if err := t.checkGroupMentions(me, c.Content); err != nil {
		return err
	}
	return t.checkDirectMessage(me, members)
}

// directRecipients returns the participants of a direct message, including the sender, in ascending order.
func (v View) directRecipients(me *User, list []Principal) ([]UserID, error) {
	if len(list) == 0 {
		return nil, BadRequest("Message must have recipients")
	}
	members := []UserID{me.ID}
	var gone *User
	for _, p := range list {
		u := v.Find(p.ID)
		if p.ID == 0 {
			u = v.FindByShownEmail(p.Email)
		}
		switch {
		case u == nil && (p.ID != 0 || p.Email == ""):
			return nil, BadRequest("Invalid user ID %s", cmp.Or(p.RawID, p.ID.String()))
		case u == nil:
			return nil, BadRequest("Invalid email '%s'", p.Email)
		case !v.maySeeUser(me, u):
			return nil, BadRequest("You do not have permission to access some of the recipients.")
		case !u.Active && gone == nil:
			gone = u
		}
		members = append(members, u.ID)
	}
	if gone != nil {
		return nil, errNoLongerActive(gone)
	}
	slices.Sort(members)
	return slices.Compact(members), nil
}

// checkDirectMessage refuses direct messages that are not allowed. At least one participant must have the permission
// for direct messages. The first message needs the permission to start a conversation.
func (t *Turn) checkDirectMessage(me *User, members []UserID) error {
	allBots, authorized := true, false
	for _, id := range members {
		u := t.Find(id)
		if id != me.ID {
			allBots = allBots && u.IsBot()
		}
		authorized = authorized || t.HasPermission(u, "direct_message_permission_group")
	}
	if me.IsBot() || allBots { // allBots is also true for notes to oneself
		return nil
	}
	if !authorized {
		if t.OrgGroup("direct_message_permission_group").Group == groupNobody {
			return BadRequest("Direct messages are disabled in this organization.")
		}
		return BadRequest("This conversation does not include any users who can authorize it.")
	}
	conversation := t.FindDirectConversation(members)
	first := conversation == 0 || t.index.conversations[conversation].ids.Empty()
	if first && !t.HasPermission(me, "direct_message_initiator_group") {
		return BadRequest("You do not have permission to initiate direct message conversations.")
	}
	return nil
}

// parseDummyEmail returns the user id in user<id>@host, the placeholder for an email address that is not visible.
func (v View) parseDummyEmail(email string) (UserID, bool) {
	name, _, ok := strings.Cut(email, "@")
	if !ok || !strings.HasPrefix(name, "user") || !isDigits(name[4:]) || len(name) > 16 {
		return 0, false
	}
	var id UserID
	for _, c := range name[4:] {
		id = id*10 + UserID(c-'0')
	}
	return id, true
}

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace(s)
}

// WarnBotOwner notifies a bot's owner that the bot wrote to a channel that does not exist.
type WarnBotOwner struct{ Channel string }

func (c WarnBotOwner) Decide(t *Turn) (Done, error) {
	if me := t.Me(); me != nil && me.IsBot() {
		t.warnBotOwner(me, "tried to send a message to channel `"+strings.ReplaceAll(c.Channel, "`", "'")+
			"`, but there is no channel with that name.")
	}
	return Done{}, nil
}

// WarnBotOwnerOfPayload notifies a bot's owner that a service sent a request from which no message could be made. Of
// each kind there is at most one warning a day.
type WarnBotOwnerOfPayload struct {
	Service, Display string
	Kind             string // a name for requests of the same fault
	What             string // the object of "has received"
	Request          string // the body of the request, which the warning shows; empty if it is not shown
}

func (c WarnBotOwnerOfPayload) Decide(t *Turn) (Done, error) {
	if me := t.Me(); me != nil && me.IsBot() {
		kind := ownerWarningKind + " " + c.Service + " " + c.Kind
		problem := "has received " + c.What + ", from " + c.Display + "."
		if c.Request != "" {
			problem += "\n\n" + c.Request
		}
		t.warnBotOwnerOnce(me, problem, kind, payloadWarningInterval)
	}
	return Done{}, nil
}

// payloadWarningInterval is the minimum time between two warnings of one kind to one bot owner, in seconds. A service
// repeats the same fault with every event.
const payloadWarningInterval = 24 * 60 * 60

// maxWarningsRead bounds how many messages of the conversation are searched for an earlier warning. The owner gets at
// most so many others in a day, or else the warning again.
const maxWarningsRead = 200

// ownerWarningInterval is the minimum time between two warnings to one bot owner, in seconds (protocol).
const ownerWarningInterval = 60

// ownerWarningKind marks these warnings in the conversation of the owner with the notification bot.
const ownerWarningKind = "bot warning"

// warnBotOwner sends a warning to the bot's owner, at most one per ownerWarningInterval.
func (t *Turn) warnBotOwner(bot *User, problem string) {
	t.warnBotOwnerOnce(bot, problem, ownerWarningKind, ownerWarningInterval)
}

// warnBotOwnerOnce sends a warning to the bot's owner unless one of the same kind is younger than interval, in seconds.
func (t *Turn) warnBotOwnerOnce(bot *User, problem, kind string, interval int64) {
	owner := t.Find(bot.BotOwner)
	if owner == nil || !owner.Active || bot.System {
		return
	}
	if c := t.FindDirectConversation(sortUnique([]UserID{owner.ID, NotificationBot})); c != 0 {
		warned, read := false, 0
		t.index.conversations[c].ids.EachBackward(func(id int64) bool {
			if read++; read > maxWarningsRead || t.Now-int64(t.message(MessageID(id)).time) >= interval {
				return false
			}
			warned = t.extraOrEmpty(MessageID(id)).Notice == kind
			return !warned
		})
		if warned {
			return
		}
	}
	text := "Your bot " + t.SilentMention(bot.ID) + " " + problem
	t.SendBotMessage(BotMessage{People: []UserID{owner.ID}, Text: text, Kind: kind})
}

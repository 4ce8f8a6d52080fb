package realm

import (
	"slices"
	"strings"
)

// SendMessage asks to send a message to a channel or to people. Its text was normalized and rendered before the turn.
type SendMessage struct {
	ToChannel    bool
	Channel      ChannelID
	ChannelName  string // used when Channel is 0
	People       []Principal
	Topic        string
	Body         Body
	Content      Content
	ReadBySender bool
	Queue        QueueID // the sender's own queue, which is told LocalID
	LocalID      string
	Widget       string // poll, todo or zform
	WidgetData   string // the first submessage
}

// Content is what rendering found out about a text.
type Content struct {
	Users           []UserID
	Groups          []GroupID
	ChannelWildcard bool
	TopicWildcard   bool
	Link, Image     bool
	Attachment      bool
	Me              bool
	Attachments     []string
	AlertWords      []string // which of the organization's alert words occur
}

// Sent answers SendMessage.
type Sent struct {
	ID     MessageID
	Policy int // new topic policy of the sender (2 or 3), 0 if it did not change
}

const truncated = "\n[message truncated]"

// NormalizeContent brings a message text into the form it is stored in: trailing white space and leading newlines go,
// what is longer than MaxMessage is cut with a mark.
func NormalizeContent(text string) (string, error) {
	text = strings.TrimLeft(strings.TrimRight(text, " \t\r\n\v\f\u00a0\u2028\u2029"), "\n\r")
	if strings.TrimSpace(text) == "" {
		return "", Bad("Message must not be empty")
	}
	if strings.ContainsRune(text, 0) {
		return "", Bad("Message must not contain null bytes")
	}
	if length(text) > MaxMessage {
		text = firstRunes(text, MaxMessage-length(truncated)) + truncated
	}
	return text, nil
}

// EmptyTopicName is shown to clients that do not know the empty topic.
const EmptyTopicName = "general chat"

// NormalizeTopic brings a topic into the form it is stored in.
func NormalizeTopic(topic string) (string, error) {
	topic = strings.TrimSpace(topic)
	if topic == EmptyTopicName || topic == "(no topic)" {
		return "", nil
	}
	if at, ok := printable(topic); !ok {
		return "", Bad("Invalid character in topic, at position %d!", at)
	}
	if length(topic) > MaxTopic {
		topic = firstRunes(topic, MaxTopic-3) + "..."
	}
	return topic, nil
}

// manyMentions is from how many people on a wildcard mention needs permission.
const manyMentions = 15

func (c SendMessage) Decide(t *Turn) (Sent, error) {
	me := t.Me()
	if me == nil {
		return Sent{}, errMember()
	}
	f := &MessageSent{Sender: me.ID, At: t.Now, Client: t.Caller.Client, Body: c.Body, Queue: c.Queue, LocalID: c.LocalID, Content: c.Content, Widget: c.Widget, WidgetData: c.WidgetData}
	var err error
	if c.ToChannel {
		err = c.toChannel(t, me, f)
	} else {
		err = c.toPeople(t, me, f)
	}
	if err != nil {
		return Sent{}, err
	}
	if c.ReadBySender || me.IsBot() {
		f.ReadBy = append(f.ReadBy, me.ID)
	}
	t.finish(f)
	policy := t.followBySending(me, f)
	t.Record(f)
	return Sent{f.ID, policy}, nil
}

// finish settles what every message needs: its id, who is flagged, who has it read at once.
func (t *Turn) finish(f *MessageSent) {
	f.ID = t.Org().NextMessage
	if f.Channel != 0 {
		f.Topic, f.NewTopic = t.topicID(f.Channel, f.TopicName)
	} else if f.Talk = t.FindTalk(f.People); f.Talk == 0 {
		f.Talk, f.NewTalk = t.Org().NextTalk, true
	}
	f.ClientID = t.by.client[f.Client]
	if f.ClientID == 0 {
		f.ClientID = t.Org().NextClient
	}
	for _, u := range f.Content.Users {
		if t.Find(u) != nil && t.gets(f, u) {
			f.Mentioned = append(f.Mentioned, u)
		}
	}
	for _, g := range f.Content.Groups {
		for _, u := range t.recipients(f) {
			if t.inGroup(t.Find(u), g, t.Now, 0) {
				f.GroupMentioned = append(f.GroupMentioned, u)
			}
		}
	}
	if f.Content.TopicWildcard {
		f.TopicMentioned = t.participants(f)
	}
	f.Alerted = t.alerted(f)
	f.ReadBy = append(f.ReadBy, t.mutersOf(f)...)
	slices.Sort(f.ReadBy)
	f.ReadBy = slices.Compact(f.ReadBy)
	slices.Sort(f.GroupMentioned)
	f.GroupMentioned = slices.Compact(f.GroupMentioned)
}

// recipients is everyone who will have a row of the message.
func (t *Turn) recipients(f *MessageSent) []UserID {
	if f.Channel != 0 {
		return t.Subscribers(f.Channel)
	}
	return f.People
}

// gets reports whether a user will have a row: participants, subscribers, and generic bots that are mentioned.
func (t *Turn) gets(f *MessageSent, u UserID) bool {
	if f.Channel == 0 {
		return slices.Contains(f.People, u)
	}
	return t.Realm.Subscribed(u, f.Channel) || t.Find(u).Bot == GenericBot && t.Find(u).Active
}

func (t *Turn) participants(f *MessageSent) []UserID {
	out := []UserID{f.Sender}
	if f.Channel == 0 {
		return slices.Clone(f.People)
	}
	if ix := t.by.channel[f.Channel].topics[fold(f.TopicName)]; ix != nil {
		for u := range ix.participants {
			if u != f.Sender && t.Realm.Subscribed(u, f.Channel) {
				out = append(out, u)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (c SendMessage) toChannel(t *Turn, me *User, f *MessageSent) error {
	var ch *Channel
	if c.Channel != 0 {
		if ch = t.chans.find(c.Channel); ch == nil {
			return Refuse(Invalid, "STREAM_DOES_NOT_EXIST", "Channel with ID '"+c.Channel.String()+"' does not exist").With("stream_id", c.Channel)
		}
	} else if ch = t.FindChannelByName(c.ChannelName); ch == nil {
		return Refuse(Invalid, "STREAM_DOES_NOT_EXIST", "Channel '"+c.ChannelName+"' does not exist").With("stream", escapeHTML(c.ChannelName))
	}
	topic, err := NormalizeTopic(c.Topic)
	if err != nil {
		return err
	}
	if err := t.mayPost(me, ch, topic); err != nil {
		return err
	}
	f.Channel, f.TopicName = ch.ID, topic
	return t.mayMention(me, ch, topic, c.Content)
}

// PostableChannel is a channel the caller may send to, whatever the topic.
func (v View) PostableChannel(id ChannelID) (*Channel, error) {
	c, err := v.VisibleChannel(id)
	if err != nil {
		return nil, err
	}
	return c, v.maySend(v.Me(), c)
}

// maySend is the permission to post in a channel at all: the posting group, then access.
func (r *Realm) maySend(me *User, c *Channel) error {
	if me.System {
		return nil
	}
	owner := r.users.find(me.BotOwner) // a bot passes where its owner does
	if !r.channelAllows(me, c, "can_send_message_group") && (owner == nil || !r.channelAllows(owner, c, "can_send_message_group")) {
		return Bad("You do not have permission to post in this channel.")
	}
	ok := !c.Archived && (c.WebPublic || !c.Private && !me.IsGuest() || r.Subscribed(me.ID, c.ID) || owner != nil && r.Subscribed(owner.ID, c.ID) || c.History && r.hasContent(me, c))
	if !ok {
		return Bad("Not authorized to send to channel '%s'", c.Name)
	}
	return nil
}

func (t *Turn) mayPost(me *User, c *Channel, topic string) error {
	if me.System {
		return nil
	}
	owner := t.Find(me.BotOwner)
	if !t.channelAllows(me, c, "can_send_message_group") && (owner == nil || !t.channelAllows(owner, c, "can_send_message_group")) {
		return Bad("You do not have permission to post in this channel.")
	}
	if t.by.channel[c.ID].topics[fold(topic)] == nil && !t.channelAllows(me, c, "can_create_topic_group") && (owner == nil || !t.channelAllows(owner, c, "can_create_topic_group")) {
		return Bad("You do not have permission to create new topics in this channel.")
	}
	if err := t.maySend(me, c); err != nil {
		return err
	}
	return t.topicAllowed(c, topic)
}

// topicAllowed is the rule of the channel's topics policy, or of the organization's where the channel inherits.
func (r *Realm) topicAllowed(c *Channel, topic string) error {
	policy := c.TopicsPolicy
	if policy == "inherit" || policy == "" {
		policy = r.OrgText("topics_policy")
	}
	switch {
	case policy == "disable_empty_topic" && topic == "":
		return Bad("Sending messages to the general chat is not allowed in this channel.")
	case policy == "empty_topic_only" && topic != "":
		return Bad("Only the general chat topic is allowed in this channel.")
	}
	return nil
}

// mayMention decides wildcard and group mentions in a channel.
func (t *Turn) mayMention(me *User, c *Channel, topic string, x Content) error {
	if x.ChannelWildcard && t.SubscriberCount(c.ID) > manyMentions && !t.May(me, "can_mention_many_users_group") {
		return Refuse(Invalid, "STREAM_WILDCARD_MENTION_NOT_ALLOWED", "You do not have permission to use channel wildcard mentions in this channel.")
	}
	if x.TopicWildcard && !t.May(me, "can_mention_many_users_group") {
		if ix := t.by.channel[c.ID].topics[fold(topic)]; ix != nil && len(ix.participants) > manyMentions {
			return Refuse(Invalid, "TOPIC_WILDCARD_MENTION_NOT_ALLOWED", "You do not have permission to use topic wildcard mentions in this topic.")
		}
	}
	return t.mayMentionGroups(me, x)
}

func (t *Turn) mayMentionGroups(me *User, x Content) error {
	for _, id := range x.Groups {
		g := t.FindGroup(id)
		if g == nil || me.System {
			continue
		}
		if g.System && (id == groupNobody || id == groupInternet) || !g.System && !t.allowed(me, t.GroupSettingOf(g, "can_mention_group"), true) {
			return Bad("You are not allowed to mention user group '%s'.", GroupDisplayName(g))
		}
		if g.System && id != groupNobody && id != groupInternet && !t.May(me, "can_mention_many_users_group") && !t.inGroup(me, id, t.Now, 0) {
			return Bad("You are not allowed to mention user group '%s'.", GroupDisplayName(g))
		}
	}
	return nil
}

// GroupDisplayName is a group's name as people read it.
func GroupDisplayName(g *Group) string {
	if g.System && int(g.ID) <= len(SystemGroups) {
		return SystemGroups[g.ID-1].Display
	}
	return g.Name
}

func (c SendMessage) toPeople(t *Turn, me *User, f *MessageSent) error {
	members, err := t.directRecipients(me, c.People)
	if err != nil {
		return err
	}
	f.People = members
	if err := t.mayMentionGroups(me, c.Content); err != nil {
		return err
	}
	return t.mayTalk(me, members)
}

// directRecipients resolves the people of a direct message, the sender included, ascending.
func (v View) directRecipients(me *User, list []Principal) ([]UserID, error) {
	if len(list) == 0 {
		return nil, Bad("Message must have recipients")
	}
	members := []UserID{me.ID}
	var gone *User
	for _, p := range list {
		u := v.Find(p.ID)
		if p.ID == 0 {
			u = v.FindByEmail(p.Email)
			if u == nil {
				if id, ok := v.dummyAddress(p.Email); ok {
					u = v.Find(id)
				}
			}
		}
		switch {
		case u == nil && (p.ID != 0 || p.Email == ""):
			return nil, Bad("Invalid user ID %d", p.ID)
		case u == nil:
			return nil, Bad("Invalid email '%s'", p.Email)
		case !v.maySee(me, u):
			return nil, Bad("You do not have permission to access some of the recipients.")
		case !u.Active && gone == nil:
			gone = u
		}
		members = append(members, u.ID)
	}
	if gone != nil {
		return nil, Bad("'%s' is no longer using Zulip.", gone.Email)
	}
	slices.Sort(members)
	return slices.Compact(members), nil
}

// mayTalk decides direct messages: somebody taking part must be allowed to, and the first one needs the right to begin.
func (t *Turn) mayTalk(me *User, members []UserID) error {
	allBots, authorized := true, false
	for _, id := range members {
		u := t.Find(id)
		if id != me.ID {
			allBots = allBots && u.IsBot()
		}
		authorized = authorized || t.May(u, "direct_message_permission_group")
	}
	if me.IsBot() || allBots { // allBots holds for notes to oneself too
		return nil
	}
	if !authorized {
		if t.OrgGroup("direct_message_permission_group").Group == groupNobody {
			return Bad("Direct messages are disabled in this organization.")
		}
		return Bad("This conversation does not include any users who can authorize it.")
	}
	if talk := t.FindTalk(members); (talk == 0 || t.by.talk[talk].ids.Empty()) && !t.May(me, "direct_message_initiator_group") {
		return Bad("You do not have permission to initiate direct message conversations.")
	}
	return nil
}

// dummyAddress reads the user id out of user<id>@host, the address shown where the real one is not.
func (v View) dummyAddress(email string) (UserID, bool) {
	name, _, ok := strings.Cut(email, "@")
	if !ok || !strings.HasPrefix(name, "user") || !digits(name[4:]) || len(name) > 16 {
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

// MessageSent says a message exists. One fact, whatever the audience: who received it follows from subscriptions and
// the conversation.
type MessageSent struct {
	ID             MessageID
	Sender         UserID
	At             int64
	Client         string
	ClientID       ClientID
	Channel        ChannelID
	Topic          TopicID
	TopicName      string
	NewTopic       bool
	Talk           TalkID
	People         []UserID
	NewTalk        bool
	Content        Content
	Mentioned      []UserID
	GroupMentioned []UserID
	TopicMentioned []UserID
	Alerted        []UserID
	ReadBy         []UserID // has it read at once: the sender, and whoever muted him
	Queue          QueueID
	LocalID        string
	Widget         string
	WidgetData     string
	Body           Body `msgpack:"-"` // written as a body of its own, in the same batch
}

// Bodies is the texts written with the fact.
func (f *MessageSent) Bodies() map[BodyRef]*Body { return map[BodyRef]*Body{{Message: f.ID}: &f.Body} }

func (f *MessageSent) apply(r *Realm) {
	o := r.org.change(0)
	o.NextMessage = max(o.NextMessage, f.ID+1)
	m := message{sender: uint32(f.Sender), channel: uint32(f.Channel), talk: f.Talk, topic: f.Topic, time: uint32(f.At), client: f.ClientID, bits: bitLive | f.Content.bits()}
	if _, known := r.by.client[f.Client]; !known {
		o.NextClient = max(o.NextClient, f.ClientID+1)
		r.clients.put(f.ClientID, &ClientName{f.Client})
		r.by.client[f.Client] = f.ClientID
	}
	if f.Channel != 0 {
		m.talk = 0
		if f.NewTopic {
			r.addTopic(f.Topic, f.Channel, f.TopicName)
		}
		if c := r.chans.must(f.Channel); f.At-c.LastActive >= 86400 {
			r.chans.change(f.Channel).LastActive = f.At // a day's precision is all anyone needs; it saves rows
		}
	} else if f.NewTalk {
		o.NextTalk = max(o.NextTalk, f.Talk+1)
		t := &Talk{Members: f.People}
		r.talks.put(f.Talk, t)
		r.by.addTalk(f.Talk, t)
	}
	r.blocks.open(int64(f.ID) / blockSize).m[f.ID%blockSize] = m
	if f.hasExtra() {
		e := r.changeExtra(f.ID)
		e.Mentioned, e.GroupMentioned, e.TopicMentioned, e.Alerted = f.Mentioned, f.GroupMentioned, f.TopicMentioned, f.Alerted
		e.Attachments, e.Widget = f.Content.Attachments, f.Widget
		if f.WidgetData != "" {
			id := r.nextID("submessage")
			r.usedID("submessage", id)
			e.Submessages = []Submessage{{ID: id, Sender: f.Sender, Type: "widget", Content: f.WidgetData}}
		}
	}
	r.indexMessage(f.ID, r.message(f.ID))
	for _, u := range f.ReadBy {
		r.reading.open(u).Read.Add(int64(f.ID))
	}
	for _, u := range f.Mentioned { // a mentioned bot that is not subscribed has a row of its own
		if f.Channel != 0 && !r.Subscribed(u, f.Channel) {
			r.reading.open(u).Rows.Add(int64(f.ID))
		}
	}
}

func (f *MessageSent) hasExtra() bool {
	return len(f.Mentioned)+len(f.GroupMentioned)+len(f.TopicMentioned)+len(f.Alerted)+len(f.Content.Attachments)+len(f.Widget) > 0
}

func (x Content) bits() uint16 {
	var b uint16
	for _, s := range []struct {
		is  bool
		bit uint16
	}{{x.Link, bitLink}, {x.Image, bitImage}, {x.Attachment, bitAttachment}, {x.Me, bitMe}, {x.ChannelWildcard, bitChannelWildcard}, {x.TopicWildcard, bitTopicWildcard}} {
		if s.is {
			b |= s.bit
		}
	}
	return b
}

func (r *Realm) addTopic(id TopicID, c ChannelID, name string) {
	o := r.org.change(0)
	o.NextTopic = max(o.NextTopic, id+1)
	r.topics.put(id, &Topic{Channel: c, Name: name})
	r.by.topic[c][name] = id
}

func (f *MessageSent) tell(r *Realm) []Notice {
	e := &MessageArrived{Message: r.messageInfo(f.ID, r.message(f.ID)), ChannelWildcard: f.Content.ChannelWildcard,
		Mentioned: f.Mentioned, GroupMentioned: f.GroupMentioned, TopicMentioned: f.TopicMentioned, Alerted: f.Alerted, ReadBy: f.ReadBy, Queue: f.Queue, LocalID: f.LocalID}
	e.Message.Body = &f.Body
	if f.Body.Text == "" {
		e.Message.Body = nil // replayed: the text is joined when delivered
	}
	var to []UserID
	if f.Channel != 0 {
		to = r.heard(f.Channel)
		for _, u := range f.Mentioned {
			if !r.Subscribed(u, f.Channel) && r.by.listening.Has(int64(u)) {
				to = append(slices.Clone(to), u)
				slices.Sort(to)
			}
		}
	} else {
		to = r.only(f.People...)
	}
	e.Unknown = r.strangers(to, f.Sender)
	var out []Notice
	if len(to) > 0 {
		out = append(out, Notice{To: to, Event: e})
	}
	if f.Channel != 0 && len(r.by.allPublic) > 0 && !r.chans.must(f.Channel).Private {
		var others []UserID
		for u := range r.by.allPublic {
			if !r.users.must(u).IsGuest() && !slices.Contains(to, u) {
				others = append(others, u)
			}
		}
		if slices.Sort(others); len(others) > 0 {
			out = append(out, Notice{To: others, Event: e, PublicOnly: true})
		}
	}
	return out
}

// heard is the subscribers that have a queue, kept until somebody joins, leaves or (un)registers.
func (r *Realm) heard(c ChannelID) []UserID {
	ix := r.by.channel[c]
	if !ix.heardKnown {
		ix.heard, ix.heardKnown = IDs[UserID](Both(ix.subscribers, r.by.listening)), true
	}
	return ix.heard
}

// strangers is who of an audience may not know a user: guests where they are limited.
func (r *Realm) strangers(to []UserID, sender UserID) []UserID {
	if !r.guestsLimited() {
		return nil
	}
	var out []UserID
	s := r.users.must(sender)
	for _, u := range to {
		if !r.maySee(r.users.must(u), s) {
			out = append(out, u)
		}
	}
	return out
}

// MessageArrived is the event of a new message.
type MessageArrived struct {
	Message         MessageInfo
	ChannelWildcard bool
	Mentioned       []UserID
	GroupMentioned  []UserID
	TopicMentioned  []UserID
	Alerted         []UserID
	ReadBy          []UserID
	Unknown         []UserID // of the audience, who may not know the sender
	Queue           QueueID
	LocalID         string
}

func (*MessageArrived) EventType() string { return "message" }

// FlagsFor is the flags the message arrives with.
func (e *MessageArrived) FlagsFor(u UserID) Flags {
	var f Flags
	if e.ChannelWildcard {
		f |= FlagChannelWildcard
	}
	if _, read := slices.BinarySearch(e.ReadBy, u); read { // an archive notice is read by the whole audience
		f |= FlagRead
	}
	if len(e.Mentioned)+len(e.GroupMentioned)+len(e.TopicMentioned)+len(e.Alerted) > 0 {
		x := MessageExtra{Mentioned: e.Mentioned, GroupMentioned: e.GroupMentioned, TopicMentioned: e.TopicMentioned, Alerted: e.Alerted}
		f |= x.mentions(u)
	}
	return f
}

package realm

import (
	"iter"
	"slices"
)

// MessageSent says that a message was sent. One fact is enough for any number of recipients: they follow from the
// subscriptions or the direct conversation.
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
	Talk           DirectConversationID
	People         []UserID
	NewTalk        bool
	Content        ContentInfo
	Mentioned      []UserID
	GroupMentioned []UserID
	TopicMentioned []UserID
	Alerted        []UserID
	ReadBy         []UserID // ascending; read at once: by the sender, and by users that muted the sender
	Queue          QueueID
	LocalID        string
	Widget         string
	WidgetData     string
	Links          []TopicLink
	Woke           bool   // the channel was inactive before
	Notice         string // kind of a message by the server itself, or ""
	Body           Body   `msgpack:"-"` // stored under its BodyRef in the same batch
}

// Bodies returns the texts that are written together with the fact.
func (f *MessageSent) Bodies() iter.Seq2[BodyRef, *Body] {
	return func(yield func(BodyRef, *Body) bool) { yield(BodyRef{Message: f.ID}, &f.Body) }
}

func (f *MessageSent) apply(r *Realm) {
	o := r.org.change(0)
	o.NextMessage = max(o.NextMessage, f.ID+1)
	m := message{sender: uint32(f.Sender), channel: uint32(f.Channel), conversation: f.Talk, topic: f.Topic,
		time: uint32(f.At), client: f.ClientID, bits: bitExists | r.textBits(&f.Content)}
	if _, known := r.index.clientIDs[f.Client]; !known {
		o.NextClient = max(o.NextClient, f.ClientID+1)
		r.clients.put(f.ClientID, &ClientName{f.Client})
		r.index.clientIDs[f.Client] = f.ClientID
	}
	if f.Channel != 0 {
		m.conversation = 0
		if f.NewTopic {
			r.addTopic(f.Topic, f.Channel, f.TopicName)
		}
		if c := r.channels.must(f.Channel); f.At-c.LastActive >= 86400 {
			c = r.channels.change(f.Channel)
			c.LastActive, c.Quiet = f.At, false // one update a day is precise enough and changes few rows
		}
	} else if f.NewTalk {
		o.NextTalk = max(o.NextTalk, f.Talk+1)
		t := &DirectConversation{Members: f.People}
		r.conversations.put(f.Talk, t)
		r.index.addConversation(f.Talk, t)
	}
	b := r.blocks.ensure(int64(f.ID) / blockSize)
	r.saveForSnapshot(b, f.ID)
	b.m[f.ID%blockSize] = m
	if groups := r.groupsToStore(&f.Content); len(groups) > 0 || f.hasExtra() {
		e := r.changeExtra(f.ID)
		e.Mentioned, e.GroupMentioned, e.MentionedGroups = f.Mentioned, f.GroupMentioned, groups
		e.TopicMentioned, e.Alerted = f.TopicMentioned, f.Alerted
		e.Attachments, e.Widget, e.Notice = f.Content.Attachments, f.Widget, f.Notice
		if f.WidgetData != "" {
			id := r.nextID("submessage")
			r.reserveID("submessage", id)
			e.Submessages = []Submessage{{ID: id, Sender: f.Sender, Type: "widget", Content: f.WidgetData}}
		}
	}
	r.indexMessage(f.ID, r.message(f.ID))
	for _, u := range f.ReadBy {
		r.marks.ensure(u).Read.Add(int64(f.ID))
	}
	for _, u := range f.Mentioned { // a mentioned bot without a subscription gets a row
		if f.Channel != 0 && !r.Subscribed(u, f.Channel) {
			r.marks.ensure(u).Rows.Add(int64(f.ID))
		}
	}
}

// hasExtra reports whether the message needs a MessageExtra row.
func (f *MessageSent) hasExtra() bool {
	return len(f.Mentioned)+len(f.GroupMentioned)+len(f.TopicMentioned)+len(f.Alerted)+
		len(f.Content.Attachments)+len(f.Widget)+len(f.Notice) > 0
}

// bits returns the bits of a message with this content.
func (x ContentInfo) bits() uint16 {
	var b uint16
	for _, s := range []struct {
		is  bool
		bit uint16
	}{
		{x.Link, bitLink}, {x.Image, bitImage}, {x.Attachment, bitAttachment}, {x.Me, bitMeMessage},
		{x.ChannelWildcard, bitChannelWildcard}, {x.TopicWildcard, bitTopicWildcard},
	} {
		if s.is {
			b |= s.bit
		}
	}
	return b
}

// textBits returns the bits of a message with this text, which was rendered from source.
func (r *Realm) textBits(x *ContentInfo) uint16 {
	b := x.bits()
	if r.Level() >= mentionsLevel && len(x.Groups) == 0 {
		b |= bitNoGroups
	}
	return b
}

// groupsToStore returns the mentioned groups for the row of a message.
func (r *Realm) groupsToStore(x *ContentInfo) []GroupID {
	if r.Level() < mentionsLevel {
		return nil
	}
	return x.Groups
}

// storedMentions returns the mentions of a message's text that need a permission, as they are in its row. It returns
// false if the row does not say which groups the text mentions.
func (r *Realm) storedMentions(id MessageID) (ContentInfo, bool) {
	m := r.message(id)
	x := ContentInfo{ChannelWildcard: m.bits&bitChannelWildcard != 0, TopicWildcard: m.bits&bitTopicWildcard != 0}
	if m.bits&bitNoGroups != 0 {
		return x, true
	}
	if e := r.extra(id, m); e != nil {
		x.Groups = e.MentionedGroups
	}
	return x, len(x.Groups) > 0
}

// addTopic adds a new spelling of a topic.
func (r *Realm) addTopic(id TopicID, c ChannelID, name string) {
	o := r.org.change(0)
	o.NextTopic = max(o.NextTopic, id+1)
	t := &Topic{Channel: c, Name: name}
	r.topics.put(id, t)
	r.index.addTopic(id, t)
}

func (f *MessageSent) notices(r *Realm) []Notice {
	e := &MessageArrived{Message: r.messageInfo(f.ID, r.message(f.ID)), ChannelWildcard: f.Content.ChannelWildcard,
		Mentioned: f.Mentioned, GroupMentioned: f.GroupMentioned, TopicMentioned: f.TopicMentioned, Alerted: f.Alerted,
		ReadBy: f.ReadBy, Queue: f.Queue, LocalID: f.LocalID}
	e.Message.Links = f.Links
	e.Message.Body = f.Body.forEvent()
	to := r.sentMessageAudience(f)
	e.Unknown = r.hiddenSenderAudience(to, f.Sender)
	var out []Notice
	if len(to) > 0 {
		out = append(out, Notice{To: to, Event: e})
	}
	if others := r.allPublicAudience(f, to); len(others) > 0 {
		out = append(out, Notice{To: others, Event: e, PublicOnly: true})
	}
	if f.Channel != 0 {
		// The first message of a channel changes first_message_id without an event of its own (protocol).
		if c := r.channels.must(f.Channel); f.Woke {
			out = append(out, Notice{To: r.channelAudience(c),
				Event: &ChannelActivityChanged{Channel: c.ID, Name: c.Name, Active: true}})
		}
	}
	return append(out, r.attachmentUseNotices(f.Content.Attachments)...)
}

// containsSorted is slices.Contains for ascending ids.
func containsSorted[T ~int64](ids []T, id T) bool {
	_, ok := slices.BinarySearch(ids, id)
	return ok
}

// ChannelActivityChanged is the event stream/update for values that follow from messages: the first message, and
// whether the channel is active.
type ChannelActivityChanged struct {
	Channel      ChannelID
	Name         string
	First        MessageID // 0: no message
	FirstChanged bool
	Active       bool // the channel became active
}

func (*ChannelActivityChanged) EventType() string { return "stream" }

// MessageArrived is the event of a new message.
type MessageArrived struct {
	Message         MessageInfo
	ChannelWildcard bool
	Mentioned       []UserID
	GroupMentioned  []UserID
	TopicMentioned  []UserID
	Alerted         []UserID
	ReadBy          []UserID
	Unknown         []UserID // those of the audience that may not see the sender
	Queue           QueueID
	LocalID         string
}

func (*MessageArrived) EventType() string { return "message" }

// FlagsFor returns the flags that the message has for a user when it arrives.
func (e *MessageArrived) FlagsFor(u UserID) Flags {
	var f Flags
	if e.ChannelWildcard {
		f |= FlagChannelWildcard
	}
	if _, read := slices.BinarySearch(e.ReadBy, u); read { // a notice about archiving is read for the whole audience
		f |= FlagRead
	}
	if len(e.Mentioned)+len(e.GroupMentioned)+len(e.TopicMentioned)+len(e.Alerted) > 0 {
		x := MessageExtra{Mentioned: e.Mentioned, GroupMentioned: e.GroupMentioned,
			TopicMentioned: e.TopicMentioned, Alerted: e.Alerted}
		f |= x.mentionFlags(u)
	}
	return f
}

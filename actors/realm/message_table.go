package realm

import (
	"encoding/binary"
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// message is what is kept in memory of every message: 24 bytes. Its text lives on disk and in a cache.
type message struct {
	sender       uint32
	channel      uint32               // 0: direct
	conversation DirectConversationID // direct conversations only
	topic        TopicID
	time         uint32 // Unix seconds
	client       ClientID
	bits         uint16
}

// Bits of a message.
const (
	bitExists uint16 = 1 << iota
	bitLink
	bitImage
	bitAttachment
	bitMeMessage
	bitChannelWildcard
	bitTopicWildcard
	bitExtra         // hasKey a row in extras
	bitSentElsewhere // was sent to another channel than it is in, or has been away: SentTo of that row. Rows of before lack it: see index
)

// blockSize is how many messages share one row on disk.
const blockSize = 256

// messageBlock is the row of 256 messages with neighbouring ids.
type messageBlock struct{ m [blockSize]message }

const encodedMessageSize = 22

func (b *messageBlock) MarshalBinary() ([]byte, error) {
	n := blockSize
	for n > 0 && b.m[n-1].bits == 0 {
		n--
	}
	out := make([]byte, 0, n*encodedMessageSize)
	for _, m := range b.m[:n] {
		out = binary.BigEndian.AppendUint32(out, m.sender)
		place := m.channel << 1
		if m.channel == 0 {
			place = uint32(m.conversation)<<1 | 1
		}
		out = binary.BigEndian.AppendUint32(out, place)
		out = binary.BigEndian.AppendUint32(out, uint32(m.topic))
		out = binary.BigEndian.AppendUint32(out, m.time)
		out = binary.BigEndian.AppendUint16(out, uint16(m.client))
		out = binary.BigEndian.AppendUint16(out, m.bits)
		out = append(out, 0, 0) // slab for the next field
	}
	return out, nil
}

func (b *messageBlock) UnmarshalBinary(in []byte) error {
	if len(in)%encodedMessageSize != 0 || len(in) > blockSize*encodedMessageSize {
		return fmt.Errorf("message block of %d bytes", len(in))
	}
	for i := 0; len(in) > 0; i, in = i+1, in[encodedMessageSize:] {
		m := &b.m[i]
		m.sender = binary.BigEndian.Uint32(in)
		place := binary.BigEndian.Uint32(in[4:])
		if place&1 == 1 {
			m.conversation = DirectConversationID(place >> 1)
		} else {
			m.channel = place >> 1
		}
		m.topic = TopicID(binary.BigEndian.Uint32(in[8:]))
		m.time = binary.BigEndian.Uint32(in[12:])
		m.client = ClientID(binary.BigEndian.Uint16(in[16:]))
		m.bits = binary.BigEndian.Uint16(in[18:])
	}
	return nil
}

// MessageExtra is the row of a message that has more than a sender, a place and a time.
type MessageExtra struct {
	Version        uint16    // of the text; 0 is the first
	Edited         int64     // last edit of the content; 0: never
	Moved          int64     // last move to another topic or channel; 0: never
	SentTo         ChannelID // where it was sent, if it is elsewhere now
	Mentioned      []UserID  // by name, not silently; these four ascend
	GroupMentioned []UserID  // members of mentioned groups at the time
	TopicMentioned []UserID  // participants a topic wildcard reached
	Alerted        []UserID  // whose alert words occur
	Reactions      []Reaction
	Submessages    []Submessage
	History        []Revision // oldest first
	Attachments    []string
	Widget         string // poll, todo or zform
	Notice         string // what kind of notice of the server itself it is

	Shared bool `msgpack:"-"` // several messages have this one, of which nothing is kept but where they have been: it never changes
}

// snapshotCopy is the row as it is now, whatever follows: its lists are only added to, or replaced.
func (e *MessageExtra) snapshotCopy() *MessageExtra {
	if e.Shared {
		return e
	}
	c := *e
	return &c
}

// unshared is a copy of a shared row that may change.
func (e *MessageExtra) unshared() *MessageExtra {
	c := *e
	c.Shared, c.History = false, slices.Clip(c.History)
	return &c
}

// shareWith is a row that was loaded, or the one loaded before it if nothing is kept in them but where their messages have
// been, and that is the same.
func (e *MessageExtra) shareWith(before *MessageExtra) *MessageExtra {
	if before == nil || e.Moved != before.Moved || e.SentTo != before.SentTo || !e.hasOnlyMoves() || !before.hasOnlyMoves() || !sameHistory(e.History, before.History) {
		return e
	}
	before.Shared = true
	return before
}

// hasOnlyMoves reports whether nothing is kept but where a message has been.
func (e *MessageExtra) hasOnlyMoves() bool {
	return e.Version == 0 && e.Edited == 0 && len(e.Mentioned)+len(e.GroupMentioned)+len(e.TopicMentioned)+len(e.Alerted)+
		len(e.Reactions)+len(e.Submessages)+len(e.Attachments)+len(e.Widget)+len(e.Notice) == 0
}

// Reaction is one emoji of one user on a message.
type Reaction struct {
	User UserID
	Name string
	Code string
	Type string // unicode_emoji, realm_emoji, zulip_extra_emoji
}

// Submessage is data a widget keeps with a message.
type Submessage struct {
	ID            int64
	Sender        UserID
	Type, Content string
}

// Revision is one entry of a message's edit history: what was before.
type Revision struct {
	User                        UserID
	At                          int64
	Content                     bool // the text changed; Version is the text before
	Version                     uint16
	TopicBefore, TopicAfter     *string
	ChannelBefore, ChannelAfter ChannelID // 0: the channel did not change
}

// sameHistory reports whether two histories read the equalPointers.
func sameHistory(a, b []Revision) bool {
	return slices.EqualFunc(a, b, func(v, w Revision) bool {
		if !equalText(v.TopicBefore, w.TopicBefore) || !equalText(v.TopicAfter, w.TopicAfter) {
			return false
		}
		w.TopicBefore, w.TopicAfter = v.TopicBefore, v.TopicAfter
		return v == w
	})
}

func equalText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// Body is a message's text and its rendering, kept outside the realm under BodyRef.
type Body struct{ Text, HTML string }

// BodyRef names one version of a message's text. It is written once and never changes.
type BodyRef struct {
	Message MessageID
	Version uint16
}

// TextReader reads one version of a message's text; it reports false if that is deleted.
type TextReader func(BodyRef) (Body, bool, error)

func (r *Realm) message(id MessageID) *message {
	if id <= 0 {
		return nil
	}
	b := r.blocks.find(int64(id) / blockSize)
	if b == nil || b.m[id%blockSize].bits&bitExists == 0 {
		return nil
	}
	return &b.m[id%blockSize]
}

// messageLookup is message for many messages in order: those of one row are found by looking once.
type messageLookup struct {
	*Realm
	blockNumber int64
	block       *messageBlock
}

func (x *messageLookup) message(id MessageID) *message {
	if n := int64(id) / blockSize; x.block == nil || n != x.blockNumber {
		x.blockNumber, x.block = n, x.blocks.find(n)
	}
	if id <= 0 || x.block == nil || x.block.m[id%blockSize].bits&bitExists == 0 {
		return nil
	}
	return &x.block.m[id%blockSize]
}

// messages is message for several at once, nil for those there are not. The processor fetches them at the same time: where
// they lie far apart, nearly all of the time goes into waiting for one after the other.
func (x *messageLookup) messages(ids []MessageID, out []*message) []*message {
	out = out[:0]
	for _, id := range ids {
		out = append(out, x.message(id))
	}
	return out
}

func (r *Realm) changeMessage(id MessageID) *message {
	b := r.blocks.change(int64(id) / blockSize)
	r.saveForSnapshot(b, id)
	return &b.m[id%blockSize]
}

// previousMessage is a message of a row as it was before, by its place there.
type previousMessage struct {
	position uint8
	m        message
}

// saveForSnapshot keeps what a message was that is about to change, for a snapshot that still has to write its row. To encode
// the whole row instead would hold up a command that changes thousands.
func (r *Realm) saveForSnapshot(b *messageBlock, id MessageID) {
	if n := int64(id) / blockSize; r.blocks.inSnapshot(n) {
		at := uint8(id % blockSize)
		if old := r.snapshotMessages[n]; !slices.ContainsFunc(old, func(o previousMessage) bool { return o.position == at }) {
			r.snapshotMessages[n] = append(old, previousMessage{at, b.m[at]})
		}
	}
}

// blockAtSnapshot is a row of messages as it was when the running snapshot began.
func (r *Realm) blockAtSnapshot(n int64, b *messageBlock) *messageBlock {
	old := r.snapshotMessages[n]
	if old == nil {
		return b
	}
	delete(r.snapshotMessages, n)
	was := *b
	for _, o := range old {
		was.m[o.position] = o.m
	}
	return &was
}

// extra is a message's further row for reading, or nil.
func (r *Realm) extra(id MessageID, m *message) *MessageExtra {
	if m.bits&bitExtra == 0 {
		return nil
	}
	return r.extras.must(id)
}

// origin is the channel a message was sent to, wherever it is now; 0 for direct messages.
func (r *Realm) origin(id MessageID, m *message) ChannelID {
	if m.bits&bitSentElsewhere != 0 { // asked of tens of thousands at once
		return r.extras.must(id).SentTo
	}
	return ChannelID(m.channel)
}

// changeExtra is a message's further row for changing; it comes to be when needed.
func (r *Realm) changeExtra(id MessageID) *MessageExtra {
	r.changeMessage(id).bits |= bitExtra
	e := r.extras.ensure(id)
	if e.Shared {
		e = e.unshared()
		r.extras.set(id, e)
	}
	return e
}

// Topic is the row of one spelling of a topic in one channel.
type Topic struct {
	Channel ChannelID
	Name    string
}

// topicSpelling is a topic's name, and what it is compared by.
type topicSpelling struct{ name, folded string }

// topicIndex is a topic as people see it: spellings that differ only in case are one.
type topicIndex struct {
	channel      uint32
	position     uint32 // where in the channel's list
	ids          ids.Set
	participants map[uint32]uint32 // how often each user sent or reacted, for topic wildcards and receipts; narrow, as there are very many
}

// DirectConversation is the row of a set of people who talk directly, themselves included, ascending.
type DirectConversation struct{ Members []UserID }

type conversationIndex struct{ ids ids.Set }

func conversationKey(members []UserID) string {
	b := make([]byte, 0, 4*len(members))
	for _, m := range members {
		b = binary.BigEndian.AppendUint32(b, uint32(m))
	}
	return string(b)
}

// FindDirectConversation is the conversation of exactly these people (ascending, the caller included), or 0.
func (r *Realm) FindDirectConversation(members []UserID) DirectConversationID {
	return r.index.conversationByMembers[conversationKey(members)]
}

// ClientName is the row of a client program's name.
type ClientName struct{ Name string }

// topicIDFor is the id of a spelling, or the next free one with made = true.
func (r *Realm) topicIDFor(c ChannelID, name string) (id TopicID, made bool) {
	if id, ok := r.index.topicIDs[c][name]; ok {
		return id, false
	}
	return r.Org().NextTopic, true
}

// countMessagesSince counts a channel's messages sent at or after a time, newest first.
func (r *Realm) countMessagesSince(c ChannelID, since int64) int {
	ids := r.index.channels[c].ids
	n := ids.Len()
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		if int64(r.message(MessageID(ids.At(mid))).time) < since {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return n - lo
}

// LastMessageID is the newest id given to a message, 0 before the first.
func (r *Realm) LastMessageID() MessageID { return r.Org().NextMessage - 1 }

// LastMessageInTopic is the newest message of a topic, compared without case.
func (r *Realm) LastMessageInTopic(c ChannelID, topic string) (MessageID, bool) {
	ix := r.index.channels[c]
	if ix == nil || ix.topics[fold(topic)] == nil {
		return 0, false
	}
	id, ok := ix.topics[fold(topic)].ids.Max()
	return MessageID(id), ok
}

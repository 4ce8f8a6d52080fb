package realm

import (
	"encoding/binary"
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// message is the part of a message that is always in memory: 24 bytes. The text is on disk and in a cache.
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
	bitExtra // has a row in extras
	// bitSentElsewhere: the message was sent to another channel than it is in, or has been moved there and back. Its
	// MessageExtra has SentTo. Rows written before this bit existed lack it: rebuildIndexes sets it.
	bitSentElsewhere
	// bitNoGroups: the text is known to mention no group. Rows written before mentionsLevel lack it.
	bitNoGroups
)

// blockSize is how many messages with consecutive ids share one row on disk.
const blockSize = 256

// messageBlock is the row of blockSize messages with consecutive ids.
type messageBlock struct{ m [blockSize]message }

// encodedMessageSize is the size of a message within a row, in bytes.
const encodedMessageSize = 22

// MarshalBinary encodes the block as encodedMessageSize bytes per message, up to the last one that exists. The
// channel and the direct conversation share one field: its lowest bit is set for a direct conversation.
func (b *messageBlock) MarshalBinary() ([]byte, error) {
	n := blockSize
	for n > 0 && b.m[n-1].bits == 0 {
		n--
	}
	out := make([]byte, 0, n*encodedMessageSize)
	for i := range b.m[:n] {
		out = appendMessage(out, &b.m[i])
	}
	return out, nil
}

// appendMessage appends the encodedMessageSize bytes of a message.
func appendMessage(out []byte, m *message) []byte {
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
	return append(out, 0, 0) // reserved for a further field
}

// UnmarshalBinary decodes a block, see MarshalBinary.
func (b *messageBlock) UnmarshalBinary(in []byte) error {
	if len(in)%encodedMessageSize != 0 || len(in) > blockSize*encodedMessageSize {
		return fmt.Errorf("message block of %d bytes", len(in))
	}
	for i := 0; len(in) > 0; i, in = i+1, in[encodedMessageSize:] {
		b.m[i] = decodeMessage(in)
	}
	return nil
}

// decodeMessage decodes a message that appendMessage has encoded.
func decodeMessage(in []byte) (m message) {
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
	return m
}

// MessageExtra is the row of everything a message has beside sender, conversation, time and bits. Most messages have
// none.
type MessageExtra struct {
	Version        uint16    // of the text; 0 is the first
	Edited         int64     // last edit of the content; 0: never
	Moved          int64     // last move to another topic or channel; 0: never
	SentTo         ChannelID // channel it was sent to, if it is in another one now
	Mentioned      []UserID  // by name, not silently; these four lists are ascending
	GroupMentioned []UserID  // members of mentioned groups when it was sent
	TopicMentioned []UserID  // participants mentioned by a topic wildcard
	Alerted        []UserID  // users with an alert word in the text
	Reactions      []Reaction
	Submessages    []Submessage
	History        []Revision // oldest first
	Attachments    []string
	Widget         string // poll, todo or zform
	Notice         string // kind of a message by the server itself, or ""
	// MentionedGroups are the groups that the text mentions. Rows written before mentionsLevel have none; see
	// storedMentions.
	MentionedGroups []GroupID

	// Shared: several messages have this row in memory, with nothing but their moves. A shared row never changes.
	Shared bool `msgpack:"-"`
}

// snapshotCopy returns a copy that later changes of the row do not affect. Its lists may be shared: they are only
// appended to or replaced.
func (e *MessageExtra) snapshotCopy() *MessageExtra {
	if e.Shared {
		return e
	}
	c := *e
	return &c
}

// unshared returns a copy of a shared row that may be changed.
func (e *MessageExtra) unshared() *MessageExtra {
	c := *e
	c.Shared, c.History = false, slices.Clip(c.History)
	return &c
}

// shareWith returns the row to keep for a loaded row: the row loaded before it, if both contain only moves and the
// same ones, else the loaded row. Moving a topic leaves very many equal rows.
func (e *MessageExtra) shareWith(before *MessageExtra) *MessageExtra {
	if before == nil || e.Moved != before.Moved || e.SentTo != before.SentTo ||
		!e.hasOnlyMoves() || !before.hasOnlyMoves() || !sameHistory(e.History, before.History) {
		return e
	}
	before.Shared = true
	return before
}

// hasOnlyMoves reports whether the row contains nothing but moves.
func (e *MessageExtra) hasOnlyMoves() bool {
	return e.Version == 0 && e.Edited == 0 &&
		len(e.Mentioned)+len(e.GroupMentioned)+len(e.TopicMentioned)+len(e.Alerted)+
			len(e.Reactions)+len(e.Submessages)+len(e.Attachments)+len(e.Widget)+len(e.Notice)+
			len(e.MentionedGroups) == 0
}

// Reaction is one emoji of one user on a message.
type Reaction struct {
	User UserID
	Name string
	Code string
	Type string // unicode_emoji, realm_emoji, zulip_extra_emoji
}

// Submessage is data that a widget stores with a message.
type Submessage struct {
	ID            int64
	Sender        UserID
	Type, Content string
}

// Revision is one entry of a message's edit history, with the values before the edit.
type Revision struct {
	User                        UserID
	At                          int64
	Content                     bool // the text changed; Version is the version before
	Version                     uint16
	TopicBefore, TopicAfter     *string
	ChannelBefore, ChannelAfter ChannelID // 0: the channel did not change
}

// sameHistory reports whether two histories are equal.
func sameHistory(a, b []Revision) bool {
	return slices.EqualFunc(a, b, func(v, w Revision) bool {
		if !equalText(v.TopicBefore, w.TopicBefore) || !equalText(v.TopicAfter, w.TopicAfter) {
			return false
		}
		w.TopicBefore, w.TopicAfter = v.TopicBefore, v.TopicAfter
		return v == w
	})
}

// equalText reports whether two optional texts are equal.
func equalText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// Body is a message's text and its rendering. Bodies are stored outside the realm, by BodyRef.
type Body struct{ Text, HTML string }

// maxEventTextBytes is the size of the largest text, in bytes with its HTML, that the events of a message hold in
// memory. Events of larger ones refer to the text on disk: clients that do not acknowledge them must not make every
// such text stay in memory. Usual messages are ten times smaller.
const maxEventTextBytes = 16 << 10

// forEvent returns the text for an event, or nil if the event refers to it: because it is large, or because it is
// not known after a replay of the journal.
func (b *Body) forEvent() *Body {
	if b.Text == "" || len(b.Text)+len(b.HTML) > maxEventTextBytes {
		return nil
	}
	return b
}

// BodyRef identifies one version of a message's text. A version is written once and never changes.
type BodyRef struct {
	Message MessageID
	Version uint16
}

// TextReader reads one version of a message's text. It returns false if the text is deleted.
type TextReader func(BodyRef) (Body, bool, error)

// message returns a message, or nil if it does not exist.
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

// messageLookup looks up many messages in ascending order. It looks up each block only once.
type messageLookup struct {
	*Realm
	blockNumber int64
	block       *messageBlock
}

// message returns a message, or nil if it does not exist.
func (x *messageLookup) message(id MessageID) *message {
	if n := int64(id) / blockSize; x.block == nil || n != x.blockNumber {
		x.blockNumber, x.block = n, x.blocks.find(n)
	}
	if id <= 0 || x.block == nil || x.block.m[id%blockSize].bits&bitExists == 0 {
		return nil
	}
	return &x.block.m[id%blockSize]
}

// messages appends the message of each id, nil if it does not exist, to out[:0]. For scattered ids nearly all time is
// spent waiting for memory; looking up several in a loop lets the processor fetch them at the same time.
func (x *messageLookup) messages(ids []MessageID, out []*message) []*message {
	out = out[:0]
	for _, id := range ids {
		out = append(out, x.message(id))
	}
	return out
}

// changeMessage returns a message that may be changed and marks its row. The message must exist.
func (r *Realm) changeMessage(id MessageID) *message {
	b := r.blocks.change(int64(id) / blockSize)
	r.saveForSnapshot(b, id)
	return &b.m[id%blockSize]
}

// previousMessage is a message as it was when the running snapshot began, with its position in the block.
type previousMessage struct {
	position uint8
	m        message
}

// saveForSnapshot keeps the present value of a message that is about to change, if the running snapshot has still to
// write its row. Encoding the whole row instead would delay a command that changes thousands of messages.
func (r *Realm) saveForSnapshot(b *messageBlock, id MessageID) {
	if n := int64(id) / blockSize; r.blocks.inSnapshot(n) {
		at := uint8(id % blockSize)
		old := r.snapshotMessages[n]
		if !slices.ContainsFunc(old, func(o previousMessage) bool { return o.position == at }) {
			r.snapshotMessages[n] = append(old, previousMessage{at, b.m[at]})
		}
	}
}

// blockAtSnapshot returns a block as it was when the running snapshot began.
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

// extra returns a message's MessageExtra for reading, or nil.
func (r *Realm) extra(id MessageID, m *message) *MessageExtra {
	if m.bits&bitExtra == 0 {
		return nil
	}
	return r.extras.must(id)
}

// origin returns the channel a message was sent to, wherever it is now; 0 for direct messages.
func (r *Realm) origin(id MessageID, m *message) ChannelID {
	if m.bits&bitSentElsewhere != 0 { // this function is called for tens of thousands of messages at once
		return r.extras.must(id).SentTo
	}
	return ChannelID(m.channel)
}

// changeExtra returns a message's MessageExtra for changing. It adds the row if there is none.
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

// topicSpelling is a topic's name and its folded form, by which names are compared.
type topicSpelling struct{ name, folded string }

// topicIndex is the index of a topic. Spellings that differ only in case are one topic.
type topicIndex struct {
	channel  uint32
	position uint32 // in the channel's topicList
	ids      ids.Set
	// participants counts the messages and reactions of each user, for topic wildcards and read receipts. The types are
	// narrow because there are very many entries.
	participants map[uint32]uint32
}

// DirectConversation is the row of a set of users with direct messages. Members are ascending.
type DirectConversation struct{ Members []UserID }

// conversationIndex is the index of a direct conversation.
type conversationIndex struct{ ids ids.Set }

// conversationKey returns the map key of a set of users (ascending).
func conversationKey(members []UserID) string {
	b := make([]byte, 0, 4*len(members))
	for _, m := range members {
		b = binary.BigEndian.AppendUint32(b, uint32(m))
	}
	return string(b)
}

// FindDirectConversation returns the direct conversation of exactly these users (ascending, the caller included), or
// 0.
func (r *Realm) FindDirectConversation(members []UserID) DirectConversationID {
	return r.index.conversationByMembers[conversationKey(members)]
}

// ClientName is the row of a client program's name.
type ClientName struct{ Name string }

// topicIDFor returns the id of a spelling. If it is new, made is true and the id is the next free one.
func (r *Realm) topicIDFor(c ChannelID, name string) (id TopicID, made bool) {
	if id, ok := r.index.topicIDs[c][name]; ok {
		return id, false
	}
	return r.Org().NextTopic, true
}

// countMessagesSince counts the messages in a channel that were sent at or after a time.
func (r *Realm) countMessagesSince(c ChannelID, since int64) int {
	sent := r.index.channels[c].ids
	n := sent.Len()
	lo, hi := 0, n
	for lo < hi {
		mid := (lo + hi) / 2
		if int64(r.message(MessageID(sent.At(mid))).time) < since {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return n - lo
}

// LastMessageID returns the newest id given to a message, 0 before the first.
func (r *Realm) LastMessageID() MessageID { return r.Org().NextMessage - 1 }

// LastMessageInTopic returns the newest message of a topic. The name is compared without case.
func (r *Realm) LastMessageInTopic(c ChannelID, topic string) (MessageID, bool) {
	ix := r.index.channels[c]
	if ix == nil || ix.topics[fold(topic)] == nil {
		return 0, false
	}
	id, ok := ix.topics[fold(topic)].ids.Max()
	return MessageID(id), ok
}

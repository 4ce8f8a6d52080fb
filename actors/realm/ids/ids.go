package ids

import "strconv"

// Ids are unique within their realm. An id from another realm looks nonexistent here, or identifies something else.
type (
	ID                   uint32
	UserID               int64
	GroupID              int64
	ChannelID            int64
	MessageID            int64
	TopicID              uint32 // exact spelling of a topic in one channel; 0: none
	DirectConversationID uint32 // set of users with direct messages; 0: none
	ClientID             uint16
	QueueID              string
	Seq                  uint64
)

// MaxMessageID is the largest id that a message may have. The protocol treats larger ids as nonexistent.
const MaxMessageID = 2147483647

// Recipient returns the recipient id of a channel in the protocol. Those of channels are odd, those of direct
// conversations even.
func (c ChannelID) Recipient() int64 { return int64(c)*2 + 1 }

func (u UserID) String() string    { return strconv.FormatInt(int64(u), 10) }
func (c ChannelID) String() string { return strconv.FormatInt(int64(c), 10) }
func (m MessageID) String() string { return strconv.FormatInt(int64(m), 10) }
func (g GroupID) String() string   { return strconv.FormatInt(int64(g), 10) }

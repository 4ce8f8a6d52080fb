package ids

import "strconv"

// Identifiers. Each is unique within its realm; a number of another realm looks nonexistent or names another thing.
type (
	ID                   uint32
	UserID               int64
	GroupID              int64
	ChannelID            int64
	MessageID            int64
	TopicID              uint32 // a topic's exact spelling in one channel; 0 is none
	DirectConversationID uint32 // a set of people who talk directly; 0 is none
	ClientID             uint16
	QueueID              string
	Seq                  uint64
)

// MaxMessageID is the largest id a message may have: the protocol treats larger ones as nonexistent.
const MaxMessageID = 2147483647

// Recipient is the id of a channel as a set of recipients; those of conversations are even.
func (c ChannelID) Recipient() int64 { return int64(c)*2 + 1 }

func (u UserID) String() string    { return strconv.FormatInt(int64(u), 10) }
func (c ChannelID) String() string { return strconv.FormatInt(int64(c), 10) }
func (m MessageID) String() string { return strconv.FormatInt(int64(m), 10) }
func (g GroupID) String() string   { return strconv.FormatInt(int64(g), 10) }

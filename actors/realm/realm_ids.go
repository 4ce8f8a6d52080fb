package realm

import "parley/actors/realm/ids"

// The id types of package ids, under the names that rules, facts and the packages around the realm use.
type (
	ID                   = ids.ID
	UserID               = ids.UserID
	GroupID              = ids.GroupID
	ChannelID            = ids.ChannelID
	MessageID            = ids.MessageID
	TopicID              = ids.TopicID
	DirectConversationID = ids.DirectConversationID
	ClientID             = ids.ClientID
	QueueID              = ids.QueueID
	Seq                  = ids.Seq
)

// MaxMessageID is the largest id that a message may have. The protocol treats larger ids as nonexistent.
const MaxMessageID = ids.MaxMessageID

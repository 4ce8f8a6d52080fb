package realm

import (
	"math"

	"parley/actors/realm/ids"
)

// Messages that moved from channel to channel store the channel to which they were sent: the users that were subscribed
// to that channel at that time received them.

// originPart is a set of messages that were sent to the same channel, wherever they are now.
type originPart struct {
	channel ChannelID
	ids     ids.Set
}

// messageOrigins groups messages by the channel to which they were sent. It returns at most limit channels, and
// the messages that are left.
func (r *Realm) messageOrigins(messages ids.Set, limit int) (out []originPart, rest ids.Set) {
	for rest = messages; !rest.Empty() && len(out) < limit; {
		first, _ := rest.Min()
		c := r.origin(MessageID(first), r.message(MessageID(first)))
		sent := r.index.channels[c].sent
		out = append(out, originPart{c, ids.Intersection(rest, sent)})
		rest = ids.Difference(rest, sent)
	}
	return out, rest
}

// hasRowIn returns a function that reports whether a user has a row of at least one of some messages of a channel. The
// work that is the same for all users is done once.
func (r *Realm) hasRowIn(messages ids.Set) func(UserID) bool {
	type originRecipients struct {
		originPart
		first ids.Set // users that received the first of the messages
	}
	var origins []originRecipients
	parts, _ := r.messageOrigins(messages, math.MaxInt)
	for _, part := range parts {
		first, _ := part.ids.Min()
		recipients := r.index.channels[part.channel].recipients(MessageID(first))
		origins = append(origins, originRecipients{part, recipients})
	}
	return func(u UserID) bool {
		marks := r.marks.find(u)
		if marks != nil && marks.Rows.Intersects(messages) {
			return true
		}
		lostNone := marks == nil || marks.Lost.Empty()
		for _, origin := range origins {
			if lostNone && origin.first.Has(int64(u)) {
				return true
			}
			if !r.index.channels[origin.channel].everSubscribed.Has(int64(u)) {
				continue
			}
			for _, span := range r.SubscriptionOf(u, origin.channel).Spans {
				received := span.messagesWithin(origin.ids)
				if !received.Empty() && (lostNone || !ids.Difference(received, marks.Lost).Empty()) {
					return true
				}
			}
		}
		return false
	}
}

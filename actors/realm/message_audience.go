package realm

import (
	"math"
	"slices"

	"parley/actors/realm/ids"
)

// messageAudience returns the connected users that receive events about a message after it was sent, such as reactions.
// They are the participants of a direct conversation, or the channel's subscribers. If the channel is public, users
// that received the message are included. If its history is protected, only users with a row of the message are.
func (r *Realm) messageAudience(id MessageID, m *message) []UserID {
	if m.channel == 0 {
		return r.usersAudience(r.conversations.must(m.conversation).Members...)
	}
	c := r.channels.must(ChannelID(m.channel))
	if c.Private && !r.hasProtectedHistory(c) {
		return r.subscribersAudience(c.ID)
	}
	return r.channelMessagesAudience(c, ids.SetOf(id))
}

// messageChangeAudience returns the audience of deletions, edits and moves of messages of a channel. It is
// channelMessagesAudience and, in web-public channels, guests that received one of the messages and are not subscribed.
func (r *Realm) messageChangeAudience(c *Channel, ids ids.Set) []UserID {
	to := r.channelMessagesAudience(c, ids)
	if !c.WebPublic {
		return to
	}
	subscribers, holds := r.index.channels[c.ID].subscribers, r.hasRowIn(ids)
	further := r.matchingAudience(func(u *User) bool {
		return u.IsGuest() && !subscribers.Has(int64(u.ID)) && holds(u.ID)
	})
	if len(further) == 0 {
		return to
	}
	return sortUnique(slices.Concat(to, further))
}

// channelMessagesAudience returns the connected users that are in the messageAudience of at least one of several
// messages of a channel.
func (r *Realm) channelMessagesAudience(c *Channel, idSet ids.Set) []UserID {
	heard := r.subscribersAudience(c.ID)
	if c.Private && !r.hasProtectedHistory(c) {
		return heard
	}
	holds := r.hasRowIn(idSet)
	if r.hasProtectedHistory(c) {
		return slices.DeleteFunc(slices.Clone(heard), func(u UserID) bool { return !holds(u) })
	}
	var further []UserID
	for _, u := range ids.IDs[UserID](ids.Difference(r.connectedUsers().members, r.index.channels[c.ID].subscribers)) {
		if holds(u) {
			further = append(further, u)
		}
	}
	if len(further) == 0 {
		return heard
	}
	return sortUnique(slices.Concat(heard, further))
}

// originPart is the messages, of some, that were sent to one channel, wherever they are now.
type originPart struct {
	channel ChannelID
	ids     ids.Set
}

// messageOrigins groups messages by the channel to which they were sent. It returns at most the given number of
// channels, and the messages that are left.
func (r *Realm) messageOrigins(idSet ids.Set, most int) (out []originPart, rest ids.Set) {
	for rest = idSet; !rest.Empty() && len(out) < most; {
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
func (r *Realm) hasRowIn(idSet ids.Set) func(UserID) bool {
	type sent struct {
		originPart
		all ids.Set // users that received the first message and, because they stayed subscribed, the others too
	}
	var all []sent
	parts, _ := r.messageOrigins(idSet, math.MaxInt)
	for _, x := range parts {
		first, _ := x.ids.Min()
		all = append(all, sent{x, r.index.channels[x.channel].recipients(MessageID(first))})
	}
	return func(u UserID) bool {
		rd := r.marks.find(u)
		if rd != nil && rd.Rows.Intersects(idSet) {
			return true
		}
		for _, x := range all {
			if (rd == nil || rd.Lost.Empty()) && x.all.Has(int64(u)) {
				return true
			}
			if !r.index.channels[x.channel].everSubscribed.Has(int64(u)) {
				continue
			}
			for _, p := range r.SubscriptionOf(u, x.channel).Spans {
				if part := p.messagesWithin(x.ids); !part.Empty() &&
					(rd == nil || rd.Lost.Empty() || !ids.Difference(part, rd.Lost).Empty()) {
					return true
				}
			}
		}
		return false
	}
}

// hasProtectedHistory reports whether messages of the channel can be read only by users that received them.
func (r *Realm) hasProtectedHistory(c *Channel) bool { return !c.History && !c.WebPublic }

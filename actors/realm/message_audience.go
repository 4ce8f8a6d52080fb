package realm

import (
	"math"
	"slices"

	"parley/actors/realm/ids"
)

// messageAudience is every listening user who hears of what happens to a message after it was sent: the participants of a
// conversation; a channel's subscribers; where everybody may read, also people who once received it. Where history is
// protected, only those of them who have a row.
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

// messageChangeAudience is hearers for deletion, edits and moves: with the guests who once received the messages of a channel that
// everybody may read, in it or not.
func (r *Realm) messageChangeAudience(c *Channel, ids ids.Set) []UserID {
	to := r.channelMessagesAudience(c, ids)
	if !c.WebPublic {
		return to
	}
	subscribers, holds := r.index.channels[c.ID].subscribers, r.hasRowIn(ids)
	further := r.matchingAudience(func(u *User) bool { return u.IsGuest() && !subscribers.Has(int64(u.ID)) && holds(u.ID) })
	if len(further) == 0 {
		return to
	}
	return sortUnique(slices.Concat(to, further))
}

// channelMessagesAudience is hearers for several messages of a channel: whoever hears of one of them.
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

// originPart is messages that were sent to a channel, wherever they are now.
type originPart struct {
	channel ChannelID
	ids     ids.Set
}

// messageOrigins is the channels to which messages of a channel were sent, at most so many, and which of the messages are left.
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

// hasRowIn tells of users whether they have a row of one of some messages of a channel. What can be settled once for all
// users is.
func (r *Realm) hasRowIn(idSet ids.Set) func(UserID) bool {
	type sent struct {
		originPart
		all ids.Set // who received the first of them and, as they came after it, the others
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
				if part := p.messagesWithin(x.ids); !part.Empty() && (rd == nil || rd.Lost.Empty() || !ids.Difference(part, rd.Lost).Empty()) {
					return true
				}
			}
		}
		return false
	}
}

// hasProtectedHistory reports whether a message of the channel is only for those who received it.
func (r *Realm) hasProtectedHistory(c *Channel) bool { return !c.History && !c.WebPublic }

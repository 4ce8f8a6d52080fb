package realm

import (
	"math"
	"slices"
)

// hearers is every listening user who hears of what happens to a message after it was sent: the participants of a
// conversation; a channel's subscribers; where everybody may read, also people who once received it. Where history is
// protected, only those of them who have a row.
func (r *Realm) hearers(id MessageID, m *message) []UserID {
	if m.channel == 0 {
		return r.only(r.talks.must(m.talk).Members...)
	}
	c := r.chans.must(ChannelID(m.channel))
	if c.Private && !r.protected(c) {
		return r.heard(c.ID)
	}
	return r.holders(c, SetOf(id))
}

// watchers is hearers for deletion, edits and moves: with the guests who once received the messages of a channel that
// everybody may read, in it or not.
func (r *Realm) watchers(c *Channel, ids Set) []UserID {
	to := r.holders(c, ids)
	if !c.WebPublic {
		return to
	}
	subscribers, holds := r.by.channel[c.ID].subscribers, r.holder(ids)
	further := r.where(func(u *User) bool { return u.IsGuest() && !subscribers.Has(int64(u.ID)) && holds(u.ID) })
	if len(further) == 0 {
		return to
	}
	return ascending(slices.Concat(to, further))
}

// holders is hearers for several messages of a channel: whoever hears of one of them.
func (r *Realm) holders(c *Channel, ids Set) []UserID {
	heard := r.heard(c.ID)
	if c.Private && !r.protected(c) {
		return heard
	}
	holds := r.holder(ids)
	if r.protected(c) {
		return slices.DeleteFunc(slices.Clone(heard), func(u UserID) bool { return !holds(u) })
	}
	var further []UserID
	for _, u := range IDs[UserID](Without(r.listeners().members, r.by.channel[c.ID].subscribers)) {
		if holds(u) {
			further = append(further, u)
		}
	}
	if len(further) == 0 {
		return heard
	}
	return ascending(slices.Concat(heard, further))
}

// sentTo is messages that were sent to a channel, wherever they are now.
type sentTo struct {
	channel ChannelID
	ids     Set
}

// origins is the channels to which messages of a channel were sent, at most so many, and which of the messages are left.
func (r *Realm) origins(ids Set, most int) (out []sentTo, rest Set) {
	for rest = ids; !rest.Empty() && len(out) < most; {
		first, _ := rest.Min()
		c := r.origin(MessageID(first), r.message(MessageID(first)))
		sent := r.by.channel[c].sent
		out = append(out, sentTo{c, Both(rest, sent)})
		rest = Without(rest, sent)
	}
	return out, rest
}

// holder tells of users whether they have a row of one of some messages of a channel. What can be settled once for all
// users is.
func (r *Realm) holder(ids Set) func(UserID) bool {
	type sent struct {
		sentTo
		all Set // who received the first of them and, as they came after it, the others
	}
	var all []sent
	parts, _ := r.origins(ids, math.MaxInt)
	for _, x := range parts {
		first, _ := x.ids.Min()
		all = append(all, sent{x, r.by.channel[x.channel].receivers(MessageID(first))})
	}
	return func(u UserID) bool {
		rd := r.reading.find(u)
		if rd != nil && rd.Rows.Meets(ids) {
			return true
		}
		for _, x := range all {
			if (rd == nil || rd.Lost.Empty()) && x.all.Has(int64(u)) {
				return true
			}
			if !r.by.channel[x.channel].ever.Has(int64(u)) {
				continue
			}
			for _, p := range r.SubscriptionOf(u, x.channel).Spans {
				if part := p.of(x.ids); !part.Empty() && (rd == nil || rd.Lost.Empty() || !Without(part, rd.Lost).Empty()) {
					return true
				}
			}
		}
		return false
	}
}

// protected reports whether a message of the channel is only for those who received it.
func (r *Realm) protected(c *Channel) bool { return !c.History && !c.WebPublic }

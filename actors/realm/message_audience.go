package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// sentMessageAudience returns the connected users that receive a new message. In a channel they are the subscribers,
// and users that are mentioned without being subscribed. Else they are the participants of the direct conversation.
func (r *Realm) sentMessageAudience(f *MessageSent) []UserID {
	if f.Channel == 0 {
		return r.usersAudience(f.People...)
	}
	audience := r.subscribersAudience(f.Channel)
	for _, u := range f.Mentioned {
		if !r.Subscribed(u, f.Channel) && r.index.usersWithQueues.Has(int64(u)) {
			audience = append(slices.Clone(audience), u)
			slices.Sort(audience)
		}
	}
	return audience
}

// allPublicAudience returns the members with a queue for all public channels that are not in the audience of a new
// message. It returns nil for messages that are not in a public channel.
func (r *Realm) allPublicAudience(f *MessageSent, audience []UserID) []UserID {
	if f.Channel == 0 || len(r.index.allPublicQueues) == 0 || r.channels.must(f.Channel).Private {
		return nil
	}
	var others []UserID
	for u := range r.index.allPublicQueues {
		if !r.users.must(u).IsGuest() && !containsSorted(audience, u) {
			others = append(others, u)
		}
	}
	slices.Sort(others)
	return others
}

// hiddenSenderAudience returns the users of an audience that are not allowed to see the sender of the message. They are
// guests, and only if the organization limits what guests see.
func (r *Realm) hiddenSenderAudience(audience []UserID, sender UserID) []UserID {
	if !r.GuestsLimited() {
		return nil
	}
	var out []UserID
	from := r.users.must(sender)
	for _, u := range audience {
		if !r.maySeeUser(r.users.must(u), from) {
			out = append(out, u)
		}
	}
	return out
}

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
func (r *Realm) messageChangeAudience(c *Channel, messages ids.Set) []UserID {
	audience := r.channelMessagesAudience(c, messages)
	if !c.WebPublic {
		return audience
	}
	subscribers, hasRow := r.index.channels[c.ID].subscribers, r.hasRowIn(messages)
	guests := r.matchingAudience(func(u *User) bool {
		return u.IsGuest() && !subscribers.Has(int64(u.ID)) && hasRow(u.ID)
	})
	if len(guests) == 0 {
		return audience
	}
	return sortUnique(slices.Concat(audience, guests))
}

// channelMessagesAudience returns the connected users that are in the messageAudience of at least one of several
// messages of a channel.
func (r *Realm) channelMessagesAudience(c *Channel, messages ids.Set) []UserID {
	subscribers := r.subscribersAudience(c.ID)
	if c.Private && !r.hasProtectedHistory(c) {
		return subscribers
	}
	hasRow := r.hasRowIn(messages)
	if r.hasProtectedHistory(c) {
		return slices.DeleteFunc(slices.Clone(subscribers), func(u UserID) bool { return !hasRow(u) })
	}
	var others []UserID
	for _, u := range ids.IDs[UserID](ids.Difference(r.connectedUsers().members, r.index.channels[c.ID].subscribers)) {
		if hasRow(u) {
			others = append(others, u)
		}
	}
	if len(others) == 0 {
		return subscribers
	}
	return sortUnique(slices.Concat(subscribers, others))
}

// deletionAudience returns the connected users that can see messages of one conversation, and the deleting user (0:
// none) if they can read them.
func (r *Realm) deletionAudience(c ChannelID, messages []MessageID, by UserID) []UserID {
	first := messages[0]
	var audience []UserID
	if c == 0 {
		audience = r.messageAudience(first, r.message(first))
	} else {
		audience = r.messageChangeAudience(r.channels.must(c), ids.SetOf(messages...))
	}
	if by != 0 && r.index.usersWithQueues.Has(int64(by)) && !containsSorted(audience, by) &&
		r.mayRead(r.users.must(by), first, r.message(first)) {
		audience = sortUnique(append(slices.Clone(audience), by))
	}
	return audience
}

// restoredAudience returns the connected users that may count restored messages as unread: subscribers of the channels
// and members of the direct conversations, ascending.
func (r *Realm) restoredAudience() []UserID {
	var out []UserID
	prior := r.priorState()
	prior.channels.Each(func(c int64) bool {
		out = append(out, r.subscribersAudience(ChannelID(c))...)
		return true
	})
	prior.conversations.Each(func(c int64) bool {
		out = append(out, r.usersAudience(r.conversations.must(DirectConversationID(c)).Members...)...)
		return true
	})
	return sortUnique(out)
}

// moveAudience returns the connected users that can see moved messages in their new place. Only users of one of the two
// channels are in it: subscribers, and users with a row of a message.
func (r *Realm) moveAudience(move *MessageMove) []UserID {
	to := r.channels.must(move.To)
	if move.From == move.To {
		return r.messageChangeAudience(to, move.IDs)
	}
	audience, hasRow := ids.SetOf(r.messageChangeAudience(to, move.IDs)...), r.hasRowIn(move.IDs)
	before := ids.Union(ids.SetOf(r.subscribersAudience(move.From)...),
		ids.SetOf(r.messageChangeAudience(r.channels.must(move.From), move.IDs)...))
	for _, u := range ids.IDs[UserID](ids.Difference(before, audience)) {
		if r.hasContentAccess(r.users.must(u), to) && (!r.hasProtectedHistory(to) || hasRow(u)) {
			audience.Add(int64(u))
		}
	}
	return ids.IDs[UserID](audience)
}

// hiddenMessagesAudience returns the connected users, of those that lose their rows of moved messages, that could see
// the messages until now. They get a deletion.
func (r *Realm) hiddenMessagesAudience(f *MessagesHidden) []UserID {
	c, hasRow := r.channels.must(f.Channel), r.hasRowIn(f.IDs)
	var audience []UserID
	for _, u := range r.usersAudience(f.Users...) {
		if r.hasContentAccess(r.users.must(u), c) && (!r.hasProtectedHistory(c) || hasRow(u)) {
			audience = append(audience, u)
		}
	}
	return audience
}

// typingAudience returns the users of an audience that want typing notifications.
func (r *Realm) typingAudience(audience []UserID) []UserID {
	return slices.DeleteFunc(slices.Clone(audience), func(u UserID) bool {
		return !r.users.must(u).BoolSetting("receives_typing_notifications")
	})
}

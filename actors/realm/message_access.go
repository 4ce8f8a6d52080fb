package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// MessageMarks is the row of one user's marks on messages. Most received messages follow from subscriptions and
// direct conversations; the marks are the exceptions, and the flags the user set.
type MessageMarks struct {
	Read      ids.Set
	Starred   ids.Set
	Collapsed ids.Set
	Rows      ids.Set // messages the user has a row of although not received: starred, reacted to, or added by a move
	Lost      ids.Set // received messages whose row was removed by a move
	Given     ids.Set // those of Rows that a move added: they are read, and not historical
	// Behind are the backlogs whose messages are read, too.
	Behind []int64
}

// hasRead reports whether the user with these marks (nil: none) has read a message.
func (r *Realm) hasRead(rd *MessageMarks, id int64) bool {
	if rd == nil {
		return false
	}
	inBacklog := func(b int64) bool { return r.small.backlogs.must(b).Messages.Has(id) }
	return rd.Read.Has(id) || slices.ContainsFunc(rd.Behind, inBacklog)
}

// readSet returns the messages that the user with these marks (nil: none) has read. It may also contain messages that
// the user has no row of. The caller must not change the set.
func (r *Realm) readSet(rd *MessageMarks) ids.Set {
	switch {
	case rd == nil:
		return ids.Set{}
	case len(rd.Behind) == 0:
		return rd.Read
	}
	sets := []ids.Set{rd.Read}
	for _, b := range rd.Behind {
		sets = append(sets, r.small.backlogs.must(b).Messages)
	}
	return ids.Union(sets...)
}

// hasRow reports whether a message is among a user's own messages: the user has flags for it and it counts as unread
// until read. In Zulip this is a UserMessage row.
func (r *Realm) hasRow(u UserID, id MessageID, m *message) bool {
	return r.hasRowWith(u, r.marks.find(u), id, m)
}

// hasRowWith is hasRow with the user's marks (nil: none), for callers that have looked them up.
func (r *Realm) hasRowWith(u UserID, rd *MessageMarks, id MessageID, m *message) bool {
	if rd != nil {
		if rd.Rows.Has(int64(id)) {
			return true
		}
		if rd.Lost.Has(int64(id)) {
			return false
		}
	}
	if m.channel == 0 {
		return r.inConversation(u, m.conversation)
	}
	s := r.SubscriptionOf(u, r.origin(id, m))
	return s != nil && s.covers(id)
}

// inConversation reports whether a user takes part in a direct conversation.
func (r *Realm) inConversation(u UserID, t DirectConversationID) bool {
	for _, m := range r.conversations.must(t).Members {
		if m == u {
			return true
		}
	}
	return false
}

// maxScanPerSource is a number of messages per channel of a user. Up to it, testing each message is faster than
// intersecting with the messages of all these channels.
const maxScanPerSource = 8

// rowsOf returns every message a user has a row of. The caller may change the set.
func (r *Realm) rowsOf(u UserID) ids.Set { return r.rowsWithin(u, nil) }

// rowsWithin returns the messages of within (nil: all messages) that a user has a row of. The caller may change the
// set.
func (r *Realm) rowsWithin(u UserID, within *ids.Set) ids.Set {
	if within != nil && within.Len() <= maxScanPerSource*r.countSources(u) {
		var received []MessageID
		near := messageLookup{Realm: r}
		within.Each(func(n int64) bool {
			if m := near.message(MessageID(n)); m != nil && r.hasRow(u, MessageID(n), m) {
				received = append(received, MessageID(n))
			}
			return true
		})
		return ids.SetOf(received...)
	}
	var sets []ids.Set
	r.eachRowSet(u, func(s ids.Set) bool {
		if within != nil {
			s = ids.Intersection(s, *within)
		}
		sets = append(sets, s)
		return true
	})
	all := ids.Union(sets...)
	if rd := r.marks.find(u); rd != nil && !rd.Lost.Empty() {
		all.Subtract(ids.Difference(rd.Lost, rd.Rows))
	}
	return all
}

// countSources returns from how many places a user has rows: channels with a subscription, and direct messages.
func (r *Realm) countSources(u UserID) int {
	n := 1
	if l := r.subscriptions.find(u); l != nil {
		n += len(l.List)
	}
	return n
}

// eachRowSet calls fn with sets whose union contains all messages a user has a row of, until fn returns false. The
// sets still contain messages in Lost. fn must not change them.
func (r *Realm) eachRowSet(u UserID, fn func(ids.Set) bool) {
	if l := r.subscriptions.find(u); l != nil {
		for _, s := range l.List {
			sent := r.index.channels[s.Channel].sent
			if sent.Empty() {
				continue
			}
			for _, p := range s.Spans {
				if !fn(p.messagesWithin(sent)) {
					return
				}
			}
		}
	}
	if !fn(findSet(r.index.directMessages, u)) {
		return
	}
	if rd := r.marks.find(u); rd != nil {
		fn(rd.Rows)
	}
}

// messagesWithin returns the messages within the span. The result may share the given set.
func (p Span) messagesWithin(messages ids.Set) ids.Set {
	to := int64(p.To)
	if to == 0 {
		if first, _ := messages.Min(); int64(p.From) <= first {
			return messages
		}
		to = MaxMessageID
	}
	return messages.Between(int64(p.From), to)
}

// mayRead decides whether a user may read a message. Direct messages: participants. Channel messages: users with
// content access, and where history is protected they also need a row of the message. u is nil for logged-out
// visitors.
func (r *Realm) mayRead(u *User, id MessageID, m *message) bool {
	if m.channel == 0 {
		return u != nil && r.inConversation(u.ID, m.conversation)
	}
	c := r.channels.must(ChannelID(m.channel))
	if !r.hasContentAccess(u, c) {
		return false
	}
	return c.History || c.WebPublic || u != nil && r.hasRow(u.ID, id, m)
}

// LatestReadableIn returns the newest message of a topic that the caller may read, or 0.
func (v View) LatestReadableIn(c *Channel, topic string) MessageID {
	ix := v.index.channels[c.ID].topics[fold(topic)]
	me := v.Me()
	if ix == nil || !v.System && !v.hasContentAccess(me, c) || !v.scope.HasTopic(c.ID, topic) {
		return 0
	}
	messages := ix.ids
	if !v.System && !c.History && !c.WebPublic {
		if me == nil {
			return 0
		}
		messages = v.rowsWithin(me.ID, &messages)
	}
	last, _ := messages.Max()
	return MessageID(last)
}

// ReadableMessage returns a message that the caller may read. Unknown and inaccessible messages get the same refusal.
func (v View) ReadableMessage(id MessageID) (MessageInfo, error) {
	m := v.message(id)
	if m == nil || !v.mayReadMessage(id, m) {
		return MessageInfo{}, errInvalidMessage()
	}
	return v.messageInfo(id, m), nil
}

// WritableMessage returns a message that the caller may read and add to (reactions, edits). The caller needs an
// account, and the message must not be in an archived channel.
func (v View) WritableMessage(id MessageID) (MessageInfo, error) {
	if v.Me() == nil {
		return MessageInfo{}, errNotMember()
	}
	i, err := v.ReadableMessage(id)
	if err == nil && i.Channel != 0 && v.channels.must(i.Channel).Archived {
		err = errInvalidMessage()
	}
	return i, err
}

// UserInfo is the part of a user that messages and events carry: enough to show name, address and avatar.
type UserInfo struct {
	ID            UserID
	Email         string // the real address; shown only if EmailPublic
	EmailPublic   bool
	Name          string
	Bot           bool
	Avatar        string
	AvatarFile    string
	AvatarVersion int
}

// UserInfo returns the info of an existing user.
func (r *Realm) UserInfo(id UserID) UserInfo {
	u := r.users.must(id)
	return UserInfo{ID: u.ID, Email: u.Email, EmailPublic: u.IsBot() || u.IntSetting("email_address_visibility") == 1,
		Name: u.Name, Bot: u.IsBot(),
		Avatar: u.Avatar, AvatarFile: u.AvatarFile, AvatarVersion: u.AvatarVersion}
}

// UserInfo returns the account as the caller may know it. Logged-out visitors do not see the address of a person.
func (v View) UserInfo(id UserID) UserInfo {
	p := v.Realm.UserInfo(id)
	if v.IsVisitor() {
		p.EmailPublic = p.Bot
	}
	return p
}

// MessageInfo is a message as events and answers carry it, without the flags of one reader.
type MessageInfo struct {
	ID          MessageID
	Sender      UserInfo
	Client      string
	Time        int64
	Channel     ChannelID // 0: direct
	ChannelName string
	Topic       string
	Talk        DirectConversationID
	People      []UserInfo // of a direct message: all participants by ascending id
	Me          bool
	Edited      int64
	Moved       int64
	Reactions   []Reaction
	Submessages []Submessage
	History     []Revision
	Ref         BodyRef
	Links       []TopicLink // in the topic's name, if computed
	Body        *Body       `msgpack:"-"` // set if known; otherwise read it by Ref
}

// messageInfo returns the info of a message. Keys that are limited to channels do not get the edit history: it names
// the channels and topics that the message was in.
func (v View) messageInfo(id MessageID, m *message) MessageInfo {
	i := v.Realm.messageInfo(id, m)
	if v.scope.Limited() {
		i.History = nil
	}
	return i
}

// messageInfo returns the info of a message. It copies the lists, so that it may be used after the view.
func (r *Realm) messageInfo(id MessageID, m *message) MessageInfo {
	return r.messageInfoWith(id, m, r.extra(id, m))
}

// messageInfoWith is messageInfo for a message whose extra may be elsewhere; nil: it has none.
func (r *Realm) messageInfoWith(id MessageID, m *message, e *MessageExtra) MessageInfo {
	i := MessageInfo{ID: id, Sender: r.UserInfo(UserID(m.sender)), Client: r.clients.must(m.client).Name,
		Time: int64(m.time), Me: m.bits&bitMeMessage != 0, Ref: BodyRef{Message: id}}
	if m.channel != 0 {
		i.Channel = ChannelID(m.channel)
		i.ChannelName = r.channels.must(i.Channel).Name
		i.Topic = r.topics.must(m.topic).Name
	} else {
		i.Talk = m.conversation
		for _, u := range r.conversations.must(m.conversation).Members {
			i.People = append(i.People, r.UserInfo(u))
		}
	}
	if e != nil {
		i.Edited, i.Moved, i.Ref.Version = e.Edited, e.Moved, e.Version
		i.Reactions = append([]Reaction(nil), e.Reactions...)
		i.Submessages = append([]Submessage(nil), e.Submessages...)
		i.History = append([]Revision(nil), e.History...)
	}
	return i
}

// Flags are the flags of a message for one reader, one bit each, in the protocol's order.
type Flags uint16

const (
	FlagRead Flags = 1 << iota
	FlagStarred
	FlagCollapsed
	FlagMentioned
	FlagChannelWildcard
	FlagTopicWildcard
	FlagAlert
	FlagHistorical
)

// FlagsOf returns the caller's flags of a message. Without a row, a message is read and historical.
func (v View) FlagsOf(id MessageID) Flags {
	if v.User == 0 {
		return FlagRead
	}
	return v.Realm.flagsOf(v.User, id, v.message(id))
}

// flagsOf returns a user's flags of a message. Without a row, a message is read and historical.
func (r *Realm) flagsOf(u UserID, id MessageID, m *message) Flags {
	rd := r.marks.find(u)
	if !r.hasRowWith(u, rd, id, m) {
		return FlagRead | FlagHistorical
	}
	return r.flagsOfReceived(u, rd, id, m)
}

// flagsOfReceived returns the flags of a message that a user has a row of. rd are the user's marks, nil if none.
func (r *Realm) flagsOfReceived(u UserID, rd *MessageMarks, id MessageID, m *message) Flags {
	var content Flags
	if e := r.extra(id, m); e != nil {
		content = e.mentionFlags(u)
	}
	return r.flagsWithMentions(u, rd, id, m, content)
}

// flagsWithMentions returns f, the flags that mentions set, with all other flags added. rd are the user's marks, nil
// if none.
func (r *Realm) flagsWithMentions(u UserID, rd *MessageMarks, id MessageID, m *message, f Flags) Flags {
	n, row := int64(id), false
	if rd != nil {
		if r.hasRead(rd, n) {
			f |= FlagRead
		}
		if rd.Starred.Has(n) {
			f |= FlagStarred
		}
		if rd.Collapsed.Has(n) {
			f |= FlagCollapsed
		}
		row = rd.Rows.Has(n)
	}
	if m.bits&bitChannelWildcard != 0 && !row {
		f |= FlagChannelWildcard
	}
	// A bot gets a row of a message that mentions it: such a message is not historical.
	if row && !rd.Given.Has(n) && (f&FlagMentioned == 0 || !r.users.must(u).IsBot()) {
		f |= FlagHistorical
	}
	return f
}

// mentionFlags returns the flags that mentions and alert words in the message set for a user.
func (e *MessageExtra) mentionFlags(u UserID) Flags {
	var f Flags
	if containsSorted(e.Mentioned, u) || containsSorted(e.GroupMentioned, u) {
		f |= FlagMentioned
	}
	if containsSorted(e.TopicMentioned, u) {
		f |= FlagTopicWildcard
	}
	if containsSorted(e.Alerted, u) {
		f |= FlagAlert
	}
	return f
}

// NewestReceived returns the newest message a user has a row of, or 0.
func (r *Realm) NewestReceived(u UserID) MessageID {
	var newest ids.Set // nearly all users have a row among these
	last := int64(r.LastMessageID())
	newest.AddRange(max(1, last-newUserHistory), last)
	if ids, _ := r.ViewAs(Caller{User: u}, r.index.clock).newestWithRows(newest, 1, newUserHistory); len(ids) > 0 {
		return ids[0]
	}
	id, _ := r.rowsOf(u).Max()
	return MessageID(id)
}

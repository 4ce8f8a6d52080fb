package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// MessageMarks is the row of one user's marks on messages. What was received follows from subscriptions and conversations;
// here stands only what the user, or somebody for him, changed.
type MessageMarks struct {
	Read      ids.Set
	Starred   ids.Set
	Collapsed ids.Set
	Rows      ids.Set // hasKey a row although not received: starred, reacted to, or given by a move
	Lost      ids.Set // received, but the row was taken away again by a move
	Given     ids.Set // of Rows, those a move gave: they are read, and not historical
	// Behind is the backlogs whose messages are read, too.
	Behind []int64
}

// hasRead reports whether the user whose marks these are, nil for none, hasKey read a message.
func (r *Realm) hasRead(rd *MessageMarks, id int64) bool {
	return rd != nil && (rd.Read.Has(id) || slices.ContainsFunc(rd.Behind, func(b int64) bool { return r.small.backlogs.must(b).Messages.Has(id) }))
}

// readSet is what the user whose marks these are, nil for none, has read, or more: also messages he has no row of. It must
// not be changed.
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

// hasRow reports whether a user has his own row of a message: flags, and a place in his unread counts.
func (r *Realm) hasRow(u UserID, id MessageID, m *message) bool {
	return r.hasRowWith(u, r.marks.find(u), id, m)
}

// hasRowWith is received for who has found the user's marks, nil for none.
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

func (r *Realm) inConversation(u UserID, t DirectConversationID) bool {
	for _, m := range r.conversations.must(t).Members {
		if m == u {
			return true
		}
	}
	return false
}

// maxScanPerSource is up to how many messages for each channel of somebody it takes less time to look at each of them than to
// compare them with all of the channel's.
const maxScanPerSource = 8

// rowsOf is every message a user has a row of. The set is the caller's own.
func (r *Realm) rowsOf(u UserID) ids.Set { return r.rowsWithin(u, nil) }

// rowsWithin is what of a set (nil: everything) a user has a row of. The set it returns is the caller's own.
func (r *Realm) rowsWithin(u UserID, within *ids.Set) ids.Set {
	if within != nil && within.Len() <= maxScanPerSource*r.countSources(u) {
		var idList []MessageID
		near := messageLookup{Realm: r}
		within.Each(func(n int64) bool {
			if m := near.message(MessageID(n)); m != nil && r.hasRow(u, MessageID(n), m) {
				idList = append(idList, MessageID(n))
			}
			return true
		})
		return ids.SetOf(idList...)
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

// countSources is in how many places a user has rows: channels, and direct messages.
func (r *Realm) countSources(u UserID) int {
	n := 1
	if l := r.subscriptions.find(u); l != nil {
		n += len(l.List)
	}
	return n
}

// eachRowSet calls fn with sets that together are what a user has a row of, as long as it returns true; what was taken
// away again is still in them. fn must not change them.
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

// messagesWithin is what messagesWithin some messages lies within the stretch; it may be the set itself.
func (p Span) messagesWithin(ids ids.Set) ids.Set {
	to := int64(p.To)
	if to == 0 {
		if first, _ := ids.Min(); int64(p.From) <= first {
			return ids
		}
		to = MaxMessageID
	}
	return ids.Between(int64(p.From), to)
}

// mayRead decides who may read a message: participants of a conversation; for channels whoever has the content, and
// where history is protected only those who also have a row.
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

// LatestReadableIn is the newest message of a topic that the caller may read, 0 for none.
func (v View) LatestReadableIn(c *Channel, topic string) MessageID {
	ix := v.index.channels[c.ID].topics[fold(topic)]
	me := v.Me()
	if ix == nil || !v.System && !v.hasContentAccess(me, c) {
		return 0
	}
	ids := ix.ids
	if !v.System && !c.History && !c.WebPublic {
		if me == nil {
			return 0
		}
		ids = v.rowsWithin(me.ID, &ids)
	}
	last, _ := ids.Max()
	return MessageID(last)
}

// ReadableMessage is a message the caller may read. Unknown and hidden ones are refused alike.
func (v View) ReadableMessage(id MessageID) (MessageInfo, error) {
	m := v.message(id)
	if m == nil || !v.System && !v.mayRead(v.Me(), id, m) {
		return MessageInfo{}, errInvalidMessage()
	}
	return v.Realm.messageInfo(id, m), nil
}

// WritableMessage is a message the caller may read, has an account to add something to it with, and whose conversation
// still goes on: not in an archived channel.
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

// UserInfo is a user as messages and events carry him: enough to show name, address and picture.
type UserInfo struct {
	ID            UserID
	Email         string // the real one; shown only where EmailPublic
	EmailPublic   bool
	Name          string
	Bot           bool
	Avatar        string
	AvatarFile    string
	AvatarVersion int
}

func (r *Realm) UserInfo(id UserID) UserInfo {
	u := r.users.must(id)
	return UserInfo{ID: u.ID, Email: u.Email, EmailPublic: u.IsBot() || u.IntSetting("email_address_visibility") == 1, Name: u.Name, Bot: u.IsBot(),
		Avatar: u.Avatar, AvatarFile: u.AvatarFile, AvatarVersion: u.AvatarVersion}
}

// MessageInfo is a message as clients are told of it, without the flags of one reader.
type MessageInfo struct {
	ID          MessageID
	Sender      UserInfo
	Client      string
	Time        int64
	Channel     ChannelID // 0: direct
	ChannelName string
	Topic       string
	Talk        DirectConversationID
	People      []UserInfo // of a direct message, all participants ascending
	Me          bool
	Edited      int64
	Moved       int64
	Reactions   []Reaction
	Submessages []Submessage
	History     []Revision
	Ref         BodyRef
	Links       []TopicLink // of the topic, when known
	Body        *Body       `msgpack:"-"` // joined when known; otherwise under Ref
}

func (r *Realm) messageInfo(id MessageID, m *message) MessageInfo {
	i := MessageInfo{ID: id, Sender: r.UserInfo(UserID(m.sender)), Client: r.clients.must(m.client).Name, Time: int64(m.time), Me: m.bits&bitMeMessage != 0, Ref: BodyRef{Message: id}}
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
	if e := r.extra(id, m); e != nil {
		i.Edited, i.Moved, i.Ref.Version = e.Edited, e.Moved, e.Version
		i.Reactions = append([]Reaction(nil), e.Reactions...)
		i.Submessages = append([]Submessage(nil), e.Submessages...)
		i.History = append([]Revision(nil), e.History...)
	}
	return i
}

// Flags of a message for one reader, a bit each, in the protocol's order.
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

// FlagsOf is a reader's flags of a message; someone without a row sees it as read and historical.
func (v View) FlagsOf(id MessageID) Flags {
	if v.User == 0 {
		return FlagRead
	}
	return v.Realm.flagsOf(v.User, id, v.message(id))
}

func (r *Realm) flagsOf(u UserID, id MessageID, m *message) Flags {
	rd := r.marks.find(u)
	if !r.hasRowWith(u, rd, id, m) {
		return FlagRead | FlagHistorical
	}
	return r.flagsOfReceived(u, rd, id, m)
}

// flagsOfReceived is the flags of a message that a user, whose marks are found, has received.
func (r *Realm) flagsOfReceived(u UserID, rd *MessageMarks, id MessageID, m *message) Flags {
	var content Flags
	if e := r.extra(id, m); e != nil {
		content = e.mentionFlags(u)
	}
	return r.flagsWithMentions(u, rd, id, m, content)
}

// flagsWithMentions is flagsAs for who knows what flags the message's own content gives the user.
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
	if row && !rd.Given.Has(n) && (f&FlagMentioned == 0 || !r.users.must(u).IsBot()) { // a bot's mention is what brought it the message
		f |= FlagHistorical
	}
	return f
}

// mentionFlags is the flags a message's own content gives a reader.
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

// NewestReceived is the newest message a user has a row of, 0 for none.
func (r *Realm) NewestReceived(u UserID) MessageID {
	var newest ids.Set // nearly everybody has one among these
	last := int64(r.LastMessageID())
	newest.AddRange(max(1, last-newUserHistory), last)
	if ids, _ := r.ViewAs(Caller{User: u}, r.index.clock).newestWithRows(newest, 1, newUserHistory); len(ids) > 0 {
		return ids[0]
	}
	id, _ := r.rowsOf(u).Max()
	return MessageID(id)
}

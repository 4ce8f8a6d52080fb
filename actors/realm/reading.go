package realm

import "slices"

// Reading is the row of one user's marks on messages. What was received follows from subscriptions and conversations;
// here stands only what the user, or somebody for him, changed.
type Reading struct {
	Read      Set
	Starred   Set
	Collapsed Set
	Rows      Set // has a row although not received: starred, reacted to, or given by a move
	Lost      Set // received, but the row was taken away again by a move
	Given     Set // of Rows, those a move gave: they are read, and not historical
	// Behind is the backlogs whose messages are read, too.
	Behind []int64
}

// hasRead reports whether the user whose marks these are, nil for none, has read a message.
func (r *Realm) hasRead(rd *Reading, id int64) bool {
	return rd != nil && (rd.Read.Has(id) || slices.ContainsFunc(rd.Behind, func(b int64) bool { return r.nouns.backlogs.must(b).Messages.Has(id) }))
}

// readOf is what the user whose marks these are, nil for none, has read, or more: also messages he has no row of. It must
// not be changed.
func (r *Realm) readOf(rd *Reading) Set {
	switch {
	case rd == nil:
		return Set{}
	case len(rd.Behind) == 0:
		return rd.Read
	}
	sets := []Set{rd.Read}
	for _, b := range rd.Behind {
		sets = append(sets, r.nouns.backlogs.must(b).Messages)
	}
	return Either(sets...)
}

// received reports whether a user has his own row of a message: flags, and a place in his unread counts.
func (r *Realm) received(u UserID, id MessageID, m *message) bool {
	return r.receivedAs(u, r.reading.find(u), id, m)
}

// receivedAs is received for who has found the user's marks, nil for none.
func (r *Realm) receivedAs(u UserID, rd *Reading, id MessageID, m *message) bool {
	if rd != nil {
		if rd.Rows.Has(int64(id)) {
			return true
		}
		if rd.Lost.Has(int64(id)) {
			return false
		}
	}
	if m.channel == 0 {
		return r.inTalk(u, m.talk)
	}
	s := r.SubscriptionOf(u, r.origin(id, m))
	return s != nil && s.covers(id)
}

func (r *Realm) inTalk(u UserID, t TalkID) bool {
	for _, m := range r.talks.must(t).Members {
		if m == u {
			return true
		}
	}
	return false
}

// fewForSource is up to how many messages for each channel of somebody it takes less time to look at each of them than to
// compare them with all of the channel's.
const fewForSource = 8

// rowsOf is every message a user has a row of. The set is the caller's own.
func (r *Realm) rowsOf(u UserID) Set { return r.rowsWithin(u, nil) }

// rowsWithin is what of a set (nil: everything) a user has a row of. The set it returns is the caller's own.
func (r *Realm) rowsWithin(u UserID, within *Set) Set {
	if within != nil && within.Len() <= fewForSource*r.sources(u) {
		var ids []MessageID
		near := neighbours{Realm: r}
		within.Each(func(n int64) bool {
			if m := near.message(MessageID(n)); m != nil && r.received(u, MessageID(n), m) {
				ids = append(ids, MessageID(n))
			}
			return true
		})
		return SetOf(ids...)
	}
	var sets []Set
	r.eachRows(u, func(s Set) bool {
		if within != nil {
			s = Both(s, *within)
		}
		sets = append(sets, s)
		return true
	})
	all := Either(sets...)
	if rd := r.reading.find(u); rd != nil && !rd.Lost.Empty() {
		all.Subtract(Without(rd.Lost, rd.Rows))
	}
	return all
}

// sources is in how many places a user has rows: channels, and direct messages.
func (r *Realm) sources(u UserID) int {
	n := 1
	if l := r.subs.find(u); l != nil {
		n += len(l.List)
	}
	return n
}

// eachRows calls fn with sets that together are what a user has a row of, as long as it returns true; what was taken
// away again is still in them. fn must not change them.
func (r *Realm) eachRows(u UserID, fn func(Set) bool) {
	if l := r.subs.find(u); l != nil {
		for _, s := range l.List {
			sent := r.by.channel[s.Channel].sent
			if sent.Empty() {
				continue
			}
			for _, p := range s.Spans {
				if !fn(p.of(sent)) {
					return
				}
			}
		}
	}
	if !fn(setIn(r.by.direct, u)) {
		return
	}
	if rd := r.reading.find(u); rd != nil {
		fn(rd.Rows)
	}
}

// of is what of some messages lies within the stretch; it may be the set itself.
func (p Span) of(ids Set) Set {
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
		return u != nil && r.inTalk(u.ID, m.talk)
	}
	c := r.chans.must(ChannelID(m.channel))
	if !r.hasContent(u, c) {
		return false
	}
	return c.History || c.WebPublic || u != nil && r.received(u.ID, id, m)
}

// LatestIn is the newest message of a topic that the caller may read, 0 for none.
func (v View) LatestIn(c *Channel, topic string) MessageID {
	ix := v.by.channel[c.ID].topics[fold(topic)]
	me := v.Me()
	if ix == nil || !v.System && !v.hasContent(me, c) {
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
		return MessageInfo{}, errMessage()
	}
	return v.Realm.messageInfo(id, m), nil
}

// WritableMessage is a message the caller may read, has an account to add something to it with, and whose conversation
// still goes on: not in an archived channel.
func (v View) WritableMessage(id MessageID) (MessageInfo, error) {
	if v.Me() == nil {
		return MessageInfo{}, errMember()
	}
	i, err := v.ReadableMessage(id)
	if err == nil && i.Channel != 0 && v.chans.must(i.Channel).Archived {
		err = errMessage()
	}
	return i, err
}

// PersonInfo is a user as messages and events carry him: enough to show name, address and picture.
type PersonInfo struct {
	ID            UserID
	Email         string // the real one; shown only where EmailPublic
	EmailPublic   bool
	Name          string
	Bot           bool
	Avatar        string
	AvatarFile    string
	AvatarVersion int
}

func (r *Realm) Person(id UserID) PersonInfo {
	u := r.users.must(id)
	return PersonInfo{ID: u.ID, Email: u.Email, EmailPublic: u.IsBot() || u.Int("email_address_visibility") == 1, Name: u.Name, Bot: u.IsBot(),
		Avatar: u.Avatar, AvatarFile: u.AvatarFile, AvatarVersion: u.AvatarVersion}
}

// MessageInfo is a message as clients are told of it, without the flags of one reader.
type MessageInfo struct {
	ID          MessageID
	Sender      PersonInfo
	Client      string
	Time        int64
	Channel     ChannelID // 0: direct
	ChannelName string
	Topic       string
	Talk        TalkID
	People      []PersonInfo // of a direct message, all participants ascending
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
	i := MessageInfo{ID: id, Sender: r.Person(UserID(m.sender)), Client: r.clients.must(m.client).Name, Time: int64(m.time), Me: m.bits&bitMe != 0, Ref: BodyRef{Message: id}}
	if m.channel != 0 {
		i.Channel = ChannelID(m.channel)
		i.ChannelName = r.chans.must(i.Channel).Name
		i.Topic = r.topics.must(m.topic).Name
	} else {
		i.Talk = m.talk
		for _, u := range r.talks.must(m.talk).Members {
			i.People = append(i.People, r.Person(u))
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
	rd := r.reading.find(u)
	if !r.receivedAs(u, rd, id, m) {
		return FlagRead | FlagHistorical
	}
	return r.flagsAs(u, rd, id, m)
}

// flagsAs is the flags of a message that a user, whose marks are found, has received.
func (r *Realm) flagsAs(u UserID, rd *Reading, id MessageID, m *message) Flags {
	var content Flags
	if e := r.extra(id, m); e != nil {
		content = e.mentions(u)
	}
	return r.flagsWith(u, rd, id, m, content)
}

// flagsWith is flagsAs for who knows what flags the message's own content gives the user.
func (r *Realm) flagsWith(u UserID, rd *Reading, id MessageID, m *message, f Flags) Flags {
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

// mentions is the flags a message's own content gives a reader.
func (e *MessageExtra) mentions(u UserID) Flags {
	var f Flags
	if contains(e.Mentioned, u) || contains(e.GroupMentioned, u) {
		f |= FlagMentioned
	}
	if contains(e.TopicMentioned, u) {
		f |= FlagTopicWildcard
	}
	if contains(e.Alerted, u) {
		f |= FlagAlert
	}
	return f
}

// NewestRow is the newest message a user has a row of, 0 for none.
func (r *Realm) NewestRow(u UserID) MessageID {
	var newest Set // nearly everybody has one among these
	last := int64(r.LastMessage())
	newest.AddRange(max(1, last-newcomerRows), last)
	if ids, _ := r.ViewAs(Caller{User: u}, r.by.clock).newestRows(newest, 1, newcomerRows); len(ids) > 0 {
		return ids[0]
	}
	id, _ := r.rowsOf(u).Max()
	return MessageID(id)
}

package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// MaxFlagged is the limit of messages in one change of flags by narrow (protocol). It is also the number of messages in
// one turn of a change that names more: it bounds the turn.
const MaxFlagged = 5000

// allFlags has the flags that clients may name. Users can change only those marked own.
var allFlags = []struct {
	name string
	flag Flags
	own  bool // users can change it
}{
	{name: "read", flag: FlagRead, own: true},
	{name: "starred", flag: FlagStarred, own: true},
	{name: "collapsed", flag: FlagCollapsed, own: true},
	{name: "mentioned", flag: FlagMentioned},
	{name: "stream_wildcard_mentioned", flag: FlagChannelWildcard},
	{name: "topic_wildcard_mentioned", flag: FlagTopicWildcard},
	{name: "group_mentioned"},
	{name: "force_expand"},
	{name: "force_collapse"},
	{name: "has_alert_word", flag: FlagAlert},
	{name: "historical", flag: FlagHistorical},
	{name: "is_private"},
	{name: "active_mobile_push_notification"},
}

// editableFlag returns the flag of that name, and refuses flags that users cannot change.
func editableFlag(name, op string) (Flags, error) {
	for _, f := range allFlags {
		if f.name == name {
			if !f.own {
				return 0, BadRequest("Flag not editable: '%s'", name)
			}
			if op != "add" && op != "remove" {
				return 0, BadRequest("Invalid message flag operation: '%s'", op)
			}
			return f.flag, nil
		}
	}
	return 0, BadRequest("Invalid flag: '%s'", name)
}

// Flag asks to add a flag to messages, or to remove it.
type Flag struct {
	Messages []MessageID
	Op, Flag string
	Checked  bool // MayFlag has allowed it: messages that the user cannot read any more are left out
}

// Flagged answers Flag and FlagNarrow.
type Flagged struct {
	Changed int
	// Ignored has the channels whose messages were not marked unread, ascending: archived ones, and those the caller is
	// not subscribed to.
	Ignored []ChannelID
}

func (c Flag) Decide(t *Turn) (Flagged, error) {
	me := t.Me()
	if me == nil {
		return Flagged{}, errNotLoggedIn()
	}
	flag, err := editableFlag(c.Flag, c.Op)
	if err != nil {
		return Flagged{}, err
	}
	messages, err := t.selectFlaggable(me, c.Messages, flag, c.Op == "add")
	if err != nil && !c.Checked {
		return Flagged{}, err
	}
	return t.recordFlags(me, messages, flag, c.Op == "add"), nil
}

// MayFlag returns the refusal that Flag would return. It is for changes of so many messages that they take several
// turns but must be refused as a whole.
func (v View) MayFlag(c Flag) error {
	me := v.Me()
	if me == nil {
		return errNotLoggedIn()
	}
	flag, err := editableFlag(c.Flag, c.Op)
	if add := c.Op == "add"; err == nil && needsAccess(flag, add) {
		_, err = v.selectFlaggable(me, c.Messages, flag, add)
	}
	return err
}

// flaggableMessages are messages whose flag the user can change.
type flaggableMessages struct {
	received        []MessageID        // messages of which the user has a row
	unreceived      []MessageID        // messages of which the user gets a row by the change
	skippedChannels map[ChannelID]bool // channels whose messages are not marked unread
}

// selectFlaggable selects the messages whose flag the user can change. Messages of which the user has no row are left
// out, but a change that needs access creates a row, also of messages from before the subscription. The error says that
// the user cannot read some messages and needs access to all; the selection is valid without them.
func (v View) selectFlaggable(me *User, ids []MessageID, flag Flags, add bool) (selected flaggableMessages, err error) {
	access := readerAccess{View: v, reader: me}
	access.load()
	lookup := messageLookup{Realm: v.Realm}
	var found []*message
	selected.received, selected.skippedChannels = make([]MessageID, 0, len(ids)), map[ChannelID]bool{}
	for chunk := range slices.Chunk(ids, 256) {
		found = lookup.messages(chunk, found)
		for i, id := range chunk {
			m := found[i]
			hasRow := m != nil && access.hasRow(id, m)
			switch {
			case !hasRow && needsAccess(flag, add) && (m == nil || !access.canRead(id, m)):
				err = errInvalidMessage()
			case m != nil && m.channel != 0 && flag == FlagRead && !add && !access.channel(m.channel).countsUnread:
				selected.skippedChannels[ChannelID(m.channel)] = true
			case hasRow:
				selected.received = append(selected.received, id)
			case needsAccess(flag, add):
				selected.unreceived = append(selected.unreceived, id)
			}
		}
	}
	return selected, err
}

// needsAccess reports whether a change of the flag is refused if the user cannot read all of the messages: starring,
// and marking messages as unread. Other changes leave such messages out (protocol).
func needsAccess(flag Flags, add bool) bool {
	return flag == FlagStarred && add || flag == FlagRead && !add
}

// recordFlags records the change of the flag. It leaves out messages that already have the wanted state.
func (t *Turn) recordFlags(me *User, selected flaggableMessages, flag Flags, add bool) Flagged {
	answer := Flagged{Ignored: []ChannelID{}}
	fact := &FlagsChanged{User: me.ID, Flag: flag, Add: add}
	flagged := t.flaggedMessages(me.ID, flag)
	fact.IDs, fact.Rows = ids.SetOf(selected.received...), ids.SetOf(selected.unreceived...)
	if add {
		fact.IDs = ids.Difference(fact.IDs, flagged)
	} else {
		fact.IDs.Intersect(flagged)
	}
	fact.IDs.Union(fact.Rows)
	for channel := range selected.skippedChannels {
		answer.Ignored = append(answer.Ignored, channel)
	}
	slices.Sort(answer.Ignored)
	if answer.Changed = fact.IDs.Len(); answer.Changed > 0 {
		t.Record(fact)
	}
	return answer
}

// flaggedMessages returns the messages that have one of the flags the user can change. The set is shared: read only.
func (r *Realm) flaggedMessages(u UserID, flag Flags) ids.Set {
	marks := r.marks.find(u)
	switch {
	case marks == nil:
	case flag == FlagRead:
		return r.readSet(marks)
	case flag == FlagStarred:
		return marks.Starred
	case flag == FlagCollapsed:
		return marks.Collapsed
	}
	return ids.Set{}
}

// FlagsChanged adds a user's flag to messages, or removes it.
type FlagsChanged struct {
	User UserID
	Flag Flags
	Add  bool
	IDs  ids.Set // only messages whose state changes
	Rows ids.Set // those of IDs of which the user had no row until now; the new rows count as read
}

func (f *FlagsChanged) apply(r *Realm) {
	marks := r.marks.ensure(f.User)
	if !f.Rows.Empty() {
		marks.Rows.Union(f.Rows)
		marks.Lost.Subtract(f.Rows)
		marks.Read.Union(f.Rows)
	}
	set := &marks.Read
	switch f.Flag {
	case FlagStarred:
		set = &marks.Starred
	case FlagCollapsed:
		set = &marks.Collapsed
	}
	if f.Add {
		set.Union(f.IDs)
		return
	}
	if f.Flag == FlagRead {
		r.dropBacklogs(marks, func(b *Backlog) bool {
			changes := b.Messages.Intersects(f.IDs)
			if changes {
				marks.Read.Union(b.Messages)
			}
			return changes
		})
	}
	set.Subtract(f.IDs)
}

func (f *FlagsChanged) notices(r *Realm) []Notice {
	to := r.usersAudience(f.User)
	if len(to) == 0 {
		return nil
	}
	e := &FlagsEvent{Flag: f.Flag, Add: f.Add, IDs: f.IDs}
	if f.Flag == FlagRead && !f.Add {
		r.addUnreadDetails(e, f.User)
	}
	return []Notice{{To: to, Event: e}}
}

// FlagsEvent is the event update_message_flags.
type FlagsEvent struct {
	Flag   Flags
	Add    bool
	All    bool // all messages are read now; IDs is empty
	IDs    ids.Set
	Unread []UnreadDetail // in events older than Places
	// For messages that became unread: their conversations (Places), the index into Places for each message in the
	// order of ids (At), and the messages that mention the user (Mentions). Tens of thousands of messages are possible,
	// in as many places as there are topics. Details expands them outside the realm.
	Places   []UnreadPlace
	At       []uint32
	Mentions ids.Set
}

// Details returns the data clients need about the messages that became unread, in the order of ids.
func (e *FlagsEvent) Details() []UnreadDetail {
	if len(e.Places) == 0 {
		return e.Unread
	}
	out := make([]UnreadDetail, 0, len(e.At))
	for i, id := range ids.IDs[MessageID](e.IDs) {
		p := &e.Places[e.At[i]]
		out = append(out, UnreadDetail{id, e.Mentions.Has(int64(id)), p.Channel, p.Topic, p.Unmuted, p.People})
	}
	return out
}

func (*FlagsEvent) EventType() string { return "update_message_flags" }

// UnreadDetail has the data a client needs to count a message as unread.
type UnreadDetail struct {
	ID        MessageID
	Mentioned bool
	Channel   ChannelID // 0: direct
	Topic     string
	Unmuted   bool     // not in a muted topic or channel
	People    []UserID // of a direct message: the other participants
}

// UnreadPlace is the part of UnreadDetail that is the same for a whole conversation.
type UnreadPlace struct {
	Channel ChannelID
	Topic   string
	Unmuted bool
	People  []UserID
}

// addUnreadDetails fills in the details of messages that became unread.
func (r *Realm) addUnreadDetails(e *FlagsEvent, u UserID) {
	e.At = make([]uint32, 0, e.IDs.Len())
	mutes := r.muteSettingsOf(u)
	rd := r.marks.find(u)
	topics, conversations := map[TopicID]uint32{}, map[DirectConversationID]uint32{} // index into Places
	near := messageLookup{Realm: r}
	e.IDs.Each(func(n int64) bool {
		id := MessageID(n)
		m := near.message(id)
		var at uint32
		var known bool
		if m.channel != 0 {
			if at, known = topics[m.topic]; !known {
				at = uint32(len(e.Places))
				p := UnreadPlace{Channel: ChannelID(m.channel), Topic: r.index.topicSpellings[m.topic].name}
				p.Unmuted = !mutes.isMuted(p.Channel, p.Topic)
				topics[m.topic], e.Places = at, append(e.Places, p)
			}
		} else if at, known = conversations[m.conversation]; !known {
			at = uint32(len(e.Places))
			conversations[m.conversation], e.Places = at, append(e.Places,
				UnreadPlace{Unmuted: true, People: excludeUsers(r.conversations.must(m.conversation).Members, u)})
		}
		e.At = append(e.At, at)
		if m.bits&(bitChannelWildcard|bitExtra) == 0 || !r.hasRowWith(u, rd, id, m) { // most messages mention no user
			return true
		}
		flags := r.flagsOfReceived(u, rd, id, m)
		if flags&FlagMentioned != 0 || e.Places[at].Unmuted && flags&(FlagChannelWildcard|FlagTopicWildcard) != 0 {
			e.Mentions.AppendSorted(n)
		}
		return true
	})
	e.Mentions.FinishAppending()
}

// FlagNarrow asks to add a flag to a range of messages in a narrow, or to remove it.
type FlagNarrow struct {
	Terms    []Term
	Hits     SearchHits
	Range    PageRange
	Op, Flag string
	// Page, if not nil, is the range. It was found before the turn, because the narrow needs the texts of messages.
	Page *Page
}

// FlaggedNarrow answers FlagNarrow.
type FlaggedNarrow struct {
	Flagged
	Page Page
}

func (c FlagNarrow) Decide(t *Turn) (FlaggedNarrow, error) {
	var a FlaggedNarrow
	me := t.Me()
	if me == nil {
		return a, errNotLoggedIn()
	}
	flag, err := editableFlag(c.Flag, c.Op)
	if err != nil {
		return a, err
	}
	if c.Page != nil {
		a.Page = *c.Page
	} else {
		n, err := t.Narrow(c.Terms, c.Hits)
		if err != nil {
			return a, err
		}
		a.Page = n.Page(t.ResolveAnchor(&n, c.Range.Anchor).ID(nil), c.Range.Bounded(), nil)
	}
	x, err := t.selectFlaggable(me, a.Page.IDs, flag, c.Op == "add")
	if err != nil {
		return FlaggedNarrow{}, err
	}
	a.Flagged = t.recordFlags(me, x, flag, c.Op == "add")
	return a, nil
}

// Bounded returns the range for a change of flags, reduced to MaxFlagged messages. The anchor "oldest" names
// the oldest message; "newest", and "first_unread" without unread messages, the newest one (protocol).
func (g PageRange) Bounded() PageRange {
	g.NameEnds = true
	if g.Before+g.After > MaxFlagged {
		g.Before = min(g.Before, max(MaxFlagged-g.After, MaxFlagged/2))
		g.After = min(g.After, MaxFlagged-g.Before)
	}
	return g
}

// ReadAll asks to mark all messages as read, ReadChannel those of a channel, and ReadTopic those of a topic.
type (
	ReadAll     struct{}
	ReadChannel struct{ Channel ChannelID }
	ReadTopic   struct {
		Channel ChannelID
		Topic   string
	}
)

func (ReadAll) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errNotLoggedIn()
	}
	if t.hasUnread(me.ID) {
		t.Record(&AllRead{me.ID, t.LastMessageID()})
	}
	return Done{}, nil
}

// hasUnread reports whether a user has any unread message.
func (r *Realm) hasUnread(u UserID) bool {
	var unread ids.Set
	unread.AddRange(1, int64(r.LastMessageID()))
	if rd := r.marks.find(u); rd != nil {
		unread.Subtract(r.readSet(rd))
		unread.Subtract(ids.Difference(rd.Lost, rd.Rows))
	}
	found := false
	r.eachRowSet(u, func(rows ids.Set) bool {
		found = rows.Intersects(unread)
		return !found
	})
	return found
}

// AllRead says that a user has read all messages up to Upto. It is one range, however many messages that are.
type AllRead struct {
	User UserID
	Upto MessageID
}

func (f *AllRead) apply(r *Realm) {
	rd := r.marks.ensure(f.User)
	rd.Read.AddRange(1, int64(f.Upto))
	r.dropBacklogs(rd, func(b *Backlog) bool {
		last, _ := b.Messages.Max()
		return last <= int64(f.Upto)
	})
}

func (f *AllRead) notices(r *Realm) []Notice {
	if to := r.usersAudience(f.User); len(to) > 0 {
		return []Notice{{To: to, Event: &FlagsEvent{Flag: FlagRead, Add: true, All: true}}}
	}
	return nil
}

func (c ReadChannel) Decide(t *Turn) (Done, error) {
	if t.Me() == nil {
		return Done{}, errNotLoggedIn()
	}
	ch, err := t.ReadableChannel(c.Channel)
	if err != nil {
		return Done{}, err
	}
	t.markRead(t.User, t.index.channels[ch.ID].ids)
	return Done{}, nil
}

func (c ReadTopic) Decide(t *Turn) (Done, error) {
	if t.Me() == nil {
		return Done{}, errNotLoggedIn()
	}
	ch, err := t.ReadableChannel(c.Channel)
	if err != nil {
		return Done{}, err
	}
	topic, err := NormalizeTopic(c.Topic)
	if err != nil {
		return Done{}, err
	}
	ix := t.index.channels[ch.ID].topics[fold(topic)]
	if ix == nil || !ch.History && !ch.WebPublic && t.rowsWithin(t.User, &ix.ids).Empty() {
		return Done{}, BadRequest("No such topic '%s'", c.Topic)
	}
	t.markRead(t.User, ix.ids)
	return Done{}, nil
}

// markRead records that a user has read the unread messages of a set.
func (t *Turn) markRead(u UserID, s ids.Set) {
	if ids := t.unreadWithin(u, s); !ids.Empty() {
		t.Record(&FlagsChanged{User: u, Flag: FlagRead, Add: true, IDs: ids})
	}
}

// unreadWithin returns the messages of a set of which the user has a row and that are unread. The caller may change the
// result.
func (r *Realm) unreadWithin(u UserID, s ids.Set) ids.Set {
	s = ids.Difference(s, r.readSet(r.marks.find(u)))
	return r.rowsWithin(u, &s)
}

package realm

import (
	"iter"
	"slices"

	"parley/actors/realm/ids"
)

// record records the facts of an edit that check has allowed. The order matters:
//
//  1. What depends on the topics and channels as they were is found out before the move is recorded: whether the whole
//     topic moves, whether the target topic exists, and the first message of each channel.
//  2. hideMovedMessages comes before the move. Users that cannot see the messages in their new place get a deletion,
//     and they must get it while they can still see the messages.
//  3. After the move come the events about first messages, the users' policies for the topic, and at last the messages
//     about the move: they are sent to topics that must already have their new state.
func (p *messageEdit) record(t *Turn) Edited {
	var answer Edited
	f := &MessageUpdated{Message: p.Message, User: p.me.ID, At: t.Now}
	if p.Content != nil {
		f.Content = t.contentEdit(p)
		answer.Detached = t.detachedUploads(p.me.ID, p.Message, p.Content.Content.Attachments)
	}
	if p.Topic == nil && p.Channel == 0 {
		t.Record(f)
		return answer
	}
	from := t.channels.must(p.info.Channel)
	if f.Content != nil && t.hasProtectedHistory(from) {
		// The users that can see the new text and the users that can see the moved messages may differ. So these are
		// two facts with their own audiences.
		t.Record(f)
		f = &MessageUpdated{Message: p.Message, User: p.me.ID, At: t.Now}
	}
	topic := p.topicAfter()
	m := &MessageMove{IDs: p.ids, From: from.ID, To: p.targetChannel.ID, FromTopic: p.info.Topic, TopicName: topic,
		TopicChanged: p.Topic != nil, Toggle: p.resolveToggle, Mode: p.Mode}
	m.Topic, m.NewTopic = t.topicIDFor(m.To, topic)
	if m.TopicChanged {
		m.Links = t.topicLinks(topic)
	} else {
		m.Spellings = t.otherSpellings(m)
	}
	present, target := t.index.channels[m.From].topics[fold(m.FromTopic)], t.index.channels[m.To].topics[fold(topic)]
	sameTopic := m.From == m.To && fold(m.FromTopic) == fold(topic) // only its spelling changes
	wholeTopic, targetIsNew := present.ids.Len() == p.ids.Len(), target == nil
	first := t.firstMessagesOf(m.From, m.To)
	if m.From != m.To {
		t.hideMovedMessages(m)
		// deactivated accounts too: they may be reactivated
		from, to := t.index.channels[m.From].subscribers, t.index.channels[m.To].subscribers
		m.Strangers, m.Job = ids.Difference(from, to), t.nextID("leaving")
		if t.hasProtectedHistory(p.targetChannel) {
			m.Give = ids.IDs[UserID](to)
		}
	}
	f.Move = m
	t.Record(f)
	t.recordFirstMessages(first)
	if wholeTopic && !sameTopic {
		t.moveTopicPolicies(m.From, m.FromTopic, m.To, m.TopicName, targetIsNew)
	}
	if p.resolveToggle {
		t.postResolveNotice(p.me, m)
		return answer
	}
	p.postMoveNotices(t, m, wholeTopic, wholeTopic && (targetIsNew || sameTopic))
	return answer
}

// contentEdit returns the change of the text. It resolves the mentions of the new text as for a message that is sent
// now, but only among users that have received the message.
func (t *Turn) contentEdit(p *messageEdit) *ContentEdit {
	content := p.Content.Content
	content.Attachments = t.visibleAttachments(p.me, content.Attachments)
	probe := &MessageSent{ID: p.Message, Sender: p.info.Sender.ID, Channel: p.info.Channel, TopicName: p.info.Topic,
		Content: content}
	for _, u := range p.info.People {
		probe.People = append(probe.People, u.ID)
	}
	m := t.message(p.Message)
	received := t.receivedFunc(p.Message, m)
	t.resolveMentions(probe, func(u UserID) bool { return received(u, t.marks.find(u)) })
	return &ContentEdit{
		Version:        p.info.Ref.Version + 1,
		Content:        content,
		Mentioned:      probe.Mentioned,
		GroupMentioned: probe.GroupMentioned,
		TopicMentioned: probe.TopicMentioned,
		Alerted:        probe.Alerted,
		Body:           p.Content.Body,
	}
}

// MessageUpdated changes a message's text, or moves messages, or both.
type MessageUpdated struct {
	Message MessageID
	User    UserID
	At      int64
	Content *ContentEdit
	Move    *MessageMove
}

// ContentEdit is a new text and the users that it mentions or alerts.
type ContentEdit struct {
	Version        uint16
	Content        ContentInfo
	Mentioned      []UserID
	GroupMentioned []UserID
	TopicMentioned []UserID
	Alerted        []UserID
	Rendering      bool // the text is the same and was only rendered again
	Body           Body `msgpack:"-"` // written as a text of its own in the same batch

	changedFiles []string `msgpack:"-"` // files that only one of the two texts uses
}

// MessageMove moves messages of one topic together to another topic or channel.
type MessageMove struct {
	IDs          ids.Set
	From, To     ChannelID
	FromTopic    string // as spelled in the message of the request
	Topic        TopicID
	TopicName    string
	NewTopic     bool // TopicName gets a new topic row
	TopicChanged bool
	Toggle       bool // the move only marks a topic as resolved; clients do not count it as a move
	Mode         string
	Links        []TopicLink
	// users that get a read row of every message: in the target channel they see only messages they have a row of
	Give      []UserID
	Strangers ids.Set // subscribers of the channel From that are not in To: the messages count as read for them,
	Job       int64   // by this leaving; see channel_leave.go
	Respelled bool    // in facts older than Spellings: not all messages had the spelling TopicName before
	Spellings []Spelling
}

// Spelling is the topic row of moved messages whose topic is spelled differently from the message of the request. They
// keep that spelling in the new channel.
type Spelling struct {
	From, To TopicID
	Name     string
	New      bool // To is a new topic row
}

// otherSpellings returns the spellings for a move that changes only the channel. Messages that are spelled like the
// message of the request need none.
func (t *Turn) otherSpellings(m *MessageMove) (out []Spelling) {
	seen, next := map[TopicID]bool{}, t.Org().NextTopic
	if m.NewTopic {
		next = m.Topic + 1
	}
	m.IDs.Each(func(id int64) bool {
		from := t.message(MessageID(id)).topic
		if seen[from] {
			return true
		}
		seen[from] = true
		name := t.topics.must(from).Name
		if name == m.TopicName {
			return true
		}
		s := Spelling{From: from, Name: name}
		if s.To, s.New = t.topicIDFor(m.To, name); s.New {
			s.To, next = next, next+1
		}
		out = append(out, s)
		return true
	})
	return out
}

func (*MessageUpdated) keepsMarkdownConfig() {}

// Bodies returns the text that is written with the fact.
func (f *MessageUpdated) Bodies() iter.Seq2[BodyRef, *Body] {
	return func(yield func(BodyRef, *Body) bool) {
		if f.Content != nil {
			yield(BodyRef{Message: f.Message, Version: f.Content.Version}, &f.Content.Body)
		}
	}
}

func (f *MessageUpdated) apply(r *Realm) {
	if f.Content != nil {
		f.Content.apply(r, f)
	}
	if f.Move != nil {
		f.Move.apply(r, f)
	}
}

func (c *ContentEdit) apply(r *Realm, f *MessageUpdated) {
	id := f.Message
	m := r.changeMessage(id)
	if c.Rendering {
		r.changeExtra(id).Version = c.Version
		return
	}
	r.unindexContent(id, m)
	e := r.changeExtra(id)
	c.changedFiles = symmetricDifference(e.Attachments, c.Content.Attachments)
	rev := Revision{User: f.User, At: f.At, Content: true, Version: e.Version}
	if f.Move != nil && f.Move.IDs.Has(int64(id)) {
		rev = f.Move.revision(r, m, rev)
	}
	e.History = append(e.History, rev)
	e.Version, e.Edited = c.Version, f.At
	e.Mentioned, e.GroupMentioned = c.Mentioned, c.GroupMentioned
	e.TopicMentioned, e.Alerted = c.TopicMentioned, c.Alerted
	e.Attachments = c.Content.Attachments
	m.bits = m.bits&(bitExists|bitExtra|bitSentElsewhere) | c.Content.bits()
	r.indexContent(id, m)
}

// symmetricDifference returns the strings that are in only one of two lists.
func symmetricDifference(a, b []string) (out []string) {
	for _, x := range [][2][]string{{a, b}, {b, a}} {
		for _, s := range x[0] {
			if !slices.Contains(x[1], s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// revision adds a move to an entry of a message's edit history.
func (v *MessageMove) revision(r *Realm, m *message, rev Revision) Revision {
	if v.TopicChanged {
		before, after := r.topics.must(m.topic).Name, v.TopicName
		rev.TopicBefore, rev.TopicAfter = &before, &after
	}
	if v.From != v.To {
		rev.ChannelBefore, rev.ChannelAfter = v.From, v.To
	}
	return rev
}

func (v *MessageMove) apply(r *Realm, f *MessageUpdated) {
	if v.NewTopic {
		r.addTopic(v.Topic, v.To, v.TopicName)
	}
	to := map[TopicID]TopicID{}
	for _, s := range v.Spellings {
		if s.New {
			r.addTopic(s.To, v.To, s.Name)
		}
		to[s.From] = s.To
	}
	for _, u := range v.Give {
		rd := r.marks.ensure(u)
		v.IDs.Each(func(n int64) bool {
			if id := MessageID(n); !r.hasRow(u, id, r.message(id)) {
				rd.Rows.Add(n)
				rd.Read.Add(n)
				rd.Given.Add(n)
			}
			return true
		})
	}
	r.startLeaving(v.Job, v.To, v.Strangers)
	r.moveInIndexes(v)
	before := map[TopicID]*string{} // one string per topic, shared by all its messages
	after := v.TopicName
	moved := func(e *MessageExtra, from TopicID) {
		rev := Revision{User: f.User, At: f.At}
		if v.TopicChanged {
			if before[from] == nil {
				name := r.topics.must(from).Name
				before[from] = &name
			}
			rev.TopicBefore, rev.TopicAfter = before[from], &after
		}
		if v.From != v.To {
			rev.ChannelBefore, rev.ChannelAfter = v.From, v.To
		}
		e.History = append(e.History, rev)
		v.markMoved(e, f)
	}
	rows := moveWriter{Realm: r, pageNumber: -1, addMove: moved, shared: map[sharedRowKey]*MessageExtra{}}
	v.IDs.Each(func(n int64) bool {
		id := MessageID(n)
		m := rows.message(id)
		if f.Content == nil || id != f.Message {
			rows.addRevision(id, m)
		} else {
			v.markMoved(r.changeExtra(id), f)
		}
		topic := v.Topic
		if v.From != v.To {
			m.channel, m.bits = uint32(v.To), m.bits|bitSentElsewhere
			if other := to[m.topic]; other != 0 {
				topic = other
			} else if !v.TopicChanged && !v.Respelled && r.topics.must(m.topic).Name != v.TopicName {
				topic = r.legacySpelling(v.To, r.topics.must(m.topic).Name, v.Topic)
			}
		}
		m.topic = topic
		return true
	})
	rows.flush()
}

// markMoved records when a message moved, and to which channel it was first sent.
func (v *MessageMove) markMoved(e *MessageExtra, f *MessageUpdated) {
	if !v.Toggle {
		e.Moved = f.At
	}
	if v.From != v.To && e.SentTo == 0 {
		e.SentTo = v.From
	}
}

// moveWriter does the work of changeMessage and changeExtra for thousands of messages in ascending order. It marks each
// block of messages once and writes the MessageExtra rows page by page. Messages whose row would only contain equal
// moves share one row. If they shared a row before the move, it is looked up once.
type moveWriter struct {
	*Realm
	addMove func(e *MessageExtra, from TopicID) // adds the move to the row of a message

	blockNumber int64
	block       *messageBlock

	pageNumber int // of the MessageExtra rows; -1: none yet
	oldPage    *page[MessageExtra]
	dirty      uint64 // bit per entry of rows: it must be written
	rows       [64]*MessageExtra
	shared     map[sharedRowKey]*MessageExtra
	lastKey    sharedRowKey
	lastRow    *MessageExtra // shared[lastKey]
}

// sharedRowKey has what messages that share a row after a move have in common: their row before it, and their topic.
type sharedRowKey struct {
	row  *MessageExtra // nil: they had none
	from TopicID
}

func (x *moveWriter) message(id MessageID) *message {
	if n := int64(id) / blockSize; x.block == nil || n != x.blockNumber {
		x.blockNumber, x.block = n, x.blocks.change(n)
	}
	x.saveForSnapshot(x.block, id)
	return &x.block.m[id%blockSize]
}

// addRevision adds the move to the row of a message. A shared row is changed once for all its messages.
func (x *moveWriter) addRevision(id MessageID, m *message) {
	number, mask := pageOf(int(id))
	if number != x.pageNumber {
		x.flush()
		x.pageNumber, x.oldPage = number, x.extras.pages[number]
	}
	if x.extras.snapshot.n > 0 {
		x.extras.markChanged(id)
	}
	var old *MessageExtra
	if m.bits&bitExtra != 0 {
		old = x.oldPage.rows[x.oldPage.position(mask)]
	}
	m.bits |= bitExtra
	x.dirty |= mask
	at := id & 63
	if old != nil && !old.Shared {
		x.addMove(old, m.topic)
		x.rows[at] = old
		return
	}
	if k := (sharedRowKey{old, m.topic}); x.lastRow == nil || k != x.lastKey {
		if x.lastKey, x.lastRow = k, x.shared[k]; x.lastRow == nil {
			x.lastRow = &MessageExtra{}
			if old != nil {
				x.lastRow = old.unshared()
			}
			x.addMove(x.lastRow, m.topic)
			x.lastRow.Shared = true
			x.shared[k] = x.lastRow
		}
	}
	x.rows[at] = x.lastRow
}

// flush writes the rows of the present page.
func (x *moveWriter) flush() {
	if x.dirty != 0 {
		x.extras.putPage(x.pageNumber, x.dirty, &x.rows)
		x.dirty = 0
	}
}

// moveInIndexes moves messages from the index of one topic to that of another, all at once. They all are in one topic.
func (r *Realm) moveInIndexes(v *MessageMove) {
	from, to := r.index.channels[v.From], r.index.channels[v.To]
	if v.From == v.To && fold(v.FromTopic) == fold(v.TopicName) {
		return
	}
	old, next := from.topics[fold(v.FromTopic)], to.topics[fold(v.TopicName)]
	fresh := next == nil
	if fresh {
		next = r.index.openTopic(v.To, fold(v.TopicName))
	}
	if v.From != v.To {
		from.ids.Subtract(v.IDs)
		to.ids.Union(v.IDs)
	}
	old.ids.Subtract(v.IDs)
	next.ids.Union(v.IDs)
	if fresh && old.ids.Empty() { // the whole topic moves, and its participants with it
		next.participants, old.participants = old.participants, next.participants
		r.index.closeTopic(v.From, fold(v.FromTopic))
		return
	}
	move := func(u UserID) {
		old.removeParticipation(u)
		next.participants[uint32(u)]++
	}
	v.IDs.Each(func(n int64) bool {
		m := r.message(MessageID(n))
		move(UserID(m.sender))
		if e := r.extra(MessageID(n), m); e != nil {
			for _, x := range e.Reactions {
				move(x.User)
			}
		}
		return true
	})
	if old.ids.Empty() {
		r.index.closeTopic(v.From, fold(v.FromTopic))
	}
}

// legacySpelling returns the topic row of a spelling in a channel, or otherwise if the channel has no such spelling. It
// is for facts that are older than Spellings.
func (r *Realm) legacySpelling(c ChannelID, name string, otherwise TopicID) TopicID {
	if id, ok := r.index.topicIDs[c][name]; ok {
		return id
	}
	return otherwise
}

func (f *MessageUpdated) tell(r *Realm) []Notice {
	out := f.updateNotices(r)
	if f.Content != nil {
		out = append(out, r.attachmentUseNotices(f.Content.changedFiles)...)
	}
	return out
}

func (f *MessageUpdated) updateNotices(r *Realm) []Notice {
	m := r.message(f.Message)
	e := &MessageUpdate{User: f.User, At: f.At, Message: f.Message, IDs: []MessageID{f.Message},
		Channel: ChannelID(m.channel)}
	var to []UserID
	switch {
	case f.Move != nil:
		to = r.moveAudience(f.Move)
	case m.channel != 0:
		to = r.messageChangeAudience(r.channels.must(ChannelID(m.channel)), ids.SetOf(f.Message))
	default:
		to = r.messageAudience(f.Message, m)
	}
	if c := f.Content; c != nil {
		x := r.extra(f.Message, m)
		e.Content, e.Version, e.Me = true, c.Version, m.bits&bitMeMessage != 0
		if !c.Rendering {
			e.OldVersion = x.History[len(x.History)-1].Version
		}
		if c.Body.Text != "" {
			e.Body = &c.Body
		}
	}
	if v := f.Move; v != nil {
		e.Moved, e.IDs, e.Channel, e.NewChannel, e.Mode = true, ids.IDs[MessageID](v.IDs), v.From, v.To, v.Mode
		e.OrigTopic, e.Topic, e.TopicChanged, e.Links = v.FromTopic, v.TopicName, v.TopicChanged || v.Respelled, v.Links
	}
	if e.Channel != 0 {
		e.ChannelName = r.channels.must(e.Channel).Name
	}
	if len(to) == 0 {
		return nil
	}
	if e.NewChannel == 0 || e.NewChannel == e.Channel {
		e.Flags = r.groupByFlags(to, f.Message, m)
		return []Notice{{To: to, Event: e}}
	}
	return r.movedNotices(e, to, f.Message, m)
}

// movedNotices returns the events of messages that moved to another channel. Users that can see the messages in the new
// channel but cannot see the old one get the event without the old channel's name.
func (r *Realm) movedNotices(e *MessageUpdate, to []UserID, id MessageID, m *message) (out []Notice) {
	know, all := r.channelAudienceSet(r.channels.must(e.Channel)), ids.SetOf(to...)
	nameless := *e
	nameless.ChannelName = ""
	for _, part := range []struct {
		to    ids.Set
		event *MessageUpdate
	}{{ids.Intersection(all, know), e}, {ids.Difference(all, know), &nameless}} {
		if ids := ids.IDs[UserID](part.to); len(ids) > 0 {
			part.event.Flags = r.groupByFlags(ids, id, m)
			out = append(out, Notice{To: ids, Event: part.event})
		}
	}
	return out
}

// FlagGroups is the flags of one message by user. Most users have the same flags, so it has one entry per combination.
type FlagGroups []struct {
	Flags Flags
	Users ids.Set
}

// Of returns the flags of a user.
func (g FlagGroups) Of(u UserID) Flags {
	for i := range g {
		if g[i].Users.Has(int64(u)) {
			return g[i].Flags
		}
	}
	return FlagRead
}

// groupByFlags sorts users, which ascend, by their flags of a message.
func (r *Realm) groupByFlags(to []UserID, id MessageID, m *message) FlagGroups {
	received := r.receivedFunc(id, m)
	var named, grouped, topic, alerted sortedCursor
	if e := r.extra(id, m); e != nil {
		named, grouped, topic, alerted = e.Mentioned, e.GroupMentioned, e.TopicMentioned, e.Alerted
	}
	var kinds []Flags // in the order of their first users
	var users [][]uint32
	last := 0
	for _, u := range to {
		rd := r.marks.find(u)
		f := FlagRead // events say "read" for a message of which the user has no row
		if received(u, rd) {
			var content Flags
			if byName, byGroup := named.has(u), grouped.has(u); byName || byGroup {
				content |= FlagMentioned
			}
			if topic.has(u) {
				content |= FlagTopicWildcard
			}
			if alerted.has(u) {
				content |= FlagAlert
			}
			f = r.flagsWithMentions(u, rd, id, m, content)
		}
		if last >= len(kinds) || kinds[last] != f {
			if last = slices.Index(kinds, f); last < 0 {
				last = len(kinds)
				kinds, users = append(kinds, f), append(users, nil)
			}
		}
		if users[last] == nil && len(kinds) == 1 { // the first group gets nearly all users
			users[last] = make([]uint32, 0, len(to))
		}
		users[last] = append(users[last], uint32(u))
	}
	g := make(FlagGroups, len(kinds))
	for i, f := range kinds {
		g[i].Flags, g[i].Users = f, ids.SetOfUnsorted(users[i])
	}
	return g
}

// MessageUpdate is the event of an edit or a move.
type MessageUpdate struct {
	User        UserID // 0: none, the text was only rendered again
	At          int64
	Message     MessageID
	IDs         []MessageID // ascending
	Channel     ChannelID   // the channel before the move; 0: direct
	ChannelName string
	Flags       FlagGroups

	Content             bool
	OldVersion, Version uint16
	Me                  bool

	Moved        bool
	NewChannel   ChannelID
	Mode         string
	OrigTopic    string
	Topic        string
	TopicChanged bool
	Links        []TopicLink

	Body *Body `msgpack:"-"` // the new text, if known; otherwise it is stored under Version
}

func (*MessageUpdate) EventType() string { return "update_message" }

// FlagsFor returns the flags that a user has of the message.
func (e *MessageUpdate) FlagsFor(u UserID) Flags { return e.Flags.Of(u) }

package realm

import (
	"iter"
	"slices"

	"parley/actors/realm/ids"
)

// record records what was checked.
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
		// Who may see the text need not be who may see what moves along: two facts, each with its own audience.
		t.Record(f)
		f = &MessageUpdated{Message: p.Message, User: p.me.ID, At: t.Now}
	}
	topic := p.info.Topic
	if p.Topic != nil {
		topic = p.newTopic
	}
	m := &MessageMove{IDs: p.ids, From: from.ID, To: p.targetChannel.ID, FromTopic: p.info.Topic, TopicName: topic, TopicChanged: p.Topic != nil, Toggle: p.resolveToggle, Mode: p.Mode}
	m.Topic, m.NewTopic = t.topicIDFor(m.To, topic)
	if m.TopicChanged {
		m.Links = t.topicLinks(topic)
	} else {
		m.Spellings = t.otherSpellings(m)
	}
	old, target := t.index.channels[m.From].topics[fold(m.FromTopic)], t.index.channels[m.To].topics[fold(topic)]
	same := m.From == m.To && fold(m.FromTopic) == fold(topic)
	whole, empty := old.ids.Len() == p.ids.Len(), target == nil
	first := t.firstMessagesOf(m.From, m.To)
	if m.From != m.To {
		t.hideMovedMessages(m)
		from, to := t.index.channels[m.From].subscribers, t.index.channels[m.To].subscribers // closed accounts too, which may be opened again
		m.Strangers, m.Job = ids.Difference(from, to), t.nextID("leaving")
		if t.hasProtectedHistory(p.targetChannel) {
			m.Give = ids.IDs[UserID](to)
		}
	}
	f.Move = m
	t.Record(f)
	t.recordFirstMessages(first)
	if whole && !same {
		t.moveTopicPolicies(m.From, m.FromTopic, m.To, m.TopicName, empty)
	}
	if p.resolveToggle {
		t.postResolveNotice(p.me, m)
		return answer
	}
	p.postMoveNotices(t, m, whole, whole && (empty || same))
	return answer
}

func (t *Turn) contentEdit(p *messageEdit) *ContentEdit {
	content := p.Content.Content
	content.Attachments = t.visibleAttachments(p.me, content.Attachments)
	probe := &MessageSent{ID: p.Message, Sender: p.info.Sender.ID, Channel: p.info.Channel, TopicName: p.info.Topic, Content: content}
	for _, u := range p.info.People {
		probe.People = append(probe.People, u.ID)
	}
	m := t.message(p.Message)
	received := t.receivedFunc(p.Message, m)
	t.resolveMentions(probe, func(u UserID) bool { return received(u, t.marks.find(u)) })
	return &ContentEdit{Version: p.info.Ref.Version + 1, Content: content, Mentioned: probe.Mentioned, GroupMentioned: probe.GroupMentioned,
		TopicMentioned: probe.TopicMentioned, Alerted: probe.Alerted, Body: p.Content.Body}
}

// MessageUpdated says a message's text changed, or messages moved, or both.
type MessageUpdated struct {
	Message MessageID
	User    UserID
	At      int64
	Content *ContentEdit
	Move    *MessageMove
}

// ContentEdit is a new text and whom it flags.
type ContentEdit struct {
	Version        uint16
	Content        ContentInfo
	Mentioned      []UserID
	GroupMentioned []UserID
	TopicMentioned []UserID
	Alerted        []UserID
	Rendering      bool // the text stays, it is only rendered anew
	Body           Body `msgpack:"-"` // written as a body of its own, in the same batch

	changedFiles []string `msgpack:"-"` // the files that only one of the two texts names
}

// MessageMove is messages that change their topic or channel together.
type MessageMove struct {
	IDs          ids.Set
	From, To     ChannelID
	FromTopic    string // as the asked-for message spells it
	Topic        TopicID
	TopicName    string
	NewTopic     bool // the spelling is new
	TopicChanged bool
	Toggle       bool // keySet a topic as resolved or not: no move in the eyes of the protocol
	Mode         string
	Links        []TopicLink
	Give         []UserID // get a read row of everything: the target shows each only what he has a row of
	Strangers    ids.Set  // receive the channel the messages come from, not the one they go to: there they count as read,
	Job          int64    // which this job marks them; see leaving.go
	Respelled    bool     // they were not all spelled as they are now: in facts of before Spellings were kept
	Spellings    []Spelling
}

// Spelling is where messages go that spell their topic otherwise than the asked-for message, and go on to.
type Spelling struct {
	From, To TopicID
	Name     string
	New      bool // nobody has spelled it so there
}

// otherSpellings is where the messages of a move go that changes no topic, as far as they are not spelled as the asked-for one.
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

// Bodies is the text written with the fact.
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
	e.Mentioned, e.GroupMentioned, e.TopicMentioned, e.Alerted = c.Mentioned, c.GroupMentioned, c.TopicMentioned, c.Alerted
	e.Attachments = c.Content.Attachments
	m.bits = m.bits&(bitExists|bitExtra|bitSentElsewhere) | c.Content.bits()
	r.indexContent(id, m)
}

// symmetricDifference is what only one of two lists has.
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

// revision adds a move to an entry of a message's history.
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
	before := map[TopicID]*string{} // a topic's name is kept once, not once a message
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

// markMoved notes when a message moved, and where it was sent.
func (v *MessageMove) markMoved(e *MessageExtra, f *MessageUpdated) {
	if !v.Toggle {
		e.Moved = f.At
	}
	if v.From != v.To && e.SentTo == 0 {
		e.SentTo = v.From
	}
}

// moveWriter is changeMessage and changeExtra for thousands of messages in order: a row of messages is marked once, further
// rows are put by pages, and messages of which nothing further is kept but where they have been share one row. Where they
// shared one before, it is looked at once.
type moveWriter struct {
	*Realm
	addMove func(e *MessageExtra, from TopicID) // adds the move to what is kept of a message

	blockNumber int64
	block       *messageBlock

	pageNumber int // of further rows; -1: none yet
	oldPage    *page[MessageExtra]
	dirty      uint64 // which of rows are to be put
	rows       [64]*MessageExtra
	shared     map[sharedRowKey]*MessageExtra
	lastKey    sharedRowKey
	lastRow    *MessageExtra // shared[last]
}

// sharedRowKey is what messages have in common that share a further row after a move: the one before it, and their topic.
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

// addRevision adds the move to what is kept of a message.
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

// flush puts the further rows of a page.
func (x *moveWriter) flush() {
	if x.dirty != 0 {
		x.extras.putPage(x.pageNumber, x.dirty, &x.rows)
		x.dirty = 0
	}
}

// moveInIndexes takes messages from one topic's indexes to another's, all at once: they all lie in one topic.
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
	if fresh && old.ids.Empty() { // the whole topic goes: who took part in it goes with it
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

// legacySpelling is the topic row of a spelling in a channel, or another one if nobody has legacySpelling it so there: for facts of
// before Spellings were kept.
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
	e := &MessageUpdate{User: f.User, At: f.At, Message: f.Message, IDs: []MessageID{f.Message}, Channel: ChannelID(m.channel)}
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

// movedNotices tells of messages that went to another channel. Who left the old one, if it is private, and sees the
// messages again where they are now is not told what it is called today.
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

// moveAudience is every listening user who may see, where they are now, messages that moved, and who was or is concerned
// by one of the two channels: subscribers, and people with a row.
func (r *Realm) moveAudience(v *MessageMove) []UserID {
	to := r.channels.must(v.To)
	if v.From == v.To {
		return r.messageChangeAudience(to, v.IDs)
	}
	audience, holds := ids.SetOf(r.messageChangeAudience(to, v.IDs)...), r.hasRowIn(v.IDs)
	was := ids.Union(ids.SetOf(r.subscribersAudience(v.From)...), ids.SetOf(r.messageChangeAudience(r.channels.must(v.From), v.IDs)...))
	for _, u := range ids.IDs[UserID](ids.Difference(was, audience)) {
		if r.hasContentAccess(r.users.must(u), to) && (!r.hasProtectedHistory(to) || holds(u)) {
			audience.Add(int64(u))
		}
	}
	return ids.IDs[UserID](audience)
}

// FlagGroups is who has which flags of one message: most people have the same.
type FlagGroups []struct {
	Flags Flags
	Users ids.Set
}

// Of is somebody's flags.
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
		f := FlagRead // events say so of what somebody has no row of
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
		if users[last] == nil && len(kinds) == 1 { // nearly all
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
	User        UserID // 0: nobody, the text is only rendered anew
	At          int64
	Message     MessageID
	IDs         []MessageID // sortUnique
	Channel     ChannelID   // where it was; 0: direct
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

	Body *Body `msgpack:"-"` // the new text when known; otherwise under its version
}

func (*MessageUpdate) EventType() string { return "update_message" }

// FlagsFor is the flags a reader has of the message.
func (e *MessageUpdate) FlagsFor(u UserID) Flags { return e.Flags.Of(u) }

package realm

import (
	"cmp"
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
//  3. After the move, the events about first messages are recorded, then the users' policies for the topic, and last
//     the messages about the move. These are sent to topics that must already have their new state. If only the
//     spelling of a whole topic changes, there are none: a message in "the old topic" would bring its spelling back.
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
		TopicChanged: p.Topic != nil, Toggle: p.resolveToggle, Mode: p.Mode, KeepMoves: MaxMovesInHistory}
	m.Topic, m.NewTopic = t.topicIDFor(m.To, topic)
	if m.TopicChanged {
		m.Links = t.topicLinks(topic)
	} else {
		m.Spellings = t.otherSpellings(m)
	}
	present, target := t.index.channels[m.From].topics[fold(m.FromTopic)], t.index.channels[m.To].topics[fold(topic)]
	sameTopic := m.From == m.To && fold(m.FromTopic) == fold(topic) // only its spelling changes
	wholeTopic, targetIsNew := present.ids.Len() == p.ids.Len(), target == nil
	if m.From != m.To {
		t.hideMovedMessages(m)
		// deactivated accounts too: they may be reactivated
		from, to := t.index.channels[m.From].subscribers, t.index.channels[m.To].subscribers
		m.Strangers, m.Job = ids.Difference(from, to), t.nextID("leaving")
		t.readMovingMessages(m)
		if t.hasProtectedHistory(p.targetChannel) {
			m.Give = ids.IDs[UserID](to)
		}
	}
	f.Move = m
	t.Record(f)
	if wholeTopic && sameTopic { // no message is in another place, so there is nothing to tell
		t.respellTopicPolicies(m.To, m.TopicName)
		return answer
	}
	if wholeTopic {
		t.moveTopicPolicies(m.From, m.FromTopic, m.To, m.TopicName, targetIsNew)
	}
	if p.resolveToggle {
		t.postResolveNotice(p.me, m)
		return answer
	}
	p.postMoveNotices(t, m, wholeTopic, wholeTopic && targetIsNew)
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
		Forgotten:      versionsToErase(t.extraOrEmpty(p.Message).History),
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
	// Forgotten are versions of the text that the edit history loses and that are erased. Each entry of the history
	// with one of them keeps only its move, if it has one.
	Forgotten []uint16
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
	// Give are users that get a row of every message, which counts as read: in the target channel they can see only
	// messages of which they have a row.
	Give []UserID
	// Strangers are subscribers of the channel From that are not subscribed to To, and that have not got the messages
	// marked read before the move. The job with the number Job does it; see channel_leave.go.
	Strangers ids.Set
	Job       int64
	Respelled bool // in facts older than Spellings: not all messages had the spelling TopicName before
	Spellings []Spelling
	KeepMoves int // how many moves the history of each message keeps; 0 in older facts: all
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
func (t *Turn) otherSpellings(move *MessageMove) (out []Spelling) {
	seen, next := map[TopicID]bool{}, t.Org().NextTopic
	if move.NewTopic {
		next = move.Topic + 1
	}
	move.IDs.Each(func(id int64) bool {
		from := t.message(MessageID(id)).topic
		if seen[from] {
			return true
		}
		seen[from] = true
		name := t.topics.must(from).Name
		if name == move.TopicName {
			return true
		}
		spelling := Spelling{From: from, Name: name}
		if spelling.To, spelling.New = t.topicIDFor(move.To, name); spelling.New {
			spelling.To, next = next, next+1
		}
		out = append(out, spelling)
		return true
	})
	return out
}

// Bodies returns the text that is written with the fact.
func (f *MessageUpdated) Bodies() iter.Seq2[BodyRef, *Body] {
	return func(yield func(BodyRef, *Body) bool) {
		if f.Content != nil {
			yield(BodyRef{Message: f.Message, Version: f.Content.Version}, &f.Content.Body)
		}
	}
}

// Erased returns the old texts that the edit history no longer shows.
func (f *MessageUpdated) Erased() []BodyRef {
	if f.Content == nil {
		return nil
	}
	var out []BodyRef
	for _, v := range f.Content.Forgotten {
		out = append(out, BodyRef{Message: f.Message, Version: v})
	}
	return out
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
	extra := r.changeExtra(id)
	r.savePriorState().files = symmetricDifference(extra.Attachments, c.Content.Attachments)
	revision := Revision{User: f.User, At: f.At, Content: true, Version: extra.Version}
	if f.Move != nil && f.Move.IDs.Has(int64(id)) {
		revision = f.Move.revision(r, m, revision)
	}
	extra.History = append(withoutTexts(extra.History, c.Forgotten), revision)
	if len(c.Forgotten) > 0 {
		if p := r.recordErasedTexts(droppedVersions, id); p.Since == 0 {
			p.Since = f.At
		}
	}
	extra.Version, extra.Edited = c.Version, f.At
	extra.Mentioned, extra.GroupMentioned = c.Mentioned, c.GroupMentioned
	extra.TopicMentioned, extra.Alerted = c.TopicMentioned, c.Alerted
	extra.Attachments, extra.MentionedGroups = c.Content.Attachments, r.groupsToStore(&c.Content)
	m.bits = m.bits&(bitExists|bitExtra|bitSentElsewhere) | r.textBits(&c.Content)
	r.indexContent(id, m)
}

// symmetricDifference returns the strings that are in only one of two lists.
func symmetricDifference(a, b []string) (out []string) {
	for _, pair := range [][2][]string{{a, b}, {b, a}} {
		for _, s := range pair[0] {
			if !slices.Contains(pair[1], s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// revision adds a move to an entry of a message's edit history.
func (move *MessageMove) revision(r *Realm, m *message, revision Revision) Revision {
	if move.TopicChanged {
		before, after := r.topics.must(m.topic).Name, move.TopicName
		revision.TopicBefore, revision.TopicAfter = &before, &after
	}
	if move.From != move.To {
		revision.ChannelBefore, revision.ChannelAfter = move.From, move.To
	}
	return revision
}

// apply moves the messages. Users get their rows before the messages move: whether a user already has a row depends on
// the channel in which the message is.
func (move *MessageMove) apply(r *Realm, f *MessageUpdated) {
	if move.NewTopic {
		r.addTopic(move.Topic, move.To, move.TopicName)
	}
	for _, spelling := range move.Spellings {
		if spelling.New {
			r.addTopic(spelling.To, move.To, spelling.Name)
		}
	}
	move.giveRows(r)
	r.startLeaving(move.Job, move.To, move.Strangers)
	r.moveInIndexes(move)
	move.moveRows(r, f)
}

// giveRows gives the users in Give a row of each message of which they have none. The new rows count as read.
func (move *MessageMove) giveRows(r *Realm) {
	for _, u := range move.Give {
		marks := r.marks.ensure(u)
		move.IDs.Each(func(id int64) bool {
			if !r.hasRow(u, MessageID(id), r.message(MessageID(id))) {
				marks.Rows.Add(id)
				marks.Read.Add(id)
				marks.Given.Add(id)
			}
			return true
		})
	}
}

// moveRows changes the rows of the messages: their channel, their topic and their edit history.
func (move *MessageMove) moveRows(r *Realm, f *MessageUpdated) {
	before := map[TopicID]*string{} // one string per topic, shared by all its messages
	after := move.TopicName
	addMove := func(extra *MessageExtra, from TopicID) {
		revision := Revision{User: f.User, At: f.At}
		if move.TopicChanged {
			if before[from] == nil {
				name := r.topics.must(from).Name
				before[from] = &name
			}
			revision.TopicBefore, revision.TopicAfter = before[from], &after
		}
		if move.From != move.To {
			revision.ChannelBefore, revision.ChannelAfter = move.From, move.To
		}
		extra.History = append(withSpaceForMove(extra.History, move.KeepMoves), revision)
		move.markMoved(extra, f)
	}
	writer := moveWriter{Realm: r, pageNumber: -1, addMove: addMove, shared: map[sharedRowKey]*MessageExtra{}}
	spellings := map[TopicID]TopicID{}
	for _, spelling := range move.Spellings {
		spellings[spelling.From] = spelling.To
	}
	move.IDs.Each(func(n int64) bool {
		id := MessageID(n)
		m := writer.message(id)
		if f.Content == nil || id != f.Message {
			writer.addRevision(id, m)
		} else { // ContentEdit has added the revision
			move.markMoved(r.changeExtra(id), f)
		}
		topic := move.Topic
		if move.From != move.To {
			m.channel, m.bits = uint32(move.To), m.bits|bitSentElsewhere
			if spelling := spellings[m.topic]; spelling != 0 {
				topic = spelling
			} else if !move.TopicChanged && !move.Respelled && r.topics.must(m.topic).Name != move.TopicName {
				topic = r.legacySpelling(move.To, r.topics.must(m.topic).Name, move.Topic)
			}
		}
		m.topic = topic
		return true
	})
	writer.flush()
}

// markMoved records when a message moved, and to which channel it was first sent.
func (move *MessageMove) markMoved(extra *MessageExtra, f *MessageUpdated) {
	if !move.Toggle {
		extra.Moved = f.At
	}
	if move.From != move.To && extra.SentTo == 0 {
		extra.SentTo = move.From
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

// message returns the row of a message to be changed. It saves the row for a running snapshot first.
func (w *moveWriter) message(id MessageID) *message {
	if number := int64(id) / blockSize; w.block == nil || number != w.blockNumber {
		w.blockNumber, w.block = number, w.blocks.change(number)
	}
	w.saveForSnapshot(w.block, id)
	return &w.block.m[id%blockSize]
}

// addRevision adds the move to the row of a message. A shared row is changed once for all its messages.
func (w *moveWriter) addRevision(id MessageID, m *message) {
	number, mask := pageOf(int(id))
	if number != w.pageNumber {
		w.flush()
		w.pageNumber, w.oldPage = number, w.extras.pages[number]
	}
	if w.extras.snapshot.n > 0 {
		w.extras.markChanged(id)
	}
	var old *MessageExtra
	if m.bits&bitExtra != 0 {
		old = w.oldPage.rows[w.oldPage.position(mask)]
	}
	m.bits |= bitExtra
	w.dirty |= mask
	position := id & 63
	if old != nil && !old.Shared {
		w.addMove(old, m.topic)
		w.rows[position] = old
		return
	}
	if key := (sharedRowKey{old, m.topic}); w.lastRow == nil || key != w.lastKey {
		if w.lastKey, w.lastRow = key, w.shared[key]; w.lastRow == nil {
			w.lastRow = &MessageExtra{}
			if old != nil {
				w.lastRow = old.unshared()
			}
			w.addMove(w.lastRow, m.topic)
			w.lastRow.Shared = true
			w.shared[key] = w.lastRow
		}
	}
	w.rows[position] = w.lastRow
}

// flush writes the rows of the present page.
func (w *moveWriter) flush() {
	if w.dirty != 0 {
		w.extras.putPage(w.pageNumber, w.dirty, &w.rows)
		w.dirty = 0
	}
}

// moveInIndexes moves messages from the index of one topic to that of another, all at once. They all are in one topic.
func (r *Realm) moveInIndexes(move *MessageMove) {
	fromChannel, toChannel := r.index.channels[move.From], r.index.channels[move.To]
	if move.From == move.To && fold(move.FromTopic) == fold(move.TopicName) {
		return
	}
	oldTopic, newTopic := fromChannel.topics[fold(move.FromTopic)], toChannel.topics[fold(move.TopicName)]
	isNew := newTopic == nil
	if isNew {
		newTopic = r.index.openTopic(move.To, fold(move.TopicName))
	}
	if move.From != move.To {
		fromChannel.ids.Subtract(move.IDs)
		toChannel.ids.Union(move.IDs)
		fromChannel.trafficDay, toChannel.trafficDay = 0, 0
	}
	oldTopic.ids.Subtract(move.IDs)
	newTopic.ids.Union(move.IDs)
	if isNew && oldTopic.ids.Empty() { // the whole topic moves, and its participants with it
		newTopic.participants, oldTopic.participants = oldTopic.participants, newTopic.participants
		r.index.closeTopic(move.From, fold(move.FromTopic))
		return
	}
	moveParticipant := func(u UserID) {
		oldTopic.removeParticipation(u)
		newTopic.participants[uint32(u)]++
	}
	move.IDs.Each(func(id int64) bool {
		m := r.message(MessageID(id))
		moveParticipant(UserID(m.sender))
		if extra := r.extra(MessageID(id), m); extra != nil {
			for _, reaction := range extra.Reactions {
				moveParticipant(reaction.User)
			}
		}
		return true
	})
	if oldTopic.ids.Empty() {
		r.index.closeTopic(move.From, fold(move.FromTopic))
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

func (f *MessageUpdated) notices(r *Realm) []Notice {
	out := f.updateNotices(r)
	if f.Content != nil {
		out = append(out, r.attachmentUseNotices(r.priorState().files)...)
	}
	return out
}

// updateNotices returns the event for the message's audience, with each user's flags.
func (f *MessageUpdated) updateNotices(r *Realm) []Notice {
	m := r.message(f.Message)
	e := &MessageUpdate{User: f.User, At: f.At, Message: f.Message, IDs: []MessageID{f.Message},
		Channel: ChannelID(m.channel)}
	var audience []UserID
	switch {
	case f.Move != nil:
		audience = r.moveAudience(f.Move)
	case m.channel != 0:
		audience = r.messageChangeAudience(r.channels.must(ChannelID(m.channel)), ids.SetOf(f.Message))
	default:
		audience = r.messageAudience(f.Message, m)
	}
	if content := f.Content; content != nil {
		extra := r.extra(f.Message, m)
		e.Content, e.Version, e.Me = true, content.Version, m.bits&bitMeMessage != 0
		if !content.Rendering {
			e.OldVersion = extra.History[len(extra.History)-1].Version
		}
		e.Body = content.Body.forEvent()
	}
	if move := f.Move; move != nil {
		e.Moved, e.IDs, e.Mode = true, ids.IDs[MessageID](move.IDs), move.Mode
		e.Channel, e.NewChannel = move.From, move.To
		e.OrigTopic, e.Topic, e.Links = move.FromTopic, move.TopicName, move.Links
		e.TopicChanged = move.TopicChanged || move.Respelled
	}
	if e.Channel != 0 {
		e.ChannelName = r.channels.must(e.Channel).Name
		if !e.Moved { // queues of scoped keys are limited to topics
			e.OrigTopic = r.topics.must(m.topic).Name
		}
	}
	if len(audience) == 0 {
		return nil
	}
	if e.NewChannel == 0 || e.NewChannel == e.Channel {
		e.Flags = r.groupByFlags(audience, f.Message, m, ids.Set{})
		return []Notice{{To: audience, Event: e}}
	}
	return r.movedNotices(e, audience, f.Message, m, f.Move.Strangers)
}

// movedNotices returns the events of messages that moved to another channel. Users that can see the messages in the new
// channel but cannot see the old one get the event without the old channel's name.
// For readers the message is read although a job has still to mark it.
func (r *Realm) movedNotices(
	e *MessageUpdate, to []UserID, id MessageID, m *message, readers ids.Set,
) (out []Notice) {
	canSee, audience := r.channelAudienceSet(r.channels.must(e.Channel)), ids.SetOf(to...)
	withoutName := *e
	withoutName.ChannelName = ""
	for _, part := range []struct {
		to    ids.Set
		event *MessageUpdate
	}{{ids.Intersection(audience, canSee), e}, {ids.Difference(audience, canSee), &withoutName}} {
		if ids := ids.IDs[UserID](part.to); len(ids) > 0 {
			part.event.Flags = r.groupByFlags(ids, id, m, readers)
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

// groupByFlags sorts users, which ascend, by their flags of a message. For readers the message counts as read.
func (r *Realm) groupByFlags(to []UserID, id MessageID, m *message, readers ids.Set) FlagGroups {
	received := r.receivedFunc(id, m)
	var named, grouped, topic, alerted sortedCursor
	if e := r.extra(id, m); e != nil {
		named, grouped, topic, alerted = e.Mentioned, e.GroupMentioned, e.TopicMentioned, e.Alerted
	}
	var combinations []Flags // in the order of their first users
	var users [][]uint32
	last := 0
	for _, u := range to {
		marks := r.marks.find(u)
		flags := FlagRead // events say "read" for a message of which the user has no row
		if received(u, marks) {
			var mentions Flags
			if byName, byGroup := named.has(u), grouped.has(u); byName || byGroup {
				mentions |= FlagMentioned
			}
			if topic.has(u) {
				mentions |= FlagTopicWildcard
			}
			if alerted.has(u) {
				mentions |= FlagAlert
			}
			flags = r.flagsWithMentions(u, marks, id, m, mentions)
			if readers.Has(int64(u)) {
				flags |= FlagRead
			}
		}
		if last >= len(combinations) || combinations[last] != flags {
			if last = slices.Index(combinations, flags); last < 0 {
				last = len(combinations)
				combinations, users = append(combinations, flags), append(users, nil)
			}
		}
		if users[last] == nil && len(combinations) == 1 { // the first group gets nearly all users
			users[last] = make([]uint32, 0, len(to))
		}
		users[last] = append(users[last], uint32(u))
	}
	groups := make(FlagGroups, len(combinations))
	for i, flags := range combinations {
		groups[i].Flags, groups[i].Users = flags, ids.SetOfUnsorted(users[i])
	}
	return groups
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
	OrigTopic    string // before the move; of an edit: the topic of the message
	Topic        string
	TopicChanged bool
	Links        []TopicLink

	Body *Body `msgpack:"-"` // the new text, if known; otherwise it is stored under Version
}

func (*MessageUpdate) EventType() string { return "update_message" }

// channelAfter returns the channel of the messages after the edit.
func (e *MessageUpdate) channelAfter() ChannelID { return cmp.Or(e.NewChannel, e.Channel) }

// FlagsFor returns the flags that a user has of the message.
func (e *MessageUpdate) FlagsFor(u UserID) Flags { return e.Flags.Of(u) }

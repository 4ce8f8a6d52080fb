package realm

import (
	"maps"
	"slices"

	"parley/actors/realm/ids"
)

// DeleteMessage asks to delete one message.
type DeleteMessage struct{ Message MessageID }

func (c DeleteMessage) Decide(t *Turn) (Done, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	if err := t.mayDeleteMessage(me, i); err != nil {
		return Done{}, err
	}
	t.deleteMessages([]MessageID{c.Message}, me.ID)
	return Done{}, nil
}

// mayDeleteMessage: anybody's messages with one right; one's own, or one's bot's, with another and for a time.
func (t *Turn) mayDeleteMessage(me *User, i MessageInfo) error {
	allows := func(right string) bool {
		return t.HasPermission(me, right) || i.Channel != 0 && t.channelAllows(me, t.channels.must(i.Channel), right)
	}
	if allows("can_delete_any_message_group") {
		return nil
	}
	if own := i.Sender.ID == me.ID || t.users.must(i.Sender.ID).BotOwner == me.ID; !own || !allows("can_delete_own_message_group") {
		return BadRequest("You don't have permission to delete this message")
	}
	if limit, ok := t.OrgSetting("message_content_delete_limit_seconds").(int64); ok && t.Now-i.Time > limit {
		return BadRequest("The time limit for deleting this message has passed")
	}
	return nil
}

// maxDeletedPerTurn is how many messages of a topic one turn deletes: every user who marked messages is looked at, a few
// milliseconds with 10,000 of them.
const maxDeletedPerTurn = 100

// DeleteTopic asks to delete a topic, newest messages first; one turn deletes some of them.
type DeleteTopic struct {
	Channel ChannelID
	Topic   string
}

// Decide answers the work that remains, 0 if there is none.
func (c DeleteTopic) Decide(t *Turn) (work int64, err error) {
	me := t.Me()
	if me == nil {
		return 0, errNotMember()
	}
	ch, err := t.ReadableChannel(c.Channel)
	if err != nil {
		return 0, err
	}
	if !me.IsAdmin() && !t.HasPermission(me, "can_delete_any_message_group") && !t.channelAllows(me, ch, "can_delete_any_message_group") {
		return 0, errNotAdmin()
	}
	if ch.Archived {
		return 0, errInvalidChannel()
	}
	topic := c.Topic
	if topic == EmptyTopicName {
		topic = ""
	}
	ix := t.index.channels[ch.ID].topics[fold(topic)]
	if ix == nil {
		return 0, nil
	}
	idSet := ix.ids
	if t.hasProtectedHistory(ch) {
		idSet = t.rowsWithin(me.ID, &idSet)
	}
	switch n := idSet.Len(); {
	case n == 0:
		return 0, nil
	case n <= maxDeletedPerTurn:
		t.deleteMessages(ids.IDs[MessageID](idSet), me.ID)
		return 0, nil
	}
	if err := t.checkJobLimit(); err != nil {
		return 0, err
	}
	work = t.startJob(Job{Kind: DeleteJob, Channels: []ChannelID{ch.ID}, Topic: topic, Rest: idSet.Clone()})
	t.stepJob(work) // there was little to check
	return work, nil
}

// deleteMessages records that messages of one conversation are gone, and the files that only they used; ids ascend.
func (t *Turn) deleteMessages(ids []MessageID, by UserID) {
	m := t.message(ids[0])
	var first firstMessageIDs
	if m.channel != 0 {
		first = t.firstMessagesOf(ChannelID(m.channel))
	}
	var parts [][]MessageID
	var files []string
	atOnce := maxHiddenPerFact
	if m.channel != 0 && t.hasProtectedHistory(t.channels.must(ChannelID(m.channel))) {
		atOnce = 1 // each has an audience of its own
	}
	for part := range slices.Chunk(ids, atOnce) {
		parts = append(parts, part)
	}
	slices.Reverse(parts) // newestIDs first
	for _, part := range parts {
		f := &MessagesDeleted{By: by}
		if m := t.message(part[0]); m.channel != 0 {
			f.Channel, f.Topic = ChannelID(m.channel), t.topics.must(m.topic).Name
		}
		for _, id := range part {
			f.IDs = append(f.IDs, id)
			f.Versions = append(f.Versions, t.extraOrEmpty(id).Version)
			files = append(files, t.extraOrEmpty(id).Attachments...)
		}
		t.recordWithVisibility(f)
	}
	t.deleteUnusedUploads(files)
	t.recordFirstMessages(first)
}

// deletionAudience is every listening user who could see the messages, and the one who deletes if he could.
func (r *Realm) deletionAudience(f *MessagesDeleted) []UserID {
	var to []UserID
	if f.Channel == 0 {
		to = r.messageAudience(f.IDs[0], r.message(f.IDs[0]))
	} else {
		to = r.messageChangeAudience(r.channels.must(f.Channel), ids.SetOf(f.IDs...))
	}
	if f.By != 0 && r.index.usersWithQueues.Has(int64(f.By)) && !containsSorted(to, f.By) && r.mayRead(r.users.must(f.By), f.IDs[0], r.message(f.IDs[0])) {
		to = sortUnique(append(slices.Clone(to), f.By))
	}
	return to
}

// MessagesDeleted says messages of one conversation are gone, and their texts with them.
type MessagesDeleted struct {
	IDs      []MessageID // sortUnique, at most 100
	Versions []uint16    // newestIDs version of each one's text
	Channel  ChannelID   // 0: direct
	Topic    string
	By       UserID

	// Settled by apply, before they are gone.
	audience []UserID     `msgpack:"-"` // who hears of it
	stars    removedStars `msgpack:"-"`
	files    []string     `msgpack:"-"` // the files they used
}

func (*MessagesDeleted) keepsMarkdownConfig() {}

// Erased is every version of the texts.
func (f *MessagesDeleted) Erased() []BodyRef {
	var out []BodyRef
	for i, id := range f.IDs {
		for v := range int(f.Versions[i]) + 1 {
			out = append(out, BodyRef{Message: id, Version: uint16(v)})
		}
	}
	return out
}

func (f *MessagesDeleted) apply(r *Realm) {
	f.audience = r.deletionAudience(f)
	gone := ids.SetOf(f.IDs...)
	for _, id := range f.IDs {
		m := r.changeMessage(id)
		r.unindexMessage(id, m)
		if m.bits&bitExtra != 0 {
			f.files = append(f.files, r.extras.must(id).Attachments...)
			r.extras.remove(id)
		}
		*m = message{}
	}
	for u, s := range r.small.shownNotifications.all() {
		if s.Messages.Intersects(gone) {
			r.small.staleNotifications[u] = struct{}{}
		}
	}
	for u, rd := range r.marks.all() {
		if !rd.Rows.Intersects(gone) && !rd.Starred.Intersects(gone) && !rd.Collapsed.Intersects(gone) && !rd.Lost.Intersects(gone) {
			continue
		}
		f.stars.add(r, u, gone, f.audience)
		rd = r.marks.change(u)
		for _, s := range []*ids.Set{&rd.Rows, &rd.Starred, &rd.Collapsed, &rd.Lost, &rd.Given} {
			s.Subtract(gone)
		}
	}
}

func (f *MessagesDeleted) tell(r *Realm) []Notice {
	var out []Notice
	if len(f.audience) > 0 {
		out = append(out, Notice{To: f.audience, Event: &MessagesVanished{IDs: f.IDs, Channel: f.Channel, Topic: f.Topic}})
	}
	return append(append(out, f.stars.tell()...), r.attachmentUseNotices(f.files)...)
}

// removedStars are messages that go away and had been starred by users who hear nothing of that, since they could not read
// them any more: they hear that the stars are gone.
type removedStars map[UserID]ids.Set

func (l *removedStars) add(r *Realm, u UserID, gone ids.Set, hear []UserID) {
	rd := r.marks.find(u)
	if rd == nil || !r.index.usersWithQueues.Has(int64(u)) || containsSorted(hear, u) {
		return
	}
	if stars := ids.Intersection(rd.Starred, gone); !stars.Empty() {
		if *l == nil {
			*l = removedStars{}
		}
		(*l)[u] = stars
	}
}

func (l removedStars) tell() (out []Notice) {
	for _, u := range slices.Sorted(maps.Keys(l)) {
		out = append(out, Notice{To: []UserID{u}, Event: &FlagsTold{Flag: FlagStarred, IDs: l[u]}})
	}
	return out
}

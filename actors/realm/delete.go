package realm

import (
	"maps"
	"slices"
)

// DeleteMessage asks to delete one message.
type DeleteMessage struct{ Message MessageID }

func (c DeleteMessage) Decide(t *Turn) (Done, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	if err := t.mayDelete(me, i); err != nil {
		return Done{}, err
	}
	t.deleteMessages([]MessageID{c.Message}, me.ID)
	return Done{}, nil
}

// mayDelete: anybody's messages with one right; one's own, or one's bot's, with another and for a time.
func (t *Turn) mayDelete(me *User, i MessageInfo) error {
	allows := func(right string) bool {
		return t.May(me, right) || i.Channel != 0 && t.channelAllows(me, t.chans.must(i.Channel), right)
	}
	if allows("can_delete_any_message_group") {
		return nil
	}
	if own := i.Sender.ID == me.ID || t.users.must(i.Sender.ID).BotOwner == me.ID; !own || !allows("can_delete_own_message_group") {
		return Bad("You don't have permission to delete this message")
	}
	if limit, ok := t.OrgSetting("message_content_delete_limit_seconds").(int64); ok && t.Now-i.Time > limit {
		return Bad("The time limit for deleting this message has passed")
	}
	return nil
}

// deletedAtOnce is how many messages of a topic one turn deletes: every user who marked messages is looked at, a few
// milliseconds with 10,000 of them.
const deletedAtOnce = 100

// DeleteTopic asks to delete a topic, newest messages first; one turn deletes some of them.
type DeleteTopic struct {
	Channel ChannelID
	Topic   string
}

// Decide answers the work that remains, 0 if there is none.
func (c DeleteTopic) Decide(t *Turn) (work int64, err error) {
	me := t.Me()
	if me == nil {
		return 0, errMember()
	}
	ch, err := t.ReadableChannel(c.Channel)
	if err != nil {
		return 0, err
	}
	if !me.IsAdmin() && !t.May(me, "can_delete_any_message_group") && !t.channelAllows(me, ch, "can_delete_any_message_group") {
		return 0, errAdmin()
	}
	if ch.Archived {
		return 0, errChannelID()
	}
	topic := c.Topic
	if topic == EmptyTopicName {
		topic = ""
	}
	ix := t.by.channel[ch.ID].topics[fold(topic)]
	if ix == nil {
		return 0, nil
	}
	ids := ix.ids
	if t.protected(ch) {
		ids = t.rowsWithin(me.ID, &ids)
	}
	switch n := ids.Len(); {
	case n == 0:
		return 0, nil
	case n <= deletedAtOnce:
		t.deleteMessages(IDs[MessageID](ids), me.ID)
		return 0, nil
	}
	if err := t.mayBegin(); err != nil {
		return 0, err
	}
	work = t.begin(Work{Kind: DeleteWork, Channels: []ChannelID{ch.ID}, Topic: topic, Rest: ids.Clone()})
	t.stepWork(work) // there was little to check
	return work, nil
}

// deleteMessages records that messages of one conversation are gone, and the files that only they used; ids ascend.
func (t *Turn) deleteMessages(ids []MessageID, by UserID) {
	m := t.message(ids[0])
	var first firsts
	if m.channel != 0 {
		first = t.firstMessages(ChannelID(m.channel))
	}
	var parts [][]MessageID
	var files []string
	atOnce := hiddenAtOnce
	if m.channel != 0 && t.protected(t.chans.must(ChannelID(m.channel))) {
		atOnce = 1 // each has an audience of its own
	}
	for part := range slices.Chunk(ids, atOnce) {
		parts = append(parts, part)
	}
	slices.Reverse(parts) // newest first
	for _, part := range parts {
		f := &MessagesDeleted{By: by}
		if m := t.message(part[0]); m.channel != 0 {
			f.Channel, f.Topic = ChannelID(m.channel), t.topics.must(m.topic).Name
		}
		for _, id := range part {
			f.IDs = append(f.IDs, id)
			f.Versions = append(f.Versions, t.extraOf(id).Version)
			files = append(files, t.extraOf(id).Attachments...)
		}
		t.Record(f)
	}
	t.deleteUnused(files)
	t.tellFirst(first)
}

// deleteHearers is every listening user who could see the messages, and the one who deletes if he could.
func (r *Realm) deleteHearers(f *MessagesDeleted) []UserID {
	var to []UserID
	if f.Channel == 0 {
		to = r.hearers(f.IDs[0], r.message(f.IDs[0]))
	} else {
		to = r.watchers(r.chans.must(f.Channel), SetOf(f.IDs...))
	}
	if f.By != 0 && r.by.listening.Has(int64(f.By)) && !contains(to, f.By) && r.mayRead(r.users.must(f.By), f.IDs[0], r.message(f.IDs[0])) {
		to = ascending(append(slices.Clone(to), f.By))
	}
	return to
}

// MessagesDeleted says messages of one conversation are gone, and their texts with them.
type MessagesDeleted struct {
	IDs      []MessageID // ascending, at most 100
	Versions []uint16    // newest version of each one's text
	Channel  ChannelID   // 0: direct
	Topic    string
	By       UserID

	// Settled by apply, before they are gone.
	to    []UserID  `msgpack:"-"` // who hears of it
	stars lostStars `msgpack:"-"`
	uses  []string  `msgpack:"-"` // the files they used
}

func (*MessagesDeleted) calm() {}

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
	f.to = r.deleteHearers(f)
	gone := SetOf(f.IDs...)
	for _, id := range f.IDs {
		m := r.changeMessage(id)
		r.unindexMessage(id, m)
		if m.bits&bitExtra != 0 {
			f.uses = append(f.uses, r.extras.must(id).Attachments...)
			r.extras.remove(id)
		}
		*m = message{}
	}
	for u, s := range r.nouns.shown.all() {
		if s.Messages.Meets(gone) {
			r.nouns.reread[u] = struct{}{}
		}
	}
	for u, rd := range r.reading.all() {
		if !rd.Rows.Meets(gone) && !rd.Starred.Meets(gone) && !rd.Collapsed.Meets(gone) && !rd.Lost.Meets(gone) {
			continue
		}
		f.stars.add(r, u, gone, f.to)
		rd = r.reading.change(u)
		for _, s := range []*Set{&rd.Rows, &rd.Starred, &rd.Collapsed, &rd.Lost, &rd.Given} {
			s.Subtract(gone)
		}
	}
}

func (f *MessagesDeleted) tell(r *Realm) []Notice {
	var out []Notice
	if len(f.to) > 0 {
		out = append(out, Notice{To: f.to, Event: &MessagesGone{IDs: f.IDs, Channel: f.Channel, Topic: f.Topic}})
	}
	return append(append(out, f.stars.tell()...), r.tellUses(f.uses)...)
}

// lostStars are messages that go away and had been starred by users who hear nothing of that, since they could not read
// them any more: they hear that the stars are gone.
type lostStars map[UserID]Set

func (l *lostStars) add(r *Realm, u UserID, gone Set, hear []UserID) {
	rd := r.reading.find(u)
	if rd == nil || !r.by.listening.Has(int64(u)) || contains(hear, u) {
		return
	}
	if stars := Both(rd.Starred, gone); !stars.Empty() {
		if *l == nil {
			*l = lostStars{}
		}
		(*l)[u] = stars
	}
}

func (l lostStars) tell() (out []Notice) {
	for _, u := range slices.Sorted(maps.Keys(l)) {
		out = append(out, Notice{To: []UserID{u}, Event: &FlagsTold{Flag: FlagStarred, IDs: l[u]}})
	}
	return out
}

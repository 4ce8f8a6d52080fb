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
	info, err := t.WritableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	if err := t.mayDeleteMessage(me, info); err != nil {
		return Done{}, err
	}
	t.deleteMessages([]MessageID{c.Message}, DeletedByUser, me.ID)
	return Done{}, nil
}

// mayDeleteMessage refuses users that are not allowed to delete a message. One permission is for all messages. Another
// is for one's own messages and those of one's bots, within a time limit.
func (t *Turn) mayDeleteMessage(me *User, info MessageInfo) error {
	allows := func(permission string) bool {
		return t.HasPermission(me, permission) || info.Channel != 0 &&
			t.channelAllows(me, t.channels.must(info.Channel), permission)
	}
	if allows("can_delete_any_message_group") {
		return nil
	}
	own := info.Sender.ID == me.ID || t.users.must(info.Sender.ID).BotOwner == me.ID
	if !own || !allows("can_delete_own_message_group") {
		return BadRequest("You don't have permission to delete this message")
	}
	if limit, ok := t.OrgSetting("message_content_delete_limit_seconds").(int64); ok && t.Now-info.Time > limit {
		return BadRequest("The time limit for deleting this message has passed")
	}
	return nil
}

// maxDeletedPerTurn is the number of messages of a topic that one turn deletes. For each turn every user's reading
// state is checked: a few milliseconds for 10,000 users.
const maxDeletedPerTurn = 100

// mayDeleteTopics reports whether u may delete whole topics of a channel that u can read.
func (r *Realm) mayDeleteTopics(u *User, c *Channel) bool {
	const setting = "can_delete_any_message_group"
	return u.IsAdmin() || r.HasPermission(u, setting) || r.channelAllows(u, c, setting)
}

// DeleteTopic asks to delete a topic, newest messages first. A long topic takes several turns.
type DeleteTopic struct {
	Channel ChannelID
	Topic   string
}

// Decide returns the id of the job that deletes the rest, or 0 if nothing is left.
func (c DeleteTopic) Decide(t *Turn) (job int64, err error) {
	me := t.Me()
	if me == nil {
		return 0, errNotMember()
	}
	ch, err := t.ReadableChannel(c.Channel)
	if err != nil {
		return 0, err
	}
	if !t.mayDeleteTopics(me, ch) {
		return 0, errNotAdmin()
	}
	if ch.Archived {
		return 0, errInvalidChannel()
	}
	topic := c.Topic
	if topic == EmptyTopicName {
		topic = ""
	}
	index := t.index.channels[ch.ID].topics[fold(topic)]
	if index == nil {
		return 0, nil
	}
	messages := index.ids
	if t.hasProtectedHistory(ch) {
		messages = t.rowsWithin(me.ID, &messages)
	}
	switch n := messages.Len(); {
	case n == 0:
		return 0, nil
	case n <= maxDeletedPerTurn:
		t.deleteMessages(ids.IDs[MessageID](messages), DeletedByUser, me.ID)
		t.clearTopicPolicies(ch.ID, topic)
		return 0, nil
	}
	if err := t.checkJobLimit(); err != nil {
		return 0, err
	}
	job = t.startJob(Job{Kind: DeleteJob, Channels: []ChannelID{ch.ID}, Topic: topic, Rest: messages.Clone()})
	t.stepJob(job) // this turn has time left: its checks are few
	return job, nil
}

// deleteMessages records the deletion of messages of one conversation, and of files that only they used. ids ascend. by
// is 0 for the retention policy.
func (t *Turn) deleteMessages(messages []MessageID, reason ArchiveReason, by UserID) {
	oldest := t.message(messages[0])
	channel, topic := ChannelID(oldest.channel), ""
	var first firstMessageIDs
	perGroup := maxHiddenPerFact
	if channel != 0 {
		topic = t.topics.must(oldest.topic).Name
		first = t.firstMessagesOf(channel)
		if t.hasProtectedHistory(t.channels.must(channel)) {
			perGroup = 1 // each message has its own audience
		}
	}
	var groups []ArchivedGroup
	for part := range slices.Chunk(messages, perGroup) {
		groups = append(groups, ArchivedGroup{IDs: slices.Clone(part), Channel: channel, Topic: topic})
	}
	t.removeQuotes(messages)
	slices.Reverse(groups) // newest first
	for part := range slices.Chunk(groups, max(1, maxHiddenPerFact/perGroup)) {
		t.archiveMessages(part, reason, by)
	}
	t.recordFirstMessages(first)
}

// MessagesDeleted deletes messages of one conversation permanently, with all versions of their texts. It is only in
// journals from before there was an archive.
type MessagesDeleted struct {
	IDs      []MessageID // ascending, at most 100
	Versions []uint16    // newest version of each message's text
	Channel  ChannelID   // 0: direct
	Topic    string
	By       UserID
}

// Erased returns every version of the texts.
func (f *MessagesDeleted) Erased() []BodyRef { return allVersions(f.IDs, f.Versions) }

func (f *MessagesDeleted) apply(r *Realm) {
	before := r.savePriorState()
	before.audiences = [][]UserID{r.deletionAudience(f.Channel, f.IDs, f.By)}
	deleted := ids.SetOf(f.IDs...)
	for _, id := range f.IDs {
		m := r.changeMessage(id)
		r.unindexMessage(id, m)
		if m.bits&bitExtra != 0 {
			before.files = append(before.files, r.extras.must(id).Attachments...)
			r.extras.remove(id)
		}
		*m = message{}
	}
	r.recordShownDeletion(deleted)
	r.takeMarks(deleted, &before.stars, before.audiences)
}

func (f *MessagesDeleted) notices(r *Realm) []Notice {
	before := r.priorState()
	var out []Notice
	if to := before.audiences[0]; len(to) > 0 {
		e := &MessagesVanished{IDs: f.IDs, Channel: f.Channel, Topic: f.Topic}
		out = append(out, Notice{To: to, Event: e})
	}
	return append(append(out, before.stars.notices()...), r.attachmentUseNotices(before.files)...)
}

// removedStars are deleted messages by the user that had starred them. It has only users that do not get the deletion
// because they could not read the messages any more. They get the removal of the star instead.
type removedStars map[UserID]ids.Set

// add records the stars that user u loses, unless the user is in the audience of the deletion.
func (s *removedStars) add(r *Realm, u UserID, deleted ids.Set, audience []UserID) {
	marks := r.marks.find(u)
	if marks == nil || !r.index.usersWithQueues.Has(int64(u)) || containsSorted(audience, u) {
		return
	}
	if stars := ids.Intersection(marks.Starred, deleted); !stars.Empty() {
		if *s == nil {
			*s = removedStars{}
		}
		(*s)[u] = stars
	}
}

func (s removedStars) notices() (out []Notice) {
	for _, u := range slices.Sorted(maps.Keys(s)) {
		out = append(out, Notice{To: []UserID{u}, Event: &FlagsEvent{Flag: FlagStarred, IDs: s[u]}})
	}
	return out
}

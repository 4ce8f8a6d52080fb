package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Limits of one turn that restores messages.
const (
	maxRestoredPerTurn = 25
	// maxRestoreChecks is for how many pairs of message and connected subscriber the reading state is checked: a few
	// milliseconds.
	maxRestoreChecks = 40_000
)

// RestoreArchive asks, for the operator, to restore an archive, or one message from wherever it is in the archive. The
// answer is the number of messages. An archive is restored in steps, a turn each.
type RestoreArchive struct {
	Archive string
	Message MessageID // instead of Archive, if not 0
}

func (c RestoreArchive) Decide(t *Turn) (int, error) {
	if !t.System {
		return 0, errPermission()
	}
	if c.Message != 0 {
		for _, number := range t.small.archived.keys() {
			row := t.small.archived.must(number)
			if row.Messages.Has(int64(c.Message)) {
				if err := t.checkNotExpired(row, int64(c.Message)); err != nil {
					return 0, err
				}
				t.restoreMessages(number, ids.SetOf(c.Message))
				return 1, nil
			}
		}
		return 0, BadRequest("no message %d is in the archive; parley retention list shows the archives", c.Message)
	}
	a := t.small.archives.find(c.Archive)
	if a == nil {
		return 0, BadRequest("no archive %q; parley retention list shows the archives", c.Archive)
	}
	first, _ := a.Rows.Min()
	row := t.small.archived.must(first)
	oldest, _ := row.Messages.Min()
	if err := t.checkNotExpired(row, oldest); err != nil {
		return 0, err
	}
	n := a.Messages
	t.Record(&RestoreBegan{c.Archive, t.nextID("archived messages")})
	return n, nil
}

// checkNotExpired refuses to restore a message that the retention policy would delete again at once.
func (t *Turn) checkNotExpired(row *ArchivedMessages, id int64) error {
	m := row.message(id)
	days := t.retentionDays(ChannelID(m.channel))
	if days < 0 || int64(m.time)+days*secondsPerDay > t.Now {
		return nil
	}
	return BadRequest("the retention policy would delete these messages again: set message_retention_days of %s "+
		"to more than %d days or to unlimited first",
		t.policyOwner(ChannelID(m.channel)), (t.Now-int64(m.time))/secondsPerDay)
}

// policyOwner names the channel, or the organization, whose retention policy applies to a channel's messages.
func (r *Realm) policyOwner(c ChannelID) string {
	if c != 0 {
		if ch := r.channels.must(c); ch.Retention != nil {
			return "channel #" + ch.Name
		}
	}
	return "the organization"
}

// RestoreBegan says that an archive is to be restored.
type RestoreBegan struct {
	Archive string
	Below   int64 // rows with lower numbers
}

func (f *RestoreBegan) apply(r *Realm) {
	a := r.small.archives.change(f.Archive)
	a.RestoreBelow = f.Below
	r.small.archiveIndex.restoring[f.Archive] = struct{}{}
}

func (*RestoreBegan) notices(*Realm) []Notice { return nil }

// restoringArchive returns the name of the first archive that is being restored, or "".
func (r *Realm) restoringArchive() string {
	first := ""
	for name := range r.small.archiveIndex.restoring {
		if first == "" || name < first {
			first = name
		}
	}
	return first
}

// restoreDue returns a turn with the next step of a restore, or nil without one.
func restoreDue(r *Realm, _ int64) func(*Turn) (any, error) {
	name := r.restoringArchive()
	if name == "" {
		return nil
	}
	return func(t *Turn) (any, error) {
		first, _ := t.small.archives.must(name).Rows.Min()
		row := t.small.archived.must(first)
		n := min(row.Messages.Len(), maxRestoredPerTurn)
		if c := t.small.archives.must(name).Channel; c != 0 {
			n = min(n, max(1, maxRestoreChecks/max(1, len(t.subscribersAudience(c)))))
		}
		t.restoreMessages(first, ids.SetOf(row.Messages.Slice(0, n)...))
		return nil, nil
	}
}

// restoreMessages records that messages of a row are restored, with the files they use.
func (t *Turn) restoreMessages(number int64, messages ids.Set) {
	row := t.small.archived.must(number)
	f := &MessagesRestored{Row: number, IDs: messages}
	var channels []ChannelID
	messages.Each(func(id int64) bool {
		if m := row.message(id); m.channel != 0 && !slices.Contains(channels, ChannelID(m.channel)) {
			channels = append(channels, ChannelID(m.channel))
		}
		if extra := row.extra(id); extra != nil {
			for _, p := range extra.Attachments {
				if u, ok := t.small.archiveIndex.uploads[p]; ok && !slices.Contains(f.Uploads, u) {
					f.Uploads = append(f.Uploads, u)
				}
			}
		}
		return true
	})
	first := t.firstMessagesOf(channels...)
	t.recordWithVisibility(f)
	t.recordFirstMessages(first)
}

// MessagesRestored says that messages were restored from the archive.
type MessagesRestored struct {
	Row     int64
	IDs     ids.Set
	Uploads []int64 // files that were restored with them
}

func (f *MessagesRestored) apply(r *Realm) {
	row, prior := r.small.archived.must(f.Row), r.savePriorState()
	f.IDs.Each(func(n int64) bool {
		id, m := MessageID(n), row.message(n)
		b := r.blocks.ensure(n / blockSize)
		r.saveForSnapshot(b, id)
		b.m[n%blockSize] = m
		if extra := row.extra(n); extra != nil {
			r.extras.put(id, extra.unshared())
		}
		r.indexMessage(id, r.message(id))
		if m.channel == 0 {
			prior.conversations.Add(int64(m.conversation))
		} else {
			prior.channels.Add(int64(m.channel))
		}
		return true
	})
	for _, x := range row.Marks {
		restored, empty := ArchivedMarks{User: x.User}, true
		for i, pair := range x.sets(&MessageMarks{}) {
			set := restored.sets(&MessageMarks{})[i][0]
			*set = ids.Intersection(*pair[0], f.IDs)
			empty = empty && set.Empty()
		}
		if empty {
			continue
		}
		rd := r.marks.ensure(x.User)
		for _, pair := range restored.sets(rd) {
			pair[1].Union(*pair[0])
		}
		prior.marks = append(prior.marks, restored)
	}
	for _, id := range f.Uploads {
		r.restoreUpload(r.small.archivedUploads.must(id))
	}
	r.removeArchived(f.Row, f.IDs)
}

// notices returns the events that correct the counts of clients: messages that are unread, and stars. Clients get
// the messages themselves when they next load the conversation.
func (f *MessagesRestored) notices(r *Realm) (out []Notice) {
	out = r.restoredUnreadNotices(f)
	for _, x := range r.priorState().marks {
		if to := r.usersAudience(x.User); len(to) > 0 && !x.Starred.Empty() {
			out = append(out, Notice{To: to, Event: &FlagsEvent{Flag: FlagStarred, Add: true, IDs: x.Starred}})
		}
	}
	for _, id := range f.Uploads {
		u := r.small.uploads.must(id)
		e := &AttachmentChanged{Attachment: r.attachmentInfo(u), New: true, Used: r.index.uploadBytes}
		out = append(out, r.uploadNotices(u.Owner, e)...)
	}
	return out
}

// restoredUnreadNotices returns an event for each connected user to whom restored messages are unread. Users with the
// same unread messages share one.
func (r *Realm) restoredUnreadNotices(f *MessagesRestored) (out []Notice) {
	messages := ids.IDs[MessageID](f.IDs)
	channel, mentioned := r.plainChannel(messages)
	byUnread := map[uint64]int{} // index into out of the event for users for whom only these messages are unread
	for _, u := range r.restoredAudience() {
		unread, plain := uint64(0), false
		if channel != 0 && !mentioned.Has(int64(u)) {
			if unread, plain = r.plainUnread(u, channel, messages); plain && unread == 0 {
				continue
			}
		}
		if at, known := byUnread[unread]; known && plain {
			out[at].To = append(out[at].To, u)
			continue
		}
		e := r.restoredUnread(u, f.IDs)
		if e == nil {
			continue
		}
		same := slices.IndexFunc(out, func(n Notice) bool { return n.Event.(*FlagsEvent).sameUnread(e) })
		if same >= 0 {
			out[same].To = append(out[same].To, u)
		} else {
			same, out = len(out), append(out, Notice{To: []UserID{u}, Event: e})
		}
		if plain {
			byUnread[unread] = same
		}
	}
	return out
}

// restoredUnread returns the event about those restored messages that are unread to a user, or nil without any.
func (r *Realm) restoredUnread(u UserID, restored ids.Set) *FlagsEvent {
	rd := r.marks.find(u)
	var unread ids.Set
	ids.Difference(restored, r.readSet(rd)).Each(func(n int64) bool {
		m := r.message(MessageID(n))
		counts := m.channel == 0 ||
			r.Subscribed(u, ChannelID(m.channel)) && !r.channels.must(ChannelID(m.channel)).Archived
		if counts && r.hasRowWith(u, rd, MessageID(n), m) {
			unread.Add(n)
		}
		return true
	})
	if unread.Empty() {
		return nil
	}
	e := &FlagsEvent{Flag: FlagRead, IDs: unread}
	r.addUnreadDetails(e, u)
	return e
}

// plainChannel returns the channel of messages if nothing but a subscription to it decides to whom they are unread:
// they were sent there. Otherwise it returns 0. It also returns the users that the messages mention.
func (r *Realm) plainChannel(messages []MessageID) (c ChannelID, mentioned ids.Set) {
	channel := r.message(messages[0]).channel
	for _, id := range messages {
		m := r.message(id)
		if m.channel != channel || m.bits&(bitSentElsewhere|bitChannelWildcard) != 0 {
			return 0, mentioned
		}
		if e := r.extra(id, m); e != nil {
			for _, list := range [][]UserID{e.Mentioned, e.GroupMentioned, e.TopicMentioned} {
				mentioned.Union(ids.SetOf(list...))
			}
		}
	}
	if channel == 0 || len(messages) > 64 || r.channels.must(ChannelID(channel)).Archived {
		return 0, mentioned
	}
	return ChannelID(channel), mentioned
}

// plainUnread returns which of the messages of a plainChannel are unread to a subscriber, a bit each. plain is false
// for a user with marks or mutes that may change that.
func (r *Realm) plainUnread(u UserID, c ChannelID, messages []MessageID) (unread uint64, plain bool) {
	rd, sub := r.marks.find(u), r.SubscriptionOf(u, c)
	if sub == nil || sub.Muted || r.topicPolicies.find(u) != nil ||
		rd != nil && !(rd.Rows.Empty() && rd.Lost.Empty() && len(rd.Behind) == 0) {
		return 0, false
	}
	for i, id := range messages {
		if sub.covers(id) && (rd == nil || !rd.Read.Has(int64(id))) {
			unread |= 1 << i
		}
	}
	return unread, true
}

// sameUnread reports whether two events say the same about messages that became unread.
func (e *FlagsEvent) sameUnread(o *FlagsEvent) bool {
	return e.IDs.Equal(o.IDs) && e.Mentions.Equal(o.Mentions) && slices.Equal(e.At, o.At) &&
		slices.EqualFunc(e.Places, o.Places, func(p, q UnreadPlace) bool {
			return p.Channel == q.Channel && p.Topic == q.Topic && p.Unmuted == q.Unmuted &&
				slices.Equal(p.People, q.People)
		})
}

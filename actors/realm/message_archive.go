package realm

import (
	"fmt"
	"slices"

	"parley/actors/realm/ids"
)

// Messages that are deleted, by users or by the retention policy, are moved to the archive first. For a time that the
// operator sets, the operator can restore them with everything that belongs to them. Then message_archive_purge.go
// deletes them permanently, with their texts.
//
// An archived message has no effect on anything that users see. It is not in the blocks of messages and not in any
// index, and its marks are stored with it. Only its text is not moved. The search index still has the text; hits that
// are not messages any more are ignored.

// DefaultArchiveDays is the default of the time for which deleted messages can be restored.
const DefaultArchiveDays = 30

// SetArchiveTime sets for how many days deleted messages can be restored. It is the operator's setting and not stored.
func (r *Realm) SetArchiveTime(days int) { r.archiveTime = int64(days) * secondsPerDay }

// PauseRetention makes the clock neither delete nor purge messages. It is for tools that do not know the operator's
// settings.
func (r *Realm) PauseRetention() { r.retentionPaused = true }

// ArchiveReason says why messages are in the archive. The numbers are stored and never reused.
type ArchiveReason uint8

const (
	DeletedByPolicy ArchiveReason = 1 // the retention policy
	DeletedByUser   ArchiveReason = 2
)

// Archive is the row of the messages that were deleted on one day for one reason in one channel, or in direct
// conversations. Its name is its key. An operator restores an archive as a whole, or single messages of it.
type Archive struct {
	Reason   ArchiveReason
	Channel  ChannelID // 0: direct messages
	By       UserID    // the user that deleted them; 0: the retention policy or the server
	At       int64     // time of the first deletion
	Messages int       // how many are in it now
	Rows     ids.Set   // the rows of ArchivedMessages; an archive without rows is removed
	// RestoreBelow is not 0 while the archive is being restored: the rows with lower numbers are to be restored.
	RestoreBelow int64
}

// archiveName returns the name of the archive for messages that are deleted now. It sorts by time.
func archiveName(at int64, reason ArchiveReason, channel ChannelID, by UserID) string {
	name := dateOf(at)
	switch {
	case reason == DeletedByPolicy:
		name += ".retention"
	case by == 0: // a notice that the server withdraws
		name += ".server"
	default:
		name += fmt.Sprintf(".user-%d", by)
	}
	if channel == 0 {
		return name + ".direct"
	}
	return name + fmt.Sprintf(".channel-%d", channel)
}

// dateOf returns the date of a time in UTC, such as 2026-11-23. It computes with years that begin in March, so that a
// leap day is the last day of its year.
func dateOf(at int64) string {
	const daysPerEra, marchEpoch = 146_097, 719_468 // 400 years; days from March of the year 0 to 1970
	days := at/secondsPerDay + marchEpoch
	era, day := days/daysPerEra, days%daysPerEra
	year := (day - day/1460 + day/36_524 - day/146_096) / 365
	day -= 365*year + year/4 - year/100
	month := (5*day + 2) / 153 // from March
	day -= (153*month + 2) / 5
	year += 400 * era
	if month += 3; month > 12 {
		year, month = year+1, month-12
	}
	return fmt.Sprintf("%04d-%02d-%02d", year, month, day+1)
}

// ArchivedMessages is the row of messages that one fact moved to the archive, at most maxHiddenPerFact.
type ArchivedMessages struct {
	Archive  string
	At       int64
	Messages ids.Set
	Encoded  []byte          // the messages in the order of their ids, as in a messageBlock
	Extras   []ArchivedExtra // ascending
	Marks    []ArchivedMarks // by ascending user
}

// SentBy returns how many of the messages a user has sent.
func (a *ArchivedMessages) SentBy(u UserID) (n int) {
	for rest := a.Encoded; len(rest) >= encodedMessageSize; rest = rest[encodedMessageSize:] {
		if m := decodeMessage(rest); UserID(m.sender) == u {
			n++
		}
	}
	return n
}

// ArchivedExtra is the MessageExtra of an archived message.
type ArchivedExtra struct {
	Message MessageID
	Extra   MessageExtra
}

// ArchivedMarks is one user's marks of archived messages. Messages that were read stay in MessageMarks.Read.
type ArchivedMarks struct {
	User                                  UserID
	Starred, Collapsed, Rows, Lost, Given ids.Set
}

// sets returns the sets of a, and the corresponding ones of a user's marks.
func (a *ArchivedMarks) sets(m *MessageMarks) [5][2]*ids.Set {
	return [5][2]*ids.Set{{&a.Starred, &m.Starred}, {&a.Collapsed, &m.Collapsed}, {&a.Rows, &m.Rows},
		{&a.Lost, &m.Lost}, {&a.Given, &m.Given}}
}

// message returns one of the messages.
func (a *ArchivedMessages) message(id int64) message {
	return decodeMessage(a.Encoded[(a.Messages.Rank(id)-1)*encodedMessageSize:])
}

// extra returns the MessageExtra of one of the messages, or nil.
func (a *ArchivedMessages) extra(id int64) *MessageExtra {
	i, found := slices.BinarySearchFunc(a.Extras, MessageID(id), func(x ArchivedExtra, id MessageID) int {
		return int(x.Message - id)
	})
	if !found {
		return nil
	}
	return &a.Extras[i].Extra
}

// removeMessages removes messages from the row. The slices of the row may be shared, so they are replaced.
func (a *ArchivedMessages) removeMessages(removed ids.Set) {
	var encoded []byte
	i := 0
	a.Messages.Each(func(id int64) bool {
		if !removed.Has(id) {
			encoded = append(encoded, a.Encoded[i:i+encodedMessageSize]...)
		}
		i += encodedMessageSize
		return true
	})
	var extras []ArchivedExtra
	for _, x := range a.Extras {
		if !removed.Has(int64(x.Message)) {
			extras = append(extras, x)
		}
	}
	var marks []ArchivedMarks
	for _, x := range a.Marks {
		left, empty := ArchivedMarks{User: x.User}, true
		for i, pair := range x.sets(&MessageMarks{}) {
			set := left.sets(&MessageMarks{})[i][0]
			*set = ids.Difference(*pair[0], removed)
			empty = empty && set.Empty()
		}
		if !empty {
			marks = append(marks, left)
		}
	}
	a.Messages = ids.Difference(a.Messages, removed)
	a.Encoded, a.Extras, a.Marks = encoded, extras, marks
}

// archiveMessages records that messages are deleted: groups of messages of one conversation each. All are direct, or
// all are in one channel. Files that only they used are moved to the archive, too.
func (t *Turn) archiveMessages(groups []ArchivedGroup, reason ArchiveReason, by UserID) {
	f := &MessagesArchived{Row: t.nextID("archived messages"), Reason: reason, By: by, At: t.Now, Groups: groups}
	f.Archive = archiveName(t.Now, reason, groups[0].Channel, by)
	var paths []string
	var deleted ids.Set
	for _, g := range groups {
		for _, id := range g.IDs {
			deleted.Add(int64(id))
			paths = append(paths, t.extraOrEmpty(id).Attachments...)
		}
	}
	f.Uploads = t.uploadsOnlyUsedBy(deleted, paths)
	t.recordWithVisibility(f)
}

// uploadsOnlyUsedBy returns the files with these paths that no message except the given ones and no scheduled message
// uses, ascending.
func (t *Turn) uploadsOnlyUsedBy(messages ids.Set, paths []string) (out []int64) {
	var waiting map[string]bool
	for _, p := range slices.Compact(slices.Sorted(slices.Values(paths))) {
		u := t.findUpload(p)
		if u == nil || !ids.Difference(findSet(t.index.messagesWithFile, p), messages).Empty() {
			continue
		}
		if waiting == nil {
			waiting = map[string]bool{}
			for _, s := range t.small.scheduled.all() {
				for _, p := range s.Content.Attachments {
					waiting[p] = true
				}
			}
		}
		if !waiting[p] {
			out = append(out, u.ID)
		}
	}
	slices.Sort(out)
	return out
}

// MessagesArchived says that messages were deleted. They are in the archive from now on.
type MessagesArchived struct {
	Row     int64 // of ArchivedMessages
	Archive string
	Reason  ArchiveReason
	By      UserID // 0: the retention policy
	At      int64
	Groups  []ArchivedGroup // in the order of their events; at most maxHiddenPerFact messages
	Uploads []int64         // files that only these messages used: they are moved to the archive, too
}

// ArchivedGroup is deleted messages of one conversation.
type ArchivedGroup struct {
	IDs     []MessageID // ascending
	Channel ChannelID   // 0: direct
	Topic   string
}

// removedUploadRef is a file that left the list of its owner.
type removedUploadRef struct {
	id    int64
	owner UserID
}

// messages returns the messages of all groups.
func (f *MessagesArchived) messages() (all ids.Set) {
	for _, g := range f.Groups {
		all.Union(ids.SetOf(g.IDs...))
	}
	return all
}

func (f *MessagesArchived) apply(r *Realm) {
	before := r.savePriorState()
	for i := range f.Groups {
		g := &f.Groups[i]
		before.audiences = append(before.audiences, r.deletionAudience(g.Channel, g.IDs, f.By))
	}
	deleted := f.messages()
	row := &ArchivedMessages{Archive: f.Archive, At: f.At, Messages: deleted}
	deleted.Each(func(n int64) bool {
		id := MessageID(n)
		m := r.changeMessage(id)
		row.Encoded = appendMessage(row.Encoded, m)
		r.unindexMessage(id, m)
		if m.bits&bitExtra != 0 {
			extra := r.extras.must(id).unshared()
			row.Extras = append(row.Extras, ArchivedExtra{id, *extra})
			before.files = append(before.files, extra.Attachments...)
			r.extras.remove(id)
		}
		*m = message{}
		return true
	})
	r.recordShownDeletion(deleted)
	row.Marks = r.takeMarks(deleted, &before.stars, before.audiences)
	for _, id := range f.Uploads {
		u := r.small.uploads.must(id)
		before.uploads = append(before.uploads, removedUploadRef{id, u.Owner})
		r.archiveUpload(u)
	}
	r.putArchived(f, row)
}

// recordShownDeletion records that notifications of deleted messages may be shown on users' devices.
func (r *Realm) recordShownDeletion(deleted ids.Set) {
	for u, s := range r.small.shownNotifications.all() {
		if s.Messages.Intersects(deleted) {
			r.small.staleNotifications[u] = struct{}{}
		}
	}
}

// takeMarks removes all users' marks of messages and returns them. It adds to stars the users that lose a star and are
// in none of the audiences.
func (r *Realm) takeMarks(deleted ids.Set, stars *removedStars, audiences [][]UserID) (out []ArchivedMarks) {
	var users []UserID
	for u, rd := range r.marks.all() {
		if rd.Rows.Intersects(deleted) || rd.Starred.Intersects(deleted) || rd.Collapsed.Intersects(deleted) ||
			rd.Lost.Intersects(deleted) {
			users = append(users, u)
		}
	}
	slices.Sort(users)
	for _, u := range users {
		notified := slices.ContainsFunc(audiences, func(to []UserID) bool { return containsSorted(to, u) })
		if !notified {
			stars.add(r, u, deleted, nil)
		}
		x, rd := ArchivedMarks{User: u}, r.marks.change(u)
		for _, pair := range x.sets(rd) {
			*pair[0] = ids.Intersection(*pair[1], deleted)
			pair[1].Subtract(deleted)
		}
		out = append(out, x)
	}
	return out
}

// putArchived adds a row to the archive.
func (r *Realm) putArchived(f *MessagesArchived, row *ArchivedMessages) {
	r.reserveID("archived messages", f.Row)
	r.small.archived.put(f.Row, row)
	r.small.indexArchived(row, 1)
	a := r.small.archives.find(f.Archive)
	if a == nil {
		a = &Archive{Reason: f.Reason, Channel: f.Groups[0].Channel, By: f.By, At: f.At}
		r.small.archives.put(f.Archive, a)
	} else {
		a = r.small.archives.change(f.Archive)
	}
	a.Rows.Add(f.Row)
	a.Messages += row.Messages.Len()
	if r.archiveTime == 0 {
		r.purgeProgress = purgeProgress{}
	}
}

func (f *MessagesArchived) notices(r *Realm) []Notice {
	before := r.priorState()
	var out []Notice
	for i, g := range f.Groups {
		if to := before.audiences[i]; len(to) > 0 {
			e := &MessagesVanished{IDs: g.IDs, Channel: g.Channel, Topic: g.Topic}
			out = append(out, Notice{To: to, Event: e})
		}
	}
	out = append(append(out, before.stars.notices()...), r.attachmentUseNotices(before.files)...)
	for _, u := range before.uploads {
		out = append(out, r.uploadNotices(u.owner, &AttachmentGone{u.id, r.index.uploadBytes})...)
	}
	return out
}

// archiveUpload moves a file to the archive.
func (r *Realm) archiveUpload(u *Upload) {
	r.index.dropUpload(u)
	r.small.uploads.remove(u.ID)
	r.small.archivedUploads.put(u.ID, u)
	r.small.indexArchivedUpload(u, 1)
}

// restoreUpload moves a file back from the archive.
func (r *Realm) restoreUpload(u *Upload) {
	r.small.indexArchivedUpload(u, -1)
	r.small.archivedUploads.remove(u.ID)
	r.small.uploads.put(u.ID, u)
	r.index.addUpload(u)
}

// archiveIndex is the data derived from the archive.
type archiveIndex struct {
	messages  int                 // how many there are
	withFile  map[string]*ids.Set // messages by the path of a file they use
	uploads   map[string]int64    // archived files by path
	withHash  map[string]int      // number of archived files with the same content
	fileBytes int64               // of archived files
	restoring map[string]struct{} // the names of archives that are being restored
}

func (n *smallTables) initArchive() {
	n.archiveIndex = archiveIndex{
		withFile: map[string]*ids.Set{}, uploads: map[string]int64{}, withHash: map[string]int{},
		restoring: map[string]struct{}{}}
}

// indexArchived adds the messages of a row to the index, or removes them for sign -1.
func (n *smallTables) indexArchived(row *ArchivedMessages, sign int) {
	x := &n.archiveIndex
	x.messages += sign * row.Messages.Len()
	for i := range row.Extras {
		for _, p := range row.Extras[i].Extra.Attachments {
			s := openSet(x.withFile, p)
			if sign > 0 {
				s.Add(int64(row.Extras[i].Message))
			} else if s.Remove(int64(row.Extras[i].Message)); s.Empty() {
				delete(x.withFile, p)
			}
		}
	}
}

// indexArchivedUpload adds a file to the index, or removes it for sign -1.
func (n *smallTables) indexArchivedUpload(u *Upload, sign int) {
	x := &n.archiveIndex
	x.fileBytes += int64(sign) * u.Size
	if x.withHash[u.Hash] += sign; x.withHash[u.Hash] == 0 {
		delete(x.withHash, u.Hash)
	}
	if sign > 0 {
		x.uploads[u.Path] = u.ID
	} else {
		delete(x.uploads, u.Path)
	}
}

// removeArchived removes messages from a row of the archive, and the row and the archive if nothing is left.
func (r *Realm) removeArchived(number int64, removed ids.Set) {
	row := r.small.archived.change(number)
	r.small.indexArchived(row, -1)
	before := row.Messages.Len()
	row.removeMessages(removed)
	r.small.indexArchived(row, 1)
	a := r.small.archives.change(row.Archive)
	a.Messages -= before - row.Messages.Len()
	if row.Messages.Empty() {
		r.small.archived.remove(number)
		a.Rows.Remove(number)
	}
	if first, ok := a.Rows.Min(); !ok {
		r.small.archives.remove(row.Archive)
		delete(r.small.archiveIndex.restoring, row.Archive)
	} else if first >= a.RestoreBelow {
		a.RestoreBelow = 0
		delete(r.small.archiveIndex.restoring, row.Archive)
	}
}

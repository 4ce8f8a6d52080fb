package realm

// RecordedMessage is a message as a compliance export has it: also one that was deleted and is in the archive.
type RecordedMessage struct {
	ExportedMessage
	Deleted *Deletion // nil: it exists
	Holds   []int64   // the legal holds on it, by id
}

// Deletion says when and by whom a message was deleted.
type Deletion struct {
	At     int64
	By     UserID // 0: the retention policy or the server
	Reason ArchiveReason
}

// RecordedMessages returns the existing messages of a range of ids, both included.
func (r *Realm) RecordedMessages(from, to MessageID) (out []RecordedMessage) {
	for _, x := range r.ExportedMessages(from, to) {
		m := r.message(x.ID)
		out = append(out, RecordedMessage{ExportedMessage: x, Holds: r.holdsOn(m, r.extra(x.ID, m))})
	}
	return out
}

// DeletedMessages returns the messages of a row of the archive.
func (r *Realm) DeletedMessages(row *ArchivedMessages) (out []RecordedMessage) {
	deletion := Deletion{At: row.At}
	if a := r.small.archives.find(row.Archive); a != nil {
		deletion.By, deletion.Reason = a.By, a.Reason
	}
	row.Messages.Each(func(id int64) bool {
		m, extra := row.message(id), row.extra(id)
		x := RecordedMessage{Deleted: &deletion, Holds: r.holdsOn(&m, extra), ExportedMessage: ExportedMessage{
			MessageInfo: r.messageInfoWith(MessageID(id), &m, extra), Link: m.bits&bitLink != 0,
			Image: m.bits&bitImage != 0}}
		if extra != nil {
			x.SentTo, x.Attachments = extra.SentTo, extra.Attachments
		}
		out = append(out, x)
		return true
	})
	return out
}

// holdsOn returns the legal holds that are on a message. extra may be nil.
func (r *Realm) holdsOn(m *message, extra *MessageExtra) (out []int64) {
	for _, id := range r.small.holds.keys() {
		h, p := r.small.holds.must(id), heldPlaces{}
		if h.User != 0 {
			p.users.Add(int64(h.User))
		} else {
			p.channels.Add(int64(h.Channel))
		}
		if r.onHold(p, m, extra) {
			out = append(out, id)
		}
	}
	return out
}

package realm

import "parley/actors/realm/ids"

// ExportedMessage is a message as an export for another server contains it.
type ExportedMessage struct {
	MessageInfo
	SentTo      ChannelID // the channel it was sent to, if it is in another one now
	Attachments []string
	Link, Image bool
}

// ExportedMessages returns the existing messages of a range of ids, both included.
func (r *Realm) ExportedMessages(from, to MessageID) (out []ExportedMessage) {
	for id := from; id <= to; id++ {
		m := r.message(id)
		if m == nil {
			continue
		}
		x := ExportedMessage{MessageInfo: r.messageInfo(id, m), Link: m.bits&bitLink != 0, Image: m.bits&bitImage != 0}
		if e := r.extra(id, m); e != nil {
			x.SentTo, x.Attachments = e.SentTo, e.Attachments
		}
		out = append(out, x)
	}
	return out
}

// EachReceived calls fn with the flags of every message of a range that a user has a row of, by ascending user.
func (r *Realm) EachReceived(from, to MessageID, fn func(MessageID, UserID, Flags)) {
	var within ids.Set
	within.AddRange(int64(from), int64(to))
	for _, u := range r.users.keys() {
		if r.users.must(u).System {
			continue
		}
		rows, marks := r.rowsWithin(u, &within), r.marks.find(u)
		rows.Each(func(n int64) bool {
			if m := r.message(MessageID(n)); m != nil {
				fn(MessageID(n), u, r.flagsOfReceived(u, marks, MessageID(n), m))
			}
			return true
		})
	}
}

package realm

import (
	"cmp"
	"slices"

	"parley/actors/realm/ids"
)

// Whether a user received a message follows from the spans of the user's subscription to the channel it was sent to.
// For very many users at once, the channel's index answers for nearly all of them. Every user whose last span is still
// open received the message, unless that span began later.

// openSpan says that a user receives the messages of a channel from the id from on.
type openSpan struct {
	from uint32
	user uint32
}

// addOpenSpan records that the user's newest span of this channel begins at from and is open.
func (ix *channelIndex) addOpenSpan(u UserID, from MessageID) {
	if n := len(ix.openings); n >= 64 && n >= 2*ix.receiving.Len() { // most of them have been closed or replaced since
		seen := make(map[uint32]bool, n/2)
		for i := n - 1; i >= 0; i-- { // only the last one of each user can still be open
			if o := ix.openings[i]; seen[o.user] || !ix.receiving.Has(int64(o.user)) {
				ix.openings[i].user = 0
			} else {
				seen[o.user] = true
			}
		}
		ix.openings = slices.DeleteFunc(ix.openings, func(o openSpan) bool { return o.user == 0 })
	}
	ix.receiving.Add(int64(u))
	ix.openings = slices.Insert(ix.openings, ix.countOpenSpans(from), openSpan{uint32(from), uint32(u)})
}

// countOpenSpans returns how many of the openings begin at id or earlier: nearly always all of them.
func (ix *channelIndex) countOpenSpans(id MessageID) int {
	n := len(ix.openings)
	if n == 0 || MessageID(ix.openings[n-1].from) <= id {
		return n
	}
	n, _ = slices.BinarySearchFunc(ix.openings, int64(id)+1, func(o openSpan, from int64) int {
		return cmp.Compare(int64(o.from), from)
	})
	return n
}

// recipients returns users who received a message sent to the channel, unless a move took it away from them. It does
// not contain users who received it, left, and came back later: ask their spans.
func (ix *channelIndex) recipients(id MessageID) ids.Set {
	n := ix.countOpenSpans(id)
	late := make([]uint32, 0, len(ix.openings)-n)
	for _, o := range ix.openings[n:] {
		late = append(late, o.user)
	}
	if len(late) == 0 {
		return ix.receiving
	}
	return ids.Difference(ix.receiving, ids.SetOfUnsorted(late))
}

// receivedFunc returns a function with the answers of hasRowWith, for asking about one message and very many users.
func (r *Realm) receivedFunc(id MessageID, m *message) func(UserID, *MessageMarks) bool {
	if m.channel == 0 {
		return func(u UserID, rd *MessageMarks) bool { return r.hasRowWith(u, rd, id, m) }
	}
	origin := r.origin(id, m)
	all := r.index.channels[origin].recipients(id)
	return func(u UserID, rd *MessageMarks) bool {
		if rd != nil {
			if rd.Rows.Has(int64(id)) {
				return true
			}
			if rd.Lost.Has(int64(id)) {
				return false
			}
		}
		if all.Has(int64(u)) {
			return true
		}
		s := r.SubscriptionOf(u, origin)
		return s != nil && s.covers(id)
	}
}

// sortedCursor is an ascending list that is searched for ascending ids. Each search continues where the last one
// stopped.
type sortedCursor []UserID

// has reports whether u is in the list, and drops the ids below it.
func (a *sortedCursor) has(u UserID) bool {
	for len(*a) > 0 && (*a)[0] < u {
		*a = (*a)[1:]
	}
	return len(*a) > 0 && (*a)[0] == u
}

package realm

import (
	"cmp"
	"slices"

	"parley/actors/realm/ids"
)

// Who received a message follows from everybody's spans of the channel it was sent to. Where ten thousand are asked about
// growTo once, the channel says it of nearly all of them: who receives what is sent to it, but for those who came later than
// the message.

// openSpan says that from a message on somebody received what was sent to a channel.
type openSpan struct {
	from uint32
	user uint32
}

// addOpenSpan notes that a span of somebody's is open.
func (ix *channelIndex) addOpenSpan(u UserID, from MessageID) {
	if n := len(ix.openings); n >= 64 && n >= 2*ix.receiving.Len() { // most have been closed since, or opened anew
		seen := make(map[uint32]bool, n/2)
		for i := n - 1; i >= 0; i-- { // the last one of each is the one that may be open
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

// countOpenSpans is how many openings are from a message or an earlier one: nearly always all.
func (ix *channelIndex) countOpenSpans(id MessageID) int {
	n := len(ix.openings)
	if n == 0 || MessageID(ix.openings[n-1].from) <= id {
		return n
	}
	n, _ = slices.BinarySearchFunc(ix.openings, int64(id)+1, func(o openSpan, from int64) int { return cmp.Compare(int64(o.from), from) })
	return n
}

// recipients is users who received a message that was sent to the channel, unless a move took it from them. Others may have,
// too: those who have left since, and who came back after it.
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

// receivedFunc is receivedAs for very many users and one message.
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

// sortedCursor tells which of ascending ids are in a list, which ascends too, without searching it each time.
type sortedCursor []UserID

func (a *sortedCursor) has(u UserID) bool {
	for len(*a) > 0 && (*a)[0] < u {
		*a = (*a)[1:]
	}
	return len(*a) > 0 && (*a)[0] == u
}

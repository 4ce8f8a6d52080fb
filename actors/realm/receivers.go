package realm

import (
	"cmp"
	"slices"
)

// Who received a message follows from everybody's spans of the channel it was sent to. Where ten thousand are asked about
// at once, the channel says it of nearly all of them: who receives what is sent to it, but for those who came later than
// the message.

// opening says that from a message on somebody received what was sent to a channel.
type opening struct {
	from uint32
	user uint32
}

// opens notes that a span of somebody's is open.
func (ix *channelIndex) opens(u UserID, from MessageID) {
	if n := len(ix.opened); n >= 64 && n >= 2*ix.open.Len() { // most have been closed since, or opened anew
		seen := make(map[uint32]bool, n/2)
		for i := n - 1; i >= 0; i-- { // the last one of each is the one that may be open
			if o := ix.opened[i]; seen[o.user] || !ix.open.Has(int64(o.user)) {
				ix.opened[i].user = 0
			} else {
				seen[o.user] = true
			}
		}
		ix.opened = slices.DeleteFunc(ix.opened, func(o opening) bool { return o.user == 0 })
	}
	ix.open.Add(int64(u))
	ix.opened = slices.Insert(ix.opened, ix.before(from), opening{uint32(from), uint32(u)})
}

// before is how many openings are from a message or an earlier one: nearly always all.
func (ix *channelIndex) before(id MessageID) int {
	n := len(ix.opened)
	if n == 0 || MessageID(ix.opened[n-1].from) <= id {
		return n
	}
	n, _ = slices.BinarySearchFunc(ix.opened, int64(id)+1, func(o opening, from int64) int { return cmp.Compare(int64(o.from), from) })
	return n
}

// receivers is users who received a message that was sent to the channel, unless a move took it from them. Others may have,
// too: those who have left since, and who came back after it.
func (ix *channelIndex) receivers(id MessageID) Set {
	n := ix.before(id)
	late := make([]uint32, 0, len(ix.opened)-n)
	for _, o := range ix.opened[n:] {
		late = append(late, o.user)
	}
	if len(late) == 0 {
		return ix.open
	}
	return Without(ix.open, unordered(late))
}

// receiver is receivedAs for very many users and one message.
func (r *Realm) receiver(id MessageID, m *message) func(UserID, *Reading) bool {
	if m.channel == 0 {
		return func(u UserID, rd *Reading) bool { return r.receivedAs(u, rd, id, m) }
	}
	origin := r.origin(id, m)
	all := r.by.channel[origin].receivers(id)
	return func(u UserID, rd *Reading) bool {
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

// ascent tells which of ascending ids are in a list, which ascends too, without searching it each time.
type ascent []UserID

func (a *ascent) has(u UserID) bool {
	for len(*a) > 0 && (*a)[0] < u {
		*a = (*a)[1:]
	}
	return len(*a) > 0 && (*a)[0] == u
}

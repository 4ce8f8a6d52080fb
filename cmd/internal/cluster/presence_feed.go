package cluster

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"parley/actors"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/peer"
)

// presenceFeed sends the presence of a realm to a node that keeps event queues of it: every change at once. Rows that
// are too many for one message, such as those of a large organization when the node has connected, are sent in pieces
// of actors.MaxPresenceReports (40 kB) while at most maxQueuedCopies wait for the node. In one message the presence of
// 800,000 users would be more than peer.MaxQueuedBytes, and the node would be cut off again and again.
//
// Rows leave in the order of their changes: a client that asks for the changes after one that it has seen gets all.
type presenceFeed struct {
	peer  *peer.Peer
	realm realm.ID

	mu sync.Mutex
	// rest are rows that are not sent, in the order of their changes, and later those that came after them. Both have
	// at most one row for each user.
	rest  []presence.Row
	later map[realm.UserID]presence.Row
}

// note sends rows, or keeps them for later. It does not block.
func (f *presenceFeed) note(rows []presence.Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	runs := len(f.rest)+len(f.later) > 0
	if !runs && len(rows) <= actors.MaxPresenceReports {
		f.send(rows)
		return
	}
	if f.later == nil {
		f.later = make(map[realm.UserID]presence.Row, len(rows))
	}
	for _, r := range rows {
		f.later[r.User] = r
	}
	if !runs {
		go f.sendRest()
	}
}

// send sends rows in one message. f.mu is locked, so that messages have the order of the changes.
func (f *presenceFeed) send(rows []presence.Row) {
	f.peer.Send(encode(msgPresence, &presenceMessage{f.realm, rows}))
}

// sendRest sends the rest until there is none, or the link has ended.
func (f *presenceFeed) sendRest() {
	for more := true; more && f.peer.WaitForRoom(maxQueuedCopies); {
		more = f.sendPiece()
	}
}

// sendPiece sends a piece of the rest, and reports whether there is more.
func (f *presenceFeed) sendPiece() (more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.rest) == 0 {
		f.rest = slices.SortedFunc(maps.Values(f.later), func(x, y presence.Row) int {
			return cmp.Compare(x.Update, y.Update)
		})
		f.later = nil
	}
	n := min(len(f.rest), actors.MaxPresenceReports)
	f.send(f.rest[:n])
	if f.rest = f.rest[n:]; len(f.rest) == 0 {
		f.rest = nil
	}
	return len(f.rest)+len(f.later) > 0
}

// end drops the rest.
func (f *presenceFeed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest, f.later = nil, nil
}

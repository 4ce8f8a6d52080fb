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

// presenceFeed sends the presence of a realm to a node that hosts event queues of it: every change at once. If there
// are too many rows for one message, as after the connection of a node with a large organization, it sends pieces of
// actors.MaxPresenceReports (40 kB) while at most maxQueuedCopies bytes wait for the node. In one message, the presence
// of 800,000 users would exceed peer.MaxQueuedBytes, and the link would be cut after each new connection.
//
// Rows are sent in the order of their changes, so a client that asks for all changes after a given one gets all of
// them.
type presenceFeed struct {
	peer  *peer.Peer
	realm realm.ID

	mu sync.Mutex
	// rest has the rows that are being sent in pieces, in the order of their changes. later has rows that changed after
	// them. Both have at most one row for each user.
	rest  []presence.Row
	later map[realm.UserID]presence.Row
}

// add sends rows at once or queues them. It does not block.
func (f *presenceFeed) add(rows []presence.Row) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sending := len(f.rest)+len(f.later) > 0
	if !sending && len(rows) <= actors.MaxPresenceReports {
		f.send(rows)
		return
	}
	if f.later == nil {
		f.later = make(map[realm.UserID]presence.Row, len(rows))
	}
	for _, r := range rows {
		f.later[r.User] = r
	}
	if !sending {
		go f.sendRest()
	}
}

// send sends rows in one message. f.mu is locked, so that messages have the order of the changes.
func (f *presenceFeed) send(rows []presence.Row) {
	f.peer.Send(encode(msgPresence, &presenceMessage{f.realm, rows}))
}

// sendRest sends the queued rows, until none is left or the link has ended.
func (f *presenceFeed) sendRest() {
	for more := true; more && f.peer.WaitForRoom(maxQueuedCopies); {
		more = f.sendPiece()
	}
}

// sendPiece sends one piece of the queued rows. It reports whether there are more.
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

// end drops the queued rows.
func (f *presenceFeed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rest, f.later = nil, nil
}

package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/peer"
)

const (
	// presenceCopyInterval is the least time between two batches of changed presence that the leader sends to another
	// core, which stores them within half a minute. Presence is not in the replicated log. After a crash of the leader,
	// the new leader lacks the reports of the last 3 seconds; clients report again within a minute. If all cores are
	// killed at once, the reports of half a minute are lost, as on a single server.
	presenceCopyInterval = 3 * time.Second
	// firstCopyDelay is how long changes are collected after a quiet time.
	firstCopyDelay = time.Second
	// maxPresenceCopies limits the messages of presence that are sent to a core at once: 2 MB. The remaining rows are
	// sent 3 seconds later. In that time 100,000 users send about 5,000 reports.
	maxPresenceCopies = 50
	// maxQueuedCopies is the number of bytes in the send queue of a link beyond which presence is delayed: at
	// peer.MaxQueuedBytes the link would be cut.
	maxQueuedCopies = peer.MaxQueuedBytes / 16
)

// presenceCopies has the rows of presence that have changed since the last batch was sent to a core.
type presenceCopies struct {
	peer *peer.Peer
	sent *atomic.Int64 // rows
	wake chan struct{} // buffered, one element: there are rows

	stops map[realm.ID]func() // end the subscriptions to presence; guarded by edgeLink.mu

	mu sync.Mutex
	// rows has an entry for each realm whose presence is copied, with at most one row for each user.
	rows map[realm.ID]map[realm.UserID]presence.Row
}

// copyPresence begins to send the presence of realms to another core: first all rows, then changed ones. A core that
// hosts event queues of a realm gets each change at once instead; see open.
func (c *Leader) copyPresence(e *edgeLink, realms map[realm.ID]realm.Seq) {
	if e.peer.Role != peer.Core || e.peer.Node == c.Directory.Node {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if e.presence == nil {
		e.presence = &presenceCopies{peer: e.peer, sent: &c.PresenceCopied, wake: make(chan struct{}, 1),
			stops: map[realm.ID]func(){}, rows: map[realm.ID]map[realm.UserID]presence.Row{}}
		c.stopped.Go(e.presence.run)
	}
	x := e.presence
	for id := range realms {
		if e.stopFollowing[id] == nil && x.stops[id] == nil {
			x.mu.Lock()
			x.rows[id] = map[realm.UserID]presence.Row{}
			x.mu.Unlock()
			x.stops[id] = c.Orgs.FollowPresence(id, func(rows []presence.Row) { x.add(id, rows) })
		}
	}
}

// end stops copying the presence of a realm and drops the rows that were not sent. edgeLink.mu is held.
func (x *presenceCopies) end(id realm.ID) {
	if x == nil || x.stops[id] == nil {
		return
	}
	x.stops[id]()
	delete(x.stops, id)
	x.mu.Lock()
	delete(x.rows, id)
	x.mu.Unlock()
}

// add adds rows that have changed.
func (x *presenceCopies) add(id realm.ID, rows []presence.Row) {
	if len(rows) == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.rows[id]
	if m == nil { // it has ended
		return
	}
	for _, r := range rows {
		m[r.User] = r
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// run sends the rows until the link ends.
func (x *presenceCopies) run() {
	next := time.Now()
	for {
		select {
		case <-x.wake:
		case <-x.peer.Context().Done():
			return
		}
		select {
		case <-time.After(max(firstCopyDelay, time.Until(next))):
		case <-x.peer.Context().Done():
			return
		}
		next = time.Now().Add(presenceCopyInterval)
		x.send()
	}
}

// send sends the rows. It sends only a part if there are many or the core reads slowly.
func (x *presenceCopies) send() {
	for range maxPresenceCopies {
		if !x.sendRows(actors.MaxPresenceReports) {
			return
		}
		if _, waiting := x.peer.Queued(); waiting > maxQueuedCopies {
			break
		}
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// sendRows sends up to limit rows of one realm, and reports false if there are none.
func (x *presenceCopies) sendRows(limit int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, rows := range x.rows {
		if len(rows) == 0 {
			continue
		}
		m := &presenceMessage{Realm: id}
		for u, r := range rows {
			if len(m.Rows) == limit {
				break
			}
			m.Rows = append(m.Rows, r)
			delete(rows, u)
		}
		x.peer.Send(encode(msgPresence, m))
		x.sent.Add(int64(len(m.Rows)))
		return true
	}
	return false
}

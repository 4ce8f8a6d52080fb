package actors

import (
	"maps"
	"math"
	"slices"
	"sort"

	"parley/actors/realm"
	"parley/actors/realm/ids"
)

// Messages of a realm actor about the event queues of edges; see the methods of Edge.
type (
	edgeAdopts struct {
		edge   *Edge
		asked  Adoption
		answer func(Adopted, error)
	}
	edgeKeeps struct {
		edge *Edge
		kept KeptQueues
	}
	edgeAcks struct {
		edge *Edge
		acks *QueueAcks
	}
	edgeCloses struct {
		edge  *Edge
		queue realm.QueueID
	}
	edgeLost struct{ edge *Edge }
)

// queueHomes is where the event queues of a realm are kept: on edges, or by the session actors of this node. It is not
// stored: a restarted owner opens every queue itself, and the edges tell it which ones they keep. Its fields belong to
// the realm actor.
type queueHomes struct {
	edges   map[realm.QueueID]queueHome // the other queues are kept here
	byUser  map[realm.UserID][]realm.QueueID
	acks    map[*Edge]*edgeQueueAcks // of every edge that has kept a queue
	local   [Shards]int              // queues kept here, of each session actor
	total   int                      // sum of local
	waiting []*edgeAdopts            // for their facts to be published
	polled  []adoptQueue             // polls of this node that wait for the same
}

// queueHome is the edge that keeps a queue.
type queueHome struct {
	edge   *Edge
	user   realm.UserID
	at     realm.Seq // of its registration, if that was a request of the edge, and else 0
	number uint64    // of its adoption, or 0
}

// edgeQueueAcks has the acknowledgements of the queues of one edge.
type edgeQueueAcks struct {
	acked   [Shards]realm.Seq      // fact that every queue of the session actor has acknowledged
	newest  [Shards]realm.Seq      // newest registration
	adopted [Shards]uint64         // newest adoption
	kept    map[realm.QueueID]bool // of the parts of a list that is arriving
	// Queues that the edge was told to drop. A list with one of them is older than that.
	dropped map[realm.QueueID]bool
}

// noQueue is the acknowledgement of a session actor without queues.
const noQueue = realm.Seq(math.MaxUint64)

// acksOf returns the acknowledgements of an edge's queues, and makes them if needed.
func (h *queueHomes) acksOf(e *Edge) *edgeQueueAcks {
	x := h.acks[e]
	if x == nil {
		x = &edgeQueueAcks{}
		for k := range x.acked {
			x.acked[k] = noQueue
		}
		if h.acks == nil {
			h.acks = map[*Edge]*edgeQueueAcks{}
		}
		h.acks[e] = x
	}
	return x
}

// setEdge records that an edge keeps a queue whose client has acknowledged everything up to a fact.
func (h *queueHomes) setEdge(id realm.QueueID, home queueHome, acked realm.Seq) {
	k, x := shardOf(home.user), h.acksOf(home.edge)
	x.acked[k] = min(x.acked[k], acked)
	x.newest[k], x.adopted[k] = max(x.newest[k], home.at), max(x.adopted[k], home.number)
	if h.edges == nil {
		h.edges = map[realm.QueueID]queueHome{}
	}
	if _, before := h.edges[id]; !before {
		h.countLocal(home.user, -1)
		if h.byUser == nil {
			h.byUser = map[realm.UserID][]realm.QueueID{}
		}
		h.byUser[home.user] = append(h.byUser[home.user], id)
	}
	h.edges[id] = home
}

// setLocal records that this node keeps a queue that an edge has kept.
func (h *queueHomes) setLocal(id realm.QueueID, u realm.UserID) {
	h.deleteEdge(id, u)
	h.countLocal(u, 1)
}

// deleteEdge forgets that an edge keeps a queue.
func (h *queueHomes) deleteEdge(id realm.QueueID, u realm.UserID) {
	if _, remote := h.edges[id]; !remote {
		return
	}
	delete(h.edges, id)
	rest := slices.DeleteFunc(h.byUser[u], func(x realm.QueueID) bool { return x == id })
	if h.byUser[u] = rest; len(rest) == 0 {
		delete(h.byUser, u)
	}
}

// countLocal counts a queue that is kept here from now on, or is not any more.
func (h *queueHomes) countLocal(u realm.UserID, n int) {
	h.local[shardOf(u)] += n
	h.total += n
}

// lowest returns the fact of a session actor up to which all queues of edges have acknowledged everything.
func (h *queueHomes) lowest(shard int) realm.Seq {
	low := noQueue
	for _, x := range h.acks {
		low = min(low, x.acked[shard])
	}
	return low
}

// queueOpened records the home of a queue whose registration is on disk. A queue of an edge that is gone is kept here.
func (a *realmActor) queueOpened(q *realm.Queue, c *Committed, n realm.Seq) {
	a.homes.countLocal(q.User, 1)
	switch {
	case c.edge != nil && !c.edge.lost.Load():
		a.homes.setEdge(q.ID, queueHome{edge: c.edge, user: q.User, at: n}, n)
	case len(c.Batch.Requests) > 0:
		a.homes.countLocal(q.User, -1) // keepHere counts it
		a.keepHere([]*realm.Queue{q}, n, func(int) realm.Seq { return n })
	default: // earlier reports of its shard do not count for this queue
		k := shardOf(q.User)
		a.unacked.newestQueue[k], a.unacked.acked[k] = n, min(a.unacked.acked[k], n)
	}
}

// queueClosed forgets the home of a closed queue.
func (a *realmActor) queueClosed(id realm.QueueID, u realm.UserID) {
	if _, remote := a.homes.edges[id]; remote {
		a.homes.deleteEdge(id, u)
	} else {
		a.homes.countLocal(u, -1)
	}
}

// withLocalQueues returns the events for which a session actor of this node has a queue, and all notices for the
// session actors. The events of a realm whose clients are with edges cost the owner no work for each recipient.
func (a *realmActor) withLocalQueues(publications []realm.Publication) []realm.Publication {
	if len(a.homes.edges) == 0 || a.homes.total > 0 {
		return publications
	}
	var out []realm.Publication
	for _, t := range publications {
		if !slices.ContainsFunc(t.Notices, internalOnly) {
			continue
		}
		t.Notices = slices.DeleteFunc(slices.Clone(t.Notices), func(n realm.Notice) bool { return !internalOnly(n) })
		out = append(out, t)
	}
	return out
}

// keepHere opens queues that edges have kept, with their unacked events. acked returns the fact up to which all of them
// that belong to a session actor have acknowledged everything; published is the newest fact whose events were released.
func (a *realmActor) keepHere(list []*realm.Queue, published realm.Seq, acked func(shard int) realm.Seq) {
	u := &a.unacked
	var queues [Shards][]realm.Queue
	var users ids.Set
	for _, q := range list {
		k := shardOf(q.User)
		queues[k] = append(queues[k], *q)
		users.Add(int64(q.User))
		a.homes.setLocal(q.ID, q.User)
	}
	low := noQueue
	for k := range queues {
		if len(queues[k]) > 0 {
			low = min(low, acked(k))
		}
	}
	var publications []realm.Publication
	for _, t := range u.list[u.indexAfter(low):] {
		x := realm.Publication{Seq: t.Seq}
		for _, n := range t.Notices {
			if to := slices.DeleteFunc(slices.Clone(n.To), func(id realm.UserID) bool {
				return !users.Has(int64(id))
			}); len(to) > 0 {
				x.Notices = append(x.Notices, realm.Notice{To: to, Event: n.Event, PublicOnly: n.PublicOnly})
			}
		}
		if len(x.Notices) > 0 {
			publications = append(publications, x)
		}
	}
	parts, _ := splitByShard(publications)
	for k := range queues {
		if len(queues[k]) == 0 {
			continue
		}
		u.acked[k] = min(u.acked[k], acked(k))
		u.takes++
		u.taken[k] = u.takes
		a.sendInOrder(k, &takeQueues{a.handle, queues[k], parts[k], published, u.takes})
	}
}

// indexAfter returns the index of the first unacked event after a fact.
func (u *unackedEvents) indexAfter(seq realm.Seq) int {
	return sort.Search(len(u.list), func(i int) bool { return u.list[i].Seq > seq })
}

// ackedBy returns the fact up to which a client has acknowledged everything that gives this last_event_id.
func ackedBy(q *realm.Queue, last int64) realm.Seq {
	if last < 0 {
		return q.At
	}
	return q.At + realm.Seq(last>>8) - 1 // the fact of that id may have further events
}

// edgeAdopts makes an edge the home of a queue. It waits until the facts that the edge has are published here, too.
func (a *realmActor) edgeAdopts(m *edgeAdopts) {
	switch {
	case a.reloading || a.standby || m.edge.lost.Load():
		m.answer(Adopted{}, realm.ErrNotOwner)
	case m.asked.Through > a.durable && len(a.homes.waiting) >= MaxInFlight:
		m.answer(Adopted{}, errOverloaded)
	case m.asked.Through > a.durable:
		a.homes.waiting = append(a.homes.waiting, m)
	default:
		m.answer(a.adoptFor(m.edge, &m.asked), nil)
	}
}

// answerAdoptions answers the edges that wait for published facts.
func (a *realmActor) answerAdoptions() {
	a.homes.waiting = slices.DeleteFunc(a.homes.waiting, func(m *edgeAdopts) bool {
		if m.asked.Through > a.durable && !a.reloading {
			return false
		}
		a.edgeAdopts(m)
		return true
	})
	polled := a.homes.polled
	a.homes.polled = nil
	for _, m := range polled {
		a.adoptQueue(m)
	}
}

// adoptFor makes an edge the home of a queue, and returns the events that its client may not have acknowledged. With
// the further parts of the events the home stays: another edge may have adopted the queue in between.
func (a *realmActor) adoptFor(e *Edge, asked *Adoption) Adopted {
	q := a.realm.FindQueue(asked.Queue.ID)
	if q == nil || q.User != asked.Queue.User {
		return Adopted{Seq: a.durable}
	}
	x := Adopted{Found: true, Seq: a.durable, Through: asked.Through}
	acked := ackedBy(q, asked.Last)
	switch home, remote := a.homes.edges[q.ID]; {
	case asked.Through == 0:
		x.Seq = max(x.Seq, q.At)
		return x
	case asked.After > 0 && (!remote || home.edge != e || home.number != asked.Number):
		x.Moved = true
		return x
	case asked.After > 0:
		acked = max(acked, asked.After)
	default:
		if home.edge != e {
			a.dropAtHome(q)
		}
		delete(a.homes.acksOf(e).dropped, q.ID)
		a.homes.setEdge(q.ID, queueHome{edge: e, user: q.User, number: asked.Number}, acked)
		a.srv.Metrics.QueuesAdopted.Add(1)
	}
	bytes := int64(0)
	for _, t := range a.unacked.list[a.unacked.indexAfter(acked):] {
		if t.Seq > asked.Through {
			break
		}
		p := realm.Publication{Seq: t.Seq}
		for _, n := range t.Notices {
			if slices.Contains(n.To, q.User) {
				p.Notices = append(p.Notices,
					realm.Notice{To: []realm.UserID{q.User}, Event: n.Event, PublicOnly: n.PublicOnly})
			}
		}
		if len(p.Notices) == 0 {
			continue
		}
		if bytes += estimateBytes(&p); bytes > MaxAdoptedBytes && len(x.Events) > 0 {
			x.Through, x.More = t.Seq-1, true
			break
		}
		x.Events = append(x.Events, p)
	}
	return x
}

// dropAtHome makes the node that keeps a queue drop it. A poll that waits there is answered with no events.
func (a *realmActor) dropAtHome(q *realm.Queue) {
	ref := QueueRef{q.User, q.ID}
	if home, remote := a.homes.edges[q.ID]; remote {
		x := a.homes.acksOf(home.edge)
		if x.dropped == nil {
			x.dropped = map[realm.QueueID]bool{}
		}
		x.dropped[q.ID] = true
		home.edge.link.DropQueues(a.realm.ID(), []DroppedQueue{{ref, home.number}})
		return
	}
	a.sendInOrder(shardOf(q.User), forgetQueues{a.handle.id, []DroppedQueue{{QueueRef: ref}}})
}

// sendInOrder sends a message to a session actor of this node after the events that were released before.
func (a *replica) sendInOrder(shard int, message any) {
	a.handle.flow.inOrder(func() { a.srv.runtime.send(a.handle.shards[shard], message) })
}

// adoptQueue takes a queue from an edge, because its client polls this node. It waits until the facts that the client
// has seen are published here, too.
func (a *realmActor) adoptQueue(m adoptQueue) {
	if a.standby {
		a.replicaClients.adoptQueue(m)
		return
	}
	q := a.realm.FindQueue(m.queue.ID)
	found := q != nil && q.User == m.queue.User
	if found {
		if seen := ackedBy(q, m.last) + 1; !a.reloading && seen > a.durable && seen <= a.realm.Seq() {
			a.homes.polled = append(a.homes.polled, m)
			return
		}
		if _, remote := a.homes.edges[q.ID]; remote {
			acked := ackedBy(q, m.last)
			a.dropAtHome(q)
			a.keepHere([]*realm.Queue{q}, a.durable, func(int) realm.Seq { return acked })
			a.srv.Metrics.QueuesAdopted.Add(1)
		}
	}
	x := &finishAdoption{realm: a.handle.id, queue: m.queue, seq: a.durable, final: !a.reloading}
	if !found {
		x.err = realm.ErrBadQueue(m.queue.ID)
	}
	a.sendInOrder(shardOf(m.queue.User), x)
}

// edgeKeeps records which queues an edge keeps.
func (a *realmActor) edgeKeeps(m edgeKeeps) {
	if m.edge.lost.Load() || a.standby {
		return
	}
	h := &a.homes
	acks := h.acksOf(m.edge)
	if acks.kept == nil {
		acks.kept = map[realm.QueueID]bool{}
	}
	var elsewhere []DroppedQueue
	var here [Shards][]DroppedQueue
	for _, x := range m.kept.Queues {
		q := a.realm.FindQueue(x.ID)
		if q == nil || q.User != x.User {
			continue // the edge gets the fact that has closed it
		}
		k := shardOf(x.User)
		acks.kept[x.ID] = true
		switch home, remote := h.edges[x.ID]; {
		case !remote && !acks.dropped[x.ID]:
			here[k] = append(here[k], DroppedQueue{QueueRef: x})
			h.setEdge(x.ID, queueHome{edge: m.edge, user: x.User}, a.unacked.acked[k])
			h.edges[x.ID] = queueHome{edge: m.edge, user: x.User, number: m.kept.Number}
		case !remote || home.edge != m.edge:
			elsewhere = append(elsewhere, DroppedQueue{x, m.kept.Number})
		}
	}
	for k, list := range here {
		if len(list) > 0 {
			a.sendInOrder(k, forgetQueues{a.handle.id, list})
		}
	}
	for part := range slices.Chunk(elsewhere, MaxKeptQueues) {
		m.edge.link.DropQueues(a.realm.ID(), part)
	}
	if m.kept.More {
		return
	}
	kept := acks.kept
	acks.kept = nil
	maps.DeleteFunc(acks.dropped, func(id realm.QueueID, _ bool) bool { return !kept[id] })
	a.keepAllHere(m.edge, func(id realm.QueueID, x queueHome) bool {
		return !kept[id] && x.at <= m.kept.Through && x.number <= m.kept.Number
	})
}

// keepAllHere opens the queues of an edge for which match returns true.
func (a *realmActor) keepAllHere(e *Edge, match func(realm.QueueID, queueHome) bool) {
	var list []*realm.Queue
	for id, home := range a.homes.edges {
		if home.edge == e && match(id, home) {
			if q := a.realm.FindQueue(id); q != nil {
				list = append(list, q)
			}
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(x, y *realm.Queue) int { return int(x.At - y.At) })
	acks := a.homes.acksOf(e)
	a.keepHere(list, a.durable, func(shard int) realm.Seq { return acks.acked[shard] })
	a.srv.log.Info("queues of an edge are kept by the owner", "realm", a.realm.ID(), "edge", e.key, "queues", len(list))
}

// edgeLost keeps the queues of an edge that is gone, until their clients poll another node.
func (a *realmActor) edgeLost(e *Edge) {
	if a.homes.acks[e] == nil {
		return
	}
	a.keepAllHere(e, func(realm.QueueID, queueHome) bool { return true })
	delete(a.homes.acks, e)
	for id, home := range a.homes.edges { // of queues whose closing is not on disk yet
		if home.edge == e {
			a.homes.setLocal(id, home.user)
		}
	}
	a.dropUnacked()
}

// edgeAcks drops the events that no queue needs any more. Reports of an edge about a session actor from before it had
// its newest queue is ignored.
func (a *realmActor) edgeAcks(m edgeAcks) {
	x := a.homes.acks[m.edge]
	if x == nil || m.edge.lost.Load() {
		return
	}
	for k := range x.acked {
		if m.acks.Seen[k] >= x.newest[k] && m.acks.Adopted[k] >= x.adopted[k] {
			x.acked[k] = max(x.acked[k], m.acks.Acked[k])
		}
	}
	a.dropUnacked()
}

// edgeCloses closes a queue for the edge that keeps it.
func (a *realmActor) edgeCloses(m edgeCloses) {
	if a.reloading || a.standby || a.homes.edges[m.queue].edge != m.edge {
		return
	}
	a.runSystemCommand(func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: m.queue}.Decide(t) })
}

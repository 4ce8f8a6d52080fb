package actors

import (
	"maps"
	"slices"
	"sort"

	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/actors/stream"
)

// Messages of a realm actor about the event queues of edges; see the methods of Edge.
type (
	adoptRequest struct {
		edge   *Edge
		asked  Adoption
		answer func(Adopted, error)
	}
	hostedReport struct {
		edge *Edge
		kept HostedQueues
	}
	edgeAckReport struct {
		edge *Edge
		acks *QueueAcks
	}
	closeRequest struct {
		edge  *Edge
		queue realm.QueueID
	}
	edgeDisconnected struct{ edge *Edge }
)

// queueHomes records the home of each event queue of a realm: an edge, or the session actors of this node. It is not
// stored: a new owner hosts every queue itself until the edges report which queues they host. Its fields belong to the
// realm actor.
type queueHomes struct {
	edges   map[realm.QueueID]queueHome // the other queues are hosted by this node
	byUser  map[realm.UserID][]realm.QueueID
	acks    map[*Edge]*edgeQueueAcks // of every edge that has hosted a queue
	local   [SessionActors]int       // queues that this node hosts, for each session actor
	total   int                      // sum of local
	waiting []*adoptRequest          // for their facts to be published
	polled  []delivery.AdoptQueue    // polls of this node that also wait for published facts
}

// queueHome is the edge that hosts a queue.
type queueHome struct {
	edge   *Edge
	user   realm.UserID
	at     realm.Seq // of its registration, if that was a request of the edge, and else 0
	number uint64    // of its adoption, or 0
}

// edgeQueueAcks has the acknowledgements of the queues of one edge.
type edgeQueueAcks struct {
	acked   [SessionActors]realm.Seq // fact that every queue of the session actor has acknowledged
	newest  [SessionActors]realm.Seq // newest registration
	adopted [SessionActors]uint64    // newest adoption
	kept    map[realm.QueueID]bool   // of the parts of a list that is arriving
	// Queues that the edge was asked to drop. A list that still has such a queue is older than the request.
	dropped map[realm.QueueID]bool
}

// acksOf returns the acknowledgements of an edge's queues and creates the entry if needed.
func (h *queueHomes) acksOf(e *Edge) *edgeQueueAcks {
	x := h.acks[e]
	if x == nil {
		x = &edgeQueueAcks{}
		for k := range x.acked {
			x.acked[k] = delivery.NoQueue
		}
		if h.acks == nil {
			h.acks = map[*Edge]*edgeQueueAcks{}
		}
		h.acks[e] = x
	}
	return x
}

// setEdge records that an edge hosts a queue whose client has acknowledged everything up to a fact.
func (h *queueHomes) setEdge(id realm.QueueID, home queueHome, acked realm.Seq) {
	k, x := delivery.ActorOf(home.user), h.acksOf(home.edge)
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

// setLocal records that a queue has moved from an edge to this node.
func (h *queueHomes) setLocal(id realm.QueueID, u realm.UserID) {
	h.deleteEdge(id, u)
	h.countLocal(u, 1)
}

// deleteEdge removes the record that an edge hosts a queue.
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

// countLocal adds n to the number of queues that this node hosts: 1 or -1.
func (h *queueHomes) countLocal(u realm.UserID, n int) {
	h.local[delivery.ActorOf(u)] += n
	h.total += n
}

// lowest returns the fact up to which the queues of one session actor have acknowledged everything on all edges.
func (h *queueHomes) lowest(sessionActor int) realm.Seq {
	low := delivery.NoQueue
	for _, x := range h.acks {
		low = min(low, x.acked[sessionActor])
	}
	return low
}

// queueOpened records the home of a queue whose registration is on disk. If the edge that asked for it has
// disconnected, this node hosts the queue.
func (a *realmActor) queueOpened(q *realm.Queue, c *stream.Committed, n realm.Seq) {
	a.homes.countLocal(q.User, 1)
	edge := a.srv.edgeOf(c.Sender)
	switch {
	case edge != nil && !edge.lost.Load():
		a.homes.setEdge(q.ID, queueHome{edge: edge, user: q.User, at: n}, n)
	case len(c.Batch.Requests) > 0:
		a.homes.countLocal(q.User, -1) // hostLocally counts it
		a.hostLocally([]*realm.Queue{q}, n, func(int) realm.Seq { return n })
	default: // earlier reports of its session actor do not count for this queue
		k := delivery.ActorOf(q.User)
		a.unacked.newestQueue[k], a.unacked.acked[k] = n, min(a.unacked.acked[k], n)
	}
}

// queueClosed removes the home of a closed queue.
func (a *realmActor) queueClosed(id realm.QueueID, u realm.UserID) {
	if _, remote := a.homes.edges[id]; remote {
		a.homes.deleteEdge(id, u)
	} else {
		a.homes.countLocal(u, -1)
	}
}

// withLocalQueues returns the publications that the session actors of this node need. If edges host all queues of the
// realm, these are only the notices for the session actors themselves, so events cause no work for each recipient on
// the owner.
func (a *realmActor) withLocalQueues(publications []realm.Publication) []realm.Publication {
	if len(a.homes.edges) == 0 || a.homes.total > 0 {
		return publications
	}
	var out []realm.Publication
	for _, t := range publications {
		if !slices.ContainsFunc(t.Notices, delivery.Internal) {
			continue
		}
		t.Notices = slices.DeleteFunc(slices.Clone(t.Notices), func(n realm.Notice) bool { return !delivery.Internal(n) })
		out = append(out, t)
	}
	return out
}

// hostLocally moves queues from edges to this node and opens them with their unacked events. acked returns, for a
// session actor, the fact up to which all of its queues in the list have acknowledged everything. published is the
// newest fact whose events were released.
func (a *realmActor) hostLocally(list []*realm.Queue, published realm.Seq, acked func(sessionActor int) realm.Seq) {
	u := &a.unacked
	var queues [SessionActors][]realm.Queue
	var users ids.Set
	for _, q := range list {
		k := delivery.ActorOf(q.User)
		queues[k] = append(queues[k], *q)
		users.Add(int64(q.User))
		a.homes.setLocal(q.ID, q.User)
	}
	low := delivery.NoQueue
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
	parts, _ := delivery.Split(publications)
	for k := range queues {
		if len(queues[k]) == 0 {
			continue
		}
		u.acked[k] = min(u.acked[k], acked(k))
		u.generation++
		u.sentGenerations[k] = u.generation
		a.handle.sessions.SendInOrder(k, &delivery.OpenLocal{Queues: queues[k], Publications: parts[k], Seq: published,
			Generation: u.generation})
	}
}

// indexAfter returns the index of the first unacked event after a fact.
func (u *unackedEvents) indexAfter(seq realm.Seq) int {
	return sort.Search(len(u.list), func(i int) bool { return u.list[i].Seq > seq })
}

// ackedBy returns the fact up to which a client has acknowledged everything if it polls with this last_event_id.
func ackedBy(q *realm.Queue, last int64) realm.Seq {
	if last < 0 {
		return q.At
	}
	return q.At + realm.Seq(last>>8) - 1 // the fact of that id may have further events
}

// handleAdoptRequest makes an edge the home of a queue, after the facts that the edge has applied are published here,
// too.
func (a *realmActor) handleAdoptRequest(m *adoptRequest) {
	switch {
	case a.reloading || a.standby || m.edge.lost.Load():
		m.answer(Adopted{}, realm.ErrNotOwner)
	case m.asked.Through > a.durable && len(a.homes.waiting) >= MaxInFlight:
		m.answer(Adopted{}, delivery.ErrOverloaded)
	case m.asked.Through > a.durable:
		a.homes.waiting = append(a.homes.waiting, m)
	default:
		m.answer(a.adoptFor(m.edge, &m.asked), nil)
	}
}

// answerAdoptions answers the edges that wait for published facts.
func (a *realmActor) answerAdoptions() {
	a.homes.waiting = slices.DeleteFunc(a.homes.waiting, func(m *adoptRequest) bool {
		if m.asked.Through > a.durable && !a.reloading {
			return false
		}
		a.handleAdoptRequest(m)
		return true
	})
	polled := a.homes.polled
	a.homes.polled = nil
	for _, m := range polled {
		a.adoptQueue(m)
	}
}

// adoptFor makes an edge the home of a queue and returns the events that its client may not have acknowledged. A
// request for a further part of the events does not change the home, because another edge may have adopted the queue
// since the first part.
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
			a.dropFromHome(q)
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

// dropFromHome makes the present home of a queue drop it. A poll that waits there is answered with no events.
func (a *realmActor) dropFromHome(q *realm.Queue) {
	ref := delivery.QueueRef{User: q.User, ID: q.ID}
	if home, remote := a.homes.edges[q.ID]; remote {
		x := a.homes.acksOf(home.edge)
		if x.dropped == nil {
			x.dropped = map[realm.QueueID]bool{}
		}
		x.dropped[q.ID] = true
		home.edge.link.DropQueues(a.realm.ID(), []delivery.DroppedQueue{{QueueRef: ref, Number: home.number}})
		return
	}
	a.handle.sessions.SendInOrder(delivery.ActorOf(q.User), delivery.Forget{{QueueRef: ref}})
}

// adoptQueue moves a queue from an edge to this node, because its client polls this node. It waits until the facts
// whose events the client has received are published here, too.
func (a *realmActor) adoptQueue(m delivery.AdoptQueue) {
	if a.standby {
		a.replicaClients.adoptQueue(m)
		return
	}
	q := a.realm.FindQueue(m.Queue.ID)
	found := q != nil && q.User == m.Queue.User
	if found {
		if seen := ackedBy(q, m.Last) + 1; !a.reloading && seen > a.durable && seen <= a.realm.Seq() {
			a.homes.polled = append(a.homes.polled, m)
			return
		}
		if _, remote := a.homes.edges[q.ID]; remote {
			acked := ackedBy(q, m.Last)
			a.dropFromHome(q)
			a.hostLocally([]*realm.Queue{q}, a.durable, func(int) realm.Seq { return acked })
			a.srv.Metrics.QueuesAdopted.Add(1)
		}
	}
	x := &delivery.FinishAdoption{Queue: m.Queue, Seq: a.durable, Final: !a.reloading}
	if !found {
		x.Err = realm.ErrBadQueue(m.Queue.ID)
	}
	a.handle.sessions.SendInOrder(delivery.ActorOf(m.Queue.User), x)
}

// handleHostedReport records which queues an edge hosts.
func (a *realmActor) handleHostedReport(m hostedReport) {
	if m.edge.lost.Load() || a.standby {
		return
	}
	h := &a.homes
	acks := h.acksOf(m.edge)
	if acks.kept == nil {
		acks.kept = map[realm.QueueID]bool{}
	}
	var elsewhere []delivery.DroppedQueue
	var here [SessionActors][]delivery.DroppedQueue
	for _, x := range m.kept.Queues {
		q := a.realm.FindQueue(x.ID)
		if q == nil || q.User != x.User {
			continue // closed: the edge will apply the fact of that
		}
		k := delivery.ActorOf(x.User)
		acks.kept[x.ID] = true
		switch home, remote := h.edges[x.ID]; {
		case !remote && !acks.dropped[x.ID]:
			here[k] = append(here[k], delivery.DroppedQueue{QueueRef: x})
			h.setEdge(x.ID, queueHome{edge: m.edge, user: x.User}, a.unacked.acked[k])
			h.edges[x.ID] = queueHome{edge: m.edge, user: x.User, number: m.kept.Number}
		case !remote || home.edge != m.edge:
			elsewhere = append(elsewhere, delivery.DroppedQueue{QueueRef: x, Number: m.kept.Number})
		}
	}
	for k, list := range here {
		if len(list) > 0 {
			a.handle.sessions.SendInOrder(k, delivery.Forget(list))
		}
	}
	for part := range slices.Chunk(elsewhere, MaxHostedQueues) {
		m.edge.link.DropQueues(a.realm.ID(), part)
	}
	if m.kept.More {
		return
	}
	kept := acks.kept
	acks.kept = nil
	maps.DeleteFunc(acks.dropped, func(id realm.QueueID, _ bool) bool { return !kept[id] })
	a.hostAllLocally(m.edge, func(id realm.QueueID, x queueHome) bool {
		return !kept[id] && x.at <= m.kept.Through && x.number <= m.kept.Number
	})
}

// hostAllLocally moves the queues of an edge for which match returns true to this node.
func (a *realmActor) hostAllLocally(e *Edge, match func(realm.QueueID, queueHome) bool) {
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
	a.hostLocally(list, a.durable, func(sessionActor int) realm.Seq { return acks.acked[sessionActor] })
	a.srv.log.Info("queues of an edge moved to the owner", "realm", a.realm.ID(), "edge", e.key, "queues", len(list))
}

// handleEdgeDisconnected moves the queues of a disconnected edge to this node, until their clients poll another node.
func (a *realmActor) handleEdgeDisconnected(e *Edge) {
	if a.homes.acks[e] == nil {
		return
	}
	a.hostAllLocally(e, func(realm.QueueID, queueHome) bool { return true })
	delete(a.homes.acks, e)
	for id, home := range a.homes.edges { // of queues whose closing is not on disk yet
		if home.edge == e {
			a.homes.setLocal(id, home.user)
		}
	}
	a.dropUnacked()
}

// handleEdgeAckReport drops the events that no queue needs any longer. It ignores the part of a report about a session
// actor that is older than the actor's newest queue.
func (a *realmActor) handleEdgeAckReport(m edgeAckReport) {
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

// handleCloseRequest closes a queue at the request of the edge that hosts it.
func (a *realmActor) handleCloseRequest(m closeRequest) {
	if a.reloading || a.standby || a.homes.edges[m.queue].edge != m.edge {
		return
	}
	a.runSystemCommand(func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: m.queue}.Decide(t) })
}

package delivery

import (
	"maps"
	"slices"
	"sort"

	"parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/actors/stream"
)

// Messages about the event queues that other nodes host.
type (
	// AdoptRequest makes a node the home of a queue. Answer is called once and must not block.
	AdoptRequest struct {
		Home   Home
		Asked  Adoption
		Answer func(Adopted, error)
	}
	// HostedReport says which queues a node hosts.
	HostedReport struct {
		Home Home
		Kept HostedQueues
	}
	// AckedByHome has the acknowledgements of the clients of a node.
	AckedByHome struct {
		Home Home
		Acks *QueueAcks
	}
	// CloseRequest asks to close a queue, if the node is its home.
	CloseRequest struct {
		Home  Home
		Queue realm.QueueID
	}
	// HomeLost says that the connection to a node has ended.
	HomeLost struct{ Home Home }
	// CheckHomes asks for the state of a user's queues that other nodes host.
	CheckHomes struct {
		User  realm.UserID
		Seq   realm.Seq
		Reply chan State
	}
	chargeStep struct{ round uint64 } // charges further facts to accounts
)

// OwnerMessage is a message to Main about queues, for the owner of the realm.
type OwnerMessage interface{ HandleOwned(*Owned) }

// homes records the home of each event queue of a realm: another node, or the session actors of this node. It is not
// stored: a new owner hosts every queue itself until the other nodes report which queues they host. Its fields belong
// to the realm actor.
type homes struct {
	remote  map[realm.QueueID]queueHome // the other queues are hosted by this node
	byUser  map[realm.UserID][]realm.QueueID
	acks    map[Home]*homeAcks // of every node that has hosted a queue
	local   [SessionActors]int // queues that this node hosts, for each session actor
	total   int                // sum of local
	waiting []*AdoptRequest    // for their facts to be published
	polled  []AdoptQueue       // polls of this node that also wait for published facts
}

// queueHome is the node that hosts a queue.
type queueHome struct {
	node   Home
	user   realm.UserID
	at     realm.Seq // of its registration, if that was a request of the node, and else 0
	number uint64    // of its adoption, or 0
}

// homeAcks has the acknowledgements of the queues of one node.
type homeAcks struct {
	acked   [SessionActors]realm.Seq // fact that every queue of the session actor has acknowledged
	newest  [SessionActors]realm.Seq // newest registration
	adopted [SessionActors]uint64    // newest adoption
	kept    map[realm.QueueID]bool   // of the parts of a list that is arriving
	// Queues that the node was asked to drop. A list that still has such a queue is older than the request.
	dropped map[realm.QueueID]bool
}

// acksOf returns the acknowledgements of another node's queues and creates the entry if needed.
func (h *homes) acksOf(e Home) *homeAcks {
	x := h.acks[e]
	if x == nil {
		x = &homeAcks{}
		for k := range x.acked {
			x.acked[k] = NoQueue
		}
		if h.acks == nil {
			h.acks = map[Home]*homeAcks{}
		}
		h.acks[e] = x
	}
	return x
}

// setRemote records that another node hosts a queue whose client has acknowledged everything up to a fact.
func (h *homes) setRemote(id realm.QueueID, home queueHome, acked realm.Seq) {
	k, x := ActorOf(home.user), h.acksOf(home.node)
	x.acked[k] = min(x.acked[k], acked)
	x.newest[k], x.adopted[k] = max(x.newest[k], home.at), max(x.adopted[k], home.number)
	if h.remote == nil {
		h.remote = map[realm.QueueID]queueHome{}
	}
	if _, before := h.remote[id]; !before {
		h.countLocal(home.user, -1)
		if h.byUser == nil {
			h.byUser = map[realm.UserID][]realm.QueueID{}
		}
		h.byUser[home.user] = append(h.byUser[home.user], id)
	}
	h.remote[id] = home
}

// setLocal records that a queue has moved from another node to this node.
func (h *homes) setLocal(id realm.QueueID, u realm.UserID) {
	h.deleteRemote(id, u)
	h.countLocal(u, 1)
}

// deleteRemote removes the record that another node hosts a queue.
func (h *homes) deleteRemote(id realm.QueueID, u realm.UserID) {
	if _, remote := h.remote[id]; !remote {
		return
	}
	delete(h.remote, id)
	rest := slices.DeleteFunc(h.byUser[u], func(x realm.QueueID) bool { return x == id })
	if h.byUser[u] = rest; len(rest) == 0 {
		delete(h.byUser, u)
	}
}

// countLocal adds n to the number of queues that this node hosts: 1 or -1.
func (h *homes) countLocal(u realm.UserID, n int) {
	h.local[ActorOf(u)] += n
	h.total += n
}

// lowest returns the fact up to which the queues of one session actor have acknowledged everything on all other nodes.
func (h *homes) lowest(sessionActor int) realm.Seq {
	low := NoQueue
	for _, x := range h.acks {
		low = min(low, x.acked[sessionActor])
	}
	return low
}

// queueOpened records the home of a queue whose registration is on disk. If the node that asked for it has
// disconnected, this node hosts the queue.
func (o *Owned) queueOpened(q *realm.Queue, c *stream.Committed, n realm.Seq) {
	o.homes.countLocal(q.User, 1)
	node := o.all.env.Node.Home(c.Sender)
	switch {
	case node != nil && !node.Lost():
		o.homes.setRemote(q.ID, queueHome{node: node, user: q.User, at: n}, n)
	case len(c.Batch.Requests) > 0:
		o.homes.countLocal(q.User, -1) // hostLocally counts it
		o.hostLocally([]*realm.Queue{q}, n, func(int) realm.Seq { return n })
	default:
		o.ignoreReportsBefore(q.User, n)
	}
}

// queueClosed removes the home of a closed queue.
func (o *Owned) queueClosed(id realm.QueueID, u realm.UserID) {
	if _, remote := o.homes.remote[id]; remote {
		o.homes.deleteRemote(id, u)
	} else {
		o.homes.countLocal(u, -1)
	}
}

// WithLocalQueues returns the publications that the session actors of this node need. If other nodes host all queues of
// the realm, these are only the notices for the session actors themselves, so events cause no work for each recipient
// on the owner.
func (o *Owned) WithLocalQueues(publications []realm.Publication) []realm.Publication {
	if len(o.homes.remote) == 0 || o.homes.total > 0 {
		return publications
	}
	var out []realm.Publication
	for _, t := range publications {
		if !slices.ContainsFunc(t.Notices, Internal) {
			continue
		}
		t.Notices = slices.DeleteFunc(slices.Clone(t.Notices), func(n realm.Notice) bool { return !Internal(n) })
		out = append(out, t)
	}
	return out
}

// hostLocally moves queues from other nodes to this node and opens them with their unacked events. acked returns, for a
// session actor, the fact up to which all of its queues in the list have acknowledged everything. published is the
// newest fact whose events were released.
func (o *Owned) hostLocally(list []*realm.Queue, published realm.Seq, acked func(sessionActor int) realm.Seq) {
	u := &o.unacked
	var queues [SessionActors][]realm.Queue
	var users ids.Set
	for _, q := range list {
		k := ActorOf(q.User)
		queues[k] = append(queues[k], *q)
		users.Add(int64(q.User))
		o.homes.setLocal(q.ID, q.User)
	}
	low := NoQueue
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
	parts, _ := Split(publications)
	for k := range queues {
		if len(queues[k]) == 0 {
			continue
		}
		u.acked[k] = min(u.acked[k], acked(k))
		o.all.SendInOrder(k, &OpenLocal{Queues: queues[k], Publications: parts[k], Seq: published,
			Opening: o.all.nextOpening(k)})
	}
}

// indexAfter returns the index of the first unacked event after a fact.
func (u *unacked) indexAfter(seq realm.Seq) int {
	return sort.Search(len(u.list), func(i int) bool { return u.list[i].Seq > seq })
}

// ackedBy returns the fact up to which a client has acknowledged everything if it polls with this last_event_id.
func ackedBy(q *realm.Queue, last int64) realm.Seq {
	if last < 0 {
		return q.At
	}
	return q.At + realm.Seq(last>>8) - 1 // the fact of that id may have further events
}

// HandleOwned makes another node the home of a queue, once the facts that it has applied are published here, too.
func (m *AdoptRequest) HandleOwned(o *Owned) {
	switch {
	case !o.main.Owns() || m.Home.Lost():
		m.Answer(Adopted{}, realm.ErrNotOwner)
	case m.Asked.Through > o.main.Durable() && len(o.homes.waiting) >= MaxWaitingAdoptions:
		m.Answer(Adopted{}, ErrOverloaded)
	case m.Asked.Through > o.main.Durable():
		o.homes.waiting = append(o.homes.waiting, m)
	default:
		m.Answer(o.adoptFor(m.Home, &m.Asked), nil)
	}
}

// AnswerAdoptions answers the other nodes that wait for published facts.
func (o *Owned) AnswerAdoptions() {
	if len(o.homes.waiting)+len(o.homes.polled) == 0 {
		return
	}
	o.homes.waiting = slices.DeleteFunc(o.homes.waiting, func(m *AdoptRequest) bool {
		if m.Asked.Through > o.main.Durable() && o.main.Settled() {
			return false
		}
		m.HandleOwned(o)
		return true
	})
	polled := o.homes.polled
	o.homes.polled = nil
	for _, m := range polled {
		m.HandleOwned(o)
	}
}

// adoptFor makes another node the home of a queue and returns the events that its client may not have acknowledged. A
// request for a further part of the events does not change the home, because another node may have adopted the queue
// since the first part.
func (o *Owned) adoptFor(e Home, asked *Adoption) Adopted {
	q := o.main.Realm().FindQueue(asked.Queue.ID)
	if q == nil || q.User != asked.Queue.User {
		return Adopted{Seq: o.main.Durable()}
	}
	x := Adopted{Found: true, Seq: o.main.Durable(), Through: asked.Through}
	acked := ackedBy(q, asked.Last)
	switch home, remote := o.homes.remote[q.ID]; {
	case asked.Through == 0:
		x.Seq = max(x.Seq, q.At)
		return x
	case asked.After > 0 && (!remote || home.node != e || home.number != asked.Number):
		x.Moved = true
		return x
	case asked.After > 0:
		acked = max(acked, asked.After)
	default:
		if home.node != e {
			o.dropFromHome(q)
		}
		delete(o.homes.acksOf(e).dropped, q.ID)
		o.homes.setRemote(q.ID, queueHome{node: e, user: q.User, number: asked.Number}, acked)
		o.all.env.Metrics.QueuesAdopted.Add(1)
	}
	bytes := int64(0)
	for _, t := range o.unacked.list[o.unacked.indexAfter(acked):] {
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
func (o *Owned) dropFromHome(q *realm.Queue) {
	ref := QueueRef{User: q.User, ID: q.ID}
	if home, remote := o.homes.remote[q.ID]; remote {
		x := o.homes.acksOf(home.node)
		if x.dropped == nil {
			x.dropped = map[realm.QueueID]bool{}
		}
		x.dropped[q.ID] = true
		home.node.DropQueues(o.all.Realm, []DroppedQueue{{QueueRef: ref, Number: home.number}})
		return
	}
	o.all.SendInOrder(ActorOf(q.User), Forget{{QueueRef: ref}})
}

// HandleOwned moves a queue from another node to this node, because its client polls this node. It waits until the
// facts whose events the client has received are published here, too.
func (m AdoptQueue) HandleOwned(o *Owned) {
	q := o.main.Realm().FindQueue(m.Queue.ID)
	found := q != nil && q.User == m.Queue.User
	if found {
		if seen := ackedBy(q, m.Last) + 1; o.main.Settled() && seen > o.main.Durable() && seen <= o.main.Realm().Seq() {
			o.homes.polled = append(o.homes.polled, m)
			return
		}
		if _, remote := o.homes.remote[q.ID]; remote {
			acked := ackedBy(q, m.Last)
			o.dropFromHome(q)
			o.hostLocally([]*realm.Queue{q}, o.main.Durable(), func(int) realm.Seq { return acked })
			o.all.env.Metrics.QueuesAdopted.Add(1)
		}
	}
	x := &FinishAdoption{Queue: m.Queue, Seq: o.main.Durable(), Final: o.main.Settled()}
	if !found {
		x.Err = realm.ErrBadQueue(m.Queue.ID)
	}
	o.all.SendInOrder(ActorOf(m.Queue.User), x)
}

// HandleOwned records which queues another node hosts.
func (m HostedReport) HandleOwned(o *Owned) {
	if m.Home.Lost() {
		return
	}
	h := &o.homes
	acks := h.acksOf(m.Home)
	if acks.kept == nil {
		acks.kept = map[realm.QueueID]bool{}
	}
	var elsewhere []DroppedQueue
	var here [SessionActors][]DroppedQueue
	for _, x := range m.Kept.Queues {
		q := o.main.Realm().FindQueue(x.ID)
		if q == nil || q.User != x.User {
			continue // closed: the node will apply the fact of that
		}
		k := ActorOf(x.User)
		acks.kept[x.ID] = true
		switch home, remote := h.remote[x.ID]; {
		case !remote && !acks.dropped[x.ID]:
			here[k] = append(here[k], DroppedQueue{QueueRef: x})
			h.setRemote(x.ID, queueHome{node: m.Home, user: x.User}, o.unacked.acked[k])
			h.remote[x.ID] = queueHome{node: m.Home, user: x.User, number: m.Kept.Number}
		case !remote || home.node != m.Home:
			elsewhere = append(elsewhere, DroppedQueue{QueueRef: x, Number: m.Kept.Number})
		}
	}
	for k, list := range here {
		if len(list) > 0 {
			o.all.SendInOrder(k, Forget(list))
		}
	}
	for part := range slices.Chunk(elsewhere, MaxHostedQueues) {
		m.Home.DropQueues(o.all.Realm, part)
	}
	if m.Kept.More {
		return
	}
	kept := acks.kept
	acks.kept = nil
	maps.DeleteFunc(acks.dropped, func(id realm.QueueID, _ bool) bool { return !kept[id] })
	o.hostAllLocally(m.Home, func(id realm.QueueID, x queueHome) bool {
		return !kept[id] && x.at <= m.Kept.Through && x.number <= m.Kept.Number
	})
}

// hostAllLocally moves the queues of another node for which match returns true to this node.
func (o *Owned) hostAllLocally(e Home, match func(realm.QueueID, queueHome) bool) {
	var list []*realm.Queue
	for id, home := range o.homes.remote {
		if home.node == e && match(id, home) {
			if q := o.main.Realm().FindQueue(id); q != nil {
				list = append(list, q)
			}
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(x, y *realm.Queue) int { return int(x.At - y.At) })
	acks := o.homes.acksOf(e)
	o.hostLocally(list, o.main.Durable(), func(sessionActor int) realm.Seq { return acks.acked[sessionActor] })
	o.all.env.Log.Info("queues of an edge moved to the owner", "realm", o.all.Realm, "edge", e.Key(), "queues",
		len(list))
}

// HandleOwned moves the queues of a disconnected node to this node, until their clients poll another node.
func (m HomeLost) HandleOwned(o *Owned) {
	e := m.Home
	if o.homes.acks[e] == nil {
		return
	}
	o.hostAllLocally(e, func(realm.QueueID, queueHome) bool { return true })
	delete(o.homes.acks, e)
	for id, home := range o.homes.remote { // of queues whose closing is not on disk yet
		if home.node == e {
			o.homes.setLocal(id, home.user)
		}
	}
	o.DropAcknowledged()
}

// HandleOwned drops the events that no queue needs any longer. It ignores the part of a report about a session
// actor that is older than the actor's newest queue.
func (m AckedByHome) HandleOwned(o *Owned) {
	x := o.homes.acks[m.Home]
	if x == nil || m.Home.Lost() {
		return
	}
	for k := range x.acked {
		if m.Acks.Seen[k] >= x.newest[k] && m.Acks.Adopted[k] >= x.adopted[k] {
			x.acked[k] = max(x.acked[k], m.Acks.Acked[k])
		}
	}
	o.DropAcknowledged()
}

// HandleOwned closes a queue at the request of the node that hosts it.
func (m CloseRequest) HandleOwned(o *Owned) {
	if !o.main.Owns() || o.homes.remote[m.Queue].node != m.Home {
		return
	}
	o.main.Run(func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: m.Queue}.Decide(t) })
}

// HandleOwned answers from the user's queues that other nodes host. These close a queue whose client does not poll.
// They report the acknowledgements of all queues of a session actor together, so a client may have received more.
func (m *CheckHomes) HandleOwned(o *Owned) {
	var x State
	for _, id := range o.homes.byUser[m.User] {
		if q := o.main.Realm().FindQueue(id); q != nil && q.WantsEvent("message") {
			x.Polling = true
			x.Received = x.Received || o.homes.acks[o.homes.remote[id].node].acked[ActorOf(m.User)] >= m.Seq
		}
	}
	m.Reply <- x
}

func (m chargeStep) HandleOwned(o *Owned) {
	if o.usage.running && m.round == o.usage.round {
		o.chargeFacts()
	}
}

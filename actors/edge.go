package actors

import (
	"fmt"
	"sync/atomic"

	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/realm"
)

// Limits of the messages between an edge and the owner about event queues, so that each message fits into a frame of
// the link.
const (
	// MaxHostedQueues is how many queues one HostedQueues has: about 100 kB.
	MaxHostedQueues = 2000
	// MaxAdoptedBytes limits the events in one Adopted, by their estimated memory. A larger event is sent alone.
	MaxAdoptedBytes = 128 << 10
	// MaxPresenceReports is how many users one batch of presence has: about 40 kB.
	MaxPresenceReports = 2000
)

// Adoption asks the owner of a realm to move an event queue to the edge that asks, because the client of the queue
// polls this edge. The node that hosts a queue is called its home.
type Adoption struct {
	Queue delivery.QueueRef
	Last  int64 // last_event_id of the client
	// After is 0 for the first part of the events, and then the Through of the previous Adopted: the owner sends only
	// the events after that fact.
	After realm.Seq
	// Through is the last fact that the edge has applied; the edge gets the events of later facts from its replica. 0:
	// the replica does not know the queue yet. Then the edge only asks whether the queue exists, and its home does not
	// change.
	Through realm.Seq
	Number  uint64 // counts the adoptions of the edge; see QueueAcks
}

// Adopted answers an Adoption.
type Adopted struct {
	Found bool      // false: the realm has no such queue, or it is of another user
	Moved bool      // another node has adopted the queue since the first part of the events was sent
	Seq   realm.Seq // last fact on disk
	// Events are the publications up to Through that the client may not have acknowledged, ordered by fact. Their only
	// audience is the queue's user.
	Events  []realm.Publication
	Through realm.Seq
	More    bool // there are more events up to Adoption.Through
	// Texts are the message texts of these events, at most MaxAdoptedBytes. The edge fetches other texts when it needs
	// them.
	Texts []realm.TextWrite
}

// QueueAcks has, for each session actor of an edge, the facts up to which its clients have acknowledged all events of a
// realm. The owner stores the unacked events and drops those that no edge needs.
type QueueAcks struct {
	// Acked is the fact up to which every queue of the session actor has acknowledged everything; the largest number if
	// there is no queue. Seen is the newest fact that it has received, and Adopted the number of the newest Adoption
	// that it counts: the owner ignores reports older than a registration or an adoption.
	Acked, Seen [SessionActors]realm.Seq
	Adopted     [SessionActors]uint64
}

// HostedQueues is the list of all queues of a realm that an edge hosts. It is sent in parts of at most MaxHostedQueues.
type HostedQueues struct {
	Queues []delivery.QueueRef
	More   bool // further parts follow
	// The list has every queue that was registered up to fact Through or adopted up to Number.
	Through realm.Seq
	Number  uint64
}

// EdgeLink sends the owner's requests about event queues to one edge. Realm actors call its methods, which must not
// block. The calls of a method must arrive in order. If the send buffer of a link is full, the link breaks and the edge
// connects again.
type EdgeLink interface {
	// DropQueues asks the edge to drop queues that have moved to other nodes; the edge calls Server.DropQueues. The
	// list has at most MaxHostedQueues queues.
	DropQueues(realm.ID, []delivery.DroppedQueue)
	// EvictQueues asks the edge to close the queues whose clients have not acknowledged all facts before the given one;
	// the edge calls Server.EvictQueues.
	EvictQueues(realm.ID, realm.Seq)
}

// Edge is the owner's side of a connection from an edge; the edge's side is an OwnerLink. Its methods may be called by
// any goroutine and do not block. They must be called in the order in which the edge has sent its messages.
type Edge struct {
	srv  *Server
	link EdgeLink
	key  string
	lost atomic.Bool
}

// ConnectEdge registers a new connection from the edge with a name. Every connection must be ended with Disconnect,
// also when the same edge connects again, because a restarted process has none of the queues of the one before.
func (srv *Server) ConnectEdge(name string, link EdgeLink) *Edge {
	e := &Edge{srv: srv, link: link, key: fmt.Sprintf("%s#%d", name, srv.edgeCount.Add(1))}
	srv.edges.Store(e.key, e)
	return e
}

// Key returns the unique key of the connection, for realm.Caller.Edge: the edge hosts the queues that requests with
// this key open.
func (e *Edge) Key() string { return e.key }

// Disconnect ends the connection. The owner hosts the queues of the edge until another node adopts them, or until the
// same edge connects again and reports that it still hosts them.
func (e *Edge) Disconnect() {
	if e.lost.Swap(true) {
		return
	}
	e.srv.edges.Delete(e.key)
	e.srv.eachRealm(func(r *realmHandle) { e.srv.runtime.Send(r.pid, edgeDisconnected{e}) })
}

// edgeOf returns the connection with a key, or nil if it has ended.
func (srv *Server) edgeOf(key string) *Edge {
	if key == "" {
		return nil
	}
	e, _ := srv.edges.Load(key)
	x, _ := e.(*Edge)
	return x
}

// toRealm sends a message to the realm actor of this node. It returns false if there is none.
func (e *Edge) toRealm(id realm.ID, message any) bool {
	r := e.srv.find(id)
	if r == nil || e.lost.Load() {
		return false
	}
	r.hasEdges.Store(true)
	e.srv.runtime.Send(r.pid, message)
	return true
}

// AdoptQueue makes the edge the home of a queue and asks the former home to drop it. It calls answer with the events
// that the client may not have acknowledged: once, from any goroutine; answer must not block. The error is a
// realm.ErrNotOwner if the realm is not open here or is being loaded.
func (e *Edge) AdoptQueue(id realm.ID, a Adoption, answer func(Adopted, error)) {
	withTexts := func(x Adopted, err error) {
		if len(x.Events) == 0 {
			answer(x, err)
			return
		}
		e.srv.runtime.RunInBackground(func() { // texts can be on disk
			x.Texts = e.srv.textsOf(id, x.Events)
			answer(x, err)
		})
	}
	if !e.toRealm(id, &adoptRequest{e, a, withTexts}) {
		answer(Adopted{}, realm.ErrNotOwner)
	}
}

// textsOf returns the message texts of events, up to MaxAdoptedBytes. It skips texts that cannot be read.
func (srv *Server) textsOf(id realm.ID, publications []realm.Publication) (list []realm.TextWrite) {
	bytes := 0
	for _, t := range publications {
		for _, n := range t.Notices {
			for _, ref := range realm.EventTexts(n.Event) {
				b, ok, err := srv.Text(id, ref)
				if err != nil || !ok {
					continue
				}
				if bytes += len(b.Text) + len(b.HTML); bytes > MaxAdoptedBytes {
					return list
				}
				list = append(list, realm.TextWrite{Ref: ref, Body: &b})
			}
		}
	}
	return list
}

// ReportQueues handles the list of the queues that the edge hosts. The owner asks the edge to drop queues that have
// another home. The owner itself hosts queues that it has assigned to the edge and that are not in the list.
func (e *Edge) ReportQueues(id realm.ID, k HostedQueues) { e.toRealm(id, hostedReport{e, k}) }

// ReportAcks handles the acknowledgements of the clients of the edge.
func (e *Edge) ReportAcks(id realm.ID, a QueueAcks) { e.toRealm(id, edgeAckReport{e, &a}) }

// CloseQueue closes a queue whose client has not come back to the edge, if the edge is its home.
func (e *Edge) CloseQueue(id realm.ID, q realm.QueueID) { e.toRealm(id, closeRequest{e, q}) }

// ReportPresence merges the presence that the edge's clients have reported; see Server.MergePresence.
func (e *Edge) ReportPresence(id realm.ID, list []presence.Report) { e.srv.MergePresence(id, list) }

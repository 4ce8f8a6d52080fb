package actors

import (
	"fmt"
	"sync/atomic"

	"parley/actors/presence"
	"parley/actors/realm"
)

// Limits of what an edge and the owner send each other about event queues, so that each message fits a link.
const (
	// MaxKeptQueues is how many queues one KeptQueues has: about 100 kB.
	MaxKeptQueues = 2000
	// MaxAdoptedBytes limits the events in one Adopted, by the estimate of their memory. A single larger event is sent
	// alone.
	MaxAdoptedBytes = 128 << 10
	// MaxPresenceReports is how many users one batch of presence has: about 40 kB.
	MaxPresenceReports = 2000
)

// Adoption asks the owner of a realm for an event queue: its client polls the edge that asks, so that edge is the home
// of the queue from now on.
type Adoption struct {
	Queue QueueRef
	Last  int64 // last_event_id of the client
	// After is 0, or the Through of an Adopted that had More: only the events after that fact are wanted.
	After realm.Seq
	// Through is the last fact that the edge has applied: it gets the events after that one with the facts. 0: the edge
	// does not know the queue yet. It only asks whether the queue exists, and the home stays as it is.
	Through realm.Seq
	Number  uint64 // counts the adoptions of the edge; see QueueAcks
}

// Adopted answers an Adoption.
type Adopted struct {
	Found bool      // false: the realm has no such queue, or it is of another user
	Moved bool      // another node has adopted the queue since the first part of the events was sent
	Seq   realm.Seq // last fact on disk
	// Events are the events of the queue's user that the client may not have acknowledged, up to Through, by fact and
	// once for each fact. Their audience is only this user.
	Events  []realm.Publication
	Through realm.Seq
	More    bool // there are more events up to Adoption.Through
	// Texts are the texts of these events, at most MaxAdoptedBytes of them. The edge reads others when it needs them.
	Texts []realm.TextWrite
}

// QueueAcks says how far the clients of an edge have acknowledged the facts of a realm, for each session actor. Unacked
// events are stored by the owner, and it drops those that no edge needs.
type QueueAcks struct {
	// Acked is the fact up to which every queue of the session actor has acknowledged everything; the largest number if
	// there is no queue. Seen is the newest fact that it has received, and Adopted the number of the newest Adoption
	// that it counts: the owner ignores reports older than a registration or an adoption.
	Acked, Seen [Shards]realm.Seq
	Adopted     [Shards]uint64
}

// KeptQueues is the list of all queues of a realm that an edge keeps. It arrives in parts of at most MaxKeptQueues.
type KeptQueues struct {
	Queues []QueueRef
	More   bool // further parts follow
	// The list is complete for the queues that were registered up to fact Through, and adopted up to Number.
	Through realm.Seq
	Number  uint64
}

// DroppedQueue is a queue that an edge has kept and another node keeps now.
type DroppedQueue struct {
	QueueRef
	// Number is that of the newest adoption by the edge which is ended by this: the edge may have adopted the queue
	// again.
	Number uint64
}

// EdgeLink passes to one edge what the owner of a realm wants of its event queues. Its methods are called by realm
// actors and must not block. Later calls of a method must arrive later. A link that has no room breaks, and
// the edge connects again.
type EdgeLink interface {
	// DropQueues says that other nodes are the homes of these queues; the edge calls Server.DropQueues. The list has at
	// most MaxKeptQueues queues.
	DropQueues(realm.ID, []DroppedQueue)
	// EvictQueues asks to close the queues that have not acknowledged the facts before one; the edge calls
	// Server.EvictQueues.
	EvictQueues(realm.ID, realm.Seq)
}

// Edge is a connection from an edge, as the owner of realms has it: the other end of an OwnerLink. Its methods may be
// called by any goroutine and do not block. The calls of one edge must be made in the order in which the edge made
// them.
type Edge struct {
	srv  *Server
	link EdgeLink
	key  string
	lost atomic.Bool
}

// ConnectEdge begins a connection from the edge with a name. It must be ended with Disconnect, also when the same edge
// connects again: the queues of one process are not those of the next.
func (srv *Server) ConnectEdge(name string, link EdgeLink) *Edge {
	e := &Edge{srv: srv, link: link, key: fmt.Sprintf("%s#%d", name, srv.edgeCount.Add(1))}
	srv.edges.Store(e.key, e)
	return e
}

// Key names the connection, for realm.Caller.Edge: a queue that a request with this key opens is kept by the edge. Two
// connections never have the same key.
func (e *Edge) Key() string { return e.key }

// Disconnect ends the connection. The owner keeps the queues of the edge until another node adopts them, or the same
// edge connects again and says that it has them.
func (e *Edge) Disconnect() {
	if e.lost.Swap(true) {
		return
	}
	e.srv.edges.Delete(e.key)
	e.srv.eachRealm(func(r *realmHandle) { e.srv.runtime.send(r.pid, edgeLost{e}) })
}

// edgeOf returns the connection with a key, or nil if there is none any more.
func (srv *Server) edgeOf(key string) *Edge {
	if key == "" {
		return nil
	}
	e, _ := srv.edges.Load(key)
	x, _ := e.(*Edge)
	return x
}

// toRealm passes a message to a realm actor of this node. It reports false if there is none.
func (e *Edge) toRealm(id realm.ID, message any) bool {
	r := e.srv.find(id)
	if r == nil || e.lost.Load() {
		return false
	}
	r.hasEdges.Store(true)
	e.srv.runtime.send(r.pid, message)
	return true
}

// AdoptQueue makes the edge the home of a queue, tells the former home to drop it, and passes the events that its
// client may not have acknowledged to answer. answer is called once, by any goroutine, and must not block. The error is
// a realm.ErrNotOwner if the realm is not open here or is being loaded.
func (e *Edge) AdoptQueue(id realm.ID, a Adoption, answer func(Adopted, error)) {
	withTexts := func(x Adopted, err error) {
		if len(x.Events) == 0 {
			answer(x, err)
			return
		}
		e.srv.runtime.runInBackground(func() { // texts can be on disk
			x.Texts = e.srv.textsOf(id, x.Events)
			answer(x, err)
		})
	}
	if !e.toRealm(id, &edgeAdopts{e, a, withTexts}) {
		answer(Adopted{}, realm.ErrNotOwner)
	}
}

// textsOf returns the texts of events, as far as they can be read and are not too many.
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

// KeepQueues says which queues the edge keeps. The edge is told to drop those that have another home. Other queues that
// the owner believes to be with the edge are kept by the owner.
func (e *Edge) KeepQueues(id realm.ID, k KeptQueues) { e.toRealm(id, edgeKeeps{e, k}) }

// ReportAcks says how far the clients of the edge have acknowledged the facts of a realm.
func (e *Edge) ReportAcks(id realm.ID, a QueueAcks) { e.toRealm(id, edgeAcks{e, &a}) }

// CloseQueue closes a queue whose client has not come back to the edge, if the edge is its home.
func (e *Edge) CloseQueue(id realm.ID, q realm.QueueID) { e.toRealm(id, edgeCloses{e, q}) }

// ReportPresence merges the presence that the edge's clients have reported; see Server.MergePresence.
func (e *Edge) ReportPresence(id realm.ID, list []presence.Report) { e.srv.MergePresence(id, list) }

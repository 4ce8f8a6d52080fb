package actors

import (
	"fmt"
	"math"
	"sync/atomic"

	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/realm"
)

// MaxPresenceReports is how many users one batch of presence has: about 40 kB, so that it fits into a frame of the
// link.
const MaxPresenceReports = 2000

// EdgeLink sends the owner's requests about event queues to one edge. Realm actors call its methods, which must not
// block. The calls of a method must arrive in order. If the send buffer of a link is full, the link breaks and the edge
// connects again.
type EdgeLink interface {
	// DropQueues asks the edge to drop queues that have moved to other nodes; the edge calls Server.DropQueues. The
	// list has at most delivery.MaxHostedQueues queues.
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

// Lost reports whether the connection has ended.
func (e *Edge) Lost() bool { return e.lost.Load() }

// DropQueues asks the edge to drop queues; see EdgeLink.
func (e *Edge) DropQueues(id realm.ID, list []delivery.DroppedQueue) { e.link.DropQueues(id, list) }

// EvictQueues asks the edge to close queues; see EdgeLink.
func (e *Edge) EvictQueues(id realm.ID, before realm.Seq) { e.link.EvictQueues(id, before) }

// Disconnect ends the connection. The owner hosts the queues of the edge until another node adopts them, or until the
// same edge connects again and reports that it still hosts them.
func (e *Edge) Disconnect() {
	if e.lost.Swap(true) {
		return
	}
	e.srv.edges.Delete(e.key)
	e.srv.eachRealm(func(r *realmHandle) { e.srv.runtime.Send(r.pid, delivery.HomeLost{Home: e}) })
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

// toRealm sends a message to the realm actor of this node, which is loaded if it is asleep and this node owns it. It
// returns false if there is none.
func (e *Edge) toRealm(id realm.ID, message any) bool {
	if e.lost.Load() {
		return false
	}
	r := e.srv.find(id)
	if r == nil {
		return e.srv.sendToSleeper(id, message)
	}
	r.sessions.Shared.Store(true)
	e.srv.runtime.Send(r.pid, message)
	return true
}

// Closed says that the edge hosts no queue of a realm any more. If it still does, the owner hosts them until their
// clients poll another node. It loads no realm.
func (e *Edge) Closed(id realm.ID) {
	if e.srv.find(id) != nil {
		e.ReportQueues(id, delivery.HostedQueues{Through: math.MaxUint64, Number: math.MaxUint64})
	}
}

// AdoptQueue makes the edge the home of a queue and asks the former home to drop it. It calls answer with the events
// that the client may not have acknowledged: once, from any goroutine; answer must not block. The error is a
// realm.ErrNotOwner if the realm is not open here or is being loaded.
func (e *Edge) AdoptQueue(id realm.ID, a delivery.Adoption, answer func(delivery.Adopted, error)) {
	withTexts := func(x delivery.Adopted, err error) {
		if len(x.Events) == 0 {
			answer(x, err)
			return
		}
		e.srv.runtime.RunInBackground(func() { // texts can be on disk
			x.Texts = e.srv.textsOf(id, x.Events)
			answer(x, err)
		})
	}
	if !e.toRealm(id, &delivery.AdoptRequest{Home: e, Asked: a, Answer: withTexts}) {
		answer(delivery.Adopted{}, realm.ErrNotOwner)
	}
}

// textsOf returns the message texts of events, up to delivery.MaxAdoptedBytes. It skips texts that cannot be read.
func (srv *Server) textsOf(id realm.ID, publications []realm.Publication) (list []realm.TextWrite) {
	bytes := 0
	for _, t := range publications {
		for _, n := range t.Notices {
			for _, ref := range realm.EventTexts(n.Event) {
				b, ok, err := srv.Text(id, ref)
				if err != nil || !ok {
					continue
				}
				if bytes += len(b.Text) + len(b.HTML); bytes > delivery.MaxAdoptedBytes {
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
func (e *Edge) ReportQueues(id realm.ID, k delivery.HostedQueues) {
	e.toRealm(id, delivery.HostedReport{Home: e, Kept: k})
}

// ReportAcks handles the acknowledgements of the clients of the edge.
func (e *Edge) ReportAcks(id realm.ID, a delivery.QueueAcks) {
	e.toRealm(id, delivery.AckedByHome{Home: e, Acks: &a})
}

// CloseQueue closes a queue whose client has not come back to the edge, if the edge is its home.
func (e *Edge) CloseQueue(id realm.ID, q realm.QueueID) {
	e.toRealm(id, delivery.CloseRequest{Home: e, Queue: q})
}

// ReportPresence merges the presence that the edge's clients have reported; see Server.MergePresence.
func (e *Edge) ReportPresence(id realm.ID, list []presence.Report) { e.srv.MergePresence(id, list) }

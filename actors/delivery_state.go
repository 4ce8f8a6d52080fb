package actors

import (
	"parley/actors/presence"
	"parley/actors/realm"
)

// offlineAfter is for how many seconds after a client's last poll its user counts as connected (protocol).
const offlineAfter = 600

// DeliveryState reports whether notifications to a user are needed. online: the user was active lately and one of their
// queues for messages is in use. received: the client of such a queue has acknowledged everything up to a fact.
func (srv *Server) DeliveryState(id realm.ID, u realm.UserID, fact realm.Seq) (online, received bool) {
	r := srv.find(id)
	if r == nil {
		return false, false
	}
	m := &deliveryCheck{realm: id, user: u, seq: fact, reply: make(chan deliveryState, 1)}
	srv.runtime.Send(r.sessionActors[sessionActorOf(u)], m)
	x := <-m.reply
	if srv.edgeCount.Load() > 0 {
		srv.runtime.Send(r.pid, m)
		y := <-m.reply
		x.polling, x.received = x.polling || y.polling, x.received || y.received
	}
	row := srv.PresenceOf(id, u)
	active := row != nil && srv.now().Unix()-row.Active < presence.OfflineAfter
	return x.polling && active, x.received
}

// checkDelivery answers a delivery check from the user's queues that other nodes keep. These close a queue whose client
// does not poll. They report the acknowledgements of all queues of a session actor together, so a client may have
// received more.
func (a *realmActor) checkDelivery(m *deliveryCheck) {
	var x deliveryState
	for _, id := range a.homes.byUser[m.user] {
		if q := a.realm.FindQueue(id); q != nil && q.WantsEvent("message") {
			x.polling = true
			x.received = x.received || a.homes.acks[a.homes.edges[id].edge].acked[sessionActorOf(m.user)] >= m.seq
		}
	}
	m.reply <- x
}

// checkDelivery answers a delivery check from the user's queues that get messages and are kept here.
func (s *sessionActor) checkDelivery(m *deliveryCheck) {
	var x deliveryState
	if r := s.realms[m.realm]; r != nil && r.session(m.user) != nil {
		for q := r.session(m.user).First; q != nil; q = q.Next {
			if !q.Reg.WantsEvent("message") {
				continue
			}
			x.polling = x.polling || q.HasPoll() || s.now-q.LastContact() < offlineAfter
			x.received = x.received || q.AckedThrough(r.seq) >= m.seq
		}
	}
	m.reply <- x
}

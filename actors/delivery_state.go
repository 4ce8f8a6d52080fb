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
	srv.runtime.send(r.shards[shardOf(u)], m)
	x := <-m.reply
	row := srv.PresenceOf(id, u)
	active := row != nil && srv.now().Unix()-row.Active < presence.OfflineAfter
	return x.polling && active, x.received
}

// checkDelivery answers a delivery check from the user's queues that get messages.
func (s *shard) checkDelivery(m *deliveryCheck) {
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

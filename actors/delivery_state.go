package actors

import (
	"parley/actors/presence"
	"parley/actors/realm"
)

// offlineAfter is how long ago a client may last have come for its user to count as connected, in seconds (protocol).
const offlineAfter = 600

// DeliveryState tells whether a user sits at a client now: one of his queues is polled, and he was active lately. heard tells
// whether a client has taken everything up to a fact.
func (srv *Server) DeliveryState(id realm.ID, u realm.UserID, fact realm.Seq) (here, heard bool) {
	m := &deliveryCheck{realm: id, user: u, seq: fact, reply: make(chan deliveryState, 1)}
	srv.runtime.send(srv.shards[shardOf(u)], m)
	x := <-m.reply
	row := srv.PresenceOf(id, u)
	active := row != nil && srv.now().Unix()-row.Active < presence.OfflineAfter
	return x.polling && active, x.received
}

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

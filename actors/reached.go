package actors

import (
	"parley/actors/presence"
	"parley/actors/realm"
)

// offlineAfter is how long ago a client may last have come for its user to count as connected, in seconds (protocol).
const offlineAfter = 600

// Reached tells whether a user sits at a client now: one of his queues is polled, and he was active lately. heard tells
// whether a client has taken everything up to a fact.
func (h *House) Reached(id realm.ID, u realm.UserID, fact realm.Seq) (here, heard bool) {
	m := &reach{realm: id, user: u, seq: fact, reply: make(chan reached, 1)}
	h.stage.send(h.shards[shardOf(u)], m)
	x := <-m.reply
	row := h.PresenceOf(id, u)
	active := row != nil && h.now().Unix()-row.Active < presence.Offline
	return x.polls && active, x.heard
}

func (s *shard) reach(m *reach) {
	var x reached
	if r := s.realms[m.realm]; r != nil && r.session(m.user) != nil {
		for q := r.session(m.user).First; q != nil; q = q.Next {
			if !q.Reg.Wants("message") {
				continue
			}
			x.polls = x.polls || q.Waiting() || s.now-q.Contact() < offlineAfter
			x.heard = x.heard || q.Through(r.seq) >= m.seq
		}
	}
	m.reply <- x
}

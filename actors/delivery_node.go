package actors

import (
	"slices"
	"time"

	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/queue"
	"parley/actors/realm"
)

// deliveryNode is this node as its sessions see it; see delivery.Node.
type deliveryNode struct{ srv *Server }

// CloseQueue asks the owner, which is this node or another one, to close a queue.
func (n deliveryNode) CloseQueue(id realm.ID, q realm.QueueID) {
	if owner := n.otherOwner(id); owner != nil {
		owner.CloseQueue(id, q)
		return
	}
	n.srv.CloseQueue(id, q)
}

// Tick asks the owner, which is this node or another one, for an empty fact.
func (n deliveryNode) Tick(id realm.ID) {
	if owner := n.otherOwner(id); owner != nil {
		owner.Tick(id)
		return
	}
	n.srv.Tick(id)
}

// otherOwner returns the other node that owns a realm, or nil.
func (n deliveryNode) otherOwner(id realm.ID) *remoteOwner {
	if r := n.srv.find(id); r != nil {
		return n.srv.ownerOf(r)
	}
	return nil
}

// HasOtherNodes reports whether other nodes may host queues of the realm.
func (n deliveryNode) HasOtherNodes(id realm.ID) bool {
	if n.srv.cluster != nil {
		return true
	}
	r := n.srv.find(id)
	return r != nil && (r.owner != nil || r.sessions.Shared.Load())
}

// MayChangeOwner reports whether the ownership can move.
func (n deliveryNode) MayChangeOwner() bool { return n.srv.cluster != nil }

// ReadOnly is Server.IsReadOnly.
func (n deliveryNode) ReadOnly() bool { return n.srv.readOnly.Load() }

// AuthVersion is Server.AuthVersion.
func (n deliveryNode) AuthVersion() uint64 { return n.srv.AuthVersion() }

// Charged returns the account that the bounds of a user count for.
func (n deliveryNode) Charged(id realm.ID, u realm.UserID) (realm.UserID, bool) {
	return n.srv.charged(id, u)
}

// Refused counts a refusal.
func (n deliveryNode) Refused(err error) { n.srv.countRefusal(err) }

// Home returns the connection from another node with a key, or nil if it has ended.
func (n deliveryNode) Home(key string) delivery.Home {
	if e := n.srv.edgeOf(key); e != nil {
		return e
	}
	return nil
}

// Realms returns the number of organizations on this node.
func (n deliveryNode) Realms() int {
	n.srv.mu.RLock()
	defer n.srv.mu.RUnlock()
	return len(n.srv.realms)
}

// UnackedLimit returns how many bytes of unacked events all organizations together may have.
func (srv *Server) UnackedLimit() int64 { return srv.delivery.Limits.Total.Load() }

// AccountLimit returns how many bytes of unacked events one account may use while all organizations together are within
// their limit.
func (srv *Server) AccountLimit() int64 { return srv.delivery.Limits.Account.Load() }

// LargestAccountBytes returns the highest usage of unacked events of one account in any organization, in bytes,
// according to the last computation. The usage is not computed in organizations where no account can exceed its share.
func (srv *Server) LargestAccountBytes() (most int64) {
	srv.eachRealm(func(r *realmHandle) { most = max(most, r.sessions.LargestAccount()) })
	return most
}

// toFollower sends a message about hosted queues to the actor of a realm that another node owns.
func (srv *Server) toFollower(id realm.ID, m delivery.HostingMessage) {
	if r := srv.find(id); r != nil && srv.ownerOf(r) != nil {
		srv.runtime.Send(r.pid, m)
	}
}

// OwnerConnected must be called after a new connection to the owner of a realm was opened: the replica reports its
// hosted queues.
func (srv *Server) OwnerConnected(id realm.ID) { srv.toFollower(id, delivery.OwnerConnected{}) }

// DropQueues removes queues of a realm that have moved to other nodes. Their clients poll there, so the queues are not
// closed.
func (srv *Server) DropQueues(id realm.ID, list []delivery.DroppedQueue) {
	srv.toFollower(id, delivery.DropQueues(list))
}

// EvictQueues closes the queues of a realm on this node that have not acknowledged the facts before one, because the
// owner stores too many events for them.
func (srv *Server) EvictQueues(id realm.ID, before realm.Seq) {
	srv.toFollower(id, delivery.EvictQueues{Before: before})
}

// Poll sends a request for events to the session actor that owns the queue. The actor answers it, at once or later.
func (srv *Server) Poll(p queue.PollRequest) {
	srv.Metrics.Polls.Add(1)
	srv.pollAll(p.Realm, []*queue.PollRequest{&p})
}

// PollAll is Poll for many requests: each session actor gets one message for requests of one realm that are next to
// each other in the list. The server references each request until it is answered, but not the list.
func (srv *Server) PollAll(list []*queue.PollRequest) {
	srv.Metrics.Polls.Add(int64(len(list)))
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Realm == list[0].Realm {
			n++
		}
		srv.pollAll(list[0].Realm, list[:n])
		list = list[n:]
	}
}

// pollAll sends polls of one realm to its session actors.
func (srv *Server) pollAll(id realm.ID, list []*queue.PollRequest) {
	r := srv.enter(id, forClient)
	if r != nil {
		defer r.leave()
	}
	switch {
	case r == nil && srv.has(id):
		srv.pollWhenAwake(id, slices.Clone(list))
	case r == nil:
		for _, p := range list {
			srv.protocol.AnswerError(p.Reply, realm.ErrBadQueue(p.Queue))
		}
	case srv.cluster != nil && !r.owned.Load() && srv.following.Load() == nil: // the owner has the queues
		for _, p := range list {
			srv.protocol.AnswerError(p.Reply, realm.ErrNotOwner)
		}
	default:
		r.sessions.Poll(list)
	}
}

// pollWhenAwake sends polls when their realm is in memory.
func (srv *Server) pollWhenAwake(id realm.ID, list []*queue.PollRequest) {
	srv.runtime.RunInBackground(func() {
		r, err := srv.awaken(id, forClient)
		if err != nil {
			for _, p := range list {
				srv.protocol.AnswerError(p.Reply, err)
			}
			return
		}
		defer r.leave()
		r.sessions.Poll(list)
	})
}

// CancelPoll says that the client of a waiting poll has left.
func (srv *Server) CancelPoll(p queue.PollRequest) {
	if r := srv.find(p.Realm); r != nil {
		r.sessions.CancelPoll(p.User, p.Queue, p.Reply)
	}
}

// Drain answers all waiting polls. The clients poll again and reach the next process.
func (srv *Server) Drain() {
	var all []*realmHandle
	srv.eachRealm(func(r *realmHandle) { all = append(all, r) })
	done := make(chan struct{}, len(all)*delivery.SessionActors)
	for _, r := range all {
		r.sessions.Drain(done)
	}
	for range cap(done) {
		<-done
	}
}

// DeliveryState reports whether notifications to a user are needed. online: the user was active lately and one of their
// queues for messages is in use. received: the client of such a queue has acknowledged everything up to a fact.
func (srv *Server) DeliveryState(id realm.ID, u realm.UserID, fact realm.Seq) (online, received bool) {
	r := srv.enter(id, forWork)
	if r == nil {
		return false, false
	}
	defer r.leave()
	x := r.sessions.StateOf(u, fact)
	if srv.edgeCount.Load() > 0 {
		m := &delivery.CheckHomes{User: u, Seq: fact, Reply: make(chan delivery.State, 1)}
		srv.runtime.Send(r.pid, m)
		y := <-m.Reply
		x.Polling, x.Received = x.Polling || y.Polling, x.Received || y.Received
	}
	row := srv.PresenceOf(id, u)
	active := row != nil && srv.now().Unix()-row.Active < presence.OfflineAfter
	return x.Polling && active, x.Received
}

// endPolls answers every waiting poll of a user with no events after a time, because an API key of the user was
// revoked. Clients with a valid key poll again.
func (srv *Server) endPolls(id realm.ID, u realm.UserID, answerAfter time.Duration) {
	if r := srv.find(id); r != nil {
		r.sessions.EndPolls(u, answerAfter)
	}
}

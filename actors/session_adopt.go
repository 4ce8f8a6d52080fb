package actors

import (
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// MaxAdoptions is how many queues of a realm one session actor waits for at the same time. Further clients are asked to
// come back. When an edge with 100,000 polling clients is gone, each session actor of two others gets 3,000.
const MaxAdoptions = 4096

// Messages about queues that another node has kept.
type (
	// adoptQueue asks the actor of a realm to make this node the home of a queue. The session actor gets openAdopted,
	// if the events must be fetched, and then finishAdoption.
	adoptQueue struct {
		queue QueueRef
		last  int64 // last_event_id of the client
	}
	// openAdopted opens a queue that gets all events after the ones that the session actor has received.
	openAdopted struct {
		realm  *realmHandle
		queue  realm.Queue
		seq    realm.Seq // newest fact
		number uint64    // see ackReport.taken
	}
	// finishAdoption brings the events from before that, or the reason why there are none.
	finishAdoption struct {
		realm        realm.ID
		queue        QueueRef
		publications []realm.Publication
		seq          realm.Seq
		err          error
		// final says that the client cannot have seen newer events. Otherwise the owner is asked again if its
		// last_event_id is newer.
		final bool
	}
	// takeQueues opens queues together with their events. Other queues do not get these.
	takeQueues struct {
		realm        *realmHandle
		queues       []realm.Queue
		publications []realm.Publication
		seq          realm.Seq
		number       uint64
	}
)

// adoptingQueue is a queue that is not complete here: the polls for it wait until it is adopted.
type adoptingQueue struct {
	poll   *queue.PollRequest // the newest one, or nil
	asked  bool               // it is being adopted; otherwise the next poll begins that
	opened realm.Seq          // the queue has all events after this fact
	number uint64             // of the adoption
}

// pollIncomplete handles a poll for a queue that this node does not keep, or not completely. It asks for the queue
// once; then the newest poll waits for it.
func (s *shard) pollIncomplete(r *shardRealm, q *queue.Queue, m *queue.PollRequest) {
	ref := QueueRef{m.User, m.Queue}
	if r == nil && s.srv.cluster != nil { // this node has just begun or ended to own the realm
		if h := s.srv.find(m.Realm); h != nil {
			r = s.realm(h)
		}
	}
	if r == nil || !s.hasOtherNodes(r) {
		s.srv.protocol.AnswerError(m.Reply, realm.ErrBadQueue(m.Queue))
		return
	}
	x := r.adopting[ref]
	if x == nil {
		if q == nil && len(r.adopting) >= MaxAdoptions {
			s.srv.protocol.AnswerError(m.Reply, errOverloaded)
			return
		}
		x = r.setAdopting(ref)
	}
	if x.poll != nil {
		s.srv.protocol.AnswerPoll(x.poll.Reply, m.Queue, nil)
	}
	x.poll = m
	if !x.asked {
		x.asked = true
		s.srv.runtime.send(r.handle.pid, adoptQueue{ref, m.Last})
	}
}

// setAdopting marks a queue as incomplete.
func (r *shardRealm) setAdopting(ref QueueRef) *adoptingQueue {
	if r.adopting == nil {
		r.adopting = map[QueueRef]*adoptingQueue{}
	}
	x := &adoptingQueue{}
	r.adopting[ref] = x
	return x
}

// hasOtherNodes reports whether other nodes may keep queues of the realm.
func (s *shard) hasOtherNodes(r *shardRealm) bool {
	return r.handle.owner != nil || s.srv.cluster != nil || r.handle.hasEdges.Load()
}

// isIncomplete reports whether a poll must wait until its queue is adopted. That is also so if its client has seen
// events which this node does not have yet: it has polled another node since.
func (s *shard) isIncomplete(r *shardRealm, q *queue.Queue, m *queue.PollRequest) bool {
	if len(r.adopting) > 0 && r.adopting[QueueRef{m.User, m.Queue}] != nil {
		return true
	}
	if !q.IsAhead(m.Last, r.seq) || !s.hasOtherNodes(r) {
		return false
	}
	s.unconfirm(r, q)
	return true
}

// unconfirm makes a queue as a restored one: it is not known what its client has acknowledged.
func (s *shard) unconfirm(r *shardRealm, q *queue.Queue) {
	if !q.Restored() {
		q.SetRestored()
		r.unconfirmed++
	}
	if p := q.EndPoll(s.now); p != nil {
		s.srv.Metrics.ParkedPolls.Add(-1)
		s.srv.protocol.AnswerPoll(p, q.Reg.ID, nil)
	}
}

// openAdopted opens a queue whose older events are being fetched, unless it is open already. It is repeated with each
// try.
func (s *shard) openAdopted(m *openAdopted) {
	r := s.realm(m.realm)
	r.seq, r.taken = max(r.seq, m.seq), max(r.taken, m.number)
	s.openQueue(r, m.queue, true)
	ref := QueueRef{m.queue.User, m.queue.ID}
	x := r.adopting[ref]
	if x == nil { // the poll was answered meanwhile; see restoreQueues.replace
		x = r.setAdopting(ref)
		x.asked = true
	}
	x.opened, x.number = m.seq, m.number
}

// finishAdoption puts the older events into a queue and handles the poll that waits for it. If there was an error, the
// queue stays incomplete, and its events count as not acknowledged: the owner may believe that it is here.
func (s *shard) finishAdoption(m *finishAdoption) {
	r := s.realms[m.realm]
	if r == nil || r.adopting[m.queue] == nil {
		return
	}
	r.seq = max(r.seq, m.seq)
	x := r.adopting[m.queue]
	p := x.poll
	x.poll, x.asked = nil, false
	q := r.session(m.queue.User).Find(m.queue.ID)
	if q == nil || m.err == nil {
		delete(r.adopting, m.queue)
	}
	switch {
	case m.err != nil:
		if p != nil {
			s.srv.protocol.AnswerError(p.Reply, m.err)
		}
	case q == nil: // it was closed, or another node has adopted it: the client finds out with its next poll
		if p != nil {
			s.srv.protocol.AnswerPoll(p.Reply, p.Queue, nil)
		}
	default:
		if x.opened > 0 {
			q.ReplaceThrough(x.opened, func() { s.deliverTo(r, m.publications, map[*queue.Queue]bool{q: true}) })
		}
		switch {
		case p == nil:
		case !m.final && q.IsAhead(p.Last, r.seq):
			s.unconfirm(r, q)
			x := r.setAdopting(m.queue)
			x.poll, x.asked = p, true
			again, pid := adoptQueue{m.queue, p.Last}, r.handle.pid
			s.srv.runtime.after(adoptAgainAfter, func() { s.srv.runtime.send(pid, again) })
		default:
			s.answerOrPark(r, q, p)
		}
	}
}

// takeQueues opens queues that an edge has kept.
func (s *shard) takeQueues(m *takeQueues) {
	r := s.realm(m.realm)
	r.seq, r.taken = max(r.seq, m.seq), max(r.taken, m.number)
	fresh := map[*queue.Queue]bool{}
	for i := range m.queues {
		s.openQueue(r, m.queues[i], true)
		if q := r.session(m.queues[i].User).Find(m.queues[i].ID); q.UnackedCount() == 0 {
			fresh[q] = true
		}
	}
	s.deliverTo(r, m.publications, fresh)
}

// deliverTo puts the events of some facts into some queues only, and answers no poll.
func (s *shard) deliverTo(r *shardRealm, publications []realm.Publication, only map[*queue.Queue]bool) {
	for i := range publications {
		t := &publications[i]
		counts := eventCounts{}
		for j := range t.Notices {
			n := &t.Notices[j]
			renderer := s.renderer(r, n)
			for _, u := range n.To {
				ss := r.session(u)
				if ss == nil {
					continue
				}
				for q := ss.First; q != nil; q = q.Next {
					if !only[q] {
						continue
					}
					events := renderer.EventsFor(u, q.Reg, q.Options)
					q.Append(t.Seq, counts[q], events)
					counts[q] += len(events)
				}
			}
		}
	}
}

// renderer prepares a notice for the queues of its audience.
func (s *shard) renderer(r *shardRealm, n *realm.Notice) session.NoticeRenderer {
	return s.srv.protocol.RenderNotice(n, session.RenderContext{
		Realm:        r.handle.id,
		Site:         r.handle.site,
		Texts:        s.srv,
		SeenRecently: r.handle.recentlyActive,
	})
}

// endAdoptingPolls answers the polls that wait for a queue, of one user or of all, with no events. The adoption goes
// on.
func (s *shard) endAdoptingPolls(r *shardRealm, match func(*queue.PollRequest) bool) {
	for _, x := range r.adopting {
		if p := x.poll; p != nil && match(p) {
			x.poll = nil
			s.srv.protocol.AnswerPoll(p.Reply, p.Queue, nil)
		}
	}
}

// forgetAdopting forgets that a queue is incomplete, because it is not here any more.
func (r *shardRealm) forgetAdopting(ref QueueRef) {
	if x := r.adopting[ref]; x != nil && !x.asked {
		delete(r.adopting, ref)
	}
}

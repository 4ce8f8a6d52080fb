package actors

import (
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// MaxAdoptions is how many queues of a realm one session actor adopts at the same time. Other clients get an error and
// try again. When an edge with 100,000 polling clients fails, each session actor of two other edges adopts about 3,000
// queues.
const MaxAdoptions = 4096

// Messages about queues that move to this node.
type (
	// adoptQueue asks the actor of a realm to make this node the home of a queue. The actor sends the session actor
	// openAdopted, if events must be fetched from the owner, and then finishAdoption.
	adoptQueue struct {
		queue QueueRef
		last  int64 // last_event_id of the client
	}
	// openAdopted opens a queue that is being adopted. The queue gets all later events; finishAdoption brings the
	// earlier ones.
	openAdopted struct {
		realm      *realmHandle
		queue      realm.Queue
		seq        realm.Seq // newest fact
		generation uint64
	}
	// finishAdoption brings the earlier events of a queue that is being adopted, or the reason why the adoption failed.
	finishAdoption struct {
		realm        realm.ID
		queue        QueueRef
		publications []realm.Publication
		seq          realm.Seq
		err          error
		// final says that the client cannot have received newer events than these. Otherwise a newer last_event_id
		// makes the actor ask the owner again.
		final bool
	}
	// openLocalQueues opens queues together with their events, which no other queue gets.
	openLocalQueues struct {
		realm        *realmHandle
		queues       []realm.Queue
		publications []realm.Publication
		seq          realm.Seq
		generation   uint64
	}
)

// adoptingQueue is a queue with missing events: its polls wait until it is adopted.
type adoptingQueue struct {
	poll   *queue.PollRequest // the newest one, or nil
	asked  bool               // it is being adopted; false: the next poll begins the adoption
	opened realm.Seq          // the queue has all events after this fact
	number uint64             // of the adoption
}

// pollIncomplete handles a poll for a queue that this node does not host, or whose events are incomplete. The first
// poll begins the adoption of the queue; then the newest poll waits for its end.
func (s *sessionActor) pollIncomplete(r *sessionRealm, q *queue.Queue, m *queue.PollRequest) {
	ref := QueueRef{m.User, m.Queue}
	if r == nil && s.srv.cluster != nil { // this node has just gained or lost the ownership of the realm
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
		s.srv.runtime.Send(r.handle.pid, adoptQueue{ref, m.Last})
	}
}

// setAdopting marks a queue as incomplete.
func (r *sessionRealm) setAdopting(ref QueueRef) *adoptingQueue {
	if r.adopting == nil {
		r.adopting = map[QueueRef]*adoptingQueue{}
	}
	x := &adoptingQueue{}
	r.adopting[ref] = x
	return x
}

// hasOtherNodes reports whether other nodes may host queues of the realm.
func (s *sessionActor) hasOtherNodes(r *sessionRealm) bool {
	return r.handle.owner != nil || s.srv.cluster != nil || r.handle.hasEdges.Load()
}

// isIncomplete reports whether a poll must wait until its queue is adopted. This is also the case if its client has
// received events that this node does not have yet, because it has polled another node in between.
func (s *sessionActor) isIncomplete(r *sessionRealm, q *queue.Queue, m *queue.PollRequest) bool {
	if len(r.adopting) > 0 && r.adopting[QueueRef{m.User, m.Queue}] != nil {
		return true
	}
	if !q.IsAhead(m.Last, r.seq) || !s.hasOtherNodes(r) {
		return false
	}
	s.unconfirm(r, q)
	return true
}

// unconfirm gives a queue the state of a restored one: it is unknown what its client has acknowledged.
func (s *sessionActor) unconfirm(r *sessionRealm, q *queue.Queue) {
	if !q.Restored() {
		q.SetRestored()
		r.unconfirmed++
	}
	if p := q.EndPoll(s.now); p != nil {
		s.srv.Metrics.ParkedPolls.Add(-1)
		s.srv.protocol.AnswerPoll(p, q.Reg.ID, nil)
	}
}

// openAdopted opens a queue whose older events are being fetched, unless it is open already. Each attempt to adopt the
// queue repeats it.
func (s *sessionActor) openAdopted(m *openAdopted) {
	r := s.realm(m.realm)
	r.seq, r.generation = max(r.seq, m.seq), max(r.generation, m.generation)
	s.openQueue(r, m.queue, true)
	ref := QueueRef{m.queue.User, m.queue.ID}
	x := r.adopting[ref]
	if x == nil { // the poll was answered meanwhile; see restoreQueues.replace
		x = r.setAdopting(ref)
		x.asked = true
	}
	x.opened, x.number = m.seq, m.generation
}

// finishAdoption puts the older events into a queue and handles the poll that waits for it. After an error the queue
// stays incomplete, and all its events count as unacked, because the owner may already consider this node its home.
func (s *sessionActor) finishAdoption(m *finishAdoption) {
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
	case q == nil: // it was closed, or another node has adopted it: the next poll finds out
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
			retry, pid := adoptQueue{m.queue, p.Last}, r.handle.pid
			s.srv.runtime.After(adoptRetryInterval, func() { s.srv.runtime.Send(pid, retry) })
		default:
			s.answerOrPark(r, q, p)
		}
	}
}

// openLocalQueues opens queues that an edge has hosted.
func (s *sessionActor) openLocalQueues(m *openLocalQueues) {
	r := s.realm(m.realm)
	r.seq, r.generation = max(r.seq, m.seq), max(r.generation, m.generation)
	fresh := map[*queue.Queue]bool{}
	for i := range m.queues {
		s.openQueue(r, m.queues[i], true)
		if q := r.session(m.queues[i].User).Find(m.queues[i].ID); q.UnackedCount() == 0 {
			fresh[q] = true
		}
	}
	s.deliverTo(r, m.publications, fresh)
}

// deliverTo puts the events of some publications into the given queues only. It answers no polls.
func (s *sessionActor) deliverTo(r *sessionRealm, publications []realm.Publication, only map[*queue.Queue]bool) {
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
func (s *sessionActor) renderer(r *sessionRealm, n *realm.Notice) session.NoticeRenderer {
	return s.srv.protocol.RenderNotice(n, session.RenderContext{
		Realm:        r.handle.id,
		Site:         r.handle.site,
		Texts:        s.srv,
		SeenRecently: r.handle.recentlyActive,
	})
}

// endAdoptingPolls answers the waiting polls of incomplete queues for which match returns true with no events. The
// adoptions continue.
func (s *sessionActor) endAdoptingPolls(r *sessionRealm, match func(*queue.PollRequest) bool) {
	for _, x := range r.adopting {
		if p := x.poll; p != nil && match(p) {
			x.poll = nil
			s.srv.protocol.AnswerPoll(p.Reply, p.Queue, nil)
		}
	}
}

// forgetAdopting removes the entry of an incomplete queue, because this node no longer hosts the queue.
func (r *sessionRealm) forgetAdopting(ref QueueRef) {
	if x := r.adopting[ref]; x != nil && !x.asked {
		delete(r.adopting, ref)
	}
}

package delivery

import (
	"time"

	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// MaxAdoptions is how many queues of a realm one session actor adopts at the same time. Other clients get an error and
// try again. When an edge with 100,000 polling clients fails, each session actor of two other edges adopts about 3,000
// queues.
const MaxAdoptions = 4096

// adoptRetryInterval is the time between two attempts to adopt a queue.
const adoptRetryInterval = 50 * time.Millisecond

// Messages about queues that move to this node, or from it.
type (
	// OpenAdopted opens a queue that is being adopted, unless it is open already. The queue gets all later events;
	// FinishAdoption brings the earlier ones. Each attempt to adopt the queue repeats it.
	OpenAdopted struct {
		Queue   realm.Queue
		Seq     realm.Seq // newest fact
		Opening uint64
	}
	// FinishAdoption brings the earlier events of a queue that is being adopted, or the reason why the adoption failed.
	FinishAdoption struct {
		Queue        QueueRef
		Publications []realm.Publication
		Seq          realm.Seq
		Err          error
		// Final says that the client cannot have received newer events than these. Otherwise a newer last_event_id
		// makes the session actor ask again.
		Final bool
	}
	// OpenLocal opens queues that another node has hosted, together with their events, which no other queue gets.
	OpenLocal struct {
		Queues       []realm.Queue
		Publications []realm.Publication
		Seq          realm.Seq
		Opening      uint64
	}
	// List lists the queues of a session actor. Before it, the actor reports their acknowledgements, because an earlier
	// report may not include all of them.
	List struct{ Reply func([]QueueRef) } // must not block
	// Forget removes queues that have moved to other nodes. They are not closed: a waiting poll is answered with no
	// events, its client polls again, and reaches the new home of the queue.
	Forget []DroppedQueue
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
func (s *sessionActor) pollIncomplete(r *sessionState, q *queue.Queue, m *queue.PollRequest) {
	ref := QueueRef{m.User, m.Queue}
	if r == nil && s.all.env.Node.MayChangeOwner() { // this node has just gained or lost the ownership of the realm
		r = s.open()
	}
	if r == nil || !s.all.env.Node.HasOtherNodes(s.all.Realm) {
		s.all.env.Protocol.AnswerError(m.Reply, realm.ErrBadQueue(m.Queue))
		return
	}
	x := r.adopting[ref]
	if x == nil {
		if q == nil && len(r.adopting) >= MaxAdoptions {
			s.all.env.Protocol.AnswerError(m.Reply, ErrOverloaded)
			return
		}
		x = r.setAdopting(ref)
	}
	if x.poll != nil {
		s.all.env.Protocol.AnswerPoll(x.poll.Reply, m.Queue, nil)
	}
	x.poll = m
	if !x.asked {
		x.asked = true
		s.all.env.Runtime.Send(s.all.main, AdoptQueue{ref, m.Last})
	}
}

// setAdopting marks a queue as incomplete.
func (r *sessionState) setAdopting(ref QueueRef) *adoptingQueue {
	if r.adopting == nil {
		r.adopting = map[QueueRef]*adoptingQueue{}
	}
	x := &adoptingQueue{}
	r.adopting[ref] = x
	return x
}

// isIncomplete reports whether a poll must wait until its queue is adopted. This is also the case if its client has
// received events that this node does not have yet, because it has polled another node in between.
func (s *sessionActor) isIncomplete(r *sessionState, q *queue.Queue, m *queue.PollRequest) bool {
	if len(r.adopting) > 0 && r.adopting[QueueRef{m.User, m.Queue}] != nil {
		return true
	}
	if !q.IsAhead(m.Last, r.seq) || !s.all.env.Node.HasOtherNodes(s.all.Realm) {
		return false
	}
	s.unconfirm(r, q)
	return true
}

// unconfirm gives a queue the state of a restored one: it is unknown what its client has acknowledged.
func (s *sessionActor) unconfirm(r *sessionState, q *queue.Queue) {
	if !q.Restored() {
		q.SetRestored()
		r.unconfirmed++
	}
	if p := q.EndPoll(s.now); p != nil {
		s.all.env.Metrics.ParkedPolls.Add(-1)
		s.all.env.Protocol.AnswerPoll(p, q.Reg.ID, nil)
	}
}

func (m *OpenAdopted) handle(s *sessionActor) {
	r := s.open()
	r.seq, r.opening = max(r.seq, m.Seq), max(r.opening, m.Opening)
	s.openQueue(r, m.Queue, true, 0)
	ref := QueueRef{m.Queue.User, m.Queue.ID}
	x := r.adopting[ref]
	if x == nil { // the poll was answered meanwhile; see Restore.Replace
		x = r.setAdopting(ref)
		x.asked = true
	}
	x.opened, x.number = m.Seq, m.Opening
}

// handle puts the older events into a queue and handles the poll that waits for it. After an error the queue stays
// incomplete, and all its events count as unacked, because the owner may already consider this node its home.
func (m *FinishAdoption) handle(s *sessionActor) {
	r := s.state
	if r == nil || r.adopting[m.Queue] == nil {
		return
	}
	r.seq = max(r.seq, m.Seq)
	x := r.adopting[m.Queue]
	p := x.poll
	x.poll, x.asked = nil, false
	q := r.session(m.Queue.User).Find(m.Queue.ID)
	if q == nil || m.Err == nil {
		delete(r.adopting, m.Queue)
	}
	switch {
	case m.Err != nil:
		if p != nil {
			s.all.env.Protocol.AnswerError(p.Reply, m.Err)
		}
	case q == nil: // it was closed, or another node has adopted it: the next poll finds out
		if p != nil {
			s.all.env.Protocol.AnswerPoll(p.Reply, p.Queue, nil)
		}
	default:
		if x.opened > 0 {
			q.ReplaceThrough(x.opened, func() { s.deliverTo(r, m.Publications, map[*queue.Queue]bool{q: true}) })
		}
		switch {
		case p == nil:
		case !m.Final && q.IsAhead(p.Last, r.seq):
			s.unconfirm(r, q)
			x := r.setAdopting(m.Queue)
			x.poll, x.asked = p, true
			retry := AdoptQueue{m.Queue, p.Last}
			s.all.env.Runtime.After(adoptRetryInterval, func() { s.all.env.Runtime.Send(s.all.main, retry) })
		default:
			s.answerOrPark(r, q, p)
		}
	}
}

func (m *OpenLocal) handle(s *sessionActor) {
	r := s.open()
	r.seq, r.opening = max(r.seq, m.Seq), max(r.opening, m.Opening)
	fresh := map[*queue.Queue]bool{}
	for i := range m.Queues {
		s.openQueue(r, m.Queues[i], true, 0)
		if q := r.session(m.Queues[i].User).Find(m.Queues[i].ID); q.UnackedCount() == 0 {
			fresh[q] = true
		}
	}
	s.deliverTo(r, m.Publications, fresh)
}

// handle lists the queues. Requests to close queues may have been lost, so they are sent again.
func (m List) handle(s *sessionActor) {
	var list []QueueRef
	if r := s.state; r != nil {
		r.sessions.EachQueue(func(q *queue.Queue) {
			q.CloseRequested = false
			list = append(list, QueueRef{q.Reg.User, q.Reg.ID})
		})
		s.reportAcks(r, r.ackedThrough(), false)
	}
	m.Reply(list)
}

func (m Forget) handle(s *sessionActor) {
	r := s.state
	if r == nil {
		return
	}
	for _, x := range m {
		if y := r.adopting[x.QueueRef]; y == nil || y.number <= x.Number {
			s.remove(r, x.QueueRef)
		}
	}
}

// deliverTo puts the events of some publications into the given queues only. It answers no polls.
func (s *sessionActor) deliverTo(r *sessionState, publications []realm.Publication, only map[*queue.Queue]bool) {
	for i := range publications {
		t := &publications[i]
		counts := eventCounts{}
		for j := range t.Notices {
			n := &t.Notices[j]
			renderer := s.renderer(n)
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
func (s *sessionActor) renderer(n *realm.Notice) session.NoticeRenderer {
	return s.all.env.Protocol.RenderNotice(n, session.RenderContext{
		Realm:        s.all.Realm,
		Site:         s.all.Site,
		Texts:        s.all.env.Texts,
		SeenRecently: s.all.RecentlyActive,
	})
}

// endAdoptingPolls answers the waiting polls of incomplete queues for which match returns true with no events. The
// adoptions continue.
func (s *sessionActor) endAdoptingPolls(r *sessionState, match func(*queue.PollRequest) bool) {
	for _, x := range r.adopting {
		if p := x.poll; p != nil && match(p) {
			x.poll = nil
			s.all.env.Protocol.AnswerPoll(p.Reply, p.Queue, nil)
		}
	}
}

// forgetAdopting removes the entry of an incomplete queue, because this node no longer hosts the queue.
func (r *sessionState) forgetAdopting(ref QueueRef) {
	if x := r.adopting[ref]; x != nil && !x.asked {
		delete(r.adopting, ref)
	}
}

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
	// adoptQueue asks the actor of a realm to make this node the home of a queue. The session actor gets openAdopted, if
	// the events must be fetched, and then finishAdoption.
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
		realm realm.ID
		queue QueueRef
		told  []realm.Told
		seq   realm.Seq
		err   error
	}
	// takeQueues opens queues together with their events. Other queues do not get these.
	takeQueues struct {
		realm  *realmHandle
		queues []realm.Queue
		told   []realm.Told
		seq    realm.Seq
		number uint64
	}
)

// pollUnknown handles a poll for a queue that this node does not keep, or not yet. It asks for the queue once; then the
// newest poll waits for it.
func (s *shard) pollUnknown(r *shardRealm, m *queue.PollRequest) {
	ref := QueueRef{m.User, m.Queue}
	if r == nil || r.handle.owner == nil && !r.handle.hasEdges.Load() {
		s.srv.protocol.AnswerError(m.Reply, realm.ErrBadQueue(m.Queue))
		return
	}
	if before, asked := r.adopting[ref]; asked {
		if before != nil {
			s.srv.protocol.AnswerPoll(before.Reply, m.Queue, nil)
		}
		r.adopting[ref] = m
		return
	}
	if len(r.adopting) >= MaxAdoptions {
		s.srv.protocol.AnswerError(m.Reply, errOverloaded)
		return
	}
	if r.adopting == nil {
		r.adopting = map[QueueRef]*queue.PollRequest{}
	}
	r.adopting[ref] = m
	s.srv.runtime.send(r.handle.pid, adoptQueue{ref, m.Last})
}

// isAdopting reports whether the queue of a poll is being adopted.
func (r *shardRealm) isAdopting(m *queue.PollRequest) bool {
	_, asked := r.adopting[QueueRef{m.User, m.Queue}]
	return asked
}

// openAdopted opens a queue whose older events are being fetched. Polls for it wait until they are there.
func (s *shard) openAdopted(m *openAdopted) {
	r := s.realm(m.realm)
	r.seq, r.taken = max(r.seq, m.seq), max(r.taken, m.number)
	s.openQueue(r, m.queue, true)
}

// finishAdoption puts the older events into a queue and handles the poll that waits for it.
func (s *shard) finishAdoption(m *finishAdoption) {
	r := s.realms[m.realm]
	if r == nil {
		return
	}
	p := r.adopting[m.queue]
	delete(r.adopting, m.queue)
	r.seq = max(r.seq, m.seq)
	ss := r.session(m.queue.User)
	if m.err != nil {
		if q := ss.Remove(m.queue.ID); q != nil {
			s.srv.Metrics.OpenQueues.Add(-1)
			s.confirmQueue(r, q.Restored())
			q.Close()
		}
		if p != nil {
			s.srv.protocol.AnswerError(p.Reply, m.err)
		}
		return
	}
	q := ss.Find(m.queue.ID)
	if q != nil && len(m.told) > 0 {
		q.Prepend(func() { s.deliverTo(r, m.told, map[*queue.Queue]bool{q: true}) })
	}
	switch {
	case p == nil:
	case q == nil: // it was closed, or another node has adopted it: the client finds out with its next poll
		s.srv.protocol.AnswerPoll(p.Reply, p.Queue, nil)
	default:
		s.handlePoll(p)
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
	s.deliverTo(r, m.told, fresh)
}

// deliverTo puts the events of some facts into some queues only, and answers no poll.
func (s *shard) deliverTo(r *shardRealm, told []realm.Told, only map[*queue.Queue]bool) {
	for i := range told {
		t := &told[i]
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
	for ref, p := range r.adopting {
		if p != nil && match(p) {
			r.adopting[ref] = nil
			s.srv.protocol.AnswerPoll(p.Reply, p.Queue, nil)
		}
	}
}

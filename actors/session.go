package actors

import (
	"slices"
	"time"

	"parley/actors/admission"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// Messages of a session actor. The recipients in a deliver are only users of the session actor.
type (
	deliver struct {
		realm        *realmHandle
		publications []realm.Publication
		recipients   int64     // counted in Metrics.Undelivered until the events are in their queues
		part         *delivery // nil for events restored at the start
	}
	restoreQueues struct {
		realm   *realmHandle
		queues  []realm.Queue
		unacked deliver   // events that they may not have acknowledged
		seq     realm.Seq // newest fact on disk
		// replace says that the node has gained or lost the ownership of the realm: all present queues are dropped
		// first. generation is the number of the new set of queues; see unackedEvents.
		replace    bool
		generation uint64
	}
	pollBatch  []*queue.PollRequest
	cancelPoll struct {
		realm realm.ID
		user  realm.UserID
		queue realm.QueueID
		reply queue.Reply
	}
	endPolls struct {
		realm       realm.ID
		user        realm.UserID
		answerAfter time.Duration // how long the answers wait
	}
	answerEndedPoll struct {
		reply queue.Reply
		queue realm.QueueID
	}
	reloadQueues  struct{ realm realm.ID }
	deliveryCheck struct {
		realm realm.ID
		user  realm.UserID
		seq   realm.Seq
		reply chan deliveryState
	}
	deliveryState struct{ polling, received bool }
	sweepQueues   struct {
		now  int64         // Server.elapsed
		done chan struct{} // gets a value afterwards; nil: nobody waits
	}
	drainPolls struct{ done chan struct{} }
)

// sessionActor owns the event queues of every user of a realm with a certain id modulo SessionActors. Its
// fields belong to its mailbox.
type sessionActor struct {
	srv    *Server
	index  int
	realms map[realm.ID]*sessionRealm
	// Server.elapsed at the last sweep: a jump of the wall clock changes no queue's lifetime
	now           int64
	unackedEvents int                    // in all its queues at the last sweep
	refsSince     int64                  // accounts are not limited by MaxUnackedRefs before; see evictionGrace
	draining      bool                   // no poll may wait any more
	queueOptions  func(*realm.Queue) any // see session.Protocol
	lastPolled    *sessionRealm          // the realm of the last poll: polls of one realm arrive together
	prefetched    int64                  // a sum without meaning; see prefetchQueues
}

// sessionRealm is a session actor's part of one realm.
type sessionRealm struct {
	handle      *realmHandle
	sessions    session.Table               // by sessionIndex
	seq         realm.Seq                   // newest fact received
	reported    ackReport                   // the last report to the realm
	unconfirmed int                         // restored queues that no client has polled yet
	generation  uint64                      // newest number of openLocalQueues, openAdopted or restoreQueues
	adopting    map[QueueRef]*adoptingQueue // queues with missing events
	pollLatency pollLatency
}

// sessionIndex returns a user's index among the users of their session actor. User ids of a realm have no large gaps,
// so the indexes are dense.
func sessionIndex(u realm.UserID) int64 { return int64(u) / SessionActors }

// session returns a user's session, or nil.
func (r *sessionRealm) session(u realm.UserID) *session.Session {
	return r.sessions.Get(sessionIndex(u))
}

// newSessionActor makes the session actor with that index.
func newSessionActor(srv *Server, index int) *sessionActor {
	return &sessionActor{
		srv:          srv,
		index:        index,
		realms:       map[realm.ID]*sessionRealm{},
		now:          srv.elapsed(),
		refsSince:    srv.elapsed() + evictionGrace,
		queueOptions: srv.protocol.NewQueueOptions(),
	}
}

// sessionActorOf returns the index of a user's session actor.
func sessionActorOf(u realm.UserID) int { return int(uint64(u) % SessionActors) }

func (s *sessionActor) Receive(message any) {
	switch m := message.(type) {
	case pollBatch:
		s.handlePolls(m)
	case *deliver:
		s.deliver(m)
	case *cancelPoll:
		s.cancelPoll(m)
	case endPolls:
		s.endPolls(m)
	case answerEndedPoll:
		s.srv.protocol.AnswerPoll(m.reply, m.queue, nil)
	case sweepQueues:
		s.sweepQueues(m.now)
		if m.done != nil {
			m.done <- struct{}{}
		}
	case findLaggingAccounts:
		s.findLaggingAccounts(m)
	case evictQueues:
		s.evictQueues(m)
	case reloadQueues:
		s.reloadQueues(m)
	case listQueues:
		s.listQueues(m)
	case forgetQueues:
		s.forgetQueues(m)
	case dropRealm:
		s.dropRealm(m)
	case *openAdopted:
		s.openAdopted(m)
	case *finishAdoption:
		s.finishAdoption(m)
	case *openLocalQueues:
		s.openLocalQueues(m)
	case *restoreQueues:
		s.restoreQueues(m)
	case drainPolls:
		s.drainPolls(m)
	case *deliveryCheck:
		s.checkDelivery(m)
	}
}

// realm returns the session actor's part of a realm and creates it if needed.
func (s *sessionActor) realm(h *realmHandle) *sessionRealm {
	r := s.realms[h.id]
	if r == nil {
		r = &sessionRealm{handle: h}
		s.realms[h.id] = r
	}
	return r
}

// restoreQueues opens the queues in a realm's rows and then delivers the events that they may not have acknowledged.
// Each session actor gets one message with all of this, because polls may be waiting already, and a client may have
// received events of the newest fact.
func (srv *Server) restoreQueues(a *realmActor, queues []realm.Queue, publications []realm.Publication) {
	for k, m := range srv.restoredQueues(a, queues, publications) {
		srv.runtime.Send(a.handle.sessionActors[k], m)
	}
	// Every queue gets the restart event. It follows the messages above, so queues that the replay opened get it too.
	restarted := func(t *realm.Turn) (any, error) { return nil, t.AnnounceRestart() }
	caller := realm.Caller{System: true}
	srv.runtime.Send(a.handle.pid, &ask{decide: restarted, caller: caller, reply: make(chan answer, 1)})
}

// restoredQueues returns the messages with the queues and events for the session actors.
func (srv *Server) restoredQueues(
	a *realmActor, queues []realm.Queue, publications []realm.Publication,
) (m [SessionActors]*restoreQueues) {
	var parts [SessionActors][]realm.Queue
	for _, q := range queues {
		k := sessionActorOf(q.User)
		parts[k] = append(parts[k], q)
	}
	events, _ := splitBySessionActor(publications)
	for k := range parts {
		owed, size := dropAcknowledged(events[k], a.unacked.acked[k])
		srv.Metrics.Undelivered.Add(size)
		m[k] = &restoreQueues{realm: a.handle, queues: parts[k], unacked: deliver{a.handle, owed, size, nil},
			seq: a.durable}
	}
	return m
}

// dropAcknowledged returns the publications that a session actor needs if all its queues have acknowledged everything
// up to a fact, and the number of their recipients. Of the facts up to this fact, it keeps only the notices for the
// session actor itself.
func dropAcknowledged(publications []realm.Publication, through realm.Seq) (out []realm.Publication, size int64) {
	for _, t := range publications {
		if t.Seq <= through {
			t.Notices = slices.DeleteFunc(t.Notices, func(n realm.Notice) bool { return !internalOnly(n) })
		}
		for i := range t.Notices {
			size += int64(len(t.Notices[i].To))
		}
		if len(t.Notices) > 0 {
			out = append(out, t)
		}
	}
	return out, size
}

// restoreQueues opens queues and delivers their events.
func (s *sessionActor) restoreQueues(m *restoreQueues) {
	if m.replace {
		s.dropRealm(dropRealm{m.realm.id})
	}
	r := s.realm(m.realm)
	r.generation = max(r.generation, m.generation)
	r.unconfirmed++ // no report before all queues are open: a queue may be closed among these facts
	for _, q := range m.queues {
		s.openQueue(r, q, true)
	}
	m.unacked.realm = m.realm
	s.deliver(&m.unacked)
	r.seq = max(r.seq, m.seq)
	r.unconfirmed--
}

// openQueue opens a queue, unless it exists. restored says that its client may have acknowledged events before this
// process started.
func (s *sessionActor) openQueue(r *sessionRealm, q realm.Queue, restored bool) {
	if r.handle.withoutQueues[s.index].Swap(false) {
		s.now = s.srv.elapsed() // it was not swept
	}
	opened := queue.New(&q, s.now, restored)
	opened.Options = s.queueOptions(&q)
	if r.sessions.GetOrCreate(sessionIndex(q.User)).Add(opened) {
		s.srv.Metrics.OpenQueues.Add(1)
		if restored {
			r.unconfirmed++
		}
	}
}

// answerPoll answers the waiting poll of a queue that got an event. If no poll waits, it checks the limits of the
// queue.
func (s *sessionActor) answerPoll(r *sessionRealm, q *queue.Queue) {
	if p, events := q.TakePoll(s.now); p != nil {
		s.srv.Metrics.ParkedPolls.Add(-1)
		s.srv.Metrics.Deliveries.Add(1)
		weight, _ := s.srv.protocol.AnswerPoll(p, q.Reg.ID, events)
		r.pollLatency.answers.Add(admission.Answers{Count: 1, Events: weight})
	} else if q.Full() {
		s.srv.Metrics.QueuesEvicted.Add(1)
		s.srv.log.Warn("event queue evicted: too many unacked events", "realm", r.handle.id,
			"user", int64(q.Reg.User), "queue", string(q.Reg.ID), "events", q.UnackedCount())
		s.requestClose(r, q)
	}
	if !s.srv.readOnly.Load() && q.NeedsTick(r.seq) {
		if owner := s.srv.ownerOf(r.handle); owner != nil {
			owner.Tick(r.handle.id)
			return
		}
		s.srv.runSystemAsync(r.handle, func(t *realm.Turn) (any, error) { return nil, t.Tick() })
	}
}

// runSystemAsync runs a command of the server itself and does not wait for it.
func (srv *Server) runSystemAsync(r *realmHandle, decide func(*realm.Turn) (any, error)) {
	caller := realm.Caller{System: true, Client: "Internal"}
	srv.runtime.Send(r.pid, &ask{caller: caller, decide: decide, reply: make(chan answer, 1)})
}

// requestClose asks the realm to close a queue, once.
func (s *sessionActor) requestClose(r *sessionRealm, q *queue.Queue) {
	if q.CloseRequested || s.srv.readOnly.Load() { // the next sweep tries again
		return
	}
	q.CloseRequested = true
	id := q.Reg.ID
	if owner := s.srv.ownerOf(r.handle); owner != nil {
		owner.CloseQueue(r.handle.id, id)
		return
	}
	s.srv.runSystemAsync(r.handle, func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: id}.Decide(t) })
}

// closeQueue removes a queue that the realm has closed, and answers its waiting poll with no events.
func (s *sessionActor) closeQueue(r *sessionRealm, e *realm.QueueClosed) {
	if q := r.session(e.User).Remove(e.ID); q != nil {
		s.srv.Metrics.OpenQueues.Add(-1)
		s.confirmQueue(r, q.Restored())
		r.forgetAdopting(QueueRef{e.User, e.ID})
		if p := q.Close(); p != nil {
			s.srv.Metrics.ParkedPolls.Add(-1)
			s.srv.protocol.AnswerPoll(p, e.ID, nil)
		}
	}
}

// reloadQueues marks every queue of a realm as incomplete, because events are missing on this node. When their clients
// poll again, the queues are adopted with all their events.
func (s *sessionActor) reloadQueues(m reloadQueues) {
	r := s.realms[m.realm]
	if r == nil {
		return
	}
	r.sessions.EachQueue(func(q *queue.Queue) {
		if ref := (QueueRef{q.Reg.User, q.Reg.ID}); r.adopting[ref] == nil {
			r.setAdopting(ref)
		}
		s.unconfirm(r, q)
	})
}

// sweepQueues sends heartbeats, closes idle queues, and tells each realm which facts its queues have acknowledged.
func (s *sessionActor) sweepQueues(now int64) {
	s.now = now
	unacked := 0
	for _, r := range s.realms {
		low := noQueue
		var account accountRefs
		var accounts []accountRefs // with many unacked events
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.Reg.User != account.user {
				account = accountRefs{user: q.Reg.User}
			}
			if q.HeartbeatDue(now) {
				s.srv.Metrics.Heartbeats.Add(1)
				q.AppendEphemeral(r.seq, s.srv.protocol.Heartbeat())
				s.answerPoll(r, q)
			} else if q.Expired(now) {
				s.requestClose(r, q)
			}
			low = min(low, q.AckedThrough(r.seq))
			unacked += q.UnackedCount()
			if !q.CloseRequested {
				account.refs += q.UnackedCount()
			}
			if q.Next == nil && int64(account.refs) > s.srv.maxUnackedRefs.Load()/uncountedRefs {
				accounts = append(accounts, account)
			}
		})
		s.limitRefs(r, accounts, now)
		s.reportAcks(r, low, false)
		if low == noQueue {
			r.handle.withoutQueues[s.index].Store(true)
		}
	}
	s.srv.Metrics.UnackedEvents.Add(int64(unacked - s.unackedEvents))
	s.unackedEvents = unacked
}

// reportAcks reports the fact up to which all queues have acknowledged everything to the realm actor, if the report has
// changed.
func (s *sessionActor) reportAcks(r *sessionRealm, low realm.Seq, confirmed bool) {
	if report := (ackReport{s.index, low, r.seq, confirmed, r.generation}); report != r.reported {
		r.reported = report
		s.srv.runtime.Send(r.handle.pid, report)
	}
}

// confirmQueue counts down the restored queues that no client has polled yet; confirmed says that one of them has just
// been polled. After the last one it reports the acknowledgements to the realm at once, not with the next sweep. Until
// this report the realm stores the events of every queue, and a server that is killed again before would also store all
// events of this process.
func (s *sessionActor) confirmQueue(r *sessionRealm, confirmed bool) {
	if !confirmed {
		return
	}
	if r.unconfirmed--; r.unconfirmed == 0 {
		s.reportAcks(r, r.ackedThrough(), true)
	}
}

// ackedThrough returns the fact up to which all queues have acknowledged everything.
func (r *sessionRealm) ackedThrough() realm.Seq {
	low := noQueue
	r.sessions.EachQueue(func(q *queue.Queue) { low = min(low, q.AckedThrough(r.seq)) })
	return low
}

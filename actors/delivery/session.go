package delivery

import (
	"slices"

	"parley/actors/admission"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// Messages to a session actor.
type (
	// Restore opens queues and then delivers the events that they may not have acknowledged: one message with all of
	// this, because polls may be waiting already, and a client may have received events of the newest fact.
	Restore struct {
		Queues  []realm.Queue
		Unacked []realm.Publication // for users of the session actor only
		Seq     realm.Seq           // newest fact on disk
		// Replace says that the node has gained or lost the ownership of the realm: all present queues are dropped
		// first. Opening is the number of this opening; see Sessions.openings.
		Replace    bool
		Opening    uint64
		Idle       int64 // seconds in which no client has polled, because the realm was asleep
		recipients int64 // of Unacked, counted in Metrics.Undelivered until the events are in their queues
	}
	// Reload marks every queue as incomplete, because events are missing on this node. When their clients poll again,
	// the queues are adopted with all their events.
	Reload struct{}
	// Drop removes all queues, because this node has lost the ownership; the new owner hosts them. A waiting poll is
	// answered with no events, so that its client polls again.
	Drop struct{}
	// CheckIdle asks whether a poll waits or a queue is being adopted, before the realm leaves memory.
	CheckIdle struct{ Reply func(busy bool) }
	// Leave removes all queues from memory, because the realm leaves it. Their clients get no answer: none polls.
	Leave       struct{}
	sweepQueues struct {
		now  int64         // Env.elapsed
		done chan struct{} // gets a value afterwards; nil: no caller waits
	}
	checkState struct {
		user  realm.UserID
		seq   realm.Seq
		reply chan State
	}
)

// sessionActor owns the event queues of every user of a realm with a certain id modulo SessionActors. Its fields belong
// to its mailbox.
type sessionActor struct {
	all   *Sessions
	index int
	state *sessionState // nil: the realm has no queues here yet, or they were dropped
	// Env.elapsed at the last sweep: a jump of the wall clock changes no queue's lifetime
	now           int64
	unackedEvents int                    // in all its queues at the last sweep
	refsSince     int64                  // accounts are not limited by MaxUnackedRefs before; see EvictionGrace
	draining      bool                   // no poll may wait any more
	queueOptions  func(*realm.Queue) any // see session.Protocol
	prefetched    int64                  // a sum without meaning; see prefetchQueues
}

// sessionState is the queues of a session actor.
type sessionState struct {
	sessions    session.Table               // by sessionIndex
	seq         realm.Seq                   // newest fact received
	reported    AckReport                   // the last report to the realm
	unconfirmed int                         // restored queues that no client has polled yet
	opening     uint64                      // newest number of OpenLocal, OpenAdopted or Restore
	adopting    map[QueueRef]*adoptingQueue // queues with missing events
	pollLatency pollLatency
}

// sessionIndex returns a user's index among the users of their session actor. User ids of a realm have no large gaps,
// so the indexes are dense.
func sessionIndex(u realm.UserID) int64 { return int64(u) / SessionActors }

// session returns a user's session, or nil. The state may be nil.
func (r *sessionState) session(u realm.UserID) *session.Session {
	if r == nil {
		return nil
	}
	return r.sessions.Get(sessionIndex(u))
}

// newSessionActor makes the session actor with that index.
func newSessionActor(all *Sessions, index int) *sessionActor {
	return &sessionActor{
		all:          all,
		index:        index,
		now:          all.env.elapsed(),
		refsSince:    all.env.elapsed() + EvictionGrace,
		queueOptions: all.env.Protocol.NewQueueOptions(),
	}
}

// Receive handles one message.
func (s *sessionActor) Receive(message any) {
	switch m := message.(type) {
	case pollBatch:
		s.handlePolls(m)
	case *deliver:
		s.deliver(m)
	case Message:
		m.handle(s)
	}
}

// open returns the state and creates it if needed.
func (s *sessionActor) open() *sessionState {
	if s.state == nil {
		s.state = &sessionState{}
	}
	return s.state
}

// restored returns the messages that restore queues after the events up to fact seq are on disk. Of the publications,
// each session actor gets those that its queues may not have acknowledged; acked is the fact up to which all queues of
// each session actor have acknowledged everything.
func (all *Sessions) restored(queues []realm.Queue, publications []realm.Publication, acked *[SessionActors]realm.Seq,
	seq realm.Seq,
) (m [SessionActors]*Restore) {
	var parts [SessionActors][]realm.Queue
	for _, q := range queues {
		k := ActorOf(q.User)
		parts[k] = append(parts[k], q)
	}
	events, _ := Split(publications)
	for k := range parts {
		owed, size := dropAcknowledged(events[k], acked[k])
		all.CountUndelivered(size)
		m[k] = &Restore{Queues: parts[k], Unacked: owed, Seq: seq, recipients: size}
	}
	return m
}

// dropAcknowledged returns the publications that a session actor needs if all its queues have acknowledged everything
// up to a fact, and the number of their recipients. Of the facts up to this fact, it keeps only the notices for the
// session actor itself.
func dropAcknowledged(publications []realm.Publication, through realm.Seq) (out []realm.Publication, size int64) {
	for _, t := range publications {
		if t.Seq <= through {
			t.Notices = slices.DeleteFunc(t.Notices, func(n realm.Notice) bool { return !Internal(n) })
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

func (m *Restore) handle(s *sessionActor) {
	if m.Replace {
		s.drop()
	}
	r := s.open()
	r.opening = max(r.opening, m.Opening)
	r.unconfirmed++ // no report before all queues are open: a queue may be closed among these facts
	for _, q := range m.Queues {
		s.openQueue(r, q, true, m.Idle)
	}
	s.deliver(&deliver{publications: m.Unacked, recipients: m.recipients})
	r.seq = max(r.seq, m.Seq)
	r.unconfirmed--
}

func (Drop) handle(s *sessionActor) { s.drop() }

func (m CheckIdle) handle(s *sessionActor) {
	busy := false
	if r := s.state; r != nil {
		busy = len(r.adopting) > 0
		r.sessions.EachQueue(func(q *queue.Queue) { busy = busy || q.HasPoll() })
	}
	m.Reply(busy)
}

func (Leave) handle(s *sessionActor) {
	s.drop()
	s.sweep(s.now) // the metrics
}

// drop removes all queues.
func (s *sessionActor) drop() {
	r := s.state
	if r == nil {
		return
	}
	r.sessions.EachQueue(s.end)
	s.endAdoptingPolls(r, func(*queue.PollRequest) bool { return true })
	s.state = nil
}

// openQueue opens a queue, unless it exists. restored says that its client may have acknowledged events before this
// process started, idle for how many seconds the client has not polled.
func (s *sessionActor) openQueue(r *sessionState, q realm.Queue, restored bool, idle int64) {
	if s.all.empty[s.index].Swap(false) {
		s.now = s.all.env.elapsed() // it was not swept
	}
	opened := queue.New(&q, s.now-idle, restored)
	opened.Options = s.queueOptions(&q)
	if r.sessions.GetOrCreate(sessionIndex(q.User)).Add(opened) {
		s.all.env.Metrics.OpenQueues.Add(1)
		if restored {
			r.unconfirmed++
		}
	}
}

// answerPoll answers the waiting poll of a queue that got an event. If no poll waits, it checks the limits of the
// queue.
func (s *sessionActor) answerPoll(r *sessionState, q *queue.Queue) {
	if p, events := q.TakePoll(s.now); p != nil {
		s.all.env.Metrics.ParkedPolls.Add(-1)
		s.all.env.Metrics.Deliveries.Add(1)
		weight, _ := s.all.env.Protocol.AnswerPoll(p, q.Reg.ID, events)
		r.pollLatency.answers.Add(admission.Answers{Count: 1, Events: weight})
	} else if q.Full() {
		s.all.env.Metrics.QueuesEvicted.Add(1)
		s.all.env.Log.Warn("event queue evicted: too many unacked events", "realm", s.all.Realm,
			"user", int64(q.Reg.User), "queue", string(q.Reg.ID), "events", q.UnackedCount())
		s.requestClose(q)
	}
	if !s.all.env.Node.ReadOnly() && q.NeedsTick(r.seq) {
		s.all.env.Node.Tick(s.all.Realm)
	}
}

// requestClose asks the realm to close a queue, once.
func (s *sessionActor) requestClose(q *queue.Queue) {
	if q.CloseRequested || s.all.env.Node.ReadOnly() { // the next sweep tries again
		return
	}
	q.CloseRequested = true
	s.all.env.Node.CloseQueue(s.all.Realm, q.Reg.ID)
}

// remove removes a queue that the realm has closed, or that has moved to another node.
func (s *sessionActor) remove(r *sessionState, x QueueRef) {
	if q := r.session(x.User).Remove(x.ID); q != nil {
		s.confirmQueue(r, q.Restored())
		r.forgetAdopting(x)
		s.end(q)
	}
}

// end counts a queue as removed, and answers its waiting poll with no events.
func (s *sessionActor) end(q *queue.Queue) {
	s.all.env.Metrics.OpenQueues.Add(-1)
	if p := q.Close(); p != nil {
		s.all.env.Metrics.ParkedPolls.Add(-1)
		s.all.env.Protocol.AnswerPoll(p, q.Reg.ID, nil)
	}
}

func (Reload) handle(s *sessionActor) {
	r := s.state
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

func (m sweepQueues) handle(s *sessionActor) {
	s.sweep(m.now)
	if m.done != nil {
		m.done <- struct{}{}
	}
}

// sweep sends heartbeats, closes idle queues, and tells the realm which facts its queues have acknowledged.
func (s *sessionActor) sweep(now int64) {
	s.now = now
	r, unacked := s.state, 0
	if r != nil {
		low := NoQueue
		var account accountRefs
		var accounts []accountRefs // with many unacked events
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.Reg.User != account.user {
				account = accountRefs{user: q.Reg.User}
			}
			if q.HeartbeatDue(now) {
				s.all.env.Metrics.Heartbeats.Add(1)
				q.AppendEphemeral(r.seq, s.all.env.Protocol.Heartbeat())
				s.answerPoll(r, q)
			} else if q.Expired(now) {
				s.requestClose(q)
			}
			low = min(low, q.AckedThrough(r.seq))
			unacked += q.UnackedCount()
			if !q.CloseRequested {
				account.refs += q.UnackedCount()
			}
			if q.Next == nil && int64(account.refs) > s.all.env.MaxRefs.Load()/uncountedRefs {
				accounts = append(accounts, account)
			}
		})
		s.limitRefs(r, accounts, now)
		s.reportAcks(r, low, false)
		if low == NoQueue {
			s.all.empty[s.index].Store(true)
		}
	}
	s.all.env.Metrics.UnackedEvents.Add(int64(unacked - s.unackedEvents))
	s.unackedEvents = unacked
}

// reportAcks reports the fact up to which all queues have acknowledged everything to the realm actor, if the report has
// changed.
func (s *sessionActor) reportAcks(r *sessionState, low realm.Seq, confirmed bool) {
	if report := (AckReport{s.index, low, r.seq, confirmed, r.opening}); report != r.reported {
		r.reported = report
		s.all.env.Runtime.Send(s.all.main, report)
	}
}

// confirmQueue counts down the restored queues that no client has polled yet; confirmed says that one of them has just
// been polled. After the last one it reports the acknowledgements to the realm at once, not with the next sweep. Until
// this report the realm stores the events of every queue, and a server that is killed again before would also store all
// events of this process.
func (s *sessionActor) confirmQueue(r *sessionState, confirmed bool) {
	if !confirmed {
		return
	}
	if r.unconfirmed--; r.unconfirmed == 0 {
		s.reportAcks(r, r.ackedThrough(), true)
	}
}

// ackedThrough returns the fact up to which all queues have acknowledged everything.
func (r *sessionState) ackedThrough() realm.Seq {
	low := NoQueue
	r.sessions.EachQueue(func(q *queue.Queue) { low = min(low, q.AckedThrough(r.seq)) })
	return low
}

// handle answers from the user's queues that get messages and are hosted here.
func (m *checkState) handle(s *sessionActor) {
	var x State
	if r := s.state; r.session(m.user) != nil {
		for q := r.session(m.user).First; q != nil; q = q.Next {
			if !q.Reg.WantsEvent("message") {
				continue
			}
			x.Polling = x.Polling || q.HasPoll() || s.now-q.LastContact() < offlineAfter
			x.Received = x.Received || q.AckedThrough(r.seq) >= m.seq
		}
	}
	m.reply <- x
}

// offlineAfter is for how many seconds after a client's last poll its user counts as connected (protocol).
const offlineAfter = 600

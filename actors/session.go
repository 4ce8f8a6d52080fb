package actors

import (
	"math"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// Messages of a session actor. To lists of deliver hold only the shard's own users.
type (
	deliver struct {
		realm      *realmHandle
		told       []realm.Told
		recipients int64 // recipients, counted in Undelivered until they have been served
	}
	restoreQueues struct {
		realm   *realmHandle
		queues  []realm.Queue
		unacked deliver   // what they may not have acknowledged
		seq     realm.Seq // newest fact on disk
	}
	pollBatch  []*queue.PollRequest
	cancelPoll struct {
		realm realm.ID
		user  realm.UserID
		queue realm.QueueID
		reply queue.Reply
	}
	deliveryCheck struct {
		realm realm.ID
		user  realm.UserID
		seq   realm.Seq
		reply chan deliveryState
	}
	deliveryState struct{ polling, received bool }
	sweepQueues   struct{ now int64 } // elapsed seconds
	drainPolls    struct{ done chan struct{} }
)

// shard is the session actor of every user whose id falls into it.
type shard struct {
	srv           *Server
	index         int
	realms        map[realm.ID]*shardRealm
	now           int64 // the house's elapsed seconds: no queue lives longer or shorter because somebody set the clock
	unackedEvents int   // events in all its queues at the last sweep
	draining      bool
	queueOptions  func(*realm.Queue) any
	lastPolled    *shardRealm // the realm of the last poll: polls of one realm arrive together
	prefetched    int64       // see prefetchQueues
}

type shardRealm struct {
	handle      *realmHandle
	sessions    session.Table // of the shard's own users: see seat
	seq         realm.Seq     // newest fact heard of
	reported    ackReport     // what the realm was last told
	unconfirmed int           // queues that came back and have not been asked yet
}

// shardIndex is a user's place among those of his shard.
func shardIndex(u realm.UserID) int64 { return int64(u) / Shards }

func (r *shardRealm) session(u realm.UserID) *session.Session { return r.sessions.Get(shardIndex(u)) }

func newShard(srv *Server, n int) *shard {
	return &shard{srv: srv, index: n, realms: map[realm.ID]*shardRealm{}, now: srv.elapsed(), queueOptions: srv.protocol.NewQueueOptions()}
}

func shardOf(u realm.UserID) int { return int(uint64(u) % Shards) }

func (s *shard) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case pollBatch:
		s.handlePolls(m)
	case *deliver:
		s.deliver(m)
	case *cancelPoll:
		s.cancelPoll(m)
	case sweepQueues:
		s.sweepQueues(m.now)
	case evictQueues:
		s.evictQueues(m)
	case *restoreQueues:
		s.restoreQueues(m)
	case drainPolls:
		s.drainPolls(m)
	case *deliveryCheck:
		s.checkDelivery(m)
	}
}

func (s *shard) realm(h *realmHandle) *shardRealm {
	r := s.realms[h.id]
	if r == nil {
		r = &shardRealm{handle: h}
		s.realms[h.id] = r
	}
	return r
}

// restoreQueues opens the queues that came back with a realm's rows, then tells what they may not have acknowledged: all in one
// message, because the first polls may be there already, and a client may have seen the newest fact there is.
func (srv *Server) restoreQueues(a *realmActor, queues []realm.Queue, told []realm.Told) {
	var parts [Shards][]realm.Queue
	for _, q := range queues {
		k := shardOf(q.User)
		parts[k] = append(parts[k], q)
	}
	events, _ := splitByShard(told)
	for k := range parts {
		owed, size := dropAcknowledged(events[k], a.unacked.acked[k])
		srv.Metrics.Undelivered.Add(size)
		srv.runtime.send(srv.shards[k], &restoreQueues{a.handle, parts[k], deliver{a.handle, owed, size}, a.durable})
	}
	// Every queue hears that the server started anew; also queues that the replay opened are then known as revived.
	srv.runtime.send(a.handle.pid, &ask{decide: func(t *realm.Turn) (any, error) { return nil, t.AnnounceRestart() }, caller: realm.Caller{System: true}, reply: make(chan answer, 1)})
}

// dropAcknowledged is what of events a session actor needs whose queues have acknowledged everything up to a number, and how
// many recipients that has: before it, only what is for the actor itself.
func dropAcknowledged(told []realm.Told, through realm.Seq) (out []realm.Told, size int64) {
	for _, t := range told {
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

func (s *shard) restoreQueues(m *restoreQueues) {
	r := s.realm(m.realm)
	r.unconfirmed++ // what ends among the kept facts must not report for queues that open further on
	for _, q := range m.queues {
		s.openQueue(r, q, true)
	}
	m.unacked.realm = m.realm
	s.deliver(&m.unacked)
	r.seq = max(r.seq, m.seq)
	r.unconfirmed--
}

func (s *shard) openQueue(r *shardRealm, q realm.Queue, revived bool) {
	mine := queue.New(&q, s.now, revived)
	mine.Options = s.queueOptions(&q)
	if r.sessions.GetOrCreate(shardIndex(q.User)).Add(mine) {
		s.srv.Metrics.OpenQueues.Add(1)
		if revived {
			r.unconfirmed++
		}
	}
}

// answerPoll answers the waiting poll of a queue that got something, and minds the queue's bounds.
func (s *shard) answerPoll(r *shardRealm, q *queue.Queue) {
	if p, events := q.TakePoll(s.now); p != nil {
		s.srv.Metrics.ParkedPolls.Add(-1)
		s.srv.Metrics.Deliveries.Add(1)
		s.srv.protocol.AnswerPoll(p, q.Reg.ID, events)
	} else if q.Full() {
		s.srv.Metrics.QueuesEvicted.Add(1)
		s.srv.log.Warn("event queue given up: too far behind", "realm", r.handle.id, "user", int64(q.Reg.User), "queue", string(q.Reg.ID), "events", q.UnackedCount())
		s.requestClose(r, q)
	}
	if q.NeedsTick(r.seq) {
		s.srv.runSystemAsync(r.handle, func(t *realm.Turn) (any, error) { return nil, t.Tick() })
	}
}

// runSystemAsync runs a command of the server itself without waiting for it.
func (srv *Server) runSystemAsync(r *realmHandle, decide func(*realm.Turn) (any, error)) {
	srv.runtime.send(r.pid, &ask{caller: realm.Caller{System: true, Client: "Internal"}, decide: decide, reply: make(chan answer, 1)})
}

func (s *shard) requestClose(r *shardRealm, q *queue.Queue) {
	if q.CloseRequested {
		return
	}
	q.CloseRequested = true
	id := q.Reg.ID
	s.srv.runSystemAsync(r.handle, func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: id}.Decide(t) })
}

func (s *shard) closeQueue(r *shardRealm, e *realm.QueueClosed) {
	if q := r.session(e.User).Remove(e.ID); q != nil {
		s.srv.Metrics.OpenQueues.Add(-1)
		s.confirmQueue(r, q.Restored())
		if p := q.Close(); p != nil {
			s.srv.Metrics.ParkedPolls.Add(-1)
			s.srv.protocol.AnswerPoll(p, e.ID, nil)
		}
	}
}

// sweepQueues beats, expires, and tells each realm how far its queues have acknowledged.
func (s *shard) sweepQueues(now int64) {
	s.now = now
	held := 0
	for _, r := range s.realms {
		low := realm.Seq(math.MaxUint64)
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.HeartbeatDue(now) {
				s.srv.Metrics.Heartbeats.Add(1)
				q.AppendEphemeral(r.seq, s.srv.protocol.Heartbeat())
				s.answerPoll(r, q)
			} else if q.Expired(now) {
				s.requestClose(r, q)
			}
			low = min(low, q.AckedThrough(r.seq))
			held += q.UnackedCount()
		})
		s.reportAcks(r, low, false)
	}
	s.srv.Metrics.UnackedEvents.Add(int64(held - s.unackedEvents))
	s.unackedEvents = held
}

func (s *shard) reportAcks(r *shardRealm, low realm.Seq, sure bool) {
	if report := (ackReport{s.index, low, r.seq, sure}); report != r.reported {
		r.reported = report
		s.srv.runtime.send(r.handle.pid, report)
	}
}

// confirmQueue notes, if one is true, that one more revived queue's client has polled, so that it is known how far it has come. When
// the last has, the realm is told at once how far all have come: until then it keeps the events of every queue, and a
// server that is killed again before the next sweep would add this life's events to them.
func (s *shard) confirmQueue(r *shardRealm, one bool) {
	if !one {
		return
	}
	if r.unconfirmed--; r.unconfirmed == 0 {
		low := realm.Seq(math.MaxUint64)
		r.sessions.EachQueue(func(q *queue.Queue) { low = min(low, q.AckedThrough(r.seq)) })
		s.reportAcks(r, low, true)
	}
}

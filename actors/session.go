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
	h             *Server
	n             int
	realms        map[realm.ID]*shardRealm
	now           int64 // the house's elapsed seconds: no queue lives longer or shorter because somebody set the clock
	unackedEvents int   // events in all its queues at the last sweep
	draining      bool
	optionsOf     func(*realm.Queue) any
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

func newShard(h *Server, n int) *shard {
	return &shard{h: h, n: n, realms: map[realm.ID]*shardRealm{}, now: h.elapsed(), optionsOf: h.protocol.NewQueueOptions()}
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

// deliver splits notices by shard. An audience is resolved and final: nothing is filtered by today's state.
func (h *Server) deliver(r *realmHandle, told []realm.Told) {
	parts, sizes := splitByShard(told)
	for k, p := range parts {
		if p != nil {
			h.Metrics.Undelivered.Add(sizes[k])
			h.runtime.send(h.shards[k], &deliver{r, p, sizes[k]})
		}
	}
}

func splitByShard(told []realm.Told) (parts [Shards][]realm.Told, sizes [Shards]int64) {
	for _, t := range told {
		var mine [Shards][]realm.Notice
		for _, n := range t.Notices {
			if len(n.To) == 1 {
				k := shardOf(n.To[0])
				mine[k] = append(mine[k], n)
				sizes[k]++
				continue
			}
			var to [Shards][]realm.UserID
			for _, u := range n.To {
				k := shardOf(u)
				if to[k] == nil {
					to[k] = make([]realm.UserID, 0, len(n.To)/Shards+4)
				}
				to[k] = append(to[k], u)
			}
			for k, list := range to {
				if list != nil {
					sizes[k] += int64(len(list))
					mine[k] = append(mine[k], realm.Notice{To: list, Event: n.Event, PublicOnly: n.PublicOnly})
				}
			}
		}
		for k, notices := range mine {
			if notices != nil {
				parts[k] = append(parts[k], realm.Told{Seq: t.Seq, Ephemeral: t.Ephemeral, Notices: notices})
			}
		}
	}
	return parts, sizes
}

// restoreQueues opens the queues that came back with a realm's rows, then tells what they may not have acknowledged: all in one
// message, because the first polls may be there already, and a client may have seen the newest fact there is.
func (h *Server) restoreQueues(a *realmActor, queues []realm.Queue, told []realm.Told) {
	var parts [Shards][]realm.Queue
	for _, q := range queues {
		k := shardOf(q.User)
		parts[k] = append(parts[k], q)
	}
	events, _ := splitByShard(told)
	for k := range parts {
		owed, size := dropAcknowledged(events[k], a.unacked.acked[k])
		h.Metrics.Undelivered.Add(size)
		h.runtime.send(h.shards[k], &restoreQueues{a.handle, parts[k], deliver{a.handle, owed, size}, a.durable})
	}
	// Every queue hears that the server started anew; also queues that the replay opened are then known as revived.
	h.runtime.send(a.handle.pid, &ask{decide: func(t *realm.Turn) (any, error) { return nil, t.AnnounceRestart() }, caller: realm.Caller{System: true}, reply: make(chan answer, 1)})
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
	mine.Options = s.optionsOf(&q)
	if r.sessions.GetOrCreate(shardIndex(q.User)).Add(mine) {
		s.h.Metrics.OpenQueues.Add(1)
		if revived {
			r.unconfirmed++
		}
	}
}

func (s *shard) deliver(m *deliver) {
	defer s.h.Metrics.Undelivered.Add(-m.recipients)
	r := s.realm(m.realm)
	for i := range m.told {
		t := &m.told[i]
		r.seq = max(r.seq, t.Seq)
		var places eventCounts
		if len(t.Notices) > 1 {
			places = map[*queue.Queue]int{}
		}
		for j := range t.Notices {
			s.deliverNotice(r, t, &t.Notices[j], places)
		}
	}
}

// eventCounts counts, for each queue, the events one fact has told it so far: the k of their ids. It is only used when a
// fact has more than one notice.
type eventCounts = map[*queue.Queue]int

func (s *shard) deliverNotice(r *shardRealm, t *realm.Told, n *realm.Notice, at eventCounts) {
	switch e := n.Event.(type) {
	case *realm.QueueOpened:
		s.openQueue(r, e.Queue, t.Seq <= r.handle.replayedThrough)
		return
	case *realm.QueueClosed:
		s.closeQueue(r, e)
		return
	case *realm.Ticked:
		return // only the number matters
	}
	shaped := s.h.protocol.RenderNotice(n, session.RenderContext{Realm: r.handle.id, Site: r.handle.site, Texts: s.h, SeenRecently: r.handle.recentlyActive})
	for i, u := range n.To {
		if i%prefetchCount == 0 {
			s.prefetchQueues(r, n.To[i:min(i+prefetchCount, len(n.To))])
		}
		ss := r.session(u)
		if ss == nil {
			continue
		}
		for q := ss.First; q != nil; q = q.Next {
			events := shaped.EventsFor(u, q.Reg, q.Options)
			if len(events) == 0 {
				continue
			}
			if t.Ephemeral {
				for _, e := range events {
					q.AppendEphemeral(t.Seq, e)
				}
			} else {
				first := 0
				if len(t.Notices) > 1 {
					first = at[q]
					at[q] += len(events)
				}
				q.Append(t.Seq, first, events)
			}
			s.answerPoll(r, q)
		}
	}
}

// prefetchCount is how many queues are reached for at once. Of 10,000 none is in a cache: to touch sixteen in a row, nothing in
// between depending on them, takes hardly longer than to wait for one.
const prefetchCount = 16

// prefetchQueues touches what an event for these users is going to need.
func (s *shard) prefetchQueues(r *shardRealm, to []realm.UserID) {
	for _, u := range to {
		ss := r.session(u)
		if ss == nil || ss.First == nil {
			continue
		}
		p, n := ss.First.Prefetch()
		if w, ok := p.(queue.Prefetcher); ok {
			n += int64(w.Prefetch())
		}
		s.prefetched += n
	}
}

// prefetchPolls touches what these polls are going to need.
func (s *shard) prefetchPolls(list pollBatch) {
	for _, p := range list {
		r := s.polledRealm(p.Realm)
		if r == nil {
			continue
		}
		if ss := r.session(p.User); ss != nil && ss.First != nil {
			_, n := ss.First.Prefetch()
			s.prefetched += n
		}
	}
}

// answerPoll answers the waiting poll of a queue that got something, and minds the queue's bounds.
func (s *shard) answerPoll(r *shardRealm, q *queue.Queue) {
	if p, events := q.TakePoll(s.now); p != nil {
		s.h.Metrics.ParkedPolls.Add(-1)
		s.h.Metrics.Deliveries.Add(1)
		s.h.protocol.AnswerPoll(p, q.Reg.ID, events)
	} else if q.Full() {
		s.h.Metrics.QueuesEvicted.Add(1)
		s.h.log.Warn("event queue given up: too far behind", "realm", r.handle.id, "user", int64(q.Reg.User), "queue", string(q.Reg.ID), "events", q.UnackedCount())
		s.requestClose(r, q)
	}
	if q.NeedsTick(r.seq) {
		s.h.runSystemAsync(r.handle, func(t *realm.Turn) (any, error) { return nil, t.Tick() })
	}
}

// runSystemAsync runs a command of the server itself without waiting for it.
func (h *Server) runSystemAsync(r *realmHandle, decide func(*realm.Turn) (any, error)) {
	h.runtime.send(r.pid, &ask{caller: realm.Caller{System: true, Client: "Internal"}, decide: decide, reply: make(chan answer, 1)})
}

func (s *shard) requestClose(r *shardRealm, q *queue.Queue) {
	if q.CloseRequested {
		return
	}
	q.CloseRequested = true
	id := q.Reg.ID
	s.h.runSystemAsync(r.handle, func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: id}.Decide(t) })
}

func (s *shard) closeQueue(r *shardRealm, e *realm.QueueClosed) {
	if q := r.session(e.User).Remove(e.ID); q != nil {
		s.h.Metrics.OpenQueues.Add(-1)
		s.confirmQueue(r, q.Restored())
		if p := q.Close(); p != nil {
			s.h.Metrics.ParkedPolls.Add(-1)
			s.h.protocol.AnswerPoll(p, e.ID, nil)
		}
	}
}

// Poll hands a request for events to the session that owns the queue; the session answers it, now or later.
func (h *Server) Poll(p queue.PollRequest) {
	h.Metrics.Polls.Add(1)
	h.runtime.send(h.shards[shardOf(p.User)], pollBatch{&p})
}

// PollAll is Poll for many requests at once: a mailbox's price is paid once for each session actor.
func (h *Server) PollAll(list []*queue.PollRequest) {
	h.Metrics.Polls.Add(int64(len(list)))
	var sizes [Shards]int
	for _, p := range list {
		sizes[shardOf(p.User)]++
	}
	all := make(pollBatch, len(list)) // all parts lie in it
	var parts [Shards]pollBatch
	for k, n := range sizes {
		parts[k], all = all[:0:n], all[n:]
	}
	for _, p := range list {
		k := shardOf(p.User)
		parts[k] = append(parts[k], p)
	}
	for k, p := range parts {
		if len(p) > 0 {
			h.runtime.send(h.shards[k], p)
		}
	}
}

// CancelPoll says that the client of a waiting poll has left.
func (h *Server) CancelPoll(p queue.PollRequest) {
	h.runtime.send(h.shards[shardOf(p.User)], &cancelPoll{p.Realm, p.User, p.Queue, p.Reply})
}

// polledRealm returns the shard's part of a realm, or nil if it has none.
func (s *shard) polledRealm(id realm.ID) *shardRealm {
	if s.lastPolled == nil || s.lastPolled.handle.id != id {
		s.lastPolled = s.realms[id]
	}
	return s.lastPolled
}

func (s *shard) handlePolls(list pollBatch) {
	for i, p := range list {
		if i%prefetchCount == 0 {
			s.prefetchPolls(list[i:min(i+prefetchCount, len(list))])
		}
		s.handlePoll(p)
	}
}

func (s *shard) handlePoll(m *queue.PollRequest) {
	r := s.polledRealm(m.Realm)
	var q *queue.Queue
	if r != nil {
		q = r.session(m.User).Find(m.Queue)
	}
	if q == nil {
		s.h.protocol.AnswerError(m.Reply, realm.ErrBadQueue(m.Queue))
		return
	}
	was := q.Restored()
	a, err := q.Poll(m.Reply, m.Last, m.DontBlock || s.draining, s.now, s.h.runtime.randomBelow(queue.HeartbeatSpread), r.seq)
	if err != nil {
		s.h.protocol.AnswerError(m.Reply, err)
		return
	}
	s.confirmQueue(r, was && !q.Restored())
	if a.Replaced != nil {
		s.h.Metrics.ParkedPolls.Add(-1)
		s.h.protocol.AnswerPoll(a.Replaced, m.Queue, nil)
	}
	if a.Parked {
		s.h.Metrics.ParkedPolls.Add(1)
		return
	}
	s.h.Metrics.Deliveries.Add(1)
	s.h.protocol.AnswerPoll(m.Reply, m.Queue, a.Events)
}

func (s *shard) cancelPoll(m *cancelPoll) {
	if r := s.realms[m.realm]; r != nil {
		if q := r.session(m.user).Find(m.queue); q != nil {
			was := q.HasPoll()
			q.CancelPoll(m.reply, s.now)
			if was && !q.HasPoll() {
				s.h.Metrics.ParkedPolls.Add(-1)
			}
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
				s.h.Metrics.Heartbeats.Add(1)
				q.AppendEphemeral(r.seq, s.h.protocol.Heartbeat())
				s.answerPoll(r, q)
			} else if q.Expired(now) {
				s.requestClose(r, q)
			}
			low = min(low, q.AckedThrough(r.seq))
			held += q.UnackedCount()
		})
		s.reportAcks(r, low, false)
	}
	s.h.Metrics.UnackedEvents.Add(int64(held - s.unackedEvents))
	s.unackedEvents = held
}

func (s *shard) reportAcks(r *shardRealm, low realm.Seq, sure bool) {
	if report := (ackReport{s.n, low, r.seq, sure}); report != r.reported {
		r.reported = report
		s.h.runtime.send(r.handle.pid, report)
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

// drainPolls answers every waiting poll with nothing and lets no further one wait: the server is about to stop.
func (s *shard) drainPolls(m drainPolls) {
	s.draining = true
	for _, r := range s.realms {
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.HasPoll() {
				q.AppendEphemeral(r.seq, s.h.protocol.Heartbeat())
				s.answerPoll(r, q)
			}
		})
	}
	m.done <- struct{}{}
}

// Drain answers all waiting polls; clients poll again and find the next process.
func (h *Server) Drain() {
	done := make(chan struct{}, Shards)
	for _, s := range h.shards {
		h.runtime.send(s, drainPolls{done})
	}
	for range h.shards {
		<-done
	}
}

package actors

import (
	"math"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
	"parley/wire"
)

// Messages of a session actor. To lists of deliver hold only the shard's own users.
type (
	deliver struct {
		realm *handle
		told  []realm.Told
		to    int64 // recipients, counted in Undelivered until they have been served
	}
	revive struct {
		realm  *handle
		queues []realm.Queue
		kept   deliver   // what they may not have acknowledged
		seq    realm.Seq // newest fact on disk
	}
	polls []*wire.PollRequest
	gone  struct {
		realm realm.ID
		user  realm.UserID
		queue realm.QueueID
		reply wire.Reply
	}
	reach struct {
		realm realm.ID
		user  realm.UserID
		seq   realm.Seq
		reply chan reached
	}
	reached struct{ polls, heard bool }
	sweep   struct{ now int64 } // elapsed seconds
	drain   struct{ done chan struct{} }
)

// shard is the session actor of every user whose id falls into it.
type shard struct {
	h        *House
	n        int
	realms   map[realm.ID]*shardRealm
	now      int64 // the house's elapsed seconds: no queue lives longer or shorter because somebody set the clock
	held     int   // events in all its queues at the last sweep
	draining bool
	kinds    wire.Kinds
	touched  int64 // see reachFor
}

type shardRealm struct {
	handle   *handle
	sessions session.Book // of the shard's own users: see seat
	seq      realm.Seq    // newest fact heard of
	reported through      // what the realm was last told
	unsure   int          // queues that came back and have not been asked yet
}

// seat is a user's place among those of his shard.
func seat(u realm.UserID) int64 { return int64(u) / Shards }

func (r *shardRealm) session(u realm.UserID) *session.Session { return r.sessions.At(seat(u)) }

func newShard(h *House, n int) *shard {
	return &shard{h: h, n: n, realms: map[realm.ID]*shardRealm{}, now: h.elapsed()}
}

func shardOf(u realm.UserID) int { return int(uint64(u) % Shards) }

func (s *shard) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case polls:
		s.polls(m)
	case *deliver:
		s.deliver(m)
	case *gone:
		s.gone(m)
	case sweep:
		s.sweep(m.now)
	case giveUp:
		s.giveUp(m)
	case *revive:
		s.revive(m)
	case drain:
		s.drain(m)
	case *reach:
		s.reach(m)
	}
}

func (s *shard) realm(h *handle) *shardRealm {
	r := s.realms[h.id]
	if r == nil {
		r = &shardRealm{handle: h}
		s.realms[h.id] = r
	}
	return r
}

// deliver splits notices by shard. An audience is resolved and final: nothing is filtered by today's state.
func (h *House) deliver(r *handle, told []realm.Told) {
	parts, sizes := split(told)
	for k, p := range parts {
		if p != nil {
			h.Metrics.Undelivered.Add(sizes[k])
			h.stage.send(h.shards[k], &deliver{r, p, sizes[k]})
		}
	}
}

func split(told []realm.Told) (parts [Shards][]realm.Told, sizes [Shards]int64) {
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

// revive opens the queues that came back with a realm's rows, then tells what they may not have acknowledged: all in one
// message, because the first polls may be there already, and a client may have seen the newest fact there is.
func (h *House) revive(a *realmActor, queues []realm.Queue, told []realm.Told) {
	var parts [Shards][]realm.Queue
	for _, q := range queues {
		k := shardOf(q.User)
		parts[k] = append(parts[k], q)
	}
	events, _ := split(told)
	for k := range parts {
		owed, size := unacknowledged(events[k], a.kept.acked[k])
		h.Metrics.Undelivered.Add(size)
		h.stage.send(h.shards[k], &revive{a.handle, parts[k], deliver{a.handle, owed, size}, a.durable})
	}
	// Every queue hears that the server started anew; also queues that the replay opened are then known as revived.
	h.stage.send(a.handle.pid, &ask{decide: func(t *realm.Turn) (any, error) { return nil, t.Restarted() }, caller: realm.Caller{System: true}, reply: make(chan answer, 1)})
}

// unacknowledged is what of events a session actor needs whose queues have acknowledged everything up to a number, and how
// many recipients that has: before it, only what is for the actor itself.
func unacknowledged(told []realm.Told, through realm.Seq) (out []realm.Told, size int64) {
	for _, t := range told {
		if t.Seq <= through {
			t.Notices = slices.DeleteFunc(t.Notices, func(n realm.Notice) bool { return !unheard(n) })
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

func (s *shard) revive(m *revive) {
	r := s.realm(m.realm)
	r.unsure++ // what ends among the kept facts must not report for queues that open further on
	for _, q := range m.queues {
		s.open(r, q, true)
	}
	m.kept.realm = m.realm
	s.deliver(&m.kept)
	r.seq = max(r.seq, m.seq)
	r.unsure--
}

func (s *shard) open(r *shardRealm, q realm.Queue, revived bool) {
	mine := queue.New(&q, s.now, revived)
	mine.Kind = s.kinds.Of(&q)
	if r.sessions.Make(seat(q.User)).Open(mine) {
		s.h.Metrics.Queues.Add(1)
		if revived {
			r.unsure++
		}
	}
}

func (s *shard) deliver(m *deliver) {
	defer s.h.Metrics.Undelivered.Add(-m.to)
	r := s.realm(m.realm)
	for i := range m.told {
		t := &m.told[i]
		r.seq = max(r.seq, t.Seq)
		var places places
		if len(t.Notices) > 1 {
			places = map[*queue.Queue]int{}
		}
		for j := range t.Notices {
			s.notice(r, t, &t.Notices[j], places)
		}
	}
}

// places counts, for each queue, the events one fact has told it so far: the k of their ids. It is only used when a
// fact has more than one notice.
type places = map[*queue.Queue]int

func (s *shard) notice(r *shardRealm, t *realm.Told, n *realm.Notice, at places) {
	switch e := n.Event.(type) {
	case *realm.QueueOpened:
		s.open(r, e.Queue, t.Seq <= r.handle.revived)
		return
	case *realm.QueueClosed:
		s.closed(r, e)
		return
	case *realm.Ticked:
		return // only the number matters
	case *realm.ErrandsAdded:
		if o := s.h.outside.Load(); o != nil && t.Seq > r.handle.revived { // those it finds when it begins
			(*o).Errands(r.handle.id, r.handle.site, e)
		}
		return
	}
	shaped := wire.Shape(n, wire.Context{Realm: r.handle.id, Site: r.handle.site, Texts: s.h, Seen: r.handle.recent})
	for i, u := range n.To {
		if i%nearby == 0 {
			s.reachFor(r, n.To[i:min(i+nearby, len(n.To))])
		}
		ss := r.session(u)
		if ss == nil {
			continue
		}
		for q := ss.First; q != nil; q = q.Next {
			events := shaped.For(u, q.Reg, q.Kind.(*wire.Kind))
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
			s.serve(r, q)
		}
	}
}

// nearby is how many queues are reached for at once. Of 10,000 none is in a cache: to touch sixteen in a row, nothing in
// between depending on them, takes hardly longer than to wait for one.
const nearby = 16

// reachFor touches what an event for these users is going to need.
func (s *shard) reachFor(r *shardRealm, to []realm.UserID) {
	for _, u := range to {
		ss := r.session(u)
		if ss == nil || ss.First == nil {
			continue
		}
		p, n := ss.First.Near()
		if w, ok := p.(interface{ Near() uint32 }); ok {
			n += int64(w.Near())
		}
		s.touched += n
	}
}

// reachPolls touches what these polls are going to need.
func (s *shard) reachPolls(list polls) {
	for _, p := range list {
		if p.At != nil {
			_, n := p.At.Near()
			s.touched += n
		}
	}
}

// serve answers the waiting poll of a queue that got something, and minds the queue's bounds.
func (s *shard) serve(r *shardRealm, q *queue.Queue) {
	if p, events := q.Take(s.now); p != nil {
		s.h.Metrics.Parked.Add(-1)
		s.h.Metrics.Deliveries.Add(1)
		wire.AnswerEvents(p.(wire.Reply), q.Reg.ID, events)
	} else if q.Full() {
		s.h.Metrics.GivenUp.Add(1)
		s.h.log.Warn("event queue given up: too far behind", "realm", r.handle.id, "user", int64(q.Reg.User), "queue", string(q.Reg.ID), "events", q.Len())
		s.expire(r, q)
	}
	if q.Crowded(r.seq) {
		s.h.ask1(r.handle, func(t *realm.Turn) (any, error) { return nil, t.Tick() })
	}
}

// ask1 runs a command of the server itself without waiting for it.
func (h *House) ask1(r *handle, decide func(*realm.Turn) (any, error)) {
	h.stage.send(r.pid, &ask{caller: realm.Caller{System: true, Client: "Internal"}, decide: decide, reply: make(chan answer, 1)})
}

func (s *shard) expire(r *shardRealm, q *queue.Queue) {
	if q.Ending {
		return
	}
	q.Ending = true
	id := q.Reg.ID
	s.h.ask1(r.handle, func(t *realm.Turn) (any, error) { return realm.CloseQueue{ID: id}.Decide(t) })
}

func (s *shard) closed(r *shardRealm, e *realm.QueueClosed) {
	if q := r.session(e.User).Close(e.ID); q != nil {
		s.h.Metrics.Queues.Add(-1)
		s.sure(r, q.Revived())
		if p := q.End(); p != nil {
			s.h.Metrics.Parked.Add(-1)
			wire.AnswerEvents(p.(wire.Reply), e.ID, nil)
		}
	}
}

// Poll hands a request for events to the session that owns the queue; the session answers it, now or later.
func (h *House) Poll(p wire.PollRequest) {
	h.Metrics.Polls.Add(1)
	h.stage.send(h.shards[shardOf(p.User)], polls{&p})
}

// PollAll is Poll for many requests at once: a mailbox's price is paid once for each session actor.
func (h *House) PollAll(list []*wire.PollRequest) {
	h.Metrics.Polls.Add(int64(len(list)))
	var sizes [Shards]int
	for _, p := range list {
		sizes[shardOf(p.User)]++
	}
	all := make(polls, len(list)) // all parts lie in it
	var parts [Shards]polls
	for k, n := range sizes {
		parts[k], all = all[:0:n], all[n:]
	}
	for _, p := range list {
		k := shardOf(p.User)
		parts[k] = append(parts[k], p)
	}
	for k, p := range parts {
		if len(p) > 0 {
			h.stage.send(h.shards[k], p)
		}
	}
}

// Gone says that the client of a waiting poll has left.
func (h *House) Gone(p wire.PollRequest) {
	h.stage.send(h.shards[shardOf(p.User)], &gone{p.Realm, p.User, p.Queue, p.Reply})
}

func (s *shard) polls(list polls) {
	for i, p := range list {
		if i%nearby == 0 {
			s.reachPolls(list[i:min(i+nearby, len(list))])
		}
		s.poll(p)
	}
}

func (s *shard) poll(m *wire.PollRequest) {
	q, r := m.At, s.realms[m.Realm]
	if q == nil || q.Ended() {
		q = nil
		if r != nil {
			q = r.session(m.User).Find(m.Queue)
		}
		m.At = q
	}
	if q == nil {
		wire.AnswerRefusal(m.Reply, realm.BadQueue(m.Queue))
		return
	}
	was := q.Revived()
	a, err := q.Ask(m.Reply, m.Last, m.DontBlock || s.draining, s.now, s.h.stage.dice(queue.BeatSpread), r.seq)
	if err != nil {
		wire.AnswerRefusal(m.Reply, err)
		return
	}
	s.sure(r, was && !q.Revived())
	if a.Replaced != nil {
		s.h.Metrics.Parked.Add(-1)
		wire.AnswerEvents(a.Replaced.(wire.Reply), m.Queue, nil)
	}
	if a.Wait {
		s.h.Metrics.Parked.Add(1)
		return
	}
	s.h.Metrics.Deliveries.Add(1)
	wire.AnswerEvents(m.Reply, m.Queue, a.Events)
}

func (s *shard) gone(m *gone) {
	if r := s.realms[m.realm]; r != nil {
		if q := r.session(m.user).Find(m.queue); q != nil {
			was := q.Waiting()
			q.Leave(m.reply, s.now)
			if was && !q.Waiting() {
				s.h.Metrics.Parked.Add(-1)
			}
		}
	}
}

// sweep beats, expires, and tells each realm how far its queues have acknowledged.
func (s *shard) sweep(now int64) {
	s.now = now
	held := 0
	for _, r := range s.realms {
		low := realm.Seq(math.MaxUint64)
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.Due(now) {
				s.h.Metrics.Beats.Add(1)
				q.AppendEphemeral(r.seq, wire.Heartbeat)
				s.serve(r, q)
			} else if q.Expired(now) {
				s.expire(r, q)
			}
			low = min(low, q.Through(r.seq))
			held += q.Len()
		})
		s.report(r, low, false)
	}
	s.h.Metrics.Held.Add(int64(held - s.held))
	s.held = held
}

func (s *shard) report(r *shardRealm, low realm.Seq, sure bool) {
	if report := (through{s.n, low, r.seq, sure}); report != r.reported {
		r.reported = report
		s.h.stage.send(r.handle.pid, report)
	}
}

// sure notes, if one is true, that one more revived queue's client has polled, so that it is known how far it has come. When
// the last has, the realm is told at once how far all have come: until then it keeps the events of every queue, and a
// server that is killed again before the next sweep would add this life's events to them.
func (s *shard) sure(r *shardRealm, one bool) {
	if !one {
		return
	}
	if r.unsure--; r.unsure == 0 {
		low := realm.Seq(math.MaxUint64)
		r.sessions.EachQueue(func(q *queue.Queue) { low = min(low, q.Through(r.seq)) })
		s.report(r, low, true)
	}
}

// drain answers every waiting poll with nothing and lets no further one wait: the server is about to stop.
func (s *shard) drain(m drain) {
	s.draining = true
	for _, r := range s.realms {
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.Waiting() {
				q.AppendEphemeral(r.seq, wire.Heartbeat)
				s.serve(r, q)
			}
		})
	}
	m.done <- struct{}{}
}

// Drain answers all waiting polls; clients poll again and find the next process.
func (h *House) Drain() {
	done := make(chan struct{}, Shards)
	for _, s := range h.shards {
		h.stage.send(s, drain{done})
	}
	for range h.shards {
		<-done
	}
}

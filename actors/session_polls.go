package actors

import (
	"parley/actors/admission"
	"parley/actors/mailbox"
	"parley/actors/queue"
	"parley/actors/realm"
)

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
	r := srv.find(id)
	if r == nil {
		for _, p := range list {
			srv.protocol.AnswerError(p.Reply, realm.ErrBadQueue(p.Queue))
		}
		return
	}
	if srv.cluster != nil && !r.owned.Load() && srv.following.Load() == nil { // the owner has the queues
		for _, p := range list {
			srv.protocol.AnswerError(p.Reply, realm.ErrNotOwner)
		}
		return
	}
	var sizes [SessionActors]int
	for _, p := range list {
		sizes[sessionActorOf(p.User)]++
	}
	all := make(pollBatch, len(list)) // the memory of all parts
	var parts [SessionActors]pollBatch
	for k, n := range sizes {
		parts[k], all = all[:0:n], all[n:]
	}
	for _, p := range list {
		k := sessionActorOf(p.User)
		parts[k] = append(parts[k], p)
	}
	for k, p := range parts {
		if len(p) > 0 {
			srv.runtime.Send(r.sessionActors[k], p)
		}
	}
}

// CancelPoll says that the client of a waiting poll has left.
func (srv *Server) CancelPoll(p queue.PollRequest) {
	if r := srv.find(p.Realm); r != nil {
		srv.runtime.Send(r.sessionActors[sessionActorOf(p.User)], &cancelPoll{p.Realm, p.User, p.Queue, p.Reply})
	}
}

// polledRealm returns the session actor's part of a realm, or nil if it has none.
func (s *sessionActor) polledRealm(id realm.ID) *sessionRealm {
	if s.lastPolled == nil || s.lastPolled.handle.id != id {
		s.lastPolled = s.realms[id]
	}
	return s.lastPolled
}

// handlePolls answers or parks polls.
func (s *sessionActor) handlePolls(list pollBatch) {
	for i, p := range list {
		if i%prefetchCount == 0 {
			s.prefetchPolls(list[i:min(i+prefetchCount, len(list))])
		}
		s.handlePoll(p)
	}
	if s.lastPolled != nil {
		s.lastPolled.pollLatency.report(s.lastPolled.handle.flow, s.srv.sinceOpen())
	}
}

// handlePoll answers a poll, or parks it until there is an event.
func (s *sessionActor) handlePoll(m *queue.PollRequest) {
	r := s.polledRealm(m.Realm)
	var q *queue.Queue
	if r != nil {
		q = r.session(m.User).Find(m.Queue)
	}
	if q == nil || s.isIncomplete(r, q, m) {
		s.pollIncomplete(r, q, m)
		return
	}
	s.answerOrPark(r, q, m)
}

// answerOrPark answers a poll for a queue that is complete here, or parks it.
func (s *sessionActor) answerOrPark(r *sessionRealm, q *queue.Queue, m *queue.PollRequest) {
	if m.AuthVersion != 0 && m.AuthVersion != s.srv.AuthVersion() {
		s.srv.protocol.AnswerPoll(m.Reply, m.Queue, nil)
		return
	}
	wasRestored := q.Restored()
	delay := s.srv.runtime.RandomBelow(queue.HeartbeatSpread)
	contact := q.LastContact()
	a, err := q.Poll(m.Reply, m.Last, m.DontBlock || s.draining, s.now, delay, r.seq)
	if err != nil {
		s.srv.protocol.AnswerError(m.Reply, err)
		return
	}
	s.confirmQueue(r, wasRestored && !q.Restored())
	if a.Replaced != nil {
		s.srv.Metrics.ParkedPolls.Add(-1)
		s.srv.protocol.AnswerPoll(a.Replaced, m.Queue, nil)
	}
	if a.Parked {
		s.srv.Metrics.ParkedPolls.Add(1)
		return
	}
	s.srv.Metrics.Deliveries.Add(1)
	weight, complete := s.srv.protocol.AnswerPoll(m.Reply, m.Queue, a.Events)
	if len(a.Events) > 0 && !wasRestored && s.now-contact < absentAfter {
		behind := len(a.Events) >= admission.MinBacklog || !complete
		r.pollLatency.count(q.SeqOf(a.Events[0].ID), weight, behind, s.srv.sinceOpen)
	}
}

// cancelPoll forgets a waiting poll. Another poll that has replaced it stays.
func (s *sessionActor) cancelPoll(m *cancelPoll) {
	if r := s.realms[m.realm]; r != nil {
		if q := r.session(m.user).Find(m.queue); q != nil {
			waiting := q.HasPoll()
			q.CancelPoll(m.reply, s.now)
			if waiting && !q.HasPoll() {
				s.srv.Metrics.ParkedPolls.Add(-1)
			}
		}
		if x := r.adopting[QueueRef{m.user, m.queue}]; x != nil && x.poll != nil && x.poll.Reply == m.reply {
			x.poll = nil
		}
	}
}

// endPolls answers every waiting poll of a user with no events, because an API key of the user was revoked. Clients
// with a valid key poll again.
func (s *sessionActor) endPolls(m endPolls) {
	r := s.realms[m.realm]
	if r == nil {
		return
	}
	s.endAdoptingPolls(r, func(p *queue.PollRequest) bool { return p.User == m.user })
	ss := r.session(m.user)
	if ss == nil {
		return
	}
	for q := ss.First; q != nil; q = q.Next {
		if p := q.EndPoll(s.now); p != nil {
			s.srv.Metrics.ParkedPolls.Add(-1)
			if m.answerAfter == 0 {
				s.srv.protocol.AnswerPoll(p, q.Reg.ID, nil)
				continue
			}
			ended := answerEndedPoll{p, q.Reg.ID}
			s.srv.runtime.After(m.answerAfter, func() { s.srv.runtime.Send(r.handle.sessionActors[s.index], ended) })
		}
	}
}

// prefetchPolls reads the memory that these polls are going to need.
func (s *sessionActor) prefetchPolls(list pollBatch) {
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

// drainPolls answers every waiting poll with a heartbeat and lets no further one wait, because the server is about to
// stop.
func (s *sessionActor) drainPolls(m drainPolls) {
	s.draining = true
	for _, r := range s.realms {
		s.endAdoptingPolls(r, func(*queue.PollRequest) bool { return true })
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.HasPoll() {
				q.AppendEphemeral(r.seq, s.srv.protocol.Heartbeat())
				s.answerPoll(r, q)
			}
		})
	}
	m.done <- struct{}{}
}

// Drain answers all waiting polls. The clients poll again and reach the next process.
func (srv *Server) Drain() {
	var all []mailbox.Address
	srv.eachRealm(func(r *realmHandle) { all = append(all, r.sessionActors[:]...) })
	done := make(chan struct{}, len(all))
	for _, s := range all {
		srv.runtime.Send(s, drainPolls{done})
	}
	for range all {
		<-done
	}
}

package delivery

import (
	"time"

	"parley/actors/admission"
	"parley/actors/queue"
	"parley/actors/realm"
)

// Messages about polls.
type (
	pollBatch  []*queue.PollRequest
	cancelPoll struct {
		user  realm.UserID
		queue realm.QueueID
		reply queue.Reply
	}
	endPolls struct {
		user        realm.UserID
		answerAfter time.Duration // how long the answers wait
	}
	answerEndedPoll struct {
		reply queue.Reply
		queue realm.QueueID
	}
	drainPolls struct{ done chan<- struct{} }
)

// handlePolls answers or parks polls.
func (s *sessionActor) handlePolls(list pollBatch) {
	for i, p := range list {
		if i%prefetchCount == 0 {
			s.prefetchPolls(list[i:min(i+prefetchCount, len(list))])
		}
		s.handlePoll(p)
	}
	if s.state != nil {
		s.state.pollLatency.report(s.all.Flow, s.all.env.SinceOpen())
	}
}

// handlePoll answers a poll, or parks it until there is an event.
func (s *sessionActor) handlePoll(m *queue.PollRequest) {
	r := s.state
	q := r.session(m.User).Find(m.Queue)
	if q != nil && s.refusesKey(q, m) {
		return
	}
	if q == nil || s.isIncomplete(r, q, m) {
		s.pollIncomplete(r, q, m)
		return
	}
	s.answerOrPark(r, q, m)
}

// refusesKey refuses a poll with a scoped key that did not open the queue, as if the queue did not exist.
func (s *sessionActor) refusesKey(q *queue.Queue, m *queue.PollRequest) bool {
	if m.Key == 0 || m.Key == q.Reg.Key {
		return false
	}
	s.all.env.Protocol.AnswerError(m.Reply, realm.ErrBadQueue(m.Queue))
	return true
}

// answerOrPark answers a poll for a queue that is complete here, or parks it.
func (s *sessionActor) answerOrPark(r *sessionState, q *queue.Queue, m *queue.PollRequest) {
	if s.refusesKey(q, m) { // a poll that waited for the adoption of the queue
		return
	}
	if m.AuthVersion != 0 && m.AuthVersion != s.all.env.Node.AuthVersion() {
		s.all.env.Protocol.AnswerPoll(m.Reply, m.Queue, nil)
		return
	}
	wasRestored := q.Restored()
	delay := s.all.env.Runtime.RandomBelow(queue.HeartbeatSpread)
	contact := q.LastContact()
	a, err := q.Poll(m.Reply, m.Last, m.DontBlock || s.draining, s.now, delay, r.seq)
	if err != nil {
		s.all.env.Protocol.AnswerError(m.Reply, err)
		return
	}
	s.confirmQueue(r, wasRestored && !q.Restored())
	if a.Replaced != nil {
		s.all.env.Metrics.ParkedPolls.Add(-1)
		s.all.env.Protocol.AnswerPoll(a.Replaced, m.Queue, nil)
	}
	if a.Parked {
		s.all.env.Metrics.ParkedPolls.Add(1)
		return
	}
	s.all.env.Metrics.Deliveries.Add(1)
	weight, complete := s.all.env.Protocol.AnswerPoll(m.Reply, m.Queue, a.Events)
	if len(a.Events) > 0 && !wasRestored && s.now-contact < absentAfter {
		behind := len(a.Events) >= admission.MinBacklog || !complete
		r.pollLatency.count(q.SeqOf(a.Events[0].ID), weight, behind, s.all.env.SinceOpen)
	}
}

// handle forgets a waiting poll. Another poll that has replaced it stays.
func (m *cancelPoll) handle(s *sessionActor) {
	r := s.state
	if r == nil {
		return
	}
	if q := r.session(m.user).Find(m.queue); q != nil {
		waiting := q.HasPoll()
		q.CancelPoll(m.reply, s.now)
		if waiting && !q.HasPoll() {
			s.all.env.Metrics.ParkedPolls.Add(-1)
		}
	}
	if x := r.adopting[QueueRef{m.user, m.queue}]; x != nil && x.poll != nil && x.poll.Reply == m.reply {
		x.poll = nil
	}
}

// handle ends the polls of a user. Clients with a valid key poll again.
func (m endPolls) handle(s *sessionActor) {
	r := s.state
	if r == nil {
		return
	}
	s.endAdoptingPolls(r, func(p *queue.PollRequest) bool { return p.User == m.user })
	for q := r.session(m.user).FirstQueue(); q != nil; q = q.Next {
		if p := q.EndPoll(s.now); p != nil {
			s.all.env.Metrics.ParkedPolls.Add(-1)
			ended := answerEndedPoll{p, q.Reg.ID}
			if m.answerAfter == 0 {
				ended.handle(s)
				continue
			}
			s.all.env.Runtime.After(m.answerAfter, func() { s.all.Send(s.index, ended) })
		}
	}
}

func (m answerEndedPoll) handle(s *sessionActor) {
	s.all.env.Protocol.AnswerPoll(m.reply, m.queue, nil)
}

// prefetchPolls reads the memory that these polls are going to need.
func (s *sessionActor) prefetchPolls(list pollBatch) {
	for _, p := range list {
		if ss := s.state.session(p.User); ss != nil && ss.First != nil {
			_, n := ss.First.Prefetch()
			s.prefetched += n
		}
	}
}

// handle answers the waiting polls, because the server is about to stop.
func (m drainPolls) handle(s *sessionActor) {
	s.draining = true
	if r := s.state; r != nil {
		s.endAdoptingPolls(r, func(*queue.PollRequest) bool { return true })
		r.sessions.EachQueue(func(q *queue.Queue) {
			if q.HasPoll() {
				q.AppendEphemeral(r.seq, s.all.env.Protocol.Heartbeat())
				s.answerPoll(r, q)
			}
		})
	}
	m.done <- struct{}{}
}

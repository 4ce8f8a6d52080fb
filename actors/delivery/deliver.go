package delivery

import (
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/stream"
)

// Split returns the notices of each session actor, and how many recipients they have.
func Split(publications []realm.Publication) (
	parts [SessionActors][]realm.Publication, sizes [SessionActors]int64,
) {
	for _, t := range publications {
		var byActor [SessionActors][]realm.Notice
		for _, n := range t.Notices {
			if len(n.To) == 1 {
				k := ActorOf(n.To[0])
				byActor[k] = append(byActor[k], n)
				sizes[k]++
				continue
			}
			var to [SessionActors][]realm.UserID
			for _, u := range n.To {
				k := ActorOf(u)
				if to[k] == nil {
					to[k] = make([]realm.UserID, 0, len(n.To)/SessionActors+4)
				}
				to[k] = append(to[k], u)
			}
			for k, list := range to {
				if list != nil {
					sizes[k] += int64(len(list))
					byActor[k] = append(byActor[k], realm.Notice{To: list, Event: n.Event, PublicOnly: n.PublicOnly})
				}
			}
		}
		for k, notices := range byActor {
			if notices != nil {
				parts[k] = append(parts[k], realm.Publication{Seq: t.Seq, Ephemeral: t.Ephemeral, Notices: notices})
			}
		}
	}
	return parts, sizes
}

// Internal reports whether a notice is for the session actors, not for clients.
func Internal(n realm.Notice) bool { return n.Event.EventType() == "" }

// deliver are publications for a session actor. Their recipients are only users of the session actor.
type deliver struct {
	publications []realm.Publication
	recipients   int64     // counted in Metrics.Undelivered until the events are in their queues
	part         *delivery // nil for events restored at the start
}

// deliver delivers the notices of some publications, in order. Their audiences were resolved when the facts were
// applied and are final: the present state of the realm does not matter.
func (s *sessionActor) deliver(m *deliver) {
	defer s.all.CountUndelivered(-m.recipients)
	if m.part != nil {
		defer m.part.partDelivered()
	}
	r := s.open()
	if n := len(m.publications); n > 0 {
		now := s.all.env.SinceOpen()
		r.pollLatency.mark(m.publications[n-1].Seq, now)
		r.pollLatency.report(s.all.Flow, now)
	}
	for i := range m.publications {
		t := &m.publications[i]
		r.seq = max(r.seq, t.Seq)
		var counts eventCounts
		if len(t.Notices) > 1 {
			counts = map[*queue.Queue]int{}
		}
		for j := range t.Notices {
			s.deliverNotice(r, t, &t.Notices[j], counts)
		}
	}
}

// eventCounts counts the events of one fact for each queue so far: the k of the next event id. It is only used if a
// fact has several notices.
type eventCounts = map[*queue.Queue]int

// deliverNotice puts the events of a notice into the queues of its audience and answers the polls that wait for them.
// Notices for the session actor itself open and close queues.
func (s *sessionActor) deliverNotice(r *sessionState, t *realm.Publication, n *realm.Notice, counts eventCounts) {
	switch e := n.Event.(type) {
	case *realm.QueueOpened:
		s.openQueue(r, e.Queue, t.Seq <= s.all.ReplayedThrough, 0)
		return
	case *realm.QueueClosed:
		s.remove(r, QueueRef{e.User, e.ID})
		return
	case *realm.Ticked:
		return // only its sequence number is needed
	}
	renderer := s.renderer(n)
	for i, u := range n.To {
		if i%prefetchCount == 0 {
			s.prefetchQueues(r, n.To[i:min(i+prefetchCount, len(n.To))])
		}
		ss := r.session(u)
		if ss == nil {
			continue
		}
		for q := ss.First; q != nil; q = q.Next {
			events := renderer.EventsFor(u, q.Reg, q.Options)
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
					first = counts[q]
					counts[q] += len(events)
				}
				q.Append(t.Seq, first, events)
			}
			s.answerPoll(r, q)
		}
	}
}

// prefetchCount is how many queues are prefetched at once. Of 10,000 queues none is in the processor's cache. Reading
// sixteen in a row, with no dependency between them, takes hardly longer than waiting for one.
const prefetchCount = 16

// prefetchQueues reads the memory that an event for these users is going to need.
func (s *sessionActor) prefetchQueues(r *sessionState, to []realm.UserID) {
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

// WeightOf returns the work of sending the batch's events to a recipient that gets all of its texts.
func WeightOf(c *stream.Committed) int {
	bytes := 0
	for _, t := range c.Batch.Texts {
		if t.Body != nil {
			bytes += max(len(t.Body.Text), len(t.Body.HTML))
		}
	}
	return queue.Weight(bytes)
}

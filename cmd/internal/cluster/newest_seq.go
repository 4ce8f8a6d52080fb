package cluster

import (
	"context"
	"sync"

	"parley/actors/realm"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// seqQuestions are the questions of a node for the newest fact of each organization. At most one per organization is on
// its way, and one more waits for its end.
type seqQuestions struct {
	mu  sync.Mutex
	all map[realm.ID]*seqRounds
}

// seqRounds are the questions about one organization. A caller cannot share the question that is on its way: the owner
// may have answered it before the caller's own write.
type seqRounds struct {
	next *seqQuestion // nil: nobody waits for the next question
}

// seqQuestion is one question, which all its callers share.
type seqQuestion struct {
	done chan struct{} // closed when there is an answer
	seq  realm.Seq
	err  error
}

// NewestSeq asks the owner for its newest fact of an organization. See httpd.Cluster.
func (e *Edge) NewestSeq(ctx context.Context, id realm.ID) (realm.Seq, error) {
	q := e.newest.join(id, func() (realm.Seq, error) {
		ctx, cancel := context.WithTimeout(e.ctx, httpd.MaxCatchUpWait)
		defer cancel()
		link, err := e.waitForLink(ctx, false)
		if err != nil {
			return 0, err
		}
		return askSeq(ctx, link, id)
	})
	select {
	case <-q.done:
		return q.seq, q.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// join returns the next question about an organization. ask asks it, without a question on its way.
func (s *seqQuestions) join(id realm.ID, ask func() (realm.Seq, error)) *seqQuestion {
	s.mu.Lock()
	defer s.mu.Unlock()
	rounds, running := s.all[id]
	if !running {
		rounds = &seqRounds{}
		if s.all == nil {
			s.all = map[realm.ID]*seqRounds{}
		}
		s.all[id] = rounds
	}
	if rounds.next == nil {
		rounds.next = &seqQuestion{done: make(chan struct{})}
	}
	q := rounds.next
	if !running {
		go s.run(id, rounds, ask)
	}
	return q
}

// run asks questions until no caller waits.
func (s *seqQuestions) run(id realm.ID, rounds *seqRounds, ask func() (realm.Seq, error)) {
	for {
		s.mu.Lock()
		q := rounds.next
		if rounds.next = nil; q == nil {
			delete(s.all, id)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		q.seq, q.err = ask()
		close(q.done)
	}
}

// askSeq asks the owner for its newest fact of an organization.
func askSeq(ctx context.Context, link *peer.Link, id realm.ID) (seq realm.Seq, err error) {
	answer, err := link.CallOnce(ctx, encode(callSeq, id))
	if err == nil {
		err = decode(answer, &seq)
	}
	return seq, err
}

// newestSeq returns the last fact of an organization that this core has acknowledged. The view makes sure that this
// core leads: a core that was deposed without knowing it returns an error.
func (c *Core) newestSeq(id realm.ID) (realm.Seq, error) {
	_, err := c.Orgs.View(id, realm.Caller{System: true, Client: "Internal"},
		func(realm.View) (any, error) { return nil, nil })
	if err != nil {
		return 0, err
	}
	return c.Orgs.DurableSeq(id), nil
}

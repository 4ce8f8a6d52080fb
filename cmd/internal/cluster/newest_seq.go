package cluster

import (
	"context"
	"sync"

	"parley/actors/realm"
	"parley/wire/httpd"
	"parley/wire/peer"
)

// questions are the questions of a node to the owner, each about a K with an answer A. At most one about each K is on
// its way, and one more waits for its end.
type questions[K comparable, A any] struct {
	mu  sync.Mutex
	all map[K]*questionRounds[A]
}

// questionRounds are the questions about one K. A caller cannot share the question that is on its way: the owner may
// have answered it before the caller's own write.
type questionRounds[A any] struct {
	next *question[A] // nil: no request waits for the next question
}

// question is one question, which all its callers share.
type question[A any] struct {
	done   chan struct{} // closed when there is an answer
	answer A
	err    error
}

// wait returns the answer.
func (q *question[A]) wait(ctx context.Context) (a A, err error) {
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
		return a, ctx.Err()
	}
}

// NewestSeq asks the owner for its newest fact of an organization. See httpd.Cluster.
func (e *Follower) NewestSeq(ctx context.Context, id realm.ID) (realm.Seq, error) {
	q := e.newest.join(id, func() (realm.Seq, error) {
		ctx, cancel := context.WithTimeout(e.ctx, httpd.MaxCatchUpWait)
		defer cancel()
		link, err := e.waitForLink(ctx, false)
		if err != nil {
			return 0, err
		}
		return askSeq(ctx, link, id)
	})
	return q.wait(ctx)
}

// join returns the next question about a key. ask asks it, without a question about the key on its way.
func (s *questions[K, A]) join(key K, ask func() (A, error)) *question[A] {
	s.mu.Lock()
	defer s.mu.Unlock()
	rounds, running := s.all[key]
	if !running {
		rounds = &questionRounds[A]{}
		if s.all == nil {
			s.all = map[K]*questionRounds[A]{}
		}
		s.all[key] = rounds
	}
	if rounds.next == nil {
		rounds.next = &question[A]{done: make(chan struct{})}
	}
	q := rounds.next
	if !running {
		go s.run(key, rounds, ask)
	}
	return q
}

// run asks questions until no caller waits.
func (s *questions[K, A]) run(key K, rounds *questionRounds[A], ask func() (A, error)) {
	for {
		s.mu.Lock()
		q := rounds.next
		if rounds.next = nil; q == nil {
			delete(s.all, key)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		q.answer, q.err = ask()
		close(q.done)
	}
}

// askSeq asks the owner for its newest fact of an organization.
func askSeq(ctx context.Context, link *peer.Link, id realm.ID) (seq realm.Seq, err error) {
	answer, err := link.CallShared(ctx, encode(callSeq, id))
	if err == nil {
		err = decode(answer, &seq)
	}
	return seq, err
}

// newestSeq returns the last fact of an organization that this core has acknowledged. The view makes sure that this
// core leads: a core that was deposed without knowing it returns an error.
func (c *Leader) newestSeq(id realm.ID) (realm.Seq, error) {
	_, err := c.Orgs.View(id, realm.System,
		func(realm.View) (any, error) { return nil, nil })
	if err != nil {
		return 0, err
	}
	return c.Orgs.DurableSeq(id), nil
}

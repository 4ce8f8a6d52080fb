// Package session is one user's listeners as plain data: which queue hears what.
package session

import (
	"parley/actors/queue"
	"parley/actors/realm"
)

// Session is one user's live state: the queues, chained. It is its zero value while nobody listens.
type Session struct{ First *queue.Queue }

// Find is the user's queue with that id, or nil: another user's queue is simply not there.
func (s *Session) Find(id realm.QueueID) *queue.Queue {
	if s == nil {
		return nil
	}
	for q := s.First; q != nil; q = q.Next {
		if q.Reg.ID == id {
			return q
		}
	}
	return nil
}

// Add adds a queue behind the others and reports true; one that is there already stays.
func (s *Session) Add(q *queue.Queue) bool {
	at := &s.First
	for ; *at != nil; at = &(*at).Next {
		if (*at).Reg.ID == q.Reg.ID {
			return false
		}
	}
	*at = q
	return true
}

// Remove takes a queue out and returns it.
func (s *Session) Remove(id realm.QueueID) *queue.Queue {
	if s == nil {
		return nil
	}
	for at := &s.First; *at != nil; at = &(*at).Next {
		if q := *at; q.Reg.ID == id {
			*at, q.Next = q.Next, nil
			return q
		}
	}
	return nil
}

// Table finds sessions by a number: users of one organization are numbered without large gaps, so that a place in a list
// serves better than a map, and who is told something in order of his number is found in order of memory.
type Table struct{ pages []*page }

// pageSize is how many sessions are made at once: few, as most organizations are small, and there is a book a shard.
const pageSize = 32

type page [pageSize]Session

// Get is the session of a number, nil if nobody near it ever listened.
func (b *Table) Get(n int64) *Session {
	if n < 0 || n/pageSize >= int64(len(b.pages)) || b.pages[n/pageSize] == nil {
		return nil
	}
	return &b.pages[n/pageSize][n%pageSize]
}

// GetOrCreate is At for somebody who is going to listen.
func (b *Table) GetOrCreate(n int64) *Session {
	for n/pageSize >= int64(len(b.pages)) {
		b.pages = append(b.pages, nil)
	}
	if b.pages[n/pageSize] == nil {
		b.pages[n/pageSize] = new(page)
	}
	return b.Get(n)
}

// EachQueue calls fn with every queue.
func (b *Table) EachQueue(fn func(*queue.Queue)) {
	for _, p := range b.pages {
		if p == nil {
			continue
		}
		for i := range p {
			for q := p[i].First; q != nil; {
				next := q.Next // fn may close it
				fn(q)
				q = next
			}
		}
	}
}

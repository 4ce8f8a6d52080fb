package session

import (
	"parley/actors/queue"
	"parley/actors/realm"
)

// Session is one user's event queues, chained by Next. The zero value has none.
type Session struct{ First *queue.Queue }

// Find returns the user's queue with an id, or nil. It does not find other users' queues. The session may be nil.
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

// FirstQueue returns the user's first queue, or nil. The session may be nil.
func (s *Session) FirstQueue() *queue.Queue {
	if s == nil {
		return nil
	}
	return s.First
}

// Add appends a queue and reports true. It reports false if the session has a queue with that id already.
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

// Remove takes a queue out and returns it, or nil if there is none. The session may be nil.
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

// Table finds sessions by a small index. User ids of an organization have no large gaps, so a list of pages is better
// than a map: sessions of neighboring ids are next to each other in memory.
type Table struct{ pages []*page }

// pageSize is how many sessions are allocated together. It is small, because most organizations are, and each session
// actor has a table of its own.
const pageSize = 32

type page [pageSize]Session

// Get returns the session with an index, or nil if no user near it ever had a queue.
func (t *Table) Get(i int64) *Session {
	if i < 0 || i/pageSize >= int64(len(t.pages)) || t.pages[i/pageSize] == nil {
		return nil
	}
	return &t.pages[i/pageSize][i%pageSize]
}

// GetOrCreate returns the session with an index, and creates it if there is none.
func (t *Table) GetOrCreate(i int64) *Session {
	for i/pageSize >= int64(len(t.pages)) {
		t.pages = append(t.pages, nil)
	}
	if t.pages[i/pageSize] == nil {
		t.pages[i/pageSize] = new(page)
	}
	return t.Get(i)
}

// EachQueue calls visit with every queue. visit may remove the queue that it gets.
func (t *Table) EachQueue(visit func(*queue.Queue)) {
	for _, p := range t.pages {
		if p == nil {
			continue
		}
		for i := range p {
			for q := p[i].First; q != nil; {
				next := q.Next // before visit, which may remove q
				visit(q)
				q = next
			}
		}
	}
}

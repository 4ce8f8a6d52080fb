// Package session is one user's listeners as plain data: which queue hears what.
package session

import (
	"parley/actors/queue"
	"parley/actors/realm"
)

// Session is one user's live state: the queues, and when a client was last here.
type Session struct {
	User   realm.UserID
	Queues []*queue.Queue
}

// Find is the user's queue with that id, or nil: another user's queue is simply not there.
func (s *Session) Find(id realm.QueueID) *queue.Queue {
	if s == nil {
		return nil
	}
	for _, q := range s.Queues {
		if q.Reg.ID == id {
			return q
		}
	}
	return nil
}

// Open adds a queue; one that is there already stays.
func (s *Session) Open(q *queue.Queue) {
	if s.Find(q.Reg.ID) == nil {
		s.Queues = append(s.Queues, q)
	}
}

// Close takes a queue out and returns it.
func (s *Session) Close(id realm.QueueID) *queue.Queue {
	for i, q := range s.Queues {
		if q.Reg.ID == id {
			s.Queues = append(s.Queues[:i], s.Queues[i+1:]...)
			return q
		}
	}
	return nil
}

// Offline is after how many seconds without contact a queue counts as offline for notifications, whatever its
// lifetime (protocol).
const Offline = 600

// Online reports whether some queue that takes messages was heard of lately.
func (s *Session) Online(now int64) bool {
	for _, q := range s.Queues {
		if q.Reg.Wants("message") && (q.Waiting() || now-q.Contact() < Offline) {
			return true
		}
	}
	return false
}

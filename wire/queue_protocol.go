package wire

import (
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
)

// SessionProtocol is the client protocol as the session actors need it. Without Encodings, each session actor encodes
// every large event for itself.
type SessionProtocol struct{ Encodings *EventEncodings }

var _ session.Protocol = SessionProtocol{}

// NewQueueOptions returns a function that finds the *QueueOptions of a registration. Equal registrations share one.
func (SessionProtocol) NewQueueOptions() func(*realm.Queue) any {
	cache := &QueueOptionsCache{}
	return func(q *realm.Queue) any { return cache.Of(q) }
}

// RenderNotice prepares a notice for the queues of its audience.
func (p SessionProtocol) RenderNotice(n *realm.Notice, c RenderContext) session.NoticeRenderer {
	return NewNoticeRenderer(n, c, p.Encodings)
}

// AnswerPoll answers a poll with events, or with none. It returns the weight of the answer, and reports whether all
// events fit into it.
func (SessionProtocol) AnswerPoll(r Reply, id realm.QueueID, events []queue.UnackedEvent) (weight int, complete bool) {
	return AnswerPoll(r, id, events)
}

// AnswerError answers a poll with an error.
func (SessionProtocol) AnswerError(r Reply, err error) { AnswerError(r, err) }

// Heartbeat returns the event that tells a waiting client that the server is alive.
func (SessionProtocol) Heartbeat() *queue.Event { return Heartbeat }

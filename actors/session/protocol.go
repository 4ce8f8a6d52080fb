package session

import (
	"parley/actors/queue"
	"parley/actors/realm"
)

// Protocol is the part of the client protocol that the session actors use. Package wire implements it. Its methods may
// be called by several session actors at once; the values that they return belong to the session actor that asked.
type Protocol interface {
	// NewQueueOptions returns a function that one session actor uses as long as it runs. For a registration the
	// function returns its options: which events the queue gets, and how they are encoded. Equal registrations share
	// one value.
	NewQueueOptions() func(*realm.Queue) any
	// RenderNotice prepares a notice for the queues of its audience.
	RenderNotice(*realm.Notice, RenderContext) NoticeRenderer
	// AnswerPoll answers a poll with events, or with none. It returns the weight of the answer; see queue.Weight. It
	// reports whether all events fit into the answer.
	AnswerPoll(queue.Reply, realm.QueueID, []queue.UnackedEvent) (weight int, complete bool)
	// AnswerError answers a poll with an error.
	AnswerError(queue.Reply, error)
	// Heartbeat returns the event with which a waiting poll is answered if there is no other event. It is always the
	// same one.
	Heartbeat() *queue.Event
}

// NoticeRenderer encodes one notice for the queues of its audience. Queues with equal options share the encoded events.
type NoticeRenderer interface {
	// EventsFor returns the events of the notice for one queue of a user, encoded up to their ids. It returns nil if
	// the queue does not want them. The options are the ones that NewQueueOptions's function returned for the queue.
	EventsFor(u realm.UserID, q *realm.Queue, options any) []*queue.Event
}

// RenderContext has the data that rendering needs beside the event.
type RenderContext struct {
	Realm realm.ID
	Site  realm.Site
	Texts TextReader
	// SeenRecently reports whether a user was connected in the last presence.PartialSubscriberDays days. If it is nil,
	// no user was.
	SeenRecently func(realm.UserID) bool
}

// TextReader reads message texts. Text reports false if the text was erased, and an error if it is damaged.
type TextReader interface {
	Text(realm.ID, realm.BodyRef) (realm.Body, bool, error)
}

package queue

import "parley/actors/realm"

// Reply answers a parked request. Answer is called once and never blocks. It reports whether the client was still
// there.
type Reply interface {
	Answer(status int, parts ...[]byte) bool
}

// Prefetcher is a Reply that can load its memory into the processor's cache before it is needed. The result has no
// meaning: it keeps the compiler from removing the reads.
type Prefetcher interface {
	Prefetch() uint32
}

// PollRequest is one GET /events: it acknowledges every event up to Last and asks for the events after it.
type PollRequest struct {
	Realm     realm.ID
	User      realm.UserID
	Queue     realm.QueueID
	Last      int64 // last_event_id; -1 acknowledges nothing
	DontBlock bool  // answer at once, with no events if there are none
	Reply     Reply
	// AuthVersion is Server.AuthVersion before the credentials of the request were checked, or 0 if it was not asked.
	// If an account has changed since, the poll does not wait: the client repeats it with credentials that are checked
	// again.
	AuthVersion uint64
	// Key is the id of the scoped key that the request was sent with: it can poll only queues that it opened. 0: the
	// request has all rights of the account.
	Key int64
}

package queue

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of an event queue. evicted returns how many queues were closed because of it.
func Bounds(evicted func() int64) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "queue_events",
			Of:       "unacknowledged events of a queue",
			Overflow: "the queue is closed: BAD_EVENT_QUEUE_ID",
			Reason:   "a very busy organization reaches it in about an hour after the client has disconnected",
			Limit:    registry.Constant(MaxUnacked),
			Hits:     evicted,
		},
	}
}

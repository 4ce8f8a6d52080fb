package wire

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of answers and of encoded events.
func Bounds(e *EventEncodings) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "page_bytes",
			Of:       "bytes of the messages in one answer, before they are encoded",
			Overflow: "the page is shorter; 413 where a list of messages is asked for",
			Reason:   "5,000 messages of usual length fit; the HTML of a message can take 20 times as much as its text",
			Limit:    registry.Constant(MaxPageBytes),
		},
		{
			Name:     "listed_topics",
			Of:       "topics of a channel in one answer",
			Overflow: "older topics are left out",
			Reason:   "about 3 MB; clients show some hundred",
			Limit:    registry.Constant(MaxListedTopics),
		},
		{
			Name:     "listed_uploads",
			Of:       "uploads of a user in one answer",
			Overflow: "older uploads are left out",
			Reason:   "about 5 MB",
			Limit:    registry.Constant(MaxListedUploads),
		},
		{
			Name:     "cached_queue_options",
			Of:       "combinations of queue options that one session actor shares between queues",
			Overflow: "forgotten; queues that are opened later share new ones",
			Reason:   "there are few client programs, but clients can send any combination",
			Limit:    registry.Constant(MaxQueueOptions),
			Whole:    registry.Cached,
		},
		{
			Name:     "event_encoding_bytes",
			Of:       "bytes of large encoded events that the queues of all users share",
			Overflow: "the oldest ones are dropped and encoded again when a queue needs them",
			Reason:   "queues that are behind must not hold large events in memory",
			Limit:    registry.Constant(MaxEncodingBytes),
			Used:     e.Bytes,
			Hits:     e.Dropped,
			Whole:    registry.Cached,
		},
	}
}

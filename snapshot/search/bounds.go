package search

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of the index.
func (s *Service) Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "search_open_indexes",
			Of:       "search indexes that are open",
			Overflow: "the one that was used longest ago is closed, and opened again for its next search",
			Reason:   "files, goroutines and memory of each; the server needs descriptors for its data",
			Limit:    s.mostOpen,
			Used:     s.Opened,
			Whole:    "an organization has one index",
		},
		{
			Name:     "search_queue",
			Of:       "texts of one organization that wait to be indexed",
			Overflow: "the queue is dropped, and the index is compared with the disk",
			Reason:   "32 bytes each; a comparison takes a scan but no memory",
			Limit:    registry.Constant(MaxQueued),
			Used:     s.Queued,
			Whole:    registry.OfOne,
		},
	}
}

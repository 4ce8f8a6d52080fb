package snapshot

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of a store.
func (m Metrics) Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "store_cache_bytes",
			Of:       "bytes of the store's blocks in memory",
			Overflow: "the least recently read ones are dropped",
			Reason:   "keeps an idle server under 60 MB",
			Limit:    registry.Constant(DefaultCache),
			Used:     func() int64 { return m.Cache },
			Whole:    registry.Cached,
		},
	}
}

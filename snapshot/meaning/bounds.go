package meaning

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of the vectors. Its functions need a Service.
func (s *Service) Bounds() []registry.Bound {
	messages, tokens := int64(DefaultMessages), int64(DefaultDayTokens)
	if s != nil {
		messages, tokens = int64(s.o.Messages), s.o.DayTokens
	}
	read := func(n func() int64) func() int64 {
		return func() int64 {
			if s == nil {
				return 0
			}
			return n()
		}
	}
	return []registry.Bound{
		{
			Name:     "meaning_messages",
			Of:       "newest messages of one organization that search by meaning finds",
			Overflow: "the oldest one loses its vector",
			Reason:   "a search reads all vectors: 50,000 with 1,536 numbers each are 300 MB",
			Limit:    registry.Constant(messages),
			Used:     read(func() int64 { return s.most.Load() }),
			Whole:    registry.OfOne,
		},
		{
			Name:     "meaning_organization_tokens",
			Of:       "tokens that the vectors of the messages of one organization cost in a day; 0: no limit",
			Overflow: "the other messages get theirs on the next day (UTC)",
			Reason:   "the operator pays for them",
			Limit:    registry.Constant(tokens),
			Hits:     read(func() int64 { return s.dayHits.Load() }),
		},
		{
			Name:     "meaning_searches",
			Of:       "searches by meaning that read vectors at a time",
			Overflow: "503",
			Reason:   "each uses one processor for up to 100 ms, and 12 bytes of memory for each vector",
			Limit:    registry.Constant(maxSearches),
			Used:     read(func() int64 { return s.searches.Used() }),
			Hits:     read(func() int64 { return s.searches.Refused() }),
			Halved:   "snapshot/meaning TestSearchesAreShared",
		},
	}
}

// Metrics returns the metrics.
func (s *Service) Metrics() []registry.Metric {
	if s == nil {
		s = &Service{}
	}
	return []registry.Metric{
		{Name: "parley_meaning_vectors_total", Counter: true,
			Meaning: "Texts of messages that got a vector for search by meaning since the start.",
			Read:    s.vectors.Load},
		{Name: "parley_meaning_tokens_total", Counter: true,
			Meaning: "Tokens that these vectors have cost, as the service counts them or estimated.",
			Read:    s.tokens.Load},
		{Name: "parley_meaning_failures_total", Counter: true,
			Meaning: "Requests for vectors of messages that failed; the server tries again.", Read: s.failures.Load},
		{Name: "parley_meaning_refused_total", Counter: true,
			Meaning: "Texts of messages that the service refused; search by meaning does not find them.",
			Read:    s.refused.Load},
		{Name: "parley_meaning_pending",
			Meaning: "Texts of messages that wait for a vector, of the organization with the most.",
			Read:    s.pending.Load},
	}
}

package assist

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of the services. Its functions need a server that makes summaries itself: a single node or
// a core.
func (a *Assistant) Bounds() []registry.Bound {
	perUser, perOrganization := int64(defaultUserTokens), int64(defaultOrganizationTokens)
	if a != nil {
		perUser, perOrganization = a.tokens.perUser, a.tokens.perOrganization
	}
	return []registry.Bound{
		{
			Name:     "assist_requests",
			Of:       "requests at a time to services for summaries, translations and searches by meaning",
			Overflow: "503",
			Reason:   "a model answers few at a time, and each takes up to 45 seconds",
			Limit:    registry.Constant(maxInProgress),
			Used:     func() int64 { return a.places.Used() },
			Hits:     func() int64 { return a.places.Refused() },
			Shares:   func() registry.Shares { return a.places.Shares() },
		},
		{
			Name:     "assist_user_tokens",
			Of:       "tokens of summaries, translations and searches of one user in a day; 0: no limit",
			Overflow: "refused until the next day (UTC)",
			Reason:   "the operator pays for them",
			Limit:    registry.Constant(perUser),
			Used:     func() int64 { return a.tokens.read().user },
			Hits:     func() int64 { return a.tokens.read().userHits },
			Whole:    registry.OfOne,
		},
		{
			Name:     "assist_organization_tokens",
			Of:       "tokens that those of all users of one organization cost in a day; 0: no limit",
			Overflow: "refused until the next day (UTC)",
			Reason:   "the operator pays for them, and members can make further accounts",
			Limit:    registry.Constant(perOrganization),
			Used:     func() int64 { return a.tokens.read().organization },
			Hits:     func() int64 { return a.tokens.read().organizationHits },
			Whole:    registry.OfOne,
		},
		{
			Name:     "assist_parts",
			Of:       "summaries and translations that users read while they are written",
			Overflow: "the complete one that was read first is forgotten; its reader asks for it again",
			Reason:   "each has up to 8,000 characters; those that are being written are bounded by assist_requests",
			Limit:    registry.Constant(maxParts),
			Used:     func() int64 { return a.Parts() },
			Whole:    registry.Cached,
		},
		{
			Name:     "assist_cached",
			Of:       "summaries and translations that are kept until their messages change",
			Overflow: "the one that was not used for the longest time is made again when it is asked for",
			Reason:   "each has up to 8,000 characters",
			Limit:    registry.Constant(maxCached),
			Used:     func() int64 { return a.cache.len() },
			Whole:    registry.Cached,
		},
	}
}

// Metrics returns the metrics without labels.
func (a *Assistant) Metrics() []registry.Metric {
	return []registry.Metric{{Name: "parley_assist_tokens_total", Counter: true,
		Meaning: "Tokens that summaries, translations and searches by meaning have cost since the start, as " +
			"services count them or estimated.",
		Read: func() int64 { return a.tokens.read().total }}}
}

// Labeled returns the metrics with a label.
func (a *Assistant) Labeled() []registry.Labeled {
	return []registry.Labeled{{Name: "parley_assist_requests_total", Counter: true, Label: "result",
		Meaning: "Requests for summaries, translations and searches by meaning: cached, answered, failed, " +
			"refused because of a limit, or stopped by the reader.",
		Each: func(send func(string, float64)) {
			for i, name := range resultNames {
				send(name, float64(a.results[i].Load()))
			}
		}}}
}

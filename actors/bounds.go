package actors

import (
	"cmp"

	"parley/actors/registry"
)

// Bounds returns the bounds of the actors, with a reading of the organizations.
func (srv *Server) Bounds(r RealmMetrics) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "commands",
			Of:       "commands and views waiting in the fullest mailbox of an organization, or for the disk",
			Overflow: "503",
			Reason:   "at 50,000 turns a second a full mailbox takes a fifth of a second",
			Limit:    registry.Constant(MaxInFlight),
			Used:     func() int64 { return registry.Largest(r.InFlight) },
			Hits:     func() int64 { return srv.Metrics.Busy.Load() },
			Whole:    registry.OfOne,
		},
		{
			Name:     "awake_organizations",
			Of:       "organizations in memory",
			Overflow: "those without requests and waiting polls leave memory after half a minute",
			Reason:   "half of the memory limit, with 256 KiB for each",
			Limit:    func() int64 { return cmp.Or(r.Sleep.Limit, unlimitedAwake) },
			Used: func() int64 {
				if srv.sleepers.disk == nil { // all are in memory
					return 0
				}
				return r.Sleep.Awake
			},
			Hits:  func() int64 { return r.Sleep.LimitHits },
			Whole: "it refuses nothing",
		},
		{
			Name:     "wakes_at_once",
			Of:       "organizations that are loaded at the same time",
			Overflow: "others wait",
			Reason:   "each takes some megabytes while it is loaded, and more are no faster",
			Limit:    registry.Constant(MaxWakesAtOnce),
			Used:     func() int64 { return int64(len(srv.sleepers.slots)) },
			Whole:    "an organization takes one",
		},
		{
			Name: "waiting_for_wake",
			Of: "requests that wait for organizations that are being loaded; those for one organization can be " +
				"half of it",
			Overflow: "503",
			Reason:   "20 kB each; all clients of 10,000 organizations that poll at once after a start",
			Limit:    registry.Constant(MaxWaitingForWake),
			Used:     func() int64 { return r.Sleep.Waiting },
			Hits:     func() int64 { return r.Sleep.Refused },
			Halved:   "actors TestWaitingForOneOrganization",
		},
		{
			Name:     "undelivered_recipients",
			Of:       "recipients of events that wait in the mailboxes of sessions",
			Overflow: "commands get 503",
			Reason:   "8 bytes each, seconds of work in total; events must not be produced faster than delivered",
			Limit:    registry.Constant(MaxUndelivered),
			Used:     func() int64 { return srv.Metrics.Undelivered.Load() },
			Hits:     func() int64 { return srv.Metrics.Busy.Load() },
			Halved:   "actors TestUndeliveredOfOneOrganization",
		},
		{
			Name: "unacked_bytes",
			Of: "bytes of unacknowledged events in memory, of all organizations; one organization can use " +
				"half of it",
			Overflow: "the slowest queues are closed: BAD_EVENT_QUEUE_ID",
			Reason:   "clients that do not acknowledge must not fill the memory",
			Limit:    srv.UnackedLimit,
			Used:     func() int64 { return srv.Metrics.UnackedBytes.Load() },
			Hits:     func() int64 { return srv.Metrics.QueuesEvictedForMemory.Load() },
			Halved:   "actors TestUnackedEventsAreBounded",
		},
		{
			Name: "unacked_account_bytes",
			Of: "bytes of events in memory because of one account and its bots; an event's bytes are divided " +
				"between the accounts " +
				"that have not acknowledged it",
			Overflow: "the oldest queues of the account are closed: BAD_EVENT_QUEUE_ID; other accounts are not " +
				"affected",
			Reason: "one account must not use what an organization can use",
			Limit:  srv.AccountLimit,
			Used:   srv.LargestAccountBytes,
			Hits:   func() int64 { return srv.Metrics.QueuesEvictedForAccount.Load() },
			Whole:  registry.OfOne,
		},
		{
			Name:     "text_cache_bytes",
			Of:       "bytes of message texts in memory",
			Overflow: "the least recently read ones are dropped",
			Reason:   "they can be read from the disk",
			Limit:    registry.Constant(TextCacheBytes),
			Used:     srv.TextCacheSize,
			Whole:    registry.Cached,
		},
		{
			Name:     "damaged_texts",
			Of:       "damaged message texts that the server counts for /health",
			Overflow: "further ones are refused and logged, but not counted",
			Reason:   "a lost file of the store can hold millions of texts",
			Limit:    registry.Constant(MaxDamagedTexts),
			Used:     srv.DamagedTexts,
			Whole:    "it counts for /health and refuses nothing",
		},
	}
}

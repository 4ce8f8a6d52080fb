package push

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of notifications to browsers.
func (p *Pusher) Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "browser_notifications_per_second",
			Of:       "notifications of browsers a second to push services in one domain, by each node for itself",
			Overflow: "tried again later",
			Reason:   "users choose the addresses, so the server must not become a means to flood another one",
			Limit:    registry.Constant(WebPerSecond),
			Whole:    "it protects a push service, and the others are sent later",
		},
		{
			Name:     "counted_push_hosts",
			Of:       "domains of push services whose notifications are counted",
			Overflow: "those counted longest ago are forgotten",
			Reason:   "about 100 bytes each",
			Limit:    registry.Constant(MaxWebHosts),
			Used:     p.CountedWebHosts,
			Whole:    registry.Forgotten,
		},
		{
			Name:     "failing_browsers",
			Of:       "subscriptions of browsers whose failures are counted; they are removed after five in a row",
			Overflow: "those counted longest ago are forgotten",
			Reason:   "an address can have 4 kB",
			Limit:    registry.Constant(MaxWebFailing),
			Used:     p.FailingBrowsers,
			Whole:    registry.Forgotten,
		},
	}
}

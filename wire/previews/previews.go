// Package previews shows in messages what the pages say that they link to.
//
// It is an errand: a message is sent at once, and rendered anew when its pages are there. They are asked for once, and
// again only if the process ends before the message shows them.
package previews

import (
	"context"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/courier"
	"parley/wire/markdown"
)

// Fetchers is how many people's messages are waited for at a time.
const Fetchers = 32

// Where the organization is too busy, a message is looked at again after a pause, so many times.
const (
	pause    = time.Second
	attempts = 60
)

// Carrier fetches pages and shows them.
type Carrier struct {
	House wire.House
	Tools *wire.Tools
}

// Carry fetches the pages of one message and has it rendered anew. A page that does not come is not tried again.
func (p *Carrier) Carry(ctx context.Context, j *courier.Job) courier.Outcome {
	c := &wire.Call{House: p.House, Tools: p.Tools, Realm: j.Realm, Site: j.Site, Caller: realm.Caller{User: j.Errand.User}}
	pages, _ := j.Left.(map[string]markdown.Preview)
	var err error
	if pages == nil {
		pages, err = wire.LinkedPages(ctx, c, &j.Errand)
	}
	done := false
	if len(pages) > 0 && ctx.Err() == nil { // else what did not come in time may yet come
		done, err = wire.ShowPages(c, &j.Errand, pages)
	}
	if err != nil && j.Attempt < attempts {
		return courier.Outcome{Again: pause, Left: pages}
	}
	return courier.Outcome{Settled: done}
}

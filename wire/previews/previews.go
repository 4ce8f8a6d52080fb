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
	"parley/wire/dispatch"
	"parley/wire/markdown"
)

// MaxFetching is how many people's messages are waited for at a time.
const MaxFetching = 32

// Where the organization is too busy, a message is looked at again after a pause, so many times.
const (
	retryPause  = time.Second
	maxAttempts = 60
)

// Fetcher fetches pages and shows them.
type Fetcher struct {
	House wire.Server
	Tools *wire.Tools
}

// Handle fetches the pages of one message and has it rendered anew. A page that does not come is not tried again.
func (p *Fetcher) Handle(ctx context.Context, j *dispatch.Attempt) dispatch.Outcome {
	c := &wire.Call{Server: p.House, Tools: p.Tools, Realm: j.Realm, Site: j.Site, Caller: realm.Caller{User: j.Job.User}}
	pages, _ := j.State.(map[string]markdown.Preview)
	var err error
	if pages == nil {
		pages, err = wire.FetchLinkedPages(ctx, c, &j.Job)
	}
	done := false
	if len(pages) > 0 && ctx.Err() == nil { // else what did not come in time may yet come
		done, err = wire.RenderLinkedPages(c, &j.Job, pages)
	}
	if err != nil && j.Number < maxAttempts {
		return dispatch.Outcome{RetryAfter: retryPause, State: pages}
	}
	return dispatch.Outcome{Finished: done}
}

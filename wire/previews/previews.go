package previews

import (
	"context"
	"errors"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
	"parley/wire/markdown"
)

// MaxFetching is how many users' messages are handled at a time. Messages of one user are handled one after the other.
const MaxFetching = 32

// Limits of fetching, so that a message cannot make the server fetch without end.
const (
	maxPages     = 5                // of one message
	fetchTimeout = 30 * time.Second // for all pages of one message
)

// An attempt that fails because the organization is too busy is repeated.
const (
	retryPause  = time.Second
	maxAttempts = 60
)

// Fetcher is the dispatch.Handler of link previews.
type Fetcher struct {
	Server wire.Server
	Tools  *wire.Tools
	Places *wire.Places
}

// Handle fetches the pages that one message links to and renders the message again with their previews. A page that
// cannot be fetched is not tried again. Fetched pages are the state that the next attempt gets.
func (f *Fetcher) Handle(ctx context.Context, a *dispatch.Attempt) dispatch.Outcome {
	author := realm.Caller{User: a.Job.User}
	c := &wire.Call{Server: f.Server, Tools: f.Tools, Realm: a.Realm, Site: a.Site, Caller: author}
	pages, _ := a.State.(map[string]markdown.Preview)
	var err error
	if pages == nil {
		pages, err = f.fetch(ctx, c, &a.Job)
	}
	if errors.Is(err, wire.ErrPlaceClosed) {
		return dispatch.Outcome{}
	}
	finished := false
	if len(pages) > 0 && ctx.Err() == nil { // if ctx ended, pages may be incomplete: the next process fetches them all
		finished, err = wire.RenderPreviews(c, &a.Job, pages)
	}
	if err != nil && a.Number < maxAttempts {
		return dispatch.Outcome{RetryAfter: retryPause, State: pages}
	}
	return dispatch.Outcome{Finished: finished}
}

// fetch returns the previews of the pages by their addresses, without the pages that could not be fetched.
func (f *Fetcher) fetch(ctx context.Context, c *wire.Call, job *realm.OutboxJob) (map[string]markdown.Preview, error) {
	links, err := wire.PreviewLinks(c, job)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	pages := map[string]markdown.Preview{}
	for _, u := range links[:min(len(links), maxPages)] {
		if err := f.Places.Ask(c.Realm, realm.PlaceLinkPreviews); err != nil {
			return nil, err
		}
		if p, err := f.Tools.FetchPreview(ctx, u); err == nil {
			pages[u] = p
		}
	}
	return pages, nil
}

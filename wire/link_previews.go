package wire

import (
	"context"
	"time"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// Limits of fetching, each against messages that would have the server fetch without end.
const (
	maxPreviews     = 5                // pages of one message
	MaxFetching     = 64               // messages whose pages are being fetched
	previewPatience = 30 * time.Second // for all pages of one message
)

// showPreviews fetches the pages a person's message links to and has it rendered anew with what they say. It returns at
// once; when too much is being fetched already, a message goes without.
func showPreviews(c *Call, id realm.MessageID, version uint16, body realm.Body, urls []string) {
	r := c.Tools.Renderer
	if c.Tools.FetchPreview == nil || len(urls) == 0 || c.Account == nil || c.Account.Bot != realm.Human {
		return
	}
	if r.fetching.Add(1) > MaxFetching {
		r.fetching.Add(-1)
		return
	}
	own := &Call{House: c.House, Tools: c.Tools, Realm: c.Realm, Site: c.Site, Caller: c.Caller}
	go func() {
		defer r.fetching.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), previewPatience)
		defer cancel()
		pages := map[string]markdown.Preview{}
		for _, u := range urls[:min(len(urls), maxPreviews)] {
			if p, err := c.Tools.FetchPreview(ctx, u); err == nil {
				pages[u] = p
			}
		}
		if len(pages) == 0 {
			return
		}
		system := *own
		system.Caller = realm.Caller{System: true, Client: "Internal"}
		rerender(&system, realm.BodyRef{Message: id, Version: version}, func(b realm.Body) (realm.Body, bool) {
			if b.Text != body.Text {
				return b, false // edited since; the edit fetches its own
			}
			shown, err := r.withPreviews(own, b.Text, pages)
			return shown, err == nil
		})
	}()
}

// withPreviews renders a text as its author sees it, with the pages that were fetched.
func (r *Renderer) withPreviews(c *Call, text string, pages map[string]markdown.Preview) (realm.Body, error) {
	d, err := r.dialectOf(c)
	if err != nil {
		return realm.Body{}, err
	}
	known, err := Look(c, func(v realm.View) (*references, error) { return resolve(v, markdown.Scan(text), d), nil })
	if err != nil {
		return realm.Body{}, err
	}
	n := *d
	n.options.Previews = pages
	b, _, err := n.render(text, known, c.Caller.User)
	return b, err
}

// Fetching is how many messages' pages are being fetched.
func (r *Renderer) Fetching() int64 { return int64(r.fetching.Load()) }

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
	previewPatience = 30 * time.Second // for all pages of one message
)

// LinkedPages fetches the pages that an errand's message links to: none if it is gone or says something else by now. The
// caller of the call is the message's author.
func LinkedPages(ctx context.Context, c *Call, e *realm.Errand) (map[string]markdown.Preview, error) {
	ref, err := previewed(c, e)
	if err != nil || ref.Message == 0 {
		return nil, err
	}
	body, _ := c.House.Text(c.Realm, ref)
	_, links, err := withPreviews(c, body.Text, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, previewPatience)
	defer cancel()
	pages := map[string]markdown.Preview{}
	for _, u := range links[:min(len(links), maxPreviews)] {
		if p, err := c.Tools.FetchPreview(ctx, u); err == nil {
			pages[u] = p
		}
	}
	return pages, nil
}

// ShowPages has an errand's message rendered anew with what its pages say, and reports whether the errand is done by that.
func ShowPages(c *Call, e *realm.Errand, pages map[string]markdown.Preview) (bool, error) {
	ref, err := previewed(c, e)
	if err != nil || ref.Message == 0 {
		return false, err
	}
	system := *c
	system.Caller = realm.Caller{System: true, Client: "Internal"}
	return rerender(&system, ref, e.ID, func(b realm.Body) (realm.Body, error) {
		shown, _, err := withPreviews(c, b.Text, pages)
		return shown, err
	})
}

func previewed(c *Call, e *realm.Errand) (realm.BodyRef, error) {
	return Look(c, func(v realm.View) (realm.BodyRef, error) {
		ref, _ := v.Previewed(e)
		return ref, nil
	})
}

// withPreviews renders a text as its author sees it, with the pages that were fetched, and lists those that were not.
func withPreviews(c *Call, text string, pages map[string]markdown.Preview) (realm.Body, []string, error) {
	d, err := c.Tools.Renderer.dialectOf(c)
	if err != nil {
		return realm.Body{}, nil, err
	}
	known, err := Look(c, func(v realm.View) (*references, error) { return resolve(v, markdown.Scan(text), d), nil })
	if err != nil {
		return realm.Body{}, nil, err
	}
	n := *d
	n.options.Previews = pages
	b, x, err := n.render(text, known, c.Caller.User)
	return b, x.Previews, err
}

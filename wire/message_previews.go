package wire

import (
	"context"
	"time"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// Limits of fetching, each against messages that would have the server fetch without end.
const (
	maxPreviews    = 5                // pages of one message
	previewTimeout = 30 * time.Second // for all pages of one message
)

// FetchLinkedPages fetches the pages that an errand's message links to: none if it is gone or says something else by now. The
// caller of the call is the message's author.
func FetchLinkedPages(ctx context.Context, c *Call, e *realm.OutboxJob) (map[string]markdown.Preview, error) {
	ref, err := previewTarget(c, e)
	if err != nil || ref.Message == 0 {
		return nil, err
	}
	body, _ := c.Server.Text(c.Realm, ref)
	_, links, err := renderWithPreviews(c, body.Text, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	pages := map[string]markdown.Preview{}
	for _, u := range links[:min(len(links), maxPreviews)] {
		if p, err := c.Tools.FetchPreview(ctx, u); err == nil {
			pages[u] = p
		}
	}
	return pages, nil
}

// RenderLinkedPages has an errand's message rendered anew with what its pages say, and reports whether the errand is done by that.
func RenderLinkedPages(c *Call, e *realm.OutboxJob, pages map[string]markdown.Preview) (bool, error) {
	ref, err := previewTarget(c, e)
	if err != nil || ref.Message == 0 {
		return false, err
	}
	system := *c
	system.Caller = realm.Caller{System: true, Client: "Internal"}
	return rerender(&system, ref, e.ID, func(b realm.Body) (realm.Body, error) {
		shown, _, err := renderWithPreviews(c, b.Text, pages)
		return shown, err
	})
}

func previewTarget(c *Call, e *realm.OutboxJob) (realm.BodyRef, error) {
	return Read(c, func(v realm.View) (realm.BodyRef, error) {
		ref, _ := v.PreviewTarget(e)
		return ref, nil
	})
}

// renderWithPreviews renders a text as its author sees it, with the pages that were fetched, and lists those that were not.
func renderWithPreviews(c *Call, text string, pages map[string]markdown.Preview) (realm.Body, []string, error) {
	d, err := c.Tools.Renderer.currentConfig(c)
	if err != nil {
		return realm.Body{}, nil, err
	}
	known, err := Read(c, func(v realm.View) (*references, error) { return resolveReferences(v, markdown.Scan(text), d), nil })
	if err != nil {
		return realm.Body{}, nil, err
	}
	n := *d
	n.options.Previews = pages
	b, x, err := n.render(text, known, c.Caller.User)
	return b, x.Previews, err
}

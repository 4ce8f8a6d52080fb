package wire

import (
	"parley/actors/realm"
	"parley/wire/markdown"
)

// PreviewLinks returns the URLs in the message of an outbox job that need a preview, in their order. It returns none
// if the message was deleted or edited meanwhile. The caller of c is the author of the message.
func PreviewLinks(c *Call, job *realm.OutboxJob) ([]string, error) {
	ref, err := previewTarget(c, job)
	if err != nil || ref.Message == 0 {
		return nil, err
	}
	body, _, err := c.Server.Text(c.Realm, ref)
	if err != nil {
		return nil, err
	}
	_, links, err := renderWithPreviews(c, body.Text, nil)
	return links, err
}

// RenderPreviews renders the message of an outbox job again, with previews of the pages. It reports whether that
// finished the job.
func RenderPreviews(c *Call, job *realm.OutboxJob, pages map[string]markdown.Preview) (bool, error) {
	ref, err := previewTarget(c, job)
	if err != nil || ref.Message == 0 {
		return false, err
	}
	system := *c
	system.Caller = realm.System
	return rerender(&system, ref, job.ID, func(b realm.Body) (realm.Body, error) {
		rendered, _, err := renderWithPreviews(c, b.Text, pages)
		return rendered, err
	})
}

// previewTarget returns the text that the job is for, or a zero reference if the job is obsolete.
func previewTarget(c *Call, job *realm.OutboxJob) (realm.BodyRef, error) {
	return Read(c, func(v realm.View) (realm.BodyRef, error) {
		ref, _ := v.PreviewTarget(job)
		return ref, nil
	})
}

// renderWithPreviews renders a text with the permissions of its author and previews of pages. It returns the URLs of
// the missing previews.
func renderWithPreviews(c *Call, text string, pages map[string]markdown.Preview) (realm.Body, []string, error) {
	d, err := c.Tools.Renderer.currentConfig(c)
	if err != nil {
		return realm.Body{}, nil, err
	}
	known, err := Read(c, func(v realm.View) (*references, error) {
		return resolveReferences(v, markdown.Scan(text), d), nil
	})
	if err != nil {
		return realm.Body{}, nil, err
	}
	n := *d
	n.options.Previews = pages
	b, x, err := n.render(text, known, c.Caller.User)
	return b, x.Previews, err
}

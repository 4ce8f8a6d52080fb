package realm

// previewJobs returns the outbox job that fetches the pages a message links to. There is none for bots' messages.
func (t *Turn) previewJobs(id MessageID, version uint16, sender *User, x ContentInfo) []OutboxJob {
	if len(x.Previews) == 0 || sender.IsBot() {
		return nil
	}
	return []OutboxJob{{Kind: OutboxPreview, User: sender.ID, Message: id, Version: version}}
}

// PreviewTarget returns the text in which the fetched pages of a job are to be shown. It is false if the message was
// deleted or its content edited since: an edit has a job of its own.
func (v View) PreviewTarget(e *OutboxJob) (BodyRef, bool) {
	if v.message(e.Message) == nil {
		return BodyRef{}, false
	}
	for _, r := range v.extraOrEmpty(e.Message).History {
		if r.Content && r.Version >= e.Version {
			return BodyRef{}, false
		}
	}
	return v.NewestText(e.Message), true
}

// Rerender replaces the rendering of a message's text: a linked page was fetched, or a thumbnail was made.
type Rerender struct {
	Message   MessageID
	Version   uint16 // of the text that was rendered; nothing happens if there is a newer one
	Body      Body
	OutboxJob int64 // outbox job finished in the same turn, so that no crash repeats it; 0: none
}

// Decide answers whether the message still has that text.
func (c Rerender) Decide(t *Turn) (bool, error) {
	m := t.message(c.Message)
	if m == nil || t.extraOrEmpty(c.Message).Version != c.Version || !t.System {
		return false, nil
	}
	t.Record(&MessageUpdated{Message: c.Message, At: t.Now,
		Content: &ContentEdit{Version: c.Version + 1, Rendering: true, Body: c.Body}})
	t.FinishOutboxJobs([]int64{c.OutboxJob})
	return true, nil
}

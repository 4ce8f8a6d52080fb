package realm

// previewJobs is the errand of fetching the pages that a person's message links to.
func (t *Turn) previewJobs(id MessageID, version uint16, sender *User, x ContentInfo) []OutboxJob {
	if len(x.Previews) == 0 || sender.IsBot() {
		return nil
	}
	return []OutboxJob{{Kind: OutboxPreview, User: sender.ID, Message: id, Version: version}}
}

// PreviewTarget is the text that an errand's pages are to be shown in; false if the message is gone, or was edited since: that
// channelEdit has an errand of its own.
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

// Rerender shows a message's text in another rendering: a page it links to has been fetched since, or a thumbnail made.
type Rerender struct {
	Message MessageID
	Version uint16 // of the text that was rendered; if there is a newer one, nothing happens
	Body    Body
	Errand  int64 // is done by that, in the same turn: no crash has it shown twice; 0: none
}

// Decide answers whether the message has that text still.
func (c Rerender) Decide(t *Turn) (bool, error) {
	m := t.message(c.Message)
	if m == nil || t.extraOrEmpty(c.Message).Version != c.Version || !t.System {
		return false, nil
	}
	t.Record(&MessageUpdated{Message: c.Message, At: t.Now, Content: &ContentEdit{Version: c.Version + 1, Rendering: true, Body: c.Body}})
	t.FinishOutboxJobs([]int64{c.Errand})
	return true, nil
}

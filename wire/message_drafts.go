package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var draftEndpoints = []Endpoint{
	Get("/drafts", getDrafts),
	CommandFromForm("POST", "/drafts", addDrafts, func(ids []int64) *addedDraftsAnswer {
		return &addedDraftsAnswer{ids}
	}),
	CommandFromForm("PATCH", "/drafts/{draft_id}", changeDraft, emptyAnswer),
	CommandFromForm("DELETE", "/drafts/{draft_id}", func(f draftIDForm) realm.RemoveDraft {
		return realm.RemoveDraft{ID: f.ID}
	}, emptyAnswer),
}

var draftEvents = []EventKind{
	Event(func(e *realm.DraftsAdded, to *Recipient) *draftsAddedEvent {
		return &draftsAddedEvent{Drafts: newDrafts(e.Drafts, to.Client)}
	}),
	Event(func(e *realm.DraftChanged, to *Recipient) *draftChangedEvent {
		return &draftChangedEvent{Draft: newDraft(e.Draft, to.Client)}
	}),
	Event(func(e *realm.DraftRemoved, to *Recipient) *draftRemovedEvent {
		return &draftRemovedEvent{ID: e.ID}
	}),
}

type draftsAnswer struct {
	Count  int         `json:"count"`
	Drafts []draftJSON `json:"drafts"`
}

type addedDraftsAnswer struct {
	IDs []int64 `json:"ids"`
}

type draftsAddedEvent struct {
	_      struct{}    `const:"type=drafts op=add"`
	Drafts []draftJSON `json:"drafts"`
}

type draftChangedEvent struct {
	_     struct{}  `const:"type=drafts op=update"`
	Draft draftJSON `json:"draft"`
}

type draftRemovedEvent struct {
	_  struct{} `const:"type=drafts op=remove"`
	ID int64    `json:"draft_id"`
}

type draftJSON struct {
	ID      int64   `json:"id"`
	Type    string  `json:"type" enum:"|stream|private"`
	To      []int64 `json:"to"`
	Topic   string  `json:"topic"`
	Content string  `json:"content"`
	Edited  int64   `json:"timestamp"`
}

// MaxTime is the last second, in UTC, that clients may send as a time: in each time zone its year has four digits. Many
// programs cannot show later times (the largest date of Python is in the year 9999), and one such row would keep them
// from showing the others. The tags of the forms repeat it.
const MaxTime = 253402214399

type draftIDForm struct {
	ID int64 `path:"draft_id"`
}

type draftForm struct {
	Type      string          `form:"type,required,enum=|stream|private"`
	To        []int64         `form:"to,required"`
	Topic     string          `form:"topic,required"`
	Content   string          `form:"content,required"`
	Timestamp form.Opt[int64] `form:"timestamp,max=253402214399"` // see MaxTime
	ID        form.Opt[int64] `form:"id"`                         // ignored: the path decides
}

func (f *draftForm) draft() realm.Draft {
	d := realm.Draft{Type: f.Type, To: f.To, Topic: f.Topic, Content: f.Content, Edited: realm.JustNow}
	if f.Timestamp.Set {
		d.Edited = max(-1, f.Timestamp.Value) // every negative time is refused, and is never JustNow
	}
	return d
}

type addDraftsForm struct {
	Drafts []draftForm `form:"drafts,required,maxitems=1000"`
}

func addDrafts(f addDraftsForm) realm.AddDrafts {
	var c realm.AddDrafts
	for i := range f.Drafts {
		c.Drafts = append(c.Drafts, f.Drafts[i].draft())
	}
	return c
}

type changeDraftForm struct {
	ID    int64     `path:"draft_id"`
	Draft draftForm `form:"draft,required"`
}

func changeDraft(f changeDraftForm) realm.ChangeDraft {
	return realm.ChangeDraft{ID: f.ID, Draft: f.Draft.draft()}
}

func getDrafts(_ *Call, v realm.View, _ noParameters) (*draftsAnswer, error) {
	if _, err := v.DraftSyncUser(); err != nil {
		return nil, err
	}
	list := v.DraftsOf(v.User)
	return &draftsAnswer{len(list), newDrafts(list, asStored)}, nil
}

// draftsSection adds the caller's drafts to a registration, newest edit first.
func draftsSection(s *initialState) {
	s.answer.Drafts = []draftJSON{}
	if _, err := s.DraftSyncUser(); err == nil {
		all := s.DraftsOf(s.User)
		for i := len(all) - 1; i >= 0; i-- {
			s.answer.Drafts = append(s.answer.Drafts, newDraft(all[i], s.Client))
		}
	}
}

func newDrafts(list []realm.Draft, c Client) []draftJSON {
	return each(list, func(d realm.Draft) draftJSON { return newDraft(d, c) })
}

func newDraft(d realm.Draft, c Client) draftJSON {
	topic := d.Topic
	if d.Type == "stream" {
		topic = c.Topic(topic)
	}
	return draftJSON{d.ID, d.Type, d.To, topic, d.Content, d.Edited}
}

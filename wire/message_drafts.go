package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var draftEndpoints = []Endpoint{
	Get("/drafts", getDrafts).Returns("{count: int, drafts: [Draft]}"),
	CommandFromForm("POST", "/drafts", addDrafts, func(ids []int64) Answer {
		return Answer{"ids": ids}
	}).Returns("{ids: [int]}"),
	CommandFromForm("PATCH", "/drafts/{draft_id}", changeDraft, emptyAnswer),
	CommandFromForm("DELETE", "/drafts/{draft_id}", func(f draftIDForm) realm.RemoveDraft {
		return realm.RemoveDraft{ID: f.ID}
	}, emptyAnswer),
}

var draftEvents = []EventKind{
	EventOneOf(func(e *realm.DraftsAdded, to *Recipient) any {
		return obj{"type": "drafts", "op": "add", "drafts": draftObjects(e.Drafts, to.Client)}
	}),
	EventOneOf(func(e *realm.DraftChanged, to *Recipient) any {
		return obj{"type": "drafts", "op": "update", "draft": draftObject(e.Draft, to.Client)}
	}),
	EventOneOf(func(e *realm.DraftRemoved, to *Recipient) any {
		return obj{"type": "drafts", "op": "remove", "draft_id": e.ID}
	}),
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

func getDrafts(_ *Call, v realm.View, _ noParameters) (Answer, error) {
	if _, err := v.DraftSyncUser(); err != nil {
		return nil, err
	}
	list := v.DraftsOf(v.User)
	return Answer{"count": len(list), "drafts": draftObjects(list, asStored)}, nil
}

// draftsSection adds the caller's drafts to a registration, newest edit first.
func draftsSection(s *initialState) {
	list := []any{}
	if _, err := s.DraftSyncUser(); err == nil {
		all := s.DraftsOf(s.User)
		for i := len(all) - 1; i >= 0; i-- {
			list = append(list, draftObject(all[i], s.Client))
		}
	}
	s.answer["drafts"] = list
}

func draftObjects(list []realm.Draft, c Client) []any {
	out := []any{}
	for _, d := range list {
		out = append(out, draftObject(d, c))
	}
	return out
}

func draftObject(d realm.Draft, c Client) obj {
	topic := d.Topic
	if d.Type == "stream" {
		topic = c.Topic(topic)
	}
	return obj{"id": d.ID, "type": d.Type, "to": nonNil(d.To), "topic": topic, "content": d.Content,
		"timestamp": d.Edited}
}

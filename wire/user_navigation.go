package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

// navigationEndpoints accept fragments that contain slashes, escaped or not.
var navigationEndpoints = []Endpoint{
	Get("/navigation_views", func(_ *Call, v realm.View, _ noParameters) (*viewsAnswer, error) {
		return &viewsAnswer{newViews(v.NavigationViewsOf(v.User))}, nil
	}),
	CommandFromForm("POST", "/navigation_views", addNavigationView, emptyAnswer),
	CommandFromForm("PATCH", "/navigation_views/{fragment:*}", changeNavigationView, emptyAnswer),
	CommandFromForm("DELETE", "/navigation_views/{fragment:*}", func(f navigationViewForm) realm.RemoveNavigationView {
		return realm.RemoveNavigationView{Fragment: f.Fragment}
	}, emptyAnswer),
}

var navigationEvents = []EventKind{
	Event(func(e *realm.NavigationViewAdded, _ *Recipient) *viewAddedEvent {
		return &viewAddedEvent{View: newView(e.View)}
	}),
	Event(func(e *realm.NavigationViewChanged, _ *Recipient) *viewChangedEvent {
		out := &viewChangedEvent{Fragment: e.View.Fragment}
		if e.Pinned {
			out.Data.Pinned = &e.View.Pinned
		}
		if e.Named {
			out.Data.Name = &e.View.Name
		}
		return out
	}),
	Event(func(e *realm.NavigationViewRemoved, _ *Recipient) *viewRemovedEvent {
		return &viewRemovedEvent{Fragment: e.Fragment}
	}),
}

type viewsAnswer struct {
	Views []viewJSON `json:"navigation_views"`
}

type viewAddedEvent struct {
	_    struct{} `const:"type=navigation_view op=add"`
	View viewJSON `json:"navigation_view"`
}

type viewChangedEvent struct {
	_        struct{} `const:"type=navigation_view op=update"`
	Fragment string   `json:"fragment"`
	Data     struct {
		Pinned *bool   `json:"is_pinned,omitzero"`
		Name   *string `json:"name,omitzero"`
	} `json:"data"`
}

type viewRemovedEvent struct {
	_        struct{} `const:"type=navigation_view op=remove"`
	Fragment string   `json:"fragment"`
}

type viewJSON struct {
	Fragment string  `json:"fragment"`
	Pinned   bool    `json:"is_pinned"`
	Name     *string `json:"name,omitzero"`
}

type navigationViewForm struct {
	Fragment string `path:"fragment"`
}

type addNavigationViewForm struct {
	Fragment string           `form:"fragment,required,strip,minlen=1,maxlen=300"`
	Pinned   bool             `form:"is_pinned,required"`
	Name     form.Opt[string] `form:"name,strip"`
}

func addNavigationView(f addNavigationViewForm) realm.AddNavigationView {
	return realm.AddNavigationView{View: realm.NavigationView{Fragment: f.Fragment, Pinned: f.Pinned,
		Name: navigationViewName(f.Name)}, Named: f.Name.Set && f.Name.Value != "null"}
}

// navigationViewName reads a name; the word null means none.
func navigationViewName(o form.Opt[string]) string {
	if o.Value == "null" {
		return ""
	}
	return o.Value
}

type changeNavigationViewForm struct {
	Fragment string           `path:"fragment"`
	Pinned   form.Opt[bool]   `form:"is_pinned"`
	Name     form.Opt[string] `form:"name,strip"`
}

func changeNavigationView(f changeNavigationViewForm) realm.ChangeNavigationView {
	c := realm.ChangeNavigationView{Fragment: f.Fragment, Pinned: pointerIfSet(f.Pinned)}
	if f.Name.Set && f.Name.Value != "null" {
		c.Name = &f.Name.Value
	}
	return c
}

func newViews(list []realm.NavigationView) []viewJSON {
	out := make([]viewJSON, len(list))
	for i, v := range list {
		out[i] = newView(v)
	}
	return out
}

func newView(v realm.NavigationView) viewJSON {
	out := viewJSON{Fragment: v.Fragment, Pinned: v.Pinned}
	if !v.BuiltIn() {
		out.Name = &v.Name
	}
	return out
}

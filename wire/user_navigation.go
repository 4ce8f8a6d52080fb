package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

// navigationEndpoints accept fragments that contain slashes, escaped or not.
var navigationEndpoints = []Endpoint{
	Get("/navigation_views", func(_ *Call, v realm.View, _ noParameters) (Answer, error) {
		return Answer{"navigation_views": navigationViewObjects(v.NavigationViewsOf(v.User))}, nil
	}).Returns("{navigation_views: [View]}"),
	CommandFromForm("POST", "/navigation_views", addNavigationView, emptyAnswer),
	CommandFromForm("PATCH", "/navigation_views/{fragment:*}", changeNavigationView, emptyAnswer),
	CommandFromForm("DELETE", "/navigation_views/{fragment:*}", func(f navigationViewForm) realm.RemoveNavigationView {
		return realm.RemoveNavigationView{Fragment: f.Fragment}
	}, emptyAnswer),
}

var navigationEvents = []EventKind{
	Event(func(e *realm.NavigationViewAdded, _ *Recipient) any {
		return obj{"type": "navigation_view", "op": "add", "navigation_view": navigationViewObject(e.View)}
	}),
	Event(func(e *realm.NavigationViewChanged, _ *Recipient) any {
		data := obj{}
		if e.Pinned {
			data["is_pinned"] = e.View.Pinned
		}
		if e.Named {
			data["name"] = e.View.Name
		}
		return obj{"type": "navigation_view", "op": "update", "fragment": e.View.Fragment, "data": data}
	}),
	Event(func(e *realm.NavigationViewRemoved, _ *Recipient) any {
		return obj{"type": "navigation_view", "op": "remove", "fragment": e.Fragment}
	}),
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

func navigationViewObjects(list []realm.NavigationView) []any {
	out := []any{}
	for _, v := range list {
		out = append(out, navigationViewObject(v))
	}
	return out
}

func navigationViewObject(v realm.NavigationView) obj {
	o := obj{"fragment": v.Fragment, "is_pinned": v.Pinned}
	if !v.BuiltIn() {
		o["name"] = v.Name
	}
	return o
}

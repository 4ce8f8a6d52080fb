package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

// Fragments may hold slashes, sent as they are or escaped.
var navigationEndpoints = []Endpoint{
	Get("/navigation_views", func(_ *Call, v realm.View, _ none) (Answer, error) {
		return Answer{"navigation_views": viewObjects(v.ViewsOf(v.User))}, nil
	}).Says("{navigation_views: [View]}"),
	Do("POST", "/navigation_views", addView, silent),
	Do("PATCH", "/navigation_views/{fragment:*}", changeView, silent),
	Do("DELETE", "/navigation_views/{fragment:*}", func(f viewForm) realm.RemoveView {
		return realm.RemoveView{Fragment: f.Fragment}
	}, silent),
}

var navigationEvents = []EventKind{
	Event(func(e *realm.ViewAdded, _ *To) any {
		return obj{"type": "navigation_view", "op": "add", "navigation_view": viewObject(e.View)}
	}),
	Event(func(e *realm.ViewChanged, _ *To) any {
		data := obj{}
		if e.Pinned {
			data["is_pinned"] = e.View.Pinned
		}
		if e.Named {
			data["name"] = e.View.Name
		}
		return obj{"type": "navigation_view", "op": "update", "fragment": e.View.Fragment, "data": data}
	}),
	Event(func(e *realm.ViewRemoved, _ *To) any {
		return obj{"type": "navigation_view", "op": "remove", "fragment": e.Fragment}
	}),
}

type viewForm struct {
	Fragment string `path:"fragment"`
}

type addViewForm struct {
	Fragment string           `form:"fragment,required,strip,minlen=1,maxlen=300"`
	Pinned   bool             `form:"is_pinned,required"`
	Name     form.Opt[string] `form:"name,strip"`
}

func addView(f addViewForm) realm.AddView {
	return realm.AddView{View: realm.NavigationView{Fragment: f.Fragment, Pinned: f.Pinned, Name: viewName(f.Name)}, Named: f.Name.Set && f.Name.Value != "null"}
}

// viewName reads a name where null stands for none.
func viewName(o form.Opt[string]) string {
	if o.Value == "null" {
		return ""
	}
	return o.Value
}

type changeViewForm struct {
	Fragment string           `path:"fragment"`
	Pinned   form.Opt[bool]   `form:"is_pinned"`
	Name     form.Opt[string] `form:"name,strip"`
}

func changeView(f changeViewForm) realm.ChangeView {
	c := realm.ChangeView{Fragment: f.Fragment, Pinned: given(f.Pinned)}
	if f.Name.Set && f.Name.Value != "null" {
		c.Name = &f.Name.Value
	}
	return c
}

func viewObjects(list []realm.NavigationView) []any {
	out := []any{}
	for _, v := range list {
		out = append(out, viewObject(v))
	}
	return out
}

func viewObject(v realm.NavigationView) obj {
	o := obj{"fragment": v.Fragment, "is_pinned": v.Pinned}
	if !v.BuiltIn() {
		o["name"] = v.Name
	}
	return o
}

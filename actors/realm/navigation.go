package realm

import (
	"slices"
	"strings"
)

// Limits of navigation views, each there because every registration carries them all.
const (
	maxViews         = 200
	MaxViewFragment  = 300 // code points
	maxViewNameRunes = 60
)

// NavigationViews is the row of one user's navigation views.
type NavigationViews struct{ List []NavigationView }

// NavigationView is a place of the client its user pinned or named.
type NavigationView struct {
	Fragment string
	Pinned   bool
	Name     string // "" for built-in views
}

// builtInViews are the places every client knows; they have no name of their own.
var builtInViews = []string{"inbox", "recent", "feed", "drafts", "narrow/has/reaction/sender/me", "narrow/is/mentioned", "narrow/is/starred"}

// BuiltIn reports whether every client knows the view.
func (v NavigationView) BuiltIn() bool { return slices.Contains(builtInViews, v.Fragment) }

// ViewsOf is a user's navigation views in the order they were added.
func (r *Realm) ViewsOf(u UserID) []NavigationView {
	if l := r.nouns.views.find(u); l != nil {
		return slices.Clone(l.List)
	}
	return []NavigationView{}
}

// checkView refuses names and duplicates the protocol does not allow; except is the fragment of the view itself.
func (v View) checkView(x NavigationView, named bool, except string) error {
	switch {
	case x.BuiltIn() && named:
		return Bad("Built-in views cannot have a custom name.")
	case !x.BuiltIn() && strings.TrimSpace(x.Name) == "":
		return Bad("Custom views must have a valid name.")
	case length(x.Name) > maxViewNameRunes:
		return Bad("name is too long (limit: %d characters)", maxViewNameRunes)
	}
	for _, o := range v.ViewsOf(v.User) {
		if o.Fragment != except && (o.Fragment == x.Fragment || x.Name != "" && o.Name == x.Name) {
			return Bad("Navigation view already exists.")
		}
	}
	return nil
}

// AddView asks to keep a navigation view.
type AddView struct {
	View  NavigationView
	Named bool // a name was given, be it empty
}

func (c AddView) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errMember()
	}
	if err := t.checkView(c.View, c.Named, ""); err != nil {
		return Done{}, err
	}
	if len(t.ViewsOf(me.ID)) >= maxViews {
		return Done{}, Bad("Too many navigation views (limit: %d)", maxViews)
	}
	t.Record(&ViewAdded{me.ID, c.View})
	return Done{}, nil
}

// ViewAdded says a user keeps a navigation view.
type ViewAdded struct {
	User UserID
	View NavigationView
}

func (*ViewAdded) calm()             {}
func (*ViewAdded) EventType() string { return "navigation_view" }

func (f *ViewAdded) apply(r *Realm) {
	l := r.nouns.views.open(f.User)
	l.List = append(slices.Clone(l.List), f.View)
}

func (f *ViewAdded) tell(r *Realm) []Notice { return []Notice{{To: r.only(f.User), Event: f}} }

func errNoView() *Refusal { return Missing("Navigation view does not exist.") }

func (v View) findView(fragment string) (NavigationView, error) {
	list := v.ViewsOf(v.User)
	i := slices.IndexFunc(list, func(x NavigationView) bool { return x.Fragment == fragment })
	if i < 0 {
		return NavigationView{}, errNoView()
	}
	return list[i], nil
}

// ChangeView asks to pin or name a navigation view; nil stays.
type ChangeView struct {
	Fragment string
	Pinned   *bool
	Name     *string
}

func (c ChangeView) Decide(t *Turn) (Done, error) {
	x, err := t.findView(c.Fragment)
	if err != nil {
		return Done{}, err
	}
	old := x
	if c.Pinned != nil {
		x.Pinned = *c.Pinned
	}
	if c.Name != nil {
		x.Name = *c.Name
	}
	if err := t.checkView(x, c.Name != nil, x.Fragment); err != nil {
		return Done{}, err
	}
	if x != old {
		t.Record(&ViewChanged{User: t.User, View: x, Pinned: x.Pinned != old.Pinned, Named: x.Name != old.Name})
	}
	return Done{}, nil
}

// ViewChanged says a navigation view is pinned or named differently now.
type ViewChanged struct {
	User          UserID
	View          NavigationView
	Pinned, Named bool // what changed
}

func (*ViewChanged) calm()             {}
func (*ViewChanged) EventType() string { return "navigation_view" }

func (f *ViewChanged) apply(r *Realm) {
	l := r.nouns.views.change(f.User)
	l.List = slices.Clone(l.List)
	for i := range l.List {
		if l.List[i].Fragment == f.View.Fragment {
			l.List[i] = f.View
		}
	}
}

func (f *ViewChanged) tell(r *Realm) []Notice { return []Notice{{To: r.only(f.User), Event: f}} }

// RemoveView asks to forget a navigation view.
type RemoveView struct{ Fragment string }

func (c RemoveView) Decide(t *Turn) (Done, error) {
	if _, err := t.findView(c.Fragment); err != nil {
		return Done{}, err
	}
	t.Record(&ViewRemoved{t.User, c.Fragment})
	return Done{}, nil
}

// ViewRemoved says a navigation view is forgotten.
type ViewRemoved struct {
	User     UserID
	Fragment string
}

func (*ViewRemoved) calm()             {}
func (*ViewRemoved) EventType() string { return "navigation_view" }

func (f *ViewRemoved) apply(r *Realm) {
	l := r.nouns.views.change(f.User)
	l.List = slices.DeleteFunc(slices.Clone(l.List), func(x NavigationView) bool { return x.Fragment == f.Fragment })
}

func (f *ViewRemoved) tell(r *Realm) []Notice { return []Notice{{To: r.only(f.User), Event: f}} }

package realm

import (
	"slices"
	"strings"
)

// Limits of navigation views. Every registration contains all views of the user.
const (
	maxNavigationViews        = 200
	MaxNavigationViewFragment = 300 // code points
	maxNavigationViewName     = 255 // code points; the protocol has no limit
)

// NavigationViews is the row of one user's navigation views.
type NavigationViews struct{ List []NavigationView }

// NavigationView is a view of the client that the user pinned or named.
type NavigationView struct {
	Fragment string
	Pinned   bool
	Name     string // "" for built-in views
}

// builtInNavigationViews are the fragments of the views that every client has. They cannot be named.
var builtInNavigationViews = []string{"inbox", "recent", "feed", "drafts", "scheduled", "reminders",
	"narrow/has/reaction/sender/me", "narrow/is/mentioned", "narrow/is/starred"}

// BuiltIn reports whether every client has the view.
func (v NavigationView) BuiltIn() bool { return slices.Contains(builtInNavigationViews, v.Fragment) }

// NavigationViewsOf returns a user's navigation views in the order they were added.
func (r *Realm) NavigationViewsOf(u UserID) []NavigationView {
	if l := r.small.navigationViews.find(u); l != nil {
		return slices.Clone(l.List)
	}
	return []NavigationView{}
}

// checkNavigationView refuses names and duplicates that the protocol does not allow. except is the fragment of the
// view to change, "" for a new one.
func (v View) checkNavigationView(x NavigationView, named bool, except string) error {
	switch {
	case x.BuiltIn() && named:
		return BadRequest("Built-in views cannot have a custom name.")
	case !x.BuiltIn() && strings.TrimSpace(x.Name) == "":
		return BadRequest("Custom views must have a valid name.")
	case runeCount(x.Name) > maxNavigationViewName:
		return BadRequest("name is too long (limit: %d characters)", maxNavigationViewName)
	}
	for _, o := range v.NavigationViewsOf(v.User) {
		if o.Fragment != except && (o.Fragment == x.Fragment || x.Name != "" && o.Name == x.Name) {
			return BadRequest("Navigation view already exists.")
		}
	}
	return nil
}

// AddNavigationView asks to store a navigation view.
type AddNavigationView struct {
	View  NavigationView
	Named bool // a name was given, even if empty
}

func (c AddNavigationView) Decide(t *Turn) (Done, error) {
	me := t.Me()
	if me == nil {
		return Done{}, errNotMember()
	}
	if err := t.checkNavigationView(c.View, c.Named, ""); err != nil {
		return Done{}, err
	}
	if len(t.NavigationViewsOf(me.ID)) >= maxNavigationViews {
		return Done{}, BadRequest("Too many navigation views (limit: %d)", maxNavigationViews)
	}
	t.Record(&NavigationViewAdded{me.ID, c.View})
	return Done{}, nil
}

// NavigationViewAdded says that a user added a navigation view.
type NavigationViewAdded struct {
	User UserID
	View NavigationView
}

func (*NavigationViewAdded) EventType() string { return "navigation_view" }

func (f *NavigationViewAdded) apply(r *Realm) {
	l := r.small.navigationViews.ensure(f.User)
	l.List = append(slices.Clone(l.List), f.View)
}

func (f *NavigationViewAdded) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

func errNoNavigationView() *Refusal { return Missing("Navigation view does not exist.") }

// findNavigationView returns the caller's view with a fragment.
func (v View) findNavigationView(fragment string) (NavigationView, error) {
	list := v.NavigationViewsOf(v.User)
	i := slices.IndexFunc(list, func(x NavigationView) bool { return x.Fragment == fragment })
	if i < 0 {
		return NavigationView{}, errNoNavigationView()
	}
	return list[i], nil
}

// ChangeNavigationView asks to pin or name a navigation view. Fields that are nil do not change.
type ChangeNavigationView struct {
	Fragment string
	Pinned   *bool
	Name     *string
}

func (c ChangeNavigationView) Decide(t *Turn) (Done, error) {
	x, err := t.findNavigationView(c.Fragment)
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
	if err := t.checkNavigationView(x, c.Name != nil, x.Fragment); err != nil {
		return Done{}, err
	}
	if x != old {
		t.Record(&NavigationViewChanged{User: t.User, View: x,
			Pinned: x.Pinned != old.Pinned, Named: x.Name != old.Name})
	}
	return Done{}, nil
}

// NavigationViewChanged says that a navigation view was pinned, unpinned or named.
type NavigationViewChanged struct {
	User          UserID
	View          NavigationView
	Pinned, Named bool // which values changed
}

func (*NavigationViewChanged) EventType() string { return "navigation_view" }

func (f *NavigationViewChanged) apply(r *Realm) {
	l := r.small.navigationViews.change(f.User)
	l.List = slices.Clone(l.List)
	for i := range l.List {
		if l.List[i].Fragment == f.View.Fragment {
			l.List[i] = f.View
		}
	}
}

func (f *NavigationViewChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

// RemoveNavigationView asks to remove a navigation view.
type RemoveNavigationView struct{ Fragment string }

func (c RemoveNavigationView) Decide(t *Turn) (Done, error) {
	if _, err := t.findNavigationView(c.Fragment); err != nil {
		return Done{}, err
	}
	t.Record(&NavigationViewRemoved{t.User, c.Fragment})
	return Done{}, nil
}

// NavigationViewRemoved says that a navigation view was removed.
type NavigationViewRemoved struct {
	User     UserID
	Fragment string
}

func (*NavigationViewRemoved) EventType() string { return "navigation_view" }

func (f *NavigationViewRemoved) apply(r *Realm) {
	l := r.small.navigationViews.change(f.User)
	l.List = slices.DeleteFunc(slices.Clone(l.List), func(x NavigationView) bool { return x.Fragment == f.Fragment })
}

func (f *NavigationViewRemoved) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

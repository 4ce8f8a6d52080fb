package realm

import (
	"slices"
	"strings"
)

// Linkifier is the row of a pattern. Matching text becomes a link to the URL that the template gives.
type Linkifier struct {
	ID           int64
	Pattern      string
	Template     string
	Example      *string  // a text the pattern matches
	Reverse      *string  // text that clients put in place of a pasted URL matching a template; needs an example
	Alternatives []string // further URL templates that clients turn back into Reverse
	Order        int64
}

// Limits of linkifiers. Every rendered message is matched with each linkifier.
const (
	maxLinkifiers          = 200
	maxLinkifierField      = 4096 // code points of a pattern, a template or an example
	maxLinkifierAlternates = 20
)

// Linkifiers returns the organization's linkifiers in the order they apply.
func (r *Realm) Linkifiers() []Linkifier {
	out := make([]Linkifier, 0, r.small.linkifiers.size())
	for _, l := range r.small.linkifiers.all() {
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Linkifier) int {
		if a.Order != b.Order {
			return int(a.Order - b.Order)
		}
		return int(a.ID - b.ID)
	})
	return out
}

// FindLinkifier returns a linkifier by id, or nil.
func (r *Realm) FindLinkifier(id int64) *Linkifier { return r.small.linkifiers.find(id) }

// ErrNoLinkifier refuses an unknown linkifier id.
func ErrNoLinkifier() *Refusal { return BadRequest("Linkifier not found.") }

// linkifierRules returns the linkifiers, in the order they apply, in the form that rendering needs.
func (r *Realm) linkifierRules() []LinkifierRule {
	if r.small.linkifiers.size() == 0 {
		return nil
	}
	var out []LinkifierRule
	for _, l := range r.Linkifiers() {
		out = append(out, LinkifierRule{l.Pattern, l.Template})
	}
	return out
}

// SaveLinkifier asks to add a linkifier (ID 0), or to change one. The caller has checked pattern and templates: Fault
// is the error of that check, returned after the other checks.
type SaveLinkifier struct {
	Linkifier     Linkifier
	TemplateError error
}

func (c SaveLinkifier) Decide(t *Turn) (int64, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return 0, err
	}
	l := c.Linkifier
	old := t.small.linkifiers.find(l.ID)
	if l.ID != 0 && old == nil {
		return 0, ErrNoLinkifier()
	}
	if l.Pattern = strings.TrimSpace(l.Pattern); l.Pattern == "" {
		return 0, ErrBadField("pattern", blankField)
	}
	for _, x := range []struct {
		name string
		text *string
	}{{"pattern", &l.Pattern}, {"url_template", &l.Template}, {"example_input", l.Example},
		{"reverse_template", l.Reverse}} {
		if x.text != nil && runeCount(*x.text) > maxLinkifierField {
			return 0, BadRequest("%s is too long (limit: %d characters)", x.name, maxLinkifierField)
		}
	}
	if len(l.Alternatives) > maxLinkifierAlternates {
		return 0, BadRequest("Too many alternative URL templates (limit: %d)", maxLinkifierAlternates)
	}
	for _, text := range l.Alternatives {
		if runeCount(text) > maxLinkifierField {
			return 0, BadRequest("alternative_url_templates is too long (limit: %d characters)", maxLinkifierField)
		}
	}
	if c.TemplateError != nil {
		return 0, c.TemplateError
	}
	if err := t.checkRegistrationSize(l.size()); err != nil {
		return 0, err
	}
	for id, o := range t.small.linkifiers.all() {
		if o.Pattern == l.Pattern && id != l.ID {
			return 0, ErrBadField("__all__", "Linkifier with this Realm and Pattern already exists.")
		}
	}
	if old == nil {
		if t.small.linkifiers.size() >= maxLinkifiers {
			return 0, BadRequest("Too many linkifiers (limit: %d)", maxLinkifiers)
		}
		l.ID = t.nextID("linkifier")
		for _, o := range t.small.linkifiers.all() {
			l.Order = max(l.Order, o.Order+1)
		}
	} else {
		l.Order = old.Order
	}
	t.Record(&LinkifierSaved{l})
	return l.ID, nil
}

// LinkifierSaved says that a linkifier was added or changed.
type LinkifierSaved struct{ Linkifier Linkifier }

func (f *LinkifierSaved) apply(r *Realm) {
	l := f.Linkifier
	r.reserveID("linkifier", l.ID)
	r.small.linkifiers.put(l.ID, &l)
}

func (f *LinkifierSaved) notices(r *Realm) []Notice { return r.linkifierNotices() }

// RemoveLinkifier asks to remove a linkifier.
type RemoveLinkifier struct{ ID int64 }

func (c RemoveLinkifier) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	if t.small.linkifiers.find(c.ID) == nil {
		return Done{}, ErrNoLinkifier()
	}
	t.Record(&LinkifierRemoved{c.ID})
	return Done{}, nil
}

// LinkifierRemoved says that a linkifier was removed.
type LinkifierRemoved struct{ ID int64 }

func (f *LinkifierRemoved) apply(r *Realm)            { r.small.linkifiers.remove(f.ID) }
func (f *LinkifierRemoved) notices(r *Realm) []Notice { return r.linkifierNotices() }

// OrderLinkifiers asks for another order. IDs contains each linkifier once.
type OrderLinkifiers struct{ IDs []int64 }

func (c OrderLinkifiers) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	sorted := slices.Clone(c.IDs)
	slices.Sort(sorted)
	if !slices.Equal(sorted, t.small.linkifiers.keys()) {
		return Done{}, BadRequest("The ordered list must enumerate all existing linkifiers exactly once")
	}
	if len(c.IDs) > 0 {
		t.Record(&LinkifiersOrdered{c.IDs})
	}
	return Done{}, nil
}

// LinkifiersOrdered says in which order the linkifiers apply.
type LinkifiersOrdered struct{ IDs []int64 }

func (f *LinkifiersOrdered) apply(r *Realm) {
	for i, id := range f.IDs {
		r.small.linkifiers.change(id).Order = int64(i)
	}
}

func (f *LinkifiersOrdered) notices(r *Realm) []Notice { return r.linkifierNotices() }

// LinkifiersChanged is the event realm_linkifiers with the whole list, in order.
type LinkifiersChanged struct{ List []Linkifier }

func (*LinkifiersChanged) EventType() string { return "realm_linkifiers" }

// linkifierNotices sends the whole list to all users.
func (r *Realm) linkifierNotices() []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: &LinkifiersChanged{r.Linkifiers()}}}
}

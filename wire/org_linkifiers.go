package wire

import (
	"regexp"
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/markdown"
)

var linkifierEndpoints = []Endpoint{
	Get("/realm/linkifiers", func(c *Call, v realm.View, _ noParameters) (*linkifiersAnswer, error) {
		return &linkifiersAnswer{each(v.Linkifiers(), newLinkifier)}, nil
	}),
	CommandFromForm("PATCH", "/realm/linkifiers", func(f orderLinkifiersForm) realm.OrderLinkifiers {
		return realm.OrderLinkifiers{IDs: f.IDs}
	}, emptyAnswer),
	CommandFromForm("POST", "/realm/filters", func(f linkifierForm) realm.SaveLinkifier {
		return saveLinkifierCommand(f.applyTo(realm.Linkifier{}))
	}, newIDAnswer),
	CommandFromCall("PATCH", "/realm/filters/{filter_id}", editLinkifier, func(int64) noFields { return noFields{} }),
	CommandFromForm("DELETE", "/realm/filters/{filter_id}", func(f linkifierIDForm) realm.RemoveLinkifier {
		return realm.RemoveLinkifier{ID: f.ID}
	}, emptyAnswer),
}

var linkifierEvents = []EventKind{
	Event(func(e *realm.LinkifiersChanged, to *Recipient) *linkifiersEvent {
		if !to.Has(realm.CapLinkifierURLTemplate) {
			return nil // this client does not know URL templates
		}
		return &linkifiersEvent{Linkifiers: each(e.List, newLinkifier)}
	}),
}

type linkifiersAnswer struct {
	Linkifiers []linkifierJSON `json:"linkifiers"`
}

type linkifiersEvent struct {
	_          struct{}        `const:"type=realm_linkifiers"`
	Linkifiers []linkifierJSON `json:"realm_linkifiers"`
}

type linkifierJSON struct {
	ID           int64    `json:"id"`
	Pattern      string   `json:"pattern"`
	Template     string   `json:"url_template"`
	Example      *string  `json:"example_input"`
	Reverse      *string  `json:"reverse_template"`
	Alternatives []string `json:"alternative_url_templates"`
}

type orderLinkifiersForm struct {
	IDs []int64 `form:"ordered_linkifier_ids,required,maxitems=10000"`
}

type linkifierIDForm struct {
	ID int64 `path:"filter_id"`
}

type linkifierForm struct {
	Pattern      string             `form:"pattern,required"`
	Template     string             `form:"url_template,required"`
	Example      *string            `form:"example_input,raw"`
	Reverse      *string            `form:"reverse_template,raw"`
	Alternatives form.Opt[[]string] `form:"alternative_url_templates,maxitems=1000"`
}

type editLinkifierForm struct {
	linkifierIDForm
	linkifierForm
}

// applyTo returns the linkifier with the sent fields. An empty text removes an optional field, an absent parameter
// leaves it unchanged.
func (f linkifierForm) applyTo(l realm.Linkifier) realm.Linkifier {
	l.Pattern, l.Template = strings.TrimSpace(f.Pattern), strings.TrimSpace(f.Template)
	for _, x := range []struct {
		to   **string
		sent *string
	}{{&l.Example, f.Example}, {&l.Reverse, f.Reverse}} {
		switch {
		case x.sent != nil && *x.sent == "":
			*x.to = nil
		case x.sent != nil:
			*x.to = x.sent
		}
	}
	if f.Alternatives.Set {
		l.Alternatives = f.Alternatives.Value
	}
	return l
}

func editLinkifier(c *Call, f editLinkifierForm) (realm.SaveLinkifier, error) {
	old, err := Read(c, func(v realm.View) (realm.Linkifier, error) {
		if _, err := v.RequireAdmin(); err != nil {
			return realm.Linkifier{}, err
		}
		l := v.FindLinkifier(f.ID)
		if l == nil {
			return realm.Linkifier{}, realm.ErrNoLinkifier()
		}
		return *l, nil
	})
	if err != nil {
		return realm.SaveLinkifier{}, err
	}
	return saveLinkifierCommand(f.applyTo(old)), nil
}

func saveLinkifierCommand(l realm.Linkifier) realm.SaveLinkifier {
	return realm.SaveLinkifier{Linkifier: l, TemplateError: linkifierFault(l)}
}

// linkifierFault returns the error in the pattern and templates of a linkifier, or nil. As in the protocol, a template
// is checked by itself and then together with the pattern: the error names the template, and "__all__" the first fault
// of the whole.
func linkifierFault(l realm.Linkifier) error {
	for i, template := range append([]string{l.Template}, l.Alternatives...) {
		field := "url_template"
		if i > 0 {
			field = "alternative_url_templates"
		}
		if template == "" {
			return realm.ErrBadField(field, "This field cannot be blank.")
		}
		_, err := markdown.CompileLinkifier(l.Pattern, template)
		if err == nil && !markdown.IsWebTemplate(template) {
			const msg = "Invalid URL template."
			return realm.ErrBadField(field, msg)
		}
		if err == nil {
			continue
		}
		fault := realm.ErrBadField("__all__", err.Error())
		if _, err := uritemplate.New(template); err != nil {
			const msg = "Invalid URL template."
			fault.Msg = msg
			fault.Data["errors"].(map[string]any)[field] = []string{msg}
		}
		return fault
	}
	match := regexp.MustCompile(`^(?:` + l.Pattern + `)$`) // CompileLinkifier has checked the pattern
	if l.Example != nil && !match.MatchString(*l.Example) {
		return realm.ErrBadField("__all__", "Example input does not match the linkifier pattern.")
	}
	if l.Reverse == nil {
		return nil
	}
	if l.Example == nil {
		return realm.ErrBadField("__all__", "Reverse template requires an example input.")
	}
	t, err := uritemplate.New(*l.Reverse)
	if err != nil {
		return realm.ErrBadField("reverse_template", "Invalid reverse template.")
	}
	for _, name := range t.Varnames() {
		if !slices.Contains(match.SubexpNames(), name) {
			return realm.ErrBadField("__all__",
				"Group '"+name+"' in reverse template is not present in linkifier pattern.")
		}
	}
	return nil
}

func newLinkifier(l realm.Linkifier) linkifierJSON {
	return linkifierJSON{l.ID, l.Pattern, l.Template, l.Example, l.Reverse, slices.Clone(l.Alternatives)}
}

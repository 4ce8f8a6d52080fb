package contract

import (
	"fmt"
	"maps"
	"net/http"
	"strings"

	"parley/wire/shape"
)

// changeKind is the kind of change that an amendment makes.
type changeKind int

const (
	define  changeKind = iota // adds a schema of this name
	add                       // adds fields, or gives existing ones a new type
	drop                      // removes fields
	variant                   // adds one more form of a field
	loosen                    // makes every field optional
	answer                    // sets the success answer of an endpoint
	event                     // adds one form of an event
	retire                    // removes all forms of an event
)

// An amendment is one step from the description's feature level to the level of this server. Level 0 marks
// behavior that the specification or the reference server always had but the description omits.
//
// At is the place: `Schema`, `GET /path`, or `event type/op`, each optionally followed by a path within it.
type amendment struct {
	Level  int
	change changeKind
	At     string
	Field  string // for add, drop and variant: field names; a "?" at the end of a name makes the field optional
	Type   string // in the notation of parse
}

func (a amendment) String() string {
	text := fmt.Sprintf("FL %d: %s %s", a.Level, [...]string{"define", "add", "drop", "variant", "loosen", "answer",
		"event", "retire"}[a.change], a.At)
	if a.Field != "" {
		text += ": " + a.Field
	}
	if a.Type != "" {
		text += " " + a.Type
	}
	return text
}

// schema returns the name of the schema that the amendment changes. It reports false if it changes something
// else.
func (a amendment) schema() (string, bool) {
	first, _, _ := strings.Cut(a.At, " ")
	switch first {
	case "event", http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete:
		return "", false
	}
	return first, true
}

// apply changes the fields at path below s.
func (a amendment) apply(s *shape.Shape, path string, named func(string) (*shape.Shape, error)) error {
	at, err := s.FindMutable(path)
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	at.Fields = maps.Clone(at.Fields)
	if at.Fields == nil {
		at.Fields = map[string]shape.Field{}
	}
	if a.change == loosen {
		for name, f := range at.Fields {
			at.Fields[name] = shape.Field{Shape: f.Shape, Optional: true}
		}
		return nil
	}
	for _, name := range strings.Fields(a.Field) {
		if err := a.applyField(at, name, named); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

func (a amendment) applyField(at *shape.Shape, name string, named func(string) (*shape.Shape, error)) error {
	name, optional := strings.CutSuffix(name, "?")
	old, there := at.Fields[name]
	if !there && a.change != add {
		return fmt.Errorf("no field %q", name)
	}
	if a.change == drop {
		delete(at.Fields, name)
		return nil
	}
	typ, err := parse(a.Type, named)
	if err != nil {
		return err
	}
	f := shape.Field{Shape: typ, ListedRequired: !optional, Optional: optional}
	if a.change == variant {
		f = old
		if len(f.Shape.AnyOf) == 0 {
			f.Shape = &shape.Shape{AnyOf: []*shape.Shape{f.Shape}}
		}
		f.Shape = shape.Merge(f.Shape, &shape.Shape{AnyOf: []*shape.Shape{typ}, Nullable: typ.Nullable})
	}
	at.Fields[name] = f
	return nil
}

package shape

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Shape is the type of one JSON value. All names in it are resolved.
type Shape struct {
	Name        string // name in the OpenAPI document; usually none
	Kind        string // object, array, string, integer, number, boolean; "" is anything
	Nullable    bool
	Enum        []string // if not empty, the only allowed strings
	Fields      map[string]Field
	Closed      bool   // further fields are findings
	OtherValues *Shape // shape of the values of further fields
	Items       *Shape
	Empty       bool     // an array that is always empty
	AnyOf       []*Shape // at least one must fit
}

// Field is a field of an object. It can be absent only if it is Optional and not listed as required.
type Field struct {
	Shape          *Shape
	ListedRequired bool // the description lists it as required
	Optional       bool // the description's text says that it can be absent
}

// Required reports whether the field must be present.
func (f Field) Required() bool { return f.ListedRequired || !f.Optional }

// acceptsAnything reports whether the shape has no constraint: the `{}` with which the description repeats inherited
// fields.
func (s *Shape) acceptsAnything() bool {
	return s.Kind == "" && len(s.AnyOf) == 0 && len(s.Enum) == 0 && s.Fields == nil && s.OtherValues == nil &&
		s.Items == nil
}

// Merge returns the shape of an allOf: it has the constraints of a and of b. If both constrain Kind, Enum, Items or
// OtherValues, those of b are used. Common fields are merged.
func Merge(a, b *Shape) *Shape {
	out := *a
	if b.Kind != "" {
		out.Kind = b.Kind
	}
	out.Nullable = a.Nullable || b.Nullable
	out.Closed = a.Closed || b.Closed
	if len(b.Enum) > 0 {
		out.Enum = b.Enum
	}
	if b.OtherValues != nil {
		out.OtherValues = b.OtherValues
	}
	if b.Items != nil {
		out.Items = b.Items
	}
	out.AnyOf = append(slices.Clone(a.AnyOf), b.AnyOf...)
	if b.Fields != nil {
		out.Fields = maps.Clone(a.Fields)
		if out.Fields == nil {
			out.Fields = map[string]Field{}
		}
		for name, f := range b.Fields {
			if g, ok := out.Fields[name]; ok {
				f = Field{Merge(g.Shape, f.Shape), f.ListedRequired || g.ListedRequired, f.Optional || g.Optional}
			}
			out.Fields[name] = f
		}
	}
	return &out
}

// Find returns the shape at a path such as `members[].profile_data*`.
func (s *Shape) Find(path string) (*Shape, error) { return s.walk(path, false) }

// FindMutable is Find for changing the result. The shapes on the path are copied first, because named shapes are
// shared.
func (s *Shape) FindMutable(path string) (*Shape, error) { return s.walk(path, true) }

func (s *Shape) walk(path string, copying bool) (*Shape, error) {
	at := s
	for path != "" {
		var next *Shape
		var put func(*Shape)
		here := at
		switch {
		case strings.HasPrefix(path, "[]"):
			path, next, put = path[2:], at.Items, func(c *Shape) { here.Items = c }
		case path[0] == '*':
			path, next, put = path[1:], at.OtherValues, func(c *Shape) { here.OtherValues = c }
		default:
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[*")
			if end < 0 {
				end = len(path)
			}
			name := path[:end]
			path, next = path[end:], at.Fields[name].Shape
			put = func(c *Shape) {
				f := here.Fields[name]
				f.Shape = c
				here.Fields = maps.Clone(here.Fields)
				here.Fields[name] = f
			}
		}
		if next == nil {
			return nil, fmt.Errorf("shape %s has no child for the path before %q", s, path)
		}
		if copying {
			c := *next
			put(&c)
			next = &c
		}
		at = next
	}
	return at, nil
}

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

// notation is a recursive-descent parser for the notation in the package comment. It panics on errors, which Parse
// recovers.
type notation struct {
	text string
	pos  int
	name func(string) (*Shape, error)
}

// Parse reads the notation. name resolves the names in it.
func Parse(text string, name func(string) (*Shape, error)) (s *Shape, err error) {
	n := &notation{text: text, name: name}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("notation %q at %d: %v", text, n.pos, r)
		}
	}()
	s = n.union()
	if n.skipSpace(); n.pos < len(n.text) {
		panic("trailing text")
	}
	return s, nil
}

func (n *notation) skipSpace() {
	for n.pos < len(n.text) && (n.text[n.pos] == ' ' || n.text[n.pos] == '\n' || n.text[n.pos] == '\t') {
		n.pos++
	}
}

// accept skips the next character if it is c.
func (n *notation) accept(c byte) bool {
	if n.skipSpace(); n.pos < len(n.text) && n.text[n.pos] == c {
		n.pos++
		return true
	}
	return false
}

func (n *notation) expect(c byte) {
	if !n.accept(c) {
		panic(fmt.Sprintf("expected %q", c))
	}
}

func (n *notation) word() string {
	n.skipSpace()
	start := n.pos
	for n.pos < len(n.text) {
		c := n.text[n.pos]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			break
		}
		n.pos++
	}
	if n.pos == start {
		panic("expected a word")
	}
	return n.text[start:n.pos]
}

// key parses the name of a field, which is quoted if it is not a word.
func (n *notation) key() string {
	if n.accept('\'') {
		return n.quoted()
	}
	return n.word()
}

// quoted parses the text up to the closing quote.
func (n *notation) quoted() string {
	end := strings.IndexByte(n.text[n.pos:], '\'')
	word := n.text[n.pos : n.pos+end]
	n.pos += end + 1
	return word
}

// union parses alternatives separated by |. Strings become one enumeration.
func (n *notation) union() *Shape {
	parts := []*Shape{n.nullable()}
	for n.accept('|') {
		parts = append(parts, n.nullable())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	out := &Shape{AnyOf: parts}
	var enum []string
	for _, p := range parts {
		out.Nullable = out.Nullable || p.Nullable
		if len(p.Enum) == 0 {
			return out
		}
		enum = append(enum, p.Enum...)
	}
	return &Shape{Kind: "string", Enum: enum, Nullable: out.Nullable}
}

// nullable parses a type with an optional question mark.
func (n *notation) nullable() *Shape {
	s := n.primary()
	if n.accept('?') {
		c := *s
		c.Nullable = true
		return &c
	}
	return s
}

// primary parses an array, an object, a constant or a name.
func (n *notation) primary() *Shape {
	switch {
	case n.accept('['):
		if n.accept(']') {
			return &Shape{Kind: "array", Empty: true}
		}
		items := n.union()
		n.expect(']')
		return &Shape{Kind: "array", Items: items}
	case n.accept('{'):
		out := &Shape{Kind: "object", Closed: true, Fields: map[string]Field{}}
		loose := false
		for !n.accept('}') {
			if n.accept('~') {
				loose = true
			}
			if n.accept('*') {
				n.expect(':')
				out.OtherValues = n.union()
			} else {
				key := n.key()
				optional := n.accept('?') || loose
				n.expect(':')
				out.Fields[key] = Field{Shape: n.union(), ListedRequired: !optional, Optional: optional}
			}
			n.accept(',')
		}
		return out
	case n.accept('\''):
		return &Shape{Kind: "string", Enum: []string{n.quoted()}}
	}
	switch w := n.word(); w {
	case "int":
		return &Shape{Kind: "integer"}
	case "num":
		return &Shape{Kind: "number"}
	case "str":
		return &Shape{Kind: "string"}
	case "bool":
		return &Shape{Kind: "boolean"}
	case "any":
		return &Shape{Nullable: true}
	default:
		s, err := n.name(w)
		if err != nil {
			panic(err)
		}
		return s
	}
}

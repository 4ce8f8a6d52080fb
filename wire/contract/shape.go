package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A shape is the type of one JSON value with every indirection of the description resolved.
type shape struct {
	kind     string // object, array, string, integer, number, boolean; "" is anything
	nullable bool
	enum     []string // the only strings allowed, when not empty
	fields   map[string]field
	closed   bool   // fields not named here are findings
	others   *shape // what the values of fields not named here look like
	items    *shape
	either   []*shape // one of these must fit
}

type field struct {
	shape    *shape
	listed   bool // the description lists it as required
	optional bool // the description's words say it may be absent
}

func (f field) required() bool { return f.listed || !f.optional }

// anything reports whether the shape says nothing: the `{}` with which the description repeats inherited fields.
func (s *shape) anything() bool {
	return s.kind == "" && len(s.either) == 0 && len(s.enum) == 0 && s.fields == nil && s.others == nil && s.items == nil
}

// merge joins the branches of an allOf: what both say narrows, what one says counts.
func merge(a, b *shape) *shape {
	out := *a
	if b.kind != "" {
		out.kind = b.kind
	}
	out.nullable = a.nullable || b.nullable
	out.closed = a.closed || b.closed
	if len(b.enum) > 0 {
		out.enum = b.enum
	}
	if b.others != nil {
		out.others = b.others
	}
	if b.items != nil {
		out.items = b.items
	}
	out.either = append(slices.Clone(a.either), b.either...)
	if b.fields != nil {
		out.fields = maps.Clone(a.fields)
		if out.fields == nil {
			out.fields = map[string]field{}
		}
		for name, f := range b.fields {
			if g, ok := out.fields[name]; ok {
				f = field{merge(g.shape, f.shape), f.listed || g.listed, f.optional || g.optional}
			}
			out.fields[name] = f
		}
	}
	return &out
}

// find walks a path like `members[].profile_data*` down from s.
func (s *shape) find(path string) (*shape, error) { return s.walk(path, false) }

// own is find for changing what is found: the shapes on the way become s's own, for schemas are shared by all who name them.
func (s *shape) own(path string) (*shape, error) { return s.walk(path, true) }

func (s *shape) walk(path string, copying bool) (*shape, error) {
	at := s
	for path != "" {
		var next *shape
		var put func(*shape)
		here := at
		switch {
		case strings.HasPrefix(path, "[]"):
			path, next, put = path[2:], at.items, func(c *shape) { here.items = c }
		case path[0] == '*':
			path, next, put = path[1:], at.others, func(c *shape) { here.others = c }
		default:
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[*")
			if end < 0 {
				end = len(path)
			}
			name := path[:end]
			path, next = path[end:], at.fields[name].shape
			put = func(c *shape) {
				f := here.fields[name]
				f.shape = c
				here.fields = maps.Clone(here.fields)
				here.fields[name] = f
			}
		}
		if next == nil {
			return nil, fmt.Errorf("nothing at %q before %q", s, path)
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

// A notation writes shapes in one line, for the tables of this package:
//
//	int num str bool any    the plain types
//	[T]  {a: T, b?: T}      array; object with exactly these fields, b may be absent
//	{*: T}  {a: T, *: T}    object whose other fields hold T
//	A | B   T?              one of; or null
//	'x'                     exactly this string
//	Name                    a schema of the description, or one defined by an amendment
type notation struct {
	text string
	pos  int
	name func(string) (*shape, error)
}

func parse(text string, name func(string) (*shape, error)) (s *shape, err error) {
	n := &notation{text: text, name: name}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("notation %q at %d: %v", text, n.pos, r)
		}
	}()
	s = n.union()
	if n.skip(); n.pos < len(n.text) {
		panic("trailing text")
	}
	return s, nil
}

func (n *notation) skip() {
	for n.pos < len(n.text) && (n.text[n.pos] == ' ' || n.text[n.pos] == '\n' || n.text[n.pos] == '\t') {
		n.pos++
	}
}

func (n *notation) eat(c byte) bool {
	if n.skip(); n.pos < len(n.text) && n.text[n.pos] == c {
		n.pos++
		return true
	}
	return false
}

func (n *notation) must(c byte) {
	if !n.eat(c) {
		panic(fmt.Sprintf("expected %q", c))
	}
}

func (n *notation) word() string {
	n.skip()
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

func (n *notation) union() *shape {
	parts := []*shape{n.one()}
	for n.eat('|') {
		parts = append(parts, n.one())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	out := &shape{either: parts}
	var enum []string
	for _, p := range parts {
		out.nullable = out.nullable || p.nullable
		if len(p.enum) == 0 {
			return out
		}
		enum = append(enum, p.enum...)
	}
	return &shape{kind: "string", enum: enum, nullable: out.nullable}
}

func (n *notation) one() *shape {
	s := n.plain()
	if n.eat('?') {
		c := *s
		c.nullable = true
		return &c
	}
	return s
}

func (n *notation) plain() *shape {
	switch {
	case n.eat('['):
		items := n.union()
		n.must(']')
		return &shape{kind: "array", items: items}
	case n.eat('{'):
		out := &shape{kind: "object", closed: true, fields: map[string]field{}}
		for !n.eat('}') {
			if n.eat('*') {
				n.must(':')
				out.others = n.union()
			} else {
				key := n.word()
				optional := n.eat('?')
				n.must(':')
				out.fields[key] = field{shape: n.union(), listed: !optional, optional: optional}
			}
			n.eat(',')
		}
		return out
	case n.eat('\''):
		end := strings.IndexByte(n.text[n.pos:], '\'')
		word := n.text[n.pos : n.pos+end]
		n.pos += end + 1
		return &shape{kind: "string", enum: []string{word}}
	}
	switch w := n.word(); w {
	case "int":
		return &shape{kind: "integer"}
	case "num":
		return &shape{kind: "number"}
	case "str":
		return &shape{kind: "string"}
	case "bool":
		return &shape{kind: "boolean"}
	case "any":
		return &shape{nullable: true}
	default:
		s, err := n.name(w)
		if err != nil {
			panic(err)
		}
		return s
	}
}

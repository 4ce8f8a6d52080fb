package contract

import (
	"fmt"
	"strings"

	"parley/wire/shape"
)

// notation is a recursive-descent parser for the notation of amendments:
//
//	int num str bool any    the plain types
//	[T] []                  an array; an array that is always empty
//	{a: T, b?: T}           an object with exactly these fields; b can be absent
//	{*: T}  {a: T, *: T}    an object whose other fields hold T
//	A | B   T?              one of several shapes; T or null
//	'x'                     exactly this string; before a colon, a field name that is not a word
//	Name                    a named shape, which the caller of parse resolves
//
// It panics on errors, which parse recovers.
type notation struct {
	text string
	pos  int
	name func(string) (*shape.Shape, error)
}

// parse reads the notation. name resolves the names in it.
func parse(text string, name func(string) (*shape.Shape, error)) (s *shape.Shape, err error) {
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
func (n *notation) union() *shape.Shape {
	parts := []*shape.Shape{n.nullable()}
	for n.accept('|') {
		parts = append(parts, n.nullable())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	out := &shape.Shape{AnyOf: parts}
	var enum []string
	for _, p := range parts {
		out.Nullable = out.Nullable || p.Nullable
		if len(p.Enum) == 0 {
			return out
		}
		enum = append(enum, p.Enum...)
	}
	return &shape.Shape{Kind: "string", Enum: enum, Nullable: out.Nullable}
}

// nullable parses a type with an optional question mark.
func (n *notation) nullable() *shape.Shape {
	s := n.primary()
	if n.accept('?') {
		c := *s
		c.Nullable = true
		return &c
	}
	return s
}

// primary parses an array, an object, a constant or a name.
func (n *notation) primary() *shape.Shape {
	switch {
	case n.accept('['):
		if n.accept(']') {
			return &shape.Shape{Kind: "array", Empty: true}
		}
		items := n.union()
		n.expect(']')
		return &shape.Shape{Kind: "array", Items: items}
	case n.accept('{'):
		out := &shape.Shape{Kind: "object", Closed: true, Fields: map[string]shape.Field{}}
		for !n.accept('}') {
			if n.accept('*') {
				n.expect(':')
				out.OtherValues = n.union()
			} else {
				key := n.key()
				optional := n.accept('?')
				n.expect(':')
				out.Fields[key] = shape.Field{Shape: n.union(), ListedRequired: !optional, Optional: optional}
			}
			n.accept(',')
		}
		return out
	case n.accept('\''):
		return &shape.Shape{Kind: "string", Enum: []string{n.quoted()}}
	}
	switch w := n.word(); w {
	case "int":
		return &shape.Shape{Kind: "integer"}
	case "num":
		return &shape.Shape{Kind: "number"}
	case "str":
		return &shape.Shape{Kind: "string"}
	case "bool":
		return &shape.Shape{Kind: "boolean"}
	case "any":
		return &shape.Shape{Nullable: true}
	default:
		s, err := n.name(w)
		if err != nil {
			panic(err)
		}
		return s
	}
}

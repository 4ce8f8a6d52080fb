package form

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// MaxJSONDepth bounds lists and objects inside each other. The protocol nests four deep; the parser recurses.
	MaxJSONDepth = 100
	// MaxJSONValues bounds the values in one parameter, which take 64 bytes each however short their text: twice a
	// list of everybody in an organization of 100,000.
	MaxJSONValues = 250_000
)

// Kind is the type of a JSON value. Numbers without fraction and exponent are integers, of any size.
type Kind uint8

const (
	KindNull Kind = iota
	KindBool
	KindInt
	KindFloat
	KindString
	KindList
	KindObject
)

// Value is a JSON value. Its strings are pieces of the parameter it was read from.
type Value struct {
	key  string  // when it is a member of an object
	text string  // of strings, numbers and booleans
	list []Value // elements, or members in their order
	kind Kind
}

// JSON reads a whole parameter strictly: no more than the grammar of RFC 8259 allows, no lone surrogate escapes, nothing
// deeper or larger than the limits.
func JSON(raw string) (Value, bool) {
	p := parser{s: raw, remaining: MaxJSONValues}
	if len(raw) > minCountBytes {
		var values int
		if values, p.outerValues = countValues(raw); values > MaxJSONValues {
			return Value{}, false
		}
	}
	p.space()
	v, ok := p.value(MaxJSONDepth)
	p.space()
	return v, ok && p.i == len(raw)
}

// minCountBytes is the size in bytes from which the values of a parameter are counted before it is taken apart, so that too many
// cost no memory, and a long list is made in one piece.
const minCountBytes = 4 << 10

// countValues is how many values a JSON text has, and how many of them are in the outermost list or object. Of what is no
// JSON it says nothing.
func countValues(s string) (all, outer int) {
	all = 1
	depth, first := 0, false // whether the first element of a list or object may come
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch c {
		case ' ', '\n', '\t', '\r':
			continue
		case ']', '}':
			depth--
			first = false
			continue
		case ',':
			all++
			if depth == 1 {
				outer++
			}
			continue
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
		if first {
			all++
			if depth == 1 {
				outer++
			}
		}
		if first = c == '[' || c == '{'; first {
			depth++
		}
	}
	return all, outer
}

type parser struct {
	s           string
	i           int
	remaining   int // values that may still come
	outerValues int // values in the outermost list or object, if they were counted
}

func (p *parser) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\n' || p.s[p.i] == '\t' || p.s[p.i] == '\r') {
		p.i++
	}
}

func (p *parser) next(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *parser) word(w string) bool {
	if strings.HasPrefix(p.s[p.i:], w) {
		p.i += len(w)
		return true
	}
	return false
}

func (p *parser) value(depth int) (v Value, ok bool) {
	p.remaining--
	if p.i >= len(p.s) || p.remaining < 0 {
		return v, false
	}
	switch p.s[p.i] {
	case '"':
		v.kind = KindString
		v.text, ok = p.str()
	case '[':
		v.kind = KindList
		v.list, ok = p.members(depth, ']', false)
	case '{':
		v.kind = KindObject
		v.list, ok = p.members(depth, '}', true)
	case 't':
		return Value{kind: KindBool, text: "true"}, p.word("true")
	case 'f':
		return Value{kind: KindBool, text: "false"}, p.word("false")
	case 'n':
		return Value{}, p.word("null")
	default:
		return p.number()
	}
	return v, ok
}

// members reads the elements of a list or, with keys, of an object.
func (p *parser) members(depth int, end byte, keys bool) (list []Value, ok bool) {
	if depth == 0 {
		return nil, false
	}
	p.i++
	p.space()
	if p.next(end) {
		return nil, true
	}
	if depth == MaxJSONDepth && p.outerValues > 0 {
		list = make([]Value, 0, p.outerValues)
	}
	for {
		var key string
		if keys {
			if p.i >= len(p.s) || p.s[p.i] != '"' {
				return nil, false
			}
			if key, ok = p.str(); !ok {
				return nil, false
			}
			p.space()
			if !p.next(':') {
				return nil, false
			}
			p.space()
		}
		v, ok := p.value(depth - 1)
		if !ok {
			return nil, false
		}
		v.key = key
		list = append(list, v)
		p.space()
		if p.next(end) {
			return list, true
		}
		if !p.next(',') {
			return nil, false
		}
		p.space()
	}
}

func (p *parser) number() (Value, bool) {
	start, kind := p.i, KindInt
	p.next('-')
	if !p.next('0') && !p.digits() {
		return Value{}, false
	}
	if p.next('.') {
		kind = KindFloat
		if !p.digits() {
			return Value{}, false
		}
	}
	if p.next('e') || p.next('E') {
		kind = KindFloat
		if !p.next('+') {
			p.next('-')
		}
		if !p.digits() {
			return Value{}, false
		}
	}
	return Value{kind: kind, text: p.s[start:p.i]}, true
}

func (p *parser) digits() bool {
	start := p.i
	for p.i < len(p.s) && '0' <= p.s[p.i] && p.s[p.i] <= '9' {
		p.i++
	}
	return p.i > start
}

// str reads a string; one without escapes costs nothing.
func (p *parser) str() (string, bool) {
	p.i++
	start := p.i
	for ; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == '"':
			p.i++
			return p.s[start : p.i-1], true
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

func (p *parser) escaped(start int) (string, bool) {
	var b strings.Builder
	b.WriteString(p.s[start:p.i])
	for p.i < len(p.s) {
		c := p.s[p.i]
		p.i++
		switch {
		case c == '"':
			return b.String(), true
		case c < ' ':
			return "", false
		case c != '\\':
			b.WriteByte(c)
			continue
		}
		r, ok := p.escape()
		if !ok {
			return "", false
		}
		b.WriteRune(r)
	}
	return "", false
}

func (p *parser) escape() (rune, bool) {
	if p.i >= len(p.s) {
		return 0, false
	}
	c := p.s[p.i]
	p.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	case 'u':
		return p.unicode()
	}
	return 0, false
}

func (p *parser) unicode() (rune, bool) {
	r, ok := p.hex4()
	if !ok || !utf16.IsSurrogate(r) {
		return r, ok
	}
	if !p.word(`\u`) {
		return 0, false
	}
	low, ok := p.hex4()
	r = utf16.DecodeRune(r, low)
	return r, ok && r != utf8.RuneError
}

func (p *parser) hex4() (rune, bool) {
	if len(p.s)-p.i < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(p.s[p.i:p.i+4], 16, 16)
	p.i += 4
	return rune(n), err == nil
}

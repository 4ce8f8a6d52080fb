package form

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// MaxJSONDepth bounds the nesting of lists and objects, because the parser recurses. The protocol nests four
	// deep.
	MaxJSONDepth = 100
	// MaxJSONValues bounds the values in one parameter, which take 64 bytes each even if their text is short. It
	// allows twice the length of a list of all users in an organization of 100,000.
	MaxJSONValues = 250_000
)

// Kind is the type of a JSON value. A number without fraction and exponent is an integer, whatever its size.
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

// Value is a JSON value. Its strings share memory with the parameter.
type Value struct {
	key  string  // the name of a member of an object
	text string  // of strings, numbers and booleans
	list []Value // elements, or members in their order
	kind Kind
}

// JSON parses a whole parameter strictly: the grammar of RFC 8259, no escapes of lone surrogates, and within
// MaxJSONDepth and MaxJSONValues. It reports whether the text is valid.
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

// minCountBytes is the size of a parameter, in bytes, from which its values are counted before parsing. So too
// many values cost no memory, and the outermost list is allocated once.
const minCountBytes = 4 << 10

// countValues returns the number of values in a JSON text, and how many of them are in the outermost list or
// object. For text that is not JSON the result is meaningless.
func countValues(s string) (all, outer int) {
	all = 1
	depth, first := 0, false // first: the first element of a list or object may follow
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
	remaining   int // number of values still allowed
	outerValues int // number of values in the outermost list or object, 0 if not counted
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

// members parses the elements of a list or, with keys, the members of an object.
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

// str parses a string. Without escapes it does not allocate.
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

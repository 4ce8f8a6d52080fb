package form

import (
	"strings"
	"unicode/utf8"
)

// Source is where a parameter came from.
type Source uint8

const (
	Query  Source = iota
	Body          // wins over the query
	Path          // apart from both
	Header        // apart from all; only those that a form names
)

// MaxParams bounds the query and body parameters of one request. The largest form has about 120; a thousand leaves
// room for clients that send more than we know, and keeps a hostile request from costing more than its bytes.
const MaxParams = 1000

// Values are the parameters of one request, split and url-decoded. They belong to one goroutine and may be used
// again after Reset. The strings must not change afterwards: forms keep pieces of them.
type Values struct {
	list     []entry
	path     []entry
	headers  []entry
	consumed []string
	overflow bool

	selected []int32 // scratch of Decode: for each slot of a form the entry that counts, or -1
}

type entry struct {
	name, value string
	source      Source
}

// Reset forgets everything but the memory.
func (v *Values) Reset() {
	clear(v.list)
	clear(v.path)
	clear(v.headers)
	clear(v.consumed)
	v.list, v.path, v.headers, v.consumed, v.overflow = v.list[:0], v.path[:0], v.headers[:0], v.consumed[:0], false
}

// Add appends one parameter. Beyond MaxParams it is dropped and every Decode refuses.
func (v *Values) Add(source Source, name, value string) {
	e := entry{validUTF8(name), validUTF8(value), source}
	switch {
	case source == Path:
		v.path = append(v.path, e)
	case source == Header:
		v.headers = append(v.headers, e)
	case len(v.list) >= MaxParams:
		v.overflow = true
	default:
		v.list = append(v.list, e)
	}
}

// Get returns the value of one query or body parameter.
func (v *Values) Get(name string) (value string, ok bool) {
	source := Query
	for i := range v.list {
		if e := &v.list[i]; e.name == name && e.source >= source {
			value, ok, source = e.value, true, e.source
		}
	}
	return value, ok
}

// Consume says that somebody else has used the parameter, so that no form reports it as ignored.
func (v *Values) Consume(name string) { v.consumed = append(v.consumed, name) }

// selectEntries finds for each name of the form the entry that counts: of the body before the query, the last one.
func (v *Values) selectEntries(f *Form) {
	if cap(v.selected) < len(f.slots) {
		v.selected = make([]int32, len(f.slots))
	}
	v.selected = v.selected[:len(f.slots)]
	for i := range v.selected {
		v.selected[i] = -1
	}
	for i := range v.list {
		slot, known := f.slots[v.list[i].name]
		if !known {
			continue
		}
		if was := v.selected[slot]; was < 0 || v.list[i].source >= v.list[was].source {
			v.selected[slot] = int32(i)
		}
	}
}

func (v *Values) pathValue(name string) (string, bool) {
	for i := range v.path {
		if v.path[i].name == name {
			return v.path[i].value, true
		}
	}
	return "", false
}

// Header returns the value of one header, under the name a form has for it.
func (v *Values) Header(name string) (value string, ok bool) {
	for i := range v.headers {
		if v.headers[i].name == name {
			return v.headers[i].value, true
		}
	}
	return "", false
}

// validUTF8 replaces each longest piece that begins like a character and is none by U+FFFD.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			n = badPrefix(s[i:])
		}
		b.WriteRune(r)
		i += n
	}
	return b.String()
}

// badPrefix is the length of the ill-formed sequence s begins with: a lead byte and as many of its continuation bytes
// as could still have become a character.
func badPrefix(s string) int {
	n := 1
	for n < len(s) && n < 4 && !utf8.FullRuneInString(s[:n]) {
		n++
	}
	if n > 1 && (n == len(s) && !utf8.FullRuneInString(s)) {
		return n
	}
	return max(1, n-1)
}

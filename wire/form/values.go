package form

import (
	"strings"
	"unicode/utf8"
)

// Source is the part of a request that contains a parameter.
type Source uint8

const (
	Query  Source = iota
	Body          // has priority over the query
	Path          // separate from query and body
	Header        // separate from the others; only headers that a form declares
)

// MaxParams bounds the query and body parameters of one request. The largest form has about 120. A thousand
// leaves room for clients that send unknown ones, and keeps the cost of a hostile request near its size.
const MaxParams = 1000

// Values holds the parameters of one request, split and url-decoded. It is not safe for concurrent use. After
// Reset it may be used for another request. The strings must not change later: decoded forms share their memory.
type Values struct {
	list     []entry
	path     []entry
	headers  []entry
	consumed []string
	overflow bool

	selected []int32 // scratch memory of Decode: for each slot of a form the selected entry, or -1
}

type entry struct {
	name, value string
	source      Source
}

// Reset removes everything but keeps the memory.
func (v *Values) Reset() {
	clear(v.list)
	clear(v.path)
	clear(v.headers)
	clear(v.consumed)
	v.list, v.path, v.headers, v.consumed, v.overflow = v.list[:0], v.path[:0], v.headers[:0], v.consumed[:0], false
}

// Add adds one parameter. It replaces invalid UTF-8 in name and value. Beyond MaxParams it drops the parameter,
// and every Decode fails.
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

// Get returns the value of a query or body parameter.
func (v *Values) Get(name string) (value string, ok bool) {
	source := Query
	for i := range v.list {
		if e := &v.list[i]; e.name == name && e.source >= source {
			value, ok, source = e.value, true, e.source
		}
	}
	return value, ok
}

// EachQuery calls fn with each parameter of the query, in their order.
func (v *Values) EachQuery(fn func(name, value string)) {
	for i := range v.list {
		if e := &v.list[i]; e.source == Query {
			fn(e.name, e.value)
		}
	}
}

// Consume marks a parameter as used, so that no form reports it as ignored.
func (v *Values) Consume(name string) { v.consumed = append(v.consumed, name) }

// selectEntries finds the entry that counts for each name of the form: the last one of the body, else of the
// query.
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

// Header returns the value of a header, under the name that a form uses for it.
func (v *Values) Header(name string) (value string, ok bool) {
	for i := range v.headers {
		if v.headers[i].name == name {
			return v.headers[i].value, true
		}
	}
	return "", false
}

// validUTF8 replaces each ill-formed sequence by one U+FFFD.
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

// badPrefix returns the length of the ill-formed sequence at the start of s: a lead byte, and as many
// continuation bytes as could have been part of a character.
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

package wire

import (
	"slices"
	"sync/atomic"
)

// Fragments is encoded JSON in several parts. Parts that other answers contain too share their memory. The parts are
// written one after another without being joined.
type Fragments []Fragment

// Fragment is one part of Fragments.
type Fragment struct {
	JSON   []byte
	Shared bool             // other answers contain the same memory, so caching a derived form (compressed bytes) pays
	Run    *SharedFragments // instead of JSON
}

// SharedFragments is a sequence of fragments that other answers contain in the same order. They do not change.
type SharedFragments struct {
	Fragments
	Derived atomic.Value // a value that the sender computed from them, such as their compressed bytes
	size    int
}

// NewSharedFragments returns a shared sequence. The fragments must not contain shared sequences themselves.
func NewSharedFragments(p Fragments) *SharedFragments {
	return &SharedFragments{Fragments: p, size: p.Len()}
}

// EncodedFields in an Answer is several encoded fields, names and values. The key it is stored under is not sent.
type EncodedFields struct{ Fragment }

// rawJSON is an encoded value that is copied into the surrounding JSON.
type rawJSON []byte

func (r rawJSON) appendTo(b []byte) []byte { return append(b, r...) }

// ownFragment is a fragment of one answer, sharedFragment one that many answers contain.
func ownFragment(b []byte) Fragment    { return Fragment{JSON: b} }
func sharedFragment(b []byte) Fragment { return Fragment{JSON: b, Shared: true} }

// Len returns the total number of bytes.
func (p Fragments) Len() (n int) {
	for _, x := range p {
		if n += len(x.JSON); x.Run != nil {
			n += x.Run.size
		}
	}
	return n
}

// Each calls fn for each fragment, including those of shared sequences.
func (p Fragments) Each(fn func(json []byte)) {
	for _, x := range p {
		if x.Run != nil {
			x.Run.Each(fn)
		} else {
			fn(x.JSON)
		}
	}
}

// Bytes returns the joined fragments.
func (p Fragments) Bytes() []byte { return appendJSON(make([]byte, 0, p.Len()), p) }

// MarshalJSON is for callers that accept a copy.
func (p Fragments) MarshalJSON() ([]byte, error) { return p.Bytes(), nil }

// fragmentsOfStruct is SuccessFragments for structs.
func fragmentsOfStruct(answer any, ignored []string) Fragments {
	type late struct {
		key   []byte
		parts Fragments
	}
	var fields []late
	v, n := structOf(answer), 2
	for _, f := range planOf(v.Type()).fields {
		if f.kind != encodedField {
			continue
		}
		x := fieldAt(v, f.Index)
		if !x.IsValid() || f.OmitZero && x.IsZero() {
			continue
		}
		if p := x.Interface().(fragmented).parts(); p != nil {
			fields = append(fields, late{f.key, p})
			n += len(p) + 1
		}
	}
	if fields == nil {
		return nil
	}
	body := successOfStruct(answer, ignored, encodedField)
	out := append(make(Fragments, 0, n), ownFragment(body[:len(body)-2])) // without the closing brace and newline
	for _, f := range fields {
		before := comma
		if f.key != nil {
			before = ownFragment(append([]byte{','}, f.key...))
		}
		out = append(append(out, before), f.parts...)
	}
	return append(out, ownFragment([]byte("}\n")))
}

// SuccessFragments is Success without copying the Fragments and EncodedFields of the answer. It returns nil if the
// answer has none.
func SuccessFragments(answer any, ignored []string) (out Fragments) {
	a, ok := answer.(Answer)
	if !ok {
		return fragmentsOfStruct(answer, ignored)
	}
	var names []string
	rest := make(Answer, len(a)+3)
	for name, v := range a {
		switch v.(type) {
		case Fragments, EncodedFields:
			names = append(names, name)
		default:
			rest[name] = v
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	body := encodeLine(addSuccessFields(rest, ignored))
	n := 2 + 2*len(names)
	for _, name := range names {
		if p, ok := a[name].(Fragments); ok {
			n += len(p)
		}
	}
	out = make(Fragments, 0, n)
	out = append(out, ownFragment(body[:len(body)-2])) // without the closing brace and newline
	for _, name := range names {
		switch x := a[name].(type) {
		case Fragments:
			out = append(append(out, ownFragment([]byte(`,"`+name+`":`))), x...)
		case EncodedFields:
			out = append(out, comma, x.Fragment)
		}
	}
	return append(out, ownFragment([]byte("}\n")))
}

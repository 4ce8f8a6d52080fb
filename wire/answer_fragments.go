package wire

import "sync/atomic"

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

// SuccessFragments is Success without copying the encoded fields of the answer. They follow the others. It returns nil
// if the answer has none.
func SuccessFragments(answer any, ignored []string) Fragments {
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
	body := successWithout(answer, ignored, encodedField)
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

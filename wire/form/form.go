// Package form turns the parameters of a request into Go values.
//
// A form is a struct type: its fields declare what an endpoint takes, and nothing else decodes a parameter.
//
//	type markForm struct {
//		Message  int64              `path:"message_id"`
//		Op       string             `form:"op,required,enum=add|remove"`
//		Messages []int64            `form:"messages,required"`
//		Topic    form.Opt[string]   `form:"topic,alias=subject,strip,maxlen=60"`
//		Folder   form.Null[int64]   `form:"folder_id"`
//		Markdown bool               `form:"apply_markdown,default=true"`
//	}
//
// Two encodings occur on the wire. A string field, also inside Opt or a pointer, is the text itself; everything
// else is JSON inside the value. Inside lists, maps and structs strings are JSON strings, of course. The JSON is
// read strictly: 1 is no boolean, true no integer, neither is "5" nor 1.0, and a lone surrogate is no string.
//
// Fields are decoded in their order and the first failing check is the answer.
//
// # Tags
//
// `path:"name"` is a piece of the route, `header:"Name,option,…"` a header of the request, `form:"name,option,…"` a parameter or, in a nested struct, a key
// (there `json:"name"` names it as well). Fields of an embedded struct belong to the form itself. `form:"-"` and
// unexported fields without a tag are left alone. Commas inside brackets do not separate options.
//
//	required      absent is an error; otherwise absent leaves the zero value
//	default=x     what absent means, written as a client would send it; Opt.Set stays false
//	alias=n       another name of the parameter; sending both is an error (top level only)
//	json, raw     the string is JSON after all, the nullable string is text after all (top level only)
//	strip         surrounding white space goes before anything is checked
//	minlen, maxlen, len=n   code points of the text
//	pattern=re, date        the text matches; is a YYYY-MM-DD date
//	min, max=n    bounds of a number
//	enum=a|b      the values allowed, refused as "Invalid x"
//	in=1|2        the same, refused as "Not in the list of possible values"
//	minitems, maxitems=n    bounds of a list
//	extra         keys the struct does not know are skipped instead of refused; `_ struct{}` with
//	              `form:",extra"` inside the struct says so once and for all
//	hidden        Describe marks it: taken, but not documented
//
// Options about texts and numbers on a list or a map are about its elements.
//
// # Absent and null
//
// Opt[T] tells absent from zero and refuses null; a pointer takes null for absent; Null[T] tells all three apart
// and is JSON even when T is a string.
//
// # Text
//
// Names and values are valid UTF-8 before anything looks at them: Values.Add replaces what is not by U+FFFD, as
// browsers and the original do when they decode a query, so that no byte sequence is an error of its own and none gets
// any further. NUL is a character like others here: the endpoints that refuse it do so with messages of their own.
package form

import (
	"reflect"
	"slices"
)

// Form is a declaration, compiled. It is immutable and may be used by many goroutines.
type Form struct {
	of     reflect.Type // pointer to the struct
	params []param
	slots  map[string]int // every name and alias, numbered
}

// param is one top-level field.
type param struct {
	field
	aliases []string
	path    bool
	header  bool
	hidden  bool
	slot    int // of the name; its aliases' follow
}

// Checker is a form with rules over several fields. Check runs after every field has been decoded.
type Checker interface{ Check() *Error }

// Of compiles the declaration F; a declaration that makes no sense is a BUG.
func Of[F any]() *Form { return of(reflect.TypeFor[F]()) }

// OfType is Of for a declaration that a table made.
func OfType(t reflect.Type) *Form { return of(t) }

// Decode fills into, a pointer to a zero F. Fields that were not sent keep their zero value or get their default.
func (f *Form) Decode(v *Values, into any) *Error {
	dst := reflect.ValueOf(into)
	if dst.Type() != f.of {
		panic("BUG: decoding a " + f.of.String() + " into a " + dst.Type().String())
	}
	dst = dst.Elem()
	if v.overflow {
		return TooManyParams()
	}
	v.selectEntries(f)
	for i := range f.params {
		p := &f.params[i]
		if err := p.decode(v, p.at(dst)); err != nil {
			return err.Named(p.name)
		}
	}
	if c, ok := into.(Checker); ok {
		return c.Check()
	}
	return nil
}

func (p *param) decode(v *Values, dst reflect.Value) *Error {
	if p.path {
		raw, ok := v.pathValue(p.name)
		if !ok {
			panic("BUG: the route has no {" + p.name + "}")
		}
		return p.raw(dst, raw)
	}
	if p.header {
		raw, sent := v.Header(p.name)
		switch {
		case sent:
			return p.raw(dst, raw)
		case p.required:
			return Missing(p.name)
		}
		p.applyDefault(dst)
		return nil
	}
	name, raw, sent := p.name, "", false
	for i := range 1 + len(p.aliases) {
		e := v.selected[p.slot+i]
		if e < 0 {
			continue
		}
		if sent {
			return Confusing(name, p.aliases[i-1])
		}
		if i > 0 {
			name = p.aliases[i-1]
		}
		raw, sent = v.list[e].value, true
	}
	if sent {
		if err := p.raw(dst, raw); err != nil {
			return err.Named(name)
		}
		return nil
	}
	if p.required {
		return Missing(p.name)
	}
	p.applyDefault(dst)
	return nil
}

// Ignored returns the names that were sent and mean nothing to this form, sorted, nil when there are none. Path
// parameters, the global `client` and what v.Consume named do not count.
func (f *Form) Ignored(v *Values) []string {
	var names []string
	for i := range v.list {
		name := v.list[i].name
		if _, known := f.slots[name]; known || name == "client" || slices.Contains(v.consumed, name) {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TooManyParams is the error of a request with more than MaxParams parameters.
func TooManyParams() *Error { return Bad("Too many parameters (limit: " + itoa(MaxParams) + ")") }

package form

import (
	"reflect"
	"slices"
)

// Form is a compiled declaration. It is immutable and safe for concurrent use.
type Form struct {
	of     reflect.Type // a pointer to the struct
	params []param
	slots  map[string]int // numbers of all names and aliases
}

// param is one top-level field.
type param struct {
	field
	aliases []string
	path    bool
	header  bool
	hidden  bool
	// extension is the reason for a parameter that the protocol does not have
	extension string
	slot      int // of the name; the aliases follow
}

// Checker is implemented by a form with rules about several fields. Decode calls Check after all fields are
// decoded.
type Checker interface{ Check() *Error }

// Of compiles the declaration F. It panics if the declaration makes no sense.
func Of[F any]() *Form { return of(reflect.TypeFor[F]()) }

// OfType is Of for a declaration that was built at run time.
func OfType(t reflect.Type) *Form { return of(t) }

// Decode decodes v into the zero value that into points to. Fields whose parameters were not sent get their
// default, if they have one. The first failing check, in the order of the fields, is returned.
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
			panic("BUG: the route has no parameter {" + p.name + "}")
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

// Ignored returns the names that were sent but are not part of this form, sorted; nil if there are none. It
// leaves out path parameters, `client`, and names marked by v.Consume.
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

// TooManyParams returns the error of a request with more than MaxParams parameters.
func TooManyParams() *Error { return Bad("Too many parameters (limit: " + itoa(MaxParams) + ")") }

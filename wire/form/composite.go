package form

import (
	"reflect"
	"slices"
)

// preallocatedItems is the number of elements that are allocated before they are checked. A list may be refused
// at its first element, and elements may need much more memory than their text.
const preallocatedItems = 1000

func (c *compiler) list(t reflect.Type, o *options) codec {
	least, most := o.count("minitems"), o.count("maxitems")
	elem := c.compile(t.Elem(), o)
	if elem.value == nil {
		o.panicf("a " + t.Elem().String() + " is a whole parameter, not an element")
	}
	schema := map[string]any{"type": "array", "items": elem.schema}
	if least >= 0 {
		schema["minItems"] = least
	}
	if most >= 0 {
		schema["maxItems"] = most
	}
	return codec{kind: t.Kind(), schema: schema, value: func(dst reflect.Value, v Value) *Error {
		list, err := v.List()
		switch {
		case err != nil:
			return err
		case least == 1 && len(list) == 0:
			return blank()
		case len(list) < least:
			return tooShort()
		case most >= 0 && len(list) > most:
			return tooLong(most, "items")
		}
		dst.Set(reflect.MakeSlice(t, 0, min(len(list), preallocatedItems)))
		for i := range list {
			if i == dst.Cap() {
				dst.Grow(1)
			}
			dst.SetLen(i + 1)
			if err := elem.value(dst.Index(i), list[i]); err != nil {
				return err.Index(i)
			}
		}
		return nil
	}}
}

func (c *compiler) dict(t reflect.Type, o *options) codec {
	if t.Key().Kind() != reflect.String {
		o.panicf("map keys must be strings")
	}
	elem := c.compile(t.Elem(), o)
	if elem.value == nil {
		o.panicf("a " + t.Elem().String() + " is a whole parameter, not an element")
	}
	schema := map[string]any{"type": "object", "additionalProperties": elem.schema}
	return codec{kind: t.Kind(), schema: schema, value: func(dst reflect.Value, v Value) *Error {
		members, err := v.Object()
		if err != nil {
			return err
		}
		m := reflect.MakeMapWithSize(t, len(members))
		for i := range members {
			x := reflect.New(t.Elem()).Elem()
			if err := elem.value(x, members[i]); err != nil {
				return err.Key(members[i].key)
			}
			m.SetMapIndex(reflect.ValueOf(members[i].key).Convert(t.Key()), x)
		}
		dst.Set(m)
		return nil
	}}
}

func (c *compiler) object(t reflect.Type, o *options) codec {
	if slices.Contains(c.nested, t) {
		o.panicf(t.String() + " contains itself")
	}
	c.nested = append(c.nested, t)
	defer func() { c.nested = c.nested[:len(c.nested)-1] }()

	extra := o.has("extra") || marksExtra(t)
	var fields []field
	known := map[string]bool{}
	for _, d := range declared(t, nil) {
		own := parse(t, d.StructField, false)
		f := c.field(d, own)
		own.rejectUnused()
		if f.value == nil {
			own.panicf("a " + d.Type.String() + " is a whole parameter, not a member")
		}
		if known[f.name] {
			own.panicf("declared twice")
		}
		known[f.name] = true
		fields = append(fields, f)
	}
	return codec{kind: t.Kind(), schema: objectSchema(fields, extra), value: func(dst reflect.Value, v Value) *Error {
		members, err := v.Object()
		if err != nil {
			return err
		}
		for i := range fields {
			f := &fields[i]
			m, sent := v.Get(f.name)
			switch {
			case sent:
				if err := f.value(f.at(dst), m); err != nil {
					return err.Key(f.name)
				}
			case f.required:
				return fieldMissing().Key(f.name)
			default:
				f.applyDefault(f.at(dst))
			}
		}
		if extra {
			return nil
		}
		for i := range members {
			if !known[members[i].key] {
				return unexpected(members[i].key)
			}
		}
		return nil
	}}
}

// marksExtra reports whether the struct has a blank field tagged `form:",extra"`.
func marksExtra(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.Name == "_" && slices.Contains(split(f.Tag.Get("form")), "extra") {
			return true
		}
	}
	return false
}

package form

import "reflect"

// Opt is a parameter that may be absent. If it is absent, Set is false and Value is the default.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Null is a parameter that may be absent or null.
type Null[T any] struct {
	Value  T
	Set    bool // sent, possibly as null
	IsNull bool
}

// Or returns the value, or absent if the parameter was not sent.
func (o Opt[T]) Or(absent T) T {
	if o.Set {
		return o.Value
	}
	return absent
}

func (Opt[T]) wrapper() int  { return wrapsOpt }
func (Null[T]) wrapper() int { return wrapsNull }

const (
	wrapsNone = iota
	wrapsOpt
	wrapsNull
)

// wrapping recognizes Opt and Null. A struct that embeds one is another type.
func wrapping(t reflect.Type) int {
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[Form]().PkgPath() {
		return wrapsNone
	}
	if w, ok := reflect.Zero(t).Interface().(interface{ wrapper() int }); ok {
		return w.wrapper()
	}
	return wrapsNone
}

// Positions of the fields of Opt and Null.
const (
	fieldValue = iota
	fieldSet
	fieldIsNull
)

// wrap compiles Opt[T] and Null[T].
func (c *compiler) wrap(kind int, t reflect.Type, o *options) codec {
	if wrapping(t.Field(fieldValue).Type) != wrapsNone {
		o.panicf("Opt and Null cannot be nested")
	}
	in := c.compile(t.Field(fieldValue).Type, o)
	set := func(dst reflect.Value) reflect.Value {
		dst.Field(fieldSet).SetBool(true)
		return dst.Field(fieldValue)
	}
	out := codec{schema: in.schema, kind: in.kind}
	if in.raw != nil {
		out.raw = func(dst reflect.Value, raw string) *Error { return in.raw(set(dst), raw) }
	}
	if in.value != nil {
		out.value = func(dst reflect.Value, v Value) *Error { return in.value(set(dst), v) }
	}
	if kind == wrapsOpt {
		out.valueField = func(dst reflect.Value) reflect.Value { return dst.Field(fieldValue) }
		out.wrapped = &in
		return out
	}
	if in.value == nil {
		o.panicf("the type has no JSON form, so it cannot be null")
	}
	value := out.value
	out.value = func(dst reflect.Value, v Value) *Error {
		if v.IsNull() {
			dst.Field(fieldSet).SetBool(true)
			dst.Field(fieldIsNull).SetBool(true)
			return nil
		}
		return value(dst, v)
	}
	out.schema = nullable(in.schema)
	out.nullable, out.noDefault = true, true
	return out
}

// pointer compiles *T, where nil means absent or null.
func (c *compiler) pointer(t reflect.Type, o *options) codec {
	in := c.compile(t.Elem(), o)
	out := codec{schema: in.schema, kind: in.kind, noDefault: true}
	if in.raw != nil {
		out.raw = func(dst reflect.Value, raw string) *Error {
			p := reflect.New(t.Elem())
			dst.Set(p)
			return in.raw(p.Elem(), raw)
		}
	}
	if in.value != nil {
		if in.raw == nil || !o.top {
			out.schema = nullable(in.schema)
		}
		out.value = func(dst reflect.Value, v Value) *Error {
			if v.IsNull() {
				return nil
			}
			p := reflect.New(t.Elem())
			dst.Set(p)
			return in.value(p.Elem(), v)
		}
	}
	return out
}

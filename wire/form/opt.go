package form

import "reflect"

// Opt is a parameter that may be absent. With a default, Value is the default while Set is false.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Null is a parameter that may be absent or null.
type Null[T any] struct {
	Value  T
	Set    bool // sent, be it as null
	IsNull bool
}

// Or is the value, or what absent stands for.
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

// wrapping tells Opt and Null from other types, and from structs that embed one.
func wrapping(t reflect.Type) int {
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[Form]().PkgPath() {
		return wrapsNone
	}
	if w, ok := reflect.Zero(t).Interface().(interface{ wrapper() int }); ok {
		return w.wrapper()
	}
	return wrapsNone
}

// The fields of Opt and Null.
const (
	fieldValue = iota
	fieldSet
	fieldIsNull
)

// wrap compiles Opt[T] and Null[T] from T.
func (c *compiler) wrap(kind int, t reflect.Type, o *options) codec {
	if wrapping(t.Field(fieldValue).Type) != wrapsNone {
		o.panicf("Opt and Null do not go into each other")
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
		o.panicf("there is no JSON of it, so it cannot be null")
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

// pointer compiles *T, where absent and null are nil.
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

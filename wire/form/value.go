package form

import (
	"math"
	"strconv"
)

// Kind returns the type of the value.
func (v Value) Kind() Kind { return v.kind }

// Name returns the key of a member of an object.
func (v Value) Name() string { return v.key }

// IsNull reports whether the value is JSON null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// Text returns a string.
func (v Value) Text() (string, *Error) {
	if v.kind != KindString {
		return "", isNot("a string")
	}
	return v.text, nil
}

// Bool returns a boolean.
func (v Value) Bool() (bool, *Error) {
	if v.kind != KindBool {
		return false, isNot("a boolean")
	}
	return v.text == "true", nil
}

// Int returns an integer of 64 bits. Other integers are refused as too large or too small.
func (v Value) Int() (int64, *Error) {
	n, err := v.ID()
	if err != nil {
		return 0, err
	}
	switch {
	case n == math.MaxInt64 && v.text != "9223372036854775807":
		return 0, tooLarge()
	case n == math.MinInt64 && v.text != "-9223372036854775808":
		return 0, tooSmall()
	}
	return n, nil
}

// ID returns an integer. One beyond 64 bits becomes the nearest of 64 bits, which is the ID of nothing.
func (v Value) ID() (int64, *Error) {
	if v.kind != KindInt {
		return 0, isNot("an integer")
	}
	n, _ := strconv.ParseInt(v.text, 10, 64) // the grammar leaves only range errors, which saturate
	return n, nil
}

// outOfRange returns the number as sent if it is beyond 64 bits, else "".
func (v Value) outOfRange() string {
	if n, err := v.ID(); err != nil || n != math.MaxInt64 && n != math.MinInt64 || v.text == strconv.FormatInt(n, 10) {
		return ""
	}
	return v.text
}

// Float returns a number, with or without fraction.
func (v Value) Float() (float64, *Error) {
	if v.kind != KindFloat && v.kind != KindInt {
		return 0, isNot("a float")
	}
	x, _ := strconv.ParseFloat(v.text, 64)
	switch {
	case math.IsInf(x, 1):
		return 0, tooLarge()
	case math.IsInf(x, -1):
		return 0, tooSmall()
	}
	return x, nil
}

// List returns the elements of a list. The caller must not change them.
func (v Value) List() ([]Value, *Error) {
	if v.kind != KindList {
		return nil, isNot("a list")
	}
	return v.list, nil
}

// Object returns the members of an object in order. If a name occurs twice, the last member counts.
func (v Value) Object() ([]Value, *Error) {
	if v.kind != KindObject {
		return nil, isNot("a dict")
	}
	return v.list, nil
}

// Get returns the member of an object.
func (v Value) Get(key string) (Value, bool) {
	if v.kind != KindObject {
		return Value{}, false
	}
	for i := len(v.list) - 1; i >= 0; i-- {
		if v.list[i].key == key {
			return v.list[i], true
		}
	}
	return Value{}, false
}

// Ints returns a list of integers.
func (v Value) Ints() ([]int64, *Error) {
	list, err := v.List()
	if err != nil {
		return nil, err
	}
	ns := make([]int64, len(list))
	for i := range list {
		if ns[i], err = list[i].Int(); err != nil {
			return nil, err.Index(i)
		}
	}
	return ns, nil
}

// Texts returns a list of strings.
func (v Value) Texts() ([]string, *Error) {
	list, err := v.List()
	if err != nil {
		return nil, err
	}
	ss := make([]string, len(list))
	for i := range list {
		if ss[i], err = list[i].Text(); err != nil {
			return nil, err.Index(i)
		}
	}
	return ss, nil
}

// Any converts the value to plain Go: nil, bool, int64, float64, string, []any or map[string]any. Numbers with
// fraction or exponent, and integers beyond 64 bits, become the nearest float64.
func (v Value) Any() any {
	switch v.kind {
	case KindBool:
		return v.text == "true"
	case KindInt:
		if n, err := v.Int(); err == nil {
			return n
		}
		return v.nearest()
	case KindFloat:
		return v.nearest()
	case KindString:
		return v.text
	case KindList:
		list := make([]any, len(v.list))
		for i := range v.list {
			list[i] = v.list[i].Any()
		}
		return list
	case KindObject:
		m := make(map[string]any, len(v.list))
		for i := range v.list {
			m[v.list[i].key] = v.list[i].Any()
		}
		return m
	}
	return nil
}

// nearest returns the nearest finite float64, which can be written as JSON again.
func (v Value) nearest() float64 {
	x, _ := strconv.ParseFloat(v.text, 64)
	return max(-math.MaxFloat64, min(x, math.MaxFloat64))
}

// DecodeValue makes Value usable as the type of a field: any JSON.
func (v *Value) DecodeValue(from Value) *Error { *v = from; return nil }

// ParamSchema returns the schema of any JSON.
func (v *Value) ParamSchema() map[string]any { return map[string]any{} }

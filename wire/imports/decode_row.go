package imports

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Reasons why a value of a row is left out.
const (
	notText    = "not a text: the value is left out"
	notNumber  = "not a number: the value is left out"
	outOfRange = "the number is out of range: the value is left out"
	notBool    = "not true or false: the value is left out"
	notList    = "not a list: the value is left out"
	notObject  = "not an object: the value is left out"
)

// FullRow is a row that also wants the values of all its columns.
type FullRow interface{ SetColumns(map[string]any) }

// DecodeRow decodes a JSON object into the struct or map that v points to. A value that does not fit its field is left
// out and passed to bad, with its path such as profile.tz or files[0].name: the field has its zero value. A number is
// read as a text and a text as a number, if they have the form of it. null is the same as a missing value. DecodeRow
// returns false if data is not an object.
func DecodeRow[T any](data []byte, v *T, bad func(field, reason string)) bool {
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' {
		return false
	}
	full, isFull := any(v).(FullRow)
	if !isFull && json.Unmarshal(data, v) == nil {
		return true
	}
	var zero T
	*v = zero
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var columns map[string]any
	if d.Decode(&columns) != nil {
		return false
	}
	rowDecoder(bad).set(reflect.ValueOf(v).Elem(), columns, "")
	if isFull {
		full.SetColumns(plain(columns).(map[string]any))
	}
	return true
}

// rowDecoder sets the fields of rows, and reports the values that do not fit.
type rowDecoder func(field, reason string)

var rawType = reflect.TypeFor[json.RawMessage]()

// set sets a value of a row. path is its place in the row.
func (d rowDecoder) set(to reflect.Value, v any, path string) {
	if v == nil {
		return
	}
	if to.Type() == rawType {
		raw, err := json.Marshal(v)
		if err == nil {
			to.SetBytes(raw)
		}
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		if x := reflect.New(to.Type().Elem()); d.setWhole(x.Elem(), v, path) {
			to.Set(x)
		}
	case reflect.Interface:
		to.Set(reflect.ValueOf(plain(v)))
	case reflect.String:
		if s, ok := asText(v); ok {
			to.SetString(s)
		} else {
			d(path, notText)
		}
	case reflect.Bool:
		if b, ok := asBool(v); ok {
			to.SetBool(b)
		} else {
			d(path, notBool)
		}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		d.setNumber(to, v, path)
	case reflect.Slice:
		d.setList(to, v, path)
	case reflect.Map, reflect.Struct:
		d.setObject(to, v, path)
	default:
		panic("BUG: a field of type " + to.Type().String())
	}
}

// setWhole sets a value as set does. It returns false if the value itself does not fit; parts of it may be left out.
func (d rowDecoder) setWhole(to reflect.Value, v any, path string) bool {
	fits := true
	rowDecoder(func(field, reason string) {
		fits = fits && field != path
		d(field, reason)
	}).set(to, v, path)
	return fits
}

func asText(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case json.Number:
		return x.String(), true
	}
	return "", false
}

func asBool(v any) (b, ok bool) {
	switch x := v.(type) {
	case bool:
		return x, true
	case json.Number:
		return x == "1", x == "1" || x == "0"
	case string:
		return x == "true", x == "true" || x == "false"
	}
	return false, false
}

func (d rowDecoder) setNumber(to reflect.Value, v any, path string) {
	s, ok := asText(v)
	s = strings.TrimSpace(s)
	whole, err := strconv.ParseInt(s, 10, 64)
	float, floatErr := strconv.ParseFloat(s, 64)
	switch {
	case !ok || floatErr != nil && !strings.Contains(floatErr.Error(), strconv.ErrRange.Error()) || math.IsNaN(float):
		d(path, notNumber)
	case math.IsInf(float, 0):
		d(path, outOfRange)
	case to.Kind() == reflect.Float64:
		to.SetFloat(float)
	case err != nil && math.Abs(float) >= 1<<63:
		d(path, outOfRange)
	default:
		if err != nil {
			whole = int64(float)
		}
		if to.OverflowInt(whole) {
			d(path, outOfRange)
			return
		}
		to.SetInt(whole)
	}
}

func (d rowDecoder) setList(to reflect.Value, v any, path string) {
	list, ok := v.([]any)
	if !ok {
		d(path, notList)
		return
	}
	out := reflect.MakeSlice(to.Type(), 0, len(list))
	for i, x := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		if x == nil {
			d(at, "null: the value is left out")
			continue
		}
		if element := reflect.New(to.Type().Elem()).Elem(); d.setWhole(element, x, at) {
			out = reflect.Append(out, element)
		}
	}
	to.Set(out)
}

func (d rowDecoder) setObject(to reflect.Value, v any, path string) {
	object, ok := v.(map[string]any)
	if !ok {
		// Some servers write an empty list for an object without values.
		if list, isList := v.([]any); !isList || len(list) > 0 || to.Kind() != reflect.Map {
			d(path, notObject)
		}
		return
	}
	if path != "" {
		path += "."
	}
	if to.Kind() == reflect.Map {
		to.Set(reflect.MakeMap(to.Type()))
		for name, x := range object {
			element := reflect.New(to.Type().Elem()).Elem()
			d.set(element, x, path+name)
			to.SetMapIndex(reflect.ValueOf(name), element)
		}
		return
	}
	for i := range to.NumField() {
		name, _, _ := strings.Cut(to.Type().Field(i).Tag.Get("json"), ",")
		if x, ok := object[name]; ok && name != "" {
			d.set(to.Field(i), x, path+name)
		}
	}
}

// plain returns a decoded value with its numbers as float64.
func plain(v any) any {
	switch x := v.(type) {
	case json.Number:
		f, err := x.Float64()
		if err != nil {
			return nil
		}
		return f
	case []any:
		for i := range x {
			x[i] = plain(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = plain(x[k])
		}
	}
	return v
}

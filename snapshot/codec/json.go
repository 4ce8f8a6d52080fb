package codec

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// JSON returns a readable encoding of v. A struct is an object with its fields, nil is null, bytes and sets are base64.
// A string that is not UTF-8 is {"base64": …}, a value of interface type is {"msgpack": …}. FromJSON makes an equal
// value of it: both have the same bytes when encoded. The encoding follows from the Go types, so everything that is
// stored can be exported.
func JSON(v any) ([]byte, error) {
	x, err := jsonValue(reflect.ValueOf(v))
	if err != nil {
		return nil, err
	}
	return json.Marshal(x)
}

// FromJSON returns a function that decodes what JSON wrote into the value that into points to. A field it does not know
// is an error, because its value would be lost. A missing field is zero: it was added after the export.
func FromJSON(data []byte) func(into any) error {
	return func(into any) error {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var x any
		if err := d.Decode(&x); err != nil {
			return err
		}
		return setValue(reflect.ValueOf(into).Elem(), x)
	}
}

var (
	binaryMarshaler   = reflect.TypeFor[encoding.BinaryMarshaler]()
	binaryUnmarshaler = reflect.TypeFor[encoding.BinaryUnmarshaler]()
	byteType          = reflect.TypeFor[byte]()
)

func jsonValue(v reflect.Value) (any, error) {
	if !v.IsValid() {
		return nil, nil
	}
	t := v.Type()
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(binaryMarshaler) {
		p := reflect.New(t)
		p.Elem().Set(v)
		return p.Interface().(encoding.BinaryMarshaler).MarshalBinary() // json.Marshal writes bytes as base64
	}
	switch t.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint(), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.String:
		if s := v.String(); utf8.ValidString(s) {
			return s, nil
		}
		return map[string]any{"base64": []byte(v.String())}, nil
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		return jsonValue(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return map[string]any{"msgpack": marshal(nil, v.Interface())}, nil
	case reflect.Slice, reflect.Array:
		return jsonList(v)
	case reflect.Map:
		if v.IsNil() {
			return nil, nil
		}
		out := map[string]any{}
		for it := v.MapRange(); it.Next(); {
			x, err := jsonValue(it.Value())
			if err != nil {
				return nil, err
			}
			k := fmt.Sprint(it.Key().Interface())
			if kind := it.Key().Kind(); kind == reflect.String {
				k = it.Key().String()
			} else if it.Key().CanInt() {
				k = strconv.FormatInt(it.Key().Int(), 10)
			}
			out[k] = x
		}
		return out, nil
	case reflect.Struct:
		out := make(map[string]any, t.NumField())
		for _, i := range storedFields(t) {
			x, err := jsonValue(v.Field(i))
			if err != nil {
				return nil, err
			}
			out[t.Field(i).Name] = x
		}
		return out, nil
	}
	return nil, fmt.Errorf("BUG: %v has no JSON", t)
}

func jsonList(v reflect.Value) (any, error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return nil, nil
	}
	if v.Type().Elem() == byteType {
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return b, nil
	}
	out := make([]any, v.Len())
	for i := range out {
		var err error
		if out[i], err = jsonValue(v.Index(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// setValue sets v, which is zero, to the decoded JSON x.
func setValue(v reflect.Value, x any) error {
	if x == nil {
		return nil
	}
	t := v.Type()
	mismatch := func() error { return fmt.Errorf("%v cannot hold %.100v", t, x) }
	if reflect.PointerTo(t).Implements(binaryUnmarshaler) {
		b, ok := decodeBase64(x)
		if !ok {
			return mismatch()
		}
		return v.Addr().Interface().(encoding.BinaryUnmarshaler).UnmarshalBinary(b)
	}
	switch t.Kind() {
	case reflect.Bool:
		b, ok := x.(bool)
		if !ok {
			return mismatch()
		}
		v.SetBool(b)
		return nil
	case reflect.String:
		return setString(v, x)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		return setValue(v.Elem(), x)
	case reflect.Interface:
		return setInterface(v, x)
	case reflect.Slice, reflect.Array:
		return setList(v, x)
	case reflect.Map:
		return setMap(v, x)
	case reflect.Struct:
		return setStruct(v, x)
	}
	n, ok := x.(json.Number)
	if !ok {
		return mismatch()
	}
	return setNumber(v, n)
}

func decodeBase64(x any) ([]byte, bool) {
	s, ok := x.(string)
	b, err := base64.StdEncoding.DecodeString(s)
	return b, ok && err == nil
}

func setString(v reflect.Value, x any) error {
	if s, ok := x.(string); ok {
		v.SetString(s)
		return nil
	}
	m, _ := x.(map[string]any)
	b, ok := decodeBase64(m["base64"])
	if !ok {
		return fmt.Errorf("not a string: %.100v", x)
	}
	v.SetString(string(b))
	return nil
}

func setInterface(v reflect.Value, x any) error {
	m, _ := x.(map[string]any)
	b, ok := decodeBase64(m["msgpack"])
	if !ok {
		return fmt.Errorf("not a msgpack value: %.100v", x)
	}
	return unmarshal(b, v.Addr().Interface())
}

func setNumber(v reflect.Value, n json.Number) error {
	switch {
	case v.CanInt():
		i, err := strconv.ParseInt(n.String(), 10, v.Type().Bits())
		v.SetInt(i)
		return err
	case v.CanUint():
		u, err := strconv.ParseUint(n.String(), 10, v.Type().Bits())
		v.SetUint(u)
		return err
	case v.CanFloat():
		f, err := strconv.ParseFloat(n.String(), v.Type().Bits())
		v.SetFloat(f)
		return err
	}
	return fmt.Errorf("%v cannot hold %v", v.Type(), n)
}

func setList(v reflect.Value, x any) error {
	if v.Type().Elem() == byteType {
		b, ok := decodeBase64(x)
		if !ok || v.Kind() == reflect.Array && len(b) != v.Len() {
			return fmt.Errorf("not the bytes of %v: %.100v", v.Type(), x)
		}
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), len(b), len(b)))
		}
		reflect.Copy(v, reflect.ValueOf(b))
		return nil
	}
	list, ok := x.([]any)
	if !ok || v.Kind() == reflect.Array && len(list) != v.Len() {
		return fmt.Errorf("not a list for %v: %.100v", v.Type(), x)
	}
	if v.Kind() == reflect.Slice {
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	}
	for i, y := range list {
		if err := setValue(v.Index(i), y); err != nil {
			return err
		}
	}
	return nil
}

func setMap(v reflect.Value, x any) error {
	m, ok := x.(map[string]any)
	if !ok {
		return fmt.Errorf("not an object for %v: %.100v", v.Type(), x)
	}
	v.Set(reflect.MakeMap(v.Type()))
	for name, y := range m {
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		var err error
		if k.Kind() == reflect.String {
			k.SetString(name)
		} else {
			err = setNumber(k, json.Number(name))
		}
		if err == nil {
			err = setValue(e, y)
		}
		if err != nil {
			return err
		}
		v.SetMapIndex(k, e)
	}
	return nil
}

func setStruct(v reflect.Value, x any) error {
	m, ok := x.(map[string]any)
	if !ok {
		return fmt.Errorf("not an object for %v: %.100v", v.Type(), x)
	}
	known := 0
	for _, i := range storedFields(v.Type()) {
		y, ok := m[v.Type().Field(i).Name]
		if !ok {
			continue
		}
		known++
		if err := setValue(v.Field(i), y); err != nil {
			return fmt.Errorf("%s: %w", v.Type().Field(i).Name, err)
		}
	}
	if known < len(m) {
		return fmt.Errorf("unknown field in a value of type %v", v.Type())
	}
	return nil
}

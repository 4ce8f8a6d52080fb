package codec

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/presence"
	"parley/actors/realm"
)

// An embedded struct is written as one element, not spread among its neighbours, because it has a decoder of its own: so
// it may grow too.
//
// The library reads a struct's array only when it has exactly as many elements as the struct has fields. Ours is read also
// when it was written before a field was added at the end, which is then zero, or by a version that knows more fields,
// which are passed over.
func init() {
	seen := map[reflect.Type]bool{}
	for _, x := range storedTypes() {
		eachStruct(x, seen, registerStruct)
	}
}

// storedTypes is every type that is written.
func storedTypes() []reflect.Type {
	out := []reflect.Type{
		reflect.TypeFor[UnackedEvents](),
		reflect.TypeFor[realm.Body](),
		reflect.TypeFor[presence.Row](),
	}
	for _, x := range realm.TypesByNumber() {
		out = append(out, x)
	}
	return append(out, realm.New(1).RowTypes()...)
}

// eachStruct calls fn with every struct in a type that is written field by field.
func eachStruct(x reflect.Type, seen map[reflect.Type]bool, fn func(reflect.Type)) {
	binary := reflect.TypeFor[encoding.BinaryUnmarshaler]()
	if seen[x] || reflect.PointerTo(x).Implements(binary) {
		return
	}
	seen[x] = true
	switch x.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Pointer:
		eachStruct(x.Elem(), seen, fn)
	case reflect.Struct:
		fn(x)
		for _, i := range storedFields(x) {
			eachStruct(x.Field(i).Type, seen, fn)
		}
	}
}

// storedFields is the places of the fields that are written, in order.
func storedFields(x reflect.Type) (list []int) {
	for i := range x.NumField() {
		f := x.Field(i)
		switch {
		case f.Tag.Get("msgpack") == "-":
		case !f.IsExported() || f.Tag.Get("msgpack") != "":
			panic(
				fmt.Sprintf(
					"BUG: %v.%s: what is written has only plain fields, so that their order is plain too",
					x,
					f.Name,
				),
			)
		default:
			list = append(list, i)
		}
	}
	return list
}

func registerStruct(x reflect.Type) {
	fields := storedFields(x)
	msgpack.Register(reflect.Zero(x).Interface(), nil, func(d *msgpack.Decoder, v reflect.Value) error {
		v.SetZero()
		n, err := d.DecodeArrayLen() // -1 is nil
		if err != nil {
			return err
		}
		for i := range max(n, 0) {
			if i < len(fields) {
				err = d.DecodeValue(v.Field(fields[i]))
			} else {
				err = d.Skip()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

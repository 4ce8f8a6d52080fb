package codec

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/presence"
	"parley/actors/realm"
)

// The library decodes a struct only from an array with exactly as many elements as the struct has fields. The decoders
// registered here also accept fewer elements, written before fields were added at the end (these fields are zero), and
// more, written by a newer version (these elements are skipped).
//
// An embedded struct is encoded as one element instead of being spread among its neighbors. So fields can be added to
// it, too.
func init() {
	seen := map[reflect.Type]bool{}
	for _, x := range storedTypes() {
		eachStruct(x, seen, registerStruct)
	}
}

// storedTypes returns all types that are stored.
func storedTypes() []reflect.Type {
	out := []reflect.Type{
		reflect.TypeFor[UnackedEvents](),
		reflect.TypeFor[realm.Body](),
		reflect.TypeFor[presence.Row](),
		reflect.TypeFor[realm.Batch](),
	}
	for _, x := range realm.TypesByNumber() {
		out = append(out, x)
	}
	return append(out, realm.New(1).RowTypes()...)
}

// eachStruct calls fn once with every struct type in x that is encoded field by field.
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

// storedFields returns the indexes of the fields that are encoded, in order.
func storedFields(x reflect.Type) (list []int) {
	for i := range x.NumField() {
		f := x.Field(i)
		switch {
		case f.Tag.Get("msgpack") == "-":
		case !f.IsExported() || f.Tag.Get("msgpack") != "":
			panic(fmt.Sprintf("BUG: %v.%s must be exported and have no msgpack tag", x, f.Name))
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
		n, err := d.DecodeArrayLen() // -1 for nil
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

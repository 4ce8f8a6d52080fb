package codec

import (
	"bytes"
	"encoding"
	"reflect"
	"testing"

	"parley/actors/realm"
)

// factAndRowTypes returns the types of all facts, events and rows.
func factAndRowTypes() (out []reflect.Type) {
	for _, t := range realm.TypesByNumber() {
		out = append(out, t)
	}
	return append(out, realm.New(1).RowTypes()...)
}

// Equal rows must have equal bytes, because digests and replay tests compare bytes. So the keys of every map are
// sorted.
func TestEveryStoredMapIsSorted(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(root, x reflect.Type)
	walk = func(root, x reflect.Type) {
		if seen[x] || x.Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) ||
			reflect.PointerTo(x).Implements(reflect.TypeFor[encoding.BinaryMarshaler]()) {
			return
		}
		seen[x] = true
		switch x.Kind() {
		case reflect.Map:
			if !sortedMaps[x] {
				t.Errorf(
					"%v contains a %v: name the map type and add it to registerSortedMap in snapshot/codec/maps.go",
					root, x)
			}
			walk(root, x.Elem())
		case reflect.Slice, reflect.Array, reflect.Pointer:
			walk(root, x.Elem())
		case reflect.Struct:
			for i := range x.NumField() {
				f := x.Field(i)
				if f.Tag.Get("msgpack") == "-" {
					continue
				}
				if !f.IsExported() {
					t.Errorf("%v.%s is not exported: it would be lost", x, f.Name)
				}
				walk(root, f.Type)
			}
		}
	}
	for _, x := range factAndRowTypes() {
		walk(x, x)
	}
}

func TestSortedMapRoundTrip(t *testing.T) {
	in := realm.GroupValues{"c": {Group: 3}, "a": {Members: []realm.UserID{1}}, "b": {}, "d": {}, "e": {}}
	first := EncodeRow(in)
	for range 50 {
		if !bytes.Equal(first, EncodeRow(in)) {
			t.Fatal("equal maps were encoded differently")
		}
	}
	var out realm.GroupValues
	if err := Decoder(first)(&out); err != nil || !reflect.DeepEqual(in, out) {
		t.Fatalf("%v: %v", err, out)
	}
}

func TestUnknownFactNumber(t *testing.T) {
	if _, err := DecodeEvent([]byte{0xff, 0xfe, 0xc0}); err == nil {
		t.Fatal("a fact with an unknown number was decoded")
	}
}

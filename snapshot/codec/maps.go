package codec

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/realm"
)

// msgpack sorts the keys of only a few map types. All other map types that are stored are registered here. A test
// visits all facts and rows and names a map type that is missing.
var sortedMaps = map[reflect.Type]bool{
	reflect.TypeFor[map[string]any]():    true,
	reflect.TypeFor[map[string]string](): true,
}

func init() {
	registerSortedMap[realm.GroupValues, string, realm.GroupValue]()
	registerSortedMap[realm.Counters, string, int64]()
	registerSortedMap[realm.Profile, int64, string]()
}

// registerSortedMap makes the encoder write maps of type M in the order of their keys. Any order is decoded.
func registerSortedMap[M ~map[K]V, K cmp.Ordered, V any]() {
	sortedMaps[reflect.TypeFor[M]()] = true
	msgpack.Register(M(nil), func(e *msgpack.Encoder, v reflect.Value) error {
		m := v.Interface().(M)
		if m == nil {
			return e.EncodeNil()
		}
		if err := e.EncodeMapLen(len(m)); err != nil {
			return err
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if err := e.Encode(k); err != nil {
				return err
			}
			if err := e.Encode(m[k]); err != nil {
				return err
			}
		}
		return nil
	}, func(d *msgpack.Decoder, v reflect.Value) error {
		n, err := d.DecodeMapLen()
		if err != nil || n < 0 {
			v.SetZero()
			return err
		}
		m := make(M, min(n, 1024)) // limits the memory that a damaged length can take
		for range n {
			var k K
			var x V
			if err := d.Decode(&k); err != nil {
				return err
			}
			if err := d.Decode(&x); err != nil {
				return err
			}
			m[k] = x
		}
		v.Set(reflect.ValueOf(m))
		return nil
	})
}

package codec

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/realm"
)

// msgpack sorts only a few types of map by itself; every other map that is kept is registered here. A test walks all
// facts and rows and names a map that was forgotten.
var sortedMaps = map[reflect.Type]bool{
	reflect.TypeFor[map[string]any]():    true,
	reflect.TypeFor[map[string]string](): true,
}

func init() {
	registerSortedMap[realm.GroupValues, string, realm.GroupValue]()
	registerSortedMap[realm.Counters, string, int64]()
	registerSortedMap[realm.Profile, int64, string]()
}

// registerSortedMap makes maps of a type be written in order of their keys; reading stays as it is.
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
		m := make(M, min(n, 1024)) // a damaged length must not take memory
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

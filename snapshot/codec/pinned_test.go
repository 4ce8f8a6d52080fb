package codec

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/realm"
	"parley/actors/realm/ids"
)

var update = flag.Bool("update", false, "pin the bytes of facts, events and rows that are not pinned yet")

// pinned is the path of the file of pinned bytes. It has a line for each stored type: the name and a filled value in
// hex.
var pinned = filepath.Join("testdata", "pinned.txt")

// Stored bytes must stay readable. Every fact, event and row type is pinned by the bytes of a value whose fields are
// all set. These bytes must decode and, encoded again, have the same content. So the test names a field that was
// removed, moved or changed its type. A field added at a struct's end is allowed.
//
// Pin a new type with: go test ./snapshot/codec -run Pinned -update. This never rewrites existing lines.
func TestPinnedBytes(t *testing.T) {
	lines := readPinned(t)
	types := map[string]reflect.Type{}
	for n, x := range realm.TypesByNumber() {
		types[fmt.Sprintf("fact %d %s", n, x.Name())] = x
	}
	for i, x := range realm.New(1).RowTypes() {
		types[fmt.Sprintf("row %s", cmp.Or(x.Name(), fmt.Sprint(i)))] = x
	}
	types["batch"] = reflect.TypeFor[realm.Batch]()
	for _, name := range slices.Sorted(maps.Keys(types)) {
		x := types[name]
		if lines[name] == nil {
			if !*update {
				t.Errorf(
					"%s is not pinned: run go test ./snapshot/codec -run Pinned -update and commit testdata/pinned.txt",
					name)
			}
			lines[name] = EncodeRow(fillFields(x, 0).Addr().Interface())
			continue
		}
		back := reflect.New(x)
		if err := unmarshal(lines[name], back.Interface()); err != nil {
			t.Errorf("%s: pinned bytes do not decode any more: %v", name, err)
			continue
		}
		if now := EncodeRow(back.Interface()); !isExtension(now, lines[name]) {
			t.Errorf(
				"%s: the pinned bytes decode differently. Add fields only at the end of a type.\npinned %x\n   now %x",
				name,
				lines[name],
				now,
			)
		}
	}
	for name := range lines {
		if types[name] == nil {
			t.Errorf("%s is pinned, but no type has this name; numbers and row types must not be removed", name)
		}
	}
	if *update {
		writePinned(t, lines)
	}
}

// isExtension reports whether the new bytes have the content of the old ones, apart from fields that were added at the
// end of a type or of the types in it: then a list is longer than it was, and its old elements are equal and in the old
// order.
func isExtension(now, once []byte) bool {
	if bytes.Equal(now, once) {
		return true
	}
	a, err := elements(now)
	b, err2 := elements(once)
	return err == nil && err2 == nil && covers(a, b)
}

// elements decodes bytes without knowing their type.
func elements(data []byte) (any, error) {
	d := msgpack.NewDecoder(bytes.NewReader(data))
	d.SetMapDecoder(func(d *msgpack.Decoder) (any, error) { return d.DecodeUntypedMap() })
	return d.DecodeInterface()
}

func covers(now, once any) bool {
	n, isList := now.([]any)
	o, wasList := once.([]any)
	if !isList || !wasList {
		return reflect.DeepEqual(now, once)
	}
	if len(n) < len(o) {
		return false
	}
	for i := range o {
		if !covers(n[i], o[i]) {
			return false
		}
	}
	return true
}

// fillFields returns a value of a type whose fields are all set, neighboring fields to different values.
func fillFields(x reflect.Type, n int) reflect.Value {
	v := reflect.New(x).Elem()
	if s, ok := v.Addr().Interface().(*ids.Set); ok {
		*s = ids.SetOf(int64(n+1), int64(n+3))
		return v
	}
	if _, ok := v.Addr().Interface().(encoding.BinaryUnmarshaler); ok {
		return v
	}
	switch x.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(n%100 + 1))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n%100 + 1))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", n))
	case reflect.Pointer:
		v.Set(fillFields(x.Elem(), n).Addr())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(x, 1, 1))
		v.Index(0).Set(fillFields(x.Elem(), n))
	case reflect.Array:
		for i := range x.Len() {
			v.Index(i).Set(fillFields(x.Elem(), n+i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(x))
		v.SetMapIndex(fillFields(x.Key(), n), fillFields(x.Elem(), n))
	case reflect.Struct:
		for i := range x.NumField() {
			if f := x.Field(i); f.IsExported() && f.Tag.Get("msgpack") != "-" {
				v.Field(i).Set(fillFields(f.Type, n+i))
			}
		}
	case reflect.Interface:
		if x.NumMethod() == 0 {
			v.Set(reflect.ValueOf(fmt.Sprintf("text %d", n)))
		}
	}
	return v
}

func readPinned(t *testing.T) map[string][]byte {
	t.Helper()
	lines := map[string][]byte{}
	f, err := os.Open(pinned)
	if err != nil {
		if *update && os.IsNotExist(err) {
			return lines
		}
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		name, text, _ := strings.Cut(s.Text(), ": ")
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines[name] = data
	}
	return lines
}

func writePinned(t *testing.T, lines map[string][]byte) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s: %x\n", name, lines[name])
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pinned, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every stored struct can be decoded from fewer fields, as an older version wrote it, and from more.
func TestStructsMayGrow(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, x := range storedTypes() {
		eachStruct(x, seen, func(x reflect.Type) {
			data := EncodeRow(fillFields(x, 0).Addr().Interface())
			list, err := elements(data)
			if err != nil {
				t.Fatalf("%v: %v", x, err)
			}
			fields, _ := list.([]any)
			if len(fields) == 0 {
				return
			}
			older := reflect.New(x)
			if err := unmarshal(EncodeRow(fields[:len(fields)-1]), older.Interface()); err != nil {
				t.Errorf("%v is not read without its last field: %v", x, err)
			}
			written := storedFields(x)
			if last := older.Elem().Field(written[len(written)-1]); !last.IsZero() {
				t.Errorf("%v: the field that was not written reads as %v", x, last)
			}
			newer := reflect.New(x)
			if err := unmarshal(EncodeRow(append(fields, []any{"new", 1})), newer.Interface()); err != nil {
				t.Errorf("%v is not read with one field more: %v", x, err)
			}
			if again := EncodeRow(newer.Interface()); !bytes.Equal(again, data) {
				t.Errorf("%v with one field more reads as %x instead of %x", x, again, data)
			}
		})
	}
}

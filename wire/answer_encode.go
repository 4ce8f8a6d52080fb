package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"parley/actors/realm"
)

// appendJSON appends the same bytes as encoding/json without HTML escapes. It handles the common types of answers and
// events itself. All other types go to the library, which spends most of its time on reflection (BenchmarkEncode).
func appendJSON(b []byte, v any) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, x)
	case string:
		return appendString(b, x)
	case int:
		return strconv.AppendInt(b, int64(x), 10)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case realm.UserID:
		return strconv.AppendInt(b, int64(x), 10)
	case realm.ChannelID:
		return strconv.AppendInt(b, int64(x), 10)
	case realm.MessageID:
		return strconv.AppendInt(b, int64(x), 10)
	case map[string]any:
		return appendObject(b, x)
	case []any:
		return appendList(b, x, appendJSON)
	case []string:
		return appendList(b, x, appendString)
	case []map[string]any:
		return appendList(b, x, appendObject)
	case []int64:
		return appendList(b, x, appendInt)
	case []realm.UserID:
		return appendList(b, x, appendInt)
	case []realm.MessageID:
		return appendList(b, x, appendInt)
	case *int64:
		return appendPointer(b, x, appendInt)
	case *string:
		return appendPointer(b, x, appendString)
	case rawJSON:
		return append(b, x...)
	case Fragments:
		x.Each(func(piece []byte) { b = append(b, piece...) })
		return b
	}
	t := reflect.TypeOf(v)
	if declaresJSON(t) {
		return appenderOf(t)(b, reflect.ValueOf(v))
	}
	return appendWithLibrary(b, v)
}

func appendInt[I ~int64](b []byte, i I) []byte { return strconv.AppendInt(b, int64(i), 10) }

func appendPointer[T any](b []byte, p *T, one func([]byte, T) []byte) []byte {
	if p == nil {
		return append(b, "null"...)
	}
	return one(b, *p)
}

func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, x := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, x)
	}
	return append(b, ']')
}

// keyListPool holds the slices that appendObject sorts keys in.
var keyListPool = sync.Pool{New: func() any { return new([]string) }}

// appendObject writes the keys in sorted order, as the library does. Equal objects have equal bytes.
func appendObject(b []byte, o map[string]any) []byte {
	if o == nil {
		return append(b, "null"...)
	}
	list := keyListPool.Get().(*[]string)
	keys := (*list)[:0]
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, k), ':')
		b = appendJSON(b, o[k])
	}
	clear(keys)
	*list = keys
	keyListPool.Put(list)
	return append(b, '}')
}

const hexDigits = "0123456789abcdef"

// appendString writes a quoted string. It escapes control characters, quotes, backslashes and the two line separators
// that JavaScript strings do not allow. Invalid UTF-8 becomes the replacement character.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, `\b`...)
			case '\f':
				b = append(b, `\f`...)
			case '\n':
				b = append(b, `\n`...)
			case '\r':
				b = append(b, `\r`...)
			case '\t':
				b = append(b, `\t`...)
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[from:i]...), `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[from:i]...), '\\', 'u', '2', '0', '2', hexDigits[r&15])
		default:
			i += size
			continue
		}
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// declaresJSON reports whether a type is, points to or is a list of structs of this package.
func declaresJSON(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.PkgPath() == thisPackage || t.Kind() == reflect.Struct && t.Name() == ""
}

var thisPackage = reflect.TypeFor[noFields]().PkgPath()

// appendWithLibrary handles structs of other packages, other maps and types with a MarshalJSON method.
func appendWithLibrary(b []byte, v any) []byte {
	w := appendWriter{b}
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("BUG: encode %v: %v", reflect.TypeOf(v), err))
	}
	return w.b[:len(w.b)-1] // without the newline
}

// appendWriter is an io.Writer that appends to a byte slice.
type appendWriter struct{ b []byte }

func (t *appendWriter) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	return len(p), nil
}

package wire

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/wire/shape"
)

// structPlan is how the structs of one type are encoded. The fields are sorted by name, as those of maps are.
type structPlan struct {
	fields []plannedField
}

type plannedField struct {
	shape.StructField
	key    []byte // encoded name and colon; of a constant also its value; none for encodedFields
	encode appender
	kind   fieldKind
}

// fieldKind says how the answer to a request gets the field.
type fieldKind byte

const (
	ownField     fieldKind = iota // encoded with the others
	encodedField                  // after the others, see SuccessFragments
	listField                     // after the others, see SuccessStream
)

func fieldKindOf(t reflect.Type) fieldKind {
	switch {
	case t.Implements(reflect.TypeFor[fragmented]()):
		return encodedField
	case t.Implements(reflect.TypeFor[streamed]()):
		return listField
	}
	return ownField
}

// appender appends the JSON of a value.
type appender func(b []byte, v reflect.Value) []byte

var (
	structPlans sync.Map // of each type
	appenders   sync.Map // of each type
)

func planOf(t reflect.Type) *structPlan {
	if p, ok := structPlans.Load(t); ok {
		return p.(*structPlan)
	}
	p := &structPlan{}
	for _, f := range shape.StructFields(t) {
		x := plannedField{StructField: f, key: append(appendString(nil, f.Name), ':')}
		switch {
		case f.Index == nil:
			x.key = appendString(x.key, f.Constant)
		case f.Table == nil:
			x.encode, x.kind = appenderOf(f.Type), fieldKindOf(f.Type)
		default:
			field := t.FieldByIndex(f.Index)
			if fieldKindOf(field.Type) != encodedField {
				break
			}
			if f.Row > 0 {
				continue // the field of row 0 encodes all rows
			}
			// The name of the Go field says where it is among the other encoded fields.
			x.StructField = shape.StructField{Name: strings.ToLower(field.Name), Index: f.Index, Type: field.Type,
				OmitZero: true}
			x.key, x.encode, x.kind = nil, appenderOf(field.Type), encodedField
		}
		p.fields = append(p.fields, x)
	}
	slices.SortFunc(p.fields, func(a, b plannedField) int { return strings.Compare(a.Name, b.Name) })
	structPlans.Store(t, p)
	return p
}

// appendFields appends the fields of a struct and those of more, which are sorted by name too. It leaves out fields
// of the kind without, unless that is ownField.
func (p *structPlan) appendFields(b []byte, v reflect.Value, more []envelopeField, without fieldKind) []byte {
	start := len(b)
	next := func(name string) {
		for len(more) > 0 && (name == "" || more[0].name <= name) {
			if more[0].name != name { // else the struct has its own
				if len(b) > start {
					b = append(b, ',')
				}
				b = append(append(appendString(b, more[0].name), ':'), more[0].json...)
			}
			more = more[1:]
		}
	}
	for i := range p.fields {
		f := &p.fields[i]
		if f.Index == nil {
			next(f.Name)
			if len(b) > start {
				b = append(b, ',')
			}
			b = append(b, f.key...)
			continue
		}
		x := fieldAt(v, f.Index)
		if !x.IsValid() || f.OmitZero && x.IsZero() || f.kind != ownField && f.kind == without && isLate(x) {
			continue
		}
		var row any
		if f.Table != nil {
			if row = x.Interface().(shape.Table).JSONField(f.Row); row == (shape.Absent{}) {
				continue
			}
		}
		next(f.Name)
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(b, f.key...)
		switch {
		case f.Table != nil:
			b = appendJSON(b, row)
		case f.NullZero && x.IsZero():
			b = append(b, "null"...)
		default:
			b = f.encode(b, x)
		}
	}
	next("")
	return b
}

// fieldAt returns a field of a struct. It is invalid if an embedded pointer on the way to it is nil.
func fieldAt(v reflect.Value, index []int) reflect.Value {
	for n, i := range index {
		if n > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// envelopeField is an encoded field that is added to an answer.
type envelopeField struct {
	name string
	json []byte
}

// selfEncoded is a type that encodes itself.
type selfEncoded interface{ appendTo(b []byte) []byte }

// appenderOf returns the function that encodes the values of a type.
func appenderOf(t reflect.Type) appender {
	if a, ok := appenders.Load(t); ok {
		return a.(appender)
	}
	a := makeAppender(t)
	appenders.Store(t, a)
	return a
}

func makeAppender(t reflect.Type) appender {
	if t.Implements(reflect.TypeFor[selfEncoded]()) && t.Kind() != reflect.Pointer {
		return func(b []byte, v reflect.Value) []byte { return v.Interface().(selfEncoded).appendTo(b) }
	}
	switch t.Kind() {
	case reflect.Bool:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendBool(b, v.Bool()) }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendInt(b, v.Int(), 10) }
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(b []byte, v reflect.Value) []byte { return strconv.AppendUint(b, v.Uint(), 10) }
	case reflect.String:
		return func(b []byte, v reflect.Value) []byte { return appendString(b, v.String()) }
	case reflect.Interface:
		return func(b []byte, v reflect.Value) []byte { return appendJSON(b, v.Interface()) }
	case reflect.Pointer:
		one := appenderOf(t.Elem())
		return func(b []byte, v reflect.Value) []byte {
			if v.IsNil() {
				return append(b, "null"...)
			}
			return one(b, v.Elem())
		}
	case reflect.Slice:
		one := appenderOf(t.Elem())
		return func(b []byte, v reflect.Value) []byte {
			b = append(b, '[')
			for i := range v.Len() {
				if i > 0 {
					b = append(b, ',')
				}
				b = one(b, v.Index(i))
			}
			return append(b, ']')
		}
	case reflect.Map:
		return makeMapAppender(t)
	case reflect.Struct:
		p := planOf(t)
		return func(b []byte, v reflect.Value) []byte {
			return append(p.appendFields(append(b, '{'), v, nil, ownField), '}')
		}
	}
	return func(b []byte, v reflect.Value) []byte { return appendWithLibrary(b, v.Interface()) }
}

// makeMapAppender encodes maps with the keys in sorted order.
func makeMapAppender(t reflect.Type) appender {
	one := appenderOf(t.Elem())
	return func(b []byte, v reflect.Value) []byte {
		keys := make([]string, 0, v.Len())
		for _, k := range v.MapKeys() {
			keys = append(keys, k.String())
		}
		slices.Sort(keys)
		b = append(b, '{')
		for i, k := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, k), ':')
			b = one(b, v.MapIndex(reflect.ValueOf(k).Convert(t.Key())))
		}
		return append(b, '}')
	}
}

// encoded is a value that is encoded before the answer that contains it. Its JSON is that of a T.
type encoded[T any] struct {
	Fragments
	inPlace bool // it is encoded with the other fields, not after them
}

// encodedAs returns a value as encoded JSON.
func encodedAs[T any](json []byte) encoded[T] { return inFragments[T](ownFragment(json)) }

// inFragments returns a value as encoded JSON.
func inFragments[T any](p ...Fragment) encoded[T] { return encoded[T]{Fragments: p} }

// JSONShape returns the shape of a T.
func (encoded[T]) JSONShape() *shape.Shape { return shape.Of(reflect.TypeFor[T]()) }

func (e encoded[T]) appendTo(b []byte) []byte { return appendJSON(b, e.Fragments) }

func (e encoded[T]) parts() Fragments {
	if e.inPlace {
		return nil
	}
	return e.Fragments
}

// fragmented is a field that SuccessFragments puts after the others without copying its fragments; nil: it is encoded
// with the others.
type fragmented interface{ parts() Fragments }

// isLate reports whether a field follows the others.
func isLate(x reflect.Value) bool {
	f, ok := x.Interface().(fragmented)
	return !ok || f.parts() != nil
}

// encodedFields is all fields of a T, which are encoded before the struct that contains it. They are absent if it has
// no bytes.
type encodedFields[T any] struct{ Fragment }

// encodedFieldsOf encodes the fields of a T.
func encodedFieldsOf[T any](x T) []byte {
	b := encode(x)
	return b[1 : len(b)-1]
}

// JSONFields returns the fields of a T.
func (encodedFields[T]) JSONFields() (out []shape.TableField) {
	for name, f := range formOf[T]().Fields {
		out = append(out, shape.TableField{Name: name, Shape: f.Shape, Optional: true})
	}
	return out
}

// JSONField is not called, because the fields are encoded.
func (encodedFields[T]) JSONField(int) any { return shape.Absent{} }

func (e encodedFields[T]) appendTo(b []byte) []byte { return append(b, e.JSON...) }

func (e encodedFields[T]) parts() Fragments { return Fragments{e.Fragment} }

// listOf is an ElementList of values whose JSON is that of a T.
type listOf[T any] struct{ *ElementList }

// JSONShape returns the shape of a list of T.
func (listOf[T]) JSONShape() *shape.Shape { return shape.Of(reflect.TypeFor[[]T]()) }

func (l listOf[T]) elements() *ElementList { return l.ElementList }

// streamed is a listOf, which SuccessStream encodes while it is sent.
type streamed interface{ elements() *ElementList }

// either is an A or a B.
type either[A, B any] struct{ value any }

// JSONShape returns the alternatives.
func (either[A, B]) JSONShape() *shape.Shape {
	return &shape.Shape{AnyOf: []*shape.Shape{shape.Of(reflect.TypeFor[A]()), shape.Of(reflect.TypeFor[B]())}}
}

func (e either[A, B]) appendTo(b []byte) []byte { return appendJSON(b, e.value) }

// noFields is the answer of endpoints without a result.
type noFields struct{}

// structOf returns the struct of an answer. Nil is an answer without fields.
func structOf(answer any) reflect.Value {
	if answer == nil {
		return reflect.ValueOf(noFields{})
	}
	v := reflect.ValueOf(answer)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return reflect.ValueOf(noFields{})
		}
		return v.Elem()
	}
	return v
}

// successFields returns the fields that every success has, sorted by name.
func successFields(ignored []string) []envelopeField {
	out := []envelopeField{{"msg", []byte(`""`)}, {"result", []byte(`"success"`)}}
	if len(ignored) > 0 {
		out = slices.Insert(out, 0, envelopeField{"ignored_parameters_unsupported", encode(ignored)})
	}
	return out
}

// orNull is a T or null. A pointer to it can also be absent.
type orNull[T any] struct{ value *T }

// JSONShape returns the shape of a T that can be null.
func (orNull[T]) JSONShape() *shape.Shape { return shape.Of(reflect.TypeFor[*T]()) }

func (n orNull[T]) appendTo(b []byte) []byte {
	return appenderOf(reflect.TypeFor[*T]())(b, reflect.ValueOf(n.value))
}

// noElements is a list that is always empty.
type noElements struct{}

// JSONShape returns the shape of an empty list.
func (noElements) JSONShape() *shape.Shape { return &shape.Shape{Kind: "array", Empty: true} }

func (noElements) appendTo(b []byte) []byte { return append(b, "[]"...) }

// idAnswer is the answer of endpoints that create something.
type idAnswer struct {
	ID int64 `json:"id"`
}

func newIDAnswer(id int64) *idAnswer { return &idAnswer{id} }

// ptr returns a pointer to a copy of a value, for fields that can be null or absent.
func ptr[T any](v T) *T { return &v }

// reactionTypeJSON is the kind of an emoji.
type reactionTypeJSON string

// Values returns all kinds.
func (reactionTypeJSON) Values() []string {
	return []string{"unicode_emoji", "realm_emoji", "zulip_extra_emoji"}
}

// each returns the results of one for the elements of a list. The result is never nil.
func each[A, B any](list []A, one func(A) B) []B {
	out := make([]B, len(list))
	for i, x := range list {
		out[i] = one(x)
	}
	return out
}

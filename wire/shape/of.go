package shape

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Shaper is a type that describes its own JSON, because reflection cannot: one of several types, encoded bytes, or
// fields that come from a table.
type Shaper interface{ JSONShape() *Shape }

// Table is the part of a struct whose fields come from a table instead of Go fields. JSONFields is called on the zero
// value. JSONField returns the value of the field with an index in this list; Absent leaves the field out.
type Table interface {
	JSONFields() []TableField
	JSONField(i int) any
}

// TableField is a field of a Table.
type TableField struct {
	Name     string
	Shape    *Shape
	Optional bool
}

// Absent is the value of a field that is left out.
type Absent struct{}

// Enumerated is a string type with few values.
type Enumerated interface{ Values() []string }

// nameSuffix ends the names of Go types that are objects with a name in the OpenAPI document: draftJSON is Draft.
const nameSuffix = "JSON"

// StructField is a field of the JSON object of a struct.
type StructField struct {
	Name     string
	Index    []int // of the Go field, see reflect.Value.FieldByIndex; nil for a constant
	Type     reflect.Type
	Constant string // the value of a constant
	OmitZero bool   // absent if the Go field has its zero value
	Optional bool   // absent if an embedded pointer on the way to it is nil
	NullZero bool   // null if the Go field has its zero value
	Enum     []string
	Table    *TableField // the field of a Table at Index; nil for Go fields
	Row      int         // its index in the Table
}

// StructFields returns the fields of the JSON object of a struct, sorted by name. It panics on wrong tags, which are
// programming errors.
//
//	Name T `json:"name"`               a field with this name; without the tag the field is not in the JSON
//	Name T `json:"name,omitzero"`      the field is absent if it is zero
//	Name T `json:"name" zero:"null"`   the field is null if it is zero
//	Name T `json:"name" enum:"a|b"`    a string that is one of these
//	_ struct{} `const:"type=x op=y"`   constants
//	T                                  an embedded struct: its fields
//	*T                                 its fields, which are all absent if it is nil
//	Name T                             a Table: its fields
func StructFields(t reflect.Type) []StructField {
	var out []StructField
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			for _, pair := range strings.Fields(f.Tag.Get("const")) {
				name, value, _ := strings.Cut(pair, "=")
				out = append(out, StructField{Name: name, Constant: value, Type: reflect.TypeFor[string](),
					Enum: []string{value}})
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Tag.Get("json") == "" && f.Type.Implements(reflect.TypeFor[Table]()) {
			for n, row := range reflect.Zero(f.Type).Interface().(Table).JSONFields() {
				out = append(out, StructField{Name: row.Name, Index: []int{i}, Table: &row, Row: n})
			}
			continue
		}
		if part, optional := embeddedStruct(f); part != nil && name == "" {
			for _, x := range StructFields(part) {
				if x.Index != nil {
					x.Index = append([]int{i}, x.Index...)
				}
				x.Optional = x.Optional || optional
				out = append(out, x)
			}
			continue
		}
		if name == "" {
			continue
		}
		x := StructField{Name: name, Index: []int{i}, Type: f.Type, NullZero: f.Tag.Get("zero") == "null"}
		switch options {
		case "":
		case "omitzero":
			x.OmitZero = true
		default:
			panic(fmt.Sprintf("BUG: option %s of %s.%s", options, t, f.Name))
		}
		if e := f.Tag.Get("enum"); e != "" {
			x.Enum = strings.Split(e, "|")
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b StructField) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(out); i++ {
		if out[i].Name == out[i-1].Name {
			panic(fmt.Sprintf("BUG: %s has two fields %s", t, out[i].Name))
		}
	}
	return out
}

// embeddedStruct returns the type of an embedded struct, nil if the field is none. It is optional if a pointer is
// embedded.
func embeddedStruct(f reflect.StructField) (part reflect.Type, optional bool) {
	part, optional = f.Type, f.Type.Kind() == reflect.Pointer
	if optional {
		part = part.Elem()
	}
	if !f.Anonymous || part.Kind() != reflect.Struct || part.Implements(shaperType) {
		return nil, false
	}
	return part, optional
}

var shaperType = reflect.TypeFor[Shaper]()

var shapes sync.Map // of each type

// Of returns the shape of the values of a Go type, see StructFields. A pointer is nullable.
func Of(t reflect.Type) *Shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*Shape)
	}
	s := of(t)
	shapes.Store(t, s)
	return s
}

func of(t reflect.Type) *Shape {
	switch {
	case t.Kind() == reflect.Pointer:
		return nullable(Of(t.Elem()))
	case t.Implements(shaperType):
		return named(reflect.Zero(t).Interface().(Shaper).JSONShape(), t)
	case t.Implements(reflect.TypeFor[Enumerated]()):
		return named(&Shape{Kind: "string", Enum: reflect.Zero(t).Interface().(Enumerated).Values()}, t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Shape{Kind: "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Shape{Kind: "integer"}
	case reflect.Float64:
		return &Shape{Kind: "number"}
	case reflect.String:
		return &Shape{Kind: "string"}
	case reflect.Interface:
		return &Shape{Nullable: true}
	case reflect.Slice:
		return &Shape{Kind: "array", Items: Of(t.Elem())}
	case reflect.Map:
		return &Shape{Kind: "object", Closed: true, Fields: map[string]Field{}, OtherValues: Of(t.Elem())}
	case reflect.Struct:
		return ofStruct(t)
	}
	panic("BUG: no shape of " + t.String())
}

func ofStruct(t reflect.Type) *Shape {
	s := &Shape{Kind: "object", Closed: true, Fields: map[string]Field{}}
	for _, f := range StructFields(t) {
		if f.Table != nil {
			s.Fields[f.Name] = Field{Shape: f.Table.Shape, ListedRequired: !f.Table.Optional,
				Optional: f.Table.Optional}
			continue
		}
		fs := Of(f.Type)
		if f.OmitZero && f.Type.Kind() == reflect.Pointer {
			fs = Of(f.Type.Elem()) // nil is absent, not null
		}
		if f.Enum != nil {
			fs = withEnum(fs, f.Enum)
		}
		if f.NullZero {
			fs = nullable(fs)
		}
		optional := f.OmitZero || f.Optional
		s.Fields[f.Name] = Field{Shape: fs, ListedRequired: !optional, Optional: optional}
	}
	return named(s, t)
}

func withEnum(s *Shape, values []string) *Shape {
	out := *s
	out.Enum = values
	return &out
}

func nullable(s *Shape) *Shape {
	out := *s
	out.Nullable = true
	return &out
}

// named returns a shape with the name that its Go type gives it.
func named(s *Shape, t reflect.Type) *Shape {
	word, ok := strings.CutSuffix(t.Name(), nameSuffix)
	if !ok {
		return s
	}
	out := *s
	out.Name = string(unicode.ToUpper(rune(word[0]))) + word[1:]
	return &out
}

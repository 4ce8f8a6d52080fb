package form

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decoder is implemented by the pointer of a type that reads a whole parameter with its own syntax. The form adds
// the parameter's name to errors made by At.
type Decoder interface {
	DecodeParam(raw, name string) *Error
}

// ValueDecoder is implemented by the pointer of a type that reads a JSON value with its own rules. Unlike a
// Decoder it may be an element or a member.
type ValueDecoder interface {
	DecodeValue(v Value) *Error
}

// Schemer is implemented by a Decoder or ValueDecoder that can return its JSON schema.
type Schemer interface {
	ParamSchema() map[string]any
}

// codec decodes one type with the options of one field.
type codec struct {
	raw   func(dst reflect.Value, raw string) *Error // reads a whole parameter; nil: the parameter is JSON
	value func(dst reflect.Value, v Value) *Error    // reads a JSON value; nil: there is no JSON form

	schema     map[string]any
	kind       reflect.Kind // of the type inside Opt, Null or a pointer; Invalid for types that decode themselves
	nullable   bool
	noDefault  bool
	valueField func(dst reflect.Value) reflect.Value // of Opt: the field that gets a default
	wrapped    *codec                                // of Opt: the codec that decodes a default
}

// param returns the function that decodes a whole parameter.
func (c codec) param() func(reflect.Value, string) *Error {
	if c.raw != nil {
		return c.raw
	}
	return c.json()
}

func (c codec) json() func(reflect.Value, string) *Error {
	value := c.value
	return func(dst reflect.Value, raw string) *Error {
		v, ok := JSON(raw)
		if !ok {
			return notJSON()
		}
		return value(dst, v)
	}
}

// field is a compiled field of a form or of a nested struct.
type field struct {
	name        string
	required    bool
	index       []int // path from the struct, through embedded structs
	raw         func(dst reflect.Value, raw string) *Error
	value       func(dst reflect.Value, v Value) *Error
	setDefault  func(dst reflect.Value) // nil: no default
	schema      map[string]any
	isJSON      bool
	kind        reflect.Kind
	defaultText string // the default as in the tag
}

func (f *field) at(dst reflect.Value) reflect.Value {
	for _, i := range f.index {
		dst = dst.Field(i)
	}
	return dst
}

func (f *field) applyDefault(dst reflect.Value) {
	if f.setDefault != nil {
		f.setDefault(dst)
	}
}

type compiler struct {
	nested []reflect.Type // structs being compiled, to detect recursion
}

func of(t reflect.Type) *Form {
	if t.Kind() != reflect.Struct {
		panic("BUG: form " + t.String() + " is not a struct")
	}
	f := &Form{of: reflect.PointerTo(t), slots: map[string]int{}}
	c := &compiler{}
	for _, d := range declared(t, nil) {
		o := parse(t, d.StructField, true)
		p := param{field: c.field(d, o), path: o.path, header: o.header, hidden: o.has("hidden"), aliases: o.aliases,
			slot: len(f.slots)}
		if reason, ok := o.take("extension"); ok {
			if p.extension = reason; reason == "" || p.path {
				o.panicf("an extension has a reason, and is no path parameter")
			}
		}
		o.rejectUnused()
		if p.path {
			if p.required || p.setDefault != nil || p.aliases != nil || p.isJSON && p.kind == reflect.String {
				o.panicf("a path parameter is plain, always present, and has one name")
			}
			p.raw = pathRaw(p.field.raw, d.Type, o)
			if slices.ContainsFunc(f.params, func(q param) bool { return q.path && q.name == p.name }) {
				o.panicf("declared twice")
			}
		} else if p.header {
			if p.aliases != nil || slices.ContainsFunc(f.params,
				func(q param) bool { return q.header && q.name == p.name }) {
				o.panicf("a header has one name and one field")
			}
		} else {
			for _, name := range append([]string{p.name}, p.aliases...) {
				if _, twice := f.slots[name]; twice {
					o.panicf("declared twice")
				}
				f.slots[name] = len(f.slots)
			}
		}
		f.params = append(f.params, p)
	}
	return f
}

// declaration is a tagged field and the path to it.
type declaration struct {
	reflect.StructField
	index []int
}

// declared lists the tagged fields of a struct in order, with those of embedded structs in place.
func declared(t reflect.Type, to []int) []declaration {
	var list []declaration
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(to), i)
		_, isForm := f.Tag.Lookup("form")
		_, isPath := f.Tag.Lookup("path")
		_, isHeader := f.Tag.Lookup("header")
		_, isJSON := f.Tag.Lookup("json")
		tagged := isForm || isPath || isHeader || isJSON
		switch {
		case f.Name == "_" || f.Tag.Get("form") == "-" || f.Tag.Get("json") == "-" && !isForm:
		case f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct:
			list = append(list, declared(f.Type, index)...)
		case !f.IsExported() && tagged:
			panic("BUG: " + t.String() + "." + f.Name + " has a tag but is not exported")
		case !f.IsExported():
		case !tagged:
			panic("BUG: " + t.String() + "." + f.Name + ` has no tag; say form:"-" if it is no parameter`)
		default:
			list = append(list, declaration{f, index})
		}
	}
	return list
}

// field compiles one declaration. The caller must call o.rejectUnused afterwards.
func (c *compiler) field(d declaration, o *options) field {
	k := c.compile(d.Type, o)
	f := field{name: o.name, index: d.index, required: o.has("required"), schema: k.schema, kind: k.kind,
		value: k.value}
	f.isJSON = k.raw == nil || k.nullable
	asJSON, asText := o.has("json"), o.has("raw")
	switch {
	case (asJSON || asText) && !o.top:
		o.panicf("json and raw are for top-level parameters")
	case asJSON && (k.value == nil || asText), asText && k.raw == nil:
		o.panicf("json and raw contradict each other or the type")
	case asJSON:
		f.isJSON = true
	case asText:
		f.isJSON = false
	}
	if f.raw = k.raw; f.isJSON && k.value != nil {
		f.raw = k.json()
	}
	if text, ok := o.take("default"); ok {
		if f.required || k.noDefault {
			o.panicf("a default is impossible here")
		}
		f.defaultText, f.setDefault = text, c.defaultSetter(k, d.Type, text, o)
	}
	return f
}

// defaultSetter decodes the default once, which checks it. A default of a reference type is decoded again for
// each request, so that requests do not share it.
func (c *compiler) defaultSetter(k codec, t reflect.Type, text string, o *options) func(reflect.Value) {
	home, decode := k.valueField, k.param()
	if home == nil {
		home = func(dst reflect.Value) reflect.Value { return dst }
	} else {
		decode = k.wrapped.param()
	}
	probe := home(reflect.New(t).Elem())
	if err := decode(probe, text); err != nil {
		o.panicf("the default is refused: " + err.Named(o.name).Msg)
	}
	switch k.kind {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(dst reflect.Value) { home(dst).Set(probe) }
	}
	return func(dst reflect.Value) {
		if err := decode(home(dst), text); err != nil {
			panic("BUG: default of " + o.name + ": " + err.Msg)
		}
	}
}

// compile returns the codec of a type.
func (c *compiler) compile(t reflect.Type, o *options) codec {
	if w := wrapping(t); w != wrapsNone {
		return c.wrap(w, t, o)
	}
	p := reflect.PointerTo(t)
	isParam, isValue := p.Implements(reflect.TypeFor[Decoder]()), p.Implements(reflect.TypeFor[ValueDecoder]())
	if isParam || isValue {
		return custom(t, isParam, isValue, o)
	}
	switch t.Kind() {
	case reflect.String:
		return textCodec(o)
	case reflect.Bool:
		return boolCodec()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intCodec(t, o)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintCodec(t, o)
	case reflect.Float32, reflect.Float64:
		return floatCodec(t, o)
	case reflect.Pointer:
		return c.pointer(t, o)
	case reflect.Slice:
		return c.list(t, o)
	case reflect.Map:
		return c.dict(t, o)
	case reflect.Struct:
		return c.object(t, o)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return codec{schema: map[string]any{}, value: func(dst reflect.Value, v Value) *Error {
				if x := v.Any(); x != nil {
					dst.Set(reflect.ValueOf(x))
				}
				return nil
			}}
		}
	}
	o.panicf("nothing decodes a " + t.String())
	panic("unreachable")
}

// custom returns the codec of a type that decodes itself.
func custom(t reflect.Type, isParam, isValue bool, o *options) codec {
	k := codec{schema: map[string]any{}}
	if s, ok := reflect.New(t).Interface().(Schemer); ok {
		k.schema = s.ParamSchema()
	}
	if isParam {
		name := o.name
		k.raw = func(dst reflect.Value, raw string) *Error {
			return dst.Addr().Interface().(Decoder).DecodeParam(raw, name)
		}
	}
	if isValue {
		k.value = func(dst reflect.Value, v Value) *Error {
			return dst.Addr().Interface().(ValueDecoder).DecodeValue(v)
		}
	}
	return k
}

// options holds the tag of one field. Every option must be used by the field's codec.
type options struct {
	owner   string
	name    string
	top     bool
	path    bool
	header  bool
	aliases []string
	given   map[string]string
	used    map[string]bool
}

func parse(t reflect.Type, f reflect.StructField, top bool) *options {
	o := &options{owner: t.String() + "." + f.Name, top: top, given: map[string]string{}, used: map[string]bool{}}
	tag, isForm := f.Tag.Lookup("form")
	if path, ok := f.Tag.Lookup("path"); ok {
		if isForm || !top {
			o.panicf("path is for top-level fields only, without form")
		}
		tag, o.path = path, true
	}
	if header, ok := f.Tag.Lookup("header"); ok {
		if isForm || o.path || !top {
			o.panicf("header is for top-level fields only, without form or path")
		}
		tag, o.header = header, true
	}
	parts := split(tag)
	if o.name = parts[0]; o.name == "" {
		o.name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	}
	if o.name == "" {
		o.panicf("it has no name")
	}
	for _, part := range parts[1:] {
		key, text, _ := strings.Cut(part, "=")
		if key == "alias" && top {
			o.aliases = append(o.aliases, text)
			continue
		}
		if _, twice := o.given[key]; twice {
			o.panicf(key + " is given twice")
		}
		o.given[key] = text
	}
	return o
}

// split cuts a tag at its commas, except inside brackets.
func split(tag string) []string {
	var parts []string
	depth, start := 0, 0
	for i := range len(tag) {
		switch tag[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, tag[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, tag[start:])
}

func (o *options) panicf(problem string) { panic("BUG: form field " + o.owner + ": " + problem) }

func (o *options) take(key string) (string, bool) {
	text, ok := o.given[key]
	o.used[key] = true
	return text, ok
}

func (o *options) has(key string) bool {
	_, ok := o.take(key)
	return ok
}

// count returns the value of an option that is a number, -1 if it is absent.
func (o *options) count(key string) int {
	text, ok := o.take(key)
	if !ok {
		return -1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		o.panicf(key + " is not a number")
	}
	return n
}

// rejectUnused panics if an option means nothing for the field's type.
func (o *options) rejectUnused() {
	for key := range o.given {
		if !o.used[key] {
			o.panicf("option " + key + " means nothing here")
		}
	}
}

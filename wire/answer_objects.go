package wire

import (
	"fmt"
	"reflect"
	"sync"

	"parley/wire/shape"
)

// objectTypes is the JSON objects that are structs and that notations name.
var objectTypes = []reflect.Type{
	reflect.TypeFor[attachmentJSON](),
	reflect.TypeFor[emojiJSON](),
	reflect.TypeFor[userJSON](),
}

// objectNotations is the JSON objects in answers, by their name in the OpenAPI document, in the notation of package
// shape.
var objectNotations = map[string]string{
	"DevUser": "{email: str, realm_url: str, realm_uri: str}",
	"Export": "{id: int, acting_user_id: int, export_time: int, " +
		"export_type: 'public' | 'full_with_consent' | 'full_without_consent', pending: bool, " +
		"deleted_timestamp: int?, failed_timestamp: int?, export_url: str?}",
}

// parsedShapes caches the parsed shapes of objects.
var parsedShapes = struct {
	sync.Mutex
	shapes map[string]*shape.Shape
}{shapes: map[string]*shape.Shape{}}

// mustParseShape parses a declared shape. It panics on a wrong notation, which is a programming error.
func mustParseShape(text string) *shape.Shape {
	parsedShapes.Lock()
	defer parsedShapes.Unlock()
	s, err := shape.Parse(text, objectShape)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return s
}

// objectShape returns the shape of a named object. The caller holds the lock of parsedShapes.
func objectShape(name string) (*shape.Shape, error) {
	if s, ok := parsedShapes.shapes[name]; ok {
		return s, nil
	}
	for _, t := range objectTypes {
		if s := shape.Of(t); s.Name == name {
			return s, nil
		}
	}
	text, ok := objectNotations[name]
	if !ok {
		return nil, fmt.Errorf("no object %q", name)
	}
	s, err := shape.Parse(text, objectShape)
	if err != nil {
		return nil, err
	}
	named := *s
	named.Name = name
	parsedShapes.shapes[name] = &named
	return &named, nil
}

// SuccessShape returns the shape of an endpoint's whole success, including result and msg. It returns nil if the
// endpoint never succeeds, redirects, or has no JSON answer.
func (e *Endpoint) SuccessShape() *shape.Shape {
	if e.alwaysFails || e.redirects || e.tus != nil {
		return nil
	}
	success := e.answerShape()
	common := mustParseShape(envelope)
	if _, ok := success.Fields["msg"]; ok {
		delete(common.Fields, "msg") // the endpoint declares its own
	}
	return shape.Merge(common, success)
}

// answerShape returns the shape of the fields of a success.
func (e *Endpoint) answerShape() *shape.Shape {
	t := e.answerType
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case e.answer != "":
		return mustParseShape(e.answer)
	case t.Kind() == reflect.Struct:
		return shape.Of(t)
	}
	return mustParseShape("{}")
}

// envelope is the fields that every success has.
const envelope = "{result: 'success', msg: '', ignored_parameters_unsupported?: [str]}"

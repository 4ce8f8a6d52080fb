package wire

import (
	"maps"
	"reflect"

	"parley/wire/shape"
)

// SuccessShape returns the shape of an endpoint's whole success, including result and msg. It returns nil if the
// endpoint never succeeds, redirects, or has no JSON answer.
func (e *Endpoint) SuccessShape() *shape.Shape {
	if e.alwaysFails || e.redirects || e.tus != nil {
		return nil
	}
	success := e.answerShape()
	common := *formOf[envelope]()
	if _, ok := success.Fields["msg"]; ok {
		common.Fields = maps.Clone(common.Fields)
		delete(common.Fields, "msg") // the endpoint declares its own
	}
	return shape.Merge(&common, success)
}

// answerShape returns the shape of the fields of a success.
func (e *Endpoint) answerShape() *shape.Shape {
	t := e.answerType
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		t = reflect.TypeFor[noFields]()
	}
	return shape.Of(t)
}

// envelope is the fields that every success has.
type envelope struct {
	_       struct{} `const:"result=success msg="`
	Ignored []string `json:"ignored_parameters_unsupported,omitzero"`
}

package wire

import (
	"reflect"
	"slices"
	"testing"

	"parley/wire/shape"
)

// TestEventShapesMatchRenderers checks the declared shapes against the event types of the realm: each type has a
// shape, and each shape has a type.
func TestEventShapesMatchRenderers(t *testing.T) {
	types := []string{"heartbeat", "message"}
	for typ := range eventKinds {
		e := reflect.New(typ.Elem()).Interface().(interface{ EventType() string })
		types = append(types, e.EventType())
	}
	for _, f := range eventShapes {
		if !slices.Contains(types, f.kind) {
			t.Errorf("%s/%s has a shape, but no event type is rendered as it", f.kind, f.op)
		}
	}
	for _, kind := range types {
		if kind != "" && !slices.ContainsFunc(eventShapes, func(f eventShape) bool { return f.kind == kind }) {
			t.Errorf("%s is sent, but has no shape in eventShapes", kind)
		}
	}
}

// TestEventsMatchOneShape checks that no event can match two shapes: where two shapes share all required fields, a
// constant differs.
func TestEventsMatchOneShape(t *testing.T) {
	same := func(a, b *shape.Shape) bool { // compares constants and required fields only
		for name, x := range a.Fields {
			y, ok := b.Fields[name]
			if !ok && x.Required() {
				return false
			}
			if ok && len(x.Shape.Enum) > 0 && len(y.Shape.Enum) > 0 &&
				!slices.ContainsFunc(x.Shape.Enum, func(v string) bool { return slices.Contains(y.Shape.Enum, v) }) {
				return false
			}
		}
		for name, y := range b.Fields {
			if _, ok := a.Fields[name]; !ok && y.Required() {
				return false
			}
		}
		return true
	}
	for i, f := range eventShapes {
		for _, g := range eventShapes[:i] {
			a, b := f.Shape, g.Shape
			p, q := a.Fields["person"].Shape, b.Fields["person"].Shape
			if same(a, b) && (p == nil || q == nil || same(p, q)) {
				t.Errorf("%s and %s", f.Name, g.Name)
			}
		}
	}
}

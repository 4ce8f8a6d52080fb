package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/wire/shape"
)

// eventShape is one shape of an event. An event that kinds of clients get in different formats has several shapes.
type eventShape struct {
	kind, op string
	*shape.Shape
}

// eventShapes is every shape of event that this server sends. Tests check each received event against this list, and
// the list against the types that have a renderer. The OpenAPI document has each shape as an object. Type, op and
// fields distinguish each shape from all others.
var eventShapes []eventShape

// withValues returns a shape whose field is one of some strings.
func withValues(s *shape.Shape, field string, values ...string) *shape.Shape {
	return shape.Merge(s, &shape.Shape{Fields: map[string]shape.Field{field: {ListedRequired: true,
		Shape: &shape.Shape{Kind: "string", Enum: values}}}})
}

// name is the name of the shape in the OpenAPI document. nth numbers the shapes of one type and op.
func (f eventShape) name(nth int) string {
	name := "Event" + camelCase(f.kind+"_"+f.op, "_")
	if nth > 1 {
		name += strconv.Itoa(nth)
	}
	return name
}

// init collects the shapes of events. Those of messages and heartbeats have no renderer.
func init() {
	declared := []*shape.Shape{formOf[messageEvent](), formOf[heartbeatEvent]()}
	for _, k := range eventKindList {
		declared = append(declared, k.shapes...)
	}
	seen := map[*shape.Shape]bool{}
	for _, s := range declared {
		if !seen[s] {
			eventShapes = append(eventShapes, newEventShape(s))
		}
		seen[s] = true
	}
	slices.SortStableFunc(eventShapes, func(a, b eventShape) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.op, b.op))
	})
	numbers := map[string]int{}
	for _, f := range eventShapes {
		numbers[f.kind+"/"+f.op]++
		f.Name = f.name(numbers[f.kind+"/"+f.op])
	}
}

type eventID struct {
	ID int64 `json:"id"`
}

// newEventShape returns the shape of an event, with the id that every event has.
func newEventShape(s *shape.Shape) eventShape {
	constant := func(name string) string {
		if f, ok := s.Fields[name]; ok && len(f.Shape.Enum) == 1 {
			return f.Shape.Enum[0]
		}
		return ""
	}
	return eventShape{constant("type"), constant("op"), shape.Merge(formOf[eventID](), s)}
}

// CheckEvent checks an encoded event against the declared shapes.
func CheckEvent(event []byte) shape.Findings { return SeenEventShapes{}.Check(event) }

// SeenEventShapes counts checked events by shape.
type SeenEventShapes map[string]int

// Check checks an encoded event against the declared shapes and counts it.
func (seen SeenEventShapes) Check(event []byte) shape.Findings {
	var v any
	d := json.NewDecoder(strings.NewReader(string(event)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return shape.Findings{{Where: "own event", What: "type", Text: "not JSON: " + err.Error()}}
	}
	o, _ := v.(map[string]any)
	kind, _ := o["type"].(string)
	op, _ := o["op"].(string)
	where := "own event " + kind + "/" + op
	var forms []*shape.Shape
	for _, f := range eventShapes {
		if f.kind != kind || f.op != op {
			continue
		}
		if len(f.Check(where, "", v)) == 0 {
			seen[f.Name]++
			return nil
		}
		forms = append(forms, f.Shape)
	}
	if forms == nil {
		return shape.Findings{{Where: where, What: "unknown", Text: "no such event is described"}}
	}
	return (&shape.Shape{AnyOf: forms}).Check(where, "", v)
}

// Unseen returns the names of the shapes without any event.
func (seen SeenEventShapes) Unseen() (out []string) {
	for _, f := range eventShapes {
		if seen[f.Name] == 0 {
			out = append(out, f.Name)
		}
	}
	return out
}

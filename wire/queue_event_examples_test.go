package wire

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"parley/wire/shape"
)

var updateExamples = flag.Bool("update", false,
	"write the examples of events that the client in the browser is tested with")

// exampleFile has one event for each shape. The tests of the client in the browser apply each of them to its store.
const exampleFile = "web/client/test/events.jsonl"

// TestEventExamples checks that exampleFile has an example of every shape of event that this server sends.
func TestEventExamples(t *testing.T) {
	var want bytes.Buffer
	for _, f := range eventShapes {
		s := f.Shape
		for _, full := range []bool{true, false} {
			if !full && !hasOptional(s) {
				continue
			}
			for _, property := range propertiesOf(s) {
				line, err := json.Marshal(exampleOf(s, full, property))
				if err != nil {
					t.Fatal(err)
				}
				if found := CheckEvent(line); len(found) > 0 {
					t.Errorf("the example does not fit its shape: %v", found)
				}
				fmt.Fprintf(&want, "%s\n", line)
			}
		}
	}
	if *updateExamples {
		if err := os.WriteFile(exampleFile, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s does not have today's events: run go test ./wire -run EventExamples -update, then make web",
			exampleFile)
	}
}

// hasOptional reports whether a shape has fields that can be absent, not counting those of the objects in it.
func hasOptional(s *shape.Shape) bool {
	for _, f := range s.Fields {
		if !f.Required() {
			return true
		}
	}
	return false
}

// propertiesOf returns the names that the field "property" of an event can have, or "" if it has no such field.
func propertiesOf(s *shape.Shape) []string {
	if f, ok := s.Fields["property"]; ok {
		return f.Shape.Enum
	}
	return []string{""}
}

// exampleOf returns a value of a shape. Every number is 1 and every list has one element, so that the ids of all
// examples are those of the same few objects. Optional fields are left out unless full is set. A property that is not
// empty becomes the value of the field with this name.
func exampleOf(s *shape.Shape, full bool, property string) any {
	if len(s.AnyOf) > 0 {
		return exampleOf(s.AnyOf[0], full, "")
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch s.Kind {
	case "object":
		out := map[string]any{}
		for name, f := range s.Fields {
			switch {
			case name == "property" && property != "":
				out[name] = property
			case full || f.Required():
				out[name] = exampleOf(f.Shape, full, "")
			}
		}
		if s.OtherValues != nil {
			out["1"] = exampleOf(s.OtherValues, full, "")
		}
		return out
	case "array":
		if s.Empty || s.Items == nil {
			return []any{}
		}
		return []any{exampleOf(s.Items, full, "")}
	case "string":
		return "text"
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	return "text" // a field that can be anything
}

package wire

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"parley/wire/shape"
)

// TestAnswersHaveExamples demands an example of each answer that is JSON, and that it fits the shape with which every
// real answer is compared.
func TestAnswersHaveExamples(t *testing.T) {
	type content map[string]struct {
		Schema  any
		Example any
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content content }
		}
		Components struct {
			Responses map[string]struct{ Content content }
		}
	}
	d := json.NewDecoder(bytes.NewReader(OpenAPI()))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	names, checked := pathParameterNames(endpoints), 0
	for i := range endpoints {
		e := &endpoints[i]
		if e.Dev {
			continue
		}
		path := apiPrefix + documentedPath(e.Path, names)
		example := doc.Paths[path][strings.ToLower(e.Method)].Responses["200"].Content["application/json"].Example
		s := e.SuccessShape()
		if s == nil {
			continue
		}
		checked++
		if example == nil {
			t.Errorf("%s %s has no example of its answer", e.Method, path)
		} else if found := s.Check("example", "", example); len(found) > 0 && !sharedOperation(e, names) {
			t.Errorf("%s %s: the example does not fit: %v", e.Method, path, found)
		}
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			for status, r := range op.Responses {
				if c, ok := r.Content["application/json"]; ok && c.Schema != nil && c.Example == nil {
					t.Errorf("%s %s: the answer %s has no example", method, path, status)
				}
			}
		}
	}
	for name, r := range doc.Components.Responses {
		fields, _ := r.Content["application/json"].Example.(map[string]any)
		if fields["result"] != "error" || !shape.Fits("string", fields["msg"]) {
			t.Errorf("%s has the example %v", name, fields)
		}
	}
	t.Logf("%d answers", checked)
}

// sharedOperation reports whether another endpoint is described as the same operation. The example is that of one.
func sharedOperation(e *Endpoint, names map[string][]string) bool {
	for i := range endpoints {
		x := &endpoints[i]
		if x != e && x.Method == e.Method && documentedPath(x.Path, names) == documentedPath(e.Path, names) {
			return true
		}
	}
	return false
}

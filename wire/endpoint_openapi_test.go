package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestOpenAPICoversEveryEndpoint parses the document and looks for every endpoint and every parameter.
func TestOpenAPICoversEveryEndpoint(t *testing.T) {
	var doc struct {
		OpenAPI    string
		Components struct{ Schemas map[string]map[string]any }
		Paths      map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
			Parameters  []struct {
				Name, In string
				Required bool
				Schema   map[string]any
				Content  map[string]struct{ Schema map[string]any }
			}
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Properties map[string]map[string]any
						Required   []string
					}
					Encoding map[string]map[string]string
				}
			}
			Responses map[string]any
		}
	}
	text := OpenAPI()
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("version %q", doc.OpenAPI)
	}
	if strings.Contains(string(text), `"nullable"`) {
		t.Error("the keyword nullable does not exist in OpenAPI 3.1")
	}
	ids, shapes := map[string]bool{}, map[string]string{}
	for path, item := range doc.Paths {
		if old, twice := shapes[pathPattern(path)]; twice {
			t.Errorf("%s and %s are the same path", old, path)
		}
		shapes[pathPattern(path)] = path
		for method, op := range item {
			if op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s %s: operation %q is not unique", method, path, op.OperationID)
			}
			ids[op.OperationID] = true
			if op.Responses["200"] == nil && op.Responses["302"] == nil && op.Responses["400"] == nil ||
				op.Responses["404"] == nil {
				t.Errorf("%s %s has no responses", method, path)
			}
			var named []string
			for _, p := range op.Parameters {
				if p.In == "path" {
					named = append(named, p.Name)
				}
				if p.Schema == nil && p.Content["application/json"].Schema == nil {
					t.Errorf("%s %s: %s has no schema", method, path, p.Name)
				}
			}
			if !slices.Equal(named, pathParameters(path)) {
				t.Errorf("%s %s has path parameters %v", method, path, named)
			}
		}
	}
	events := 0
	for name := range doc.Components.Schemas {
		if strings.HasPrefix(name, "Event") && name != "Event" {
			events++
		}
	}
	if one, ok := doc.Components.Schemas["Event"]["oneOf"].([]any); !ok || len(one) != len(eventShapes) ||
		events != len(eventShapes) {
		t.Errorf("%d alternatives of Event, %d objects, %d in the table", len(one), events, len(eventShapes))
	}
	names, params := pathParameterNames(endpoints), 0
	for _, e := range Endpoints() {
		if e.Dev {
			continue
		}
		op, ok := doc.Paths[apiPrefix+documentedPath(e.Path, names)][strings.ToLower(e.Method)]
		if !ok {
			t.Errorf("%s %s is missing", e.Method, e.Path)
			continue
		}
		if anonymous := len(op.Security) == 0 || len(op.Security) == 2; anonymous != (e.Open || e.Visitors) {
			t.Errorf("%s %s: security %v", e.Method, e.Path, op.Security)
		}
		for _, p := range e.Params() {
			params++
			found := false
			for _, q := range op.Parameters {
				found = found || q.Name == p.Name && (q.In == "path") == (p.Where == "path") || p.Where == "path" &&
					slices.Contains(strings.Split(q.Name, "_or_"), p.Name)
				asJSON := p.JSON && !isPlain(p.Schema)
				if q.Name == p.Name && q.In == "query" && (q.Required != p.Required || (q.Content != nil) != asJSON) {
					t.Errorf("%s %s: %s is described as %+v", e.Method, e.Path, p.Name, q)
				}
			}
			body := op.RequestBody.Content["application/x-www-form-urlencoded"]
			if e.file != nil {
				body = op.RequestBody.Content["multipart/form-data"]
			}
			if body.Schema.Properties[p.Name] != nil {
				found = true
				if slices.Contains(body.Schema.Required, p.Name) != p.Required ||
					(body.Encoding[p.Name] != nil) != p.JSON {
					t.Errorf("%s %s: %s is not described as it is decoded", e.Method, e.Path, p.Name)
				}
			}
			if !found {
				t.Errorf("%s %s: parameter %s is missing", e.Method, e.Path, p.Name)
			}
		}
	}
	if len(ids) < 100 || params < 200 {
		t.Errorf("only %d operations and %d parameters", len(ids), params)
	}
	t.Logf("%d operations, %d parameters", len(ids), params)
}

// clientTypes is generated from the schemas of the OpenAPI document by make types.
const clientTypes = "web/client/src/api/schema.ts"

// TestClientTypesAreCurrent compares the digest in clientTypes with that of today's schemas.
func TestClientTypesAreCurrent(t *testing.T) {
	types, err := os.ReadFile(clientTypes)
	if err != nil {
		t.Fatal(err)
	}
	if digest := fmt.Sprintf("%x", sha256.Sum256(OpenAPISchemas())); !bytes.Contains(types, []byte(digest)) {
		t.Errorf("%s does not have today's schemas: run make types", clientTypes)
	}
}

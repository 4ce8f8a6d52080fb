package wire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestEverythingIsDescribed demands a description of each operation and each parameter, an example of each parameter
// that is required, and examples that fit. It names descriptions that nothing has.
func TestEverythingIsDescribed(t *testing.T) {
	d, used := parsedDescriptions(), map[string]bool{}
	described := func(op, name, text string) {
		key := op + " " + name
		if _, own := d.operations[op].names[name]; !own {
			key = name
		}
		used[key] = true
		checkText(t, op+" "+name, text)
	}
	doc := describedDocument(t)
	operations := 0
	for path, item := range doc.Paths {
		for method, op := range item {
			key := strings.ToUpper(method) + " " + strings.TrimPrefix(path, apiPrefix)
			used[key] = true
			operations++
			checkText(t, key, op.Description)
			if op.Summary == "" || len(op.Tags) != 1 || op.Tags[0] == "" {
				t.Errorf("%s: summary %q, tags %q", key, op.Summary, op.Tags)
			}
			for _, p := range op.Parameters {
				described(key, p.Name, p.Description)
				if p.Example != nil {
					checkExample(t, key+" "+p.Name, p.Example, p.Schema)
				}
			}
			for _, c := range op.RequestBody.Content {
				for name, property := range c.Schema.Properties {
					text, _ := property["description"].(string)
					described(key, name, text)
					if v, ok := c.Example[name]; ok {
						checkExample(t, key+" "+name, v, property)
					}
				}
				if len(c.Schema.Required) > 0 && c.Example == nil && !slices.Contains(c.Schema.Required, "file") {
					t.Errorf("%s has no example of its required parameters %v", key, c.Schema.Required)
				}
			}
		}
	}
	for name := range d.names {
		if !used[name] {
			t.Errorf("no operation has the parameter %s", name)
		}
	}
	for key, op := range d.operations {
		if !used[key] {
			t.Errorf("there is no operation %s", key)
		}
		for name := range op.names {
			if !used[key+" "+name] {
				t.Errorf("%s has no parameter %s", key, name)
			}
		}
	}
	t.Logf("%d operations", operations)
}

type describedOperation struct {
	Summary, Description string
	Tags                 []string
	Parameters           []struct {
		Name, Description string
		Example           any
		Schema            map[string]any
	}
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Properties map[string]map[string]any
				Required   []string
			}
			Example map[string]any
		}
	}
}

func describedDocument(t *testing.T) (doc struct {
	Paths map[string]map[string]describedOperation
}) {
	t.Helper()
	if err := json.Unmarshal(OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// maxSentences is how many sentences a description may have: a reader looks for a fact, not for a text.
const maxSentences = 3

func checkText(t *testing.T, what, text string) {
	t.Helper()
	switch {
	case text == "":
		t.Errorf("%s has no description", what)
	case !strings.HasSuffix(text, "."):
		t.Errorf("%s: %q is no sentence", what, text)
	case strings.Count(text, ". ")+1 > maxSentences:
		t.Errorf("%s: %q is too long", what, text)
	}
}

// checkExample compares an example with the type, the allowed values and the limits of a schema.
func checkExample(t *testing.T, what string, v any, schema map[string]any) {
	t.Helper()
	if branches, ok := schema["anyOf"].([]any); ok {
		if !slices.ContainsFunc(branches, func(b any) bool { return fitsSchema(v, b.(map[string]any)) }) {
			t.Errorf("%s: the example %v fits no alternative of %v", what, v, branches)
		}
		return
	}
	if !fitsSchema(v, schema) {
		t.Errorf("%s: the example %v does not fit %v", what, v, schema)
	}
}

func fitsSchema(v any, schema map[string]any) bool {
	kinds, _ := schema["type"].([]any)
	if kind, ok := schema["type"].(string); ok {
		kinds = []any{kind}
	}
	kind := map[string]string{"string": "string", "float64": "integer", "bool": "boolean", "[]interface {}": "array",
		"map[string]interface {}": "object", "<nil>": "null"}[fmt.Sprintf("%T", v)]
	if kinds != nil && !slices.Contains(kinds, any(kind)) && !slices.Contains(kinds, any("number")) {
		return false
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, v) {
		return false
	}
	if n, ok := v.(float64); ok {
		if low, ok := schema["minimum"].(float64); ok && n < low {
			return false
		}
		if high, ok := schema["maximum"].(float64); ok && n > high {
			return false
		}
	}
	if s, ok := v.(string); ok {
		if high, ok := schema["maxLength"].(float64); ok && len(s) > int(high) {
			return false
		}
	}
	return true
}

// TestWrongDescriptions checks that a mistake in descriptions.txt is named with its line.
func TestWrongDescriptions(t *testing.T) {
	for text, want := range map[string]string{
		"a text without an operation":             "line 1: neither an operation nor a name",
		"GET /x\nDoes it.\nDoes more.":            "line 3: neither an operation nor a name",
		"GET /x\nDoes it.\n\nGET /x":              "line 4: the operation is described twice",
		"- a: One.\n- a = 1: Two.":                "line 2: the name is described twice",
		"- a = {\"b\": 1}: Text: with a colon.\n": "",
	} {
		d, err := parseDescriptions(text)
		if got := fmt.Sprint(err); want == "" && (err != nil || d.names["a"].example != `{"b": 1}`) ||
			want != "" && got != want {
			t.Errorf("%q: %v, %v, want %q", text, d, err, want)
		}
	}
}

package wire

import (
	"slices"
	"strings"
)

// exampleDepth is how many objects deep an example goes. Deeper lists and maps are empty, so that the largest example,
// that of POST /register, remains readable.
const exampleDepth = 5

// addExamples adds an example to each answer of an OpenAPI document that is JSON. It is made from the schema: a value
// of a field is the example of descriptions.txt if it fits, or that of exampleOfName, or the first value of its type.
func addExamples(doc obj) {
	x := examples{schemas: doc["components"].(obj)["schemas"].(obj), names: parsedDescriptions().names}
	for _, item := range doc["paths"].(obj) {
		for _, op := range item.(obj) {
			for _, r := range op.(obj)["responses"].(obj) {
				x.add(r.(obj))
			}
		}
	}
	for _, r := range doc["components"].(obj)["responses"].(obj) {
		x.add(r.(obj))
	}
}

// examples makes values that fit schemas.
type examples struct {
	schemas obj
	names   map[string]nameDescription
}

// add adds an example to a response that has a schema.
func (x examples) add(response obj) {
	content, _ := response["content"].(obj)
	media, _ := content["application/json"].(obj)
	if schema, ok := media["schema"].(obj); ok {
		media["example"] = x.of("", schema, 0)
	}
}

// of returns a value of a schema. The fields of an answer are all there, except one for mistakes of the caller; objects
// inside have the required ones.
func (x examples) of(name string, schema obj, depth int) any {
	schema = x.resolve(schema)
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := schema[key].([]any); ok {
			return x.of(name, list[0].(obj), depth)
		}
	}
	if values, ok := schema["enum"].([]any); ok {
		return values[0]
	}
	switch kind := kindOf(schema); kind {
	case "object":
		return x.object(schema, depth)
	case "array":
		items, ok := schema["items"].(obj)
		if !ok || len(items) == 0 || schema["maxItems"] == 0 || depth >= exampleDepth {
			return []any{}
		}
		return []any{x.of(name, items, depth+1)}
	default:
		return x.plain(name, kind)
	}
}

func (x examples) object(schema obj, depth int) obj {
	out := obj{}
	required, _ := schema["required"].([]string)
	properties, _ := schema["properties"].(obj)
	for name, p := range properties {
		if name == "ignored_parameters_unsupported" || depth > 0 && !slices.Contains(required, name) {
			continue
		}
		out[name] = x.of(name, p.(obj), depth+1)
	}
	if more, ok := schema["additionalProperties"].(obj); ok && depth < exampleDepth {
		out["1"] = x.of("", more, depth+1)
	}
	return out
}

// plain returns a value of a type that has no parts. A field that can be anything is a text.
func (x examples) plain(name, kind string) any {
	if n := x.names[name]; n.field && n.example != "" {
		if v := exampleValue(n.example, obj{"type": kind}); kindOfValue(v) == kind {
			return v
		}
	}
	switch kind {
	case "integer", "number":
		if slices.ContainsFunc(timeNames, func(part string) bool { return strings.Contains(name, part) }) {
			return exampleTime
		}
		return 1
	case "boolean":
		return true
	}
	for _, n := range exampleOfName {
		if strings.HasSuffix(name, n.end) {
			return n.value
		}
	}
	return "text"
}

// exampleTime is 2026-01-31 09:00 UTC.
const exampleTime = 1769850000

// timeNames are parts of the names of numbers that are times.
var timeNames = []string{"timestamp", "_at", "date", "last_used", "create_time", "export_time", "end_times",
	"counted_since", "last_updated"}

// exampleOfName has the texts of fields, by the end of their name. The first one counts.
var exampleOfName = []struct{ end, value string }{
	{"msg", ""}, {"email", "ann@example.com"}, {"full_name", "Ann Example"}, {"topic", "greetings"},
	{"subject", "greetings"}, {"content", "<p>Good morning</p>"}, {"avatar_url", "/user_avatars/2/4f.png"},
	{"uri", "/user_uploads/2/ab/report.txt"}, {"url", "https://chat.example.com/"},
	{"link", "https://chat.example.com/"},
	{"filename", "report.txt"}, {"path_id", "2/ab/report.txt"}, {"date_joined", "2026-01-31T09:00:00+00:00"},
	{"color", "#c2c2c2"}, {"api_key", "gjA04ZYcqXKalvYMA8OeXSfzUOLrtbZv"}, {"client", "website"}, {"flags", "read"},
	{"language", "en"}, {"queue_id", "fb67bf8a-c031-47cc-84cf-ed80accacda8"}, {"version", "12.0"},
}

// resolve follows references.
func (x examples) resolve(schema obj) obj {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		schema = x.schemas[strings.TrimPrefix(ref, schemaRefPrefix)].(obj)
	}
}

// kindOf returns the type of a schema, without null.
func kindOf(schema obj) string {
	switch kind := schema["type"].(type) {
	case string:
		return kind
	case []any:
		return kind[0].(string)
	case []string:
		return kind[0]
	}
	if _, ok := schema["properties"]; ok {
		return "object"
	}
	return ""
}

// kindOfValue returns the type of a decoded example. Examples have no fractions.
func kindOfValue(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "integer"
	case bool:
		return "boolean"
	}
	return ""
}

package shape

import "slices"

// Schema returns the shape as JSON Schema. A named shape becomes a reference below prefix, and seen is called with
// it.
func (s *Shape) Schema(prefix string, seen func(*Shape)) map[string]any {
	if s.Name == "" {
		return s.SchemaBody(prefix, seen)
	}
	plain := *s // the named shape itself is not nullable; a question mark after the name is
	plain.Nullable = false
	seen(&plain)
	ref := map[string]any{"$ref": prefix + s.Name}
	if s.Nullable {
		return map[string]any{"anyOf": []any{ref, map[string]any{"type": "null"}}}
	}
	return ref
}

// SchemaBody is Schema without using the name of the shape itself.
func (s *Shape) SchemaBody(prefix string, seen func(*Shape)) map[string]any {
	if len(s.AnyOf) > 0 {
		var branches []any
		for _, e := range s.AnyOf {
			branches = append(branches, e.Schema(prefix, seen))
		}
		if s.Nullable && !slices.ContainsFunc(s.AnyOf, func(e *Shape) bool { return e.Nullable }) {
			branches = append(branches, map[string]any{"type": "null"})
		}
		return map[string]any{"anyOf": branches}
	}
	out := map[string]any{}
	switch {
	case s.Kind == "":
		return out // anything
	case s.Nullable:
		out["type"] = []any{s.Kind, "null"}
	default:
		out["type"] = s.Kind
	}
	if len(s.Enum) > 0 {
		var values []any
		for _, e := range s.Enum {
			values = append(values, e)
		}
		if s.Nullable {
			values = append(values, nil)
		}
		out["enum"] = values
	}
	if s.Items != nil {
		out["items"] = s.Items.Schema(prefix, seen)
	}
	if s.Empty {
		out["maxItems"] = 0
	}
	if s.Kind != "object" {
		return out
	}
	properties, required := map[string]any{}, []string{}
	for name, f := range s.Fields {
		properties[name] = f.Shape.Schema(prefix, seen)
		if f.Required() {
			required = append(required, name)
		}
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	if slices.Sort(required); len(required) > 0 {
		out["required"] = required
	}
	switch {
	case s.OtherValues != nil:
		out["additionalProperties"] = s.OtherValues.Schema(prefix, seen)
	case s.Closed:
		out["additionalProperties"] = false
	}
	return out
}

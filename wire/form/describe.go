package form

import (
	"maps"
	"math"
	"slices"
)

// Param describes one parameter, for documentation and for tests against the protocol's description.
type Param struct {
	Name     string
	Aliases  []string
	Where    string // "path", "header", or "form" for query and body
	JSON     bool   // the value is JSON; otherwise it is text
	Schema   map[string]any
	Required bool
	Hidden   bool
	// Extension is the reason why this server has a parameter that the protocol's description does not contain. It is
	// empty for the parameters of the description.
	Extension string
}

// Describe lists the parameters in order. The schemas contain types, limits and defaults. The caller must not
// change them.
func (f *Form) Describe() []Param {
	list := make([]Param, len(f.params))
	for i := range f.params {
		p := &f.params[i]
		where := "form"
		if p.path {
			where = "path"
		} else if p.header {
			where = "header"
		}
		list[i] = Param{Name: p.name, Aliases: slices.Clone(p.aliases), Where: where, JSON: p.isJSON && !p.path,
			Schema: p.withDefault(), Required: p.required || p.path, Hidden: p.hidden,
			Extension: p.extension}
	}
	return list
}

// withDefault returns the schema, with the default if there is one.
func (f *field) withDefault() map[string]any {
	if f.setDefault == nil {
		return f.schema
	}
	s := maps.Clone(f.schema)
	s["default"] = f.defaultText
	if v, ok := JSON(f.defaultText); ok && s["type"] != "string" {
		s["default"] = v.Any()
	}
	return s
}

func nullable(schema map[string]any) map[string]any {
	s := maps.Clone(schema)
	s["nullable"] = true
	return s
}

func (r *textRule) schema() map[string]any {
	s := map[string]any{"type": "string"}
	if r.length >= 0 {
		s["minLength"], s["maxLength"] = r.length, r.length
	}
	if r.minLen >= 0 {
		s["minLength"] = r.minLen
	}
	if r.maxLen >= 0 {
		s["maxLength"] = r.maxLen
	}
	if r.pattern != nil {
		s["pattern"] = r.pattern.String()
	}
	if r.date {
		s["format"] = "date"
	}
	if values := append(slices.Clone(r.enum), r.in...); values != nil {
		s["enum"] = values
	}
	return s
}

// schema contains the bounds given by options, and those of types narrower than 32 bits. Clients count with wider
// types anyway.
func (r *intRule) schema(o *options) map[string]any {
	s := map[string]any{"type": "integer"}
	if _, ok := o.given["min"]; ok || r.min == 0 {
		s["minimum"] = r.min
	}
	if _, ok := o.given["max"]; ok || r.max < math.MaxInt32 {
		s["maximum"] = r.max
	}
	if values := append(slices.Clone(r.enum), r.in...); values != nil {
		s["enum"] = values
	}
	return s
}

func objectSchema(fields []field, extra bool) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range fields {
		properties[fields[i].name] = fields[i].withDefault()
		if fields[i].required {
			required = append(required, fields[i].name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": extra}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

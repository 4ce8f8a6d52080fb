package contract

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/wire/shape"
)

// A description is the OpenAPI file, whose parts are converted to shapes on demand.
type description struct {
	schemas    map[string]any
	responses  map[string]any
	parameters map[string]any
	bodies     map[string]any // of requests
	paths      map[string]any
	known      map[string]*shape.Shape
	amend      map[string][]amendment // by the schema that they change
	unresolved []string
}

// nonProtocolFields were added to the file by a fork and are not part of the protocol.
var nonProtocolFields = []string{"can_create_topics_group"}

// absentPattern matches sentences in which the file says that a field may be absent. The file seldom uses
// `required`.
var absentPattern = regexp.MustCompile(`(?is)(only|not|be) present|present only|present if|if present|only ` +
	`included|included only|this field is optional`)

func readDescription(path string, amendments []amendment) (*description, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read description: %w", err)
	}
	var file struct {
		Paths      map[string]any `yaml:"paths"`
		Components struct {
			Schemas    map[string]any `yaml:"schemas"`
			Responses  map[string]any `yaml:"responses"`
			Parameters map[string]any `yaml:"parameters"`
			Bodies     map[string]any `yaml:"requestBodies"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("read description: %w", err)
	}
	d := &description{
		schemas:    file.Components.Schemas,
		responses:  file.Components.Responses,
		parameters: file.Components.Parameters,
		bodies:     file.Components.Bodies,
		paths:      file.Paths,
		known:      map[string]*shape.Shape{},
		amend:      map[string][]amendment{},
	}
	for _, a := range amendments {
		if schema, ok := a.schema(); ok {
			d.amend[schema] = append(d.amend[schema], a)
		}
	}
	return d, nil
}

// named returns the amended shape of a schema.
func (d *description) named(name string) (*shape.Shape, error) {
	if s, ok := d.known[name]; ok {
		return s, nil
	}
	var s *shape.Shape
	rest := d.amend[name]
	if len(rest) > 0 && rest[0].change == define {
		made, err := parse(rest[0].Type, d.named)
		if err != nil {
			return nil, err
		}
		s, rest = made, rest[1:]
	} else if raw, ok := d.schemas[name]; ok {
		s = d.shape(raw)
	} else {
		return nil, fmt.Errorf("no schema %q", name)
	}
	own := *s // an amendment must not change a schema that this one refers to
	s = &own
	for _, a := range rest {
		_, path, _ := strings.Cut(a.At, " ")
		if err := a.apply(s, path, d.named); err != nil {
			return nil, err
		}
	}
	d.known[name] = s
	return s, nil
}

func (d *description) shape(raw any) *shape.Shape {
	m, ok := raw.(map[string]any)
	if !ok {
		return &shape.Shape{}
	}
	if ref, ok := m["$ref"].(string); ok {
		s, err := d.named(ref[strings.LastIndex(ref, "/")+1:])
		if err != nil {
			d.unresolved = append(d.unresolved, err.Error())
			return &shape.Shape{}
		}
		return s
	}
	s := &shape.Shape{}
	s.Kind, _ = m["type"].(string)
	s.Nullable, _ = m["nullable"].(bool)
	for _, e := range list(m["enum"]) {
		if text, ok := e.(string); ok {
			s.Enum = append(s.Enum, text)
		}
	}
	if _, isArray := m["items"]; isArray {
		s.Items = d.shape(m["items"])
	}
	switch more := m["additionalProperties"].(type) {
	case bool:
		s.Closed = !more
	case map[string]any:
		s.OtherValues = d.shape(more)
	}
	if props, ok := m["properties"].(map[string]any); ok {
		s.Fields = map[string]shape.Field{}
		for name, p := range props {
			s.Fields[name] = shape.Field{Shape: d.shape(p), Optional: absentPattern.MatchString(currentDescription(p))}
		}
		for _, name := range nonProtocolFields {
			delete(s.Fields, name)
		}
	}
	for _, branch := range list(m["allOf"]) {
		s = shape.Merge(s, d.shape(branch))
	}
	for _, branch := range list(m["oneOf"]) {
		s.AnyOf = append(s.AnyOf, d.shape(branch))
	}
	for _, name := range list(m["required"]) {
		if f, ok := s.Fields[name.(string)]; ok {
			f.ListedRequired = true
			s.Fields[name.(string)] = f
		}
	}
	return s
}

// currentDescription returns the description of a field without its history of changes.
func currentDescription(raw any) string {
	m, ok := raw.(map[string]any)
	if !ok {
		return ""
	}
	text, _ := m["description"].(string)
	for _, branch := range list(m["allOf"]) {
		text += " " + currentDescription(branch)
	}
	text, _, _ = strings.Cut(text, "**Changes**")
	return text
}

// success returns the shape of the 200 answer of an operation.
func (d *description) success(operation any) (*shape.Shape, bool) {
	m, _ := operation.(map[string]any)
	answers, _ := m["responses"].(map[string]any)
	ok200, _ := answers["200"].(map[string]any)
	if ref, ok := ok200["$ref"].(string); ok {
		ok200, _ = d.responses[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	content, _ := ok200["content"].(map[string]any)
	body, _ := content["application/json"].(map[string]any)
	if body == nil {
		return nil, false
	}
	return d.shape(body["schema"]), true
}

func list(raw any) []any {
	l, _ := raw.([]any)
	return l
}

package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// APIPath is the path of the pages that show the OpenAPI description. The name of an operation or an object follows.
const APIPath = "/api/docs"

// API is an OpenAPI document in the form in which pages show it.
type API struct {
	groups     []APIGroup
	operations map[string]*APIOperation // by their id
	objects    map[string]*APIObject
}

// APIGroup is the operations about one subject.
type APIGroup struct {
	Name       string
	Operations []*APIOperation
}

// APIOperation is one method of one path.
type APIOperation struct {
	ID, Method, Path, Summary, Text string

	Login      string // who can use it
	Parameters []APIField
	Answers    []APIAnswer
}

// APIAnswer is the answer with one status.
type APIAnswer struct {
	Status, Text string
	Fields       []APIField
	Object       string // the object with the fields, "" if it is only in this answer
	Example      string // JSON in several lines, "" if there is none
}

// APIObject is an object that several answers or events contain.
type APIObject struct {
	Name    string
	Fields  []APIField
	Choices []string // the objects of which it is one
}

// APIField is a parameter or a field. Fields of fields follow it, with their whole path as name.
type APIField struct {
	Name, Place, Type, Limits, Text, Example string

	Required bool
	Objects  []string // that the type names
}

// labelledFields is the data of a table of fields.
type labelledFields struct {
	Label  string
	Fields []APIField
}

type (
	apiDocument struct {
		Paths      map[string]map[string]*apiOperation
		Components struct {
			Schemas   map[string]*apiSchema
			Responses map[string]*apiResponse
		}
	}
	apiOperation struct {
		OperationID, Summary, Description string

		Tags        []string
		Security    []map[string][]string
		Parameters  []apiParameter
		RequestBody struct{ Content map[string]apiContent }
		Responses   map[string]*apiResponse
	}
	apiParameter struct {
		Name, In, Description string

		Required bool
		Schema   *apiSchema
		Content  map[string]apiContent
		Example  any
	}
	apiContent struct {
		Schema  *apiSchema
		Example any
	}
	apiResponse struct {
		Ref         string `json:"$ref"`
		Description string
		Content     map[string]apiContent
	}
	apiSchema struct {
		Ref                  string `json:"$ref"`
		Type                 any    // a name, or a list of names
		Description          string
		Properties           map[string]*apiSchema
		Required             []string
		AdditionalProperties any
		Items                *apiSchema
		AnyOf, OneOf         []*apiSchema
		Enum                 []any
		Minimum, Maximum     *float64
		MinLength, MaxLength *int
		MaxItems             *int
		Pattern              string
		Default              any
	}
)

// NewAPI reads an OpenAPI document.
func NewAPI(document []byte) (*API, error) {
	var doc apiDocument
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	a := &API{operations: map[string]*APIOperation{}, objects: map[string]*APIObject{}}
	byGroup := map[string][]*APIOperation{}
	for path, item := range doc.Paths {
		for method, op := range item {
			o := newAPIOperation(&doc, strings.ToUpper(method), path, op)
			a.operations[o.ID] = o
			for _, tag := range op.Tags {
				byGroup[tag] = append(byGroup[tag], o)
			}
		}
	}
	for name, list := range byGroup {
		slices.SortFunc(list, func(a, b *APIOperation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		})
		a.groups = append(a.groups, APIGroup{name, list})
	}
	slices.SortFunc(a.groups, func(a, b APIGroup) int { return cmp.Compare(a.Name, b.Name) })
	for name, s := range doc.Components.Schemas {
		o := &APIObject{Name: name, Fields: apiFields("", s)}
		for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
			o.Choices = append(o.Choices, one.objects()...)
		}
		a.objects[name] = o
	}
	return a, nil
}

func newAPIOperation(doc *apiDocument, method, path string, op *apiOperation) *APIOperation {
	o := &APIOperation{ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Text: op.Description,
		Login: "A login is needed."}
	switch len(op.Security) {
	case 0:
		o.Login = "No login is needed."
	case 2:
		o.Login = "Visitors without a login can use it, if the organization allows them."
	}
	for _, p := range op.Parameters {
		schema, example := p.Schema, p.Example
		if c, ok := p.Content["application/json"]; ok {
			schema, example = c.Schema, c.Example
		}
		o.Parameters = append(o.Parameters, APIField{Name: p.Name, Place: p.In, Type: schema.text(),
			Limits: schema.limits(), Text: p.Description, Required: p.Required, Example: exampleText(example)})
	}
	for _, c := range op.RequestBody.Content {
		fields := apiFields("", c.Schema)
		example, _ := c.Example.(map[string]any)
		for i := range fields {
			fields[i].Place, fields[i].Example = "body", exampleText(example[fields[i].Name])
		}
		o.Parameters = append(o.Parameters, fields...)
	}
	for status, r := range op.Responses {
		if name, ok := strings.CutPrefix(r.Ref, "#/components/responses/"); ok {
			r = doc.Components.Responses[name]
		}
		x := APIAnswer{Status: status, Text: r.Description}
		if s := r.Content["application/json"].Schema; s != nil {
			if list := s.objects(); len(list) == 1 && s.Ref != "" {
				x.Object, s = list[0], doc.Components.Schemas[list[0]]
			}
			x.Fields, x.Example = apiFields("", s), exampleLines(r.Content["application/json"].Example)
		}
		o.Answers = append(o.Answers, x)
	}
	slices.SortFunc(o.Answers, func(a, b APIAnswer) int { return cmp.Compare(a.Status, b.Status) })
	return o
}

func exampleText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: encode an example: " + err.Error())
	}
	return string(b)
}

// exampleLines returns an example as JSON in several lines.
func exampleLines(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("BUG: encode an example: " + err.Error())
	}
	return string(b)
}

// apiFields returns the fields of an object, and those of the objects in it that have no name of their own.
func apiFields(prefix string, s *apiSchema) (out []APIField) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		out = append(out, APIField{Name: prefix + name, Type: p.text(), Limits: p.limits(), Text: p.Description,
			Required: slices.Contains(s.Required, name), Objects: p.objects()})
		out = append(out, apiFields(prefix+name+".", p.inner())...)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		if one.Ref == "" {
			out = append(out, apiFields(prefix, one)...)
		}
	}
	return out
}

// inner returns the object whose fields are shown below a list or an object without a name of its own.
func (s *apiSchema) inner() *apiSchema {
	if s.Items != nil {
		return s.Items.inner()
	}
	return s
}

// objects returns the names of objects that a type contains.
func (s *apiSchema) objects() (out []string) {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		out = append(out, name)
	}
	if s.Items != nil {
		out = append(out, s.Items.objects()...)
	}
	for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
		out = append(out, one.objects()...)
	}
	return out
}

// text returns a type in words.
func (s *apiSchema) text() string {
	if len(s.AnyOf)+len(s.OneOf) > 0 {
		var parts []string
		for _, one := range slices.Concat(s.AnyOf, s.OneOf) {
			if part := one.text(); !slices.Contains(parts, part) {
				parts = append(parts, part)
			}
		}
		return strings.Join(parts, " or ")
	}
	if names := s.objects(); s.Ref != "" {
		return names[0]
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, exampleText(v))
		}
		return strings.Join(values, " | ")
	}
	if s.Items != nil {
		return "list of " + s.Items.text()
	}
	switch kind := s.Type.(type) {
	case string:
		return kind
	case []any:
		var kinds []string
		for _, k := range kind {
			kinds = append(kinds, fmt.Sprint(k))
		}
		return strings.Join(kinds, " or ")
	}
	return "any"
}

// limits returns the limits and the default of a value in words.
func (s *apiSchema) limits() string {
	var out []string
	add := func(format string, v any) { out = append(out, fmt.Sprintf(format, v)) }
	if s.Minimum != nil {
		add("at least %.0f", *s.Minimum)
	}
	if s.Maximum != nil {
		add("at most %.0f", *s.Maximum)
	}
	if s.MinLength != nil {
		add("at least %d characters", *s.MinLength)
	}
	if s.MaxLength != nil {
		add("at most %d characters", *s.MaxLength)
	}
	if s.MaxItems != nil {
		add("at most %d elements", *s.MaxItems)
	}
	if s.Pattern != "" {
		add("matches %s", s.Pattern)
	}
	if s.Default != nil {
		add("default %s", exampleText(s.Default))
	}
	return strings.Join(out, ", ")
}

// apiPage is the data of a page about the API: one of the fields is set.
type apiPage struct {
	Groups    []APIGroup
	Operation *APIOperation
	Object    *APIObject
}

// Index is the page with all operations.
func (a *API) Index() View {
	return View{Template: "api", Title: "API", Wide: true, Data: apiPage{Groups: a.groups}}
}

// Page is the page about an operation or an object. It reports false if there is none with the name.
func (a *API) Page(name string) (View, bool) {
	if o := a.operations[name]; o != nil {
		return View{Template: "api", Title: o.Method + " " + o.Path, Wide: true, Data: apiPage{Operation: o}}, true
	}
	if o := a.objects[name]; o != nil {
		return View{Template: "api", Title: o.Name, Wide: true, Data: apiPage{Object: o}}, true
	}
	return View{}, false
}

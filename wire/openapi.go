package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"parley/wire/form"
)

// OpenAPI describes every endpoint this server answers as an OpenAPI 3.1 document. It is made from the same table and
// forms that decode requests, so it cannot say anything else than what the server does.
func OpenAPI() []byte {
	doc, err := json.MarshalIndent(describe(endpoints), "", " ")
	if err != nil {
		panic("BUG: the description does not encode: " + err.Error())
	}
	return append(doc, '\n')
}

// operation is one method of one shape of path. Endpoints that differ only in how they name a piece of the path, by id
// or by address, are one operation to a reader of URLs.
type operation struct {
	method string
	path   string
	of     []*Endpoint
}

func describe(endpoints []Endpoint) obj {
	names := pieceNames(endpoints)
	var ops []*operation
	for i := range endpoints {
		e := &endpoints[i]
		if e.Dev {
			continue
		}
		path := pathOf(e.Path, names)
		at := slices.IndexFunc(ops, func(o *operation) bool { return o.method == e.Method && o.path == path })
		if at < 0 {
			at, ops = len(ops), append(ops, &operation{method: e.Method, path: path})
		}
		ops[at].of = append(ops[at].of, e)
	}
	paths := obj{}
	for _, o := range ops {
		item, _ := paths[o.path].(obj)
		if item == nil {
			item = obj{}
			paths[o.path] = item
		}
		item[strings.ToLower(o.method)] = o.describe()
	}
	return obj{
		"openapi": "3.1.0",
		"info":    obj{"title": "Parley", "version": Version, "description": "Team chat over the Zulip API.", "x-feature-level": FeatureLevel},
		"servers": []any{obj{"url": "/api/v1"}},
		"paths":   paths,
		"components": obj{
			"securitySchemes": obj{"basic": obj{"type": "http", "scheme": "basic", "description": "The account's email address and its API key."}},
			"schemas": obj{
				"Success": obj{"type": "object", "required": []string{"result", "msg"}, "properties": obj{
					"result": obj{"const": "success"}, "msg": obj{"const": ""},
					"ignored_parameters_unsupported": obj{"type": "array", "items": obj{"type": "string"}, "description": "Parameters that were sent and mean nothing here."}}},
				"Error": obj{"type": "object", "required": []string{"result", "msg"}, "properties": obj{
					"result": obj{"const": "error"}, "msg": obj{"type": "string"}, "code": obj{"type": "string"}}},
			},
			"responses": obj{
				"Success": obj{"description": "Done.", "content": obj{"application/json": obj{"schema": obj{"$ref": "#/components/schemas/Success"}}}},
				"Error":   obj{"description": "Refused; nothing was changed.", "content": obj{"application/json": obj{"schema": obj{"$ref": "#/components/schemas/Error"}}}},
			},
		},
	}
}

func (o *operation) describe() obj {
	var path, fields []form.Param
	open, visitors := true, false
	for _, e := range o.of {
		open, visitors = open && e.Open, visitors || e.Visitors
		for _, p := range e.Params() {
			switch {
			case p.Where == "path":
				path = append(path, p)
			case !slices.ContainsFunc(fields, func(q form.Param) bool { return q.Name == p.Name }):
				fields = append(fields, p)
			}
		}
	}
	parameters := []any{}
	for i, name := range pieces(o.path) {
		var schemas []any
		for _, p := range path {
			if n := pieces(o.of[0].Path); len(o.of) == 1 && p.Name != n[i] {
				continue
			}
			if s := schemaOf(p.Schema); len(o.of) == 1 || slices.Contains(strings.Split(name, "_or_"), p.Name) || p.Name == name {
				schemas = append(schemas, s)
			}
		}
		schema := any(obj{"type": "string"})
		if len(schemas) == 1 {
			schema = schemas[0]
		} else if len(schemas) > 1 {
			schema = obj{"anyOf": schemas}
		}
		parameters = append(parameters, obj{"name": name, "in": "path", "required": true, "schema": schema})
	}
	d := obj{"operationId": operationID(o.method, o.path), "responses": obj{
		"200": obj{"$ref": "#/components/responses/Success"}, "4XX": obj{"$ref": "#/components/responses/Error"}, "5XX": obj{"$ref": "#/components/responses/Error"}}}
	switch {
	case open:
		d["security"] = []any{}
	case visitors:
		d["security"] = []any{obj{"basic": []string{}}, obj{}}
	default:
		d["security"] = []any{obj{"basic": []string{}}}
	}
	if o.method == "GET" {
		for _, p := range fields {
			x := obj{"name": p.Name, "in": "query", "required": p.Required}
			if p.JSON {
				x["content"] = obj{"application/json": obj{"schema": schemaOf(p.Schema)}}
			} else {
				x["schema"] = schemaOf(p.Schema)
			}
			if len(p.Aliases) > 0 {
				x["x-aliases"] = p.Aliases
			}
			parameters = append(parameters, x)
		}
	} else if len(fields) > 0 {
		d["requestBody"] = body(fields)
	}
	if len(parameters) > 0 {
		d["parameters"] = parameters
	}
	return d
}

// body is the parameters of a request that is not a GET: form fields, some of them JSON.
func body(fields []form.Param) obj {
	properties, encoding, required := obj{}, obj{}, []string{}
	for _, p := range fields {
		s := schemaOf(p.Schema)
		if m, ok := s.(obj); ok && len(p.Aliases) > 0 {
			m["x-aliases"] = p.Aliases
		}
		properties[p.Name] = s
		if p.JSON {
			encoding[p.Name] = obj{"contentType": "application/json"}
		}
		if p.Required {
			required = append(required, p.Name)
		}
	}
	schema := obj{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	content := obj{"schema": schema}
	if len(encoding) > 0 {
		content["encoding"] = encoding
	}
	return obj{"required": len(required) > 0, "content": obj{"application/x-www-form-urlencoded": content}}
}

// Params is what an endpoint takes, in the order of its form; what clients need not know of is left out.
func (e *Endpoint) Params() (out []form.Param) {
	for _, f := range []*form.Form{e.Form, e.Rows} {
		if f == nil {
			continue
		}
		for _, p := range f.Describe() {
			if !p.Hidden {
				out = append(out, p)
			}
		}
	}
	return out
}

// schemaOf says in JSON Schema's words of today what forms say with "nullable".
func schemaOf(x any) any {
	switch x := x.(type) {
	case map[string]any:
		out := make(obj, len(x))
		for k, v := range maps.All(x) {
			if k != "nullable" {
				out[k] = schemaOf(v)
			}
		}
		if x["nullable"] != true {
			return out
		}
		if t, ok := out["type"].(string); ok && out["enum"] == nil {
			out["type"] = []string{t, "null"}
			return out
		}
		return obj{"anyOf": []any{out, obj{"type": "null"}}}
	case []any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = schemaOf(v)
		}
		return out
	case []map[string]any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = schemaOf(v)
		}
		return out
	}
	return x
}

// shape is a path without the names of its pieces.
func shape(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "{}"
		}
	}
	return strings.Join(parts, "/")
}

// pieces is the names of a path's variable pieces.
func pieces(path string) (out []string) {
	for _, p := range strings.Split(path, "/") {
		if strings.HasPrefix(p, "{") {
			name, _, _ := strings.Cut(strings.Trim(p, "{}"), ":")
			out = append(out, name)
		}
	}
	return out
}

// pieceNames is one name for every variable piece of a shape: user_id_or_email where endpoints name it differently.
func pieceNames(endpoints []Endpoint) map[string][]string {
	out := map[string][]string{}
	for _, e := range endpoints {
		if e.Dev {
			continue
		}
		s := shape(e.Path)
		for i, n := range pieces(e.Path) {
			switch have := out[s]; {
			case len(have) <= i:
				out[s] = append(have, n)
			case !slices.Contains(strings.Split(have[i], "_or_"), n) && have[i] != n:
				have[i] += "_or_" + n
			}
		}
	}
	return out
}

// pathOf is a path with the names its shape has.
func pathOf(path string, names map[string][]string) string {
	parts, n := strings.Split(path, "/"), 0
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "{" + names[shape(path)][n] + "}"
			n++
		}
	}
	return strings.Join(parts, "/")
}

func operationID(method, path string) string {
	return strings.ToLower(method) + strings.NewReplacer("/", "-", "{", "", "}", "", "_", "-").Replace(path)
}

package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley/wire/form"
	"parley/wire/shape"
)

// obj is an object of the OpenAPI document.
type obj = map[string]any

// OpenAPI returns an OpenAPI 3.1 document of every endpoint this server implements. Requests are described from the
// forms that decode them, answers from their structs, which tests check against every real answer. The texts are those
// of descriptions.txt, and examples of answers are made from the schemas.
func OpenAPI() []byte {
	doc, errors := describe(endpoints)
	maps.Copy(doc["components"].(obj)["schemas"].(obj), errors)
	addDescriptions(doc)
	addExamples(doc)
	return encodeDocument(doc)
}

// OpenAPISchemas returns the schemas of OpenAPI without the endpoints. The types of the client are generated from it.
func OpenAPISchemas() []byte {
	doc, _ := describe(endpoints)
	doc["paths"] = obj{}
	doc["components"] = obj{"schemas": doc["components"].(obj)["schemas"]}
	return encodeDocument(doc)
}

func encodeDocument(doc obj) []byte {
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		panic("BUG: encode the OpenAPI document: " + err.Error())
	}
	return append(text, '\n')
}

// apiPrefix precedes every path of the protocol.
const apiPrefix = "/api/v1"

// operation is one method of one path pattern. Endpoints that differ only in how they identify the resource, by id or
// by email address, are one operation.
type operation struct {
	method    string
	path      string
	endpoints []*Endpoint
}

// describe returns the document, and the schemas of errors that its responses name.
func describe(endpoints []Endpoint) (doc, errors obj) {
	names := pathParameterNames(endpoints)
	var ops []*operation
	for i := range endpoints {
		e := &endpoints[i]
		if e.Dev {
			continue
		}
		path := documentedPath(e.Path, names)
		at := slices.IndexFunc(ops, func(o *operation) bool { return o.method == e.Method && o.path == path })
		if at < 0 {
			at, ops = len(ops), append(ops, &operation{method: e.Method, path: path})
		}
		ops[at].endpoints = append(ops[at].endpoints, e)
	}
	paths, schemas := obj{}, obj{}
	errors = obj{}
	for _, o := range ops {
		item, _ := paths[apiPrefix+o.path].(obj)
		if item == nil {
			item = obj{}
			paths[apiPrefix+o.path] = item
		}
		item[strings.ToLower(o.method)] = o.describe(schemas)
	}
	// an event matches exactly one shape; type alone does not identify it, so there is no discriminator
	if e, ok := schemas["Event"].(obj); ok {
		e["oneOf"] = e["anyOf"]
		delete(e, "anyOf")
	}
	for _, f := range FileRoutes {
		paths[strings.ReplaceAll(f.Path, ":*", "")] = f.describe()
	}
	return obj{
		"openapi": "3.1.0",
		"info": obj{"title": "Parley", "version": Version, "description": "Team chat over the Zulip API.",
			"x-feature-level": FeatureLevel},
		"servers": []any{obj{"url": "/"}},
		"paths":   paths,
		"components": obj{
			"securitySchemes": obj{"basic": obj{"type": "http", "scheme": "basic",
				"description": "The account's email address and its API key."}},
			"schemas":   schemas,
			"responses": errorResponses(errors),
		},
	}, errors
}

const schemaRefPrefix = "#/components/schemas/"

// addSchema returns the schema of a shape and adds the schemas of the objects it names.
func addSchema(schemas obj, s *shape.Shape) obj {
	var list func(*shape.Shape)
	list = func(s *shape.Shape) {
		if _, ok := schemas[s.Name]; !ok {
			schemas[s.Name] = obj{} // placeholder against endless recursion
			schemas[s.Name] = s.SchemaBody(schemaRefPrefix, list)
		}
	}
	return s.Schema(schemaRefPrefix, list)
}

// statusDescriptions describes each error status.
var statusDescriptions = map[int]string{
	400: "The request was refused; nothing was changed.",
	401: "The credentials are missing, wrong or no longer valid.",
	403: "This kind of account is not allowed to use the endpoint.",
	404: "The resource does not exist.",
	405: "The path supports other methods.",
	413: "The request is too large.",
	417: "The server does not support the Expect header of the request.",
	429: "Too many requests; retry-after is the number of seconds to wait.",
	431: "The URL or the headers are too long.",
	500: "Internal server error.",
	501: "The server does not support the encoding of the body.",
	502: "A service that this server depends on failed.",
	503: "The server is busy, or the feature is not configured.",
	505: "The server does not support this version of HTTP.",
}

// errorResponses returns the response objects of all error statuses, and adds the schemas that they name.
func errorResponses(schemas obj) obj {
	out := obj{}
	for status, text := range statusDescriptions {
		out[responseName(status)] = obj{"description": text,
			"content": obj{"application/json": obj{"schema": errorSchema(status, schemas)}}}
	}
	return out
}

func responseName(status int) string { return "Error" + strconv.Itoa(status) }

// tusStatusDescriptions describes the statuses that only resumable uploads use, or use with more codes.
var tusStatusDescriptions = map[int]string{
	409: "The upload has another offset; request it with HEAD.",
	412: "The server does not support this version of tus.",
	413: "The file is too large, or exceeds the quota of the organization.",
	415: "The content type is not that of a piece.",
	423: "Another request is writing to the upload.",
	429: "Too many requests, or too many unfinished uploads.",
}

// tusResponses returns the errors of resumable uploads. Requests that are refused before the endpoint runs have no
// field message.
func tusResponses() obj {
	out := obj{}
	descriptions := maps.Clone(statusDescriptions)
	maps.Copy(descriptions, tusStatusDescriptions)
	for status, text := range descriptions {
		var list []any
		for _, c := range slices.Concat(errorCodes, tusErrorCodes) {
			if slices.Contains(c.statuses, status) {
				list = append(list, withMessage(c.shape()).SchemaBody(schemaRefPrefix, nil))
			}
		}
		if s := onlyError(status); s != nil {
			list = append(list, withMessage(s).SchemaBody(schemaRefPrefix, nil))
		}
		out[strconv.Itoa(status)] = obj{"description": text,
			"content": obj{"application/json": obj{"schema": obj{"anyOf": list}}}}
	}
	return out
}

// errorSchema has one object for all codes without further fields, and one for each code that has some.
func errorSchema(status int, schemas obj) any {
	named := func(s *shape.Shape, name string) obj {
		out := *s
		out.Name = "Error" + name
		return addSchema(schemas, &out)
	}
	if s := onlyError(status); s != nil {
		return named(s, "Of"+strconv.Itoa(status))
	}
	var bare []string
	var list []any
	for _, c := range errorCodes {
		switch {
		case !slices.Contains(c.statuses, status):
		case c.fields == nil:
			bare = append(bare, c.name)
		default:
			list = append(list, named(c.shape(), camelCase(strings.ToLower(c.name), "_")))
		}
	}
	if bare != nil {
		list = append(list, named(errorShapeOf(bare...), "Of"+strconv.Itoa(status)))
	}
	if len(list) == 1 {
		return list[0]
	}
	return obj{"anyOf": list}
}

// onlyError returns the shape of the errors of a status that has only one form, or nil.
func onlyError(status int) *shape.Shape {
	if status == 405 {
		return ErrorShape(status, "BAD_REQUEST")
	}
	return ErrorShape(status, "")
}

// responses returns the responses of an operation, by status.
func (o *operation) responses(schemas obj) obj {
	if tus := o.endpoints[0].tus; tus != nil {
		return tus.responses(schemas)
	}
	out := obj{}
	for status := range statusDescriptions {
		out[strconv.Itoa(status)] = obj{"$ref": "#/components/responses/" + responseName(status)}
	}
	var answers []any
	for _, e := range o.endpoints {
		if e.redirects {
			out["302"] = redirectResponse
		}
		if s := e.SuccessShape(); s != nil && !slices.ContainsFunc(o.endpoints, func(x *Endpoint) bool {
			return x != e && x.answerType == e.answerType && len(answers) > 0
		}) {
			s.Name = o.answerName(len(answers))
			if len(e.answerShape().Fields) == 0 {
				s.Name = "Success"
			}
			answers = append(answers, addSchema(schemas, s))
		}
	}
	switch len(answers) {
	case 0:
	case 1:
		out["200"] = obj{"description": "Done.", "content": obj{"application/json": obj{"schema": answers[0]}}}
	default:
		out["200"] = obj{"description": "Done.",
			"content": obj{"application/json": obj{"schema": obj{"anyOf": answers}}}}
	}
	return out
}

// responses returns the responses of one request of a resumable upload.
func (r *tusDescription) responses(schemas obj) obj {
	out := tusResponses()
	for _, s := range r.successes {
		headers := obj{}
		for _, name := range s.headers {
			headers[name] = obj{"required": true, "schema": obj{"type": "string"}}
		}
		answer := obj{"description": s.description, "headers": headers}
		if body := s.shape(); body != nil {
			answer["content"] = obj{"application/json": obj{"schema": addSchema(schemas, body)}}
		}
		out[strconv.Itoa(s.status)] = answer
	}
	return out
}

func (o *operation) open() bool {
	return !slices.ContainsFunc(o.endpoints, func(e *Endpoint) bool { return !e.Open })
}

var redirectResponse = obj{"description": "Redirect to the resource.",
	"headers": obj{"Location": obj{"required": true, "schema": obj{"type": "string"}}}}

// describe returns the path item of a file route. Its path is outside the API prefix.
func (f FileRoute) describe() obj {
	path := strings.ReplaceAll(f.Path, ":*", "")
	parameters := []any{}
	for _, name := range pathParameters(path) {
		parameters = append(parameters, obj{"name": name, "in": "path", "required": true,
			"schema": obj{"type": "string"}})
	}
	refs := obj{}
	for _, status := range []int{400, 401, 403, 404, 503} {
		refs[strconv.Itoa(status)] = obj{"$ref": "#/components/responses/" + responseName(status)}
	}
	if f.Redirects {
		refs["302"] = redirectResponse
	} else {
		file := obj{"description": f.Description, "content": obj{f.Types: obj{}}}
		refs["200"], refs["206"], refs["416"] = file, file,
			obj{"description": "The range is outside of the file.", "content": obj{"application/json": obj{}}}
	}
	d := obj{"operationId": operationID("get", path), "summary": strings.TrimSuffix(f.Description, "."),
		"description": f.Description, "parameters": parameters, "responses": refs, "security": []any{}}
	if f.Private {
		parameters = append(parameters, obj{"name": "api_key", "in": "query", "required": false,
			"schema": obj{"type": "string"}})
		d["parameters"], d["security"] = parameters, []any{obj{"basic": []string{}}, obj{}}
	}
	return obj{"get": d}
}

// describe returns the operation object.
func (o *operation) describe(schemas obj) obj {
	var path, fields []form.Param
	var file *fileField
	visitors := false
	for _, e := range o.endpoints {
		visitors = visitors || e.Visitors
		if e.file != nil {
			file = e.file
		}
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
	for i, name := range pathParameters(o.path) {
		var schemas []any
		for _, p := range path {
			if n := pathParameters(o.endpoints[0].Path); len(o.endpoints) == 1 && p.Name != n[i] {
				continue
			}
			if s := toSchema31(p.Schema); len(o.endpoints) == 1 ||
				slices.Contains(strings.Split(name, "_or_"), p.Name) || p.Name == name {
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
	d := obj{"operationId": operationID(o.method, o.path), "responses": o.responses(schemas)}
	if reason := o.endpoints[0].Extension; reason != "" {
		d[extensionMark] = reason
	}
	switch {
	case o.open():
		d["security"] = []any{}
	case visitors:
		d["security"] = []any{obj{"basic": []string{}}, obj{}}
	default:
		d["security"] = []any{obj{"basic": []string{}}}
	}
	fields = slices.DeleteFunc(fields, func(p form.Param) bool {
		if p.Where == "header" {
			parameters = append(parameters, obj{"name": p.Name, "in": "header", "required": p.Required,
				"schema": toSchema31(p.Schema)})
		}
		return p.Where == "header"
	})
	if o.method == "GET" {
		for _, p := range fields {
			x := obj{"name": p.Name, "in": "query", "required": p.Required}
			if p.JSON && !isPlain(p.Schema) {
				x["content"] = obj{"application/json": obj{"schema": toSchema31(p.Schema)}}
			} else {
				x["schema"] = toSchema31(p.Schema)
			}
			addMarks(x, p)
			parameters = append(parameters, x)
		}
	} else if len(fields) > 0 || file != nil {
		d["requestBody"] = requestBody(fields, file)
	}
	if tus := o.endpoints[0].tus; tus != nil && tus.body != "" {
		d["requestBody"] = obj{"description": tus.body,
			"content": obj{PieceType: obj{"schema": obj{"type": "string", "format": "binary"}}}}
	}
	if len(parameters) > 0 {
		d["parameters"] = parameters
	}
	return d
}

// isPlain reports whether the values of a schema are the same as JSON and as text: numbers, true and false. Generators
// of clients know how to send them in a query, and many do not know JSON there.
func isPlain(schema obj) bool {
	kind := schema["type"]
	return schema["nullable"] != true && (kind == "integer" || kind == "number" || kind == "boolean")
}

// extensionMark is the key with the reason why an endpoint or parameter exists that the protocol does not have.
const extensionMark = "x-extension"

// addMarks adds to the description of a parameter what OpenAPI has no key for.
func addMarks(description obj, p form.Param) {
	if len(p.Aliases) > 0 {
		description["x-aliases"] = p.Aliases
	}
	if p.Extension != "" {
		description[extensionMark] = p.Extension
	}
}

// requestBody describes the parameters of a request other than GET: form fields, some of them JSON, and a file.
func requestBody(fields []form.Param, file *fileField) obj {
	properties, encoding, required := obj{}, obj{}, []string{}
	for _, p := range fields {
		s := toSchema31(p.Schema)
		if m, ok := s.(obj); ok {
			addMarks(m, p)
		}
		properties[p.Name] = s
		if p.JSON {
			encoding[p.Name] = obj{"contentType": "application/json"}
		}
		if p.Required {
			required = append(required, p.Name)
		}
	}
	kind := "application/x-www-form-urlencoded"
	if file != nil {
		kind = "multipart/form-data"
		properties["file"], encoding["file"] = obj{"type": "string", "format": "binary", "x-max-bytes": file.max},
			obj{"contentType": file.types}
		required = append(required, "file")
	}
	schema := obj{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	content := obj{"schema": schema}
	if len(encoding) > 0 {
		content["encoding"] = encoding
	}
	return obj{"required": len(required) > 0, "content": obj{kind: content}}
}

// Params returns the parameters of an endpoint in the order of its form. Hidden parameters are left out.
func (e *Endpoint) Params() (out []form.Param) {
	for _, f := range []*form.Form{e.Form, e.Settings} {
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

// toSchema31 replaces "nullable", which forms use, by the null type of JSON Schema 2020-12.
func toSchema31(x any) any {
	switch x := x.(type) {
	case map[string]any:
		out := make(obj, len(x))
		for k, v := range maps.All(x) {
			if k != "nullable" {
				out[k] = toSchema31(v)
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
			out[i] = toSchema31(v)
		}
		return out
	case []map[string]any:
		out := make([]any, len(x))
		for i, v := range x {
			out[i] = toSchema31(v)
		}
		return out
	}
	return x
}

// pathPattern returns a path without the names of its parameters.
func pathPattern(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "{}"
		}
	}
	return strings.Join(parts, "/")
}

// pathParameters returns the names of the parameters in a path.
func pathParameters(path string) (out []string) {
	for _, p := range strings.Split(path, "/") {
		if strings.HasPrefix(p, "{") {
			name, _, _ := strings.Cut(strings.Trim(p, "{}"), ":")
			out = append(out, name)
		}
	}
	return out
}

// pathParameterNames returns one name for each parameter of a path pattern. Different names are joined:
// user_id_or_email.
func pathParameterNames(endpoints []Endpoint) map[string][]string {
	out := map[string][]string{}
	for _, e := range endpoints {
		if e.Dev {
			continue
		}
		s := pathPattern(e.Path)
		for i, n := range pathParameters(e.Path) {
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

// documentedPath returns a path with the joined parameter names of its pattern.
func documentedPath(path string, names map[string][]string) string {
	parts, n := strings.Split(path, "/"), 0
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "{" + names[pathPattern(path)][n] + "}"
			n++
		}
	}
	return strings.Join(parts, "/")
}

// answerName returns the name of an answer in the OpenAPI document. nth numbers the different answers of the operation.
func (o *operation) answerName(nth int) string {
	name := camelCase(operationID(o.method, o.path), "-") + "Answer"
	if nth > 0 {
		name += strconv.Itoa(nth + 1)
	}
	return name
}

// camelCase joins words with their first letters in upper case.
func camelCase(words, separator string) string {
	var b strings.Builder
	for _, word := range strings.Split(words, separator) {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func operationID(method, path string) string {
	return strings.ToLower(method) + strings.NewReplacer("/", "-", "{", "", "}", "", "_", "-").Replace(path)
}

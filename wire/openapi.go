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

// OpenAPI describes every endpoint this server answers as an OpenAPI 3.1 document. Requests are
// made from the same table and forms that decode them; answers from what endpoints say of them in that table, which tests
// hold every real answer against.
func OpenAPI() []byte {
	doc, err := json.MarshalIndent(describe(endpoints), "", " ")
	if err != nil {
		panic("BUG: the description does not encode: " + err.Error())
	}
	return append(doc, '\n')
}

// prefix is before every path of the protocol.
const prefix = "/api/v1"

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
	paths, schemas := obj{}, obj{}
	for _, o := range ops {
		item, _ := paths[prefix+o.path].(obj)
		if item == nil {
			item = obj{}
			paths[prefix+o.path] = item
		}
		item[strings.ToLower(o.method)] = o.describe(schemas)
	}
	if e, ok := schemas["Event"].(obj); ok { // no event is of two forms; type alone does not tell them apart, so there is no discriminator
		e["oneOf"] = e["anyOf"]
		delete(e, "anyOf")
	}
	for _, f := range Fetches {
		paths[strings.ReplaceAll(f.Path, ":*", "")] = f.describe()
	}
	return obj{
		"openapi": "3.1.0",
		"info":    obj{"title": "Parley", "version": Version, "description": "Team chat over the Zulip API.", "x-feature-level": FeatureLevel},
		"servers": []any{obj{"url": "/"}},
		"paths":   paths,
		"components": obj{
			"securitySchemes": obj{"basic": obj{"type": "http", "scheme": "basic", "description": "The account's email address and its API key."}},
			"schemas":         schemas,
			"responses":       errorResponses(),
		},
	}
}

const schemasAt = "#/components/schemas/"

// schemaIn is a shape as a schema; the objects it names are put into schemas.
func schemaIn(schemas obj, s *shape.Shape) obj {
	var list func(*shape.Shape)
	list = func(s *shape.Shape) {
		if _, ok := schemas[s.Name]; !ok {
			schemas[s.Name] = obj{} // it is being made
			schemas[s.Name] = s.Body(schemasAt, list)
		}
	}
	return s.Schema(schemasAt, list)
}

// statusWords is what each status of an error tells.
var statusWords = map[int]string{
	400: "Refused; nothing was changed.",
	401: "The credentials are missing, wrong or no longer good.",
	403: "Not for this kind of account.",
	404: "There is nothing of that name.",
	405: "The path takes other methods.",
	413: "The request is too large.",
	417: "The request expects what this server does not do.",
	429: "Too many requests; retry-after says when to try again, in seconds.",
	431: "The address or the headers are too long.",
	500: "The server failed.",
	501: "The body comes in a coding this server does not know.",
	502: "A service this server passes things on to failed.",
	503: "Not now, or not on this server.",
	505: "Not a version of HTTP this server speaks.",
}

// errorResponses is the errors of each status, by code.
func errorResponses() obj {
	out := obj{}
	for status, words := range statusWords {
		out[responseName(status)] = obj{"description": words, "content": obj{"application/json": obj{"schema": errorSchema(status)}}}
	}
	return out
}

func responseName(status int) string { return "Error" + strconv.Itoa(status) }

// tusStatusWords is what those statuses tell that only uploads in pieces have, or have with more codes.
var tusStatusWords = map[int]string{
	409: "The upload stands elsewhere; ask for its offset.",
	412: "Not a version of tus this server speaks.",
	413: "The file is, or all files of the organization would be, too large.",
	415: "The body is not a piece.",
	423: "Another request is writing to the upload.",
	429: "Too many requests, or too many unfinished uploads.",
}

// tusResponses is the errors of uploads in pieces. What is refused before anybody looks at the endpoint has no message.
func tusResponses() obj {
	out := obj{}
	words := maps.Clone(statusWords)
	maps.Copy(words, tusStatusWords)
	for status, text := range words {
		var list []any
		for _, c := range slices.Concat(codes, tusCodes) {
			if slices.Contains(c.statuses, status) {
				list = append(list, withMessage(shape.Merge(refusedWith(c.name), saying(c.fields))).Body(schemasAt, nil))
			}
		}
		if s := Refused(status, ""); s != nil {
			list = append(list, withMessage(s).Body(schemasAt, nil))
		}
		out[strconv.Itoa(status)] = obj{"description": text, "content": obj{"application/json": obj{"schema": obj{"anyOf": list}}}}
	}
	return out
}

// errorSchema is one object for all codes that say nothing more, and one for each that does.
func errorSchema(status int) any {
	if s := Refused(status, ""); s != nil {
		return s.Body(schemasAt, nil)
	}
	var bare []any
	var list []any
	for _, c := range codes {
		switch {
		case !slices.Contains(c.statuses, status):
		case c.fields == "{}":
			bare = append(bare, c.name)
		default:
			list = append(list, Refused(status, c.name).Body(schemasAt, nil))
		}
	}
	if bare != nil {
		s := saying("{result: 'error', msg: str, code: str}").Body(schemasAt, nil)
		s["properties"].(obj)["code"].(obj)["enum"] = bare
		list = append(list, s)
	}
	if len(list) == 1 {
		return list[0]
	}
	return obj{"anyOf": list}
}

// responses is what an operation may answer.
func (o *operation) responses(schemas obj) obj {
	if tus := o.of[0].tus; tus != nil {
		return tus.responses(schemas)
	}
	out := obj{}
	for status := range statusWords {
		out[strconv.Itoa(status)] = obj{"$ref": "#/components/responses/" + responseName(status)}
	}
	var answers []any
	for _, e := range o.of {
		if e.leads {
			out["302"] = redirect
		}
		if s := e.Said(); s != nil && !slices.ContainsFunc(o.of, func(x *Endpoint) bool { return x != e && x.answer == e.answer && len(answers) > 0 }) {
			answers = append(answers, schemaIn(schemas, s))
		}
	}
	switch len(answers) {
	case 0:
	case 1:
		out["200"] = obj{"description": "Done.", "content": obj{"application/json": obj{"schema": answers[0]}}}
	default:
		out["200"] = obj{"description": "Done.", "content": obj{"application/json": obj{"schema": obj{"anyOf": answers}}}}
	}
	return out
}

// responses is what a step of an upload in pieces may answer.
func (r *resumable) responses(schemas obj) obj {
	out := tusResponses()
	for _, s := range r.successes {
		headers := obj{}
		for _, name := range s.headers {
			headers[name] = obj{"required": true, "schema": obj{"type": "string"}}
		}
		answer := obj{"description": s.what, "headers": headers}
		if s.said != "" {
			answer["content"] = obj{"application/json": obj{"schema": schemaIn(schemas, shape.Merge(saying(envelope), saying(s.said)))}}
		}
		out[strconv.Itoa(s.status)] = answer
	}
	return out
}

func (o *operation) open() bool {
	return !slices.ContainsFunc(o.of, func(e *Endpoint) bool { return !e.Open })
}

var redirect = obj{"description": "It is at another address.", "headers": obj{"Location": obj{"required": true, "schema": obj{"type": "string"}}}}

// describe is a path's only operation, outside the protocol's prefix.
func (f Fetch) describe() obj {
	path := strings.ReplaceAll(f.Path, ":*", "")
	parameters := []any{}
	for _, name := range pieces(path) {
		parameters = append(parameters, obj{"name": name, "in": "path", "required": true, "schema": obj{"type": "string"}})
	}
	refs := obj{}
	for _, status := range []int{401, 403, 404, 503} {
		refs[strconv.Itoa(status)] = obj{"$ref": "#/components/responses/" + responseName(status)}
	}
	if f.Leads {
		refs["302"] = redirect
	} else {
		file := obj{"description": f.What, "content": obj{f.Types: obj{}}}
		refs["200"], refs["206"], refs["416"] = file, file, obj{"description": "The range is not of the file.", "content": obj{"application/json": obj{}}}
	}
	d := obj{"operationId": operationID("get", path), "summary": f.What, "parameters": parameters, "responses": refs, "security": []any{}}
	if f.Private {
		parameters = append(parameters, obj{"name": "api_key", "in": "query", "required": false, "schema": obj{"type": "string"}})
		d["parameters"], d["security"] = parameters, []any{obj{"basic": []string{}}, obj{}}
	}
	return obj{"get": d}
}

func (o *operation) describe(schemas obj) obj {
	var path, fields []form.Param
	var file *fileField
	visitors := false
	for _, e := range o.of {
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
	d := obj{"operationId": operationID(o.method, o.path), "responses": o.responses(schemas)}
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
			parameters = append(parameters, obj{"name": p.Name, "in": "header", "required": p.Required, "schema": schemaOf(p.Schema)})
		}
		return p.Where == "header"
	})
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
	} else if len(fields) > 0 || file != nil {
		d["requestBody"] = body(fields, file)
	}
	if tus := o.of[0].tus; tus != nil && tus.body != "" {
		d["requestBody"] = obj{"description": tus.body, "content": obj{PieceType: obj{"schema": obj{"type": "string", "format": "binary"}}}}
	}
	if len(parameters) > 0 {
		d["parameters"] = parameters
	}
	return d
}

// body is the parameters of a request that is not a GET: form fields, some of them JSON, and a file.
func body(fields []form.Param, file *fileField) obj {
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
	kind := "application/x-www-form-urlencoded"
	if file != nil {
		kind = "multipart/form-data"
		properties["file"], encoding["file"] = obj{"type": "string", "format": "binary", "x-max-bytes": file.max}, obj{"contentType": file.types}
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

// shapeOf is a path without the names of its pieces.
func shapeOf(path string) string {
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
		s := shapeOf(e.Path)
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
			parts[i] = "{" + names[shapeOf(path)][n] + "}"
			n++
		}
	}
	return strings.Join(parts, "/")
}

func operationID(method, path string) string {
	return strings.ToLower(method) + strings.NewReplacer("/", "-", "{", "", "}", "", "_", "-").Replace(path)
}

package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/wire"
	"parley/wire/shape"
)

// FeatureLevel is the feature level of the amended description.
const FeatureLevel = 494

// ErrNoDescription says that the description is not on this machine. Tests are skipped then.
var ErrNoDescription = errors.New("the protocol's description is missing: set PARLEY_SHARED or put it beside the " +
	"repository as ../shared")

// A Contract is the amended description. It is safe for concurrent use.
type Contract struct {
	routes    []route
	events    map[string][]*shape.Shape // by type, or type/op
	fields    []registerField
	settings  []registerField
	endpoints []Endpoint
	uses      uses
}

// A route is one operation with its success answer.
type route struct {
	method   string
	segments []string // of the path; {name} matches any segment
	name     string   // as in findings
	answer   *shape.Shape
	endpoint *wire.Endpoint // of this server; nil in the protocol's description
}

// Shared returns the folder of the protocol's description, or ErrNoDescription.
func Shared() (string, error) {
	dir := os.Getenv("PARLEY_SHARED")
	if dir == "" {
		root, err := Root()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "api", "openapi.yaml")); errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoDescription
	} else if err != nil {
		return "", err
	}
	return dir, nil
}

// Root returns the repository's folder: the nearest parent directory with a go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod in any parent directory")
		}
		dir = up
	}
}

// Load reads and amends the description.
func Load() (*Contract, error) {
	dir, err := Shared()
	if err != nil {
		return nil, err
	}
	d, err := readDescription(filepath.Join(dir, "api", "openapi.yaml"), amendments)
	if err != nil {
		return nil, err
	}
	c := &Contract{events: map[string][]*shape.Shape{}, uses: uses{seen: map[int]int{}}}
	if err := c.readPaths(d); err != nil {
		return nil, err
	}
	if err := c.amend(d); err != nil {
		return nil, err
	}
	if len(d.unresolved) > 0 {
		return nil, fmt.Errorf("description: %s", strings.Join(d.unresolved, "; "))
	}
	if c.endpoints, err = readEndpoints(filepath.Join(dir, "api", "endpoints.md")); err != nil {
		return nil, err
	}
	if c.fields, c.settings, err = readRegisterFields(filepath.Join(dir, "api", "register-fields.md")); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Contract) readPaths(d *description) error {
	for path, operations := range d.paths {
		switch path {
		case "/real-time", "/rest-error-handling", "/zulip-outgoing-webhook":
			continue // pages of text, not endpoints
		}
		methods, _ := operations.(map[string]any)
		for method, operation := range methods {
			s, ok := d.success(operation)
			if !ok {
				continue
			}
			c.add(strings.ToUpper(method), path, s)
			if path == "/events" && method == "get" {
				events, err := s.Find("events[]")
				if err != nil {
					return err
				}
				for _, e := range events.AnyOf {
					c.addEvent(e)
				}
			}
		}
	}
	return nil
}

func (c *Contract) add(method, path string, answer *shape.Shape) {
	own := *answer
	for i, r := range c.routes {
		if r.name == method+" "+path {
			c.routes[i].answer = &own
			return
		}
	}
	c.routes = append(c.routes, route{method, strings.Split(strings.Trim(path, "/"), "/"), method + " " + path, &own,
		nil})
}

// addEvent stores the shape of an event under its type and op, each of which has one allowed value.
func (c *Contract) addEvent(e *shape.Shape) {
	key := e.Fields["type"].Shape.Enum[0]
	if op, ok := e.Fields["op"]; ok {
		key += "/" + op.Shape.Enum[0]
	}
	own := *e
	c.events[key] = append(c.events[key], &own)
}

// Events returns the described forms of events, as type or type/op, sorted.
func (c *Contract) Events() []string { return slices.Sorted(maps.Keys(c.events)) }

func (c *Contract) amend(d *description) error {
	for _, a := range amendments {
		if _, ok := a.schema(); ok {
			continue // applied by d already
		}
		if err := c.amendOne(a, d); err != nil {
			return err
		}
	}
	return nil
}

func (c *Contract) amendOne(a amendment, d *description) error {
	first, rest, _ := strings.Cut(a.At, " ")
	key, path, _ := strings.Cut(rest, " ")
	switch {
	case a.change == answer:
		s, err := parse(a.Type, d.named)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		envelope, err := parse("{result: 'success', msg: '', ignored_parameters_unsupported?: [str]}", nil)
		if err != nil {
			return err
		}
		if said, ok := s.Fields["msg"]; ok {
			envelope.Fields["msg"] = said
		}
		c.add(first, key, shape.Merge(envelope, s))
	case a.change == event:
		s, err := parse(a.Type, d.named)
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		typ, op, hasOp := strings.Cut(key, "/")
		head := fmt.Sprintf("{id: int, type: '%s'}", typ)
		if hasOp {
			head = fmt.Sprintf("{id: int, type: '%s', op: '%s'}", typ, op)
		}
		envelope, err := parse(head, nil)
		if err != nil {
			return err
		}
		c.addEvent(shape.Merge(envelope, s))
	case a.change == retire:
		delete(c.events, key)
	case first == "event":
		forms, ok := c.events[key]
		if !ok {
			return fmt.Errorf("%s: no such event", a)
		}
		return a.apply(forms[0], path, d.named)
	default:
		for _, r := range c.routes {
			if r.name == first+" "+key {
				return a.apply(r.answer, path, d.named)
			}
		}
		return fmt.Errorf("%s: no such endpoint", a)
	}
	return nil
}

// Answer checks one answer. path is the path of the request, with or without /api/v1 or /json. It returns
// Findings, or nil.
func (c *Contract) Answer(method, path string, status int, body []byte) error {
	path = endpointPath(path)
	where := method + " " + path
	r := c.route(method, path)
	if r != nil {
		where = r.name
	}
	v, err := decode(body)
	if err != nil {
		return Findings{newFinding(where, "", "type", "not JSON: "+err.Error())}
	}
	if status == http.StatusOK {
		if r == nil {
			return Findings{newFinding(where, "", "unknown", "no such endpoint in the contract")}
		}
		return c.accept(r.answer.Check(where, "", v)).Err()
	}
	object, _ := v.(map[string]any)
	code, _ := object["code"].(string)
	s, err := errorShape(status, code)
	if err != nil {
		return err
	}
	where = fmt.Sprintf("%s: %d %s", where, status, code)
	return c.accept(s.Check(where, "", v)).Err()
}

// endpointPath returns the path of a request without query and prefix, and with doubled slashes merged.
func endpointPath(path string) string {
	path, _, _ = strings.Cut(path, "?")
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	for _, prefix := range []string{"/api/v1", "/json"} {
		path = strings.TrimPrefix(path, prefix)
	}
	return path
}

// Route returns the name of the endpoint that a path belongs to, as in the tables, or "".
func (c *Contract) Route(method, path string) string {
	if r := c.route(method, endpointPath(path)); r != nil {
		return r.name
	}
	return ""
}

// route finds the operation of a path. A literal segment is preferred to a {name}, and for digits a name that
// ends in "_id".
func (c *Contract) route(method, path string) *route { return pick(c.routes, method, path) }

func pick(routes []route, method, path string) *route {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	var best *route
	bestScore := -1
	for i := range routes {
		r := &routes[i]
		if r.method != method {
			continue
		}
		if score := match(r.segments, segments); score > bestScore {
			best, bestScore = r, score
		}
	}
	return best
}

func match(pattern, segments []string) int {
	last := pattern[len(pattern)-1]
	if last == "{filename}" && len(segments) > len(pattern) { // the name of an upload contains slashes
		segments = append(segments[:len(pattern)-1:len(pattern)-1], strings.Join(segments[len(pattern)-1:], "/"))
	}
	if len(pattern) != len(segments) {
		return -1
	}
	score := 0
	for i, p := range pattern {
		digits := strings.Trim(segments[i], "0123456789") == ""
		switch {
		case p == segments[i]:
			score += 4
		case !strings.HasPrefix(p, "{"):
			return -1
		case strings.HasSuffix(p, "_id}") && !digits:
			return -1
		case strings.HasSuffix(p, "_id}"):
			score += 2
		}
	}
	return score
}

// Event checks one event of a queue. It returns Findings, or nil.
func (c *Contract) Event(raw []byte) error {
	v, err := decode(raw)
	if err != nil {
		return Findings{newFinding("event", "", "type", "not JSON: "+err.Error())}
	}
	object, _ := v.(map[string]any)
	key, _ := object["type"].(string)
	if op, ok := object["op"].(string); ok {
		key += "/" + op
	}
	forms := c.events[key]
	if len(forms) == 0 {
		return c.accept(Findings{newFinding("event "+key, "", "unknown", "no such event: "+shape.Sample(v))}).Err()
	}
	return c.accept((&shape.Shape{AnyOf: forms}).Check("event "+key, "", v)).Err()
}

// Register checks the answer to a registration without event types: every field must be present. It returns
// Findings, or nil.
func (c *Contract) Register(raw []byte) error {
	v, err := decode(raw)
	object, ok := v.(map[string]any)
	if !ok {
		return Findings{newFinding("POST /register", "", "type", fmt.Sprintf("not a JSON object: %v", err))}
	}
	out := c.route(http.MethodPost, "/register").answer.Check("POST /register", "", v)
	seen := map[string]bool{}
	for _, f := range out {
		seen[f.Path] = true
	}
	listed := missing("", c.fields, object)
	for _, part := range []string{"user_settings", "realm_user_settings_defaults"} {
		if settings, ok := object[part].(map[string]any); ok {
			listed = append(listed, missing(part+".", c.settings, settings)...)
		}
	}
	for _, f := range listed {
		if !seen[f.Path] { // already reported
			out = append(out, f)
		}
	}
	return c.accept(out).Err()
}

func missing(prefix string, fields []registerField, object map[string]any) Findings {
	var out Findings
	for _, f := range fields {
		v, there := object[f.name]
		switch {
		case !there && !f.optional && !(prefix == "realm_user_settings_defaults." && f.personal):
			out = append(out, newFinding("POST /register", prefix+f.name, "missing", "missing ("+f.typ+")"))
		case there && !f.fits(v):
			out = append(out, newFinding("POST /register", prefix+f.name, "type", shape.Sample(v)+", want "+f.typ))
		}
	}
	return out
}

// accept removes the findings that the deviations table allows.
func (c *Contract) accept(fs Findings) Findings {
	var out Findings
	for _, f := range fs {
		if !c.uses.allowed(f) {
			out = append(out, f)
		}
	}
	return out
}

// decode decodes JSON and keeps numbers as text: 1.0 is not an integer to a strict client.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

package contract

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Finding is one difference between what a server said and the contract.
type Finding struct {
	Where string // `GET /messages`, `event stream/update`
	Path  string // `messages[3].reactions`
	What  string // unknown, missing, type, value
	Text  string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Where, f.Path, f.Text)
}

// Findings is the error of Answer, Event and Register.
type Findings []Finding

func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

func (fs Findings) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

var places = regexp.MustCompile(`\[[0-9]+\]|\[[^]]*\]`)

// general is the path with array places and map keys left out, as the deviations table writes it.
func (f Finding) general() string { return places.ReplaceAllString(f.Path, "[]") }

// check compares a decoded value (numbers as json.Number) with a shape.
func (s *shape) check(where, path string, v any) Findings {
	found := func(what, format string, args ...any) Findings {
		return Findings{{where, path, what, fmt.Sprintf(format, args...)}}
	}
	if v == nil {
		if s.nullable || s.anything() || slices.ContainsFunc(s.either, func(e *shape) bool { return len(e.check(where, path, v)) == 0 }) {
			return nil
		}
		return found("type", "null, want %s", s)
	}
	if len(s.either) > 0 {
		if fs := s.nearest(where, path, v); len(fs) > 0 {
			return fs
		}
	}
	if s.kind != "" && !fits(s.kind, v) {
		return found("type", "%s, want %s", sample(v), s)
	}
	if text, ok := v.(string); ok && len(s.enum) > 0 && !slices.Contains(s.enum, text) {
		return found("value", "%q, want one of %s", text, strings.Join(s.enum, ", "))
	}
	var out Findings
	switch v := v.(type) {
	case []any:
		if s.items != nil {
			for i, item := range v {
				out = append(out, s.items.check(where, fmt.Sprintf("%s[%d]", path, i), item)...)
			}
		}
	case map[string]any:
		out = s.checkFields(where, path, v)
	}
	return out
}

func (s *shape) checkFields(where, path string, v map[string]any) Findings {
	var out Findings
	for _, name := range sorted(v) {
		below := strings.TrimPrefix(path+"."+name, ".")
		switch f, known := s.fields[name]; {
		case known:
			out = append(out, f.shape.check(where, below, v[name])...)
		case s.others != nil:
			out = append(out, s.others.check(where, fmt.Sprintf("%s[%s]", path, name), v[name])...)
		case s.closed:
			out = append(out, Finding{where, below, "unknown", fmt.Sprintf("unknown field (%s)", sample(v[name]))})
		}
	}
	for _, name := range sorted(s.fields) {
		if _, there := v[name]; !there && s.fields[name].required() {
			out = append(out, Finding{where, strings.TrimPrefix(path+"."+name, "."), "missing", "missing"})
		}
	}
	return out
}

// nearest returns nothing when an alternative fits, else the findings of the one that came closest.
func (s *shape) nearest(where, path string, v any) Findings {
	var best Findings
	sameKind := false
	for i, e := range s.either {
		fs := e.check(where, path, v)
		if len(fs) == 0 {
			return nil
		}
		same := e.kind == "" || fits(e.kind, v)
		if i == 0 || same && !sameKind || same == sameKind && len(fs) < len(best) {
			best, sameKind = fs, same
		}
	}
	if !sameKind {
		return Findings{{where, path, "type", fmt.Sprintf("%s, want %s", sample(v), s)}}
	}
	return best
}

func fits(kind string, v any) bool {
	switch v := v.(type) {
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	case json.Number:
		return kind == "number" || kind == "integer" && !strings.ContainsAny(v.String(), ".eE")
	}
	return false
}

func (s *shape) String() string {
	var text string
	switch {
	case len(s.either) > 0:
		parts := make([]string, len(s.either))
		for i, e := range s.either {
			parts[i] = e.String()
		}
		text = strings.Join(parts, " or ")
	case s.kind == "array" && s.items != nil:
		text = "array of " + s.items.String()
	case s.kind == "":
		text = "anything"
	default:
		text = s.kind
	}
	if s.nullable {
		text += " or null"
	}
	return text
}

// sample shows a value short enough for one line.
func sample(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const enough = 80
	if len(raw) > enough {
		return string(raw[:enough]) + "…"
	}
	return string(raw)
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

package shape

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Finding is one difference between a value and its shape.
type Finding struct {
	Where string // `GET /messages`, `event stream/update`
	Path  string // `messages[3].reactions`
	What  string // unknown, missing, type, value
	Text  string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Where, f.Path, f.Text)
}

// Findings is the error of a check. A nil value means that the check succeeded.
type Findings []Finding

// Error returns one line for each finding.
func (fs Findings) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the findings as an error, nil if there are none.
func (fs Findings) Err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

var indexPattern = regexp.MustCompile(`\[[0-9]+\]|\[[^]]*\]`)

// GeneralPath returns the path without array indexes and map keys, as the table of deviations has it.
func (f Finding) GeneralPath() string { return indexPattern.ReplaceAllString(f.Path, "[]") }

// Check compares a decoded value with a shape. Numbers must be decoded as json.Number. where and path are copied into
// the findings.
func (s *Shape) Check(where, path string, v any) Findings {
	found := func(what, format string, args ...any) Findings {
		return Findings{{where, path, what, fmt.Sprintf(format, args...)}}
	}
	if v == nil {
		if s.Nullable || s.acceptsAnything() || slices.ContainsFunc(s.AnyOf, func(e *Shape) bool {
			return len(e.Check(where, path, v)) == 0
		}) {
			return nil
		}
		return found("type", "null, want %s", s)
	}
	if len(s.AnyOf) > 0 {
		if fs := s.nearestAlternative(where, path, v); len(fs) > 0 {
			return fs
		}
	}
	if s.Kind != "" && !Fits(s.Kind, v) {
		return found("type", "%s, want %s", Sample(v), s)
	}
	if text, ok := v.(string); ok && len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		return found("value", "%q, want one of %s", text, strings.Join(s.Enum, ", "))
	}
	var out Findings
	switch v := v.(type) {
	case []any:
		if s.Empty && len(v) > 0 {
			return found("value", "%s, want none", Sample(v))
		}
		if s.Items != nil {
			for i, item := range v {
				out = append(out, s.Items.Check(where, fmt.Sprintf("%s[%d]", path, i), item)...)
			}
		}
	case map[string]any:
		out = s.checkFields(where, path, v)
	}
	return out
}

func (s *Shape) checkFields(where, path string, v map[string]any) Findings {
	var out Findings
	for _, name := range sortedKeys(v) {
		below := strings.TrimPrefix(path+"."+name, ".")
		switch f, known := s.Fields[name]; {
		case known:
			out = append(out, f.Shape.Check(where, below, v[name])...)
		case s.OtherValues != nil:
			out = append(out, s.OtherValues.Check(where, fmt.Sprintf("%s[%s]", path, name), v[name])...)
		case s.Closed:
			out = append(out, Finding{where, below, "unknown", fmt.Sprintf("unknown field (%s)", Sample(v[name]))})
		}
	}
	for _, name := range sortedKeys(s.Fields) {
		if _, there := v[name]; !there && s.Fields[name].Required() {
			out = append(out, Finding{where, strings.TrimPrefix(path+"."+name, "."), "missing", "missing"})
		}
	}
	return out
}

// nearestAlternative returns nil if an alternative fits, else the findings of the alternative with the fewest.
func (s *Shape) nearestAlternative(where, path string, v any) Findings {
	var best Findings
	sameKind := false
	for i, e := range s.AnyOf {
		fs := e.Check(where, path, v)
		if len(fs) == 0 {
			return nil
		}
		same := e.Kind == "" || Fits(e.Kind, v)
		if i == 0 || same && !sameKind || same == sameKind && len(fs) < len(best) {
			best, sameKind = fs, same
		}
	}
	if !sameKind {
		return Findings{{where, path, "type", fmt.Sprintf("%s, want %s", Sample(v), s)}}
	}
	return best
}

// Fits reports whether a decoded value has a JSON kind.
func Fits(kind string, v any) bool {
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

func (s *Shape) String() string {
	var text string
	switch {
	case len(s.AnyOf) > 0:
		parts := make([]string, len(s.AnyOf))
		for i, e := range s.AnyOf {
			parts[i] = e.String()
		}
		text = strings.Join(parts, " or ")
	case s.Kind == "array" && s.Items != nil:
		text = "array of " + s.Items.String()
	case s.Kind == "":
		text = "anything"
	default:
		text = s.Kind
	}
	if s.Nullable {
		text += " or null"
	}
	return text
}

// Sample returns a value as JSON, cut to fit on one line.
func Sample(v any) string {
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

func sortedKeys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

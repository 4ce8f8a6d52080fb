package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	"parley/wire/shape"
)

// An Endpoint is one row of the list of all endpoints at this feature level.
type Endpoint struct {
	Method string
	Path   string // below /api/v1, with {name} for parameters
	Spec   string // YES, ref or -: how far the specification defines it; "" if the list does not say
	Who    string
	Since  string // the feature level, if later than 372
}

// Endpoints returns the list, with the documented endpoints first.
func (c *Contract) Endpoints() []Endpoint { return c.endpoints }

func readEndpoints(path string) ([]Endpoint, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	var out []Endpoint
	for _, row := range rows(string(raw)) {
		switch {
		case len(row) == 7 && isMethod(row[1]):
			out = append(out, Endpoint{row[1], bare(row[2]), bare(row[0]), row[3], row[6]})
		case len(row) == 5 && isMethod(row[0]):
			out = append(out, Endpoint{Method: row[0], Path: bare(row[1]), Who: row[2]})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read endpoints: no rows in %s", path)
	}
	return out, nil
}

// A registerField is one row of the list of fields in a registration's answer.
type registerField struct {
	name     string
	typ      string
	optional bool
	personal bool // a setting of users that organizations have no default for
}

func readRegisterFields(path string) (fields, settings []registerField, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read register fields: %w", err)
	}
	text := string(raw)
	text, _, _ = strings.Cut(text, "\n## 3.")
	top, below, _ := strings.Cut(text, "\n## 2.")
	top, _, _ = strings.Cut(top, "\n### Not sent")
	return registerRows(top), registerRows(below), nil
}

func registerRows(text string) []registerField {
	var out []registerField
	for _, row := range rows(text) {
		if len(row) != 4 || !strings.HasPrefix(row[0], "`") {
			continue
		}
		out = append(out, registerField{
			name:     bare(row[0]),
			typ:      row[1],
			optional: strings.HasPrefix(row[3], "absent"),
			personal: row[2] == "user_settings",
		})
	}
	return out
}

// fits checks the outermost type only; the schemas check the rest.
func (f registerField) fits(v any) bool {
	if v == nil {
		return strings.Contains(f.typ, "null")
	}
	typ := f.typ
	switch {
	case strings.HasPrefix(typ, "group setting"):
		return shape.Fits("integer", v) || shape.Fits("object", v)
	case strings.HasPrefix(typ, "array"):
		return shape.Fits("array", v)
	case strings.HasPrefix(typ, "map"), strings.HasPrefix(typ, "object"):
		return shape.Fits("object", v)
	}
	word, _, _ := strings.Cut(typ, " ")
	if _, isNumber := v.(json.Number); isNumber && word == "number" {
		return true
	}
	return shape.Fits(word, v)
}

var pipe = regexp.MustCompile(`\s*\|\s*`)

// rows returns the cells of all tables in a Markdown text.
func rows(text string) [][]string {
	var out [][]string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := pipe.Split(strings.Trim(line, "|"), -1)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, cells)
	}
	return out
}

func isMethod(text string) bool {
	switch text {
	case "GET", "POST", "PATCH", "PUT", "DELETE":
		return true
	}
	return false
}

func bare(text string) string { return strings.Trim(text, "`*") }

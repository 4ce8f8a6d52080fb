package integrations

import (
	"cmp"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"text/template"
	"unicode"
)

// execution is one request while its templates run.
type execution struct {
	program  *program
	root     any
	request  Request
	steps    int
	lenient  bool   // fields that are missing are left out; otherwise they end the template
	orders   orders // of the payload's keys; read when it is first needed
	captured any    // the value of the last pipeline that was read with capture
}

// restart prepares an execution to run templates again. Steps are counted over both runs.
func (e *execution) restart(lenient bool) {
	if !lenient {
		e.steps = 0
	}
	e.lenient, e.captured, e.orders = lenient, nil, nil
}

// absent returns the error for a value that is not there or of another type, or nil if such values are left out.
func (e *execution) absent(format string, args ...any) error {
	if e.lenient {
		return nil
	}
	return &Anomaly{Reason: fmt.Sprintf(format, args...)}
}

// takesPattern are the functions whose first argument is a regular expression (RE2).
var takesPattern = map[string]bool{"match": true, "find": true, "replaceAll": true}

// functions returns the functions of templates, bound to an execution.
func (e *execution) functions() template.FuncMap {
	return template.FuncMap{
		// Added by the compiler.
		"printed": e.printed,
		"field":   e.field,
		"ranged":  e.ranged,
		"step":    func() (block, error) { return "", e.spend(1) },
		"capture": func(v any) block { e.captured = v; return "" },

		// The request.
		"payload": func() any { return e.root },
		"header":  func(name string) string { return e.request.Header(name) },
		"param":   func(name string) string { return e.request.Params.Get(name) },
		"get":     e.get,
		"has":     func(v any, at string) (bool, error) { got, err := e.get(v, at); return got != nil, err },
		"hasKey":  func(v any, key string) bool { m, _ := v.(map[string]any); _, ok := m[key]; return ok },
		"person":  e.person,
		"json":    func(s any) (any, error) { return e.parseJSON(s) },

		// Results that are no message.
		"skip":        func() (any, error) { return nil, errSkipped },
		"unsupported": unsupported,
		"anomaly":     func(reason string) (any, error) { return nil, &Anomaly{Reason: reason} },
		"foreign":     func(reason string) (any, error) { return nil, &Anomaly{Reason: reason, Foreign: true} },
		"unknown":     func(event any) (any, error) { name, _ := text(event); return nil, &unknownForm{name} },
		"missing":     func(name string) (any, error) { return nil, &Missing{name} },
		"refuse":      func(message string) (any, error) { return nil, &Refused{message} },

		// Comparison. Values of different kinds are unequal instead of an error.
		"eq": e.equal,
		"ne": func(a, b any) (bool, error) { same, err := e.equal(a, b); return !same, err },
		"lt": func(a, b any) (bool, error) { return e.ordered(a, b, -1, -1) },
		"le": func(a, b any) (bool, error) { return e.ordered(a, b, -1, 0) },
		"gt": func(a, b any) (bool, error) { return e.ordered(a, b, 1, 1) },
		"ge": func(a, b any) (bool, error) { return e.ordered(a, b, 1, 0) },

		// Texts in Markdown.
		"body":     ofText(e, multiline),
		"verbatim": ofText(e, func(s string) block { return multiline(unfenced(s)) }),
		"quote":    ofText(e, func(s string) block { return fenced("~~~", " quote", s) }),
		"bold":     ofText(e, func(s string) block { return block("**" + inline(s) + "**") }),
		"fence":    e.fence,
		"code":     ofText(e, code),
		"link":     e.link,
		"mention":  e.mention,
		"short":    ofText(e, func(s string) string { return truncate(s, 11, "") }),
		"plural":   e.plural,

		// Texts.
		"text":       ofText(e, func(s string) string { return s }),
		"lower":      ofText(e, strings.ToLower),
		"upper":      ofText(e, strings.ToUpper),
		"title":      ofText(e, titled),
		"capital":    ofText(e, capital),
		"trim":       ofText(e, strings.TrimSpace),
		"firstLine":  ofText(e, func(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }),
		"unescape":   ofText(e, html.UnescapeString),
		"pathEscape": ofText(e, url.PathEscape),
		"trimPrefix": ofTexts(e, func(part, s string) string { return strings.TrimPrefix(s, part) }),
		"trimSuffix": ofTexts(e, func(part, s string) string { return strings.TrimSuffix(s, part) }),
		"truncate":   e.truncate,
		"replace":    e.replace,
		"contains":   ofTexts(e, func(part, s string) bool { return strings.Contains(s, part) }),
		"hasPrefix":  ofTexts(e, func(part, s string) bool { return strings.HasPrefix(s, part) }),
		"hasSuffix":  ofTexts(e, func(part, s string) bool { return strings.HasSuffix(s, part) }),
		"match":      e.match,
		"find":       e.find,
		"replaceAll": e.replaceAll,
		"split":      e.split,
		"join":       e.join,
		"andJoin":    e.sentence(" and "),
		"commaJoin":  e.sentence(", and "),

		// Numbers and times.
		"add":   e.arithmetic(func(a, b float64) float64 { return a + b }),
		"sub":   e.arithmetic(func(a, b float64) float64 { return a - b }),
		"mul":   e.arithmetic(func(a, b float64) float64 { return a * b }),
		"div":   e.arithmetic(func(a, b float64) float64 { return a / b }),
		"int":   e.int,
		"round": e.round,
		"time":  e.time,

		// Lists and maps.
		"print":       e.print,
		"len":         e.len,
		"index":       e.index,
		"list":        func(v ...any) []any { return v },
		"dict":        dict,
		"append":      e.append,
		"entries":     e.entries,
		"first":       e.first,
		"last":        func(list any) (any, error) { return e.nth(list, -1) },
		"keys":        e.keys,
		"pluck":       e.pluck,
		"group":       e.group,
		"alertGroups": e.alertGroups,
		"slack":       ofText(e, func(s string) string { return slackEntities.Replace(slackMarkdown(s, false)) }),
		"slackChat": ofText(e,
			func(s string) block { return block(slackMarkdown(strings.ReplaceAll(s, mark, ""), true)) },
		),
		"slackMessage": e.slackMessage,
		"indented":     e.indented,
		"newrelicTime": e.newrelicTime,
		"fieldText":    e.fieldText,
		"jira":         ofText(e, jiraMarkdown),
		"html":         ofText(e, htmlMarkdown),
		"tally":        e.tally,
		"uniq":         e.uniq,
		"in":           e.in,
		"wanted":       e.wanted,
		"isMap":        func(v any) bool { _, ok := v.(map[string]any); return ok },
		"isList":       func(v any) bool { _, ok := v.([]any); return ok },
		"isText":       func(v any) bool { _, ok := v.(string); return ok },
	}
}

// unsupported ends a template because there is no text for an event. The parts are the name of the event; if one of
// them is not a name, then the payload is damaged.
func unsupported(parts ...any) (any, error) {
	var names []string
	for _, p := range parts {
		name, ok := p.(string)
		if !ok || !strings.ContainsFunc(name, unicode.IsLetter) || name == gone {
			return nil, &unknownForm{strings.Join(names, " ")}
		}
		names = append(names, name)
	}
	return nil, &Unsupported{strings.Join(names, " ")}
}

// spend counts steps. It returns errSteps when there are too many.
func (e *execution) spend(steps int) error {
	if e.steps += steps; e.steps > MaxSteps {
		return errSteps
	}
	return nil
}

// textOf returns a value as text and counts the work on it.
func (e *execution) textOf(v any) (string, error) {
	s, err := text(v)
	if err != nil && e.lenient {
		s, err = gone, nil
	}
	return s, cmp.Or(err, e.spend(1+len(s)/256))
}

// printed returns a value as templates print it: one line, without the start of a link. It returns an error for values
// that have no text, so that a payload without a field does not become a message with "null" in it.
func (e *execution) printed(v any) (string, error) {
	if b, ok := v.(block); ok {
		return string(b), nil
	}
	s, err := text(v)
	if err != nil {
		return gone, e.absent("%v", err)
	}
	if s == gone {
		return gone, nil
	}
	return inline(s), nil
}

// print joins the texts of values.
func (e *execution) print(args ...any) (any, error) {
	var b strings.Builder
	isBlock := false
	for _, v := range args {
		s, err := e.textOf(v)
		if err != nil {
			return "", err
		}
		if _, ok := v.(block); ok {
			isBlock = true
		}
		b.WriteString(s)
	}
	if isBlock {
		return block(b.String()), nil
	}
	return b.String(), nil
}

// field returns the value at a path. If there is none, the template ends, or the value is left out.
func (e *execution) field(v any, at string) (any, error) {
	for name := range strings.SplitSeq(at, ".") {
		if err := e.spend(1); err != nil {
			return nil, err
		}
		in, _ := v.(map[string]any) // a value of another type has no fields
		var ok bool
		if v, ok = in[name]; !ok {
			return nil, e.absent("%q is missing", at)
		}
	}
	return v, nil
}

// ranged returns a value for a loop: a list, a map or a number.
func (e *execution) ranged(v any) (any, error) {
	switch v.(type) {
	case nil, []any, map[string]any, int, int64:
		return v, nil
	}
	return nil, e.absent("a list is %T", v)
}

// len returns the number of elements of a list or map, or of bytes of a text.
func (e *execution) len(v any) (int, error) {
	switch v := v.(type) {
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	case string:
		return len(v), nil
	case block:
		return len(v), nil
	}
	return 0, e.absent("a list is %T", v)
}

// index returns an element of a list or map.
func (e *execution) index(v, at any) (any, error) {
	name, err := text(at)
	if err != nil {
		return nil, err
	}
	switch in := v.(type) {
	case map[string]any:
		return e.field(in, name)
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(in) {
			return in[i], e.spend(1)
		}
	}
	return nil, e.absent("there is no element %s", name)
}

// get returns the value at a path such as "repository.owner.login" or "alerts.0", or nil if there is none.
func (e *execution) get(v any, at string) (any, error) {
	for name := range strings.SplitSeq(at, ".") {
		if err := e.spend(1); err != nil {
			return nil, err
		}
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil, nil
			}
			v = in[i]
		default:
			return nil, nil
		}
	}
	return v, nil
}

func (e *execution) parseJSON(v any) (any, error) {
	s, err := e.textOf(v)
	if err != nil {
		return nil, err
	}
	out, err := decodeJSON([]byte(s))
	if err != nil && e.lenient {
		out, err = nil, nil
	}
	return out, cmp.Or(err, e.spend(1+len(s)/16))
}

// equal reports whether two values have the same text, or are both null.
func (e *execution) equal(a, b any) (bool, error) {
	if a == nil || b == nil {
		return a == nil && b == nil, nil
	}
	x, errX := text(a)
	y, errY := text(b)
	return errX == nil && errY == nil && x == y, e.spend(1 + min(len(x), len(y))/256)
}

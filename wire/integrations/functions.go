package integrations

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

// execution is one request while its templates run.
type execution struct {
	program  *program
	root     any
	request  Request
	steps    int
	orders   orders // of the payload's keys; read when it is first needed
	captured any    // the value of the last pipeline that was read with capture
}

// takesPattern are the functions whose first argument is a regular expression (RE2).
var takesPattern = map[string]bool{"match": true, "find": true, "replaceAll": true}

// Functions returns the names of the functions that templates can use, sorted.
func Functions() []string {
	names := slices.Sorted(maps.Keys((&execution{}).functions()))
	return slices.DeleteFunc(names, func(n string) bool { return n == "printed" || n == "step" || n == "capture" })
}

// functions returns the functions of templates, bound to an execution.
func (e *execution) functions() template.FuncMap {
	return template.FuncMap{
		// Added by the compiler.
		"printed": printed,
		"step":    func() (block, error) { return "", e.spend(1) },
		"capture": func(v any) block { e.captured = v; return "" },

		// The request.
		"payload": func() any { return e.root },
		"header":  func(name string) string { return e.request.Header(name) },
		"param":   func(name string) string { return e.request.Params.Get(name) },
		"get":     e.get,
		"has":     func(v any, at string) (bool, error) { got, err := e.get(v, at); return got != nil, err },
		"hasKey":  func(v any, key string) bool { m, _ := v.(map[string]any); _, ok := m[key]; return ok },
		"json":    func(s any) (any, error) { return e.parseJSON(s) },

		// Results that are no message.
		"skip": func() (any, error) { return nil, errSkipped },
		"unsupported": func(event any) (any, error) {
			name, err := text(event)
			return nil, cmp.Or(err, error(&Unsupported{name}))
		},
		"anomaly": func(reason string) (any, error) { return nil, &Anomaly{Reason: reason} },
		"missing": func(name string) (any, error) { return nil, &Missing{name} },
		"refuse":  func(message string) (any, error) { return nil, &Refused{message} },

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
		"short":    ofText(e, func(s string) string { return s[:min(11, len(s))] }),
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
		"int":   func(v any) (int64, error) { f, err := e.number(v); return int64(f), err },
		"round": e.round,
		"time":  e.time,

		// Lists and maps.
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
	return s, cmp.Or(err, e.spend(1+len(s)/256))
}

// listOf returns a list and counts the work on it. Null is an empty list.
func (e *execution) listOf(v any) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []any:
		return v, e.spend(1 + len(v))
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return out, e.spend(1 + len(v))
	}
	return nil, &Anomaly{Reason: fmt.Sprintf("a list is %T", v)}
}

// indented returns the JSON text of the request with line breaks, in the order and spelling of the payload.
func (e *execution) indented() (block, error) {
	var b bytes.Buffer
	if json.Indent(&b, e.request.Body, "", "  ") != nil {
		return "", errMalformed
	}
	return multiline(unfenced(b.String())), e.spend(1 + b.Len()/256)
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

func (e *execution) ordered(a, b any, want, or int) (bool, error) {
	x, err := e.number(a)
	if err != nil {
		return false, err
	}
	y, err := e.number(b)
	c := cmp.Compare(x, y)
	return c == want || c == or, err
}

// ofText makes a function of a text a function of a value, which must have a text.
func ofText[T any](e *execution, f func(string) T) func(any) (T, error) {
	return func(v any) (out T, err error) {
		s, err := e.textOf(v)
		if err != nil {
			return out, err
		}
		return f(s), nil
	}
}

// ofTexts is ofText for two texts.
func ofTexts[T any](e *execution, f func(a, b string) T) func(a, b any) (T, error) {
	return func(a, b any) (out T, err error) {
		x, err := e.textOf(a)
		if err != nil {
			return out, err
		}
		return ofText(e, func(y string) T { return f(x, y) })(b)
	}
}

// fenced returns a text between fences that the text does not contain.
func fenced(fence, kind, s string) block {
	for strings.Contains(s, fence) {
		fence += fence[:1]
	}
	return block(fence+kind+"\n") + multiline(s) + block("\n"+fence)
}

// unfenced breaks up fences in a text that is put between fences by the template itself.
func unfenced(s string) string { return strings.ReplaceAll(s, "```", "``"+gap+"`") }

// fence puts a text between fences of backticks: fence "quote" .text, fence "python" .text. An empty kind is allowed.
func (e *execution) fence(kind string, v any) (block, error) {
	s, err := e.textOf(v)
	return fenced("```", inline(kind), s), err
}

// code shows a text of one line in the font of code.
func code(s string) block {
	s = inline(s)
	ticks := "`"
	for strings.Contains(s, ticks) {
		ticks += "`"
	}
	return block(ticks + s + ticks)
}

// link returns a link. If the address is null or empty, it is the label alone.
func (e *execution) link(label, to any) (block, error) {
	s, err := e.textOf(label)
	if err != nil {
		return "", err
	}
	kept, isBlock := label.(block)
	if !isBlock {
		kept = block(inline(s))
	}
	if to == nil || to == "" {
		return kept, nil
	}
	address, err := e.textOf(to)
	if err != nil {
		return "", err
	}
	return "[" + kept + "](" + block(linkTarget(address)) + ")", nil
}

// linkTarget returns an address that cannot end the link in which it is.
func linkTarget(s string) string {
	s = strings.NewReplacer("\n", "", "\r", "", " ", "%20", "<", "%3C", ">", "%3E", mark, "").Replace(s)
	depth := 0
	for _, c := range s {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return strings.NewReplacer("(", "%28", ")", "%29").Replace(s)
			}
		}
	}
	if depth != 0 {
		return strings.NewReplacer("(", "%28", ")", "%29").Replace(s)
	}
	return s
}

// mention mentions a user, or "all" in the topic. Only data that a service's own people control may be passed to it.
func (e *execution) mention(name any) (block, error) {
	s, err := e.textOf(name)
	return block("@" + mark + "**" + strings.NewReplacer("*", "", "|", "").Replace(inline(s)) + "**"), err
}

// plural returns "1 commit" or "3 commits" for plural .n "commit" "commits".
func (e *execution) plural(v any, one, many string) (string, error) {
	n, err := e.number(v)
	if n == 1 {
		many = one
	}
	return formatNumber(n) + " " + many, err
}

func titled(s string) string {
	start := true
	return strings.Map(func(c rune) rune {
		was := start
		start = !unicode.IsLetter(c)
		if was {
			return unicode.ToUpper(c)
		}
		return unicode.ToLower(c)
	}, s)
}

// capital makes the first letter of a text large and leaves the rest.
func capital(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(c)) + s[n:]
}

// truncate shortens a text to n characters, the last three of which are dots.
func (e *execution) truncate(n int, v any) (any, error) {
	s, err := e.textOf(v)
	if b, ok := v.(block); ok {
		return block(truncate(string(b), n, "...")), err
	}
	return truncate(s, n, "..."), err
}

func (e *execution) replace(old, with string, v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil || old == "" {
		return s, err
	}
	s = strings.ReplaceAll(s, old, with)
	return s, e.spend(1 + len(s)/256)
}

func (e *execution) match(pattern string, v any) (bool, error) {
	s, err := e.textOf(v)
	return err == nil && e.program.patterns[pattern].MatchString(s), err
}

// find returns the first match and its groups as a list, or nil.
func (e *execution) find(pattern string, v any) (any, error) {
	s, err := e.textOf(v)
	if err != nil {
		return nil, err
	}
	found := e.program.patterns[pattern].FindStringSubmatch(s)
	if found == nil {
		return nil, nil
	}
	out := make([]any, len(found))
	for i, f := range found {
		out[i] = f
	}
	return out, nil
}

func (e *execution) replaceAll(pattern, with string, v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil {
		return "", err
	}
	s = e.program.patterns[pattern].ReplaceAllString(s, with)
	return s, e.spend(1 + len(s)/256)
}

func (e *execution) split(separator string, v any) ([]any, error) {
	s, err := e.textOf(v)
	if err != nil {
		return nil, err
	}
	var out []any
	for part := range strings.SplitSeq(s, separator) {
		out = append(out, part)
	}
	return out, e.spend(len(out))
}

func (e *execution) texts(list any) ([]string, error) {
	in, err := e.listOf(list)
	out := make([]string, len(in))
	for i := 0; err == nil && i < len(in); i++ {
		out[i], err = e.textOf(in[i])
	}
	return out, err
}

// join joins the texts of a list. Blocks in it stay blocks.
func (e *execution) join(separator string, list any) (block, error) {
	in, err := e.listOf(list)
	parts := make([]string, len(in))
	for i := 0; err == nil && i < len(in); i++ {
		if parts[i], err = printed(in[i]); err == nil {
			err = e.spend(1 + len(parts[i])/256)
		}
	}
	return block(strings.Join(parts, separator)), err
}

// sentence returns a function that joins the texts of a list as in a sentence: a, b and c. A list of three or more ends
// with the text longEnd before its last element.
func (e *execution) sentence(longEnd string) func(list any) (block, error) {
	return func(list any) (block, error) {
		in, err := e.listOf(list)
		if err != nil || len(in) < 2 {
			return e.join(", ", list)
		}
		end := block(longEnd)
		if len(in) == 2 {
			end = " and "
		}
		start, err := e.join(", ", in[:len(in)-1])
		if err != nil {
			return "", err
		}
		last, err := printed(in[len(in)-1])
		return start + end + block(last), err
	}
}

// number returns a value as a number. It returns an *Anomaly if it is none.
func (e *execution) number(v any) (float64, error) {
	if err := e.spend(1); err != nil {
		return 0, err
	}
	s, err := text(v)
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return 0, &Anomaly{Reason: "a number is " + strconv.Quote(truncate(s, 20, "..."))}
	}
	return f, nil
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (e *execution) arithmetic(f func(a, b float64) float64) func(a, b any) (json.Number, error) {
	return func(a, b any) (json.Number, error) {
		x, err := e.number(a)
		if err != nil {
			return "", err
		}
		y, err := e.number(b)
		return json.Number(formatNumber(f(x, y))), err
	}
}

// round returns a number with a fixed count of digits after the point.
func (e *execution) round(digits int, v any) (string, error) {
	f, err := e.number(v)
	return strconv.FormatFloat(f, 'f', min(max(digits, 0), 12), 64), err
}

// timeLayouts are the forms of times in payloads besides numbers of seconds or milliseconds.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05 MST", "2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04:05.999-0700", "2006-01-02"}

// time formats a time as a layout of package time says, in UTC unless the time names a zone.
func (e *execution) time(layout string, v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil {
		return "", err
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		const firstMillisecond = 1e11 // as seconds, this is the year 5138
		if f >= firstMillisecond {
			f /= 1000
		}
		return time.UnixMilli(int64(f * 1000)).UTC().Format(layout), nil
	}
	for _, in := range timeLayouts {
		if t, err := time.Parse(in, s); err == nil {
			return t.Format(layout), nil
		}
	}
	return "", &Anomaly{Reason: "a time is " + strconv.Quote(truncate(s, 40, "..."))}
}

func dict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("a key of dict is no text")
		}
		out[key] = pairs[i+1]
	}
	return out, nil
}

func (e *execution) append(list any, v ...any) ([]any, error) {
	in, err := e.listOf(list)
	return slices.Concat(in, v), err
}

// first returns the first element of a list: first .list, or the first n of them: first 3 .list.
func (e *execution) first(args ...any) (any, error) {
	switch len(args) {
	case 1:
		return e.nth(args[0], 0)
	case 2:
		n, err := e.number(args[0])
		if err != nil {
			return nil, err
		}
		in, err := e.listOf(args[1])
		return in[:min(max(int(n), 0), len(in))], err
	}
	return nil, errors.New("first takes a list, or a number and a list")
}

func (e *execution) nth(list any, i int) (any, error) {
	in, err := e.listOf(list)
	if err != nil || len(in) == 0 {
		return nil, err
	}
	return in[(i+len(in))%len(in)], nil
}

// keys returns the keys of a map, sorted.
func (e *execution) keys(v any) ([]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, &Anomaly{Reason: fmt.Sprintf("a map is %T", v)}
	}
	out := make([]any, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k)
	}
	return out, e.spend(len(m))
}

// pluck returns the values at a path of all elements of a list. Elements without it are left out.
func (e *execution) pluck(at string, list any) ([]any, error) {
	in, err := e.listOf(list)
	var out []any
	for i := 0; err == nil && i < len(in); i++ {
		var v any
		if v, err = e.get(in[i], at); v != nil {
			out = append(out, v)
		}
	}
	return out, err
}

// group returns the elements of a list by the text at a path, in the order of the first of each: maps with key and
// items.
func (e *execution) group(at string, list any) ([]any, error) {
	in, err := e.listOf(list)
	var out []any
	places := map[string]int{}
	for i := 0; err == nil && i < len(in); i++ {
		v, key := any(nil), ""
		if v, err = e.get(in[i], at); v != nil {
			key, err = e.textOf(v)
		}
		place, ok := places[key]
		if !ok {
			place = len(out)
			places[key] = place
			out = append(out, map[string]any{"key": key, "items": []any(nil)})
		}
		m := out[place].(map[string]any)
		m["items"] = append(m["items"].([]any), in[i])
	}
	return out, err
}

// newrelicTime formats a time in milliseconds as New Relic's readers expect it, with a zone of +00:00.
func (e *execution) newrelicTime(v any) (string, error) {
	s, err := e.textOf(v)
	if err != nil {
		return "", err
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil || ms < 0 || ms > maxMilliseconds {
		return "", &Refused{"The newrelic webhook expects time in milliseconds."}
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000000") + "+00:00", nil
}

// maxMilliseconds is the end of the year 9999.
const maxMilliseconds = 253_402_300_799_999

// fieldText shows a value that a user of the service has added: booleans and null with a capital letter, lists with
// commas. A list with other lists or maps is not supported.
func (e *execution) fieldText(v any) (block, error) {
	const unsupported = "*Value is not a supported data type*"
	switch v := v.(type) {
	case nil:
		return "None", nil
	case bool:
		return block(capital(fmt.Sprint(v))), nil
	case map[string]any:
		return unsupported, nil
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			switch x.(type) {
			case map[string]any, []any:
				return unsupported, e.spend(1 + len(v))
			}
			p, err := e.fieldText(x)
			if err != nil {
				return "", err
			}
			parts[i] = string(p)
		}
		return block(strings.Join(parts, ", ")), e.spend(1 + len(v))
	}
	s, err := e.textOf(v)
	return block(inline(s)), err
}

// alertGroups groups the alerts of a monitor by an annotation, or else a label, of a name: maps with key and items.
func (e *execution) alertGroups(name string, alerts any) ([]any, error) {
	in, err := e.listOf(alerts)
	if name == "" {
		name = "instance"
	}
	var named []any
	for i := 0; err == nil && i < len(in); i++ {
		annotations, _ := e.get(in[i], "annotations")
		labels, _ := e.get(in[i], "labels")
		key := "unknown"
		for _, from := range []any{annotations, labels} {
			if m, ok := from.(map[string]any); ok && m[name] != nil {
				key, err = e.textOf(m[name])
				break
			}
		}
		named = append(named, map[string]any{"key": key, "alert": in[i]})
	}
	groups, err := e.group("key", named)
	for _, g := range groups {
		m := g.(map[string]any)
		items, _ := e.pluck("alert", m["items"])
		m["items"] = items
	}
	return groups, err
}

// tally counts equal texts: maps with name and count, the most frequent first, equally frequent ones by name.
func (e *execution) tally(list any) ([]any, error) {
	names, err := e.texts(list)
	counts := map[string]int{}
	var order []string
	for _, n := range names {
		if counts[n]++; counts[n] == 1 {
			order = append(order, n)
		}
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	out := make([]any, len(order))
	for i, n := range order {
		out[i] = map[string]any{"name": n, "count": counts[n]}
	}
	return out, err
}

// uniq returns the different texts of a list in their order.
func (e *execution) uniq(list any) ([]any, error) {
	names, err := e.texts(list)
	seen := map[string]bool{}
	var out []any
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out, err
}

// in reports whether a value is one of others: in .state "open" "reopened".
func (e *execution) in(v any, others ...any) (bool, error) {
	for _, o := range others {
		if same, err := e.equal(v, o); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// wanted reports whether a name is in a list separated by commas, in which * matches everything. An empty list wants
// every name. It is made for the parameter branches.
func (e *execution) wanted(list string, v any) (bool, error) {
	name, err := e.textOf(v)
	if err != nil || strings.TrimSpace(list) == "" {
		return err == nil, err
	}
	if len(list) > 4096 {
		return false, &Anomaly{Reason: "the list of names is longer than 4096 bytes"}
	}
	for pattern := range strings.SplitSeq(list, ",") {
		if matchName(strings.TrimSpace(pattern), name) {
			return true, nil
		}
	}
	return false, nil
}

// matchName reports whether a name fits a pattern in which * is any text and ? any character.
func matchName(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x01"), strings.ReplaceAll(name, "/", "\x01"))
	return err == nil && ok
}
